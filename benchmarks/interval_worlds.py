"""Worlds where the truth is known, and whether each interval that we print holds it there.

Reciprocal ranks are geometric up to 10. Near ties: systems that change some of the answers of the
one before, and are no better or hardly better for it.
"""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Literal

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from heldout.analyses.drift import Drift, Trend, find_drift
from heldout.analyses.entries import BoardEntry, BoardScores, Dated, ViewScores
from heldout.analyses.facets import FacetsOptions, compare_facets
from heldout.analyses.outcomes.curves import success_curves
from heldout.analyses.outcomes.options import Band, Margins
from heldout.analyses.outcomes.tests import compare_runs
from heldout.analyses.progress import trace_progress
from heldout.analyses.stability import rank_ranges
from heldout.analyses.teams import TeamsOptions, look_at_teams
from heldout.scoring.first_ranks import MethodSide, first_ranks
from heldout.scoring.table import ScoreTable, table_of
from heldout.stats.power import middle_spread
from heldout.stats.resampling import bootstrap_ranks
from heldout.stats.student import crossed_t
from heldout.stats.tests import run_test

__all__ = [
    "GAIN",
    "Held",
    "Trial",
    "difference",
    "drift",
    "facet_differences",
    "facet_of_rare_losses",
    "fail_rarely",
    "found_alone",
    "found_by_both",
    "holds",
    "late_by_both",
    "noisy_equals",
    "percentiles_of_ranks",
    "pilot",
    "pilot_of_rare_losses",
    "progress",
    "ranges_of_equal_systems",
    "ranges_of_near_ties",
    "ranges_of_rare_failures",
    "rare_losses",
    "seeds",
    "success",
    "success_of_few",
    "team_ols",
    "team_slopes",
]

Floats = NDArray[np.float64]
Held = bool | None
"""Whether an interval held the truth; `None` where there was none."""
Trial = Callable[[Generator, float], Held]

_FIRST = datetime(2026, 1, 1, 9, tzinfo=UTC)
_FOUND, _BETTER = 0.25, 0.27
"""Chance that a document is relevant, of a system and of one that is hardly better."""
_K = 10
_ANEW = 0.1


def holds(low: float | None, high: float | None, truth: float) -> Held:
    """Whether the truth lies between the ends, rounding apart."""
    return None if low is None or high is None else low - 1e-9 <= truth <= high + 1e-9


# scores


def draw_ranks(rng: Generator, queries: int, found: float = _FOUND) -> Floats:
    """Reciprocal ranks of a system that finds a relevant document at each rank by this chance."""
    ranks = rng.geometric(found, queries)
    return np.where(ranks <= _K, 1 / ranks, 0.0)


def evolve(rng: Generator, systems: int, queries: int, *, rises: float = 0.0) -> Floats:
    """Systems of which each draws a tenth of the answers of the one before again."""
    rows = [draw_ranks(rng, queries)]
    for number in range(1, systems):
        again = draw_ranks(rng, queries, min(_FOUND + rises * number, 0.9))
        rows.append(np.where(rng.random(queries) < _ANEW, again, rows[-1]))
    return np.array(rows)


def mean_rank(found: float) -> float:
    """The expected reciprocal rank."""
    ranks = np.arange(1, _K + 1)
    return float(np.sum(found * (1 - found) ** (ranks - 1) / ranks))


def draw_pair(rng: Generator, queries: int) -> tuple[Floats, Floats]:
    """A, and B that draws three tenths of the answers again and finds hardly more."""
    a = draw_ranks(rng, queries)
    return a, np.where(rng.random(queries) < _CHANGED, draw_ranks(rng, queries, _BETTER), a)


_CHANGED = 0.3
GAIN = _CHANGED * (mean_rank(_BETTER) - mean_rank(_FOUND))


def as_table(values: Floats) -> ScoreTable:
    """Systems s0, s1, ... on queries q0, q1, ..."""
    return table_of(
        {
            f"s{n}": {f"q{query}": value for query, value in enumerate(row)}
            for n, row in enumerate(values.tolist())
        }
    )


# stability, compare


def near_ties(rng: Generator) -> Floats:
    """Means a twentieth of a standard error apart, with something in common on each query."""
    shifts = np.arange(20) * 0.05 / 10
    return rng.normal(size=100) + rng.normal(size=(20, 100)) + shifts[:, np.newaxis]


