"""What a test is asked and finds, what it may be given, and corrections for a family of tests.

An undefined p stays undefined and counts in its family all the same: that a test could not be made
is known only after looking, so it makes the family no smaller.
"""

import sys
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, ClassVar, Literal, Self, TypeVar, get_args, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr

from heldout.errors import InputError, Problem, quote

Alternative = Literal["two-sided", "greater", "less"]
"""`greater`: B is better, that is B - A is above the null; `less`: below it."""

SMALLEST = sys.float_info.min
"""A p that is smaller, 2.2e-308, is given as this: no p is 0."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedTest:
    """What is asked of a test.

    Attributes:
        alternative: the direction.
        level: of the two-sided interval, 0 < level < 1; 1 - level is alpha.
    """

    alternative: Alternative
    level: float

    @property
    def alpha(self) -> float:
        """The chance of error that the level leaves."""
        return 1 - self.level


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What a test finds; see `TestResult`, which adds what it was asked."""

    used: int
    difference: float | None
    low: float | None = None
    high: float | None = None
    statistic: float | None = None
    p: float | None = None
    why: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TestResult:
    """What a test says of B against A.

    Attributes:
        test: its name, a key of `heldout.stats.tests.TESTS`.
        n: scores given: queries of a paired test, scores of both systems of an unpaired one.
        used: those that the test counts, without the ties that it drops.
        difference: B - A in the test's own terms, which `Test.difference` names; `None` without
            a query, or where every one was dropped.
        low: lower end of the interval of `difference`; `None` where there is none.
        high: its upper end.
        level: of the interval, which is two-sided whatever the alternative.
        alternative: the direction of p.
        statistic: the test's own; `None` where undefined.
        p: in [2.2e-308, 1]; `None` where undefined.
        why: the reason, where p or the interval is undefined.
        options: what else it took or found, as the null or degrees of freedom.
    """

    __test__: ClassVar[bool] = False  # pytest looks for classes of this name

    test: str
    n: int
    used: int
    difference: float | None
    low: float | None
    high: float | None
    level: float
    alternative: Alternative
    statistic: float | None
    p: float | None
    why: str | None
    options: Mapping[str, object] = field(default_factory=dict)


Floats = NDArray[np.float64]


Row_co = TypeVar("Row_co", covariant=True)
_ROWS = 128


class Columns(Sequence[Row_co]):
    """Rows in columns, the fields of a dataclass: a row is made when it is asked for."""

    __slots__ = ()

    @abstractmethod
    def rows(self, start: int, stop: int) -> Sequence[Row_co]:
        """Make the rows that follow each other from one place to before another."""

    def take(self, positions: NDArray[np.intp]) -> Self:
        """Take some of the rows."""
        given = {one.name: getattr(self, one.name) for one in fields(self)}  # type: ignore[arg-type]
        return replace(self, **{name: _take(one, positions) for name, one in given.items()})  # type: ignore[type-var]

    @overload
    def __getitem__(self, position: int) -> Row_co: ...
    @overload
    def __getitem__(self, position: slice) -> Self: ...
    def __getitem__(self, position: int | slice) -> Row_co | Self:
        if isinstance(position, slice):
            return self.take(np.arange(len(self))[position])
        position = range(len(self))[position]
        return self.rows(position, position + 1)[0]

    def __iter__(self) -> Iterator[Row_co]:
        for start in range(0, len(self), _ROWS):
            yield from self.rows(start, min(start + _ROWS, len(self)))


def _take(value: Any, positions: NDArray[np.intp]) -> Any:
    """Take places of an array's last axis, of other columns, and of all columns of a mapping."""
    if isinstance(value, np.ndarray):
        return value[..., positions]
    if isinstance(value, Mapping):
        return {name: _take(one, positions) for name, one in value.items()}
    return value.take(positions) if isinstance(value, Columns) else value


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TestColumns(Columns[TestResult]):
    """What one test says of many pairs, in columns.

    Half a million results as objects take 300 MB, and as columns 24.

    Attributes:
        test: its name.
        level: of the intervals.
        n: as in `TestResult`, one for each pair; so are those that follow, NaN where undefined.
        used: whole numbers.
        difference: B - A.
        low: of the interval.
        high: of the interval.
        statistic: the test's own.
        p: two-sided.
        why: places in `reasons`.
        reasons: sentences, in which `{used}` stands for the number; `None` for no reason.
        options: of the test, the same for all pairs.
    """

    __test__: ClassVar[bool] = False

    test: str
    level: float
    n: NDArray[np.int32]
    used: NDArray[np.int32]
    difference: Floats
    low: Floats
    high: Floats
    statistic: Floats
    p: Floats
    why: NDArray[np.int8]
    reasons: tuple[str | None, ...]
    options: Mapping[str, object] = field(default_factory=dict)

    @classmethod
    def of(cls, results: Sequence[TestResult], positions: NDArray[np.intp]) -> "TestColumns":
        """Put results of one test with the same options in columns.

        Args:
            results: at least one, two-sided.
            positions: for each pair the place of its result.
        """
        reasons = tuple(dict.fromkeys(one.why for one in results))
        columns: dict[str, Any] = {
            name: np.array([getattr(one, name) for one in results], kind)[positions]
            for name, kind in _NUMBERS.items()
        }
        return cls(
            test=results[0].test,
            level=results[0].level,
            **columns,
            why=np.array([reasons.index(one.why) for one in results], np.int8)[positions],
            reasons=tuple(one and one.replace("{", "{{").replace("}", "}}") for one in reasons),
            options=results[0].options,
        )

    @classmethod
    def join(cls, parts: Sequence["TestColumns"]) -> "TestColumns":
        """Return what several say of one test, of pairs that follow each other."""
        whole: dict[str, Any] = {
            name: np.concatenate([getattr(part, name) for part in parts])
            for name in (*_NUMBERS, "why")
        }
        return replace(parts[0], **whole)

    def __len__(self) -> int:
        return len(self.p)

    def rows(self, start: int, stop: int) -> list[TestResult]:
        """Make the results of pairs that follow each other."""
        n, used, *numbers = (getattr(self, name)[start:stop] for name in _NUMBERS)
        whys = (self.reasons[position] for position in self.why[start:stop].tolist())
        return [
            TestResult(
                test=self.test,
                n=n,
                used=used,
                difference=difference,
                low=low,
                high=high,
                level=self.level,
                alternative="two-sided",
                statistic=statistic,
                p=p,
                why=why and why.format(used=used),
                options=self.options,
            )
            for n, used, difference, low, high, statistic, p, why in zip(
                n.tolist(), used.tolist(), *map(with_none, numbers), whys, strict=True
            )
        ]


