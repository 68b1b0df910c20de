"""What `analyse drift` calls boards whose truth is known: python benchmarks/drift_verdicts.py.

Boards of 20 entries, each of which draws a tenth of the answers of the one before again and finds a
little more, on dev and official queries of one kind. No verdict but "no drift" and "mask or
difficulty" is right for them, unless the entries learn dev. The last column asks what means alone
would say: of the trend of the difference of means, more than half is left without the ratio.
"""

import argparse
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from interval_worlds import as_board, evolve
from numpy.random import Generator

from heldout.analyses.drift import Drift, Verdict, find_drift
from heldout.analyses.entries import Dated

__all__ = ["WORLDS", "World", "judge_board"]

_RISES = 0.02


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """A kind of board.

    Attributes:
        name: what is special about it.
        queries: of dev, and of the official view.
        masked: share of the official queries on which everyone scores 0.
        learned: by how much more the chance to find rises on dev with each entry.
    """

    name: str
    queries: int = 300
    masked: float = 0.0
    learned: float = 0.0


WORLDS: Sequence[World] = (
    World(name="no drift"),
    World(name="12% of the official queries score nothing", masked=0.12),
    World(name="no drift, 1,000 queries", queries=1000),
    World(name="dev is learned", learned=0.05),
)


def judge_board(world: World, rng: Generator) -> Drift:
    """A board of this kind, looked at."""
    dev = evolve(rng, 20, world.queries, rises=_RISES + world.learned)
    official = evolve(rng, 20, world.queries, rises=_RISES)
    official *= rng.random(world.queries) >= world.masked
    board = as_board({"eval": official, "dev": dev}, each=1)
    given = Dated(board=board, views=(board.views["eval"], board.views["dev"]))
    return find_drift(given, rng, trials=199)


def _is_left(found: Drift) -> bool:
    """More than half of the trend of the difference is left once the ratio is taken out."""
    if found.difference is None or found.remainder is None:
        raise ValueError(found.why)
    return abs(found.remainder.per_year) > abs(found.difference.per_year) / 2


def main(arguments: Sequence[str] | None = None) -> None:
    """Write the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--boards", type=int, default=300, help="boards of each row")
    given = parser.parse_args(arguments)
    verdicts: Sequence[Verdict] = ("no drift", "mask or difficulty", "not explained")
    print(f"| world | boards | {' | '.join(verdicts)} | means alone: more than half is left |")
    print("| --- | --- | --- | --- | --- | --- |")
    for number, world in enumerate(WORLDS):
        rng = np.random.default_rng([number, 7])
        found = [judge_board(world, rng) for _ in range(given.boards)]
        count = Counter(one.verdict for one in found)
        shares = [count[verdict] / given.boards for verdict in verdicts]
        left = sum(map(_is_left, found)) / given.boards
        cells = [f"{share:.0%}" for share in (*shares, left)]
        print(f"| {world.name} | {given.boards} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
