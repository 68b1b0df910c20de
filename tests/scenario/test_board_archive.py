"""At a board's end: one file from which anybody can score it again, and nothing that is private."""

import hashlib
import json
import math
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
from town import Answer, Town, found_town, git, run_text
from trusting import (
    BASELINE,
    DAY,
    LAST,
    ONE,
    REVEALED,
    Files,
    add_baseline,
    forge,
    kill_at,
    read_files,
    settle,
)

from heldout.board.events import Draft, Entry, format_entry, link, parse_log
from heldout.pipeline.archive_audit import audit_archive
from heldout.store.vault import Vault

pytestmark = pytest.mark.slow


@dataclass(frozen=True, slots=True)
class Ended:
    """A board that is ready to be closed, and the archive that came of it."""

    town: Town
    ids: Mapping[str, str]
    archive: Path


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> Ended:
    town = found_town(tmp_path_factory.mktemp("ended"))
    ids = settle(town)
    shutil.copytree(town.root, town.root.with_name("open"), symlinks=True)
    file = town.root.parent / "kb.zip"
    told = ("--agreed", ids["hidden"], "--why", "their letter of 1 December", "--yes")
    answer = town.organiser("archive", file, *told, now=LAST)
    assert answer.code == 0, answer
    town.push()
    return Ended(town=town, ids=ids, archive=file)


@pytest.fixture
def still_open(ended: Ended, tmp_path: Path) -> Town:
    """A copy of the board as it was before it was closed."""
    return copied(ended.town.root.with_name("open"), tmp_path)


def copied(root: Path, folder: Path) -> Town:
    shutil.copytree(root, folder / "town", symlinks=True)
    town = Town(folder / "town")
    for place in (town.board, town.clone):
        git(place, "remote", "set-url", "origin", str(town.forge))
    return town


def audited(town: Town, archive: Path, *, at: Path | None = None) -> Answer:
    return town.participant("audit", archive, "--json", now=LAST, clone=at or town.board)


def test_an_archive_is_sound_for_a_stranger_and_in_a_clone(ended: Ended, tmp_path: Path) -> None:
    for place in (tmp_path, ended.town.board):
        answer = audited(ended.town, ended.archive, at=place)
        assert (answer.code, answer.json["faults"]) == (0, []), answer
    assert ended.town.kinds()[-1] == "closed-board"
    assert ended.town.audit()["ok"]
    stranger = ended.town.participant("audit", ended.archive, now=LAST, clone=tmp_path)
    assert "scores by query of 2 against their runs" in stranger.out
    assert f'"{ended.ids["hidden"]}" is under an embargo until 2027-02-01' in stranger.out


def test_it_holds_what_the_results_follow_from(ended: Ended) -> None:
    files = read_files(ended.archive)
    assert sum(name.startswith("evidence/") for name in files) == 6
    files = {name: data for name, data in files.items() if not name.startswith("evidence/")}
    one, hidden = ended.ids["one"], ended.ids["hidden"]
    assert set(files) == {
        *("README.md", "MANIFEST.json", "log.jsonl", "labels/eval.qrels", "qrels/dev.qrels"),
        *("queries/dev.tsv", "queries/eval.tsv"),
        *(f"scores/{name}.json" for name in (BASELINE, one, hidden)),
        *(f"runs/{BASELINE}/{name}" for name in ("dev", "eval")),
        *(f"runs/{one}/{name}.run" for name in ("dev", "eval")),
    }
    assert files[f"runs/{one}/eval.run"] == run_text("eval", 1).encode()
    assert files["labels/eval.qrels"] == (ended.town.vault / "labels/eval.qrels").read_bytes()


def test_nothing_private_is_in_it(ended: Ended) -> None:
    data = b"".join(read_files(ended.archive).values())
    for secret in (b"AGE-SECRET-KEY", b"Driftwood", b"Harbour", b"North Coast"):
        assert secret not in data, secret
    assert b"Lighthouse" in data


