"""Two seasons that share a query set and rank by a part of it each, from the log to the archive."""

import random
from datetime import UTC, datetime
from pathlib import Path
from statistics import fmean

import pytest
from scored_board import QUERIES, ScoredBoard, make_board, query_ids

from heldout.board.audit.archive import close_board, write_archive
from heldout.board.audit.archive_audit import audit_archive
from heldout.board.audit.audit import audit_board
from heldout.board.organiser.rebuild import bring_up_to_date
from heldout.board.rules.release import ReleaseRule, split_queries
from heldout.board.scores import sets
from heldout.board.standings.standings import list_seasons

BASE, OTHER, ONE, TWO = "20261101-base", "20261101-other", "20261102-one", "20270102-two"
RULE = ReleaseRule(rule="clear", seasons=2, feedback=0)
VIEW = '[[views]]\nname = "eval-2"\nset = "eval"\nmeasure = "nDCG@10"\npart = 2\n'
SEASONS = """
[[seasons]]
name = "s1"
view = "eval-1"
opens = 2026-11-01
closes = 2026-12-31

[[seasons]]
name = "s2"
view = "eval-2"
opens = 2027-01-01
closes = 2027-02-28
"""
_RANDOM = random.Random(7)  # noqa: S311 - made-up scores, not keys
LOW = [_RANDOM.random() / 4 for _ in range(QUERIES)]
HIGH = [v + 0.3 + 0.02 * (n % 2) for n, v in enumerate(LOW)]


@pytest.fixture
def board(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ScoredBoard:
    """Two seasons over half of the set each, and a baseline of the first."""
    monkeypatch.setattr(sets, "_FEWEST_OF_SEASON", QUERIES // 2)
    made = make_board(tmp_path / "town").in_memory(tmp_path)
    made.rules(
        ('rule = "rounded"', 'rule = "clear"\nseasons = 2\nfeedback = 0'),
        ("# closes = 2027-03-31", "closes = 2027-02-28"),
        ('primary = "eval"', 'primary = "eval-1"'),
        ('name = "eval"\n', 'name = "eval-1"\npart = 1\n'),
        more=VIEW + SEASONS,
    )
    made.baseline(BASE, LOW)
    return made


def mean(board: ScoredBoard, values: list[float], part: int) -> float:
    queries = split_queries(board.vault.set_key("eval"), query_ids("eval"), RULE)[part]
    assert len(queries) == QUERIES // 2
    return fmean(v for q, v in zip(query_ids("eval"), values, strict=True) if q in queries)


def enter_both(board: ScoredBoard) -> None:
    board.enter(ONE, HIGH)
    board.now = datetime(2027, 1, 2, 9, tzinfo=UTC)
    board.enter(TWO, HIGH, team="Other Team")


def faults(board: ScoredBoard) -> list[str]:
    bring_up_to_date(board.tick())
    found = audit_board(board.session.repository, board.session.vault).faults
    return [fault for fault in found if not fault.startswith("submissions/")]


def test_each_season_ranks_its_entries_by_its_part_and_begins_with_the_same_baseline(
    board: ScoredBoard,
) -> None:
    enter_both(board)
    known = board.session.history().submissions
    for part in (1, 2):
        assert known[BASE].scores[f"eval-{part}"] == f"{mean(board, LOW, part):.3f}"
    assert {name: known[name].counts.keys() for name in (ONE, TWO)} == {
        ONE: {"dev", "eval-1"},
        TWO: {"dev", "eval-2"},
    }
    assert {known[name].counts[f"eval-{part}"] for part, name in ((1, ONE), (2, TWO))} == {20}
    # What the first season published does not stand in the way of an equal run in the second.
    assert [board.published(name)["bars"] for name in (ONE, TWO)] == [
        {"eval-1": BASE},
        {"eval-2": BASE},
    ]
    spec = board.session.spec()
    seasons = list_seasons(board.vault.entries(), spec, now=board.now)
    assert {one.season.name: [row.id for row in one.standings.rows] for one in seasons} == {
        "s2": [TWO, BASE],
        "s1": [ONE, BASE],
    }
    assert faults(board) == []
    for _ in range(2):  # the page of a baseline in several seasons is of the latest, each time
        page = board.session.repository.files.file(f"leaderboard/entries/{BASE}.html").read_bytes()
        assert known[BASE].scores["eval-2"].encode() in page
        assert b"season part 1" not in page
        bring_up_to_date(board.tick())


def test_scores_of_both_parts_are_made_again_and_opened_at_the_end(
    board: ScoredBoard, tmp_path: Path
) -> None:
    enter_both(board)
    board.relabel()
    lower = [v * 0.9 for v in LOW]
    board.correct(BASE, lower)
    board.correct(ONE, HIGH)
    board.correct(TWO, HIGH)
    known = board.session.history().submissions
    for part in (1, 2):
        assert known[BASE].scores[f"eval-{part}"] == f"{mean(board, lower, part):.3f}"
    assert faults(board) == []
    board.now = datetime(2027, 3, 1, 9, tzinfo=UTC)
    board.rules(('runs = "with-consent"', 'runs = "never"'))  # there are no runs
    bring_up_to_date(board.tick())
    assert close_board(board.tick())
    bring_up_to_date(board.tick())
    write_archive(board.tick(), tmp_path / "kb.zip")
    assert audit_archive(tmp_path / "kb.zip").faults == ()


def test_a_score_on_another_part_is_found_out(
    board: ScoredBoard, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(sets, "split_queries", lambda _, *rest: split_queries(bytes(32), *rest))
        board.baseline(OTHER, HIGH)
    found = faults(board)
    assert len(found) == 2
    for part in (1, 2):
        assert any(f"queries that are not in season part {part}" in fault for fault in found)
