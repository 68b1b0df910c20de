"""Preference labels: per query the best passages of its pool, as judged.

Each query's tournament gives its labels; a query that nobody judged keeps its known answer, or
gets none where it had none (Arabzadeh et al. 2021, §5.1).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from heldout.judging.campaign.judgments import PairVotes, Votes
from heldout.judging.campaign.pools import Pool

# The best passage of a query: most pairings won, with elimination rounds.
#
# Where several have won most, the others are dropped and wins are counted anew among those alone;
# where nobody can be dropped any more all of them are best: they beat each other in a circle
# (Arabzadeh et al. 2021, §5.1). A pair with as many votes on each side, or none, is won by
# neither.


@dataclass(frozen=True, slots=True, kw_only=True)
class Tournament:
    """How a query's best passage was found.

    Attributes:
        best: ids, sorted; one, or those that tie to the end.
        rounds: passages left in each round, with the pairings that each won among them.
        cycle: the best are several, and each beats one of the others and loses to another.
        unjudged: pairs of the pool without a vote.
        drawn: pairs with as many votes on each side.
    """

    best: tuple[str, ...]
    rounds: tuple[Mapping[str, int], ...]
    cycle: bool
    unjudged: int
    drawn: int


def play(passages: Sequence[str], votes: Mapping[tuple[str, str], PairVotes]) -> Tournament:
    """Find the best of a pool.

    Args:
        passages: ids of the pool, at least one; votes on others are left out.
        votes: by pair, the lesser id first.
    """
    left = sorted(passages)
    won = _winners(left, votes)
    rounds = []
    while True:
        wins = dict.fromkeys(left, 0)
        for pair, winner in won.items():
            if winner is not None and wins.keys() >= set(pair):
                wins[winner] += 1
        rounds.append(wins)
        most = max(wins.values())
        first = [passage for passage in left if wins[passage] == most]
        if len(first) in (1, len(left)):
            break
        left = first
    pairs = len(passages) * (len(passages) - 1) // 2
    return Tournament(
        best=tuple(first),
        rounds=tuple(rounds),
        cycle=_is_cycle(first, won),
        unjudged=pairs - len(won),
        drawn=sum(winner is None for winner in won.values()),
    )


def _winners(
    passages: Sequence[str], votes: Mapping[tuple[str, str], PairVotes]
) -> dict[tuple[str, str], str | None]:
    known = set(passages)
    return {
        pair: None if found.first == found.second else pair[found.second > found.first]
        for pair, found in votes.items()
        if known >= set(pair)
    }


def _is_cycle(best: Sequence[str], won: Mapping[tuple[str, str], str | None]) -> bool:
    among = [(pair, winner) for pair, winner in won.items() if set(best) >= set(pair) and winner]
    winners = {winner for _, winner in among}
    losers = {one for pair, winner in among for one in pair if one != winner}
    return len(best) > 1 and winners == losers == set(best)


Find = Callable[[Sequence[str], Mapping[tuple[str, str], PairVotes]], Tournament]
"""How the best passages of a pool are found from the votes on its pairs; as `play`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PreferenceLabels:
    """New labels.

    Attributes:
        labels: query -> best passages, sorted; with every id that has a best passage's text.
        tournaments: query -> how its best were found, of the queries with votes.
        kept: queries without a vote, which keep the labels they had.
    """

    labels: Mapping[str, tuple[str, ...]]
    tournaments: Mapping[str, Tournament]
    kept: tuple[str, ...]

    @property
    def cycles(self) -> int:
        """Queries whose best passages beat each other in a circle."""
        return sum(found.cycle for found in self.tournaments.values())

    @property
    def several(self) -> int:
        """Queries with more than one best passage, in a circle or tied otherwise."""
        return sum(len(found.best) > 1 for found in self.tournaments.values())

    @property
    def count(self) -> int:
        """Labels of the queries with votes, each text once: 592 of 500 queries in the study."""
        return sum(len(found.best) for found in self.tournaments.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class Pairings:
    """How labels did in the pairs that were judged.

    Attributes:
        won: judged pairs with a label that a label won; a pair of two labels is one pair.
        pairs: judged pairs with at least one label.
        label_won: pairings won, counted for each label.
        label_pairings: pairings, counted for each label: a pair of two labels twice.
    """

    won: int
    pairs: int
    label_won: int
    label_pairings: int


def make_labels(pools: Sequence[Pool], votes: Votes, *, find: Find = play) -> PreferenceLabels:
    """Find the best passages of each query.

    Args:
        pools: the passages of each query; a query without votes keeps its known answer.
        votes: those that count, by the documents that stand for their texts; those on passages
            that the pool does not have are left out.
        find: how the best are found.
    """
    labels: dict[str, tuple[str, ...]] = {}
    tournaments: dict[str, Tournament] = {}
    kept = []
    for pool in pools:
        docs = [one.doc for one in pool.candidates]
        found = _within(docs, votes.get(pool.query, {}))
        if found:
            tournament = find(docs, found)
            tournaments[pool.query] = tournament
            labels[pool.query] = _spread(pool, tournament.best)
        else:
            kept.append(pool.query)
            if pool.known is not None:
                labels[pool.query] = _spread(pool, (pool.known.doc,))
    return PreferenceLabels(labels=labels, tournaments=tournaments, kept=tuple(kept))


def _within(
    docs: Sequence[str], votes: Mapping[tuple[str, str], PairVotes]
) -> Mapping[tuple[str, str], PairVotes]:
    """The votes on pairs of the pool; those on later challengers decide nothing in it."""
    known = set(docs)
    return {pair: found for pair, found in votes.items() if known >= set(pair)}


def label_pool(
    pool: Pool, votes: Mapping[tuple[str, str], PairVotes] | None, find: Find = play
) -> tuple[str, ...]:
    """Labels of one query, as `make_labels` makes them; none where nobody judged or knew.

    Args:
        pool: its passages.
        votes: on its pairs.
        find: how the best are found.
    """
    labels = make_labels([pool], {pool.query: votes} if votes else {}, find=find).labels
    return labels.get(pool.query, ())


def count_pairings(labels: Mapping[str, Sequence[str]], votes: Votes) -> Pairings:
    """How often labels won the pairs they were in (Arabzadeh et al. 2021, §5.1).

    The study's 91.8% and 46.6% leave open how a pair of two labels counts: both ways are given.

    Args:
        labels: query -> labels, by the documents that stand for their texts.
        votes: those that count; a pair with as many votes on each side is won by neither.
    """
    won = pairs = label_won = label_pairings = 0
    for query, found in votes.items():
        mine = set(labels.get(query, ()))
        for pair, count in found.items():
            among = mine & set(pair)
            if among:
                winner = _winner(pair, count)
                won += winner in among
                pairs += 1
                label_won += winner in among
                label_pairings += len(among)
    return Pairings(won=won, pairs=pairs, label_won=label_won, label_pairings=label_pairings)


def _winner(pair: tuple[str, str], count: PairVotes) -> str | None:
    if count.first == count.second:
        return None
    return pair[count.second > count.first]


def _spread(pool: Pool, best: Sequence[str]) -> tuple[str, ...]:
    """The best passages under every id that has their text."""
    chosen = [one for one in pool.candidates if one.doc in best]
    return tuple(sorted(doc for one in chosen for doc in (one.doc, *one.same)))