def test_equal_input_gives_equal_bytes(ended: Ended) -> None:
    again = ended.archive.with_name("again.zip")
    for _ in range(2):
        answer = ended.town.organiser("archive", again, "--json", now=LAST)
        assert answer.code == 0, answer
        assert answer.json["closed_before"]
        assert again.read_bytes() == ended.archive.read_bytes()
    assert not list(again.parent.glob(".writing-*"))


def test_a_file_that_exists_is_not_written_over(ended: Ended) -> None:
    other = ended.archive.with_name("other.zip")
    other.write_bytes(b"mine")
    answer = ended.town.organiser("archive", other, now=LAST)
    assert (answer.code, other.read_bytes()) == (2, b"mine")
    assert "holds something else" in answer.err


def test_after_the_reveal_the_identity_and_the_runs_are_in_it(ended: Ended, tmp_path: Path) -> None:
    town = copied(ended.town.root, tmp_path)
    answer = town.organiser("archive", tmp_path / "late.zip", "--json", now=REVEALED)
    assert (answer.code, answer.json["embargoed"]) == (0, []), answer
    files = read_files(tmp_path / "late.zip")
    assert b"North Coast" in files["log.jsonl"]
    assert f"runs/{ended.ids['hidden']}/eval.run" in files
    assert audited(town, tmp_path / "late.zip").code == 0


def test_after_the_closing_an_erratum_can_come_and_the_archive_tells_it(
    ended: Ended, tmp_path: Path
) -> None:
    town = copied(ended.town.root, tmp_path)
    labels = town.vault / "labels" / "eval.qrels"
    labels.write_text(labels.read_text().replace("deval3 1", "other 1"))
    answer = town.organiser("correct", ONE, "--why", "a wrong document", now=LAST)
    assert answer.code == 0, answer
    assert town.organiser("archive", tmp_path / "a.zip", now=LAST).code == 0
    found = audited(town, tmp_path / "a.zip")
    assert (found.code, found.json["faults"]) == (0, [])
    older = audited(town, ended.archive)
    assert (older.code, older.json["faults"]) == (0, [])


def test_a_closed_board_takes_nothing(ended: Ended, tmp_path: Path) -> None:
    town = copied(ended.town.root, tmp_path)
    before = town.kinds()
    town.send("late", now=LAST, seed=7)
    (told,) = town.take_in(now=LAST)["received"]
    assert (told["kind"], told["problems"][0]["code"]) == ("refused", "board-closed")
    runs = ("--dev", town.root / "dev.run", "--eval", town.root / "eval.run")
    baseline = ("board", "baseline", "20261202-b", *runs, "--description", "BM25")
    assert town.organiser(*baseline, now=LAST).code == 2
    assert town.kinds() == before


def test_closing_asks_first(still_open: Town, tmp_path: Path) -> None:
    before = still_open.kinds()
    answer = still_open.organiser("archive", tmp_path / "a.zip", now=LAST)
    assert answer.code == 1
    assert "closes the board for good" in answer.err
    assert still_open.kinds() == before
    assert not (tmp_path / "a.zip").exists()


def test_runs_are_opened_by_the_word_of_their_team(still_open: Town, tmp_path: Path) -> None:
    answer = still_open.organiser("archive", tmp_path / "a.zip", "--yes", "--json", now=LAST)
    assert (answer.code, answer.json["runs"]) == (0, [BASELINE, ONE])
    assert still_open.events()[-1]["public"] == {"open_runs": [BASELINE, ONE]}
    assert audited(still_open, tmp_path / "a.zip").code == 0


def test_consent_is_withdrawn_until_the_closing(still_open: Town, tmp_path: Path) -> None:
    still_open.fill(ONE, open_runs=False)
    assert still_open.participant("amend", ONE, now=LAST).code == 0
    still_open.take_in(now=LAST)
    vouched = ("--agreed", ONE, "--why", "they said so at lunch")
    answer = still_open.organiser("archive", tmp_path / "a.zip", *vouched, "--yes", now=LAST)
    assert answer.code == 2
    assert "the team's own word" in answer.err
    assert "closed-board" not in still_open.kinds()
    answer = still_open.organiser("archive", tmp_path / "a.zip", "--yes", "--json", now=LAST)
    assert (answer.code, answer.json["runs"]) == (0, [BASELINE])
    assert not [name for name in read_files(tmp_path / "a.zip") if ONE in name and "runs/" in name]


