"""Does the depth of annotation change scores? The paper's test, and those that fit the samples.

The queries of a shallow annotation are part of those of a deep one. The paper compares both by an
unpaired t test, as if they were two samples; then half of the standard error is counted that is not
there, and the test hardly ever errs (`nested_error`). Queries that survive at a depth and queries
that do not are two samples, and may be compared so, where both are large enough for a t test: most
queries have one score, 0, and with few others on a side Welch's t errs in up to 29% of studies.

Source: Gupta and MacAvaney 2022, table 4.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from heldout.stats.rank_correlation import kendall
from heldout.stats.results import AskedTest
from heldout.stats.student import Variances, unpaired_t_test
from heldout.survivorship.depths.scores import DepthScores

_FEWEST = 2
_FEWEST_OTHER = 12
"""Queries with another score than the most common one that a side should have for Welch's t: then
the chance of an error over nine depths, at .05, is near 5% (benchmarks/depth_coverage.py); another
simulation, of other worlds, had up to 8.4%."""
_FEWEST_SYSTEMS = 3
_NONE_ADDED = "no query is added"
_FEW = "fewer than two queries on a side"
_TOO_FEW = (
    f"too few queries for a t test: fewer than {_FEWEST_OTHER} on a side are expected to have "
    "another score than the most common one"
)
_CONSTANT = "all scores on each side are the same: there is no standard error"

Scores = NDArray[np.float64]
_Sides = tuple[Scores, Scores]
"""Scores at a depth, and on the other side."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DepthTest:
    """One system at one depth, against other queries.

    Attributes:
        system: its name.
        depth: place of the depth among `DepthScores.depths`.
        queries: of the depth.
        others: queries on the other side.
        difference: mean of the other side minus that of the depth; `None` without a query.
        low, high: interval of `difference`; `None` where undefined.
        p: two-sided, `None` where undefined.
        p_corrected: by Bonferroni over the depths of the system, as the paper's stars seem to be.
        why: the reason where p is undefined, else "".
    """

    system: str
    depth: int
    queries: int
    others: int
    difference: float | None
    low: float | None = None
    high: float | None = None
    p: float | None = None
    p_corrected: float | None = None
    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreChange:
    """Why a system's score with all labels differs from that at a depth.

    The two parts add up to `score with all labels - score at the depth`.

    Attributes:
        system: its name.
        depth: place of the depth.
        labels: what more labels of the same queries add; `None` without a query at the depth.
        queries: what the queries add that have labels only deeper; the same.
    """

    system: str
    depth: int
    labels: float | None
    queries: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderAtDepth:
    """How alike a depth and all labels order the systems.

    Attributes:
        depth: place of the depth.
        tau: Kendall's tau-b; `None` where undefined.
        why: the reason there, else "".
    """

    depth: int
    tau: float | None
    why: str = ""


def compare_nested(scores: DepthScores, *, level: float = 0.95) -> tuple[DepthTest, ...]:
    """The paper's test: each depth against all labels, unpaired, though all holds the depth.

    Args:
        scores: of the systems at each depth.
        level: of the intervals.

    Returns:
        A test for each depth but the last and each system.

    Source: Gupta and MacAvaney 2022, table 4.
    """

    def sides(system: int, depth: int) -> _Sides:
        return scores.scores(system, depth), scores.scores(system, -1)

    return _compare(scores, sides, "student", level)


def compare_survivors(scores: DepthScores, *, level: float = 0.95) -> tuple[DepthTest, ...]:
    """Queries with a label at a depth against those that have one only deeper, by Welch's t.

    Both sides are scored with all labels, so they differ in their queries and in nothing else.

    Args:
        scores: of the systems at each depth.
        level: of the intervals.
    """

    def sides(system: int, depth: int) -> _Sides:
        last, known = scores.values[system, :, -1], scores.known[:, depth]
        return last[known], last[~known]

    return _compare(scores, sides, "welch", level)


