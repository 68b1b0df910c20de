"""A plan of power as tables, a picture and JSON."""

from dataclasses import asdict
from math import log10
from typing import Any

from heldout.analyses.power import LADDER, Plan, Power
from heldout.answers.table import Cell, Column, Table
from heldout.charts.labels import Label
from heldout.charts.layers import (
    INK,
    MUTED,
    Canvas,
    Frame,
    draw_dots,
    draw_line,
    draw_texts,
    join_layers,
)
from heldout.charts.ticks import Tick, log_ticks
from heldout.errors import plural

__all__ = ["facts", "spec", "tables", "title", "value"]

_WIDTH, _HEIGHT = 560, 300


def facts(result: Power) -> tuple[tuple[str, str], ...]:
    """The answer in a few lines: what was asked for.

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
    """What numbers of queries find, and what simulation says of it.

    Args:
        result: the plan.
        measure: what was measured, for the heading.
    """
    plans = _plan_table(result, measure or "score")
    return (plans, _simulation_table(result)) if result.simulated else (plans,)


def value(result: Power) -> dict[str, Any]:
    """The whole result for JSON."""
    return asdict(result)


def title(result: Power) -> str:
    """What the picture shows."""
    return (
        f"The smallest difference that a number of queries finds with power {result.power:g} at "
        f"level {result.alpha:g}"
    )


def spec(result: Power) -> dict[str, Any]:
    """The smallest difference found over the number of queries, both on logarithmic axes."""
    plans = [plan for plan in result.plans if plan.asked == "queries"]
    middle, *ends = (
        [
            (log10(plan.queries), log10(found))
            for plan, found in ((plan, getattr(plan, name)) for plan in plans)
            if found is not None
        ]
        for name in ("difference", "difference_low", "difference_high")
    )
    heights = [up for line in (middle, *ends) for _, up in line]
    x = (log10(min(LADDER[0], plans[0].queries)), log10(max(LADDER[-1], plans[-1].queries)))
    y = (min(heights), max(heights))
    frame = Frame(
        canvas=Canvas(width=_WIDTH, height=_HEIGHT, left=64, right=24, top=34, bottom=48),
        x=x,
        y=y,
        x_ticks=tuple(Tick(at=log10(n), label=f"{n:,}") for n in LADDER),
        y_ticks=log_ticks(y, most=8),
    )
    spots = [(at, up, f"{round(10**at):,} queries: {10**up:.4f}") for at, up in middle]
    up = Label(x=-54, y=-18, text="smallest difference found", align="left")
    below = Label(x=8, y=_HEIGHT - 12, text="queries", align="left")
    return join_layers(
        frame,
        [
            *(draw_line(line, frame, MUTED, dash=[4, 4]) for line in ends if line),
            draw_line(middle, frame, INK),
            draw_dots(spots, frame, "disc"),
            *draw_texts([up, below], MUTED),
        ],
    )  # fmt: skip


def _say(plan: Plan, largest: float | None) -> str:
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
            Column(name="queries", form="count"),
            Column(name="from", form="count"),
            Column(name="to", form="count"),
            Column(name="difference", form="score"),
            Column(name="from", form="score"),
            Column(name="to", form="score"),
        ),
        rows=tuple(rows),
        notes=(
            (
                f"Found by a two-sided paired t test at {result.alpha:g} in {result.power:.0%} of "
                "samples, one comparison, none of a family; noncentral t."
            ),
            (
                f"Planned for the middle of {plural(result.pairs, 'pair')} of "
                f"{result.systems} pilot "
                f"systems on {result.queries:,} queries; quartiles of the pairs' standard "
                f"deviations: {quartiles}. From and to: {result.level:.0%} interval of the "
                f"middle's, by {plural(result.trials, 'resampling')} of the pilot's queries."
            ),
            *_undefined(result),
        ),
    )


def _undefined(result: Power) -> list[str]:
    """Why some numbers are missing."""
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
            Column(name="power", form="share", decimals=3),
            Column(name="error", form="share", decimals=3),
            Column(name="wrong", form="share", decimals=3),
        ),
        rows=tuple(
            (one.test, one.queries, one.difference, one.power, one.error, one.wrong)
            for one in result.simulated
        ),
        notes=(
            (
                f"Differences of {result.simulated_pair[1]} and {result.simulated_pair[0]} "
                f"(standard deviation {result.simulated_deviation:.3f}), reweighted to the mean "
                f"planned for; {plural(result.simulated[0].trials, 'query set')}; "
                "wrong: significant the "
                "other way; error: standard error of the simulation."
            ),
            *(f"Undefined: {reason}." for reason in why),
        ),
    )
