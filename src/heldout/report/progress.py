"""Progress of a board as tables, a picture and JSON."""

from collections.abc import Mapping
from typing import Any

from heldout.analyses.progress import TESTS, Comparison, Progress
from heldout.answers.table import Cell, Column, Table
from heldout.charts.labels import cut
from heldout.charts.layers import Canvas
from heldout.charts.plots import Names, Point, progress_spec

__all__ = ["spec", "tables", "title", "value"]

_CANVAS = Canvas(width=930, height=360, left=52, label=36)
_NAME = 44
_ALPHA = 0.05


def tables(result: Progress) -> tuple[Table, ...]:
    """The line of best-so-far and, where there are scores by query, the comparisons."""
    line = _line_table(result)
    return (line, _comparison_table(result)) if result.comparisons else (line,)


def title(result: Progress) -> str:
    """What the picture shows."""
    return f"{result.board}: {result.view} {result.measure} over time, with the best so far"


def spec(result: Progress, *, find: str = "", canvas: Canvas = _CANVAS) -> dict[str, Any]:
    """Score over date with the stepped line of the best so far.

    Args:
        result: what to draw.
        find: text of descriptions to show apart, upper and lower case alike; "" for none.
        canvas: how large.
    """
    steps = {step.entry.id: step for step in result.line}
    starred = {one for one, step in steps.items() if _is_significant(step.p_then)}
    points = [
        Point(
            label=("★ " if entry.id in starred else "") + entry.name,
            day=entry.day,
            score=result.scores[entry.id],
            record=entry.id in steps,
            baseline=entry.baseline,
            match=(find.casefold() in entry.description.casefold()) if find else None,
        )
        for entry in result.entries
    ]
    key = ["diamonds: best so far", "circles: others"]
    if find:
        key.append(f"filled: “{cut(find, 24)}”")
    if starred:
        key.append("★ significant when it came")
    names = Names(y=f"{result.view} {result.measure}", key=" · ".join(key))
    until = max(entry.day for entry in result.entries)
    return progress_spec(points, canvas, until=until, names=names)


def value(result: Progress) -> dict[str, Any]:
    """The whole result for JSON."""
    return {
        "board": result.board,
        "view": result.view,
        "measure": result.measure,
        "entries": sum(not entry.baseline for entry in result.entries),
        "baselines": sum(entry.baseline for entry in result.entries),
        "queries": result.queries,
        "tested": bool(result.comparisons),
        "decide": result.decide,
        "alternative": "two-sided",
        "correction": "holm",
        "level": result.level,
        "bar": result.bar,
        "line": [
            {
                "id": step.entry.id,
                "date": step.entry.day.isoformat(),
                "description": step.entry.description,
                "score": step.score,
                "displaced": step.displaced,
                "gain": step.gain,
                "p": step.p,
                "p_then": step.p_then,
                "family_then": step.family_then,
                "why": step.why,
            }
            for step in result.line
        ],
        "top": list(result.top),
        "family": len(result.comparisons),
        "comparisons": [
            {
                "a": one.a,
                "b": one.b,
                "kinds": list(one.kinds),
                "difference": one.difference,
                "low": one.low,
                "high": one.high,
                "p": {name.replace("-", "_"): one.p[name] for name in TESTS},
                "p_corrected": one.p_corrected,
                "why": one.why,
            }
            for one in result.comparisons
        ],
        "points": [
            {
                "id": entry.id,
                "date": entry.day.isoformat(),
                "score": result.scores[entry.id],
                "baseline": entry.baseline,
            }
            for entry in result.entries
        ],
        "digest": result.digest,
    }


def _is_significant(p: float | None) -> bool:
    return p is not None and p < _ALPHA


def _line_table(result: Progress) -> Table:
    tested = bool(result.comparisons)
    columns = [
        Column(name="", form="text"),
        Column(name="date", form="text"),
        Column(name="system", form="text"),
        Column(name=result.measure, form="score"),
        Column(name="gain", form="difference"),
    ]
    if tested:
        columns += [
            Column(name="p", form="p"),
            Column(name="corrected then", form="p"),
            Column(name="family then", form="count"),
        ]
    names = _names(result)
    rows: list[tuple[Cell, ...]] = []
    for step in result.line:
        cells: list[Cell] = [
            names[step.entry.id],
            step.entry.day.isoformat(),
            cut(step.entry.name, _NAME),
            step.score,
            step.gain,
        ]
        rows.append((*cells, step.p, step.p_then, step.family_then) if tested else tuple(cells))
    return Table(
        title="Best so far",
        columns=tuple(columns),
        rows=tuple(rows),
        notes=tuple(_line_notes(result, tested=tested)),
    )


def _line_notes(result: Progress, *, tested: bool) -> list[str]:
    bar = "baselines stand before all entries, whatever their dates" if result.bar else ""
    notes = [f"Gain over the best before; {bar or 'baselines are not in the way'}."]
    if tested:
        notes.append(
            f"p of the {result.decide} test against the best before, two-sided; corrected then by "
            "Holm over every submission up to its own, each against the best before it."
        )
    else:
        notes.append("Means alone are known: nothing is tested.")
    undefined = [f"{_names(result)[s.entry.id]}: {s.why}" for s in result.line if tested and s.why]
    return notes + ([f"No p for {'; '.join(undefined)}."] if undefined else [])


def _names(result: Progress) -> Mapping[str, str]:
    """R1, R2 and so on for the line, as the paper has it, and ids for others."""
    line = {step.entry.id: f"R{n}" for n, step in enumerate(result.line, 1)}
    return {entry.id: entry.id for entry in result.entries} | line


def _comparison_table(result: Progress) -> Table:
    names = _names(result)
    share = f"{result.level:.0%}"
    return Table(
        title="Steps and top three",
        columns=(
            Column(name="A", form="text"),
            Column(name="B", form="text"),
            Column(name="B - A", form="difference"),
            Column(name=f"{share} from", form="difference"),
            Column(name="to", form="difference"),
            *(Column(name=f"p {name}", form="p") for name in TESTS),
            Column(name="corrected", form="p"),
        ),
        rows=tuple(_comparison_row(one, names) for one in result.comparisons),
        notes=(
            (
                f"Corrected: {result.decide}, two-sided, by Holm over this family of "
                f"{len(result.comparisons)} comparisons: each on the line against the first and "
                "against the best before it, and the best three of today with each other."
            ),
            (
                f"Interval of the difference of means by t, each alone, over {result.queries:,} "
                "queries; the other p-values are before correction."
            ),
        ),
    )


def _comparison_row(one: Comparison, names: Mapping[str, str]) -> tuple[Cell, ...]:
    return (
        cut(names[one.a], _NAME),
        cut(names[one.b], _NAME),
        one.difference,
        one.low,
        one.high,
        *(one.p[name] for name in TESTS),
        one.p_corrected,
    )
