"""Maintenance: labels that grow as new runs come (shallow-pooling, section 6).

A new run's first document that nobody has judged challenges the best known answer of its query. It
takes its place once it leads by so many votes: one vote would wrongly exchange answers a third of
the time. A lead that is enough for one challenger is not enough for many: `LeadRule.budget` bounds
how often equally good ones ever replace a query's first answer. Everything follows from pools and
judgments, so any day's labels can be made again.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from math import comb

import msgspec

from heldout.errors import InputError, Problem
from heldout.preferences.contests import stand_for
from heldout.preferences.drawing import Pair
from heldout.preferences.judgments import Judgment
from heldout.preferences.labels import make_labels
from heldout.preferences.pools import Pool
from heldout.preferences.versions import ALGORITHMS, Algorithm
from heldout.preferences.votes import count_votes

__all__ = [
    "BUDGET",
    "CAP",
    "LEAD",
    "Best",
    "LeadRule",
    "Maintained",
    "Replacement",
    "Vote",
    "chance_of_lead",
    "first_best",
    "follow_challenges",
    "is_challenge",
    "list_votes",
    "spread_labels",
]

LEAD = 3
"""Votes that a challenger has to lead by, if nothing else is asked for."""

CAP = 21
"""Votes on a challenge at most, if nothing else is asked for."""

BUDGET = 0.1
"""How often equally good challengers may ever replace a query's first answer, likewise."""

Best = Mapping[str, tuple[str, ...]]
"""Query -> its best known answers, by the documents that stand for their texts; mostly one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeadRule:
    """When a challenger takes the place of the best known answer.

    Attributes:
        lead: with so many votes more, at least.
        cap: after so many votes without that the answer stays.
        algorithm: finds the best of a pool before any challenge.
        budget: chance that challengers that are all as good as a query's first answer ever replace
            it, however many come; 0: not controlled, `lead` is enough for each of them.
    """

    lead: int = LEAD
    cap: int = 7
    algorithm: Algorithm = "tournament"
    budget: float = 0.0

    def needed(self, number: int) -> int:
        """The lead that a query's challenge of this number needs; more than `cap`: none is enough.

        The k-th challenge may spend budget / (k (k + 1)), which adds up to the budget over any
        number of them. Votes between equals are tosses of a coin, so the lead is exact.

        Args:
            number: of the challenge among those of its query that have a vote, from 1.
        """
        if not self.budget:
            return self.lead
        share = self.budget / (number * (number + 1))
        enough = (n for n in range(self.lead, self.cap + 1) if chance_of_lead(n, self.cap) <= share)
        return next(enough, self.cap + 1)

    def __post_init__(self) -> None:
        """Refuse a rule by which nothing could ever be exchanged.

        Raises:
            InputError: code `bad-lead`.
        """
        if not 1 <= self.lead <= self.cap:
            raise InputError(
                Problem(
                    code="bad-lead",
                    path="--lead",
                    found=f"a lead of {self.lead} within {self.cap} votes",
                    expected=f"1 to {self.cap} (--cap)",
                )
            )
        if not 0 <= self.budget < 1 or self.needed(1) > self.cap:
            raise InputError(
                Problem(
                    code="bad-lead",
                    path="--budget",
                    found=f"a budget of {self.budget:g} within {self.cap} votes",
                    expected="0 (no control), or one that a challenger can meet with all the votes",
                    hint="allow more votes (--cap)",
                )
            )


@cache
def chance_of_lead(lead: int, cap: int) -> float:
    """How often one of two equals ever leads by so many votes, within the cap.

    Args:
        lead: at least 1.
        cap: votes, each a toss of a fair coin.
    """

    def at_least(margin: int) -> int:
        return sum(comb(cap, won) for won in range(cap + 1) if 2 * won - cap >= margin)

    return float((at_least(lead) + at_least(lead + 1)) / 2**cap)  # the reflection principle


@dataclass(frozen=True, slots=True, kw_only=True)
class Vote:
    """A vote on a challenge.

    Attributes:
        query: its id.
        winner: the document that was preferred.
        loser: the other one.
        at: when it came, ISO 8601; empty where unknown.
    """

    query: str
    winner: str
    loser: str
    at: str


class Replacement(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A best known answer that was replaced.

    Attributes:
        query: its id.
        before: what was best.
        after: the challenger.
        at: when the vote came that decided, ISO 8601; empty where unknown.
    """

    query: str
    before: tuple[str, ...]
    after: str
    at: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Maintained:
    """The best known answers after all challenges.

    Attributes:
        best: of each query.
        replaced: in the order they were decided.
        challenged: query -> challengers, each with the best answers that it met, in the order of
            their first votes: the number that `LeadRule.needed` goes by.
    """

    best: Best
    replaced: tuple[Replacement, ...]
    challenged: Mapping[str, tuple[tuple[str, tuple[str, ...]], ...]]


