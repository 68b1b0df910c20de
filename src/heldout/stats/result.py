"""What a test is asked, what it finds, and how a p-value is taken from its tails."""

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

from scipy.special import ndtr

__all__ = ["SMALLEST", "Alternative", "Ask", "Found", "TestResult", "choose_tail", "normal_p"]

Alternative = Literal["two-sided", "greater", "less"]
"""`greater`: B is better, that is B - A is above the null; `less`: below it."""

SMALLEST = sys.float_info.min
"""A p that is smaller, 2.2e-308, is given as this: no p is 0."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
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
    level: float | None = None
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
        options: every option with the value it had.
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
    options: Mapping[str, object]


def choose_tail(*, greater: float, less: float, alternative: Alternative) -> float:
    """The p-value of an alternative, never 0 and at most 1.

    Args:
        greater: chance of a statistic at least as great as the one observed.
        less: chance of one at most as great.
        alternative: which of them; `two-sided` is twice the smaller one.
    """
    tails = {"greater": greater, "less": less, "two-sided": 2 * min(greater, less)}
    return min(1.0, max(SMALLEST, tails[alternative]))


def normal_p(
    deviation: float, *, error: float, continuity: bool, alternative: Alternative
) -> float:
    """The p-value of a rank statistic by the normal approximation.

    Args:
        deviation: the statistic less its mean under the null.
        error: its standard deviation there, > 0.
        continuity: whether the deviation is brought half a rank nearer to the null.
        alternative: the direction.
    """
    half = 0.5 if continuity else 0.0
    return choose_tail(
        greater=float(ndtr((half - deviation) / error)),
        less=float(ndtr((half + deviation) / error)),
        alternative=alternative,
    )