def percentiles_of_ranks(rng: Generator, level: float) -> Held:
    """The middle of the resampled ranks as if it were an interval, of all systems at once."""
    trials = 299
    counts = bootstrap_ranks(near_ties(rng), rng, trials=trials).counts
    shares = np.cumsum(counts, axis=1) / trials
    tail = (1 - level) / 2
    low, high = 1 + (shares < tail).sum(axis=1), 1 + (shares < 1 - tail).sum(axis=1)
    true = 20 - np.arange(20)
    return bool(((true >= low) & (true <= high)).all())


def ranges_of_near_ties(rng: Generator, level: float) -> Held:
    """Ranges by max-t of systems that are nearly tied."""
    found = rank_ranges(as_table(near_ties(rng)), rng, flips=199, level=level)
    true = 20 - np.array([int(name[1:]) for name in found.systems])
    return bool(((true >= found.low) & (true <= found.high)).all())


def ranges_of_rare_failures(queries: int) -> Trial:
    """Eight equal systems: each loses .8 on up to 3% of the queries and gains that elsewhere."""

    def trial(rng: Generator, level: float) -> Held:
        found = rank_ranges(as_table(fail_rarely(rng, queries)), rng, flips=199, level=level)
        return set(found.low) == {1} and set(found.high) == {8}

    return trial


def fail_rarely(rng: Generator, queries: int, noise: float = 0.005) -> Floats:
    """Systems of equal means that differ in how often they fail, and in little else."""
    chances = np.linspace(0, 0.03, 8)[:, np.newaxis]
    failed = rng.random((8, queries)) < chances
    return 0.8 + 0.8 * (chances - failed) + noise * rng.standard_normal((8, queries))


def noisy_equals(rng: Generator) -> Floats:
    """Eight equal systems on 60 queries, with something in common on each query."""
    return rng.normal(size=60) + rng.normal(size=(8, 60))


def ranges_of_equal_systems(rng: Generator, level: float) -> Held:
    """Nobody is better than anybody, so every range has to be all ranks."""
    found = rank_ranges(as_table(evolve(rng, 12, 60)), rng, flips=199, level=level)
    return set(found.low) == {1} and set(found.high) == {12}


def _chance(rng: Generator, queries: int, share: float) -> NDArray[np.bool_]:
    """Some of the queries, each by this chance."""
    return rng.random(queries) < share


def rare_losses(queries: int) -> Trial:
    """B gains a little on every query and loses .9 on 1% of them: no better in the mean."""

    def trial(rng: Generator, level: float) -> Held:
        gains = 0.009 + 0.005 * rng.standard_normal(queries)
        b = gains - 0.9 * (_chance(rng, queries, 0.01))
        found = run_test("t", np.zeros(queries), b, level=level)
        return holds(found.low, found.high, 0.0)

    return trial


def success_of_few(rng: Generator, level: float) -> Held:
    """Success@3 alone, where the runs differ on 3% of 100 queries."""
    a = draw_ranks(rng, 100)
    b = np.where(rng.random(100) < _FEW, draw_ranks(rng, 100, _BETTER), a)
    ranks = first_ranks(as_table(np.array([a, b])), k=_K)
    first, second = (MethodSide(name=name, runs=(name,)) for name in ("s0", "s1"))
    curves = success_curves(ranks, first, second, rng, band="pointwise", level=level)
    truth = _FEW * ((1 - _FOUND) ** 3 - (1 - _BETTER) ** 3)
    return holds(curves.low[2], curves.high[2], truth)


_FEW = 0.03


def late_by_both(rng: Generator, level: float) -> Held:
    """Ranks where both find, where B comes 9 later on 2% of 100 queries and 1 earlier on 18%."""
    a = np.full(100, 1 / 2)
    b = np.where(_chance(rng, 100, 0.18 / 0.98), 1.0, a)
    b = np.where(_chance(rng, 100, 0.02), 1 / 11, b)
    ranks = first_ranks(as_table(np.array([a, b])), k=20)
    sides = (MethodSide(name="s0", runs=("s0",)), MethodSide(name="s1", runs=("s1",)))
    (pair,) = compare_runs(ranks, [sides], Margins(), level=level)
    found = pair.tests["esl_t"]
    return holds(found.low, found.high, 0.0)


def difference(test: str) -> Trial:
    """The interval of a test, for two systems that hardly differ."""

    def trial(rng: Generator, level: float) -> Held:
        found = run_test(test, *draw_pair(rng, 60), level=level)
        return holds(found.low, found.high, GAIN)

    return trial


def found_alone(rng: Generator, level: float) -> Held:
    """Of queries that one of two unrelated systems finds, those of B less those of A."""
    a, b = draw_pair(rng, 100)
    found = run_test("binomial", a, b, level=level)
    rest = [(1 - chance) ** _K for chance in (_FOUND, _BETTER)]
    gained, lost = rest[0] * (1 - rest[1]), (1 - rest[0]) * rest[1]
    return holds(found.low, found.high, (gained - lost) / (gained + lost))


