"""How many queries does a difference take? Planned from pilot runs, before a board opens.

What counts is how much the difference of two systems varies from query to query. It is measured on
the pairs of the pilot's systems; the middle pair (median) is planned for, and the quartiles of the
pairs are told. The pilot's queries are a sample too: the deviation gets an interval by resampling
them, and with it every number that is planned from it.

The plan is the paired t test's (`stats.power`). Whether t may be believed, and what another test
would find, is simulated: queries are drawn from the differences of one pair, reweighted so that
their mean is the one planned for. Of the tenth of pairs with deviations nearest to the middle it
is the pair with the smallest mean difference, which needs the least reweighting.
"""

import math
from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Annotated, Literal, get_args

import numpy as np
from numpy.random import Generator

from heldout.analyses.analysis import Analysis, Draws
from heldout.answers.answer import Answer, to_document
from heldout.errors import InputError, Problem, plural
from heldout.ids import Digest
from heldout.measures.spec import parse_measure
from heldout.options import Alpha, Level, Opt
from heldout.scores import ScoreTable
from heldout.scoring.scores import Scores
from heldout.stats.power import (
    Spread,
    detectable_difference,
    middle_spread,
    pair_deviations,
    queries_needed,
)
from heldout.validity.power_simulation import Simulated, SimulatedTest, simulate_power
from heldout.validity.score_matrix import score_matrix

LADDER = (25, 50, 100, 200, 500, 1000, 2000, 5000, 10_000)
"""Numbers of queries that a plan looks at, besides those asked for."""


_TENTH = 10
_LEAST = 4
_SMALLEST = 3e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
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
        alpha, power: of the two-sided test that is planned.
        level: of the intervals.
        trials: resamplings of the pilot's queries.
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
    plans: tuple[Plan, ...]
    wanted: tuple[Plan, ...]
    simulated: tuple[Simulated, ...]
    alpha: float
    power: float
    level: float
    trials: int
    largest: float | None
    digest: Digest


def plan_power(
    pilot: ScoreTable,
    rng: Generator,
    *,
    differences: Sequence[float] = (),
    queries: Sequence[int] = (),
    tests: Sequence[SimulatedTest] = ("t", "signed-rank", "sign"),
    alpha: float = 0.05,
    power: float = 0.8,
    level: float = 0.95,
    trials: int = 1000,
    largest: float | None = None,
    executor: Executor | None = None,
) -> Power:
    """Plan the size of a query set.

    Args:
        pilot: at least two systems on at least four queries, none missing.
        rng: where draws come from.
        differences: above 0 and up to `largest`, how many queries each takes.
        queries: 2 to 10^15 each, what they find; with neither, the pilot's own number.
        tests: those that are simulated at what was asked for.
        alpha: level of the two-sided test, in (0, 1).
        power: in (alpha, 1).
        level: of the intervals, in (0, 1).
        trials: resamplings of the pilot's queries, and simulated query sets, >= 1.
        largest: the largest difference that the measure can have; `None` where unknown.
        executor: where to compute; `None` for here.

    Raises:
        InputError: codes `too-few-systems`, `too-few-queries`, `missing-scores`,
            `power-option`, also where a difference takes more than 10^18 queries, and
            `no-spread` where half of the pairs never differ.
    """
    most = math.inf if largest is None else largest
    _check(differences, queries, alpha=alpha, power=power, largest=most)
    matrix = score_matrix(pilot)
    if len(matrix.queries) < _LEAST:
        raise _few_queries(len(matrix.queries))
    values = matrix.values
    deviations = pair_deviations(values)
    spread = middle_spread(values, rng, level=level, trials=trials, executor=executor)
    if not spread.middle > 0:
        raise _no_spread()
    if any(difference < spread.middle * _SMALLEST for difference in differences):
        raise _too_small(min(differences))
    first, second = np.triu_indices(len(values), 1)
    near = np.argsort(np.abs(deviations - spread.middle), kind="stable")
    near = near[: math.ceil(len(near) / _TENTH)]
    means = values.mean(axis=1)
    at = near[np.argmin(np.abs(means[first[near]] - means[second[near]]))]
    asked = tuple(queries) if queries or differences else (values.shape[1],)
    goal = (alpha, power)
    plans = [_of_queries(n, spread, goal, most) for n in sorted({*LADDER, *asked})]
    wanted = [plan for plan in plans if plan.queries in asked]
    planned = [_of_difference(difference, spread, goal) for difference in differences]
    wanted += planned
    pair = values[first[at]] - values[second[at]]
    simulated = [
        simulate_power(
            pair, test, rng, difference=plan.difference, queries=plan.queries, alpha=alpha,
            trials=trials, executor=executor,
        )
        for plan in wanted
        if plan.difference is not None
        for test in tests
    ]  # fmt: skip
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
        alpha=alpha,
        power=power,
        level=level,
        trials=trials,
        largest=largest,
        digest=pilot.digest,
    )


