"""Habits of judges as tables and JSON: sides, length, and how careful each one is."""

from dataclasses import asdict
from typing import Any

from heldout.answers.table import Cell, Column, Table
from heldout.preferences.bias import Effect, SideBias
from heldout.preferences.judge_care import CrowdCare

__all__ = ["facts", "tables", "value"]

_TWICE = 2
_MOST = 50


def facts(found: SideBias, care: CrowdCare) -> tuple[tuple[str, str], ...]:
    """The answer in a few lines."""
    if found.share is None:
        lines = [("sides", f"not known of any judgment; {found.unknown:,} left out")]
    else:
        told = f"left preferred in {found.share:.1%} of {found.judgments:,} judgments"
        lines = [("sides", f"{told}, exact {_interval(found.low, found.high, found.level)}")]
    lines.append(("position", _tell(found.position, found.level)))
    lines.append(("length", _tell(found.length, found.level) + _tell_twice(found.length)))
    if found.uneven:
        lines.append(("balance", f"{found.uneven:,} pairs were not on each side as often"))
    lines.append(("judges", f"{len(care.judges):,} known"))
    return tuple(lines)


def tables(found: SideBias, care: CrowdCare) -> tuple[Table, ...]:
    """The effects, and the judges, the least careful first."""
    return (_effects(found), *([_judges(care)] if care.judges else []))


def value(found: SideBias, care: CrowdCare) -> dict[str, Any]:
    """The whole result for JSON; effects in logits."""
    return {
        "judgments": found.judgments,
        "unknown_sides": found.unknown,
        "left": found.left,
        "share": found.share,
        "low": found.low,
        "high": found.high,
        "p": found.p,
        "test": "binomial, exact, two-sided",
        "position": asdict(found.position),
        "length": asdict(found.length),
        "interval": "by query or by worker, the wider one",
        "level": found.level,
        "queries": found.queries,
        "workers": found.workers,
        "uneven": found.uneven,
        "judges": [asdict(one) for one in care.judges],
        "judges_converged": care.converged,
    }


def _interval(low: float | None, high: float | None, level: float) -> str:
    return f"{level:.0%} interval {low:.3f} to {high:.3f}" if low is not None else "no interval"


def _tell(effect: Effect, level: float) -> str:
    if effect.value is None:
        return f"undefined: {effect.why}"
    if effect.low is None:
        return f"{effect.value:+.3f} logits; {effect.why}"
    return (
        f"{effect.value:+.3f} logits, {level:.0%} interval {effect.low:+.3f} to {effect.high:+.3f}"
    )


def _tell_twice(length: Effect) -> str:
    if length.value is None:
        return ""
    return f"; twice as long: odds of {_TWICE**length.value:.2f}"


def _effects(found: SideBias) -> Table:
    rows: tuple[tuple[Cell, ...], ...] = (
        ("on the left", *_cells(found.position)),
        ("e times as long", *_cells(found.length)),
    )
    why = [f"{one.why}." for one in (found.position, found.length) if one.why]
    return Table(
        title="What judges prefer beside the better passage",
        columns=(
            Column(name="a passage that is"),
            Column(name="logits", form="difference", decimals=3),
            Column(name="low", form="difference", decimals=3),
            Column(name="high", form="difference", decimals=3),
        ),
        rows=rows,
        notes=(
            (
                f"{found.level:.0%} intervals, each by itself, that take a query "
                f"({found.queries:,}) or a worker ({found.workers:,}) as one observation, "
                "whichever is wider."
            ),
            "Length is no accident: longer passages may be better. Sides are drawn at random.",
            *why,
        ),
    )


def _cells(effect: Effect) -> tuple[Cell, ...]:
    return (effect.value, effect.low, effect.high)


def _judges(care: CrowdCare) -> Table:
    shown = care.judges[:_MOST]
    more = f"{len(care.judges) - len(shown):,} more careful ones are left out; --json has all."
    return Table(
        title="Judges, the least careful first",
        columns=(
            Column(name="judge"),
            Column(name="answers", form="count"),
            Column(name="tests", form="count"),
            Column(name="failed", form="count"),
            Column(name="care", form="share", decimals=2),
            Column(name="habit", form="difference", decimals=2),
        ),
        rows=tuple(
            (one.worker, one.answers, one.tests, one.failed, one.care, one.habit) for one in shown
        ),
        notes=(
            (
                "care: how often an answer comes from the passages; otherwise from a habit, above "
                "0 for the left side, in logits. Crowd Bradley-Terry with a prior, which decides "
                "where answers are few; no intervals. Nobody is excluded by it."
            ),
            *(() if care.converged else ("The search for these figures did not end.",)),
            *((more,) if len(care.judges) > len(shown) else ()),
        ),
    )
