"""Means of A and of B by the measures that were asked for, as a table and as JSON."""

from collections.abc import Mapping
from typing import Any

from heldout.answers.table import Cell, Column, Table, format_p
from heldout.errors import plural
from heldout.stats.exact import DECIMALS
from heldout.validity.mean_differences import MeanDifference, MeanDifferences

__all__ = ["mean_facts", "mean_tables", "mean_values"]


def mean_facts(found: MeanDifferences, *, alpha: float) -> tuple[tuple[str, str], ...]:
    """The answer for each measure that was asked for, in a line; none of no measure.

    Args:
        found: the differences.
        alpha: significance level, for the corrected p.
    """
    lines = [_tell(one, found, alpha) for one in found.differences]
    return tuple(("" if number else "answer", line) for number, line in enumerate(lines))


def _tell(one: MeanDifference, found: MeanDifferences, alpha: float) -> str:
    test = one.test
    if test.p is None or test.difference is None or test.low is None or test.high is None:
        return f"no test on {one.measure}: A {one.a:.4f}, B {one.b:.4f}; {test.why}"
    by = "crossed t" if found.grouped else "t"
    several = found.correction != "none" and len(found.differences) > 1
    corrected = f", corrected {format_p(one.corrected)}" if several else ""
    interval = f"{found.level:.0%} interval {test.low:+.4f} to {test.high:+.4f}"
    winner = one.favours(alpha)
    said = f"{winner} is better on" if winner else "no significant difference on"
    lower = " (lower is better)" if one.better == "lower" else ""
    return (
        f"{said} {one.measure}{lower}: B - A {test.difference:+.4f} ({interval}), "
        f"p {format_p(test.p)} by {by}{corrected}"
    )


def mean_tables(found: MeanDifferences) -> tuple[Table, ...]:
    """Both means by each measure, and what can be said of their difference; none of no measure."""
    return (_table(found),) if found.differences else ()


def mean_values(found: MeanDifferences, *, alpha: float = 0.05) -> list[dict[str, Any]]:
    """The whole result for JSON, an entry for each measure.

    Args:
        found: the differences.
        alpha: significance level, for the corrected p.
    """
    return [_entry(one, found, alpha) for one in found.differences]


def _table(found: MeanDifferences) -> Table:
    queries = found.differences[0].queries
    over = plural(queries, "query", "queries")
    return Table(
        title=f"Means over {over}" if queries == 1 else f"Means over all {over}",
        columns=(
            Column(name="measure"),
            Column(name="A", form="score"),
            Column(name="B", form="score"),
            Column(name=""),
            Column(name="B - A", form="difference"),
            Column(name="low", form="difference"),
            Column(name="high", form="difference"),
            Column(name="p (crossed t)" if found.grouped else "p (t)", form="p"),
            Column(name="p (sign flips)", form="p"),
            Column(name="corrected", form="p"),
        ),
        rows=tuple(_row(one) for one in found.differences),
        notes=(*_reasons(found), *_notes(found)),
    )


def _row(one: MeanDifference) -> tuple[Cell, ...]:
    test = one.test
    difference = round(test.difference or 0.0, DECIMALS)
    return (
        one.measure,
        one.a,
        one.b,
        "lower" if difference < 0 else "higher" if difference > 0 else "",
        test.difference,
        test.low,
        test.high,
        test.p,
        one.flips.p,
        one.corrected,
    )


def _reasons(found: MeanDifferences) -> list[str]:
    """Why a test is undefined; of groups sign flips always are."""
    measures: dict[str, list[str]] = {}
    for one in found.differences:
        why = (None if found.grouped else one.flips.why) or one.test.why
        if why:
            measures.setdefault(why, []).append(one.measure)
    return [f"{', '.join(names)}: {why}" for why, names in measures.items()]


def _notes(found: MeanDifferences) -> list[str]:
    lower = [one.measure for one in found.differences if one.better == "lower"]
    notes = [f"lower is better: {', '.join(lower)}"] if lower else []
    interval = f"low and high at {found.level:.0%}, not corrected"
    if found.grouped:
        notes.append(
            "crossed-t: the mean difference over all pairs of a seed of A and one of B, with seeds "
            f"and queries as samples; {interval}; no sign flips: they know queries alone"
        )
    else:
        notes.append(
            f"t: the paired test and its interval, {interval}; sign flips: {found.flips:,} drawn, "
            "not corrected"
        )
    return [*notes, _tell_correction(found), _tell_verdict(found)]


def _tell_correction(found: MeanDifferences) -> str:
    test = "crossed t" if found.grouped else "t"
    if found.correction == "none":
        return f"corrected: no correction of the p of {test}"
    measures = plural(len(found.differences), "measure")
    return f"corrected: {found.correction.capitalize()} over {measures}, the p of {test}"


def _tell_verdict(found: MeanDifferences) -> str:
    means = "this mean" if len(found.differences) == 1 else "these means"
    return (
        f"the verdict on outcomes ignores {means}: a mean mixes missed queries with queries "
        "answered lower down"
    )


def _entry(one: MeanDifference, found: MeanDifferences, alpha: float) -> dict[str, Any]:
    test, grouped = one.test, found.grouped
    line = "crossed_t" if grouped else "t"
    whys = {
        "t": one.flips.why if grouped else test.why,
        "sign_flips": one.flips.why,
        "crossed_t": test.why,
    }
    return {
        "measure": one.measure,
        "better": one.better,
        "significantly_better": one.favours(alpha),
        "queries": one.queries,
        "a": one.a,
        "b": one.b,
        "difference": test.difference,
        "low": test.low,
        "high": test.high,
        **({"why": test.why} if test.why else {}),
        "p": _with_why({"t": None, "sign_flips": one.flips.p, line: test.p}, whys),
        "p_corrected": _with_why({"t": None, line: one.corrected}, whys),
        "wins": one.wins,
        "ties": one.ties,
        "losses": one.losses,
        "flips": found.flips,
    }


def _with_why(ps: Mapping[str, float | None], whys: Mapping[str, str | None]) -> dict[str, Any]:
    """The undefined ones as null with a reason beside them."""
    undefined = {line: whys[line] for line, p in ps.items() if p is None}
    return {**ps, **({"why": undefined} if undefined else {})}
