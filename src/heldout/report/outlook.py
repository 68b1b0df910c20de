"""What deeper annotation might show, as tables and JSON."""

from collections.abc import Sequence
from typing import Any

from heldout.answers.table import UNDEFINED, Cell, Column, Table
from heldout.errors import plural
from heldout.survivorship.depths.depth_study import DepthStudy
from heldout.survivorship.depths.extrapolation import Backtest, Outlook, Predicted

__all__ = ["outlook_facts", "outlook_tables", "outlook_value"]

_FAR = 2
_CONSTANT = "all its scores are the same: nothing tells how they would vary"
_DASH = f"{UNDEFINED}: {_CONSTANT}"


def outlook_facts(outlook: Outlook) -> list[tuple[str, str]]:
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
        held, figures = _held(check)
        told.append(
            (
                "",
                (
                    f"the same model, fitted to depths 1 to {check.fitted}, has {held} of the "
                    f"{plural(figures, 'figure')} of depth {check.predicted.depth} in its "
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
            (f"{one.depth}", f"{measure} {system}", *_ends(found))
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
            *_warnings(outlook, study),
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
            *([_DASH] if None in outlook.predicted[-1].scores else []),
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
        "warnings": _warnings(outlook, study),
        "depths": [
            {
                "depth": one.depth,
                "queries": _value(one.queries),
                "scores": dict(zip(systems, map(_value, one.scores), strict=True)),
            }
            for one in outlook.predicted
        ],
        "backtest_why": outlook.backtest_why,
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
                (name, seen, *_ends(one), None if one is None else _say(_inside(one, seen)))
                for name, one, seen in found
            ),
        ),
        notes=(
            "what is outside here shows an error of the model that no interval holds",
            *([_DASH] if None in check.predicted.scores else []),
        ),
    )


def _warnings(outlook: Outlook, study: DepthStudy) -> list[str]:
    """What is said of depths far beyond those that were seen."""
    last = study.scores.depths[-1]
    if not outlook.predicted or outlook.predicted[-1].depth <= _FAR * last:
        return []
    return [
        (
            f"depth {outlook.predicted[-1].depth} is more than {_FAR} times as deep as anybody "
            "looked: nothing here tells whether the lines stay lines so far, and no interval holds "
            "that"
        )
    ]


def _held(check: Backtest) -> tuple[int, int]:
    """Figures inside their intervals, of how many."""
    pairs = zip(check.predicted.scores, check.scores, strict=True)
    inside = [
        _inside(check.predicted.queries, check.queries),
        *(_inside(one, seen) for one, seen in pairs if one is not None),
    ]
    return sum(inside), len(inside)


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


def _ends(found: Predicted | None) -> tuple[Cell, Cell, Cell]:
    return (None, None, None) if found is None else (found.value, found.low, found.high)


def _value(found: Predicted | None) -> dict[str, Any]:
    value, low, high = _ends(found)
    return {"value": value, "low": low, "high": high, "why": _CONSTANT if found is None else ""}
