"""What a model judge may do: say which pairs people should see next, and be checked against them.

It orders pairs and nothing else. No vote, label or verdict on a worker comes from here.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from heldout.preferences.calibration import LEADS, Verdict
from heldout.preferences.drawing import Pair
from heldout.preferences.votes import Votes

__all__ = ["draw_judged_pairs", "order_pairs"]


def order_pairs(
    pairs: Iterable[Pair],
    verdicts: Iterable[Verdict],
    *,
    turn: Mapping[Pair, int] | None = None,
) -> tuple[Pair, ...]:
    """Pairs in the order in which people should see them.

    Those where a model is least sure come first: flips, then the least confident, then pairs that
    it did not judge, then those it is sure of without a number.

    Args:
        pairs: those that wait.
        verdicts: of a model.
        turn: pair -> when it is due, the least first, as the votes it has already; 0 where absent.
            The model only breaks its ties.
    """
    known = {one.pair: one for one in verdicts}
    due = turn or {}
    return tuple(sorted(pairs, key=lambda pair: (due.get(pair, 0), _sureness(known.get(pair)))))


def draw_judged_pairs(votes: Votes, *, count: int, rng: np.random.Generator) -> tuple[Pair, ...]:
    """Pairs that people have judged, at random, each lead of votes by its share of all.

    So a calibration is neither of close pairs alone nor of clear ones, and what it says of the
    sample holds of all. A greater count adds pairs to those of a smaller one.

    Args:
        votes: of people.
        count: how many pairs at most.
        rng: draws them.
    """
    strata: defaultdict[int, list[Pair]] = defaultdict(list)
    for query, found in votes.items():
        for (first, second), one in found.items():
            strata[min(abs(one.first - one.second), LEADS[-1])].append((query, first, second))
    placed = [
        ((place + 0.5) / len(strata[lead]), pair)
        for lead in sorted(strata)
        for place, pair in enumerate(_shuffle(strata[lead], rng))
    ]
    placed.sort(key=lambda one: one[0])
    return tuple(pair for _, pair in placed[:count])


def _sureness(verdict: Verdict | None) -> tuple[int, float]:
    if verdict is None:
        return (2, 0.0)
    if verdict.share == 0.5:  # noqa: PLR2004 - neither
        return (0, 0.0)
    if verdict.probability is None:
        return (3, 0.0)
    return (1, abs(verdict.probability - 0.5))


def _shuffle(pairs: Sequence[Pair], rng: np.random.Generator) -> list[Pair]:
    return [pairs[place] for place in rng.permutation(len(pairs)).tolist()]
