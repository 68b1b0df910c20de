"""Boards of earlier versions go on as they are: of 0.1.0, and of before, with fewer commitments."""

import re
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from town import OTHER_TEAM, Town, found_town, git
from trusting import DAY, LAST, ONE, add_baseline, read_files

from heldout.board.audit import archive, closing
from heldout.board.scores import rescoring, session
from heldout.board.scores.commitments import FIRST_TIME
from heldout.board.scores.session import Session
from heldout.board.store.vault import Vault

pytestmark = pytest.mark.slow
TWO = "20261102-two"
OUT = "eval0\neval1\n"


OLD = Path(__file__).with_name("old_board") / "board-of-0.1.0.zip"


def unpack_old(folder: Path) -> Town:
    """The board of heldout 0.1.0, as its PRODUCER says, with a repository of its own."""
    town = Town(folder / "old")
    with zipfile.ZipFile(OLD) as archive:
        archive.extractall(town.root)
    town.vault.chmod(0o700)
    git(town.board, "init", "-q", "-b", "main")
    for told in (("user.name", "Someone"), ("user.email", "someone@example.org")):
        git(town.board, "config", *told)
    assert town.organiser("rebuild", now=LAST).code == 0
    return town


def test_a_board_of_0_1_0_is_sound_and_goes_on(tmp_path: Path) -> None:
    town = unpack_old(tmp_path)
    assert town.audit()["faults"] == []
    assert {event["schema"] for event in town.events()} == {1}
    (waiting,) = re.findall(r"2026\d+-waits", (town.vault / "events.jsonl").read_text())[:1]
    told = ("reject", waiting, "--why", "not a team")
    assert town.organiser(*told, now=LAST).code == 0
    assert [event["schema"] for event in town.events()][-2:] == [1, 2]
    assert town.audit()["faults"] == []


NO_DIGESTS = "the board's queries, public labels and candidates: the log is of before"


def test_a_board_of_0_1_0_gets_digests_of_its_public_files_with_its_next_rules(
    tmp_path: Path,
) -> None:
    """Until then an audit says that nothing watches these files, and all goes on as before."""
    town = unpack_old(tmp_path)
    file = town.board / "queries" / "eval.tsv"
    right = file.read_bytes()

    def unchecked() -> bool:
        answer = town.organiser("audit", "--json", now=LAST)
        assert answer.code == 0, answer
        return any(told.startswith(NO_DIGESTS) for told in answer.json["unchecked"])

    file.write_bytes(right.replace(b"thing", b"matter"))
    assert file.read_bytes() != right
    assert town.organiser("rebuild", now=LAST, accepts=False).code == 0
    assert unchecked()
    file.write_bytes(right)
    with (town.board / "board.toml").open("a") as rules:
        rules.write("# a comment\n")
    assert town.organiser("rebuild", now=LAST).code == 0
    assert "queries/eval.tsv" in town.events()[-1]["public"]["files"]
    assert not unchecked()
    file.write_bytes(right.replace(b"thing", b"matter"))
    assert town.organiser("rebuild", now=LAST, accepts=False).code == 1
    assert not town.audit()["ok"]


def test_a_change_of_keys_brings_the_digests_too(tmp_path: Path) -> None:
    town = unpack_old(tmp_path)
    assert town.organiser("board", "rekey", "--why", "a theft", "--yes", now=LAST).code == 0
    event = next(event for event in town.events() if event["kind"] == "rekeyed")
    expected = {"qrels/dev.qrels", "queries/dev.tsv", "queries/eval.tsv"}
    assert set(event["public"]["files"]) == expected
    assert town.audit()["faults"] == []


@pytest.fixture
def town(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Town:
    """Founded, scored and published as an earlier heldout did; with a mask that is in no digest."""
    town = found_town(tmp_path)
    honest, labels = Session.log, Vault.held_out

    def log(here: Session, kind: str, submission: str | None, **fields: Any) -> Any:
        sealed: Mapping[str, Any] = fields.pop("sealed", None) or {}
        kept = {name: v for name, v in sealed.items() if name not in ("evidence", "compared")}
        return honest(here, kind, submission, sealed=kept, **fields)

    def held_out(vault: Vault, stems: Any) -> dict[str, str]:
        return {name: digest for name, digest in labels(vault, stems).items() if "." not in name}

    for file in (town.vault / "sealed").iterdir():
        file.unlink()
    (town.vault / "labels" / "eval.exclude").write_text(OUT)
    with monkeypatch.context() as before:
        before.setattr(Session, "log", log)
        before.setattr(Vault, "held_out", held_out)
        before.setattr(rescoring, "held_out_of", lambda _sets: {})
        before.setattr(session, "store_versions", lambda _vault, _files: None)
        add_baseline(town, seed=3)
        town.send("one", now=DAY, seed=1)
        town.send("two", now=DAY, seed=2, team=OTHER_TEAM)
        town.take_in(now=DAY)
        assert town.publish(ONE, now=DAY).code == 0
    assert "changed-rules" not in town.kinds()
    return town


def test_it_commits_to_what_is_there_and_goes_on(town: Town) -> None:
    found = town.audit()
    assert found["ok"]
    assert f'"{ONE}": an early version did not store the evidence of its scores' in found["notes"]
    assert town.publish(TWO, now=LAST).code == 0
    assert town.kinds().index("changed-rules") < len(town.kinds()) - 1
    event = next(event for event in town.events() if event["kind"] == "changed-rules")
    assert event["public"]["why"] == FIRST_TIME
    assert town.audit()["ok"]


def test_its_archive_is_sound_and_says_what_was_not_kept(
    town: Town, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert town.publish(TWO, now=LAST).code == 0
    for module in (archive, closing):
        monkeypatch.setattr(module, "check_closable", lambda _desk: None)
    assert town.organiser("archive", tmp_path / "a.zip", "--yes", now=LAST).code == 0
    answer = town.participant("audit", tmp_path / "a.zip", "--json", now=LAST, clone=tmp_path)
    assert answer.json["faults"] == []
    notes = "\n".join(answer.json["notes"])
    assert f'"{ONE}": an early version did not store the evidence of its scores' in notes
    assert f'"{TWO}": what' not in notes
    assert read_files(tmp_path / "a.zip")["labels/eval.exclude"].decode() == OUT


def test_labels_that_are_mended_after_that_keep_their_earlier_version(town: Town) -> None:
    assert town.organiser("inbox", now=LAST).code == 0
    assert town.organiser("rebuild", now=LAST).code == 0
    file = town.vault / "labels" / "eval.qrels"
    before = file.read_bytes()
    file.write_bytes(before.replace(b"deval3 1", b"n3-0 1"))
    assert town.organiser("correct", ONE, "--why", "a wrong document", now=LAST).code == 0
    kept = {path.read_bytes() for path in (town.vault / "sealed").iterdir()}
    assert {before, file.read_bytes(), OUT.encode()} <= kept
    assert town.audit()["ok"]