def test_an_organiser_vouches_in_public_and_with_a_reason(ended: Ended, tmp_path: Path) -> None:
    closing = ended.town.events()[-1]["public"]
    hidden = ended.ids["hidden"]
    assert (closing["agreed"], closing["why"]) == ([hidden], "their letter of 1 December")
    assert closing["open_runs"] == sorted([BASELINE, ONE, hidden])
    silent = ended.town.organiser("archive", tmp_path / "b.zip", "--agreed", ONE, now=LAST)
    assert silent.code == 2
    assert "say how you know" in silent.err
    nobody = ended.town.organiser("archive", tmp_path / "b.zip", "--why", "a letter", now=LAST)
    assert nobody.code == 2
    assert "name it with --agreed" in nobody.err


def test_the_opened_runs_stay_those_of_the_closing(still_open: Town, tmp_path: Path) -> None:
    assert still_open.organiser("archive", tmp_path / "a.zip", "--yes", now=LAST).code == 0
    name = next(row["id"] for row in still_open.rows() if "anon" in row["id"])
    vouched = ("--agreed", name, "--why", "a later letter")
    changed = still_open.organiser("archive", tmp_path / "b.zip", *vouched, now=LAST)
    assert changed.code == 2
    assert "named when the board was closed" in changed.err
    assert not (tmp_path / "b.zip").exists()


def test_a_board_that_never_opens_runs(still_open: Town, tmp_path: Path) -> None:
    rules = still_open.board / "board.toml"
    rules.write_text(rules.read_text().replace('runs = "with-consent"', 'runs = "never"'))
    assert still_open.organiser("rebuild", now=LAST).code == 0
    vouched = ("--agreed", ONE, "--why", "a letter")
    answer = still_open.organiser("archive", tmp_path / "a.zip", *vouched, "--yes", now=LAST)
    assert answer.code == 2
    assert 'archive.runs = "never"' in answer.err
    answer = still_open.organiser("archive", tmp_path / "a.zip", "--yes", "--json", now=LAST)
    assert (answer.code, answer.json["runs"]) == (0, [])
    assert audited(still_open, tmp_path / "a.zip").json["faults"] == []


def test_a_board_that_opens_all_runs_tells_it_before(tmp_path: Path) -> None:
    town = found_town(tmp_path)
    rules = town.board / "board.toml"
    rules.write_text(rules.read_text().replace('runs = "with-consent"', 'runs = "always"'))
    assert town.organiser("rebuild", now=DAY).code == 0
    town.push()
    town.pull()
    name = town.draft("one", now=DAY)
    for said in (None, False):
        town.fill(name, open_runs=said)
        answer = town.participant("submit", name, now=DAY)
        assert answer.code == 1
        assert "this board opens the runs of every entry at its end" in answer.out
    town.fill(name, open_runs=True)
    assert town.participant("submit", name, now=DAY).code == 0
    town.take_in(now=DAY)
    assert town.publish(name, now=DAY).code == 0
    town.push()
    town.fill(name, open_runs=False)
    at_once = town.participant("amend", name, now=LAST)
    assert at_once.code == 1
    assert "this board opens the runs of every entry" in at_once.err
    town.send_unchecked(name, now=LAST)  # by other tools: the organisers refuse it all the same
    refused = town.organiser("inbox", now=LAST)
    assert "this board opens the runs of every entry" in refused.out + refused.err
    assert town.kinds()[-1] == "published"
    closed = town.organiser("archive", tmp_path / "a.zip", "--yes", "--json", now=LAST)
    assert (closed.code, closed.json["runs"]) == (0, [name])