def is_challenge(pair: Pair, same: Mapping[str, Mapping[str, str]]) -> bool:
    """Whether a pair has a document that its query's pool lacks.

    Args:
        pair: query and two documents.
        same: query -> document -> the one that stands for its text, as `stand_for` gives it.
    """
    query, *documents = pair
    return not same.get(query, {}).keys() >= set(documents)


def first_best(
    pools: Sequence[Pool], votes: Iterable[Judgment], *, algorithm: Algorithm = "tournament"
) -> Best:
    """The best of each pool as judged before any challenge, or its known answer.

    Args:
        pools: of the campaign.
        votes: those that count; only votes on pairs of the pools are looked at.
        algorithm: finds the best of a pool.
    """
    same = stand_for(pools)
    pooled = [one for one in votes if not is_challenge(one.pair, same)]
    find = ALGORITHMS[algorithm]
    played = make_labels(pools, count_votes(pooled, same=same), find=find).tournaments
    best = {}
    for pool in pools:
        if pool.query in played:
            best[pool.query] = played[pool.query].best
        elif pool.known is not None:
            best[pool.query] = (pool.known.doc,)
    return best


def follow_challenges(best: Best, votes: Iterable[Judgment], rule: LeadRule) -> Maintained:
    """Go over the votes on challenges as they came.

    A challenger has to lead against each of the best where there are several: then it stands alone.
    Of votes on a pair those beyond the cap say nothing. Who meets other best answers than before is
    another challenge.

    Args:
        best: before any challenge.
        votes: those that count, on challenges.
        rule: when an answer is exchanged.
    """
    now, replaced = dict(best), []
    won: Counter[tuple[str, str, str]] = Counter()
    challenged: defaultdict[str, list[tuple[str, tuple[str, ...]]]] = defaultdict(list)
    for vote in list_votes(votes, rule):
        query, challenger, other = vote.query, vote.winner, vote.loser
        won[query, challenger, other] += 1
        mine = now.get(query, ())
        if (challenger in mine) == (other in mine):
            continue
        met = (other if challenger in mine else challenger, mine)
        if met not in challenged[query]:
            challenged[query].append(met)
        if challenger in mine:
            continue
        margins = [won[query, challenger, b] - won[query, b, challenger] for b in mine]
        if min(margins) >= rule.needed(challenged[query].index(met) + 1):
            now[query] = (challenger,)
            replaced.append(Replacement(query=query, before=mine, after=challenger, at=vote.at))
    return Maintained(
        best=now,
        replaced=tuple(replaced),
        challenged={query: tuple(found) for query, found in challenged.items()},
    )


def list_votes(votes: Iterable[Judgment], rule: LeadRule) -> Iterator[Vote]:
    """Votes on challenges as they came, of each pair no more than the cap."""
    cast: Counter[Pair] = Counter()
    for one in sorted(votes, key=lambda one: one.answered_at):
        if one.preferred is not None and one.other is not None and cast[one.pair] < rule.cap:
            cast[one.pair] += 1
            yield Vote(query=one.query, winner=one.preferred, loser=one.other, at=one.answered_at)


def spread_labels(
    best: Best, pools: Sequence[Pool], challengers: Sequence[Pool]
) -> Mapping[str, tuple[str, ...]]:
    """The best under every id that has their text, sorted."""
    ids: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
    for pool in (*pools, *challengers):
        for one in pool.candidates:
            ids[pool.query, one.doc].update((one.doc, *one.same))
    return {
        query: tuple(sorted(set().union(*(ids[query, doc] for doc in documents))))
        for query, documents in best.items()
    }