def found_by_both(line: Literal["esl_t", "rr_t", "esl_signed_rank"]) -> Trial:
    """Mean difference of ranks, or of reciprocal ranks, where both find; or its pseudomedian."""

    def trial(rng: Generator, level: float) -> Held:
        ranks = first_ranks(as_table(np.array(draw_pair(rng, 100))), k=_K)
        sides = (MethodSide(name="s0", runs=("s0",)), MethodSide(name="s1", runs=("s1",)))
        (pair,) = compare_runs(ranks, [sides], Margins(), level=level)
        found = pair.tests[line]
        return holds(found.low, found.high, _both_truth(line))

    return trial


@cache
def _both_truth(line: str) -> float:
    rng = np.random.default_rng(14)
    a, b = draw_pair(rng, 2_000_000)
    both = (a > 0) & (b > 0)
    if line == "rr_t":
        return float(np.mean(b[both] - a[both]))
    longer = np.rint(1 / b[both]) - np.rint(1 / a[both])
    if line == "esl_t":
        return float(np.mean(longer))
    first, second = rng.choice(longer[longer != 0], (2, 2_000_000))
    return float(np.median(first + second)) / 2


def success(band: Band) -> Trial:
    """Differences of Success@1 to @10, or of Success@3 alone."""

    def trial(rng: Generator, level: float) -> Held:
        ranks = first_ranks(as_table(np.array(draw_pair(rng, 100))), k=_K)
        a, b = (MethodSide(name=name, runs=(name,)) for name in ("s0", "s1"))
        curves = success_curves(ranks, a, b, rng, band=band, level=level, draws=399)
        depths = np.arange(1, _K + 1)
        truth = _CHANGED * ((1 - _FOUND) ** depths - (1 - _BETTER) ** depths)
        each = [
            holds(low, high, true)
            for low, high, true in zip(curves.low, curves.high, truth.tolist(), strict=True)
        ]
        known = [one for one in each if one is not None]
        if band == "pointwise":
            return each[2]
        return all(known) if known else None

    return trial


def seeds(count: int) -> Trial:
    """So many seeds of each of two methods; seeds differ more than the methods do."""

    def trial(rng: Generator, level: float) -> Held:
        queries = rng.normal(0, 0.3, 60)
        a, b = (
            rng.normal(0, 0.02, count)[:, np.newaxis] + rng.normal(0, 0.1, (count, 60))
            for _ in "ab"
        )
        totals = (b + 0.2 * queries + 0.005)[np.newaxis] - a[:, np.newaxis]
        found = crossed_t(totals, np.ones(totals.shape), level=level)
        return holds(found.low, found.high, 0.005)

    return trial


# boards


def as_board(views: Mapping[str, Floats], *, each: int) -> BoardScores:
    """A board whose entries came ten days apart, so many of each team in turn."""
    count = len(next(iter(views.values())))
    ids = [f"s{n}" for n in range(count)]
    entries = [
        BoardEntry(
            id=one,
            received=_FIRST + timedelta(days=10 * n),
            description=one,
            team=f"team {n // each}",
            institution="a university",
            baseline=False,
        )
        for n, one in enumerate(ids)
    ]
    made = {name: _view(name, rows) for name, rows in views.items()}
    return BoardScores(
        board="simulated", entries=tuple(entries), views=made, primary=next(iter(made))
    )


def _view(name: str, rows: Floats) -> ViewScores:
    table = as_table(rows)
    return ViewScores(
        view=name,
        queries=name,
        measure="RR@10",
        public=True,
        held_out=name != "dev",
        means={one: float(row.mean()) for one, row in zip(table.systems, rows, strict=True)},
        table=table,
    )


def team_slopes(*, all_teams: bool, submissions: int = 6, queries: int = 100) -> Trial:
    """Five teams, each submission a variant of the team's last one; nobody overfits."""

    def trial(rng: Generator, level: float) -> Held:
        views = {
            name: np.concatenate([evolve(rng, submissions, queries) for _ in range(5)])
            for name in ("public", "reserve")
        }
        board = as_board(views, each=submissions)
        given = Dated(board=board, views=(board.views["public"], board.views["reserve"]))
        found = look_at_teams(given, rng, TeamsOptions(trials=299), level=level)
        slopes = [group.slope for group in found.groups if group.slope is not None]
        if not slopes:
            return None
        if not all_teams:
            return holds(slopes[0].low, slopes[0].high, 0.0)
        return all(holds(one.low_all, one.high_all, 0.0) for one in slopes)

    return trial


