"""Large pools: which pairs are worth a judgment where all pairs are too many.

`prune` drops passages round by round: each meets seven others, drawn at random, and stays with more
than three wins, until nine or fewer are left, which all meet (Clarke, Vtyurina and Smucker 2021,
"Assessing top-k preferences", as their program has it). `choose_pairs` draws pairs by double
Thompson sampling (Wu and Liu 2016): a passage that may beat most, against one that may beat it.
"""

import hashlib
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from heldout.preferences.votes import PairVotes

__all__ = ["FEW", "MEETINGS", "VOTES_EACH", "WINS", "Pruning", "choose_pairs", "prune"]

MEETINGS = 7
"""Others that a passage meets in a round."""

WINS = 3
"""A passage stays with more wins than these."""

FEW = 9
"""So many passages or fewer all meet each other."""

VOTES_EACH = 5
"""Thompson sampling ends with so many votes for each passage of a pool."""

_BOUND = 0.51
Floats = NDArray[np.float64]
Duel = tuple[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pruning:
    """How far the pruning of a pool has come.

    Attributes:
        left: passages that are left, sorted.
        round: the round that is under way, from 1.
        wanted: pairs of it that have no vote yet, the lesser id first; none when all is done.
    """

    left: tuple[str, ...]
    round: int
    wanted: tuple[Duel, ...]


def prune(query: str, passages: Sequence[str], votes: Mapping[Duel, PairVotes]) -> Pruning:
    """Follow the rounds of a pool as far as they are judged.

    The pairs of a round are a function of query, round and passages, so the same judgments always
    give the same pairs.

    Args:
        query: its id.
        passages: of the pool, at least one.
        votes: by pair, the lesser id first; who has more wins.
    """
    left, number = sorted(passages), 1
    while True:
        pairs = _meetings(query, number, left)
        wanted = tuple(pair for pair in pairs if pair not in votes)
        if wanted or len(left) <= FEW:
            return Pruning(left=tuple(left), round=number, wanted=wanted)
        wins = Counter(_winner(pair, votes[pair]) for pair in pairs)
        kept = [one for one in left if wins[one] > WINS]
        if not kept or kept == left:
            # Nobody can be told apart this way: all that are left meet.
            rest = tuple(pair for pair in combinations(left, 2) if pair not in votes)
            return Pruning(left=tuple(left), round=number + 1, wanted=rest)
        left, number = kept, number + 1


def choose_pairs(
    passages: Sequence[str],
    votes: Mapping[Duel, PairVotes],
    *,
    count: int,
    cap: int,
    rng: Generator,
    closed: Collection[Duel] = (),
) -> tuple[Duel, ...]:
    """Pairs to be judged next, by double Thompson sampling.

    The first passage is drawn among those that may still beat the most others: it beats the most in
    one draw of all chances, each Beta(1 + wins, 1 + losses). The second is the one that beats the
    first most surely in another draw, among those that are not surely worse (Wu and Liu 2016,
    algorithm 1). Here several pairs are drawn before any of them is judged.

    Args:
        passages: of the pool.
        votes: by pair, the lesser id first.
        count: most pairs to be drawn; each at most once.
        cap: votes after which a pair is not drawn again.
        rng: where draws come from.
        closed: pairs that are not drawn, whatever their votes.

    Returns:
        Fewer pairs, or none, where the others have come to the cap.
    """
    names = sorted(passages)
    wins = _win_table(names, votes)
    total = wins + wins.T
    open_ = (total < cap) & ~np.eye(len(names), dtype=bool)
    for pair in closed:
        first, second = (names.index(one) for one in pair)
        open_[first, second] = open_[second, first] = False
    chosen: list[Duel] = []
    low, high = _bounds(wins, total)
    while len(chosen) < count and open_.any():
        first = _first(wins, high, open_, rng)
        rivals = open_[first] & (low[:, first] <= 0.5)  # noqa: PLR2004 - as often as not
        if not rivals.any():
            rivals = open_[first]
        drawn = rng.beta(1 + wins[:, first], 1 + wins[first])
        second = int(np.argmax(np.where(rivals, drawn, -1)))
        open_[first, second] = open_[second, first] = False
        chosen.append((names[min(first, second)], names[max(first, second)]))
    return tuple(chosen)


def _meetings(query: str, number: int, left: Sequence[str]) -> list[Duel]:
    """In a circle in random order each meets its three neighbours on both sides, and across."""
    size = len(left)
    if size <= FEW:
        return list(combinations(left, 2))
    text = "\n".join([query, str(number), *left])
    seed = int.from_bytes(hashlib.sha256(text.encode()).digest()[:16])
    order = np.random.Generator(np.random.PCG64(seed)).permutation(size).tolist()
    steps = MEETINGS // 2
    pairs = {
        frozenset((order[place], order[(place + step) % size]))
        for step in range(1, steps + 1)
        for place in range(size)
    }
    half = size // 2
    pairs |= {frozenset((order[place], order[place + half])) for place in range(size - half)}
    found = [sorted(left[place] for place in pair) for pair in pairs]
    return sorted((first, second) for first, second in found)


def _winner(pair: Duel, found: PairVotes) -> str | None:
    if found.first == found.second:
        return None
    return pair[found.second > found.first]


def _win_table(names: Sequence[str], votes: Mapping[Duel, PairVotes]) -> Floats:
    places = {name: place for place, name in enumerate(names)}
    wins = np.zeros((len(names), len(names)))
    for (first, second), found in votes.items():
        if first in places and second in places:
            wins[places[first], places[second]] = found.first
            wins[places[second], places[first]] = found.second
    return wins


def _bounds(wins: Floats, total: Floats) -> tuple[Floats, Floats]:
    """What the chances to win may be, at least and at most; 0 and 1 for a pair without votes."""
    time = max(float(total.sum()) / 2, 1.0)
    seen = np.maximum(total, 1)
    reach = np.sqrt(_BOUND * np.log(time) / seen)
    share = wins / seen
    unseen = total == 0
    return np.where(unseen, 0, share - reach), np.where(unseen, 1, share + reach)


def _first(wins: Floats, high: Floats, open_: NDArray[np.bool_], rng: Generator) -> int:
    """Who beats the most in a draw, among those that at best beat the most; with an open pair."""
    playing = open_.any(axis=1)
    off = ~np.eye(len(wins), dtype=bool)
    hopes = np.where(playing, ((high > 0.5) & off).sum(axis=1), -1)  # noqa: PLR2004 - a win
    upper = np.triu(rng.beta(1 + wins, 1 + wins.T), 1)
    drawn = upper + np.tril(1 - upper.T, -1)
    beaten = ((drawn > 0.5) & off).sum(axis=1) + rng.random(len(wins))  # noqa: PLR2004 - a win
    return int(np.argmax(np.where(hopes == hopes.max(), beaten, -1)))
