"""A closed board says so wherever a team looks, and none is closed that cannot be opened."""

from pathlib import Path

from lab import DAY, LAST, NEXT, OTHER_TEAM, TEAM, Lab, Patch, call, git, prepared

from heldout.board.audit import archive
from heldout.ids import digest_bytes

OLD_BOARD = """\
id,date,,description,team,paper,code,type,MRR@100 (Dev),MRR@100 (Eval),tweet
20200811-a,2020/08/11,,"a system","a team",,,full ranking,0.3,0.2,
"""


@prepared
def lab(lab: Lab) -> None:
    """A board without `closes`, with one entry."""
    lab.receive("first", team={**TEAM, "open_runs": True})
    assert lab.publish("20261102-first", now=NEXT).code == 0
    lab.push()


def test_who_pulls_a_closed_board_is_told_before_any_work(lab: Lab) -> None:
    draft = lab.draft("second", seed=2, team=OTHER_TEAM)
    assert lab.participant("check", draft).code == 0
    archive = lab.root / "kb.zip"
    assert lab.organiser("archive", archive, "--yes", now=LAST).code == 0
    lab.share()
    runs = ("--dev", lab.root / "dev.run", "--eval", lab.root / "eval.run")
    for command in (
        ("check", draft),
        ("pack", draft),
        ("submit", draft),
        ("draft", "third", *runs),
        ("amend", "20261102-first"),
    ):
        answer = lab.participant(*command, now=LAST)
        assert answer.code in (1, 2), command
        assert "board-closed" in answer.err
        assert "a board that was closed for good on 02 Dec 2026" in answer.err
    assert "submission/" not in git(lab.forge, "branch").replace("submission/20261102-first", "")
    said = lab.participant("status", draft, now=LAST)
    assert said.out.startswith("board  ")
    assert "closed for good on 02 Dec 2026: it takes nothing any more" in said.out
    assert "may submit" not in said.out
    (row,) = lab.participant("status", draft, "--json", now=LAST).json["submissions"]
    assert row["next_allowed"] is None


def test_nothing_is_closed_where_a_run_that_has_to_be_opened_is_gone(
    lab: Lab, monkeypatch: Patch
) -> None:
    """The audit before a closing asks for it too; the rehearsal does not trust in that."""
    monkeypatch.setattr(archive, "check_closable", lambda _desk: None)
    (tar,) = (lab.board / "submissions").glob("*.tar.*")
    (lab.vault / "sealed" / digest_bytes(tar.read_bytes())).unlink()
    events = lab.kinds()
    lab.organiser("archive", lab.root / "kb.zip", "--yes", now=LAST).refused(
        "is missing or damaged"
    )
    assert lab.kinds() == events


def test_the_record_of_an_old_board_is_not_closed(tmp_path: Path) -> None:
    table = tmp_path / "old.csv"
    table.write_text(OLD_BOARD)
    board, vault = tmp_path / "record", tmp_path / "vault"
    args = ("board", "import-msmarco", table, board, "--vault", vault, "--now", DAY)
    assert call(tmp_path, *args).code == 0
    log = (vault / "events.jsonl").read_bytes()
    place = ("--board", board, "--vault", vault, "--now", LAST)
    call(tmp_path, "archive", tmp_path / "kb.zip", "--yes", *place).refused(
        "this is the record of an old board"
    )
    assert (vault / "events.jsonl").read_bytes() == log
