"""Parts of a correction, scored by processes of their own; the last call publishes."""

import json
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from town import OTHER_TEAM, TEAM, Town, copy_town, environment, found_town, named

pytestmark = [pytest.mark.slow, pytest.mark.night]
DAY = "2026-11-02T10:00:00Z"
LATER = "2026-11-03T10:00:00Z"
WHY = ("--why", "one label was on a wrong document")

PAGE = Path(__file__).parents[2] / "docs/how-to/correct-scores.md"

KILLED = """
import os, signal, sys
from heldout.cli.program import main

real, left = os.replace, int(sys.argv.pop(1))

def replace(*args, **given):
    global left
    if left == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    left -= 1
    return real(*args, **given)

os.replace = replace
main()
"""
"""heldout, ended by SIGKILL before its n-th file gets its name."""


@pytest.fixture(scope="module")
def entered(tmp_path_factory: pytest.TempPathFactory) -> tuple[Town, Sequence[str]]:
    """Five entries, and labels that were repaired since."""
    town = found_town(tmp_path_factory.mktemp("parts"))
    teams = (TEAM, OTHER_TEAM, named("Third"), named("Fourth"), named("Fifth"))
    ids = [
        town.send(f"run{seed}", now=DAY, seed=seed, team=team) for seed, team in enumerate(teams, 1)
    ]
    town.take_in(now=DAY)
    assert town.publish(*ids, now=DAY).code == 0
    town.repair()
    return town, ids


@pytest.fixture
def town(entered: tuple[Town, Sequence[str]], tmp_path: Path) -> Town:
    return copy_town(entered[0], tmp_path)


Process = subprocess.Popen[str]


def started(town: Town, *arguments: str, program: Sequence[str] = ("-m", "heldout")) -> Process:
    told = ["--board", str(town.board), "--vault", str(town.vault), "--now", LATER]
    return subprocess.Popen(
        [sys.executable, *program, "correct", *arguments, *WHY, *told],
        env={**environment(town.root), "HELDOUT_VAULT": ""},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def scores(town: Town) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (town.vault / "scores").iterdir()}


def test_parts_at_once_and_a_last_call_publish_what_one_machine_publishes(
    town: Town, entered: tuple[Town, Sequence[str]], tmp_path: Path
) -> None:
    _, ids = entered
    alone = copy_town(town, tmp_path / "alone")
    assert alone.organiser("correct", *ids, *WHY, now=LATER).code == 0
    log = (town.vault / "events.jsonl").read_bytes()
    parts = [started(town, *ids, "--shard", part, "--json") for part in ("1/2", "2/2", "2/2")]
    found = [json.loads(part.communicate()[0]) for part in parts]
    assert [part.returncode for part in parts] == [0, 0, 0]
    assert [one["scored"] for one in found] == [3, 2, 2]
    assert (town.vault / "events.jsonl").read_bytes() == log
    last = started(town, *ids)
    out, err = last.communicate()
    assert last.returncode == 0, err
    assert "\nstored    5 of 5 entries as --shard stored them\n" in out
    assert scores(town) == scores(alone)
    assert town.rows() == alone.rows()
    assert town.kinds() == alone.kinds()
    assert not list((town.vault / "remembered/scores").iterdir())
    assert town.audit()["ok"]


def test_all_entries_with_earlier_labels_are_corrected_without_naming_them(
    town: Town, entered: tuple[Town, Sequence[str]], tmp_path: Path
) -> None:
    _, ids = entered
    refused = town.organiser("correct", "--all-earlier", *WHY, now=LATER)
    assert (refused.code, "no entry is scored with earlier labels" in refused.err) == (2, True)
    assert town.organiser("correct", ids[0], "--all-earlier", *WHY, now=LATER).code == 2
    assert town.organiser("correct", ids[0], *WHY, now=LATER).code == 0
    named_all = copy_town(town, tmp_path / "named")
    listed = town.organiser("correct", "--all-earlier", *WHY, "--json", now=LATER)
    assert listed.json["earlier_labels"] == []
    assert named_all.organiser("correct", *ids[1:], *WHY, now=LATER).code == 0
    assert scores(town) == scores(named_all)
    assert town.rows() == named_all.rows()


