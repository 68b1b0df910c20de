"""The best passage of a query: most pairings won, with elimination rounds.

Where several have won most, the others are dropped and wins are counted anew among those alone;
where nobody can be dropped any more all of them are best: they beat each other in a circle
(shallow-pooling, section 5.1). A pair with as many votes on each side, or none, is won by neither.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from heldout.preferences.votes import PairVotes

__all__ = ["Tournament", "play"]


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
