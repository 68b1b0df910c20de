"""What is told of a ranking: the same from the same scores, and of no two near copies."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heldout.analyses.entries import BoardEntry, BoardScores, ViewScores
from heldout.analyses.ranges import rank_ranges
from heldout.analyses.stability import bootstrap_stability
from heldout.board.log.measured import PARTS, Facets, Figures, Stability, TrustPart, list_wrong
from heldout.board.scores.measuring import (
    Compared,
    QueryFacet,
    choose_compared,
    find_near_scores,
    measure_ranges,
    measure_ranking,
    measure_shares,
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


HALVES = (
    QueryFacet(
        of="types", name="first", queries=frozenset(f"q{i:02}" for i in range(30)), least=25
    ),
    QueryFacet(
        of="types", name="last", queries=frozenset(f"q{i:02}" for i in range(30, 60)), least=25
    ),
    QueryFacet(of="types", name="rare", queries=frozenset(f"q{i:02}" for i in range(9)), least=25),
)


def compare(scores: BoardScores) -> Compared:
    means = scores.view().means
    names = [e.id for e in scores.entries if not e.baseline]
    released = {name: round(mean, 3) for name, mean in means.items()}
    ranked = sorted(names, key=lambda name: -means[name])
    found = choose_compared(scores, ranked, released=released)
    assert found is not None
    return replace(found, facets=HALVES)


@settings(max_examples=5)
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
    assert figures.why == {}
    assert figures.ranges.low[0] > 1  # the first that came is the worst
    assert figures.ranges.high[-1] < 6
    assert figures.stability is not None
    sums = [sum(figures.stability.shares_of(place).values()) for place in range(6)]
    assert sums == pytest.approx([1] * 6, abs=0.05)


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


def test_without_near_entries_ranges_and_shares_are_those_of_the_analyses() -> None:
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
        shares = measure_shares(table, apart, compared.ranked, mine, better="higher")
        stable = bootstrap_stability(table, theirs)
        rows = [stable.systems.index(name) for name in table.systems]
        wanted = stable.rank_probability[rows].round(2).tolist()
        told = [shares.shares_of(place) for place in range(len(rows))]
        ranks = range(1, len(rows) + 1)
        assert [[row.get(rank, 0) for rank in ranks] for row in told] == wanted


def test_shares_grow_no_faster_than_the_entries() -> None:
    rng = np.random.default_rng(3)
    sizes = []
    for entries in (200, 800):
        scores = rng.choice([0.0, 0.25, 0.5, 1.0], (entries, QUERIES))
        table = view("eval", {f"s{n:03}": row for n, row in enumerate(scores)}).table
        assert table is not None
        apart = dict.fromkeys(table.systems, frozenset[str]())
        shares = measure_shares(table, apart, table.systems, rng, better="higher")
        sizes.append(len(msgspec.json.encode(shares)) / entries)
    assert max(sizes) < 1_000


@pytest.mark.parametrize(
    "row", [(0, 10), (-3,), (-4, 10, 10), (10, -1), (101,), (*[1] * 6,)], ids=str
)
def test_shares_of_other_ranks_are_refused(row: tuple[int, ...]) -> None:
    told = Figures(queries=1, stability=Stability(trials=1_000, shares=(row, (), (), (), ())))
    assert [*list_wrong(told, list("abcde"))] == ["shares are not of 5 entries and ranks"]
    right = Figures(queries=1, stability=Stability(trials=1_000, shares=((-3, 60, 40), *[()] * 4)))
    assert [*list_wrong(right, list("abcde"))] == []


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
    assert figures.stability is not None
    place = {name: at for at, name in enumerate(compared.table.systems)}
    for name in ("s5", "copy"):
        assert figures.ranges.low[place[name]] == 1
        assert 2 <= figures.ranges.high[place[name]] < 7  # better than some of the others
    assert 1 not in figures.stability.shares_of(place["copy"])  # stays below, as it was released


def test_what_two_near_entries_differ_in_moves_nothing_that_is_told_of_the_pair() -> None:
    """A query's label from the order of copies: their resampled order would give it away."""
    places = []
    for change in (0, 1, 5):
        _, compared = with_copy(change)
        figures = measure_ranking(compared, ["stability"], seed=0)
        assert figures.stability is not None
        at = {name: n for n, name in enumerate(compared.table.systems)}
        first, second = (figures.stability.shares_of(at[n]) for n in ("s5", "copy"))
        places.append(first[1])
        assert 1 not in second
        assert np.allclose(sum(first.values()), 1, atol=0.03)
        assert np.allclose(sum(second.values()), 1, atol=0.03)
    assert len(set(places)) == 1  # the best is held against the others, whatever its copy does


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


