"""Worlds where the truth is known: how often a test rejects, and how often its interval covers.

    python tests/stats/simulated_worlds.py 2000

writes the table of docs/reference/tests.md.
"""

import sys
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from heldout.stats.exact import differences
from heldout.stats.tests import TESTS, run_test

Scores = NDArray[np.float64]
Draw = Callable[[np.random.Generator, int], tuple[Scores, Scores]]

_POPULATION = 200_000
_GAINS = np.array([1 / rank for rank in range(1, 11)] + [0.0])


def _paired_normal(rng: np.random.Generator, size: int) -> tuple[Scores, Scores]:
    query = rng.normal(size=size)
    return query + 0.6 * rng.normal(size=size), query + 0.6 * rng.normal(size=size)


def _unpaired_normal(rng: np.random.Generator, size: int) -> tuple[Scores, Scores]:
    return rng.normal(size=size), rng.normal(size=size)


def _reciprocal_ranks(worse: float) -> Draw:
    """RR@10 of two systems with the same ranks for about half of the queries, so mostly tied.

    Args:
        worse: chance that A loses a rank that B keeps.
    """

    def draw(rng: np.random.Generator, size: int) -> tuple[Scores, Scores]:
        ranks = rng.integers(0, 12, size=size).clip(max=10)

        def place(loss: float) -> Scores:
            moved = np.where(rng.random(size) < 0.4, rng.integers(-3, 4, size=size), 0)
            places = (ranks + moved + (rng.random(size) < loss)).clip(0, 10)

            return np.asarray(_GAINS[places], np.float64)

        return place(worse), place(0)

    return draw


def _bounded(rng: np.random.Generator, size: int) -> tuple[Scores, Scores]:
    """Something like nDCG: many values, some at the ends; B a little better."""
    query = rng.beta(1.2, 1.2, size=size)
    a, b = (query + 0.15 * rng.normal(size=size) for _ in range(2))
    return a.clip(0, 1), (b + 0.03).clip(0, 1)


def _skewed(rng: np.random.Generator, size: int) -> tuple[Scores, Scores]:
    """Differences of mean 0 with one long tail: no test's null holds but those of the mean."""
    query = rng.normal(size=size)
    return query, query + rng.exponential(size=size) - 1


WORLDS: Mapping[str, Draw] = {
    "normal": _paired_normal,
    "unpaired": _unpaired_normal,
    "ties": _reciprocal_ranks(0),
    "near ties": _reciprocal_ranks(0.02),
    "bounded": _bounded,
    "skewed": _skewed,
}
"""In `normal`, `unpaired` and `ties` the systems are exchangeable: every null holds."""


class Simulated(NamedTuple):
    """Shares of the trials in which there was a p or an interval.

    Attributes:
        rejected: share with p <= 0.05.
        covered: share whose interval holds the truth.
        level: of the intervals.
        p: every p-value.
    """

    rejected: float
    covered: float
    level: float
    p: Scores


def simulate(name: str, world: str, *, size: int, trials: int, **more: Any) -> Simulated:
    """Run a test on samples of a world.

    Args:
        name: of the test.
        world: a key of `WORLDS`.
        size: queries of each sample.
        trials: how many samples.
        more: options of the test.
    """
    rng, truth = np.random.default_rng(7), _find_truth(name, world)
    results = [run_test(name, *WORLDS[world](rng, size), **more) for _ in range(trials)]
    p = np.array([result.p for result in results if result.p is not None])
    covered = [
        result.low - 1e-9 <= truth <= result.high + 1e-9
        for result in results
        if result.low is not None and result.high is not None
    ]
    return Simulated(float(np.mean(p <= 0.05)), float(np.mean(covered)), results[0].level, p)


@cache
def _find_truth(name: str, world: str) -> float:
    """What the difference of the test is in the whole world."""
    rng = np.random.default_rng(99)
    a, b = WORLDS[world](rng, _POPULATION)
    difference = differences(a, b)
    kept = difference[difference != 0]
    if world in ("normal", "unpaired", "ties"):
        return 0.0
    if name == "sign":
        return float(np.mean(np.sign(kept)))
    if name == "binomial":
        alone = ((b > 0) * 1.0 - (a > 0))[(a > 0) != (b > 0)]
        return float(np.mean(alone)) if len(alone) else 0.0
    if name == "signed-rank":
        first, second = rng.choice(kept, (2, 10 * _POPULATION))
        return float(np.median(first + second)) / 2
    if name == "rank-sum":
        return float(np.mean([np.sign(b - rng.permutation(a)).mean() for _ in range(20)]))
    return float(np.mean(difference))


def main() -> None:
    """Write what is covered and rejected in every world, at 50 queries."""
    trials = int(sys.argv[1])
    lines = [["test", *WORLDS], ["---"] * (1 + len(WORLDS))]
    for name in TESTS:
        cells = [f"`{name}`"]
        for world in WORLDS:
            found = simulate(name, world, size=50, trials=trials)
            cells.append(f"{100 * found.covered:.1f} ({100 * found.rejected:.1f})")
        lines.append(cells)
    sys.stdout.writelines(f"| {' | '.join(line)} |\n" for line in lines)


if __name__ == "__main__":
    main()