def test_an_organiser_who_opens_runs_against_the_team_s_word(
    ended: Ended, still_open: Town, tmp_path: Path
) -> None:
    """By a changed program, with a sound chain: whoever audits the archive is told."""
    still_open.fill(ONE, open_runs=False)
    assert still_open.participant("amend", ONE, now=LAST).code == 0
    still_open.take_in(now=LAST)
    assert still_open.organiser("archive", tmp_path / "a.zip", "--yes", now=LAST).code == 0
    runs = {k: v for k, v in read_files(ended.archive).items() if k.startswith(f"runs/{ONE}/")}

    def opened(files: Files) -> None:
        *before, last = parse_log(files["log.jsonl"], path="log.jsonl")
        draft = Draft(
            kind="closed-board", by="x", submission=None, public={"open_runs": [ONE]}, sealed={}
        )
        closing = link(draft, before[-1], at=last.time, new_salt=lambda: "ab" * 16)
        files["log.jsonl"] = b"".join(map(format_entry, (*before, closing)))
        files |= runs
        for name in [name for name in files if name.startswith(f"runs/{BASELINE}/")]:
            del files[name]

    found = audit_archive(forge(tmp_path / "a.zip", opened, tmp_path / "x.zip"))
    assert found.faults == (f'the runs of "{ONE}" are opened, though nobody agreed to that',)


def test_only_published_entries_can_have_agreed(still_open: Town, tmp_path: Path) -> None:
    for name, told in (("20261102-refused", "rejected"), ("20261102-nobody", "unknown")):
        arguments = ("--agreed", name, "--why", "a letter", "--yes")
        answer = still_open.organiser("archive", tmp_path / "a.zip", *arguments, now=LAST)
        assert answer.code == 2
        assert told in answer.err
    assert "closed-board" not in still_open.kinds()


def test_what_waits_is_decided_first(still_open: Town, tmp_path: Path) -> None:
    waiting = still_open.send("five", now=LAST, seed=5)
    still_open.take_in(now=LAST)
    answer = still_open.organiser("archive", tmp_path / "a.zip", "--yes", now=LAST)
    assert answer.code == 2
    assert f"{waiting} waits for a decision" in answer.err
    assert "closed-board" not in still_open.kinds()


def test_an_unsound_board_is_not_closed(still_open: Town, tmp_path: Path) -> None:
    labels = still_open.vault / "labels" / "eval.qrels"
    labels.write_text(labels.read_text().replace("deval3 1", "other 1"))
    answer = still_open.organiser("archive", tmp_path / "a.zip", "--yes", now=LAST)
    assert answer.code == 2
    assert "not sound" in answer.err
    assert "closed-board" not in still_open.kinds()


def test_labels_that_were_mended_are_told(still_open: Town, tmp_path: Path) -> None:
    labels = still_open.vault / "labels" / "eval.qrels"
    labels.write_text(labels.read_text().replace("deval3 1", "n3-0 1"))
    answer = still_open.organiser("correct", ONE, "--why", "a wrong document", now=LAST)
    assert answer.code == 0, answer
    assert still_open.organiser("archive", tmp_path / "a.zip", "--yes", now=LAST).code == 0
    found = audited(still_open, tmp_path / "a.zip")
    assert (found.code, found.json["faults"]) == (0, [])
    notes = "\n".join(found.json["notes"])
    assert 'labels were changed on 02 Dec 2026, for: "a wrong document"' in notes
    assert "cannot be scored again" not in notes
    before = [name for name in read_files(tmp_path / "a.zip") if name.startswith("labels/earlier/")]
    assert len(before) == 1


def test_without_the_labels_of_its_day_a_score_is_not_believed(
    still_open: Town, tmp_path: Path
) -> None:
    labels = still_open.vault / "labels" / "eval.qrels"
    kept = still_open.vault / "sealed" / hashlib.sha256(labels.read_bytes()).hexdigest()
    labels.write_text(labels.read_text().replace("deval3 1", "n3-0 1"))
    assert still_open.organiser("correct", ONE, "--why", "a wrong document", now=LAST).code == 0
    kept.unlink()
    assert "eval.qrels of before" in still_open.audit()["notes"][0]
    refused = still_open.organiser("archive", tmp_path / "a.zip", "--yes", now=LAST)
    assert (refused.code, (tmp_path / "a.zip").exists()) == (2, False)
    assert f'the labels that "{BASELINE}" was scored with are not here' in refused.err
    assert ONE not in refused.err
    assert "closed-board" not in still_open.kinds()
    # Scored anew, it is told by labels that are here.
    assert still_open.organiser("correct", BASELINE, "--why", "the same", now=LAST).code == 0
    hidden = next(row["id"] for row in still_open.rows() if "anon" in row["id"])
    assert still_open.organiser("correct", hidden, "--why", "the same", now=LAST).code == 0
    assert still_open.organiser("archive", tmp_path / "b.zip", "--yes", now=LAST).code == 0
    assert audited(still_open, tmp_path / "b.zip").json["faults"] == []