def _of_queries(queries: int, spread: Spread, goal: tuple[float, float], most: float) -> Plan:
    alpha, power = goal
    unit = detectable_difference(queries, 1.0, alpha=alpha, power=power)
    found, low, high = (
        None if deviation is None or unit * deviation > most else unit * deviation
        for deviation in (spread.middle, spread.low, spread.high)
    )
    return Plan(
        queries=queries,
        queries_low=queries,
        queries_high=queries,
        difference=found,
        difference_low=low,
        difference_high=high,
        asked="queries",
    )


def _of_difference(difference: float, spread: Spread, goal: tuple[float, float]) -> Plan:
    alpha, power = goal
    low, high = (
        None
        if deviation is None
        else queries_needed(difference, deviation, alpha=alpha, power=power)
        for deviation in (spread.low, spread.high)
    )
    return Plan(
        queries=queries_needed(difference, spread.middle, alpha=alpha, power=power),
        queries_low=low,
        queries_high=high,
        difference=difference,
        difference_low=difference,
        difference_high=difference,
        asked="difference",
    )


def _check(
    differences: Sequence[float],
    queries: Sequence[int],
    *,
    alpha: float,
    power: float,
    largest: float,
) -> None:
    least, most = 2, 10**15
    wrong = [
        (found, expected)
        for fits, found, expected in (
            (
                0 < alpha < power < 1,
                f"alpha {alpha:g} and power {power:g}",
                "0 < alpha < power < 1",
            ),
            (all(d > 0 for d in differences), "a difference of 0 or less", "differences above 0"),
            (
                not any(d > largest for d in differences),
                "a difference that is larger than the measure can differ",
                f"at most {largest:g}",
            ),
            (all(n >= least for n in queries), "fewer than two queries", "at least two"),
            (all(n <= most for n in queries), "a number of queries without meaning", "up to 10^15"),
        )
        if not fits
    ]
    if wrong:
        raise InputError(
            Problem(code="power-option", path="power", found=found, expected=expected)
            for found, expected in wrong
        )


def _few_queries(queries: int) -> InputError:
    return InputError(
        Problem(
            code="too-few-queries",
            path="scores",
            found=plural(queries, "query", "queries"),
            expected="a pilot of at least four",
            hint="fewer say next to nothing of how far differences vary",
        )
    )


def _too_small(difference: float) -> InputError:
    return InputError(
        Problem(
            code="power-option",
            path="power",
            found=f"a difference of {difference:g}",
            expected="one that takes at most some 10^18 queries",
        )
    )


def _no_spread() -> InputError:
    return InputError(
        Problem(
            code="no-spread",
            path="scores",
            found="half of the pairs have equal differences on every query",
            expected="a pilot whose systems differ",
            hint="leave out runs that are the same",
        )
    )


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


def _analyse(scores: Scores, options: PowerOptions, draws: Draws) -> Answer:
    from heldout.report.power import facts, spec, tables, title  # noqa: PLC0415 - it imports this

    largest = None
    if scores.measure and not scores.transformed:
        largest = parse_measure(scores.measure, path="-m").largest
    result = plan_power(
        scores.table,
        draws.rng(),
        differences=options.differences,
        queries=options.queries,
        tests=options.tests or get_args(SimulatedTest),
        alpha=options.alpha,
        power=options.power,
        level=options.level,
        trials=options.trials,
        largest=largest,
        executor=draws.executor,
    )
    return Answer(
        facts=(*facts(result), *scores.facts),
        tables=tables(result, measure=scores.measure),
        value=to_document(result) | scores.value,
        chart=lambda: spec(result),
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
