"""A count of queries as a share, with its interval."""

from dataclasses import dataclass

from scipy.stats import binomtest

__all__ = ["Share", "share_of", "wilson"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """So many of so many.

    Attributes:
        count: how many.
        of: of how many.
        share: of them, 0 to 1; `None` where there are none.
        low: lower end of the Wilson interval; `None` with `share`.
        high: its upper end.
    """

    count: int
    of: int
    share: float | None
    low: float | None
    high: float | None


def share_of(count: int, of: int, *, level: float = 0.95) -> Share:
    """A share with its interval.

    Args:
        count: 0 to `of`.
        of: how many there are, >= 0.
        level: of the interval, in (0, 1).
    """
    if not of:
        return Share(count=count, of=of, share=None, low=None, high=None)
    low, high = wilson(count, of, level=level)
    return Share(count=count, of=of, share=count / of, low=low, high=high)


def wilson(count: int, of: int, *, level: float) -> tuple[float, float]:
    """The interval of a share, which holds also for few queries and near 0 and 1.

    Args:
        count: 0 to `of`.
        of: how many there are, >= 1.
        level: of the interval, in (0, 1).

    Source: Wilson 1927.
    """
    ends = binomtest(count, of).proportion_ci(level, "wilson")
    return float(ends.low), float(ends.high)
