"""How often intervals of differences of strengths hold: python benchmarks/strength_coverage.py.

Worlds of four runs; each query moves every strength by an amount of its own, and each two runs are
compared in it once. The truth is what 20,000 queries say. Three intervals at 95%: the sandwich by
query, the bootstrap by query, and the sandwich of comparisons taken as independent.
"""

import argparse

import numpy as np
from numpy.typing import NDArray

from heldout.stats.bradley_terry import (
    Comparisons,
    bootstrap_differences,
    fit_strengths,
    sandwich_differences,
)

TRUTH = np.array([0.6, 0.0, -0.2, -0.4])
MANY = 20_000


def simulate(rng: np.random.Generator, queries: int, *, clustered: bool = True) -> Comparisons:
    """Comparisons of the four runs on so many queries."""
    first, second = np.tril_indices(len(TRUTH), -1)
    moved = TRUTH + rng.normal(0, 1, (queries, len(TRUTH)))
    chance = 1 / (1 + np.exp(moved[:, second] - moved[:, first]))
    won = (rng.random(chance.shape) < chance).astype(float).ravel()
    query = np.repeat(np.arange(queries), len(first))
    return compare(np.tile(first, queries), np.tile(second, queries), won, query, clustered)


def compare(
    first: NDArray[np.int64],
    second: NDArray[np.int64],
    won: NDArray[np.float64],
    query: NDArray[np.int64],
    clustered: bool,  # noqa: FBT001 - a switch of the simulation
) -> Comparisons:
    """As values; without clusters every comparison is its own."""
    cluster = query if clustered else np.arange(len(won))
    return Comparisons(
        items=len(TRUTH),
        first=first,
        second=second,
        won=won,
        cluster=cluster,
        clusters=int(cluster.max()) + 1,
    )


def cover(queries: int, trials: int, seed: int) -> list[float]:
    """Share of worlds in which each interval held the difference of the first and third run."""
    rng = np.random.default_rng(seed)
    limit = fit_strengths(simulate(rng, MANY)).values
    target, held = limit[0] - limit[2], np.zeros(3)
    for _ in range(trials):
        seen = simulate(rng, queries)
        apart = compare(seen.first, seen.second, seen.won, seen.cluster, clustered=False)
        found = fit_strengths(seen)
        intervals = (
            sandwich_differences(seen, found),
            bootstrap_differences(seen, found, rng, draws=200),
            sandwich_differences(apart, found),
        )
        held += [bool(one.low[0, 2] <= target <= one.high[0, 2]) for one in intervals]
    return [float(share) for share in held / trials]


def main() -> None:
    """Print a row for each number of queries."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=600)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    print("queries  sandwich  bootstrap  as independent")
    for queries in (20, 60):
        shares = cover(queries, options.trials, options.seed)
        print(f"{queries:7}  " + "  ".join(f"{share:8.1%}" for share in shares))


if __name__ == "__main__":
    main()
