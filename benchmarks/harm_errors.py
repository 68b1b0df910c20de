"""How often harm of exactly the margin is called none, by simulation.

    python benchmarks/harm_errors.py                 the table of intervals.md, two minutes
    python benchmarks/harm_errors.py --trials 500

B finds 20 queries more, and ranks as A does on those that both find, but for a share of them on
which it comes later by so much that its mean search length is higher by the margin. A test at .025
may miss that in 2.5% of the samples. In three worlds there is no harm, and it should be called
none. In the last ones B also comes one position earlier on many queries: its signed ranks are
better although its mean is worse, and a strict verdict for it is wrong.
"""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from heldout.analyses.outcomes.options import DeclaredRules, Margins
from heldout.analyses.outcomes.outcomes import judge_pairs
from heldout.analyses.outcomes.tests import TestedPairs, compare_runs
from heldout.ids import Digest
from heldout.scoring.first_ranks import FirstRanks, MethodSide

__all__ = ["ALPHA", "MARGINS", "WORLDS", "Missed", "World", "draw", "miss_harm"]

ALPHA = 0.025
MARGINS = Margins()
MORE = 20
RULES = DeclaredRules(correction="none")
PLAIN = DeclaredRules(correction="none", harm="plain")
Integers = NDArray[np.int64]

_BATCH = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """How B differs from A where both find.

    Attributes:
        k: how deep is looked.
        queries: that both find.
        later: positions by which B comes later on some of them.
        noise: the largest number of positions by which each run moves on every query, at random.
        harm: how many positions B comes later in the mean.
        earlier: of the queries, those on which B comes one position earlier.
    """

    k: int
    queries: int
    later: int
    noise: int = 0
    harm: float = MARGINS.esl
    earlier: float = 0.0

    @property
    def share(self) -> float:
        """Of the queries, those on which B comes later."""
        return (self.harm + self.earlier) / self.later


WORLDS: Sequence[World] = (
    World(k=10, queries=50, later=2),
    World(k=10, queries=50, later=9),
    World(k=10, queries=500, later=9),
    World(k=100, queries=200, later=10),
    World(k=100, queries=700, later=25),
    World(k=100, queries=700, later=50),
    World(k=100, queries=700, later=50, noise=1),
    World(k=100, queries=700, later=50, noise=20),
    World(k=100, queries=1500, later=99),
    World(k=100, queries=5000, later=99),
    World(k=100, queries=500, later=99, noise=24, harm=0),
    World(k=100, queries=2000, later=99, noise=24, harm=0),
    World(k=100, queries=8000, later=99, noise=24, harm=0),
    World(k=100, queries=200, later=98, earlier=0.3),
    World(k=100, queries=1000, later=98, earlier=0.3),
    World(k=100, queries=5000, later=98, earlier=0.3),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Missed:
    """Shares of the samples in which the harm was called none.

    Attributes:
        by_t: by the t test alone.
        by_rule: by the rule of verdicts, which asks that rare harm would have been seen.
        strict_by_tests: samples in which B finds significantly more and its signed ranks are
            significantly better, each at .05.
        strict: strict verdicts for B, which ask for no rare harm too.
    """

    by_t: float
    by_rule: float
    strict_by_tests: float
    strict: float


def miss_harm(world: World, *, trials: int) -> Missed:
    """Draw samples of a world.

    Args:
        world: one of `WORLDS`.
        trials: how many samples, >= 1.
    """
    rng = np.random.default_rng([WORLDS.index(world), 7])
    by_t = by_rule = by_tests = strict = done = 0
    while done < trials:
        size = min(_BATCH, trials - done)
        names = tuple(f"{side}{at}" for side in "ab" for at in range(size))
        ranks = FirstRanks(
            systems=names,
            queries=tuple(map(str, range(world.queries + MORE))),
            ranks=np.concatenate(draw(rng, world, size)),
            k=world.k,
            digest=Digest("0"),
        )
        sides = [MethodSide(name=name, runs=(name,)) for name in names]
        pairs = list(zip(sides[:size], sides[size:], strict=True))
        compared = compare_runs(ranks, pairs, MARGINS, level=0.95)
        for pair in compared:
            by_t += pair.b_not_longer is not None and pair.b_not_longer <= ALPHA
            by_rule += max(pair.no_rare_harm, pair.b_not_longer or 0.0) <= ALPHA
        by_tests += _count_strict(compared, PLAIN)
        strict += _count_strict(compared, RULES)
        done += size
    return Missed(
        by_t=by_t / trials,
        by_rule=by_rule / trials,
        strict_by_tests=by_tests / trials,
        strict=strict / trials,
    )


def _count_strict(pairs: TestedPairs[Any], rules: DeclaredRules) -> int:
    verdicts = [one.verdict for one in judge_pairs(pairs, rules)]
    return sum((one.word, one.better) == ("strict", "B") for one in verdicts)


def draw(rng: Generator, world: World, size: int) -> tuple[Integers, Integers]:
    """Ranks of A and of B, a row for each sample, none deeper than k; B finds 20 queries more."""
    shape = size, world.queries
    a, b = (1 + rng.integers(0, world.noise, shape, endpoint=True) for _ in range(2))
    b += world.later * (rng.random(shape) < world.share)
    if world.earlier:
        lower = rng.random(shape) < world.earlier
        a, b = a + 1, b + 1 - lower
    more = np.zeros((size, MORE), np.int64)
    return np.hstack((a, more)), np.hstack((b, more + 1))


def main(arguments: Sequence[str] | None = None) -> None:
    """Write the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--trials", type=int, default=4000, help="samples of each world")
    given = parser.parse_args(arguments)
    print(
        "| k | found by both | mean harm | later | by | earlier | noise | t alone "
        "| t and rare harm | strict by its tests alone | strict |"
    )
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    for world in WORLDS:
        found = miss_harm(world, trials=given.trials)
        print(
            f"| {world.k} | {world.queries:,} | {world.harm:g} | {world.share:.1%} | {world.later} "
            f"| {world.earlier:.0%} | {world.noise} | {found.by_t:.1%} | {found.by_rule:.1%} "
            f"| {found.strict_by_tests:.1%} | {found.strict:.1%} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
