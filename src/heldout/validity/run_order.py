"""Runs in a line by what was said of pairs of them, with the circles that no line can show.

"Better" by a verdict is neither complete nor transitive: most pairs have no verdict, and three runs
may beat each other in a circle. The line respects every verdict outside of circles, and goes by the
mean score where no verdict decides (significant-improvements-2021, section 5, asks for a linear
order; how ties and circles are dealt with is ours).
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

__all__ = ["RunOrder", "order_runs"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOrder:
    """Runs in a line, none behind one that it beats, as far as there are no cycles.

    Attributes:
        systems: names, the best first.
        told: for each but the first, whether a verdict sets it below the one before it; else
            they stand in the order of their mean scores.
        cycles: groups of runs that beat each other in circles; within one the mean decides.
        circles: of each group the shortest circle through its run with the highest mean: each run
            beats the next one, and the last beats the first.
        verdicts: how many pairs have one.
    """

    systems: tuple[str, ...]
    told: tuple[bool, ...]
    cycles: tuple[tuple[str, ...], ...]
    circles: tuple[tuple[str, ...], ...]
    verdicts: int


def order_runs(
    systems: Sequence[str], means: Sequence[float], beats: Collection[tuple[str, str]]
) -> RunOrder:
    """Put runs in a line.

    Args:
        systems: names, all different.
        means: their scores, higher is better; equal ones keep the order of `systems`.
        beats: pairs (better, worse); a pair stands in it once at most.
    """
    place = {name: row for row, name in enumerate(systems)}
    edges = sorted((place[better], place[worse]) for better, worse in beats)
    circle = _circles(len(systems), edges)
    # A circle is placed as one, by the best mean in it
    waiting = {
        group: {circle[better] for better, worse in edges if circle[worse] == group} - {group}
        for group in set(circle)
    }
    members = {group: [row for row, own in enumerate(circle) if own == group] for group in waiting}
    for rows in members.values():
        rows.sort(key=lambda row: (-means[row], row))
    line: list[int] = []
    placed: set[int] = set()
    while waiting:
        free = [group for group, before in waiting.items() if before <= placed]
        group = min(free, key=lambda one: (-means[members[one][0]], members[one][0]))
        line += members[group]
        placed.add(group)
        del waiting[group]
    below = set(edges)
    groups = [rows for rows in members.values() if len(rows) > 1]
    return RunOrder(
        systems=tuple(systems[row] for row in line),
        told=tuple(pair in below for pair in pairwise(line)),
        cycles=tuple(tuple(systems[row] for row in rows) for rows in groups),
        circles=tuple(tuple(systems[row] for row in _walk(rows[0], edges)) for rows in groups),
        verdicts=len(edges),
    )


def _walk(start: int, edges: Sequence[tuple[int, int]]) -> list[int]:
    """The shortest way along edges from a run back to itself, without the return."""
    ways = [[start]]
    seen: set[int] = set()
    for way in ways:  # grows while it is read: the shortest ways first
        for better, worse in edges:
            if better == way[-1] and worse == start:
                return way
            if better == way[-1] and worse not in seen:
                seen.add(worse)
                ways.append([*way, worse])
    raise ValueError(start)


def _circles(count: int, edges: Sequence[tuple[int, int]]) -> list[int]:
    """For each run the number of its strongly connected component."""
    if not edges:
        return list(range(count))
    rows, columns = zip(*edges, strict=True)
    graph = csr_array((np.ones(len(edges), np.int8), (rows, columns)), shape=(count, count))
    labels: list[int] = connected_components(graph, directed=True, connection="strong")[1].tolist()
    return labels
