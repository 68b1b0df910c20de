"""Votes: what the judgments of each pair come to."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from heldout.preferences.judgments import Judgment

__all__ = ["PairVotes", "Votes", "count_votes"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PairVotes:
    """The votes on one pair.

    Attributes:
        first: for the passage with the lesser id.
        second: for the other.
    """

    first: int
    second: int

    @property
    def total(self) -> int:
        """All votes."""
        return self.first + self.second


Votes = Mapping[str, Mapping[tuple[str, str], PairVotes]]
"""Query -> (lesser id, greater id) -> votes."""


def count_votes(
    judgments: Iterable[Judgment], *, same: Mapping[str, Mapping[str, str]] | None = None
) -> Votes:
    """Count votes by pair.

    Args:
        judgments: those that count, as `counted` gives them.
        same: query -> document -> the one that stands for its text in the pool. A vote between
            two documents of one text says nothing and is left out.

    Returns:
        Queries and pairs in order of their ids, each with at least one vote.
    """
    found: defaultdict[str, defaultdict[tuple[str, str], list[int]]] = defaultdict(
        lambda: defaultdict(lambda: [0, 0])
    )
    for one in judgments:
        stands = (same or {}).get(one.query, {})
        if one.preferred is None or one.other is None:
            continue
        won, lost = stands.get(one.preferred, one.preferred), stands.get(one.other, one.other)
        if won != lost:
            found[one.query][min(won, lost), max(won, lost)][won > lost] += 1
    return {
        query: {
            pair: PairVotes(first=first, second=second)
            for pair, (first, second) in sorted(found[query].items())
        }
        for query in sorted(found)
    }
