"""How often a run orders two passages as people do (shallow-pooling, section 4.1).

Of the judged pairs with both passages among a run's first ten documents, the share that the run
orders as most votes do. Run L of the study came to 63.07%, the most of all.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import sqrt

from scipy.special import stdtrit

from heldout.preferences.votes import Votes
from heldout.trec.places import Places

__all__ = ["OrderAgreement", "fold_places", "order_agreement"]

_PAIR = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderAgreement:
    """One run and the judged pairs.

    Attributes:
        pairs: judged pairs with both passages in the run's top, and more votes for one of them.
        agreed: of those, the pairs that the run orders as judged.
        queries: how many queries they are of.
        share: `None` without a pair.
        low, high: of the share, with queries as what is drawn; `None` for fewer than two queries,
            and where the shares of all are the same.
    """

    pairs: int
    agreed: int
    queries: int
    share: float | None
    low: float | None
    high: float | None


def fold_places(places: Places, same: Mapping[str, Mapping[str, str]]) -> Places:
    """Places by the document that stands for a text: the first place where the text is shown.

    Args:
        places: of a run.
        same: as `stand_for` gives it.
    """
    folded: dict[str, dict[str, int]] = {}
    for query, found in places.found.items():
        stands = same.get(query, {})
        folded[query] = {}
        for doc, place in sorted(found.items(), key=lambda one: one[1]):
            folded[query].setdefault(stands.get(doc, doc), place)
    return Places(found=folded, retrieved=places.retrieved)


def order_agreement(
    places: Places, votes: Votes, *, depth: int = 10, level: float = 0.95
) -> OrderAgreement:
    """Compare the order of a run with what people prefer.

    Args:
        places: of the passages that were judged, by the documents that stand for their texts.
        votes: those that count.
        depth: how deep in the run both passages stand at most.
        level: of the interval.

    Returns:
        The share, with an interval from the spread of the queries' shares around it: pairs of a
        query are not independent.
    """
    counts = []
    for query, found in votes.items():
        top = {doc: at for doc, at in places.found.get(query, {}).items() if at <= depth}
        right = [
            (top[a] < top[b]) == (cast.first > cast.second)
            for (a, b), cast in found.items()
            if a in top and b in top and cast.first != cast.second
        ]
        if right:
            counts.append((sum(right), len(right)))
    pairs, agreed = sum(n for _, n in counts), sum(n for n, _ in counts)
    share = agreed / pairs if pairs else None
    half = None if share is None else _half_width(counts, share, level)
    return OrderAgreement(
        pairs=pairs,
        agreed=agreed,
        queries=len(counts),
        share=share,
        low=None if share is None or half is None else max(0.0, share - half),
        high=None if share is None or half is None else min(1.0, share + half),
    )


def _half_width(counts: list[tuple[int, int]], share: float, level: float) -> float | None:
    """Of the t interval of a ratio, linearised, with queries as clusters."""
    queries, pairs = len(counts), sum(n for _, n in counts)
    squares = sum((agreed - share * n) ** 2 for agreed, n in counts)
    if queries < _PAIR or squares == 0:
        return None
    error = sqrt(queries / (queries - 1) * squares) / pairs
    return float(stdtrit(queries - 1, (1 + level) / 2)) * error
