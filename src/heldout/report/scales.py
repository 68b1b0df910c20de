"""A measure's scale as tables, a picture and JSON."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from heldout.analyses.scales import Scale
from heldout.answers.table import Cell, Column, Table
from heldout.charts.labels import Label
from heldout.charts.layers import (
    MUTED,
    Canvas,
    Frame,
    Layer,
    draw_dots,
    draw_line,
    draw_strokes,
    draw_texts,
    join_layers,
)
from heldout.charts.ticks import score_span, score_ticks

__all__ = ["facts", "spec", "tables", "title", "value"]

_SHOWN = 24
_LISTS = 64
_DRAWN = 4096
_CIRCLES = 40


def facts(scale: Scale) -> tuple[tuple[str, str], ...]:
    """The answer in a few lines.

    Args:
        scale: what was found.
    """
    count = len(scale.values)
    spaced = "equally spaced: an interval scale on these lists"
    if not scale.equally_spaced:
        spaced = f"gaps from {min(scale.gaps):.4g} to {max(scale.gaps):.4g}: not an interval scale"
    return (
        ("measure", str(scale.universe.measure)),
        ("lists", _lists(scale)),
        ("values", f"{count:,} distinct, {spaced}"),
    )


def tables(scale: Scale) -> tuple[Table, ...]:
    """The values with their gaps, what breaks solvability, and the lists where they are few."""
    found = [_value_table(scale)]
    if scale.violations:
        found.append(_violation_table(scale))
    if 0 < len(scale.listed) <= _LISTS:
        found.append(_list_table(scale))
    return tuple(found)


def value(scale: Scale) -> dict[str, Any]:
    """The whole result for JSON."""
    return {
        "measure": str(scale.universe.measure),
        "length": scale.universe.length,
        "supply": {str(grade): count for grade, count in scale.universe.supply.items()},
        "values": list(scale.values),
        "fractions": None if scale.fractions is None else [str(one) for one in scale.fractions],
        "gaps": list(scale.gaps),
        "equally_spaced": scale.equally_spaced,
        "violations": None
        if scale.violations is None
        else [
            {"low": one.low, "high": one.high, "gap": one.gap, "missing": list(one.missing)}
            for one in scale.violations
        ],
        "lists": [{"list": list(grades), "value": found} for grades, found in scale.listed],
    }


def title(scale: Scale) -> str:
    """What the picture shows."""
    return f"The {len(scale.values):,} values of {scale.universe.measure} on {_lists(scale)}"


def spec(scale: Scale) -> dict[str, Any]:
    """Every value on a line: circles, or thin strokes where these would cover each other.

    Of very many values evenly chosen ones.
    """
    step = -(-len(scale.values) // _DRAWN)
    values = scale.values[::step]
    x = score_span(values)
    frame = Frame(
        canvas=Canvas(width=600, height=60, left=24, right=24, top=34, bottom=32),
        x=x,
        y=(0.0, 1.0),
        x_ticks=score_ticks(x, most=9),
        y_ticks=(),
    )
    head = Label(x=-10, y=-18, text=str(scale.universe.measure), align="left")
    return join_layers(
        frame,
        [
            draw_line([(x[0], 0.5), (x[1], 0.5)], frame, MUTED, dash=[1, 0]),
            _draw_values(values, frame),
            *draw_texts([head], MUTED),
        ],
    )


def _draw_values(values: Sequence[float], frame: Frame) -> Layer:
    if len(values) > _CIRCLES:
        return draw_strokes([(one, f"{one:.4f}") for one in values], frame, MUTED)
    return draw_dots([(one, 0.5, f"{one:.4f}") for one in values], frame, "circle")


def _lists(scale: Scale) -> str:
    supply = scale.universe.supply
    length = scale.universe.length
    scarce = [f"{count} of grade {grade}" for grade, count in supply.items() if count < length]
    grades = ", ".join(str(grade) for grade in (0, *supply))
    told = f"all lists of {length:,} documents of grades {grades}"
    return f"{told}, at most {' and '.join(scarce)}" if scarce else told


def _value_table(scale: Scale) -> Table:
    numbers = Counter(round(found, 12) for _, found in scale.listed)
    gaps: Sequence[float | None] = (*scale.gaps, None)
    rows: list[tuple[Cell, ...]] = []
    for place, found in enumerate(scale.values[:_SHOWN]):
        exact = "" if scale.fractions is None else str(scale.fractions[place])
        rows.append((exact, found, gaps[place], numbers[round(found, 12)] or None))
    hidden = len(scale.values) - len(rows)
    notes = ["Gap: to the next lower value. Lists: how many have the value, where all are few."]
    if hidden:
        notes.append(f"{hidden:,} lower values are left out here; all of them with --json.")
    return Table(
        title=f"Values of {scale.universe.measure}",
        columns=(
            Column(name="exactly"),
            Column(name="value", form="score"),
            Column(name="gap", form="score"),
            Column(name="lists", form="count"),
        ),
        rows=tuple(rows),
        notes=tuple(notes),
    )


def _violation_table(scale: Scale) -> Table:
    found = scale.violations or ()
    shown = found[:_SHOWN]
    notes = [
        (
            "Solvability asks that a gap between two values can be laid off from the lowest and "
            "from the highest value; missing is where no list has the value it leads to."
        )
    ]
    if len(found) > len(shown):
        notes.append(f"The {len(shown)} smallest of {len(found):,} such gaps; all with --json.")
    return Table(
        title="Gaps that break the solvability condition",
        columns=(
            Column(name="between", form="score"),
            Column(name="and", form="score"),
            Column(name="gap", form="score"),
            Column(name="missing"),
        ),
        rows=tuple(
            (one.low, one.high, one.gap, ", ".join(f"{value:.4f}" for value in one.missing))
            for one in shown
        ),
        notes=tuple(notes),
    )


def _list_table(scale: Scale) -> Table:
    return Table(
        title="Every list",
        columns=(Column(name="grades, from the top"), Column(name="value", form="score")),
        rows=tuple((" ".join(map(str, grades)), found) for grades, found in scale.listed),
    )
