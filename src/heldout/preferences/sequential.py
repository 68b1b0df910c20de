"""Fewer judgments: the best passage so far against one challenger after another.

Who is ahead by `lead` votes wins the duel; after `cap` answers who is ahead wins it, and the
passage that was best so far where nobody is. The loser is not shown again. Which pairs are wanted
next follows from the judgments alone, so a search can be stopped and gone on with at any time.

Who comes first has to win the most duels: of five passages that are equally good the first stays
best once in 16 times, the last every second time. So passages meet in an order that has nothing to
do with who is the known answer: if that came first, luck alone would nearly always replace it.

Stopping when somebody leads makes shares of votes look larger than they are: the votes say who is
best, and not by how much.
"""

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from heldout.preferences.contests import stand_for
from heldout.preferences.drawing import Pair
from heldout.preferences.judgments import Judgment, counted
from heldout.preferences.pools import Pool
from heldout.preferences.settings import Settings
from heldout.preferences.strengths import find_strongest
from heldout.preferences.tournament import Tournament
from heldout.preferences.votes import PairVotes, Votes, count_votes

__all__ = [
    "Search",
    "Wanted",
    "count_answers",
    "expected_votes",
    "find_unbeaten",
    "lead_error",
    "meeting_order",
    "next_pairs",
    "search",
]

_NONE = PairVotes(first=0, second=0)
_CHANCE = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """A pair to be judged next.

    Attributes:
        pair: query and two documents, the lesser first.
        votes: how many people have to judge it before anything can be decided.
    """

    pair: Pair
    votes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """How far the search for a query's best passage has come.

    Attributes:
        best: the best passage so far.
        challenger: the passage that it meets now; `None` when all have been met.
        wanted: answers that this duel still needs at least; 0 when all have been met.
    """

    best: str
    challenger: str | None
    wanted: int


def lead_error(p: float, lead: int) -> float:
    """How often the worse of two wins a duel without a cap.

    Args:
        p: chance that a vote is for the better one, in [0.5, 1].
        lead: votes ahead that decide, at least 1.

    Returns:
        q^k / (p^k + q^k), the gambler's ruin (Feller 1968, XIV.2).
    """
    return (1 - p) ** lead / (p**lead + (1 - p) ** lead)


def expected_votes(p: float, lead: int) -> float:
    """How many votes a duel without a cap takes on average.

    Args:
        p: chance that a vote is for the better one, in [0.5, 1].
        lead: votes ahead that decide, at least 1.

    Returns:
        k (1 - 2e) / (p - q) with the error e; k^2 for a fair coin (Feller 1968, XIV.3).
    """
    if p == _CHANCE:
        return float(lead**2)
    return lead * (1 - 2 * lead_error(p, lead)) / (2 * p - 1)


def search(
    passages: Sequence[str],
    votes: Mapping[tuple[str, str], PairVotes],
    *,
    lead: int,
    cap: int,
    answers: Mapping[tuple[str, str], int] | None = None,
) -> Search:
    """Follow the duels of a pool as far as they are decided.

    Args:
        passages: in the order in which they meet, at least one; the first is the best so far.
        votes: by pair, the lesser id first.
        lead: votes ahead that win a duel.
        cap: answers that end it.
        answers: by pair, with those that preferred neither; `None` where these are the votes.
    """
    best = passages[0]
    for challenger in passages[1:]:
        pair = (min(best, challenger), max(best, challenger))
        found = votes.get(pair, _NONE)
        ahead = (found.second - found.first) * (1 if challenger == pair[1] else -1)
        given = found.total if answers is None else max(found.total, answers.get(pair, 0))
        if abs(ahead) < lead and given < cap:
            wanted = min(lead - abs(ahead), cap - given)
            return Search(best=best, challenger=challenger, wanted=wanted)
        if ahead > 0:
            best = challenger
    return Search(best=best, challenger=None, wanted=0)