def test_the_readme_s_program_checks_the_labels(ended: Ended, tmp_path: Path) -> None:
    files = read_files(ended.archive)
    program = re.findall(r"```python\n(.*?)```", files["README.md"].decode(), re.DOTALL)[0]

    def verify(labels: bytes) -> str:
        for name in ("log.jsonl", "labels/eval.qrels"):
            (tmp_path / name).parent.mkdir(exist_ok=True)
            (tmp_path / name).write_bytes(files[name])
        (tmp_path / "labels/eval.qrels").write_bytes(labels)
        command = [sys.executable, "-W", "ignore", "-c", program]
        return subprocess.run(
            command, cwd=tmp_path, capture_output=True, text=True, check=True
        ).stdout

    assert verify(files["labels/eval.qrels"]) == "eval True\n"
    assert verify(files["labels/eval.qrels"] + b"\n") == "eval False\n"


def replaced(name: str, old: str, new: str) -> Callable[[Files], object]:
    def change(files: Files) -> None:
        files[name] = files[name].replace(old.encode(), new.encode(), 1)

    return change


def reordered(order: Callable[[list[bytes]], list[bytes]]) -> Callable[[Files], object]:
    def change(files: Files) -> None:
        rows = files["log.jsonl"].splitlines(keepends=True)
        files["log.jsonl"] = b"".join(order(rows))

    return change


def lifted(files: Files) -> None:
    """Every score by query raised, the mean with it."""
    name = f"scores/{ONE}.json"
    scores = json.loads(files[name])
    for view in scores["views"].values():
        view["per_query"] = dict.fromkeys(view["per_query"], 1.0)
        view["mean"] = 1.0
    files[name] = json.dumps(scores).encode()


def swapped(files: Files) -> None:
    """The mean stays: two queries change their scores."""
    name = f"scores/{ONE}.json"
    scores = json.loads(files[name])
    view = scores["views"]["eval"]
    low, high = sorted(view["per_query"], key=lambda query: view["per_query"][query])[::29]
    view["per_query"][low], view["per_query"][high] = 1.0, view["per_query"][low]
    files[name] = json.dumps(scores).encode()


def without_a_query(files: Files) -> None:
    """A query on which the system failed is left out, and the number of queries lowered."""
    name = f"scores/{ONE}.json"
    scores = json.loads(files[name])
    view = scores["views"]["eval"]
    del view["per_query"]["eval3"]
    view["n"] -= 1
    view["mean"] = math.fsum(view["per_query"].values()) / view["n"]
    files[name] = json.dumps(scores).encode()


def other_labels_claimed(files: Files) -> None:
    """Scores that say they were made with labels that nobody knows."""
    name = f"scores/{ONE}.json"
    scores = json.loads(files[name])
    scores["held_out"]["eval"] = "0" * 64
    files[name] = json.dumps(scores).encode()


def other_labels_claimed_as_before(files: Files) -> None:
    """The same in the field that older archives have."""
    name = f"scores/{ONE}.json"
    scores = json.loads(files[name])
    scores["labels"]["eval"] = "0" * 64
    files[name] = json.dumps(scores).encode()


def evidence_of(files: Files) -> str:
    """The file of what one score was told for."""
    names = [name for name in files if name.startswith("evidence/")]
    named = {name: json.loads(files[name]) for name in names}
    return next(n for n, e in named.items() if (e["id"], e["view"]) == (ONE, "eval"))


def infinite(files: Files) -> None:
    name = f"scores/{ONE}.json"
    files[name] = re.sub(rb'"mean":0\.\d+', b'"mean":1e999', files[name])


