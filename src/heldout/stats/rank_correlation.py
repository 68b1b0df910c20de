"""How far two rankings agree: Kendall's tau, and AP correlation, which cares most for the top.

A ranking is given by its scores, the highest first; equal scores are ties. All coefficients go
from -1 (reversed) to 1 (the same). One that is not defined is `None`: with fewer than two items, or
where a ranking ties all of them.
"""

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from heldout.errors import InputError
from heldout.stats.checks import check_scores, problem_of

__all__ = ["TauTies", "kendall", "kendall_all", "tau_ap", "tau_ap_a", "tau_ap_b"]

TauTies = Literal["a", "b"]
"""What tied pairs count in Kendall's tau. `a`: they agree with nothing, and count among all pairs.
`b`: each ranking's tied pairs are left out of its own total."""

Scores = NDArray[np.float64]


def kendall(x: ArrayLike, y: ArrayLike, *, ties: TauTies = "b") -> float | None:
    """Kendall's tau: pairs in the same order less pairs in opposite order, as a share of pairs.

    Args:
        x: finite scores of the items.
        y: scores of the same items; x and y may change places.
        ties: what tied pairs count.

    Returns:
        -1 to 1; `None` for fewer than two items, and with `b` where x or y ties all items.
        Without ties `a` and `b` are the same.

    Raises:
        InputError: code `not-finite`.
        ValueError: x and y have different lengths.

    Source: Kendall 1945, The treatment of ties in ranking problems.
    """
    return kendall_all(_check_both(x, y), ties=ties)[0][1]


def kendall_all(
    rankings: Sequence[Scores] | Scores, *, ties: TauTies = "b"
) -> tuple[tuple[float | None, ...], ...]:
    """Kendall's tau between all rankings of the same items, as one product of two matrices.

    Args:
        rankings: finite scores, shape (rankings, items). Memory grows with the square of the
            items: 8 MB for each ranking of 1,400.
        ties: what tied pairs count.

    Returns:
        A row and a column for each ranking; `None` where tau is not defined.
    """
    values = np.asarray(rankings, np.float64)
    first, second = np.triu_indices(values.shape[1], k=1)
    order = np.sign(values[:, first] - values[:, second])
    # Whole numbers, so that the sums are exact
    agreement = order @ order.T
    untied = np.abs(order).sum(axis=1)
    if ties == "a":
        untied = np.full_like(untied, len(first))
    totals = np.sqrt(np.outer(untied, untied))
    return tuple(
        tuple(min(1.0, max(-1.0, a / t)) if t else None for a, t in zip(sums, total, strict=True))
        for sums, total in zip(agreement.tolist(), totals.tolist(), strict=True)
    )


def tau_ap(truth: ArrayLike, estimate: ArrayLike) -> float | None:
    """AP correlation: how many of those that an estimate ranks above an item belong there.

    The share is taken at each place of the estimate and averaged, so errors near the top cost
    most. Truth and estimate cannot change places.

    Args:
        truth: finite scores of the items, all different.
        estimate: scores of the same items, all different.

    Returns:
        -1 to 1; `None` for fewer than two items.

    Raises:
        InputError: codes `not-finite`, `tied-scores`.
        ValueError: the two have different lengths.

    Source: Yilmaz, Aslam and Robertson 2008, A new rank correlation coefficient for information
    retrieval.
    """
    true, estimated = _check_both(truth, estimate)
    _refuse_ties(true, "truth")
    _refuse_ties(estimated, "estimate")
    return tau_ap_a(true, estimated)


def tau_ap_a(truth: ArrayLike, estimate: ArrayLike) -> float | None:
    """AP correlation where the estimate has ties: its mean over all ways to break them.

    Args:
        truth: finite scores of the items, all different.
        estimate: scores of the same items; ties mean that their order is not known.

    Returns:
        -1 to 1; `None` for fewer than two items. Without ties it is `tau_ap`.

    Raises:
        InputError: codes `not-finite`, `tied-scores`: the truth has ties, see `tau_ap_b`.
        ValueError: the two have different lengths.

    Source: Urbano and Marrero 2017, The treatment of ties in AP correlation, tau_AP,a.
    """
    true, estimated = _check_both(truth, estimate)
    _refuse_ties(true, "truth")
    count = len(true)
    if count < 2:  # noqa: PLR2004 - one item has no order
        return None
    above = estimated[:, np.newaxis] < estimated
    right = (above & (true[:, np.newaxis] < true)).sum(axis=1)
    higher = above.sum(axis=1)
    tied = (estimated[:, np.newaxis] == estimated).sum(axis=1)
    # 1/0 + 1/1 + ... + 1/(place - 1) above each place, where 1/0 counts nothing
    inverse = np.concatenate([[0.0, 0.0], np.cumsum(1 / np.arange(1, count))])
    # An item has each place of its group equally often; the items above the group are above it
    # wherever it stands, and of those of its group above it half are in the right order
    shares = (inverse[higher + tied] - inverse[higher]) / tied
    filled = np.where(higher > 0, tied, tied - 1)
    within = (filled - higher * shares * tied) / tied / 2
    return _bound(2 * float(np.sum(right * shares + within)) / (count - 1) - 1)


def tau_ap_b(x: ArrayLike, y: ArrayLike) -> float | None:
    """AP correlation of two rankings that may both have ties, neither of which is the truth.

    The mean of both directions. In each, an item is compared with those strictly above its group
    of ties, and the items of the first group, which have none above, do not count. A pair that
    the other ranking ties is not in the right order.

    Args:
        x: finite scores of the items.
        y: scores of the same items; x and y may change places.

    Returns:
        -1 to 1; `None` for fewer than two items, and where x or y ties all of them. Without ties
        it is the mean of `tau_ap` in both directions.

    Raises:
        InputError: code `not-finite`.
        ValueError: x and y have different lengths.

    Source: Urbano and Marrero 2017, tau_AP,b.
    """
    first, second = _check_both(x, y)
    ways = (_one_way_b(first, second), _one_way_b(second, first))
    if ways[0] is None or ways[1] is None:
        return None
    return _bound((ways[0] + ways[1]) / 2)


def _one_way_b(truth: Scores, estimate: Scores) -> float | None:
    above = estimate[:, np.newaxis] < estimate
    higher = above.sum(axis=1)
    below = higher > 0
    if not below.any():
        return None
    right = (above & (truth[:, np.newaxis] < truth)).sum(axis=1)
    return 2 * float(np.mean(right[below] / higher[below])) - 1


def _check_both(x: ArrayLike, y: ArrayLike) -> tuple[Scores, Scores]:
    first, second = check_scores(x, "the first ranking"), check_scores(y, "the second ranking")
    if len(first) != len(second):
        raise ValueError(f"rankings of {len(first)} and of {len(second)} items")
    return first, second


def _refuse_ties(scores: Scores, name: str) -> None:
    values, counts = np.unique(scores, return_counts=True)
    if (counts > 1).any():
        place = int(np.argmax(counts > 1))
        raise InputError(
            problem_of(
                "tied-scores",
                name,
                f"{float(values[place])!r} {int(counts[place])} times",
                "different scores",
                hint="tau_ap_a takes ties in the estimate, tau_ap_b in both rankings",
            )
        )


def _bound(value: float) -> float:
    """The coefficient without what rounding adds beyond its ends."""
    return min(1.0, max(-1.0, value))