def next_pairs(
    pools: Iterable[Pool],
    judgments: Iterable[Judgment],
    settings: Settings,
    *,
    planned: Mapping[Pair, int] | None = None,
) -> tuple[Wanted, ...]:
    """Pairs to be judged next: at most one of each query.

    Args:
        pools: the passages of each query.
        judgments: all that were recorded; which count is for `settings` to say.
        settings: lead, cap, and what failed tests exclude.
        planned: pair -> copies that are in tasks already; a query whose duel still waits for
            answers is left out.
    """
    kept = tuple(pools)
    recorded = tuple(judgments)
    valid = counted(recorded, exclusion=settings.exclusion, failures=settings.failures)
    votes: Votes = count_votes(valid, same=stand_for(kept))
    answers = count_answers(recorded, settings)
    given: dict[str, dict[tuple[str, str], int]] = {pool.query: {} for pool in kept}
    for (query, a, b), count in answers.items():
        given.setdefault(query, {})[a, b] = count
    wanted = []
    for pool in kept:
        found = search(
            meeting_order(pool),
            votes.get(pool.query, {}),
            lead=settings.lead,
            cap=settings.cap,
            answers=given[pool.query],
        )
        if found.challenger is None:
            continue
        first, second = sorted((found.best, found.challenger))
        pair = (pool.query, first, second)
        if (planned or {}).get(pair, 0) <= answers.get(pair, 0):
            wanted.append(Wanted(pair=pair, votes=found.wanted))
    return tuple(wanted)


def meeting_order(pool: Pool) -> tuple[str, ...]:
    """The passages of a pool as they meet: mixed, and the same whenever it is asked."""

    def place(doc: str) -> bytes:
        return hashlib.sha256(f"{pool.query}\n{doc}".encode()).digest()

    return tuple(sorted((one.doc for one in pool.candidates), key=place))


def count_answers(judgments: Iterable[Judgment], settings: Settings) -> Mapping[Pair, int]:
    """Pair -> answers that count, with those of honest judges who preferred neither.

    A pair that nobody can decide has to come to its cap too.
    """
    as_votes = [
        msgspec.structs.replace(one, preferred=one.left, reason=None)
        if one.answer is None and one.preferred is None
        else one
        for one in judgments
    ]
    valid = counted(as_votes, exclusion=settings.exclusion, failures=settings.failures)
    return Counter(one.pair for one in valid)


def find_unbeaten(
    passages: Sequence[str], votes: Mapping[tuple[str, str], PairVotes]
) -> Tournament:
    """The best of a pool after a search: who lost the fewest duels, and of those won the most.

    After a whole search that is the one that never lost, whatever the order was. Before its end
    passages that were never shown are left out. Where the pairs come from no search (a search shows
    a new passage in each duel) losses mean nothing, since who is better is shown more often; then
    the strongest is the best. The signature is that of `tournament.play`.

    Args:
        passages: ids of the pool, at least one; votes on others are left out.
        votes: by pair, the lesser id first; who has more wins the duel.
    """
    known = set(passages)
    duels = {pair: found for pair, found in votes.items() if known >= set(pair)}
    shown = sorted({one for pair in duels for one in pair} or known)
    if len(duels) >= len(shown):
        return find_strongest(passages, duels)
    lost: Counter[str] = Counter()
    won: Counter[str] = Counter()
    for (first, second), found in duels.items():
        if found.first != found.second:
            ahead = found.first > found.second
            won[first if ahead else second] += 1
            lost[second if ahead else first] += 1
    fewest = min((lost[one], -won[one]) for one in shown)
    pairs = len(known) * (len(known) - 1) // 2
    return Tournament(
        best=tuple(one for one in shown if (lost[one], -won[one]) == fewest),
        rounds=({one: won[one] for one in sorted(known)},),
        cycle=False,
        unjudged=pairs - len(duels),
        drawn=sum(found.first == found.second for found in duels.values()),
    )