def team_ols(*, submissions: int = 6, queries: int = 100) -> Trial:
    """The slope of a team by OLS, which takes submissions for independent."""

    def trial(rng: Generator, level: float) -> Held:
        views = {name: evolve(rng, submissions, queries) for name in ("public", "reserve")}
        board = as_board(views, each=submissions)
        given = Dated(board=board, views=(board.views["public"], board.views["reserve"]))
        found = look_at_teams(given, rng, TeamsOptions(trials=1), level=level)
        slope = found.groups[0].slope
        return None if slope is None else holds(slope.ols_low, slope.ols_high, 0.0)

    return trial


def drift(
    of: Callable[[Drift], Trend | None], *, rises: float, entries: int = 10, queries: int = 200
) -> Trial:
    """Dev and official queries of one kind: no trend of what is compared, however scores rise."""

    def trial(rng: Generator, level: float) -> Held:
        views = {name: evolve(rng, entries, queries, rises=rises) for name in ("eval", "dev")}
        board = as_board(views, each=1)
        given = Dated(board=board, views=(board.views["eval"], board.views["dev"]))
        found = find_drift(given, rng, trials=199, level=level)
        trend = of(found)
        return None if trend is None else holds(trend.low, trend.high, 0.0)

    return trial


def progress(*, chosen: bool) -> Trial:
    """The last of ten systems, no better than the first; or the last step of best-so-far."""

    def trial(rng: Generator, level: float) -> Held:
        rows = evolve(rng, 10, 60)
        if not chosen:
            test = run_test("t", rows[0], rows[-1], level=level)
            return holds(test.low, test.high, 0.0)
        board = as_board({"eval": rows}, each=1)
        found = trace_progress(board, board.views["eval"], level=level)
        steps = [one for one in found.comparisons if "displaced" in one.kinds]
        return holds(steps[-1].low, steps[-1].high, 0.0) if steps else None

    return trial


# facets, power


def facet_differences(*, together: bool) -> Trial:
    """Four kinds of queries, on each of which B gains another amount."""

    def trial(rng: Generator, level: float) -> Held:
        chances = (_FOUND, _BETTER, 0.3, 0.35)
        a = draw_ranks(rng, 160)
        b = np.concatenate([draw_ranks(rng, 40, chance) for chance in chances])
        facets = {f"f{n}": {f"q{q}" for q in range(40 * n, 40 * n + 40)} for n in range(4)}
        found = compare_facets(
            as_table(np.array([a, b])),
            facets,
            rng,
            FacetsOptions(against="s0", draws=1, level=level),
        )
        each = []
        for one in found.differences:
            if one.facet:
                truth = mean_rank(chances[int(one.facet[1:])]) - mean_rank(_FOUND)
                low, high = (one.low_all, one.high_all) if together else (one.low, one.high)
                each.append(holds(low, high, truth))
        return all(each) if together else each[1]

    return trial


def facet_of_rare_losses(rng: Generator, level: float) -> Held:
    """A facet of 40 queries on which B gains .018 in general and loses .9 on 2%."""
    lost = _chance(rng, 80, 0.02)
    b = 0.018 + 0.005 * rng.standard_normal(80) - 0.9 * lost
    facets = {f"f{n}": {f"q{q}" for q in range(40 * n, 40 * n + 40)} for n in range(2)}
    table = as_table(np.array([np.full(80, 0.5), 0.5 + b]))
    found = compare_facets(table, facets, rng, FacetsOptions(against="s0", draws=1, level=level))
    one = next(one for one in found.differences if one.facet == "f0")
    return holds(one.low, one.high, 0.0)


def pilot_of_rare_losses(rng: Generator, level: float) -> Held:
    """The deviation of a difference that is .9 on 2% of 100 queries, and little noise else."""
    b = 0.01 * rng.standard_normal(100) - 0.9 * _chance(rng, 100, 0.02)
    found = middle_spread(np.array([np.zeros(100), b]), rng, level=level, trials=199)
    truth = (0.01**2 + 0.9**2 * 0.02 * 0.98) ** 0.5
    return holds(found.low, found.high, truth)


def pilot(queries: int) -> Trial:
    """The deviation of the difference of two systems that share most answers."""

    def trial(rng: Generator, level: float) -> Held:
        found = middle_spread(np.array(draw_pair(rng, queries)), rng, level=level, trials=199)
        return holds(found.low, found.high, _pair_deviation())

    return trial


@cache
def _pair_deviation() -> float:
    a, b = draw_pair(np.random.default_rng(11), 2_000_000)
    return float(np.std(b - a))
