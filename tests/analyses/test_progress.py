"""Progress: the line of best-so-far, and tests that use only what had come."""

from collections.abc import Callable
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from simulated_boards import board_of, entries_of, evolve, means_of, rng, view_of

from drawings import root_of, tips
from heldout.analyses import progress as report
from heldout.analyses.entries import BoardScores
from heldout.analyses.progress import trace_progress
from heldout.board.old_boards import parse_table, scores_of_old_table
from heldout.charts.svg import LINK, PAPER, RECORD
from heldout.errors import InputError

SEEDS = st.integers(0, 2**32 - 1)


def rows_of(seed: int, *, systems: int = 8, queries: int = 60) -> dict[str, NDArray[np.float64]]:
    scores = evolve(rng(seed), systems=systems, queries=queries, drift=0.03)
    return {f"s{n}": row for n, row in enumerate(scores)}


def made(rows: dict[str, NDArray[np.float64]], *, baselines: tuple[str, ...] = ()) -> BoardScores:
    return board_of(entries_of(list(rows), baselines=baselines), view_of("eval", rows))


def trace(board: BoardScores, **options: object) -> Any:
    return trace_progress(board, board.view(), **options)  # type: ignore[arg-type]


@given(SEEDS)
def test_each_step_is_above_all_that_came_before_and_above_every_baseline(seed: int) -> None:
    board = made(rows_of(seed), baselines=("s3",))
    result = trace(board)
    bar = board.view().means["s3"]
    best = bar
    steps = {step.entry.id: step for step in result.line}
    for entry in board.entries:
        score = board.view().means[entry.id]
        if entry.baseline:
            continue
        assert (entry.id in steps) == (score > best)
        if entry.id in steps:
            assert steps[entry.id].gain == pytest.approx(score - best)
            best = score


@given(SEEDS)
@settings(max_examples=15)
def test_what_comes_later_changes_nothing_of_what_was_said_when_it_came(seed: int) -> None:
    rows = rows_of(seed)
    whole = {step.entry.id: step for step in trace(made(rows)).line}
    for count in range(1, len(rows)):
        early = trace(made(dict(list(rows.items())[:count])))
        for step in early.line:
            assert step == whole[step.entry.id]


def test_the_declared_test_decides() -> None:
    rows = rows_of(2)
    results = {name: trace(made(rows), decide=name) for name in ("t", "signed-rank", "rank-sum")}
    for name, result in results.items():
        step = result.line[1]
        one = next(c for c in result.comparisons if c.b == step.entry.id and c.a == step.displaced)
        assert step.p == one.p[name]
        assert result.decide == name


def test_the_family_is_each_step_against_the_first_the_displaced_and_the_top_three() -> None:
    means = [0.1, 0.2, 0.15, 0.3, 0.25, 0.4]
    noise = rng().normal(0, 0.05, (6, 40))
    noise -= noise.mean(axis=1, keepdims=True)
    rows = {f"s{n}": mean + noise[n] for n, mean in enumerate(means)}
    result = trace(made(rows))
    assert [step.entry.id for step in result.line] == ["s0", "s1", "s3", "s5"]
    assert result.top == ("s5", "s3", "s4")
    assert {(one.a, one.b): one.kinds for one in result.comparisons} == {
        ("s0", "s1"): ("first", "displaced"),
        ("s0", "s3"): ("first",),
        ("s0", "s5"): ("first",),
        ("s1", "s3"): ("displaced",),
        ("s3", "s5"): ("displaced", "top"),
        ("s4", "s5"): ("top",),
        ("s4", "s3"): ("top",),
    }
    smallest = min(one.p["t"] or 1 for one in result.comparisons)
    corrected = min(one.p_corrected or 1 for one in result.comparisons)
    assert corrected == pytest.approx(min(1, 7 * smallest))


def test_when_it_came_the_family_is_every_submission_so_far() -> None:
    result = trace(made(rows_of(3)))
    order = {f"s{n}": n for n in range(8)}
    for step in result.line[1:]:
        assert step.family_then == order[step.entry.id]
        assert step.p <= step.p_then <= min(1, step.p * step.family_then) + 1e-12


def test_the_first_entry_has_nothing_before_it_and_no_p() -> None:
    first = trace(made(rows_of(4))).line[0]
    assert (first.displaced, first.gain, first.p, first.p_then) == (None, None, None, None)
    assert first.why == "nothing came before it"


def test_with_a_baseline_the_first_step_is_over_the_best_baseline() -> None:
    rows = rows_of(5)
    best = max(rows["s0"].mean(), rows["s1"].mean())
    result = trace(made(rows, baselines=("s0", "s1")))
    assert result.line[0].displaced in {"s0", "s1"}
    assert result.line[0].gain == pytest.approx(result.line[0].score - best)
    assert trace(made(rows, baselines=("s0", "s1")), bar=False).line[0].entry.id == "s2"


def test_a_tie_does_not_displace_and_two_equal_runs_have_no_p() -> None:
    row = rng().random(20)
    result = trace(made({"a": row, "b": row.copy(), "c": row[::-1].copy()}))
    assert [step.entry.id for step in result.line] == ["a"]
    same = next(one for one in result.comparisons if {one.a, one.b} == {"a", "b"})
    assert same.p["t"] is None
    assert same.p_corrected is None
    assert same.why


