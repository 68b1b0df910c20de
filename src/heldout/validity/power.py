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
from typing import Literal

import numpy as np
from numpy.random import Generator

from heldout.errors import InputError, Problem
from heldout.ids import Digest
from heldout.scores import ScoreTable
from heldout.stats.power import detectable_difference, queries_needed
from heldout.stats.spread import Spread, middle_spread, pair_deviations
from heldout.validity.power_simulation import Simulated, SimulatedTest, simulate_power
from heldout.validity.score_matrix import score_matrix

__all__ = ["LADDER", "Plan", "Power", "plan_power"]

LADDER = (25, 50, 100, 200, 500, 1000, 2000, 5000, 10_000)
"""Numbers of queries that a plan looks at, besides those asked for."""


_TENTH = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A number of queries and the difference that goes with it.

    Attributes:
        queries: how many; where `asked` is "difference", how many it takes.
        queries_low, queries_high: the same at the ends of the deviation's interval; equal to
            `queries` where they were asked for.
        difference: smallest true mean difference that is found.
        difference_low, difference_high: likewise.
        asked: which of the two was given.
    """

    queries: int
    queries_low: int
    queries_high: int
    difference: float
    difference_low: float
    difference_high: float
    asked: Literal["queries", "difference"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Power:
    """What a board has to be like to tell systems apart.

    Attributes:
        systems, queries, pairs: of the pilot; pairs that never differ are left out.
        deviation: standard deviation of the difference by query, of the middle pair.
        deviation_low, deviation_high: its interval.
        quartiles: of the deviations of all pairs.
        simulated_pair: the two systems of the pair that is simulated.
        simulated_deviation: its deviation.
        plans: by rising number of queries.
        simulated: tests at the plans that were asked for.
        alpha, power: of the two-sided test that is planned.
        level: of the intervals.
        trials: resamplings of the pilot's queries.
        digest: of the pilot's scores.
    """

    systems: int
    queries: int
    pairs: int
    deviation: float
    deviation_low: float
    deviation_high: float
    quartiles: tuple[float, float]
    simulated_pair: tuple[str, str]
    simulated_deviation: float
    plans: tuple[Plan, ...]
    simulated: tuple[Simulated, ...]
    alpha: float
    power: float
    level: float
    trials: int
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
    executor: Executor | None = None,
) -> Power:
    """Plan the size of a query set.

    Args:
        pilot: at least two systems on at least two queries, none missing.
        rng: where draws come from.
        differences: above 0, how many queries each takes.
        queries: at least 2 each, what they find; with neither, the pilot's own number.
        tests: those that are simulated at what was asked for.
        alpha: level of the two-sided test, in (0, 1).
        power: in (alpha, 1).
        level: of the intervals, in (0, 1).
        trials: resamplings of the pilot's queries, and simulated query sets, >= 1.
        executor: where to compute; `None` for here.

    Raises:
        InputError: codes `too-few-systems`, `too-few-queries`, `missing-scores`,
            `power-option`, and `no-spread` where half of the pairs never differ.
    """
    _check(differences, queries, alpha=alpha, power=power)
    matrix = score_matrix(pilot)
    values = matrix.values
    deviations = pair_deviations(values)
    spread = middle_spread(values, rng, level=level, trials=trials, executor=executor)
    if not spread.middle > 0:
        raise _no_spread()
    first, second = np.triu_indices(len(values), 1)
    near = np.argsort(np.abs(deviations - spread.middle), kind="stable")
    near = near[: math.ceil(len(near) / _TENTH)]
    means = values.mean(axis=1)
    at = near[np.argmin(np.abs(means[first[near]] - means[second[near]]))]
    asked = tuple(queries) if queries or differences else (values.shape[1],)
    goal = (alpha, power)
    plans = [_of_queries(n, spread, goal) for n in sorted({*LADDER, *asked})]
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
        simulated=tuple(simulated),
        alpha=alpha,
        power=power,
        level=level,
        trials=trials,
        digest=pilot.digest,
    )


def _of_queries(queries: int, spread: Spread, goal: tuple[float, float]) -> Plan:
    alpha, power = goal
    unit = detectable_difference(queries, 1.0, alpha=alpha, power=power)
    return Plan(
        queries=queries,
        queries_low=queries,
        queries_high=queries,
        difference=unit * spread.middle,
        difference_low=unit * spread.low,
        difference_high=unit * spread.high,
        asked="queries",
    )


def _of_difference(difference: float, spread: Spread, goal: tuple[float, float]) -> Plan:
    alpha, power = goal
    needed = [
        queries_needed(difference, deviation, alpha=alpha, power=power)
        for deviation in (spread.middle, spread.low, spread.high)
    ]
    return Plan(
        queries=needed[0],
        queries_low=needed[1],
        queries_high=needed[2],
        difference=difference,
        difference_low=difference,
        difference_high=difference,
        asked="difference",
    )


def _check(
    differences: Sequence[float], queries: Sequence[int], *, alpha: float, power: float
) -> None:
    least = 2
    wrong = [
        (found, expected)
        for fits, found, expected in (
            (
                0 < alpha < power < 1,
                f"alpha {alpha:g} and power {power:g}",
                "0 < alpha < power < 1",
            ),
            (all(d > 0 for d in differences), "a difference of 0 or less", "differences above 0"),
            (all(n >= least for n in queries), "fewer than two queries", "at least two"),
        )
        if not fits
    ]
    if wrong:
        raise InputError(
            Problem(code="power-option", path="power", found=found, expected=expected)
            for found, expected in wrong
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
