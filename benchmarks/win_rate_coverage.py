"""How often intervals of win rates hold: python benchmarks/win_rate_coverage.py.

People judge n queries: a run's passage wins with probability p, or is tied. A model guesses each
answer and those of other queries; it errs with a probability of its own, on wins and losses alike
or on wins alone. Two intervals at 95%: votes alone (Clopper and Pearson, a tie as half a win), and
PPI++ with four units added. The worlds where they are weakest are among those tried: rates near 1,
and a model that seldom errs, so that a small sample shows no error at all.
"""

import argparse
from itertools import product

import numpy as np
from numpy.random import PCG64, Generator

from heldout.judging.models.calibration import share_of
from heldout.stats.student import estimate_mean

__all__ = ["World", "coverage"]

World = tuple[float, float, float, bool]
"""How often the passage wins, how often it is tied, how often the model errs, on wins alone."""

WORLDS: tuple[World, ...] = tuple(
    product((0.5, 0.7, 0.9, 0.97), (0.0, 0.3), (0.0, 0.02, 0.1, 0.5, 1.0), (False, True))
)


def coverage(
    world: World, queries: int, rest: int, *, trials: int, rng: Generator
) -> tuple[float, float]:
    """How often the intervals of votes alone, and with the model, hold the win rate."""
    p, tied, wrong, wins_alone = world
    truth = tied / 2 + (1 - tied) * p
    held = np.zeros(2)
    for _ in range(trials):
        size = queries + rest
        y = np.where(rng.random(size) < tied, 0.5, (rng.random(size) < p).astype(float))
        errs = (rng.random(size) < wrong) & ((y == 1) | (not wins_alone))
        f = np.where(errs, 1 - y, y)
        alone = share_of(y[:queries].tolist(), 0.95)
        with_model = estimate_mean(y[:queries], f[:queries], f[queries:])
        held += (
            alone.low <= truth <= alone.high,
            with_model.low is not None
            and with_model.high is not None
            and with_model.low <= truth <= with_model.high,
        )
    return float(held[0] / trials), float(held[1] / trials)


def main() -> None:
    """Print the worst world of each interval, by number of queries."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=400)
    parser.add_argument("--rest", type=int, default=300)
    asked = parser.parse_args()
    rng = Generator(PCG64(6))
    for queries in (5, 10, 20, 50, 200):
        found = {
            world: coverage(world, queries, asked.rest, trials=asked.trials, rng=rng)
            for world in WORLDS
        }
        for place, name in enumerate(("votes alone", "with the model")):
            shares = {world: both[place] for world, both in found.items()}
            world = min(shares, key=lambda one: shares[one])
            middle = float(np.median(list(shares.values())))
            print(
                f"{queries:4} queries  {name:14} worst {shares[world]:.3f} at {world}, "
                f"median {middle:.3f}"
            )


if __name__ == "__main__":
    main()
