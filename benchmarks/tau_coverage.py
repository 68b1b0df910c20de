"""Why tau between two labels has no interval: python benchmarks/tau_coverage.py.

A world: runs have true means on two labels that order them partly alike, and scores that vary from
query to query far more than runs differ. The truth is tau between the true means, or the expected
tau of as many queries. Tried: percentiles of a bootstrap of queries, the basic (reversed)
bootstrap, and draws of fewer queries without replacement, around the estimate and scaled by the
root of their share. No one holds both truths in all worlds, so heldout prints none.
"""

import argparse

import numpy as np
from numpy.random import PCG64, Generator
from numpy.typing import NDArray

from heldout.stats.rank_correlation import kendall

__all__ = ["World", "coverage"]

Floats = NDArray[np.float64]
_LEVEL = (0.025, 0.975)
_NOISE = 0.35


class World:
    """Runs with true means, on labels before and after."""

    def __init__(self, runs: int, spread: float, rng: Generator) -> None:
        self.before = rng.normal(0.35, spread, runs)
        self.after = self.before + rng.normal(0, spread, runs)
        self.rng = rng

    def draw(self, queries: int) -> tuple[Floats, Floats]:
        """Scores of runs by queries, on both labels: half of their variance is the query's."""
        found = []
        for means in (self.before, self.after):
            own = self.rng.normal(0, _NOISE * np.sqrt(0.5), (len(means), queries))
            shared = self.rng.normal(0, _NOISE * np.sqrt(0.5), queries)
            found.append(means[:, None] + own + shared)
        return found[0], found[1]


def _tau(before: Floats, after: Floats) -> float:
    return kendall(before.mean(axis=1), after.mean(axis=1)) or 0.0


def _intervals(before: Floats, after: Floats, draws: int, rng: Generator) -> dict[str, Floats]:
    n = before.shape[1]
    whole = _tau(before, after)
    rows = [rng.integers(n, size=n) for _ in range(draws)]
    drawn = np.quantile([_tau(before[:, row], after[:, row]) for row in rows], _LEVEL)
    found = {"bootstrap": drawn, "basic bootstrap": 2 * whole - drawn[::-1]}
    for share in (0.25, 0.5):
        size = round(share * n)
        some = (rng.choice(n, size=size, replace=False) for _ in range(draws))
        parts = np.array([_tau(before[:, row], after[:, row]) for row in some])
        reach = np.sqrt(share / (1 - share)) * (np.quantile(parts, _LEVEL) - parts.mean())
        found[f"{share:.0%} of the queries"] = whole + reach
    return found


def coverage(
    world: World, queries: int, *, trials: int, draws: int, rng: Generator
) -> dict[str, tuple[float, float]]:
    """How often each interval holds the tau of the true means, and the expected one."""
    true = kendall(world.before, world.after) or 0.0
    expected = float(np.mean([_tau(*world.draw(queries)) for _ in range(400)]))
    held: dict[str, list[tuple[bool, bool]]] = {}
    for _ in range(trials):
        for name, (low, high) in _intervals(*world.draw(queries), draws, rng).items():
            held.setdefault(name, []).append((low <= true <= high, low <= expected <= high))
    return {
        name: (float(np.mean([a for a, _ in both])), float(np.mean([b for _, b in both])))
        for name, both in held.items()
    }


def main() -> None:
    """Print how often each interval holds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=200)
    parser.add_argument("--draws", type=int, default=200)
    asked = parser.parse_args()
    for runs, spread, queries in ((16, 0.02, 50), (16, 0.02, 500), (45, 0.05, 50), (10, 0.005, 50)):
        rng = Generator(PCG64([runs, queries]))
        world = World(runs, spread, rng)
        found = coverage(world, queries, trials=asked.trials, draws=asked.draws, rng=rng)
        for name, (true, expected) in found.items():
            print(
                f"{runs} runs, spread {spread}, {queries} queries  {name:20} "
                f"true tau {true:.3f}, expected tau {expected:.3f}"
            )


if __name__ == "__main__":
    main()
