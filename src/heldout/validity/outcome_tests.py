"""What is counted and tested of one pair of runs, or of two groups of seeds.

Each query is found by neither (1), by one alone (2), or by both (3); found means that a relevant
document stands among the first k. Case (2) is tested by the exact binomial; in case (3) search
lengths and reciprocal ranks are compared by signed ranks and by t. Groups of seeds are compared
across seeds and queries at once (`stats.crossed`), averaged over all pairs of seeds.

Source: significant-improvements-2021, sections 4 and 5, table 2.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from heldout.stats.crossed import crossed_t
from heldout.stats.paired_shares import share_not_lower_p
from heldout.stats.result import Alternative, TestResult
from heldout.stats.tests import compare_counts, run_test
from heldout.validity.first_ranks import FirstRanks, Side

__all__ = [
    "FOUND",
    "LINES",
    "Line",
    "Margins",
    "Means",
    "PairTests",
    "compare_pair",
    "line_of",
]

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

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Margins:
    """The largest harm that still counts as none.

    Attributes:
        found: share of queries, in (0, 1). 0.01 is the smallest share that table 2 of the paper
            shows.
        esl: positions, above 0. 0.5 is less than the 0.7 from which the paper argues that one
            run is the better.
    """

    found: float = 0.01
    esl: float = 0.5


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
        a_not_longer: p against: A's mean search length is higher by the margin or more; `None`
            where undefined.
        b_not_longer: the same of B.
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


def compare_pair(
    ranks: FirstRanks, a: Side, b: Side, margins: Margins, *, level: float
) -> PairTests:
    """Count and test one pair.

    Args:
        ranks: positions of all runs.
        a: a run or a group of seeds.
        b: another; no run is in both.
        margins: of harm.
        level: of intervals.
    """
    first, second = ranks.rows(a.runs), ranks.rows(b.runs)
    if len(first) == len(second) == 1:
        return _test_runs(first[0], second[0], (a, b), margins, level)
    return _test_groups(first, second, (a, b), margins, level)


def _test_runs(
    first: Integers, second: Integers, sides: tuple[Side, Side], margins: Margins, level: float
) -> PairTests:
    size = len(first)
    both = (first > 0) & (second > 0)
    a_only, b_only = (int(((one > 0) & ~both).sum()) for one in (first, second))
    places = first[both].astype(np.float64), second[both].astype(np.float64)
    shares = 1 / places[0], 1 / places[1]
    tests: dict[Line, TestResult] = {
        "binomial": compare_counts(a_only, b_only, level=level),
        "esl_signed_rank": run_test("signed-rank", *places, level=level),
        "esl_t": run_test("t", *places, level=level),
        "rr_signed_rank": run_test("signed-rank", *shares, level=level),
        "rr_t": run_test("t", *shares, level=level),
    }
    a_longer, b_longer = (
        run_test("non-inferiority", *places, alternative=side, margin=margins.esl, by="t").p
        for side in _SIDES
    )
    return PairTests(
        a=sides[0],
        b=sides[1],
        neither=size - a_only - b_only - int(both.sum()),
        a_only=a_only,
        b_only=b_only,
        both=int(both.sum()),
        esl=_means(*places),
        rr=_means(*shares),
        tests=tests,
        a_not_fewer=share_not_lower_p(b_only, a_only, size=size, margin=margins.found),
        b_not_fewer=share_not_lower_p(a_only, b_only, size=size, margin=margins.found),
        a_not_longer=a_longer,
        b_not_longer=b_longer,
    )


_SIDES: tuple[Alternative, Alternative] = ("greater", "less")
"""Lower is better: A does no harm if B - A is above minus the margin, B if it is below it."""


def _means(first: Floats, second: Floats) -> Means:
    if not len(first):
        return Means(a=None, b=None)
    return Means(a=float(first.mean()), b=float(second.mean()))


def _test_groups(
    first: Integers, second: Integers, sides: tuple[Side, Side], margins: Margins, level: float
) -> PairTests:
    found_a, found_b = (one[axis] > 0 for one, axis in ((first, _ROWS), (second, _COLUMNS)))
    both = (found_a & found_b).astype(np.float64)
    found = found_b.astype(np.float64) - found_a
    places = first[_ROWS] * both, second[_COLUMNS] * both
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
    pairs = both.shape[0] * both.shape[1]
    return PairTests(
        a=sides[0],
        b=sides[1],
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
    )


_ROWS = np.s_[:, None, :]
_COLUMNS = np.s_[None, :, :]
"""Seeds of A go down, seeds of B across, queries along the third axis."""


def _weigh(first: Floats, second: Floats, both: Floats) -> Means:
    count = float(both.sum())
    if not count:
        return Means(a=None, b=None)
    return Means(a=float(first.sum()) / count, b=float(second.sum()) / count)
