"""How many queries does a difference take? Planned from pilot runs, before a board opens.

What counts is how much the difference of two systems varies from query to query. It is measured on
the pairs of the pilot's systems; the middle pair (median) is planned for, and the quartiles of the
pairs are reported. The pilot's queries are a sample too: the deviation gets an interval by
resampling them, and with it every number that is planned from it.

The plan is the paired t test's (`stats.power`).
"""

import math
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
from numpy.random import Generator

from heldout.analyses import analysis
from heldout.answers import texts
from heldout.answers.answer import Answer, to_document
from heldout.answers.table import Cell, Table
from heldout.charts import axes, svg
from heldout.charts.plot import Plot
from heldout.errors import InputError, plural
from heldout.ids import Digest
from heldout.options import Alpha, Level, Opt
from heldout.scoring import names, sources, table
from heldout.stats.power import (
    Spread,
    detectable_difference,
    middle_spread,
    pair_deviations,
    queries_needed,
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
    alpha: Alpha = 0.05
    power: Annotated[float, Opt("Power to reach.", above=0, below=1)] = 0.8
    level: Level = 0.95
    trials: Annotated[int, Opt("Number of bootstrap samples of the pilot's queries.", least=1)] = (
        1000
    )


LADDER = (25, 50, 100, 200, 500, 1000, 2000, 5000, 10_000)
"""Numbers of queries that a plan looks at, besides those asked for."""


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
        plans: by rising number of queries.
        wanted: those of them that were asked for.
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
    plans: tuple[QueryPlan, ...]
    wanted: tuple[QueryPlan, ...]
    options: PowerOptions
    largest: float | None
    digest: Digest


def plan_power(
    pilot: table.ScoreTable,
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
    matrix = table.score_matrix(pilot)
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
    asked = options.queries
    if not (options.queries or options.differences):
        asked = (values.shape[1],)
    plans = [_of_queries(n, spread, options, most) for n in sorted({*LADDER, *asked})]
    wanted = [plan for plan in plans if plan.queries in asked]
    planned = [_of_difference(one, spread, options) for one in options.differences]
    wanted += planned
    return Power(
        systems=len(values),
        queries=values.shape[1],
        pairs=int((deviations > 0).sum()),
        deviation=spread.middle,
        deviation_low=spread.low,
        deviation_high=spread.high,
        quartiles=(float(np.quantile(deviations, 0.25)), float(np.quantile(deviations, 0.75))),
        plans=tuple(sorted((*plans, *planned), key=lambda plan: (plan.queries, plan.asked))),
        wanted=tuple(wanted),
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


def _analyse(scores: sources.Scores, options: PowerOptions, draws: analysis.Draws) -> Answer:
    largest = None
    if scores.measure and not scores.transformed:
        largest = names.read_measure(scores.measure).largest
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


ANALYSIS = analysis.Analysis(
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
    return texts.write("power.headline", plan=plan, measure=measure, power=result.options.power)


def summary(result: Power) -> tuple[tuple[str, str], ...]:
    """Everything that was asked for, and how much differences vary.

    Args:
        result: the plan.
    """
    return texts.write_facts("power.summary", result=result)


def tables(result: Power, *, measure: str = "") -> tuple[Table, ...]:
    """Return what numbers of queries find.

    Args:
        result: the plan.
        measure: what was measured, for the heading.
    """
    return (_plan_table(result, measure or "score"),)


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
        x=axes.log_axis([LADDER[0], LADDER[-1], *(plan.queries for plan in plans)], room=0.02),
        y=axes.log_axis([found for line in (middle, *ends) for _, found in line]),
        head="smallest difference found",
        foot="queries",
    )
    for line in ends:
        plot.line(line, svg.MUTED, dash=True)
    plot.line(middle)
    plot.dots([(x, y, f"{x:,} queries: {y:.4f}") for x, y in middle], "disc")
    plot.key("dashed", f"{result.options.level:.0%} interval", svg.MUTED)
    return plot


def _plan_table(result: Power, measure: str) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for plan in result.plans:
        given = plan.asked == "queries"
        known = (plan.difference_low, plan.difference_high) if given else (None, None)
        needed = (None, None) if given else (plan.queries_low, plan.queries_high)
        rows.append((plan.asked, plan.queries, *needed, plan.difference, *known))
    return texts.write_table("power.plans", tuple(rows), result=result, measure=measure)
