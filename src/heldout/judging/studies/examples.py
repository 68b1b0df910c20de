"""Judged pairs with their texts, drawn before anybody knows what was preferred.

Arabzadeh et al. 2021, figure 1.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from heldout.errors import InputError
from heldout.judging.campaign.judgments import PairVotes, Votes
from heldout.judging.campaign.pools import Candidate, Pool


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """A judged pair.

    Attributes:
        query: its id.
        question: its text.
        first: the passage with more votes; with as many, the one with the lesser id.
        second: the other.
        votes: for the first, and for the second.
    """

    query: str
    question: str
    first: Candidate
    second: Candidate
    votes: tuple[int, int]

    @property
    def outcome(self) -> str:
        """How people voted on it, in a line."""
        ahead, behind = self.votes
        if ahead == behind:
            return f"{ahead:,} preferred either"
        return f"{ahead:,} of {ahead + behind:,} preferred the first"


def draw_examples(
    pools: Sequence[Pool], votes: Votes, rng: np.random.Generator, *, count: int = 3
) -> tuple[Example, ...]:
    """Draw queries, and a judged pair of each, without a look at votes or texts.

    Args:
        pools: with texts; pools without a judged pair of two texts are passed over.
        votes: those that count, by the documents that stand for their texts.
        rng: of the draw.
        count: how many; all where there are fewer.

    Raises:
        InputError: code `no-text`: no judged pair has texts.
    """
    judged = [(pool, pairs) for pool in pools if (pairs := _pairs(pool, votes))]
    if not judged:
        raise InputError.of(
            code="no-text",
            path="pools",
            found="no judged pair has its texts",
            expected="a campaign that was pooled with --documents",
        )
    chosen = rng.choice(len(judged), size=min(count, len(judged)), replace=False)
    found = []
    for place in chosen.tolist():
        pool, pairs = judged[place]
        pair = pairs[int(rng.integers(len(pairs)))]
        found.append(_example(pool, pair, votes[pool.query][pair]))
    return tuple(found)


def _pairs(pool: Pool, votes: Votes) -> list[tuple[str, str]]:
    texts = {one.doc for one in pool.candidates if one.text}
    return [pair for pair in votes.get(pool.query, {}) if texts >= set(pair)]


def _example(pool: Pool, pair: tuple[str, str], cast: PairVotes) -> Example:
    by_doc = {one.doc: one for one in pool.candidates}
    shown = [(by_doc[pair[0]], cast.first), (by_doc[pair[1]], cast.second)]
    (first, ahead), (second, behind) = sorted(shown, key=lambda one: -one[1])
    return Example(
        query=pool.query, question=pool.text, first=first, second=second, votes=(ahead, behind)
    )
