"""How often each interval holds the truth, by simulation.

    python benchmarks/interval_coverage.py                     all of intervals.md, minutes
    python benchmarks/interval_coverage.py --trials 200 --only drift

Each case of `interval_cases.CASES` draws samples from a world whose truth is known and asks
whether its 95% interval holds it. The seed of a case is its place in the list, so the table is the
same each time.
"""

import argparse
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from interval_cases import CASES, Case

__all__ = ["Covered", "cover"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Covered:
    """What a case showed.

    Attributes:
        held: samples whose interval held the truth.
        intervals: samples that had an interval.
        trials: samples.
    """

    held: int
    intervals: int
    trials: int

    @property
    def share(self) -> float:
        """Of the intervals, those that held."""
        return self.held / self.intervals

    @property
    def error(self) -> float:
        """Its standard error."""
        return math.sqrt(self.share * (1 - self.share) / self.intervals)


def cover(case: Case, *, trials: int, level: float = 0.95) -> Covered:
    """Draw samples of a case's world.

    Args:
        case: an interval and a world.
        trials: how many samples, >= 1.
        level: of the intervals, in (0, 1).
    """
    rng = np.random.default_rng([CASES.index(case), 5])
    held = [case.trial(rng, level) for _ in range(trials)]
    known = [one for one in held if one is not None]
    return Covered(held=sum(known), intervals=len(known), trials=trials)


def main(arguments: Sequence[str] | None = None) -> None:
    """Write the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--trials", type=int, default=1000, help="samples of each case")
    parser.add_argument("--only", default="", help="cases of analyses with this in their name")
    given = parser.parse_args(arguments)
    print("| analysis | 95% interval | world | near ties | holds | samples |")
    print("| --- | --- | --- | --- | --- | --- |")
    started = time.perf_counter()
    for case in CASES:
        if given.only in case.analysis:
            found = cover(case, trials=given.trials)
            holds = f"{found.share:.1%} ± {found.error:.1%}"
            near = "yes" if case.near else "no"
            cells = (case.analysis, case.interval, case.world, near, holds)
            print(f"| {' | '.join(cells)} | {found.intervals:,} |", flush=True)
    print(f"\n{time.perf_counter() - started:.0f} s")


if __name__ == "__main__":
    main()
