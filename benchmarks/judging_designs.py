"""How often each way of judging finds the best passage, and for how many judgments.

    python benchmarks/judging_designs.py --size 4 --size 6 --pools 20000
    python benchmarks/judging_designs.py --size 20 --design lead-3 --pools 500

Judges are made up, with strengths of passages that are known: normal, with a standard deviation of
`SPREAD`. Each way is played with the functions that a campaign uses.
"""

import argparse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.random import PCG64, Generator
from scipy.special import expit

from heldout.judging.campaign.drawing import search
from heldout.judging.campaign.judgments import PairVotes
from heldout.judging.labels.labels import Find, find_strongest, find_unbeaten, play
from heldout.judging.studies.judges import SPREAD

__all__ = ["DESIGNS", "Found", "simulate_design"]

_BATCHES = 10_000
_CAP = 7
Duel = tuple[str, str]
PoolVotes = Mapping[Duel, PairVotes]

Plan = Callable[[Sequence[str], PoolVotes], Mapping[Duel, int]]
"""Passages, votes so far -> votes to be asked next, by pair; empty when all is done."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Design:
    """A way of judging a pool.

    Attributes:
        words: what it is.
        plan: which votes it asks for next.
        find: how it finds the best.
    """

    words: str
    plan: Plan
    find: Find


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What a design did on many pools.

    Attributes:
        design: its words.
        size: passages of a pool.
        pools: how many were played.
        found: how often the best was the true one; of several that tie one is drawn, which counts
            as the chance to draw it.
        error: standard error of `found`.
        judgments: mean number for a pool.
        correct: share of votes for the stronger of two.
    """

    design: str
    size: int
    pools: int
    found: float
    error: float
    judgments: float
    correct: float


def simulate_design(
    design: Design, *, size: int, pools: int, rng: Generator, spread: float = SPREAD
) -> Found:
    """Play a design on pools of made-up passages.

    Args:
        design: which one.
        size: passages of a pool, at least 2.
        pools: how many, at least 2.
        rng: where strengths and answers come from.
        spread: standard deviation of strengths.
    """
    names = [f"{place:04}" for place in range(size)]
    hits, asked, right = np.zeros(pools), np.zeros(pools), 0
    for pool in range(pools):
        strengths = dict(zip(names, rng.normal(0, spread, size).tolist(), strict=True))
        votes = _judge(design, strengths, rng)
        best = design.find(names, votes).best
        true = max(names, key=strengths.__getitem__)
        hits[pool] = (true in best) / len(best)
        asked[pool] = sum(found.total for found in votes.values())
        right += sum(
            found.first if strengths[a] > strengths[b] else found.second
            for (a, b), found in votes.items()
        )
    return Found(
        design=design.words,
        size=size,
        pools=pools,
        found=float(hits.mean()),
        error=float(hits.std(ddof=1) / pools**0.5),
        judgments=float(asked.mean()),
        correct=float(right / asked.sum()),
    )


def _judge(design: Design, strengths: Mapping[str, float], rng: Generator) -> PoolVotes:
    """The votes on a pool when nothing more is asked."""
    votes: dict[Duel, PairVotes] = {}
    names = list(strengths)
    for _ in range(_BATCHES):
        wanted = design.plan(names, votes)
        if not wanted:
            return votes
        for (a, b), count in wanted.items():
            won = int(rng.binomial(count, expit(strengths[a] - strengths[b])))
            before = votes.get((a, b), PairVotes(first=0, second=0))
            votes[a, b] = PairVotes(first=before.first + won, second=before.second + count - won)
    raise RuntimeError(f"{design.words} never ends")


def _all_pairs(judges: int) -> Plan:
    def plan(names: Sequence[str], votes: PoolVotes) -> Mapping[Duel, int]:
        return {} if votes else dict.fromkeys(combinations(names, 2), judges)

    return plan


def _duels(lead: int, cap: int) -> Plan:
    def plan(names: Sequence[str], votes: PoolVotes) -> Mapping[Duel, int]:
        found = search(names, votes, lead=lead, cap=cap)
        if found.challenger is None:
            return {}
        first, second = sorted((found.best, found.challenger))
        return {(first, second): found.wanted}

    return plan


DESIGNS: Mapping[str, Design] = {
    "tournament-1": Design(words="tournament, 1 vote a pair", plan=_all_pairs(1), find=play),
    "tournament-3": Design(words="tournament of majorities of 3", plan=_all_pairs(3), find=play),
    "strengths-3": Design(
        words="Bradley-Terry, 3 votes a pair", plan=_all_pairs(3), find=find_strongest
    ),
    "lead-2": Design(words="duels, lead 2, cap 7", plan=_duels(2, _CAP), find=find_unbeaten),
    "lead-3": Design(words="duels, lead 3, cap 7", plan=_duels(3, _CAP), find=find_unbeaten),
}
"""Every design by name. docs/explanation/preferences.md has a table of them."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--size", type=int, action="append", help="passages of a pool")
    parser.add_argument("--design", choices=[*DESIGNS], action="append")
    parser.add_argument("--pools", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    print(f"{'design':36} {'size':>5} {'found':>7} {'error':>7} {'judgments':>10}")
    for size in given.size or (4, 6):
        for number, name in enumerate(given.design or DESIGNS):
            rng = Generator(PCG64([given.seed, size, number]))
            one = simulate_design(DESIGNS[name], size=size, pools=given.pools, rng=rng)
            shares = f"{one.found:7.3f} {one.error:7.3f} {one.judgments:10.1f}"
            print(f"{one.design:36} {size:5} {shares}")


if __name__ == "__main__":
    main()