TAMPERED: Mapping[str, tuple[Callable[[Files], object], str]] = {
    "a changed label": (
        replaced("labels/eval.qrels", "deval1 1", "n1-0 1"),
        "labels/eval.qrels is not what the organisers committed to",
    ),
    "a label added": (
        lambda files: files.update(
            {"labels/eval.qrels": files["labels/eval.qrels"] + b"x 0 y 1\n"}
        ),
        "not what the organisers committed to",
    ),
    "the labels left out": (lambda files: files.pop("labels/eval.qrels"), "is missing"),
    "other digests opened": (
        replaced(
            "log.jsonl",
            '"opened":{"labels":{"value":{"eval":"',
            '"opened":{"labels":{"value":{"eval":"0',
        ),
        "sealed digest",
    ),
    "the commitment not opened": (
        lambda files: files.update(
            {
                "log.jsonl": re.sub(
                    rb'"opened":\{"labels".*?\}\}\}', b'"opened":{}}', files["log.jsonl"]
                )
            }
        ),
        "are not opened",
    ),
    "a removed event": (reordered(lambda rows: [*rows[:3], *rows[4:]]), "chain is broken"),
    "the last events cut off": (reordered(lambda rows: rows[:-1]), "was closed"),
    "a reordered log": (
        reordered(lambda rows: [*rows[:2], rows[3], rows[2], *rows[4:]]),
        "chain is broken",
    ),
    "a changed released score": (replaced("log.jsonl", '"eval":"0.', '"eval":"0.9'), "hash"),
    "an empty log": (lambda files: files.update({"log.jsonl": b""}), "empty"),
    "no log": (lambda files: files.update({"log.jsonl": b"\n"}), "not an event"),
    "raised scores": (lifted, f'released score of "{ONE}" does not follow'),
    "scores of two queries swapped": (swapped, "not told for the scores by query that are here"),
    "what a score was told for left out": (
        lambda files: files.pop(evidence_of(files)),
        "is missing, or not what the log names",
    ),
    "what a score was told for changed": (
        lambda files: files.update({evidence_of(files): b"{}"}),
        "is missing, or not what the log names",
    ),
    "earlier labels that never were": (
        lambda files: files.update({f"labels/earlier/{'0' * 64}": b"eval1 0 x 1\n"}),
        "is nothing that the organisers committed to",
    ),
    "labels claimed as older archives do": (other_labels_claimed_as_before, "nobody committed to"),
    "a query left out": (without_a_query, "not those of its queries: eval"),
    "labels claimed that nobody committed to": (
        other_labels_claimed,
        "was scored with are not here",
    ),
    "an infinite mean": (infinite, "damaged"),
    "scores left out": (lambda files: files.pop(f"scores/{ONE}.json"), "are missing"),
    "scores of nobody": (
        lambda files: files.update({"scores/20261102-nobody.json": b"{}"}),
        "belongs to nothing",
    ),
    "another run": (
        replaced(f"runs/{ONE}/eval.run", "deval1\t", "dother\t"),
        f'"{ONE}" give other scores',
    ),
    "another run of a baseline": (
        replaced(f"runs/{BASELINE}/eval", "deval1\t", "dother\t"),
        "is not the run that was logged",
    ),
    "a run left out": (
        lambda files: files.pop(f"runs/{ONE}/eval.run"),
        "not those that are opened",
    ),
    "a run that is none": (
        lambda files: files.update({f"runs/{ONE}/eval.run": b"\x00\xff" * 9}),
        f'"{ONE}" give other scores',
    ),
    "queries left out": (lambda files: files.pop("queries/eval.tsv"), "queries/eval.tsv"),
    "open labels that are none": (
        lambda files: files.update({"qrels/dev.qrels": b"one two\n"}),
        "qrels/dev.qrels",
    ),
}


@pytest.mark.parametrize("name", TAMPERED)
def test_a_tampered_archive(ended: Ended, tmp_path: Path, name: str) -> None:
    change, told = TAMPERED[name]
    answer = audited(ended.town, forge(ended.archive, change, tmp_path / "x.zip"), at=tmp_path)
    assert answer.code == 1, answer
    assert not answer.json["ok"]
    assert told in "\n".join(answer.json["faults"])
    assert str(tmp_path) not in answer.out