def test_the_page_is_followed(town: Town, entered: tuple[Town, Sequence[str]]) -> None:
    _, ids = entered
    (script,) = re.findall(r"```bash\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    answer = town.organiser("correct", ids[0], *WHY, "--json", now=LATER)
    listed = answer.json["earlier_labels"]
    script = script.replace("/shared/kb-vault", f"{town.vault}").replace(
        "/shared/kb", f"{town.board}"
    )
    program = f'heldout() {{ {shlex.quote(sys.executable)} -m heldout "$@" --now {LATER}; }}'
    done = subprocess.run(
        ["bash", "-euc", f"{program}\n{script}"],
        env=environment(town.root),
        capture_output=True,
        text=True,
        check=True,
    )
    count = f"{len(listed)} of {len(listed)} entries"
    assert f"\nstored    {count} as --shard stored them\n" in done.stdout
    assert done.stdout.count("nothing was logged or published\n") == 3
    assert "\nearlier" not in done.stdout


@pytest.mark.skipif(sys.platform == "win32", reason="kills a process")
def test_a_part_that_was_killed_is_run_again_and_scores_nothing_twice(
    town: Town, entered: tuple[Town, Sequence[str]]
) -> None:
    _, ids = entered
    killed = started(town, "--shard", "1/1", *ids, program=("-c", KILLED, "2"))
    killed.communicate()
    assert killed.returncode == -signal.SIGKILL
    folder = town.vault / "remembered/scores"
    left = {path.name for path in folder.iterdir()}
    assert (len(left & {*ids}), len(left)) == (2, 3)  # one was being written
    part = town.organiser("correct", *ids, *WHY, "--shard", "1/1", now=LATER)
    assert "scored    5, 2 of them stored before\n" in part.out
    last = town.organiser("correct", *ids, *WHY, now=LATER)
    assert "stored    5 of 5 entries as --shard stored them\n" in last.out
    assert not list(folder.iterdir())


def test_a_part_that_is_missing_is_scored_by_the_last_call(
    town: Town, entered: tuple[Town, Sequence[str]]
) -> None:
    _, ids = entered
    told = town.organiser("correct", *ids, *WHY, "--shard", "1/2", now=LATER).out
    assert told.startswith("shard     1/2: 3 of 5 entries\nscored    3, 0 of them stored before\n")
    assert "scores; nothing was logged or published\n" in told
    labels = town.vault / "labels" / "eval.qrels"
    before = labels.read_bytes()
    labels.write_bytes(before + b"eval1 0 another 1\n")
    one = min(path.name for path in (town.vault / "remembered/scores").iterdir())
    other = town.organiser("correct", one, *WHY, now=LATER)
    assert "stored    0 of 1 entry as --shard stored them\n" in other.out
    assert "1 entry of another plan scored again; other there: labels\n" in other.out
    labels.write_bytes(before)
    last = town.organiser("correct", *ids, *WHY, now=LATER)
    assert "stored    2 of 5 entries as --shard stored them\n" in last.out
    assert "another plan" not in last.out


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--shard", "0/2"), "bad-shard"),
        (("--shard", "3/2"), "bad-shard"),
        (("--shard", "1"), "bad-shard"),
        (("--shard", "1/2", "--accept-rules"), "--shard logs nothing: without --accept-rules"),
    ],
)
def test_what_is_no_part_is_said(
    town: Town, entered: tuple[Town, Sequence[str]], options: Sequence[str], said: str
) -> None:
    answer = town.organiser("correct", *entered[1], *WHY, *options, now=LATER, accepts=False)
    assert (answer.code, said in answer.err) == (2, True), answer
    assert not (town.vault / "remembered/scores").exists()


def test_entries_without_a_score_fail_the_part(
    town: Town, entered: tuple[Town, Sequence[str]]
) -> None:
    _, ids = entered
    files = next(e for e in town.events() if e["submission"] == ids[1])["public"]["files"]
    tar = next(digest for name, digest in files.items() if ".tar." in name)
    (town.vault / "sealed" / tar).write_bytes(b"nothing")
    answer = town.organiser("correct", *ids, *WHY, "--shard", "1/1", now=LATER)
    assert answer.code == 1
    assert "scored    4, 0 of them stored before\n" in answer.out
    assert f"error  not-scored  {ids[1]}\n" in answer.err
    document = town.organiser("correct", ids[1], *WHY, "--shard", "1/1", "--json", now=LATER)
    assert document.code == 2
    assert [one["id"] for one in document.json["failed"]] == [ids[1]]
