"""What is counted and tested of pairs of runs, of all pairs at once.

Each query is found by neither (1), by one alone (2), or by both (3); found means that a relevant
document stands among the first k. Case (2) is tested by the exact binomial; in case (3) search
lengths and reciprocal ranks are compared by signed ranks and by t. For groups of seeds see
`group_outcomes`.

Source: Lin et al. 2021, §§4 and 5, table 2.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Annotated, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from heldout.options import Opt
from heldout.scoring.first_ranks import FirstRanks, Side
from heldout.stats.batches import mean_above_p, signed_rank_tests, t_tests
from heldout.stats.exact import DECIMALS, Samples, gather_samples
from heldout.stats.rank_tests import share_not_lower_p
from heldout.stats.results import TestResult
from heldout.stats.student import bounded_mean_p
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
class Margins:
    """The largest harm that still counts as none.

    A share of 0.01 is the smallest that table 2 of the paper shows; half a position is less than
    the 0.7 from which it argues that one run is the better.
    """

    found: Annotated[
        float,
        Opt("Share of queries that may be lost.", names=("--margin-found",), above=0, below=1),
    ] = 0.01
    esl: Annotated[
        float,
        Opt(
            "Number of positions by which the mean search length may grow.",
            names=("--margin-esl",),
            above=0,
        ),
    ] = 0.5


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
            more in the mean, for whatever distribution (`stats.bounded_mean`): it knows of harm
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
                esl=case_3.esl,
                rr=case_3.rr,
                tests={"binomial": binomial, **case_3.tests},
                a_not_fewer=a_fewer,
                b_not_fewer=b_fewer,
                a_not_longer=case_3.a_not_longer,
                b_not_longer=case_3.b_not_longer,
                no_rare_harm=case_3.no_rare_harm,
            )
        )
    return tested


class _Ranked(NamedTuple):
    """Case (3) of a pair; see `PairTests`."""

    esl: Means
    rr: Means
    tests: Mapping[Line, TestResult]
    a_not_longer: float | None
    b_not_longer: float | None
    no_rare_harm: float


def _compare_ranked(
    first: Integers, second: Integers, both: NDArray[np.bool_], ask: _Ask
) -> list[_Ranked]:
    """Compare positions and reciprocal ranks where both find."""
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
    lines = _test_lines(lengths, shares, ask.level)
    tests = zip(*lines.values(), strict=True)
    means = (
        _means(np.where(both, of_a, 0), np.where(both, of_b, 0), both)
        for of_a, of_b in ((a, b), (1 / a, 1 / b))
    )
    return [
        _Ranked(esl, rr, dict(zip(lines, results, strict=True)), *not_longer)
        for esl, rr, results, *not_longer in zip(*means, tests, *longer, rare, strict=True)
    ]


def _test_lines(
    lengths: Samples, shares: Samples, level: float
) -> dict[Line, tuple[TestResult, ...]]:
    return {
        "esl_signed_rank": signed_rank_tests(lengths, level=level),
        "esl_t": t_tests(lengths, level=level),
        "rr_signed_rank": signed_rank_tests(shares, level=level),
        "rr_t": t_tests(shares, level=level),
    }


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
