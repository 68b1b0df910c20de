"""What is counted and tested of pairs of runs, of all pairs at once, and of groups of seeds.

Each query is found by neither (1), by one alone (2), or by both (3); found means that a relevant
document stands among the first k. Case (2) is tested by the exact binomial; in case (3) search
lengths and reciprocal ranks are compared by signed ranks and by t. Of groups of seeds the same
outcomes are averaged over all pairs of a seed of A and one of B, and compared across seeds and
queries at once (`stats.student.crossed_t`).

Source: Lin et al. 2021, §§4 and 5, table 2.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from heldout.analyses.outcomes.options import Margins
from heldout.scoring.first_ranks import FirstRanks, Side
from heldout.stats.batches import mean_above_p, signed_rank_tests, t_tests
from heldout.stats.exact import DECIMALS, gather_samples
from heldout.stats.rank_tests import share_not_lower_p
from heldout.stats.results import Alternative, TestResult
from heldout.stats.student import bounded_mean_p, crossed_t
from heldout.stats.tests import compare_counts

Line = Literal[
    "binomial",
    "esl_signed_rank",
    "esl_t",
    "rr_signed_rank",
    "rr_t",
    "found_crossed_t",
    "esl_crossed_t",
    "rr_crossed_t",
]
"""A test of one outcome: what is compared, and by which test."""

LINES: tuple[Line, ...] = ("binomial", "esl_signed_rank", "esl_t", "rr_signed_rank", "rr_t")
"""The tests of two runs; the first is of case (2), the others of case (3)."""

FOUND: tuple[Line, ...] = ("binomial", "found_crossed_t")
"""The tests of case (2)."""

Pair = tuple[Side, Side]
Integers = NDArray[np.int64]
Floats = NDArray[np.float64]

_CELLS = 1 << 19
_ROWS = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Means:
    """Means of A and of B over the queries found by both; `None` where there is none."""

    a: float | None
    b: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PairTests:
    """A pair, counted and tested.

    Attributes:
        a: run or group.
        b: the other; differences are B - A.
        neither: queries that neither finds, a mean over pairs of seeds where there are groups.
        a_only: those that A alone finds.
        b_only: those that B alone finds.
        both: those that both find.
        esl: mean position of the first relevant document, over `both`.
        rr: mean reciprocal rank, over `both`.
        tests: by line; a line that does not apply is absent.
        a_not_fewer: p against: A finds fewer queries by the margin or more.
        b_not_fewer: the same of B.
        a_not_longer: p of t against: A's mean search length is higher by the margin or more; `None`
            where all differences are the same, or there is at most one.
        b_not_longer: the same of B.
        no_rare_harm: p against: the search of the run that finds more is longer by the margin or
            more in the mean, for whatever distribution (`bounded_mean_p`): it knows of harm
            too rare to be in the sample. 1 where no query is found by both, 0 where k leaves no
            room for the margin.
    """

    a: Side
    b: Side
    neither: float
    a_only: float
    b_only: float
    both: float
    esl: Means
    rr: Means
    tests: Mapping[Line, TestResult]
    a_not_fewer: float | None
    b_not_fewer: float | None
    a_not_longer: float | None
    b_not_longer: float | None
    no_rare_harm: float

    @property
    def grouped(self) -> bool:
        """Whether A or B is a group of seeds."""
        return len(self.a.runs) + len(self.b.runs) > 2  # noqa: PLR2004 - one and one


def line_of(by: str, test: str) -> Line:
    """The line of case (3) that compares `esl` or `rr` by `signed-rank`, `t` or `crossed-t`."""
    for line in (*LINES, "esl_crossed_t", "rr_crossed_t"):
        if line == f"{by}_{test.replace('-', '_')}":
            return line
    raise ValueError((by, test))


def compare_runs(
    ranks: FirstRanks, pairs: Sequence[Pair], margins: Margins, *, level: float
) -> list[PairTests]:
    """Count and test pairs of runs.

    Args:
        ranks: positions of all runs.
        pairs: A and B of each, a single run and another one.
        margins: of harm.
        level: of intervals.

    Returns:
        In the order of `pairs`; no pair's figures depend on the other pairs.
    """
    place = {name: row for row, name in enumerate(ranks.systems)}
    size = max(1, min(_ROWS, _CELLS // len(ranks.queries)))
    tested = []
    ask = _Ask(margins, level, ranks.k)
    for start in range(0, len(pairs), size):
        some = pairs[start : start + size]
        first, second = (
            ranks.ranks[[place[run] for side in sides for run in side.runs]]
            for sides in zip(*some, strict=True)
        )
        tested += _compare_rows(some, first, second, ask)
    return tested


class _Ask(NamedTuple):
    """What is asked of every pair."""

    margins: Margins
    level: float
    k: int


def _compare_rows(
    pairs: Sequence[Pair], first: Integers, second: Integers, ask: _Ask
) -> list[PairTests]:
    both = (first > 0) & (second > 0)
    ranked = _compare_ranked(first, second, both, ask)
    a_only, b_only = (((one > 0) & ~both).sum(axis=1).tolist() for one in (first, second))
    answered = both.sum(axis=1).tolist()
    size = first.shape[1]

    @cache  # on few queries many pairs have the same counts
    def count(a_wins: int, b_wins: int) -> tuple[TestResult, float, float]:
        return (
            compare_counts(a_wins, b_wins, level=ask.level),
            share_not_lower_p(b_wins, a_wins, size=size, margin=ask.margins.found),
            share_not_lower_p(a_wins, b_wins, size=size, margin=ask.margins.found),
        )

    tested = []
    for sides, ours, theirs, shared, case_3 in zip(
        pairs, a_only, b_only, answered, ranked, strict=True
    ):
        binomial, a_fewer, b_fewer = count(ours, theirs)
        tested.append(
            PairTests(
                a=sides[0],
                b=sides[1],
                neither=size - ours - theirs - shared,
                a_only=ours,
                b_only=theirs,
                both=shared,
                a_not_fewer=a_fewer,
                b_not_fewer=b_fewer,
                **case_3 | {"tests": {"binomial": binomial, **case_3["tests"]}},
            )
        )
    return tested


def _compare_ranked(
    first: Integers, second: Integers, both: NDArray[np.bool_], ask: _Ask
) -> list[dict[str, Any]]:
    """Case (3) of each pair, for `PairTests`: positions and reciprocal ranks where both find."""
    a, b = (np.where(both, one, 1).astype(np.float64) for one in (first, second))
    lengths = gather_samples(b - a, both)
    # Rounded once from whole numbers, so that equal differences are equal floats
    shares = gather_samples((a - b) / (a * b), both)
    longer = (
        # Lower is better: A does no harm if B - A is above minus the margin, B if it is below it
        mean_above_p(lengths, null=-ask.margins.esl),
        mean_above_p(lengths, null=ask.margins.esl, below=True),
    )
    finds_more = np.where((second > 0).sum(axis=1) > (first > 0).sum(axis=1), 1, -1)
    harm = replace(lengths, values=lengths.values * finds_more[lengths.owners])
    rare = bounded_mean_p(harm, null=ask.margins.esl, bound=ask.k - 1).tolist()
    lines: dict[Line, tuple[TestResult, ...]] = {
        "esl_signed_rank": signed_rank_tests(lengths, level=ask.level),
        "esl_t": t_tests(lengths, level=ask.level),
        "rr_signed_rank": signed_rank_tests(shares, level=ask.level),
        "rr_t": t_tests(shares, level=ask.level),
    }
    tests = zip(*lines.values(), strict=True)
    means = (
        _means(np.where(both, of_a, 0), np.where(both, of_b, 0), both)
        for of_a, of_b in ((a, b), (1 / a, 1 / b))
    )
    return [
        {
            "esl": esl,
            "rr": rr,
            "tests": dict(zip(lines, results, strict=True)),
            "a_not_longer": a_not_longer,
            "b_not_longer": b_not_longer,
            "no_rare_harm": no_rare_harm,
        }
        for esl, rr, results, a_not_longer, b_not_longer, no_rare_harm in zip(
            *means, tests, *longer, rare, strict=True
        )
    ]


def _means(first: Floats, second: Floats, both: NDArray[np.bool_]) -> list[Means]:
    """Means over queries that both find, rounded: which is the larger decides, and not an error."""
    sizes = both.sum(axis=1)
    means = (
        np.round(values.sum(axis=1) / np.maximum(sizes, 1), DECIMALS).tolist()
        for values in (first, second)
    )
    return [
        Means(a=a, b=b) if size else Means(a=None, b=None)
        for size, a, b in zip(sizes.tolist(), *means, strict=True)
    ]


_SIDES: tuple[Alternative, Alternative] = ("greater", "less")
"""Lower is better: A does no harm if B - A is above minus the margin, B if it is below it."""


def compare_groups(
    ranks: FirstRanks, a: Side, b: Side, margins: Margins, *, level: float
) -> PairTests:
    """Count and test two groups of seeds, or a group and a run.

    Args:
        ranks: positions of all runs.
        a: a group or a run.
        b: another; no run is in both.
        margins: of harm.
        level: of intervals.
    """
    first, second = ranks.rows(a.runs), ranks.rows(b.runs)
    found_a, found_b = (one[axis] > 0 for one, axis in ((first, _DOWN), (second, _ACROSS)))
    both = (found_a & found_b).astype(np.float64)
    found = found_b.astype(np.float64) - found_a
    places = first[_DOWN] * both, second[_ACROSS] * both
    shares = tuple(np.divide(1, one, out=np.zeros(both.shape), where=both > 0) for one in places)
    length, ones = places[1] - places[0], np.ones(both.shape)
    sums = {
        "neither": (~found_a & ~found_b),
        "a_only": (found_a & ~found_b),
        "b_only": (found_b & ~found_a),
        "both": both,
    }
    longer = [
        crossed_t(length, both, alternative=side, null=null).p
        for side, null in zip(_SIDES, (-margins.esl, margins.esl), strict=True)
    ]
    fewer = [
        crossed_t(-found, ones, alternative=side, null=null).p
        for side, null in zip(_SIDES, (-margins.found, margins.found), strict=True)
    ]
    finds_more = 1 if found.sum() > 0 else -1
    # A mean over pairs of seeds for each query; one that no pair finds is 0 and weighs nothing
    harm = (finds_more * length - margins.esl * both).mean(axis=(0, 1), keepdims=True)[0]
    rare = bounded_mean_p(
        gather_samples(harm, np.ones(harm.shape, np.bool_)),
        null=0.0,
        bound=ranks.k - 1 - margins.esl,
    )
    pairs = both.shape[0] * both.shape[1]
    return PairTests(
        a=a,
        b=b,
        **{name: float(cells.sum()) / pairs for name, cells in sums.items()},
        esl=_weigh(*places, both),
        rr=_weigh(shares[0], shares[1], both),
        tests={
            "found_crossed_t": crossed_t(found, ones, level=level),
            "esl_crossed_t": crossed_t(length, both, level=level),
            "rr_crossed_t": crossed_t(shares[1] - shares[0], both, level=level),
        },
        a_not_fewer=fewer[0],
        b_not_fewer=fewer[1],
        a_not_longer=longer[0],
        b_not_longer=longer[1],
        no_rare_harm=float(rare[0]),
    )


_DOWN = np.s_[:, None, :]
_ACROSS = np.s_[None, :, :]
"""Seeds of A go down, seeds of B across, queries along the third axis."""


def _weigh(first: Floats, second: Floats, both: Floats) -> Means:
    count = float(both.sum())
    if not count:
        return Means(a=None, b=None)
    return Means(a=float(first.sum()) / count, b=float(second.sum()) / count)
