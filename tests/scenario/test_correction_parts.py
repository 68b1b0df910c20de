"""Parts of a correction, scored by processes of their own; the last call publishes."""

import json
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