def test_a_single_query_has_no_p() -> None:
    result = trace(made({"a": np.array([0.1]), "b": np.array([0.5])}))
    assert result.line[1].p is None
    assert result.line[1].p_then is None
    assert result.line[1].why
    assert "No p for R1" in " ".join(report.tables(result)[0].notes)


def test_nothing_but_baselines_is_an_error() -> None:
    with pytest.raises(InputError, match="no-entries"):
        trace(made({"a": np.array([0.1, 0.2])}, baselines=("a",)))


def test_where_less_is_better_the_line_falls() -> None:
    rows = {"a": np.array([0.5, 0.6]), "b": np.array([0.4, 0.6]), "c": np.array([0.7, 0.6])}
    board = made(rows)
    view = replace(board.view(), better="lower")
    result = trace_progress(board, view)
    assert [step.entry.id for step in result.line] == ["a", "b"]
    assert result.top[0] == "b"


def test_means_alone_have_a_line_and_no_tests() -> None:
    board = made(rows_of(6))
    result = trace(replace(board, views={"eval": means_of(board.view())}))
    assert [s.entry.id for s in result.line] == [s.entry.id for s in trace(board).line]
    assert result.comparisons == ()
    assert all(step.p is None for step in result.line)
    (table,) = report.tables(result)
    assert "nothing is tested" in table.notes[-1]
    assert not result.comparisons


def test_systems_that_are_all_alike_seldom_have_a_significant_step() -> None:
    boards, wrong = 100, 0
    for seed in range(boards):
        rows = {f"s{n}": row for n, row in enumerate(rng(seed).random((8, 40)))}
        wrong += any(
            step.p_then is not None and step.p_then < 0.05 for step in trace(made(rows)).line
        )
    # 5% of 100 is 5; 13 or more have a chance of 0.2%
    assert wrong < 13


def test_what_the_filter_finds_and_records_differ_in_colour() -> None:
    rows = {f"{n}": np.full(5, score) for n, score in enumerate((0.2, 0.1, 0.15, 0.3))}
    board = made(rows)
    named = ("a BERT", "other", "bert 2", "last")
    entries = tuple(
        replace(entry, description=name) for entry, name in zip(board.entries, named, strict=True)
    )
    chart = report.chart(trace(replace(board, entries=entries)), find="bert")
    marks = {
        title.text: (group.get("fill"), mark.tag.rpartition("}")[2])
        for group in root_of(chart).iter("g")
        for mark in group
        if (title := mark.find("title")) is not None
    }
    assert marks == {
        "a BERT": (LINK, "path"),  # a record too
        "bert 2": (LINK, "circle"),
        "other": (PAPER, "circle"),
        "last": (RECORD, "path"),
    }
    assert [text for mark, text, _ in chart.keys if mark == "match"] == ["blue: with “bert”"]


def test_the_chart_stars_significant_steps_and_marks_what_the_filter_finds() -> None:
    rows = {"a": rng(1).random(50), "b": rng(1).random(50) + 0.5 + 0.01 * rng(2).random(50)}
    board = made(rows)
    entries = (board.entries[0], replace(board.entries[1], description="a BERT of ours"))
    result = trace(replace(board, entries=entries))
    marks = {
        title.text: group.get("fill")
        for group in root_of(report.chart(result, find="bert")).iter("g")
        for mark in group
        if (title := mark.find("title")) is not None
    }
    assert sorted(map(str, marks)) == ["system a", "★ a BERT of ours"]
    assert len({*marks.values()}) == 2


@pytest.mark.real
@pytest.mark.parametrize(
    ("name", "rows", "line"),
    [("doc", 117, (17, 0.368, 0.446)), ("passage", 168, (19, 0.271, 0.450))],
)
def test_the_real_boards(
    data: Callable[[str], Path], name: str, rows: int, line: tuple[int, float, float]
) -> None:
    file = data(f"leaderboards/msmarco-{name}-leaderboard.csv")
    result = trace(scores_of_old_table(parse_table(file.read_bytes(), path=file.name)))
    assert len(result.entries) == rows
    assert (len(result.line), result.line[0].score, result.line[-1].score) == line
    assert len(tips(report.chart(result, find="BERT"))) == rows - 3


@pytest.mark.real
def test_the_rows_of_mid_april_2022_are_those_of_the_paper_but_for_one(
    data: Callable[[str], Path],
) -> None:
    """The paper counts 116 and 161; the 161st passage row is of 19 April."""
    counts = {}
    for name in ("doc", "passage"):
        file = data(f"leaderboards/msmarco-{name}-leaderboard.csv")
        board = scores_of_old_table(parse_table(file.read_bytes(), path=file.name))
        days = [entry.day for entry in board.entries]
        counts[name] = [sum(day <= date(2022, 4, last) for day in days) for last in (15, 19)]
    assert counts == {"doc": [116, 116], "passage": [160, 161]}


@pytest.mark.real
def test_the_document_board_had_thirteen_steps_by_the_end_of_april_2021(
    data: Callable[[str], Path],
) -> None:
    """Significant Improvements, section 3: R1 to R13."""
    file = data("leaderboards/msmarco-doc-leaderboard.csv")
    line = trace(scores_of_old_table(parse_table(file.read_bytes(), path=file.name))).line
    assert sum(step.entry.day <= date(2021, 4, 30) for step in line) == 13