def test_a_manifest_that_does_not_fit(ended: Ended, tmp_path: Path) -> None:
    for name, change, told in (
        ("bytes", {"README.md": b"another"}, "is not the file"),
        ("more", {"extra.txt": b""}, "listed or here"),
        ("list", {"MANIFEST.json": b"[]"}, "not the list"),
        ("deep", {"MANIFEST.json": b"[" * 100_000}, "not the list"),
    ):
        file = tmp_path / f"{name}.zip"
        with zipfile.ZipFile(file, "w") as target:
            for member, data in {**read_files(ended.archive), **change}.items():
                target.writestr(member, data)
        answer = audited(ended.town, file, at=tmp_path)
        assert (answer.code, len(answer.json["faults"])) == (1, 1)
        assert told in answer.json["faults"][0]


def test_a_log_made_anew_is_told_by_the_board_s_own(ended: Ended, tmp_path: Path) -> None:
    """A forger who makes the whole chain again with better scores is caught by the public log."""

    def make_anew(files: Files) -> None:
        entries = Vault(ended.town.vault).entries()
        chain: list[Entry] = []
        for entry in entries:
            public = json.loads(json.dumps(entry.event.public).replace('"0.', '"0.9'))
            draft = as_draft(entry, public)
            last = chain[-1] if chain else None
            chain.append(link(draft, last, at=entry.time, new_salt=lambda: "ab" * 16))
        files["log.jsonl"] = b"".join(map(format_entry, chain))

    forged = forge(ended.archive, make_anew, tmp_path / "x.zip")
    answer = audited(ended.town, forged)
    assert answer.code == 1
    assert (
        answer.json["faults"][0]
        == "this is the archive of another board than the one that you stand in"
    )


def as_draft(entry: Entry, public: Mapping[str, object]) -> Draft:
    sealed = {name: opening.value for name, opening in entry.opened.items()}
    event = entry.event
    return Draft(
        kind=event.kind, by=event.by, submission=event.submission, public=public, sealed=sealed
    )


def test_a_board_whose_own_log_is_damaged_says_nothing_for_an_archive(
    ended: Ended, tmp_path: Path
) -> None:
    town = copied(ended.town.root, tmp_path)
    git(town.board, "remote", "remove", "origin")
    file = town.board / "log.jsonl"
    file.write_bytes(file.read_bytes().replace(b"received", b"reviewed", 1))
    answer = audited(town, ended.archive)
    assert (answer.code, answer.out) == (2, "")
    assert "log.jsonl" in answer.err


def test_a_submission_after_the_closing_is_told(ended: Ended, tmp_path: Path) -> None:
    def go_on(files: Files) -> None:
        last = Vault(ended.town.vault).entries()[-1]
        public = {"files": {}, "fingerprint": "f", "source": "a folder"}
        draft = Draft(kind="received", by="x", submission="20261203-late", public=public, sealed={})
        late = link(draft, last, at=last.time, new_salt=lambda: "ab" * 16)
        files["log.jsonl"] += format_entry(late)

    forged = forge(ended.archive, go_on, tmp_path / "x.zip")
    found = audit_archive(forged)
    assert "('received', line 14 of the log) came after the board was closed" in found.faults[0]


def test_events_that_heldout_never_writes(ended: Ended, tmp_path: Path) -> None:
    """A sound chain of nonsense: told in words, whatever it holds."""
    first = Vault(ended.town.vault).entries()[0]
    for kind, submission, public in (
        ("received", "../../etc/passwd", {}),
        ("published", "20261102-x", {"scores": 7}),
        ("closed-board", "20261102-x", {}),
        ("rekeyed", None, {"sealed_again": [1], "board.toml": "x = "}),
        ("changed-rules", None, {"board.toml": None}),
        ("corrected", "20261102-x", {"final": "no"}),
        ("imported", "20261102-x", {"day": "never"}),
    ):

        def nonsense(files: Files, kind: str = kind, name: str | None = submission) -> None:
            draft = Draft(kind=kind, by="x", submission=name, public=public, sealed={})  # noqa: B023
            entry = link(draft, first, at=first.time, new_salt=lambda: "ab" * 16)
            files["log.jsonl"] = format_entry(first) + format_entry(entry)

        answer = audited(
            ended.town, forge(ended.archive, nonsense, tmp_path / "x.zip"), at=tmp_path
        )
        assert (answer.code, answer.json["ok"]) == (1, False), kind


