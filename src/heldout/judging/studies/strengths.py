"""Strengths of runs as tables, a picture and JSON."""

from collections import Counter
from typing import Any

from heldout.answers.table import Cell, Column, Table
from heldout.charts.axes import score_axis
from heldout.charts.plot import Plot, Row
from heldout.charts.svg import MUTED, RECORD
from heldout.judging.labels.strengths import CLOSE, Ends, RunDifference, RunStrengths

_MOST_PAIRS = 66
_MOST_ROWS = 46


def facts(found: RunStrengths) -> tuple[tuple[str, str], ...]:
    """The answer in a few lines: who is strongest, and whom it cannot be told from."""
    queries = f"{found.queries:,} {'query' if found.queries == 1 else 'queries'}"
    told = f"{len(found.strengths):,} runs, {found.comparisons:,} comparisons on {queries}"
    lines = [("strengths", told)]
    lines += _tell_strongest(found)
    if len(found.groups) > 1:
        told = f"{len(found.groups):,} groups of runs were never compared with each other"
        lines.append(("apart", told))
    if found.separated:
        told = (
            "some run won or lost everything: only the prior keeps it finite, without an interval"
        )
        lines.append(("note", told))
    return tuple(lines)


def tables(found: RunStrengths) -> tuple[Table, ...]:
    """Strengths, and the difference of each two runs."""
    return (_strengths(found), _differences(found))


def title(found: RunStrengths) -> str:
    """What the picture shows."""
    return (
        f"How much weaker each run is than {next(iter(found.strengths))}, in logits, with "
        f"{found.level:.0%} intervals clustered by query"
    )


def spec(found: RunStrengths) -> Plot:
    """Each run's difference to the strongest; with at least two runs."""
    shown = _against_first(found)[:_MOST_ROWS]
    ends = [-end for one in shown for end in one.sandwich or (one.difference,)]
    plot = Plot(
        x=score_axis([0.0, *ends]),
        rows=[Row(name=one.b) for one in shown],
        foot=f"strength less that of {next(iter(found.strengths))}, logits",
    )
    plot.upright(0)
    for row, one in enumerate(shown):
        apart = _apart(one.sandwich)
        low, high = one.sandwich or (None, None)
        if low is not None and high is not None:
            plot.interval(row, -high, -low, RECORD if apart else MUTED)
        tip = f"{one.b}: {-one.difference:+.3f}"
        plot.dots([(-one.difference, row, tip)], "disc" if apart else "circle")
    plot.key("disc", "weaker than the strongest")
    plot.key("circle", "no significant difference")
    plot.key("line", f"{found.level:.0%} interval", MUTED)
    return plot


def value(found: RunStrengths) -> dict[str, Any]:
    """The whole result for JSON; strengths and differences in logits."""
    return {
        "strengths": dict(found.strengths),
        "differences": [
            {
                "a": one.a,
                "b": one.b,
                "difference": one.difference,
                "share": one.share,
                "sandwich": _pair(one.sandwich),
                "bootstrap": _pair(one.bootstrap),
                **({} if one.why is None else {"why": one.why}),
            }
            for one in found.differences
        ],
        "nu": found.nu,
        "groups": [list(group) for group in found.groups],
        "separated": found.separated,
        "queries": found.queries,
        "comparisons": found.comparisons,
        "tied": found.tied,
        "level": found.level,
        "draws": found.draws,
        "prior": found.prior,
        "interval": "of differences, clustered by query, each by itself",
    }


