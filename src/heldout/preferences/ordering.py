"""How often a run orders two passages as people do (shallow-pooling, section 4.1).

Of the judged pairs with both passages among a run's first ten documents, the share that the run
orders as most votes do. Run L of the study came to 63.07%, the most of all.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from heldout.preferences.votes import Votes
from heldout.stats.regression import clustered_share
from heldout.trec.places import Places

__all__ = ["OrderAgreement", "fold_places", "order_agreement"]


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderAgreement:
    """One run and the judged pairs.

    Attributes:
        pairs: judged pairs with both passages in the run's top, and more votes for one of them.
        agreed: of those, the pairs that the run orders as judged.
        queries: how many queries they are of.
        share: `None` without a pair.
        low, high: of the share, with queries as what is drawn; `None` for fewer than two queries.
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
    right, queries = [], []
    for query, found in votes.items():
        top = {doc: at for doc, at in places.found.get(query, {}).items() if at <= depth}
        mine = [
            (top[a] < top[b]) == (cast.first > cast.second)
            for (a, b), cast in found.items()
            if a in top and b in top and cast.first != cast.second
        ]
        right += mine
        queries += [query] * len(mine)
    share = clustered_share(right, queries, level=level)
    return OrderAgreement(
        pairs=len(right),
        agreed=sum(right),
        queries=share.groups,
        share=share.value,
        low=share.low,
        high=share.high,
    )
