"""How often `analyse stability` warns of rare losses: python benchmarks/rare_failures.py.

The world of `interval_worlds.fail_rarely`: eight systems of equal means. Each loses .8 on up to 3%
of the queries and differs in little else, so a range that is not all ranks misses the truth.
`analyse stability` warns where at least one pair that it tells apart is doubtful
(`RankRanges.doubtful`). Where it tells no pair apart the ranges hold and it cannot warn.
"""

import argparse
from collections.abc import Sequence

import numpy as np
from interval_worlds import as_table, fail_rarely

from heldout.analyses.stability import rank_ranges

__all__ = ["count_warnings"]

_FLIPS = 199


def count_warnings(queries: int, noise: float, *, trials: int) -> tuple[int, int]:
    """Samples whose ranges miss, and those of them with a warning.

    Args:
        queries: of each sample.
        noise: deviation of a score on a query, but for the losses.
        trials: how many samples, >= 1.
    """
    rng = np.random.default_rng([queries, round(1000 * noise), 6])
    missed = warned = 0
    for _ in range(trials):
        found = rank_ranges(as_table(fail_rarely(rng, queries, noise)), rng, flips=_FLIPS)
        missed += found.separated > 0
        warned += found.doubtful > 0
    return missed, warned


def main(arguments: Sequence[str] | None = None) -> None:
    """Write the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--trials", type=int, default=200, help="samples of each row")
    given = parser.parse_args(arguments)
    print("| queries | noise | samples | ranges miss | of these with a warning |")
    print("| --- | --- | --- | --- | --- |")
    for queries in (50, 100, 300, 1000):
        for noise in (0.005, 0.02, 0.05):
            missed, warned = count_warnings(queries, noise, trials=given.trials)
            share = f"{warned / missed:.0%}" if missed else "–"
            row = f"| {queries:,} | {noise} | {given.trials} | {missed} | {warned} ({share}) |"
            print(row, flush=True)


if __name__ == "__main__":
    main()
