"""How many queries does a difference take? Planned from pilot runs, before a board opens.

What counts is how much the difference of two systems varies from query to query. It is measured on
the pairs of the pilot's systems; the middle pair (median) is planned for, and the quartiles of the
pairs are reported. The pilot's queries are a sample too: the deviation gets an interval by
resampling them, and with it every number that is planned from it.

The plan is the paired t test's (`stats.power`). Whether t may be believed, and what another test
would find, is simulated: queries are drawn from the differences of one pair, reweighted so that
their mean is the one planned for. Of the tenth of pairs with deviations nearest to the middle it
is the pair with the smallest mean difference, which needs the least reweighting.
"""

import math
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Annotated, Literal, get_args

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from heldout.analyses.analysis import Analysis, Draws
from heldout.answers.answer import Answer, to_document
from heldout.answers.table import Cell, Column, Table, columns
from heldout.charts.axes import log_axis
from heldout.charts.plot import Plot
from heldout.charts.svg import MUTED
from heldout.errors import InputError, plural
from heldout.ids import Digest
from heldout.options import Alpha, Level, Opt
from heldout.scoring.names import read_measure
from heldout.scoring.sources import Scores
from heldout.scoring.table import ScoreTable, score_matrix
from heldout.stats.power import (
    Spread,
    detectable_difference,
    middle_spread,
    pair_deviations,
    queries_needed,
)
from heldout.stats.resampling import map_blocks
from heldout.stats.tests import run_test

# Power of a test by simulation, on queries drawn from the differences of a pilot's pair.
#
# Differences are drawn as they are, zeros and ties too, but some more often than others: with
# probabilities that make their mean the one asked for and else change as little as possible
# (exponential tilting). This says whether a plan by the t test holds on scores that are not
# normal, and what other tests find. Source: Efron 1981, nonparametric tilting.

MOST_QUERIES = 20_000
"""Queries of a simulated set at most; a plan for more stands without a simulation."""

_BLOCK = 32