def _tell_strongest(found: RunStrengths) -> list[tuple[str, str]]:
    """Who is strongest and whom it cannot be told from; nobody where nothing tells."""
    if not found.comparisons:
        return [("strongest", "none: no judged pair compares two of the runs")]
    strengths = list(found.strengths.values())
    if len(strengths) > 1 and strengths[0] - strengths[1] <= CLOSE:
        alike = [run for run, value in found.strengths.items() if strengths[0] - value <= CLOSE]
        if len(alike) == len(strengths):
            return [("strongest", "none: all runs are as strong as each other")]
        return [("strongest", ", ".join(alike)), ("", "they are as strong as each other")]
    against = _against_first(found)
    unsure = sum(one.sandwich is not None and not _apart(one.sandwich) for one in against)
    unknown = sum(one.sandwich is None for one in against)
    lines = [("strongest", next(iter(found.strengths)))]
    if unknown < len(against):
        lines.append(("", f"{unsure:,} of {len(against):,} others cannot be told from it"))
    if unknown:
        lines.append(("", f"of {unknown:,} others the difference has no interval"))
    return lines


def _pair(ends: Ends | None) -> list[float] | None:
    return None if ends is None else list(ends)


def _apart(ends: Ends | None) -> bool:
    return ends is not None and not ends[0] <= 0 <= ends[1]


def _against_first(found: RunStrengths) -> list[RunDifference]:
    first = next(iter(found.strengths), None)
    return [one for one in found.differences if one.a == first]


def _strengths(found: RunStrengths) -> Table:
    against = {one.b: one for one in _against_first(found)}
    rows: list[tuple[Cell, ...]] = []
    for run, strength in found.strengths.items():
        one = against.get(run)
        rows.append((run, strength, *((None,) * 5 if one is None else _shown(one))))
    return Table(
        title="Strengths of runs",
        columns=(
            Column(name="run"),
            Column(name="strength", form="difference", decimals=3),
            Column(name="the strongest is ahead by", form="difference", decimals=3),
            *_interval_columns(),
        ),
        rows=tuple(rows),
        notes=_notes(found),
    )


def _shown(one: RunDifference) -> tuple[Cell, ...]:
    return (one.difference, *(one.sandwich or (None, None)), *(one.bootstrap or (None, None)))


def _interval_columns() -> tuple[Column, ...]:
    names = ("low", "high", "bootstrap low", "bootstrap high")
    return tuple(Column(name=name, form="difference", decimals=3) for name in names)


def _differences(found: RunStrengths) -> Table:
    shown = found.differences[:_MOST_PAIRS]
    left_out = len(found.differences) - len(shown)
    more = f"{left_out:,} pairs of runs are left out here; --json has all."
    return Table(
        title="Differences",
        columns=(
            Column(name="a"),
            Column(name="b"),
            Column(name="a - b", form="difference", decimals=3),
            *_interval_columns(),
            Column(name="a preferred", form="share", decimals=3),
        ),
        rows=tuple((one.a, one.b, *_shown(one), one.share) for one in shown),
        notes=(
            "a preferred: on a query where they differ and one is preferred, as the model has it.",
            *((more,) if left_out else ()),
            *_no_intervals(found),
        ),
    )


def _no_intervals(found: RunStrengths) -> tuple[str, ...]:
    """Why some differences have no interval, each reason with how many."""
    reasons = Counter(one.why for one in found.differences if one.why is not None)
    return tuple(
        f"Without an interval, or without one of the two: {count:,}, since {why}."
        for why, count in reasons.items()
    )


def _notes(found: RunStrengths) -> tuple[str, ...]:
    if found.nu is None:
        ties = "Queries with as many votes on each side are half a win for each."
    else:
        ties = f"Ties by Davidson's model, nu {found.nu:.3f}."
    return (
        (
            f"Bradley and Terry's model with a normal prior of precision {found.prior:g}; logits, "
            f"mean 0. {found.tied:,} of {found.comparisons:,} comparisons tied. {ties}"
        ),
        (
            f"{found.level:.0%} intervals of differences, each by itself; a query is one "
            f"observation: low, high by the sandwich, then percentiles of {found.draws:,} samples "
            "of queries. A strength by itself has none: only differences mean anything. The "
            "strongest was found in the same judgments, which favours it."
        ),
    )
