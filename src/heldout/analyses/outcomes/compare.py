"""Do the means of A and of B differ? By any measure, over all queries, one measure or several.

Two runs are compared by the paired t test, and by flipping signs; groups of seeds across seeds and
queries at once (`stats.crossed`). The verdicts of `verdicts` rest on outcomes, and on none of this.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from heldout.analyses.outcomes.verdicts import Correction
from heldout.answers.table import Cell, Column, Table, format_p
from heldout.errors import plural
from heldout.scoring.first_ranks import Side
from heldout.scoring.table import Better, ScoreTable
from heldout.stats.exact import DECIMALS, differences
from heldout.stats.results import TestResult, bonferroni, holm
from heldout.stats.sign_flips import flip_test
from heldout.stats.student import crossed_t
from heldout.stats.tests import run_test

Floats = NDArray[np.float64]

_CORRECT: Mapping[Correction, Callable[[Sequence[float | None]], tuple[float | None, ...]]] = {
    "holm": holm,
    "bonferroni": bonferroni,
    "none": tuple,
}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Measured:
    """Scores by one measure.

    Attributes:
        measure: its name.
        table: scores of all runs, none missing, on at least one query.
        better: which scores are better.
    """

    measure: str
    table: ScoreTable
    better: Better = "higher"


@dataclass(frozen=True, slots=True, kw_only=True)
class SignFlips:
    """What flipping signs says of a mean difference.

    Attributes:
        p: two-sided; `None` where undefined.
        why: the reason where it is, else `None`.
    """

    p: float | None
    why: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MeanDifference:
    """A and B by one measure.

    Attributes:
        measure: its name.
        better: which scores are better.
        queries: how many the means are over: all of them.
        a: mean of A; of a group of seeds the mean over its runs.
        b: that of B.
        wins: queries on which B is the better; of groups by the mean over pairs of seeds.
        ties: those on which neither is, to 1e-12.
        losses: those on which A is.
        test: of the mean difference B - A: `t`, or `crossed-t` where there is a group.
        flips: sign flips of the same.
        corrected: the p of `test`, corrected over the measures; `None` where undefined.
    """

    measure: str
    better: Better
    queries: int
    a: float
    b: float
    wins: int
    ties: int
    losses: int
    test: TestResult
    flips: SignFlips
    corrected: float | None = None

    def favours(self, alpha: float) -> Literal["A", "B"] | None:
        """Which of the two is significantly better, by the corrected p of `test`."""
        if self.corrected is None or self.corrected > alpha or not self.test.difference:
            return None
        return "B" if (self.test.difference > 0) == (self.better == "higher") else "A"


@dataclass(frozen=True, slots=True, kw_only=True)
class MeanDifferences:
    """A and B by all measures that were asked for.

    Attributes:
        a: a run or a group of seeds.
        b: the other; differences are B - A.
        differences: one for each measure; they are the family of the correction.
        correction: of the p of the t tests.
        level: of the intervals, which are not corrected.
        flips: sign flips drawn.
    """

    a: Side
    b: Side
    differences: tuple[MeanDifference, ...]
    correction: Correction
    level: float
    flips: int

    @property
    def grouped(self) -> bool:
        """Whether A or B is a group of seeds."""
        return _grouped(self.a, self.b)


def compare_means(
    measured: Sequence[Measured],
    a: Side,
    b: Side,
    rng: Generator,
    *,
    correction: Correction = "holm",
    level: float = 0.95,
    flips: int = 10_000,
) -> MeanDifferences:
    """Compare A and B by the mean of each measure.

    Args:
        measured: scores of the runs of both sides by each measure.
        a: a run or a group of seeds.
        b: another; no run is in both.
        rng: where signs come from; every measure gets the same, so that its p does not depend on
            which others are asked for.
        correction: over the measures.
        level: of the intervals, in (0, 1).
        flips: how many, at least 1.

    Raises:
        ValueError: a table has no query, or lacks a score.
    """
    found = [_compare(one, a, b, deepcopy(rng), level=level, flips=flips) for one in measured]
    corrected = _CORRECT[correction]([one.test.p for one in found])
    return MeanDifferences(
        a=a,
        b=b,
        differences=tuple(
            replace(one, corrected=p) for one, p in zip(found, corrected, strict=True)
        ),
        correction=correction,
        level=level,
        flips=flips,
    )


def _grouped(a: Side, b: Side) -> bool:
    return len(a.runs) + len(b.runs) > 2  # noqa: PLR2004 - one and one


def _compare(
    one: Measured, a: Side, b: Side, rng: Generator, *, level: float, flips: int
) -> MeanDifference:
    if not (one.table.queries and one.table.complete):
        raise ValueError(one.measure)
    first, second = _rows(one.table, a), _rows(one.table, b)
    if _grouped(a, b):
        difference, test = _across_seeds(first, second, level)
        flipped = SignFlips(p=None, why="groups of seeds are compared across seeds, by crossed t")
    else:
        difference = differences(first[0], second[0])
        test = run_test("t", first[0], second[0], level=level)
        flipped = _flip(first[0], second[0], rng, flips)
    gain = -difference if one.better == "lower" else difference
    return MeanDifference(
        measure=one.measure,
        better=one.better,
        queries=len(one.table.queries),
        a=_mean(first),
        b=_mean(second),
        wins=int((gain > 0).sum()),
        ties=int((gain == 0).sum()),
        losses=int((gain < 0).sum()),
        test=test,
        flips=flipped,
    )


def _rows(table: ScoreTable, side: Side) -> Floats:
    return table.values[[table.systems.index(run) for run in side.runs]]


def _mean(rows: Floats) -> float:
    """The mean over runs and queries; of one run as `measures.evaluate` has it."""
    return math.fsum(rows.ravel().tolist()) / rows.size


def _across_seeds(first: Floats, second: Floats, level: float) -> tuple[Floats, TestResult]:
    """The mean difference of each query, and the test over seeds and queries."""
    totals = second[None, :, :] - first[:, None, :]
    test = crossed_t(totals, np.ones(totals.shape), level=level)
    return np.round(totals.mean(axis=(0, 1)), DECIMALS), test


def _flip(first: Floats, second: Floats, rng: Generator, flips: int) -> SignFlips:
    if len(first) == 1:
        return SignFlips(p=None, why="a single query says nothing of others")
    p = float(flip_test(np.stack([first, second]), rng, flips=flips)[0, 1])
    return SignFlips(p=None, why="every difference is 0") if math.isnan(p) else SignFlips(p=p)


# Means of A and of B by the measures that were asked for, as a table and as JSON.


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