SimulatedTest = Literal["t", "signed-rank", "sign"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Simulated:
    """A test on drawn queries.

    Attributes:
        test: its name.
        queries: drawn in each trial.
        difference: true mean difference.
        power: share of trials that are significant in the right direction.
        wrong: share that are significant in the wrong one.
        error: standard error of `power` that the number of trials leaves.
        trials: how many.
        why: why there is none, as where the pair has no difference so large, or where a set would
            have more than `MOST_QUERIES` queries; else "".
    """

    test: SimulatedTest
    queries: int
    difference: float
    trials: int
    power: float | None = None
    wrong: float | None = None
    error: float | None = None
    why: str = ""


def simulate_power(
    differences: NDArray[np.float64],
    test: SimulatedTest,
    rng: Generator,
    *,
    difference: float,
    queries: int,
    alpha: float = 0.05,
    trials: int = 1000,
    executor: Executor | None = None,
) -> Simulated:
    """Return how often a test is significant on queries drawn from a pair's differences.

    Args:
        differences: of a pilot pair, by query.
        test: a test of `stats.tests`.
        rng: where draws come from.
        difference: true mean difference, from 0.
        queries: drawn in each trial, at least 2.
        alpha: level of the two-sided test, in (0, 1).
        trials: how many, >= 1.
        executor: where to compute; `None` for here.

    Returns:
        Without a power where no differences are so large, and where the queries are too many.
    """
    chances = _tilt(differences, difference)
    if chances is None or queries > MOST_QUERIES:
        why = f"no difference of the pilot's pair lies beyond {difference:.4g}"
        if queries > MOST_QUERIES:
            why = f"more than {MOST_QUERIES:,} queries are not simulated"
        return Simulated(test=test, queries=queries, difference=difference, trials=trials, why=why)
    plan = (differences, chances, test, queries, alpha)
    blocks = map_blocks(_draw, plan, rng=rng, draws=trials, size=_BLOCK, executor=executor)
    won, lost = (sum(counts) for counts in zip(*blocks, strict=True))
    share = won / trials
    return Simulated(
        test=test,
        queries=queries,
        difference=difference,
        power=share,
        wrong=lost / trials,
        error=math.sqrt(share * (1 - share) / trials),
        trials=trials,
    )


_Plan = tuple[NDArray[np.float64], NDArray[np.float64], SimulatedTest, int, float]
"""Differences with their chances; the test, how many queries, and alpha."""


def _draw(plan: _Plan, rng: Generator, draws: int) -> tuple[int, int]:
    """Return how many query sets are significant in the right direction, and in the wrong one."""
    differences, chances, test, queries, alpha = plan
    won = lost = 0
    for _ in range(draws):
        found = run_test(test, np.zeros(queries), rng.choice(differences, queries, p=chances))
        if found.p is not None and found.p <= alpha:
            right = (found.difference or 0.0) > 0
            won, lost = won + right, lost + (not right)
    return won, lost


def _tilt(differences: NDArray[np.float64], mean: float) -> NDArray[np.float64] | None:
    """Probabilities of the differences under which their mean is as asked; `None` if none are."""
    if not differences.min() < mean < differences.max():
        return None
    # In units of the deviation; beyond 700, exp leaves float64.
    unit = (differences - mean) / differences.std()
    limit = 700 / np.abs(unit).max()
    from scipy.optimize import brentq  # noqa: PLC0415 - slow to load

    angle = brentq(lambda one: _chances(unit, one) @ unit, -limit, limit)
    return _chances(unit, float(angle))


def _chances(unit: NDArray[np.float64], angle: float) -> NDArray[np.float64]:
    heights = angle * unit
    raised = np.exp(heights - heights.max())
    chances: NDArray[np.float64] = raised / raised.sum()
    return chances


@dataclass(frozen=True, slots=True, kw_only=True)
class PowerOptions:
    """Options of `heldout analyse power`."""

    differences: Annotated[
        tuple[float, ...],
        Opt(
            "Difference to plan for; can be given many times.",
            names=("--difference",),
            metavar="D",
        ),
    ] = ()
    queries: Annotated[
        tuple[int, ...],
        Opt(
            "Number of queries to plan with [as many as the pilot has]; can be given many times.",
            names=("--size",),
            metavar="N",
        ),
    ] = ()
    tests: Annotated[
        tuple[SimulatedTest, ...],
        Opt("Test to simulate [all three]; can be given many times.", names=("--test",)),
    ] = ()
    alpha: Alpha = 0.05
    power: Annotated[float, Opt("Power to reach.", above=0, below=1)] = 0.8
    level: Level = 0.95
    trials: Annotated[
        int, Opt("Number of bootstrap samples of the pilot, and of simulated query sets.", least=1)
    ] = 1000


LADDER = (25, 50, 100, 200, 500, 1000, 2000, 5000, 10_000)
"""Numbers of queries that a plan looks at, besides those asked for."""


_TENTH = 10
_LEAST = 4
_SMALLEST = 3e-9
_LEAST_SIZE, _MOST_SIZE = 2, 10**15


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryPlan:
    """A number of queries and the difference that goes with it.

    Attributes:
        queries: how many; where `asked` is "difference", how many it takes.
        queries_low, queries_high: the same at the ends of the deviation's interval; equal to
            `queries` where they were asked for; `None` where there is no interval.
        difference: smallest true mean difference that is found; `None` where it is larger than
            the measure can differ.
        difference_low, difference_high: likewise, and `None` where there is no interval.
        asked: which of the two was given.
    """

    queries: int
    queries_low: int | None
    queries_high: int | None
    difference: float | None
    difference_low: float | None
    difference_high: float | None
    asked: Literal["queries", "difference"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Power:
    """What a board has to be like to tell systems apart.

    Attributes:
        systems, queries, pairs: of the pilot; pairs that never differ are left out.
        deviation: standard deviation of the difference by query, of the middle pair.
        deviation_low, deviation_high: its interval; `None` where the middle pair of some
            resampling does not differ.
        quartiles: of the deviations of all pairs.
        simulated_pair: the two systems of the pair that is simulated.
        simulated_deviation: its deviation.
        plans: by rising number of queries.
        wanted: those of them that were asked for.
        simulated: tests at the plans that were asked for.
        options: as asked for.
        largest: the largest difference that the measure can have; `None` where unknown.
        digest: of the pilot's scores.
    """

    systems: int
    queries: int
    pairs: int
    deviation: float
    deviation_low: float | None
    deviation_high: float | None
    quartiles: tuple[float, float]
    simulated_pair: tuple[str, str]
    simulated_deviation: float
    plans: tuple[QueryPlan, ...]
    wanted: tuple[QueryPlan, ...]
    simulated: tuple[Simulated, ...]
    options: PowerOptions
    largest: float | None
    digest: Digest


def plan_power(
    pilot: ScoreTable,
    rng: Generator,
    options: PowerOptions,
    *,
    largest: float | None = None,
    executor: Executor | None = None,
) -> Power:
    """Plan the size of a query set.

    Args:
        pilot: at least two systems on at least four queries, none missing.
        rng: where draws come from.
        options: differences above 0 and up to `largest`: how many queries each takes; queries, 2
            to 10^15 each: what they find; with neither, the pilot's own number. The power lies in
            (alpha, 1).
        largest: the largest difference that the measure can have; `None` where unknown.
        executor: where to compute; `None` for here.

    Raises:
        InputError: codes `too-few-systems`, `too-few-queries`, `missing-scores`,
            `power-option`, also where a difference takes more than 10^18 queries, and
            `no-spread` where half of the pairs never differ.
    """
    most = math.inf if largest is None else largest
    _check(options, most)
    matrix = score_matrix(pilot)
    if len(matrix.queries) < _LEAST:
        raise InputError.of(
            "too-few-queries",
            "scores",
            plural(len(matrix.queries), "query", "queries"),
            "a pilot of at least four",
            "fewer say next to nothing of how far differences vary",
        )
    values = matrix.values
    deviations = pair_deviations(values)
    spread = middle_spread(
        values, rng, level=options.level, trials=options.trials, executor=executor
    )
    if not spread.middle > 0:
        raise InputError.of("no-spread", "scores")
    if any(difference < spread.middle * _SMALLEST for difference in options.differences):
        least = min(options.differences)
        raise _bad_option(f"a difference of {least:g}", "one that takes at most some 10^18 queries")
    first, second = np.triu_indices(len(values), 1)
    near = np.argsort(np.abs(deviations - spread.middle), kind="stable")
    near = near[: math.ceil(len(near) / _TENTH)]
    means = values.mean(axis=1)
    at = near[np.argmin(np.abs(means[first[near]] - means[second[near]]))]
    asked = options.queries
    if not (options.queries or options.differences):
        asked = (values.shape[1],)
    plans = [_of_queries(n, spread, options, most) for n in sorted({*LADDER, *asked})]
    wanted = [plan for plan in plans if plan.queries in asked]
    planned = [_of_difference(one, spread, options) for one in options.differences]
    wanted += planned
    pair = values[first[at]] - values[second[at]]
    simulated = [
        simulate_power(
            pair,
            test,
            rng,
            difference=plan.difference,
            queries=plan.queries,
            alpha=options.alpha,
            trials=options.trials,
            executor=executor,
        )
        for plan in wanted
        if plan.difference is not None
        for test in options.tests or get_args(SimulatedTest)
    ]
    return Power(
        systems=len(values),
        queries=values.shape[1],
        pairs=int((deviations > 0).sum()),
        deviation=spread.middle,
        deviation_low=spread.low,
        deviation_high=spread.high,
        quartiles=(float(np.quantile(deviations, 0.25)), float(np.quantile(deviations, 0.75))),
        simulated_pair=(matrix.systems[second[at]], matrix.systems[first[at]]),
        simulated_deviation=float(deviations[at]),
        plans=tuple(sorted((*plans, *planned), key=lambda plan: (plan.queries, plan.asked))),
        wanted=tuple(wanted),
        simulated=tuple(simulated),
        options=options,
        largest=largest,
        digest=pilot.digest,
    )


def _of_queries(queries: int, spread: Spread, options: PowerOptions, most: float) -> QueryPlan:
    unit = detectable_difference(queries, 1.0, alpha=options.alpha, power=options.power)
    found, low, high = (
        None if deviation is None or unit * deviation > most else unit * deviation
        for deviation in (spread.middle, spread.low, spread.high)
    )
    return QueryPlan(
        queries=queries,
        queries_low=queries,
        queries_high=queries,
        difference=found,
        difference_low=low,
        difference_high=high,
        asked="queries",
    )


def _of_difference(difference: float, spread: Spread, options: PowerOptions) -> QueryPlan:
    def need(deviation: float) -> int:
        return queries_needed(difference, deviation, alpha=options.alpha, power=options.power)

    low, high = (None if end is None else need(end) for end in (spread.low, spread.high))
    return QueryPlan(
        queries=need(spread.middle),
        queries_low=low,
        queries_high=high,
        difference=difference,
        difference_low=difference,
        difference_high=difference,
        asked="difference",
    )


def _check(options: PowerOptions, largest: float) -> None:
    """Refuse what has no plan.

    Raises:
        InputError: code `power-option`.
    """
    alpha, power, differences = options.alpha, options.power, options.differences
    if not 0 < alpha < power < 1:
        raise _bad_option(f"alpha {alpha:g} and power {power:g}", "0 < alpha < power < 1")
    if not all(one > 0 for one in differences):
        raise _bad_option("a difference of 0 or less", "differences above 0")
    if any(one > largest for one in differences):
        found = "a difference that is larger than the measure can differ"
        raise _bad_option(found, f"at most {largest:g}")
    if not all(_LEAST_SIZE <= one <= _MOST_SIZE for one in options.queries):
        raise _bad_option("a number of queries without meaning", "from 2 up to 10^15")


def _bad_option(found: str, expected: str) -> InputError:
    return InputError.of("power-option", "power", found, expected)


def _analyse(scores: Scores, options: PowerOptions, draws: Draws) -> Answer:
    largest = None
    if scores.measure and not scores.transformed:
        largest = read_measure(scores.measure).largest
    rng, executor = draws.rng(), draws.executor
    result = plan_power(scores.table, rng, options, largest=largest, executor=executor)
    return Answer(
        answer=headline(result, measure=scores.measure),
        summary=(*summary(result), *scores.facts),
        tables=tables(result, measure=scores.measure),
        document=to_document(result) | scores.document,
        chart=lambda: chart(result),
        title=title(result),
    )


ANALYSIS = Analysis(
    name="power",
    help="""How many queries does a difference take, and what does a number of queries find?

    \b
    Example:
      heldout analyse power --runs 'pilot/*.gz' --qrels dev.qrels -m RR@10 --difference 0.02
    """,
    source="scores",
    options=PowerOptions,
    analyse=_analyse,
    chapter="How many queries a difference takes",
)


def headline(result: Power, *, measure: str = "") -> str:
    """Return what was asked for first: the queries of a difference, or the difference of queries.

    Args:
        result: the plan.
        measure: what was measured.
    """
    plan = next((one for one in result.wanted if one.asked == "difference"), result.wanted[0])
    found, with_power = f" {measure}" if measure else "", f"with power {result.options.power:g}"
    if plan.asked == "difference":
        return (
            f"A true difference of {plan.difference:g}{found} takes {plan.queries:,} queries to be "
            f"detected {with_power}."
        )
    if plan.difference is None:
        return (
            f"{plan.queries:,} queries detect no difference {with_power}: it would be larger than "
            "the measure can differ."
        )
    return (
        f"With {plan.queries:,} queries a true difference below {plan.difference:.4f}{found} is "
        f"not reliably detected (power {result.options.power:g})."
    )


def summary(result: Power) -> tuple[tuple[str, str], ...]:
    """Everything that was asked for, and how much differences vary.

    Args:
        result: the plan.
    """
    lines = [("plan", _say(plan, result.largest)) for plan in result.wanted]
    spread = (
        f"differences of two systems have a standard deviation of {result.deviation:.3f}"
        f"{_span(_score(result.deviation_low, 3), _score(result.deviation_high, 3))} in the middle "
        f"of {plural(result.pairs, 'pair')}"
    )
    return (*lines, ("spread", spread))


def tables(result: Power, *, measure: str = "") -> tuple[Table, ...]:
    """Return what numbers of queries find, and what simulation says of it.

    Args:
        result: the plan.
        measure: what was measured, for the heading.
    """
    plans = _plan_table(result, measure or "score")
    return (plans, _simulation_table(result)) if result.simulated else (plans,)


def title(result: Power) -> str:
    """Return what the picture shows."""
    return (
        "The smallest difference that a number of queries finds with power "
        f"{result.options.power:g} at level {result.options.alpha:g}"
    )


def chart(result: Power) -> Plot:
    """The smallest difference found over the number of queries, both on logarithmic axes."""
    plans = [plan for plan in result.plans if plan.asked == "queries"]
    middle, *ends = (
        [(plan.queries, found) for plan in plans if (found := getattr(plan, name)) is not None]
        for name in ("difference", "difference_low", "difference_high")
    )
    plot = Plot(
        x=log_axis([LADDER[0], LADDER[-1], *(plan.queries for plan in plans)], room=0.02),
        y=log_axis([found for line in (middle, *ends) for _, found in line]),
        head="smallest difference found",
        foot="queries",
    )
    for line in ends:
        plot.line(line, MUTED, dash=True)
    plot.line(middle)
    plot.dots([(x, y, f"{x:,} queries: {y:.4f}") for x, y in middle], "disc")
    plot.key("dashed", f"{result.options.level:.0%} interval", MUTED)
    return plot


def _say(plan: QueryPlan, largest: float | None) -> str:
    if plan.asked == "difference":
        span = _span(_count(plan.queries_low), _count(plan.queries_high))
        return f"a difference of {plan.difference:g} takes {plan.queries:,} queries{span}"
    if plan.difference is None:
        return f"{plan.queries:,} queries find none: larger than the measure can differ"
    high = _score(plan.difference_high, 4)
    if plan.difference_high is None and plan.difference_low is not None:
        high = f"more than {largest:g}"
    span = _span(_score(plan.difference_low, 4), high)
    return f"{plan.queries:,} queries find a difference of {plan.difference:.4f}{span}"


def _span(low: str, high: str) -> str:
    """An interval in brackets behind a number; nothing where there is none."""
    return f" ({low} to {high})" if low and high else ""


def _count(number: int | None) -> str:
    return "" if number is None else f"{number:,}"


def _score(number: float | None, digits: int) -> str:
    return "" if number is None else f"{number:.{digits}f}"


def _plan_table(result: Power, measure: str) -> Table:
    options = result.options
    rows: list[tuple[Cell, ...]] = []
    for plan in result.plans:
        given = plan.asked == "queries"
        known = (plan.difference_low, plan.difference_high) if given else (None, None)
        needed = (None, None) if given else (plan.queries_low, plan.queries_high)
        rows.append((plan.asked, plan.queries, *needed, plan.difference, *known))
    quartiles = f"{result.quartiles[0]:.3f} and {result.quartiles[1]:.3f}"
    return Table(
        title=f"Queries and differences, {measure}",
        columns=(
            Column(name="given"),
            *columns("count", "queries", "from", "to"),
            *columns("score", "difference", "from", "to"),
        ),
        rows=tuple(rows),
        notes=(
            f"From and to: {options.level:.0%} interval.",
            *_undefined(result),
        ),
        method=(
            (
                f"Found by a two-sided paired t test at {options.alpha:g} in {options.power:.0%} "
                "of samples, one comparison, none of a family; noncentral t."
            ),
            (
                f"Planned for the middle of {plural(result.pairs, 'pair')} of {result.systems} "
                f"pilot systems on {result.queries:,} queries; quartiles of the pairs' standard "
                f"deviations: {quartiles}. From and to: {options.level:.0%} interval of the "
                f"middle's, by {plural(options.trials, 'resampling')} of the pilot's queries."
            ),
        ),
    )


def _undefined(result: Power) -> list[str]:
    """Return why some numbers are missing."""
    notes = []
    if result.largest is not None and any(plan.difference_high is None for plan in result.plans):
        notes.append(
            f"Undefined: a difference that is larger than the measure can differ, "
            f"{result.largest:g}."
        )
    if result.deviation_low is None:
        notes.append(
            "No interval: in some resampling of the pilot's few queries the middle pair does not "
            "differ."
        )
    return notes


def _simulation_table(result: Power) -> Table:
    why = sorted({one.why for one in result.simulated if one.why})
    return Table(
        title="The same, simulated",
        columns=(
            Column(name="test"),
            Column(name="queries", form="count"),
            Column(name="difference", form="score"),
            *columns("share", "power", "error", "wrong", decimals=3),
        ),
        rows=tuple(
            (one.test, one.queries, one.difference, one.power, one.error, one.wrong)
            for one in result.simulated
        ),
        notes=(
            "Wrong: significant the other way; error: standard error of the simulation.",
            *(f"Undefined: {reason}." for reason in why),
        ),
        method=(
            (
                f"Differences of {result.simulated_pair[1]} and {result.simulated_pair[0]} "
                f"(standard deviation {result.simulated_deviation:.3f}), reweighted to the mean "
                f"planned for; {plural(result.simulated[0].trials, 'query set')}."
            ),
        ),
    )
