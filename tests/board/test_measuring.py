"""What is told of a ranking: the same from the same scores, and of no two near copies."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from heldout.analyses.entries import BoardEntry, BoardScores, ViewScores
from heldout.analyses.stability import rank_ranges
from heldout.board.log.final import PARTS, TrustPart, list_wrong
from heldout.board.scores.measuring import (
    Compared,
    choose_compared,
    find_near_scores,
    measure_ranges,
    measure_ranking,
)
from heldout.board.standings.standings import FEWEST_DIFFERENT
from heldout.scoring.table import table_of

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
    released = {name: round(mean, 3) for name, mean in means.items()}
    ranked = sorted(names, key=lambda name: -means[name])
    found = choose_compared(scores, ranked, released=released)
    assert found is not None
    return found


@settings(max_examples=5)
@given(st.sets(st.sampled_from(PARTS)), st.integers(0, 99))
def test_a_part_is_the_same_whatever_else_is_told(show: set[TrustPart], seed: int) -> None:
    compared = compare(board())
    every = measure_ranking(compared, PARTS, seed=seed)
    some = measure_ranking(compared, sorted(show), seed=seed)
    assert some.published == show
    assert all(getattr(some, part) == getattr(every, part) for part in show)
    assert [*list_wrong(every, compared.table.systems)] == []


def test_clear_differences_are_told_apart_and_copies_of_noise_are_not() -> None:
    figures = measure_ranking(compare(board(systems=6)), PARTS, seed=0)
    assert figures.ranges is not None
    assert figures.why == {}
    assert figures.ranges.low[0] > 1  # the first that came is the worst
    assert figures.ranges.high[-1] < 6


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


def test_without_near_entries_ranges_are_those_of_the_analyses() -> None:
    compared = compare(board())
    table, apart = compared.table, compared.apart
    for seed in (0, 1):
        mine, theirs = (np.random.default_rng(seed) for _ in range(2))
        ranges, known = (
            measure_ranges(table, apart, mine, better="higher"),
            rank_ranges(table, theirs),
        )
        rows = [known.systems.index(name) for name in table.systems]
        assert ranges.low == tuple(known.low[row] for row in rows)
        assert ranges.high == tuple(known.high[row] for row in rows)


def with_copy(change: int) -> tuple[BoardScores, Compared]:
    """The best system again, with another score on some queries, as the last entry."""
    scores = board(systems=6)
    table = scores.view().table
    assert table is not None
    rows = dict(zip(table.systems, table.values, strict=True))
    row = rows["s5"].copy()
    lower = np.flatnonzero(row > 0.1)[:change]
    row[lower] = 0.1
    rows["copy"] = row
    entry = BoardEntry(id="copy", received=START + timedelta(days=99))
    both = replace(
        scores,
        entries=(*scores.entries, entry),
        views={"eval": view("eval", rows), "dev": view("dev", rows)},
    )
    found = compare(both)
    released = {name: round(mean, 3) for name, mean in both.view().means.items()}
    return both, replace(found, alike=(("s5", "copy"),), released=released)


def test_of_two_near_entries_each_is_compared_with_all_others_and_not_with_the_other() -> None:
    _, compared = with_copy(5)
    figures = measure_ranking(compared, PARTS, seed=0)
    assert [*list_wrong(figures, compared.table.systems)] == []
    assert figures.ranges is not None
    place = {name: at for at, name in enumerate(compared.table.systems)}
    for name in ("s5", "copy"):
        assert figures.ranges.low[place[name]] == 1
        assert 2 <= figures.ranges.high[place[name]] < 7  # better than some of the others


def test_records_are_those_of_the_released_scores_and_a_like_is_no_test() -> None:
    both, compared = with_copy(5)
    higher = {**compared.released, "copy": 0.999}
    figures = measure_ranking(replace(compared, released=higher), ["progress"], seed=0)
    assert figures.progress is not None
    assert [step.entry for step in figures.progress][-1] == "copy"
    assert figures.progress[-1].significant is None
    assert "copy" not in [
        step.entry for step in measure_ranking(compared, ["progress"], seed=0).progress or ()
    ]
    assert figures.progress[-1].family == len([e for e in both.entries if not e.baseline])


def test_no_figure_looks_at_a_view_for_information() -> None:
    plain = board()
    views = dict(plain.views)
    for name in ("feedback", "check"):
        rows = {s: np.zeros(QUERIES) for s in plain.views["eval"].means}
        views[name] = replace(view(name, rows), for_information=True)
    ranked = sorted(n for n in plain.views["eval"].means if n != "base")
    found = choose_compared(replace(plain, views=views), ranked, released={})
    assert found is not None
    assert found.board.views.keys() == plain.views.keys()


def test_one_entry_or_missing_scores_are_not_compared() -> None:
    scores = board()
    assert choose_compared(scores, ["s0"], released={}) is None
    assert choose_compared(scores, ["s0", "unknown"], released={}) is None
