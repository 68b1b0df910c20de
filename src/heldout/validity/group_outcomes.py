"""What is counted and tested of two groups of seeds.

The same outcomes as of two runs (`outcome_tests`), averaged over all pairs of a seed of A and one
of B, and compared across seeds and queries at once (`stats.crossed`).
"""

import numpy as np
from numpy.typing import NDArray

from heldout.stats.exact import gather_samples
from heldout.stats.results import Alternative
from heldout.stats.student import bounded_mean_p, crossed_t
from heldout.validity.first_ranks import FirstRanks, Side
from heldout.validity.outcome_tests import Margins, Means, PairTests

__all__ = ["compare_groups"]

Floats = NDArray[np.float64]

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


_ROWS = np.s_[:, None, :]
_COLUMNS = np.s_[None, :, :]
"""Seeds of A go down, seeds of B across, queries along the third axis."""


def _weigh(first: Floats, second: Floats, both: Floats) -> Means:
    count = float(both.sum())
    if not count:
        return Means(a=None, b=None)
    return Means(a=float(first.sum()) / count, b=float(second.sum()) / count)
