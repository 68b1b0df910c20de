"""What is told of a ranking: the same from the same scores, and of no two near copies."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heldout.board.figures import list_wrong
from heldout.board.trust import FEWEST_DIFFERENT, PARTS, TrustPart
from heldout.pipeline.measuring import (
    Compared,
    choose_compared,
    find_near_scores,
    measure_ranking,
)
from heldout.scores import table_of
from heldout.validity.entries import BoardEntry, BoardScores, ViewScores

QUERIES = 60
START = datetime(2026, 11, 1, tzinfo=UTC)


def view(name: str, rows: Mapping[str, np.ndarray], *, public: bool = True) -> ViewScores:
    table = table_of(
        {s: {f"q{i:02}": float(v) for i, v in enumerate(row)} for s, row in rows.items()}
    )
    return ViewScores(
        view=name,
        queries=name,
        measure="RR@10",
        public=public,
        held_out=name != "dev",
        means={s: float(row.mean()) for s, row in rows.items()},
        table=table,
    )


def board(systems: int = 5, *, seed: int = 1) -> BoardScores:
    """Systems from bad to good, and a baseline; scores are reciprocal ranks."""
    rng = np.random.default_rng(seed)
    names = ["base", *(f"s{n}" for n in range(systems))]
    values = np.array([0, 0.1, 0.25, 0.5, 1.0])
    rows = {}
    for n, name in enumerate(names):
        weights = np.arange(1, 6) ** (n / 2)
        rows[name] = rng.choice(values, size=QUERIES, p=weights / weights.sum())
    dev = {name: np.roll(row, 1) for name, row in rows.items()}
    return BoardScores(
        board="b",
        entries=tuple(
            BoardEntry(id=s, received=START + timedelta(days=9 * n), baseline=s == "base")
            for n, s in enumerate(names)
        ),
        views={"eval": view("eval", rows), "dev": view("dev", dev)},
        primary="eval",
    )


def compare(scores: BoardScores) -> Compared:
    means = scores.view().means
    names = [e.id for e in scores.entries if not e.baseline]
    found = choose_compared(scores, sorted(names, key=lambda name: -means[name]))
    assert found is not None
    return found


@settings(max_examples=5, deadline=None)
@given(st.sets(st.sampled_from(PARTS)), st.integers(0, 99))
def test_a_part_is_the_same_whatever_else_is_told(show: set[TrustPart], seed: int) -> None:
    compared = compare(board())
    every = measure_ranking(compared, PARTS, seed=seed)
    some = measure_ranking(compared, sorted(show), seed=seed)
    assert some.told == show
    assert all(getattr(some, part) == getattr(every, part) for part in show)
    assert [*list_wrong(every, compared.table.systems)] == []


def test_clear_differences_are_told_apart_and_copies_of_noise_are_not() -> None:
    figures = measure_ranking(compare(board(systems=6)), PARTS, seed=0)
    assert figures.ranges is not None
    assert figures.outcomes is not None
    assert figures.why == {}
    assert figures.ranges.low[0] > 1  # the first that came is the worst
    assert figures.ranges.high[-1] < 6
    assert all(sum(row) == pytest.approx(1, abs=0.05) for row in figures.stability.shares)  # type: ignore[union-attr]


def test_private_views_are_never_looked_at() -> None:
    scores = board()
    private = {name: view(name, {}, public=False) for name in ("reserve",)}
    compared = compare(
        BoardScores(
            board=scores.board,
            entries=scores.entries,
            views={**scores.views, **private},
            primary="eval",
        )
    )
    assert set(compared.board.views) == {"eval", "dev"}


def test_a_pair_that_differs_in_one_query_is_near_and_counts_would_give_its_label_away() -> None:
    rows = {"a": np.zeros(QUERIES), "b": np.zeros(QUERIES), "c": np.zeros(QUERIES)}
    rows["b"][0] = 1
    rows["c"][:FEWEST_DIFFERENT] = 1
    near = find_near_scores(view("eval", rows).table)  # type: ignore[arg-type]
    assert near == {"a": {"b"}, "b": {"a", "c"}, "c": {"b"}}


def test_means_over_seeds_have_no_outcomes_and_the_rest_is_told() -> None:
    scores = board()
    rows = {
        s: scores.view().table.values[n] * 0.9 + 0.01  # type: ignore[union-attr]
        for n, s in enumerate(scores.view().means)
    }
    changed = BoardScores(
        board="b",
        entries=scores.entries,
        views={"eval": view("eval", rows)},
        primary="eval",
    )
    figures = measure_ranking(compare(changed), PARTS, seed=0)
    assert set(figures.why) == {"outcomes", "drift"}
    assert figures.ranges is not None
    assert figures.outcomes is None


def test_one_entry_or_missing_scores_are_not_compared() -> None:
    scores = board()
    assert choose_compared(scores, ["s0"]) is None
    assert choose_compared(scores, ["s0", "unknown"]) is None