def test_archives_that_are_none(ended: Ended, tmp_path: Path) -> None:
    data = ended.archive.read_bytes()
    for name, content in (
        ("empty", b""),
        ("text", b"not a zip file"),
        ("cut", data[: len(data) // 2]),
        ("bit", bytes([*data[:200], data[200] ^ 1, *data[201:]])),
    ):
        file = tmp_path / name
        file.write_bytes(content)
        answer = audited(ended.town, file, at=tmp_path)
        assert (answer.code, answer.json["ok"]) == (1, False), name
        assert (
            "damaged-archive" in answer.json["faults"][0] or "MANIFEST" in answer.json["faults"][0]
        )


VIEWS = """
[[views]]
name = "reserve"
set = "eval"
measure = "P@5"
public = false

[[views]]
name = "late"
set = "eval"
measure = "nDCG@5"
public = false
final = true

[baselines]"""


def test_private_views_stay_shut_and_final_ones_are_opened(tmp_path: Path) -> None:
    town = found_town(tmp_path)
    rules = town.board / "board.toml"
    text = rules.read_text().replace("[baselines]", VIEWS)
    rules.write_text(text.replace("# closes = 2027-03-31", "closes = 2026-11-30"))
    assert town.organiser("rebuild", now=DAY).code == 0
    town.push()
    town.pull()
    name = town.send("one", now=DAY)
    town.take_in(now=DAY)
    assert town.publish(name, now=DAY).code == 0
    early = town.organiser("archive", tmp_path / "a.zip", "--yes", now="2026-11-30T23:59:59Z")
    assert early.code == 2
    assert "sealed until 2026-11-30 is over" in early.err
    assert town.organiser("archive", tmp_path / "a.zip", "--yes", now=LAST).code == 0
    scores = json.loads(read_files(tmp_path / "a.zip")[f"scores/{name}.json"])
    assert set(scores["views"]) == {"dev", "eval", "late"}
    answer = audited(town, tmp_path / "a.zip")
    assert (answer.code, answer.json["faults"]) == (0, [])

    def lower(files: Files) -> None:
        late = scores["views"]["late"]
        late["per_query"] = dict.fromkeys(late["per_query"], 0.0)
        late["mean"] = 0.0
        files[f"scores/{name}.json"] = json.dumps(scores).encode()

    forged = forge(tmp_path / "a.zip", lower, tmp_path / "x.zip")
    faults = "\n".join(audited(town, forged).json["faults"])
    assert f'score of "{name}" does not follow' in faults


def test_a_changed_bit_is_told_wherever_it_matters(ended: Ended, tmp_path: Path) -> None:
    """All over the file; a date in the zip's own directory may change, no member ever."""
    data, whole = ended.archive.read_bytes(), read_files(ended.archive)
    for place in range(0, len(data), 211):
        file = tmp_path / "x.zip"
        file.write_bytes(data[:place] + bytes([data[place] ^ 4]) + data[place + 1 :])
        if not audit_archive(file).faults:
            assert read_files(file) == whole, place


def test_killed_on_its_way_the_next_call_goes_on(tmp_path: Path) -> None:
    town = found_town(tmp_path)
    add_baseline(town)
    found = kill_at(town, ["archive", f"{town.root}/a.zip", "--yes"], every=9)
    assert found["faults"] == {}
    assert found["points"] >= 20


def test_only_an_archive_by_itself_is_audited(ended: Ended) -> None:
    answer = ended.town.participant("audit", ended.archive, "--receipt", ended.archive, now=LAST)
    assert answer.code == 2
