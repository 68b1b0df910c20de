"""Is a longer search excluded, also where it is so rare that no query showed it?

A t test takes the spread that was seen for the spread there is. Where both runs rank nearly all
queries alike it finds no harm in any number of them, and where they rank all alike there is no t
test. A few queries that come very much later make a mean as bad, and a small sample has none of
them. So no harm is said only where they would have been seen.
"""

import math
from typing import Literal

from heldout.validity.outcome_tests import PairTests

__all__ = ["not_longer_p", "rare_harm_p"]


def not_longer_p(pair: PairTests, side: Literal["A", "B"], *, margin: float, k: int) -> float:
    """Is a run's mean search length higher than the other's by less than the margin? The p of it.

    Args:
        pair: counted and tested.
        side: whose search length.
        margin: in positions, above 0.
        k: how deep was looked.

    Returns:
        The larger p of t and of `rare_harm_p`; the latter alone where t is undefined. 1 where no
        query is found by both, unless k leaves no room for the margin.
    """
    by_t = pair.a_not_longer if side == "A" else pair.b_not_longer
    other, own = (pair.esl.b, pair.esl.a) if side == "A" else (pair.esl.a, pair.esl.b)
    harm = 0.0 if other is None or own is None else own - other
    rare = rare_harm_p(harm, queries=pair.both, margin=margin, k=k)
    return rare if by_t is None else max(rare, by_t)


def rare_harm_p(harm: float, *, queries: float, margin: float, k: int) -> float:
    """The chance to see none of the harm that would bring the mean to the margin.

    A query comes at most k - 1 positions later. Let a share s of the queries do so, and the others
    have the mean h that was observed: the mean of all is the margin where
    s = (margin - h) / (k - 1 - h). The chance that n queries show none of them is
    (1 - s)^n = ((k - 1 - margin) / (k - 1 - h))^n.

    Where all n queries differ by the same h this is an exact test. Let p(d) be the chance that a
    query differs by d. All n are equal, and at most h, with a chance of the sum of p(d)^n over d up
    to h. That is convex in p, so it is largest in a corner of the set of all p with a mean of at
    least the margin. A corner has at most two differences: one d up to h, and one that makes up
    for it, which leaves d the more room the larger it is. So d = h beside k - 1 is the largest.
    Elsewhere it is a floor: whatever the test, samples of such queries that it calls harmless
    with a chance c make it wrong with a chance of c (1 - s)^n.

    Args:
        harm: mean of the differences on queries that both find, from 1 - k to k - 1 positions;
            above 0 is later.
        queries: how many both find, at least 0; of groups the mean over pairs of seeds, with which
            p is no smaller than with the queries that some pair finds.
        margin: the mean harm that must be excluded, above 0.
        k: how deep was looked, at least 1.

    Returns:
        From 0 to 1: 0 where k leaves no room for such a harm, 1 without a query.
    """
    most = k - 1
    if most < margin:
        return 0.0
    if harm >= margin:
        return 1.0
    return math.pow((most - margin) / (most - harm), queries)