_NUMBERS = {"n": np.int32, "used": np.int32} | dict.fromkeys(
    ("difference", "low", "high", "statistic", "p"), np.float64
)
"""Columns of numbers with their types."""


def with_none(column: Floats) -> list[float | None]:
    """A column of one dimension as a list; `None` for NaN, which stands there for undefined."""
    numbers: list[float | None] = column.tolist()
    for position in np.flatnonzero(np.isnan(column)).tolist():
        numbers[position] = None
    return numbers


def choose_tail(*, greater: float, less: float, alternative: Alternative) -> float:
    """The p-value of an alternative, never 0 and at most 1.

    Args:
        greater: chance of a statistic at least as great as the one observed.
        less: chance of one at most as great.
        alternative: which of them; `two-sided` is twice the smaller one.
    """
    tails = {"greater": greater, "less": less, "two-sided": 2 * min(greater, less)}
    return min(1.0, max(SMALLEST, tails[alternative]))


def normal_p(deviation: float, *, error: float, alternative: Alternative) -> float:
    """The p-value of a rank statistic by the normal approximation, corrected for continuity.

    Args:
        deviation: the statistic less its mean under the null.
        error: its standard deviation there, > 0.
        alternative: the direction.
    """
    return choose_tail(
        greater=float(ndtr((0.5 - deviation) / error)),
        less=float(ndtr((0.5 + deviation) / error)),
        alternative=alternative,
    )


_LARGEST = 1e50  # squares of squares are finite too


def check_scores(scores: ArrayLike, system: str) -> NDArray[np.float64]:
    """Scores as an array that every test can use.

    Args:
        scores: one dimension.
        system: whose they are, for errors.

    Raises:
        InputError: code `not-finite`.
        ValueError: there is more than one dimension.
    """
    values = np.asarray(scores, np.float64)
    if values.ndim != 1:
        raise ValueError(f"scores of {system} have {values.ndim} dimensions, not one")
    broken = np.flatnonzero(~(np.abs(values) <= _LARGEST))
    if len(broken):
        position = int(broken[0])
        found = f"{values[position]} at place {position + 1}"
        raise InputError.of("not-finite", f"scores of {system}", found)
    return values


def check_ask(test: str, alternative: Alternative, *, level: float) -> AskedTest:
    """Return what is asked of a test, if it can be asked.

    Args:
        test: its name.
        alternative: the direction.
        level: of the interval.

    Raises:
        InputError: all problems at once. Code `test-option`.
    """
    path, problems = f"test {test}", []
    if alternative not in get_args(Alternative):
        expected = " or ".join(get_args(Alternative))
        problems.append(Problem("test-option", path, f"alternative {quote(alternative)}", expected))
    if not 0 < level < 1:
        expected = "a number between 0 and 1"
        problems.append(Problem("test-option", path, f"level {level}", expected))
    if problems:
        raise InputError(problems)
    return AskedTest(alternative=alternative, level=float(level))


def bonferroni(ps: Sequence[float | None]) -> tuple[float | None, ...]:
    """Each p times the size of the family, at most 1.

    Args:
        ps: all p-values of the family; `None` where undefined.

    Source:
        Dunn 1961.
    """
    return tuple(with_none(bonferroni_column(np.array(ps, np.float64))))


def holm(ps: Sequence[float | None]) -> tuple[float | None, ...]:
    """Bonferroni step by step, from the smallest p: never larger, and as safe.

    Args:
        ps: all p-values of the family; `None` where undefined, which ranks behind all others.

    Source:
        Holm 1979.
    """
    return tuple(with_none(holm_column(np.array(ps, np.float64))))


def bonferroni_column(ps: Floats) -> Floats:
    """As `bonferroni`, of an array; NaN where undefined."""
    return np.minimum(1.0, ps * len(ps))


def holm_column(ps: Floats) -> Floats:
    """As `holm`, of an array; NaN where undefined."""
    order = np.argsort(ps, kind="stable")  # NaN comes last
    steps = np.minimum(1.0, ps[order] * (len(ps) - np.arange(len(ps))))
    corrected = np.empty(len(ps))
    corrected[order] = np.where(np.isnan(steps), np.nan, np.fmax.accumulate(steps))
    return corrected