def test_facets_are_told_with_ranges_of_their_own_and_small_ones_are_withheld() -> None:
    compared = compare(board(systems=6))
    found = measure_ranking(compared, ["facets"], seed=0).facets
    assert isinstance(found, Facets)
    assert [one.facet for one in found.told] == ["first", "last"]
    assert [one.queries for one in found.told] == [30, 30]
    assert found.withheld == ("rare",)
    for one in found.told:
        assert all(1 <= a <= b <= 6 for a, b in zip(one.low, one.high, strict=True))
        # where neither has a near entry, the range holds the rank
        assert all(a <= r <= b for a, r, b in zip(one.low, one.rank, one.high, strict=True))
    assert any(a > 1 for one in found.told for a in one.low)


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


def test_two_entries_that_are_near_on_a_facet_are_not_compared_on_it() -> None:
    """Small cells: far apart on all queries, and one query apart on a facet."""
    values = np.tile([0.1, 0.25, 0.5, 1.0], 15)
    rows = {"a": values, "b": values.copy(), "c": np.zeros(QUERIES)}
    rows["b"][0] = 1.0  # better by one query of the first half
    rows["b"][30:] = 0.1
    entries = tuple(
        BoardEntry(id=n, received=START + timedelta(days=k)) for k, n in enumerate(rows)
    )
    scores = BoardScores(
        board="b", entries=entries, views={"eval": view("eval", rows)}, primary="eval"
    )
    compared = choose_compared(scores, ["a", "b", "c"], released={})
    assert compared is not None
    told = replace(compared, alike=(), facets=HALVES)
    found = measure_ranking(told, ["facets"], seed=0).facets
    assert found is not None
    first, last = found.told
    assert (first.rank, first.low, first.high) == ((1, 2, 3), (1, 1, 3), (2, 2, 3))
    assert (last.rank[0], last.low[0], last.low[1]) == (1, 1, 2)


def test_without_facets_the_section_says_so() -> None:
    figures = measure_ranking(replace(compare(board()), facets=()), ["facets"], seed=0)
    assert figures.facets is None
    assert figures.why == {"facets": "no public view names facets of these queries"}


def test_one_entry_or_missing_scores_are_not_compared() -> None:
    scores = board()
    assert choose_compared(scores, ["s0"], released={}) is None
    assert choose_compared(scores, ["s0", "unknown"], released={}) is None


def probe(*, found: bool, entries: str, seed: int) -> Compared:
    """A run, the same with other ranks and other documents for one query, and two more.

    What the probe finds for that query follows from its label alone.
    """
    rng = np.random.default_rng(seed)
    rows = {
        "a": rng.choice([0, 1.0], size=QUERIES),
        "c": rng.choice([0, 0.2], size=QUERIES),
        "d": rng.choice([0, 0.1], size=QUERIES, p=[0.3, 0.7]),
    }
    rows["a"][7] = 0
    rows["probe"] = np.where(rows["a"] > 0, rng.choice([0.25, 0.5], size=QUERIES), 0)
    rows["probe"][7] = 0.5 if found else 0
    rows = {name: rows[name] for name in ("a", "c", "probe", "d")}
    dev = {name: np.roll(row, 1) for name, row in rows.items()}
    scores = BoardScores(
        board="b",
        entries=tuple(
            BoardEntry(id=s, received=START + timedelta(days=n)) for n, s in enumerate(rows)
        ),
        views={"eval": view("eval", rows), "dev": view("dev", dev)},
        primary="eval",
    )
    names = [name for name in ("a", "probe", "c", "d") if name[0] in entries]
    released = {name: 0.9 - n / 10 for n, name in enumerate(rows)}
    compared = choose_compared(scores, names, released=released)
    assert compared is not None
    return compared


def test_drift_rests_on_released_scores_and_its_limits_on_two_digits() -> None:
    """Entries of two days: the trend has the difference of their true scores, times 365."""
    told = []
    for found in (False, True):
        drift = measure_ranking(probe(found=found, entries="apcd", seed=3), ["drift"], seed=0).drift
        assert drift is not None
        assert drift.low is not None
        assert drift.low == float(f"{drift.low:.1e}")
        told.append((drift.ratio, drift.gap, drift.per_year))
    released = probe(found=False, entries="apcd", seed=3).released
    dev = probe(found=False, entries="apcd", seed=3).board.views["dev"].means
    assert told[0][1] == pytest.approx(
        np.median([released[s] - dev[s] for s in released]), abs=1e-4
    )
