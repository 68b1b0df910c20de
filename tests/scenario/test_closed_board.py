"""A closed board says so wherever a team looks, and none is closed that cannot be opened."""

from pathlib import Path

import pytest
from town import OTHER_TEAM, TEAM, Town, call, copy_of, found_town, git
from trusting import DAY, DECIDED, LAST

from heldout.board.audit import archive
from heldout.ids import digest_bytes

pytestmark = pytest.mark.slow
OLD_BOARD = """\
id,date,,description,team,paper,code,type,MRR@100 (Dev),MRR@100 (Eval),tweet
20200811-a,2020/08/11,,"a system","a team",,,full ranking,0.3,0.2,
"""


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Town:
    """A board without `closes`, with one entry."""
    town = found_town(tmp_path_factory.mktemp("published"))
    town.send("first", now=DAY, team={**TEAM, "open_runs": True})
    town.take_in(now=DAY)
    assert town.publish("20261102-first", now=DECIDED).code == 0
    town.push()
    return town


town = copy_of("published")


def test_who_pulls_a_closed_board_is_told_before_any_work(town: Town) -> None:
    draft = town.draft("second", now=DAY, seed=2, team=OTHER_TEAM)
    assert town.participant("check", draft, now=DAY).code == 0
    archive = town.root / "kb.zip"
    assert town.organiser("archive", archive, "--yes", now=LAST).code == 0
    town.share()
    runs = ("--dev", town.root / "dev.run", "--eval", town.root / "eval.run")
    for command in (
        ("check", draft),
        ("pack", draft),
        ("submit", draft),
        ("draft", "third", *runs),
        ("amend", "20261102-first"),
    ):
        answer = town.participant(*command, now=LAST)
        assert answer.code in (1, 2), command
        assert "board-closed" in answer.err
        assert "a board that was closed for good on 02 Dec 2026" in answer.err
    assert "submission/" not in git(town.forge, "branch").replace("submission/20261102-first", "")
    told = town.participant("status", draft, now=LAST)
    assert told.out.startswith("board  ")
    assert "closed for good on 02 Dec 2026: it takes nothing any more" in told.out
    assert "may submit" not in told.out
    (row,) = town.participant("status", draft, "--json", now=LAST).json["submissions"]
    assert row["next_allowed"] is None


def test_nothing_is_closed_where_a_run_that_has_to_be_opened_is_gone(
    town: Town, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The audit before a closing asks for it too; the rehearsal does not trust in that."""
    monkeypatch.setattr(archive, "check_closable", lambda _desk: None)
    (tar,) = (town.board / "submissions").glob("*.tar.*")
    (town.vault / "sealed" / digest_bytes(tar.read_bytes())).unlink()
    events = town.kinds()
    answer = town.organiser("archive", town.root / "kb.zip", "--yes", now=LAST)
    assert answer.code == 2
    assert "is missing or damaged" in answer.err
    assert town.kinds() == events


def test_the_record_of_an_old_board_is_not_closed(tmp_path: Path) -> None:
    table = tmp_path / "old.csv"
    table.write_text(OLD_BOARD)
    board, vault = tmp_path / "record", tmp_path / "vault"
    told = ("board", "import-msmarco", table, board, "--vault", vault, "--now", DAY)
    assert call(tmp_path, *told).code == 0
    log = (vault / "events.jsonl").read_bytes()
    place = ("--board", board, "--vault", vault, "--now", LAST)
    answer = call(tmp_path, "archive", tmp_path / "kb.zip", "--yes", *place)
    assert (answer.code, answer.out) == (2, "")
    assert "this is the record of an old board" in answer.err
    assert (vault / "events.jsonl").read_bytes() == log
