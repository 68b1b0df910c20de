"""188 real runs go the whole way, and the published page has the official figures."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import outcome
import pytest
from journey import Board, decide, look_at, open_board, play_all, send, take_in
from quirks import Quirks
from real_collections import COLLECTIONS, statistics
from tables import differences_table, find_all_quirks, play_colliding, quirks_table, scores_table

from heldout.board.audit.audit import audit_board
from heldout.board.organiser.decide import Decision, reject
from heldout.board.scores.stored import read_scores
from heldout.ids import digest_bytes

pytestmark = [pytest.mark.real, pytest.mark.slow]

DOCS = Path(__file__).parent.parent.parent / "docs" / "results" / "real-runs.md"
RUNS = {"trec-covid-round1": 143, "trec-covid-round1-full": 24, "trec-dl-2021-passage": 45}
TEAMS = {"trec-covid-round1": 56, "trec-covid-round1-full": 23, "trec-dl-2021-passage": 11}
COLLIDING = {"BERT", "ielab-uniCOIL", "pass_full_1000", "pass_full_1000e"}

Boards = Mapping[str, Board]
Quirky = Mapping[str, "tuple[Quirks, ...]"]

every_board = pytest.mark.parametrize("name", COLLECTIONS)


@pytest.fixture(scope="module")
def root(data: Callable[[str], Path]) -> Path:
    data("trec-dl-2021-passage")
    return data("trec-covid-round1").parent


@pytest.fixture(scope="module")
def boards(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Boards:
    played = play_all(root, tmp_path_factory.mktemp("boards"))
    return {name: board for name, (board, _) in played.items()}


@pytest.fixture(scope="module")
def quirks(root: Path) -> Quirky:
    return {name: tuple(runs) for name, runs in find_all_quirks(root).items()}


@pytest.fixture(scope="module")
def colliding(
    root: Path, quirks: Quirky, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Board, ...]:
    return tuple(play_colliding(root, tmp_path_factory.mktemp("colliding"), quirks))


@every_board
def test_every_published_figure_is_the_official_one_to_the_last_digit(
    boards: Boards, name: str
) -> None:
    figures = list(outcome.compare(boards[name]))
    assert len(figures) == RUNS[name] * len(COLLECTIONS[name].views)
    assert [figure for figure in figures if not figure.is_equal] == []
    assert max(figure.difference for figure in figures) <= outcome.HALF_A_DIGIT


@every_board
def test_the_log_says_what_the_page_says(boards: Boards, name: str) -> None:
    published = outcome.logged(boards[name], "published")
    rows = {row["id"]: row["scores"] for row in outcome.page_rows(boards[name])}
    assert {i: event["public"]["scores"] for i, event in published.items()} == rows
    queries = {n for event in published.values() for n in event["public"]["queries"].values()}
    assert queries == {53 if "2021" in name else 30}


@every_board
def test_rows_stand_in_the_official_order_ties_to_the_earlier(boards: Boards, name: str) -> None:
    rows = outcome.page_rows(boards[name])
    assert [row["id"] for row in rows] == outcome.expected_order(boards[name])
    assert [row["rank"] for row in rows] == list(range(1, RUNS[name] + 1))
    entries = boards[name].ids()
    assert {(row["id"], row["team"], row["type"]) for row in rows} == {
        (i, entry.team, entry.type) for i, entry in entries.items()
    }
    assert len({row["team"] for row in rows}) == TEAMS[name]


@every_board
def test_trophies_follow_the_calendar(boards: Boards, name: str) -> None:
    expected = outcome.expected_trophies(boards[name])
    assert len(expected) >= 8
    shown = {row["id"][9:] for row in outcome.page_rows(boards[name]) if row["trophy"]}
    assert shown == expected


@every_board
def test_no_window_holds_more_than_the_quota(boards: Boards, name: str) -> None:
    assert len(outcome.logged(boards[name], "received")) == RUNS[name]
    assert outcome.crowded_windows(boards[name]) == []


@every_board
def test_the_audit_is_sound(boards: Boards, name: str) -> None:
    board = boards[name]
    found = audit_board(board.repository, board.vault_root)
    assert (found.faults, found.notes) == ((), ())
    opened_and_edited = 2
    assert found.events == opened_and_edited + 3 * RUNS[name]  # received, reviewed, published


@every_board
def test_sealed_files_are_those_that_were_sent(boards: Boards, name: str) -> None:
    board = boards[name]
    received = outcome.logged(board, "received")
    for submission, event in received.items():
        files = event["public"]["files"]
        assert len(files) == 3, submission
        for file, digest in files.items():
            sent = board.clone.packed_file(file).read_bytes()
            assert digest_bytes(sent) == digest
            assert (board.vault_root / "sealed" / digest).read_bytes() == sent
            assert (board.repository.root / "submissions" / file).read_bytes() == sent


@pytest.mark.parametrize("name", ["trec-covid-round1", "trec-dl-2021-passage"])
def test_reviews_tell_the_quirks(boards: Boards, quirks: Quirky, root: Path, name: str) -> None:
    """What a review kept is what an own reading finds, and what was counted by other means."""
    session = boards[name].session(datetime(2028, 1, 1, tzinfo=UTC))
    ids = {entry.run: i for i, entry in boards[name].ids().items()}
    rows: Any = statistics(COLLECTIONS[name], root)
    assert len(quirks[name]) == RUNS[name]
    for run in quirks[name]:
        scores: Any = read_scores(session.vault, ids[run.entry.run])
        report, facts, row = scores.runs["eval"], run.single, rows[run.entry.run]
        assert (report.queries, report.documents) == (facts.queries, facts.documents)
        assert report.queries_tied == facts.queries_tied
        assert report.queries_displaced == facts.queries_displaced_top
        assert report.repeated_ranks == facts.repeated_ranks
        assert report.first_ranks == {str(rank): n for rank, n in facts.first_ranks.items()}
        assert str(facts.queries) == row["topics"]
        assert str(run.double.tied_top) == row["tied_scores_in_top10"]
        zero = "0" in row["first_rank_values"].split("/")
        assert (0 in facts.first_ranks) == zero == ("rank-zero" in report.counts)


def test_four_runs_differ_under_float64(
    boards: Boards, colliding: tuple[Board, ...], quirks: Quirky
) -> None:
    """Where no scores collide both orders are one; the others are published under both."""
    alike = [run for runs in quirks.values() for run in runs if not run.collides]
    double = [figure for board in colliding for figure in outcome.compare(board)]
    assert len(alike) + len({figure.run for figure in double}) == 188
    assert all(replace(run.double, tied=0) == replace(run.single, tied=0) for run in alike)
    assert {figure.run for figure in double if not figure.is_official} == COLLIDING
    single = [figure for name in quirks for figure in outcome.compare(boards[name])]
    assert all(figure.is_equal for figure in single if figure.run in COLLIDING)
    assert ("BERT", "rbp", "0.1625", "0.1646") in {
        (figure.run, figure.view, figure.official, figure.published) for figure in double
    }


def test_the_documented_tables_are_these(
    boards: Boards, colliding: tuple[Board, ...], quirks: Quirky
) -> None:
    text = DOCS.read_text("utf-8")
    single = [figure for board in boards.values() for figure in outcome.compare(board)]
    double = [figure for board in colliding for figure in outcome.compare(board)]
    assert scores_table(boards.values()) in text
    assert quirks_table(quirks) in text
    assert differences_table(single, double) in text


def test_a_third_run_within_30_days_is_refused(root: Path, tmp_path: Path) -> None:
    collection = COLLECTIONS["trec-covid-round1-full"]
    first = collection.entries(root)[0]
    board = open_board(collection, root, tmp_path, entries=[first])
    start = datetime(2027, 2, 1, 9, tzinfo=UTC)
    outcomes: list[Decision] = []
    for days in (0, 10, 29, 30):
        now = start + timedelta(days=days)
        name = send(board, replace(first, run=f"run{days}"), now=now, way="folder")
        take_in(board, now=now, way="folder")
        look_at(board, [name], now=now)
        outcomes += decide(board, [name], now=now)
        if not outcomes[-1].done:
            reject(board.session(now), name, why="the third run in 30 days")
    assert [decision.done for decision in outcomes] == [True, True, False, True]
    assert [why.split(":")[0] for why in outcomes[2].why_not] == ["quota"]
    assert len(outcome.page_rows(board)) == 3
