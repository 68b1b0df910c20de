"""What deeper annotation might show, as tables and JSON."""

from collections.abc import Sequence
from typing import Any

from heldout.errors import plural
from heldout.report.table import Cell, Column, Table
from heldout.survivorship.depth_study import DepthStudy
from heldout.survivorship.extrapolation import Backtest, Outlook, Predicted

__all__ = ["outlook_facts", "outlook_tables", "outlook_value"]


def outlook_facts(outlook: Outlook, systems: Sequence[str]) -> list[tuple[str, str]]:
    """What is expected at the deepest depth, and whether the model held where it can be seen."""
    if outlook.why:
        return [("deeper", f"not extrapolated: {outlook.why}")]
    last = outlook.predicted[-1]
    told = [
        (
            "deeper",
            f"extrapolated to depth {last.depth}: {_say_count(last.queries)} queries with a label",
        )
    ]
    check = outlook.backtest
    if check is not None:
        held = _held(check)
        told.append(
            (
                "",
                (
                    f"the same model, fitted to depths 1 to {check.fitted}, has {held} of the "
                    f"{plural(1 + len(systems), 'figure')} of depth {check.predicted.depth} in its "
                    "intervals"
                ),
            )
        )
    return told


def outlook_tables(outlook: Outlook, study: DepthStudy) -> tuple[Table, ...]:
    """The extrapolation, and how the same model does within what was seen."""
    if outlook.why:
        return ()
    measure, systems = str(study.question.measure), study.scores.systems
    rows: list[tuple[Cell, ...]] = []
    for one in outlook.predicted:
        rows.append((f"{one.depth}", "queries", *_counts(one.queries)))
        rows += [
            (f"{one.depth}", f"{measure} {system}", found.value, found.low, found.high)
            for system, found in zip(systems, one.scores, strict=True)
        ]
    ahead = Table(
        title="Extrapolated: what these queries would show if annotated deeper",
        columns=(
            Column(name="depth"),
            Column(name="figure"),
            Column(name="expected", form="score"),
            Column(name="low", form="score"),
            Column(name="high", form="score"),
        ),
        rows=tuple(rows),
        notes=(
            (
                "an extrapolation, not a measurement: the chance that a query without a label "
                "gets one at the next place, and what those queries add to a score, carried on as "
                "lines in the logarithm of the place"
            ),
            (
                f"low, high: {study.question.level:.0%}, from {study.question.trials:,} draws of "
                "queries, the scatter of places about the lines, and the chance of the queries to "
                "come; not from an error of the model"
            ),
        ),
    )
    if outlook.backtest is None:
        return (ahead,)
    return (ahead, _check_table(outlook.backtest, measure, systems))


def outlook_value(outlook: Outlook, study: DepthStudy) -> dict[str, Any]:
    """The same for JSON."""
    systems = study.scores.systems
    check = outlook.backtest
    return {
        "why": outlook.why,
        "model": "logit of the hazard, and score added per query added, linear in log place",
        "trials": study.question.trials,
        "depths": [
            {
                "depth": one.depth,
                "queries": _value(one.queries),
                "scores": dict(zip(systems, map(_value, one.scores), strict=True)),
            }
            for one in outlook.predicted
        ],
        "backtest": None
        if check is None
        else {
            "fitted": check.fitted,
            "depth": check.predicted.depth,
            "queries": _value(check.predicted.queries) | {"observed": check.queries},
            "scores": {
                system: _value(found) | {"observed": seen}
                for system, found, seen in zip(
                    systems, check.predicted.scores, check.scores, strict=True
                )
            },
        },
    }


def _check_table(check: Backtest, measure: str, systems: Sequence[str]) -> Table:
    counts = _counts(check.predicted.queries)
    found = [
        (f"{measure} {system}", one, seen)
        for system, one, seen in zip(systems, check.predicted.scores, check.scores, strict=True)
    ]
    return Table(
        title=f"The same model fitted to depths 1 to {check.fitted}, at depth "
        f"{check.predicted.depth}, which is known",
        columns=(
            Column(name="figure"),
            Column(name="observed", form="score"),
            Column(name="expected", form="score"),
            Column(name="low", form="score"),
            Column(name="high", form="score"),
            Column(name="inside"),
        ),
        rows=(
            (
                "queries",
                f"{check.queries:,}",
                *counts,
                _inside_count(check),
            ),
            *(
                (name, seen, one.value, one.low, one.high, _say(_inside(one, seen)))
                for name, one, seen in found
            ),
        ),
        notes=("what is outside here shows an error of the model that no interval holds",),
    )


def _held(check: Backtest) -> int:
    pairs = zip(check.predicted.scores, check.scores, strict=True)
    inside = sum(_inside(one, seen) for one, seen in pairs)
    return inside + _inside(check.predicted.queries, check.queries)


def _inside(found: Predicted, seen: float) -> bool:
    return found.low <= seen <= found.high


def _inside_count(check: Backtest) -> str:
    return _say(_inside(check.predicted.queries, check.queries))


def _say(inside: bool) -> str:  # noqa: FBT001 - the answer itself
    return "yes" if inside else "no"


def _counts(found: Predicted) -> tuple[str, str, str]:
    """Whole queries among scores."""
    return f"{found.value:,.0f}", f"{found.low:,.0f}", f"{found.high:,.0f}"


def _say_count(found: Predicted) -> str:
    value, low, high = _counts(found)
    return f"{value} ({low} to {high})"


def _value(found: Predicted) -> dict[str, float]:
    return {"value": found.value, "low": found.low, "high": found.high}