def split_change(scores: DepthScores) -> tuple[ScoreChange, ...]:
    """Return how far more labels of the same queries, and how far other queries, change a score."""
    changes = []
    for depth in range(len(scores.depths) - 1):
        known = scores.known[:, depth]
        for place, system in enumerate(scores.systems):
            labels = queries = None
            if known.any():
                last = scores.values[place, :, -1]
                labels = float((last[known] - scores.values[place, known, depth]).mean())
                queries = float(last.mean() - last[known].mean())
            changes.append(ScoreChange(system=system, depth=depth, labels=labels, queries=queries))
    return tuple(changes)


def order_of_systems(scores: DepthScores) -> tuple[OrderAtDepth, ...]:
    """Kendall's tau between the order of the systems at each depth but the last, and by all."""
    if len(scores.systems) < _FEWEST_SYSTEMS:
        why = f"tau says nothing of fewer than {_FEWEST_SYSTEMS} systems"
        return tuple(
            OrderAtDepth(depth=depth, tau=None, why=why) for depth in range(len(scores.depths) - 1)
        )
    *shallow, deep = scores.means()
    return tuple(_order(depth, row, deep) for depth, row in enumerate(shallow))


def nested_error(share: float, *, alpha: float = 0.05) -> float:
    """Return how often the paper's test errs where depth means nothing, in large samples.

    With a share of the queries in both samples, the difference of the means has a variance of
    (1 - share) / (1 + share) of what an unpaired test takes it for. This holds where such a query
    has the same score in both: where more labels of a query change no score.

    Args:
        share: queries at the depth, of all; above 0, below 1.
        alpha: the error that is meant.
    """
    return float(2 * ndtr(ndtri(alpha / 2) * np.sqrt((1 + share) / (1 - share))))


def _order(depth: int, row: Sequence[float | None], deep: Sequence[float | None]) -> OrderAtDepth:
    means = [one for one in row if one is not None]
    if len(means) < len(row):
        return OrderAtDepth(depth=depth, tau=None, why="no query has a label at this depth")
    tau = kendall(means, [one or 0.0 for one in deep])
    why = "" if tau is not None else "all systems have the same score"
    return OrderAtDepth(depth=depth, tau=tau, why=why)


def _compare(
    scores: DepthScores, sides: Callable[[int, int], _Sides], kind: Variances, level: float
) -> tuple[DepthTest, ...]:
    depths = range(len(scores.depths) - 1)
    return tuple(
        _test(name, depth, sides(system, depth), kind, family=len(depths), level=level)
        for depth in depths
        for system, name in enumerate(scores.systems)
    )


def _test(
    system: str, depth: int, sides: _Sides, kind: Variances, *, family: int, level: float
) -> DepthTest:
    """Test one system at one depth; by Welch's t where no query is on both sides."""
    first, second = sides
    test = DepthTest(
        system=system,
        depth=depth,
        queries=len(first),
        others=len(second),
        difference=float(second.mean() - first.mean()) if len(first) and len(second) else None,
        why=_why(sides) or (_TOO_FEW if kind == "welch" and _too_few(sides) else ""),
    )
    if test.why:
        return test
    found = unpaired_t_test(
        first, second, AskedTest(alternative="two-sided", level=level), kind=kind
    )
    return replace(
        test,
        difference=found.difference,
        low=found.low,
        high=found.high,
        p=found.p,
        p_corrected=None if found.p is None else min(1.0, found.p * family),
    )


def _why(sides: _Sides) -> str:
    if not len(sides[1]):
        return _NONE_ADDED
    if min(map(len, sides)) < _FEWEST:
        return _FEW
    return "" if any(np.ptp(side) > 0 for side in sides) else _CONSTANT


def _too_few(sides: _Sides) -> bool:
    """Check whether the smaller side is too small, by the share of other scores on both together.

    By the share on both, so that what chance gave the smaller side does not decide.
    """
    _, counts = np.unique(np.concatenate(sides), return_counts=True)
    share = 1 - counts.max() / counts.sum()
    return bool(min(map(len, sides)) * share < _FEWEST_OTHER)
