"""How often challengers replace a label wrongly, and rightly: python benchmarks/maintenance.py.

A world: a query has a first answer, and challengers come one after another. In the world of equals,
which is the weakest for the rule, each is as good as what it meets, so every vote is the toss of a
coin. In the others each first challenger is preferred with a probability above one half. All votes
up to the cap are cast; `heldout prefer maintain` asks for no more once a challenge is decided, and
those it asks for are counted apart.
"""

import argparse
from collections.abc import Iterator

import numpy as np
from numpy.random import PCG64, Generator

from heldout.judging.campaign.judgments import Judgment
from heldout.judging.labels.maintenance import LeadRule, follow_challenges

__all__ = ["asked_votes", "play"]

_BETTER = (0.6, 0.657, 0.7, 0.8, 0.9)


def play(rule: LeadRule, challengers: int, p: float, rng: Generator) -> list[str]:
    """Which answer a query has after each of so many challengers; "first" is the first.

    Args:
        rule: when an answer is exchanged.
        challengers: how many come.
        p: chance that a vote prefers a challenger to what it meets.
        rng: of the votes.
    """
    best = "first"
    cast: list[Judgment] = []
    history: list[str] = []
    for number in range(challengers):
        name = f"challenger {number}"
        for won in (rng.random(rule.cap) < p).tolist():
            winner, loser = (name, best) if won else (best, name)
            cast.append(_vote(winner, loser, len(cast)))
        best = follow_challenges({"q": ("first",)}, cast, rule).best["q"][0]
        history.append(best)
    return history


def asked_votes(rule: LeadRule, number: int, p: float, rng: Generator, trials: int) -> float:
    """Mean number of votes until a query's challenge of this number is decided."""
    lead, total = rule.needed(number), 0
    for won in rng.random((trials, rule.cap)) < p:
        margin = 0
        for cast, one in enumerate(won.tolist(), 1):
            margin += 1 if one else -1
            if abs(margin) >= lead or margin + rule.cap - cast < lead:
                break
        total += cast
    return total / trials


def _vote(winner: str, loser: str, number: int) -> Judgment:
    return Judgment(
        query="q",
        left=min(winner, loser),
        right=max(winner, loser),
        preferred=winner,
        worker=f"w{number}",
        task=f"t{number}",
        position=1,
        answered_at=f"{number:09}",
    )


def _rows(rule: LeadRule, challengers: int, trials: int, rng: Generator) -> Iterator[str]:
    equal = [play(rule, challengers, 0.5, rng) for _ in range(trials)]
    one = np.mean([history[0] != "first" for history in equal])
    left = np.mean([history[-1] == "first" for history in equal])
    yield f"  equal: replaced by one {one:.3f}, first answer left after {challengers} {left:.3f}"
    for p in _BETTER:
        found = [play(rule, 1, p, rng)[-1] != "first" for _ in range(trials)]
        asked = asked_votes(rule, 1, p, rng, trials)
        yield f"  p = {p}: replaced by the first challenger {np.mean(found):.3f}, votes {asked:.1f}"
    asked = asked_votes(rule, 1, 0.5, rng, trials)
    yield f"  p = 0.5: votes of the first challenge {asked:.1f}"


def main() -> None:
    """Print the rates of each rule."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=1000)
    parser.add_argument("--challengers", type=int, default=10)
    asked = parser.parse_args()
    rng = Generator(PCG64(9))
    for rule in (
        LeadRule(lead=3, cap=7),
        *(LeadRule(cap=cap, budget=0.1) for cap in (15, 21, 31)),
    ):
        leads = [rule.needed(number) for number in (1, 2, 3, 5, 10)]
        print(f"lead {rule.lead}, cap {rule.cap}, budget {rule.budget:g}: leads needed {leads}")
        for row in _rows(rule, asked.challengers, asked.trials, rng):
            print(row)


if __name__ == "__main__":
    main()
