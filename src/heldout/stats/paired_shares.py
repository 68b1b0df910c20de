"""Is a share of queries lower by less than a margin? The score test of paired shares.

Two systems that differ on a few queries only, or on none, have no usable standard error of the
difference. The score test takes the error under the null instead, where it is never 0.
"""

import math

from scipy.special import ndtr

from heldout.stats.result import SMALLEST

__all__ = ["share_not_lower_p"]


def share_not_lower_p(a_only: int, b_only: int, *, size: int, margin: float) -> float:
    """The p-value against: B answers a share of queries that is lower by the margin or more.

    Args:
        a_only: queries that A alone answers.
        b_only: those that B alone answers.
        size: all queries, at least 1 and at least those of both kinds.
        margin: between 0 and 1, in shares of all queries.

    Returns:
        In [2.2e-308, 1], by the normal approximation.

    Source:
        Tango 1998, Statistics in Medicine 17, section 3.
    """
    if not 0 < margin < 1:
        raise ValueError(margin)
    if not (min(a_only, b_only) >= 0 and size >= max(1, a_only + b_only)):
        raise ValueError((a_only, b_only, size))
    share = _share_of_a_only(a_only, b_only, size=size, margin=margin)
    error = math.sqrt(size * (2 * share - margin * (1 + margin)))
    return max(SMALLEST, float(ndtr(-(b_only - a_only + size * margin) / error)))


def _share_of_a_only(a_only: int, b_only: int, *, size: int, margin: float) -> float:
    """The likeliest share of queries that A alone answers, where B's is lower by the margin."""
    # The likelihood's derivative under p(B alone) = p(A alone) - margin, times its denominators
    square = 2 * size
    linear = -(a_only + b_only + (2 * size + a_only - b_only) * margin)
    constant = a_only * margin * (1 + margin)
    root = math.sqrt(max(0.0, linear * linear - 4 * square * constant))
    return (root - linear) / (2 * square)
