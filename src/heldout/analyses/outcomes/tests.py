"""What is counted and tested of pairs of runs, of all pairs at once, and of groups of seeds.

Each query is found by neither (1), by one alone (2), or by both (3); found means that a relevant
document stands among the first k. Case (2) is tested by the exact binomial; in case (3) search
lengths and reciprocal ranks are compared by signed ranks and by t. Of groups of seeds the same
outcomes are averaged over all pairs of a seed of A and one of B, and compared across seeds and
queries at once (`stats.student.crossed_t`).

Source: Lin et al. 2021, §§4 and 5, table 2.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from heldout.analyses.outcomes.options import Margins
from heldout.scoring.first_ranks import FirstRanks, MethodSide
from heldout.stats import rank_tests, resampling
from heldout.stats.batches import mean_above_p, signed_rank_tests, t_tests
from heldout.stats.exact import DECIMALS, Samples, gather_codes, gather_samples
from heldout.stats.results import Alternative, Columns, TestColumns, TestResult, with_none
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

Pair = tuple[MethodSide, MethodSide]
Integers = NDArray[np.int64]
Rows = NDArray[np.intp]
Floats = NDArray[np.float64]

_CELLS = 1 << 18
_ROWS = 1024
_TASKS = 32

# Pairs from which numba saves more time than it takes to load
_MANY = 1 << 13


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Pairs(Columns[Pair]):
    """Pairs of runs or groups, in columns.

    Attributes:
        sides: runs and groups, each once.
        a: for each pair the place of A in `sides`.
        b: that of B.
    """

    sides: tuple[MethodSide, ...]
    a: NDArray[np.intp]
    b: NDArray[np.intp]

    @classmethod
    def of(cls, pairs: Sequence[Pair]) -> "Pairs":
        """Pairs in columns; those that are stay as they are."""
        if isinstance(pairs, Pairs):
            return pairs
        sides = tuple(dict.fromkeys(side for pair in pairs for side in pair))
        position = {side: at for at, side in enumerate(sides)}
        a, b = (
            np.array([[position[side] for side in pair] for pair in pairs], np.intp)
            .reshape(-1, 2)
            .T
        )
        return cls(sides=sides, a=a, b=b)

    def __len__(self) -> int:
        return len(self.a)

    def rows(self, start: int, stop: int) -> list[Pair]:
        """Make the pairs that follow each other."""
        part = zip(self.a[start:stop].tolist(), self.b[start:stop].tolist(), strict=True)
        return [(self.sides[a], self.sides[b]) for a, b in part]


@dataclass(frozen=True, slots=True, kw_only=True)
class PairMeans:
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

    a: MethodSide
    b: MethodSide
    neither: float
    a_only: float
    b_only: float
    both: float
    esl: PairMeans
    rr: PairMeans
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


Tested_co = TypeVar("Tested_co", bound=PairTests, covariant=True)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TestedPairs(Columns[Tested_co]):
    """Pairs, counted and tested, in columns.

    Attributes:
        pairs: who they are.
        neither: as in `PairTests`, a number for each pair; so are those that follow, NaN where
            undefined.
        a_only: queries that A alone finds.
        b_only: those that B alone finds.
        both: those that both find.
        esl: shape (2, pairs): of A, then of B.
        rr: likewise.
        tests: by line.
        a_not_fewer: a p for each pair, as the others.
        b_not_fewer: of B.
        a_not_longer: of A.
        b_not_longer: of B.
        no_rare_harm: of the run that finds more.
    """

    __test__: ClassVar[bool] = False  # pytest looks for classes of this name

    pairs: Pairs
    neither: NDArray[np.number]
    a_only: NDArray[np.number]
    b_only: NDArray[np.number]
    both: NDArray[np.number]
    esl: Floats
    rr: Floats
    tests: Mapping[Line, TestColumns]
    a_not_fewer: Floats
    b_not_fewer: Floats
    a_not_longer: Floats
    b_not_longer: Floats
    no_rare_harm: Floats

    @property
    def grouped(self) -> bool:
        """Whether there are groups of seeds."""
        return any(len(side.runs) > 1 for side in self.pairs.sides)

    def __len__(self) -> int:
        return len(self.pairs)

    def rows(self, start: int, stop: int) -> Sequence[Tested_co]:
        """Make the pairs that follow each other."""
        return [PairTests(**fields) for fields in self.fields(start, stop)]  # type: ignore[misc]  # `JudgedPairs` makes its own

    def fields(self, start: int, stop: int) -> Iterator[dict[str, Any]]:
        """Make the fields of `PairTests` of pairs that follow each other."""
        part = slice(start, stop)
        pairs, names = self.pairs.rows(start, stop), (*_COUNTS, *_PS)
        numbers = [getattr(self, name)[part].tolist() for name in _COUNTS]
        numbers += [with_none(getattr(self, name)[part]) for name in _PS]
        means = [with_none(one[part]) for one in (*self.esl, *self.rr)]
        results = [test.rows(start, stop) for test in self.tests.values()]
        for (a, b), own, (esl_a, esl_b, rr_a, rr_b), tests in zip(
            pairs,
            zip(*numbers, strict=True),
            zip(*means, strict=True),
            zip(*results, strict=True),
            strict=True,
        ):
            yield {
                "a": a,
                "b": b,
                "esl": PairMeans(a=esl_a, b=esl_b),
                "rr": PairMeans(a=rr_a, b=rr_b),
                "tests": dict(zip(self.tests, tests, strict=True)),
                **dict(zip(names, own, strict=True)),
            }


_COUNTS = ("neither", "a_only", "b_only", "both")
_PS = ("a_not_fewer", "b_not_fewer", "a_not_longer", "b_not_longer", "no_rare_harm")


def line_of(by: str, test: str) -> Line:
    """The line of case (3) that compares `esl` or `rr` by `signed-rank`, `t` or `crossed-t`."""
    for line in (*LINES, "esl_crossed_t", "rr_crossed_t"):
        if line == f"{by}_{test.replace('-', '_')}":
            return line
    raise ValueError((by, test))


def compare_runs(
    ranks: FirstRanks,
    pairs: Sequence[Pair],
    margins: Margins,
    *,
    level: float,
    executor: Executor | None = None,
) -> TestedPairs[PairTests]:
    """Count and test pairs of runs.

    Args:
        ranks: positions of all runs.
        pairs: A and B of each, a single run and another one.
        margins: of harm.
        level: of intervals.
        executor: where to compute; `None` for here.

    Returns:
        In the order of `pairs`; no pair's figures depend on the other pairs.
    """
    some = Pairs.of(pairs)
    position = {name: row for row, name in enumerate(ranks.systems)}
    rows = np.array([position[run] for side in some.sides for run in side.runs], np.intp)
    ask = _Ask(margins, level, ranks.k, compiled=len(some) >= _MANY)
    found = _gather(_compare_all(ranks.ranks, (rows[some.a], rows[some.b]), ask, executor))
    binomial, a_not_fewer, b_not_fewer = _test_counts(found.a_only, found.b_only, ranks, ask)
    return TestedPairs(
        pairs=some,
        neither=len(ranks.queries) - found.a_only - found.b_only - found.both,
        a_not_fewer=a_not_fewer,
        b_not_fewer=b_not_fewer,
        **found._asdict() | {"tests": {"binomial": binomial, **_share_sizes(found)}},
    )


def _share_sizes(found: "_Compared") -> dict[Line, TestColumns]:
    """The tests of case (3), with one column of how many queries both find."""
    return {
        line: replace(test, n=found.both, used=test.used if "rank" in line else found.both)
        for line, test in found.tests.items()
    }


class _Ask(NamedTuple):
    """What is asked of every pair."""

    margins: Margins
    level: float
    k: int
    compiled: bool


class _Compared(NamedTuple):
    """Pairs of rows, counted and compared where both find: fields of `TestedPairs`."""

    a_only: NDArray[np.int32]
    b_only: NDArray[np.int32]
    both: NDArray[np.int32]
    esl: Floats
    rr: Floats
    tests: dict[Line, TestColumns]
    a_not_longer: Floats
    b_not_longer: Floats
    no_rare_harm: Floats


def _compare_all(
    given: Integers, rows: tuple[Rows, Rows], ask: _Ask, executor: Executor | None
) -> Iterator[_Compared]:
    """Compare pairs of rows, in parts that follow each other."""
    scale, size = _Scale.of(given), len(rows[0])
    ranks = given.astype(np.float64)
    # Few tasks: each carries the ranks to whoever does it
    length = max(1, size if executor is None else -(-size // _TASKS))
    tasks = ((ranks, scale, _part(rows, at, length), ask) for at in range(0, size, length))
    yield from resampling.run_tasks(_compare_part, tasks, executor)


def _compare_part(
    ranks: Floats, scale: "_Scale | None", rows: tuple[Rows, Rows], ask: _Ask
) -> _Compared:
    size = max(1, min(_ROWS, _CELLS // ranks.shape[1]))
    starts = range(0, len(rows[0]), size)
    return _gather(_compare_rows(ranks, scale, _part(rows, at, size), ask) for at in starts)


def _part(rows: tuple[Rows, Rows], start: int, size: int) -> tuple[Rows, Rows]:
    first, second = rows
    return first[start : start + size], second[start : start + size]


def _gather(parts: Iterable[_Compared]) -> _Compared:
    """Return parts as one."""
    found = list(parts)
    tests = {
        line: TestColumns.join([part.tests[line] for part in found]) for line in found[0].tests
    }
    columns = [name for name in _Compared._fields if name != "tests"]
    arrays = {name: np.concatenate([getattr(p, name) for p in found], axis=-1) for name in columns}
    return _Compared(**arrays, tests=tests)


def _test_counts(
    a_only: NDArray[np.int32], b_only: NDArray[np.int32], ranks: FirstRanks, ask: _Ask
) -> tuple[TestColumns, Floats, Floats]:
    """Case (2) of each pair: the binomial test, and whether either finds fewer."""
    size = len(ranks.queries)
    # Many pairs have the same counts
    different, positions = np.unique(
        a_only.astype(np.int64) * (size + 1) + b_only, return_inverse=True
    )
    counts = [divmod(one, size + 1) for one in different.tolist()]
    results = [compare_counts(ours, theirs, level=ask.level) for ours, theirs in counts]
    margin = ask.margins.found
    fewer = np.array(
        [
            (
                rank_tests.share_not_lower_p(theirs, ours, size=size, margin=margin),
                rank_tests.share_not_lower_p(ours, theirs, size=size, margin=margin),
            )
            for ours, theirs in counts
        ]
    )
    return TestColumns.of(results, positions), fewer[positions, 0], fewer[positions, 1]


class _Scale(NamedTuple):
    """All differences of few ranks, so that those of a pair need not be computed and compared.

    Attributes:
        ranks: uint8, shape (systems, queries): places in the sorted ranks that there are.
        lengths: all differences of ranks, ascending.
        length: the place of b - a, shape (ranks, ranks); 65,535 where a or b is 0.
        shares: all differences of reciprocal ranks, ascending.
        share: the place of 1/b - 1/a, likewise.
    """

    ranks: NDArray[np.uint8]
    lengths: Floats
    length: NDArray[np.uint16]
    shares: Floats
    share: NDArray[np.uint16]

    @classmethod
    def of(cls, ranks: Integers) -> "_Scale | None":
        """The scale of positions; `None` where there are too many different ones."""
        different, positions = np.unique(ranks, return_inverse=True)
        if len(different) > _FEW_RANKS:
            return None
        none = (different[:, None] == 0) | (different == 0)
        a, b = (
            np.where(none, 1, one).astype(np.float64) for one in (different[:, None], different)
        )
        lengths, length = np.unique(b - a + 0.0, return_inverse=True)
        # Rounded once from whole numbers, so that equal differences are equal floats
        shares, share = np.unique((a - b) / (a * b) + 0.0, return_inverse=True)
        coded = [
            np.where(none, _NONE, one.reshape(none.shape)).astype(np.uint16)
            for one in (length, share)
        ]
        return cls(
            ranks=positions.reshape(ranks.shape).astype(np.uint8),
            lengths=lengths,
            length=coded[0],
            shares=shares,
            share=coded[1],
        )

    def gather(self, rows: tuple[Rows, Rows], sizes: Integers) -> tuple[Samples, Samples]:
        """Differences of ranks and of reciprocal ranks, of pairs of rows."""
        first, second = rows
        positions = self.ranks[first].astype(np.intp) * len(self.length) + self.ranks[second]
        return (
            gather_codes(self.length.take(positions), sizes, self.lengths),
            gather_codes(self.share.take(positions), sizes, self.shares),
        )


_FEW_RANKS = 255
_NONE = np.iinfo(np.uint16).max


def _compare_rows(
    ranks: Floats, scale: _Scale | None, rows: tuple[Rows, Rows], ask: _Ask
) -> _Compared:
    first, second = (ranks[own] for own in rows)
    both = (first > 0) & (second > 0)
    answered = both.sum(axis=1)
    if scale is not None:
        samples = scale.gather(rows, answered)
    else:
        a, b = (np.where(both, one, 1) for one in (first, second))
        # Rounded once from whole numbers, so that equal differences are equal floats
        samples = gather_samples(b - a, both), gather_samples((a - b) / (a * b), both)
    lengths, shares = samples
    found_a, found_b = ((one > 0).sum(axis=1) for one in (first, second))
    finds_more = np.where(found_b > found_a, 1, -1)
    harm = replace(lengths, values=lengths.values * finds_more[lengths.owners])
    return _Compared(
        a_only=(found_a - answered).astype(np.int32),
        b_only=(found_b - answered).astype(np.int32),
        both=answered.astype(np.int32),
        esl=_means(first * both, second * both, answered),
        rr=_means(both / np.maximum(first, 1), both / np.maximum(second, 1), answered),
        tests={
            "esl_signed_rank": signed_rank_tests(lengths, level=ask.level, compiled=ask.compiled),
            "esl_t": t_tests(lengths, level=ask.level),
            "rr_signed_rank": signed_rank_tests(shares, level=ask.level, compiled=ask.compiled),
            "rr_t": t_tests(shares, level=ask.level),
        },
        # Lower is better: A does no harm if B - A is above minus the margin, B if it is below it
        a_not_longer=mean_above_p(lengths, null=-ask.margins.esl),
        b_not_longer=mean_above_p(lengths, null=ask.margins.esl, below=True),
        no_rare_harm=bounded_mean_p(harm, null=ask.margins.esl, bound=ask.k - 1),
    )


def _means(first: Floats, second: Floats, sizes: Integers) -> Floats:
    """Means over queries that both find, rounded: which is the larger decides, and not an error."""
    means = [
        np.round(values.sum(axis=1) / np.maximum(sizes, 1), DECIMALS) for values in (first, second)
    ]
    return np.where(sizes > 0, np.stack(means), np.nan)


_SIDES: tuple[Alternative, Alternative] = ("greater", "less")
"""Lower is better: A does no harm if B - A is above minus the margin, B if it is below it."""


def compare_groups(
    ranks: FirstRanks, a: MethodSide, b: MethodSide, margins: Margins, *, level: float
) -> TestedPairs[PairTests]:
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
    positions = first[_DOWN] * both, second[_ACROSS] * both
    shares = tuple(np.divide(1, one, out=np.zeros(both.shape), where=both > 0) for one in positions)
    length, ones = positions[1] - positions[0], np.ones(both.shape)
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
    tests: dict[Line, TestResult] = {
        "found_crossed_t": crossed_t(found, ones, level=level),
        "esl_crossed_t": crossed_t(length, both, level=level),
        "rr_crossed_t": crossed_t(shares[1] - shares[0], both, level=level),
    }
    only = np.zeros(1, np.intp)
    return TestedPairs(
        pairs=Pairs.of([(a, b)]),
        **{name: np.array([cells.sum() / pairs]) for name, cells in sums.items()},
        esl=_weigh(*positions, both),
        rr=_weigh(shares[0], shares[1], both),
        tests={line: TestColumns.of([one], only) for line, one in tests.items()},
        a_not_fewer=np.array(fewer[:1], np.float64),
        b_not_fewer=np.array(fewer[1:], np.float64),
        a_not_longer=np.array(longer[:1], np.float64),
        b_not_longer=np.array(longer[1:], np.float64),
        no_rare_harm=rare,
    )


_DOWN = np.s_[:, None, :]
_ACROSS = np.s_[None, :, :]
"""Seeds of A go down, seeds of B across, queries along the third axis."""


def _weigh(first: Floats, second: Floats, both: Floats) -> Floats:
    """Return the means of A and of B; NaN where no query is found by both."""
    count = both.sum() or np.nan
    return np.array([[first.sum() / count], [second.sum() / count]])
