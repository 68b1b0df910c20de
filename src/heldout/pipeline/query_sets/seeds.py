"""Runs of one submission that differ only by seed: their names, and whether all of them are there.

The first run of a query set is called as the set is, the second `SET~2`, the third `SET~3`. Every
set has as many as the others, so that each seed is a whole system. Source: fostering-coopetition,
section 2.2, where runs that differ by seed alone use up submissions and climb on noise.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import TypeVar

from heldout.errors import Problem, quote
from heldout.ids import query_set_of, run_name, seed_of

__all__ = ["check_seeds", "group_seeds", "list_runs"]

T = TypeVar("T")

_NUMBER = re.compile("[2-9]|[1-9][0-9]{1,5}", re.ASCII)


def check_seeds(
    names: Collection[str], *, sets: Collection[str], most: int, path: str
) -> Iterator[Problem]:
    """What is wrong with the names of runs, as far as their seeds go.

    A set without any run is not told here, nor a name of no set.

    Args:
        names: of the runs: `SET`, `SET~2` and so on.
        sets: the query sets that have to be answered.
        most: most seeds of a submission, 1 where the board takes one run for each set.
        path: where the names stand, for errors.
    """
    named = [name for name in names if "~" in name and query_set_of(name) in sets]
    wrong = [name for name in named if not _NUMBER.fullmatch(name.partition("~")[2])]
    for name in sorted(wrong):
        yield Problem(
            code="seed-name",
            path=path,
            found=f"a run called {quote(name)}",
            expected="SET~2, SET~3 and so on for further seeds; the first is called SET alone",
        )
    seeds = max((seed_of(name) for name in named if name not in wrong), default=1)
    if seeds > most:
        yield _too_many(seeds, most, path)
        return
    wanted = [run_name(name, seed) for seed in range(2, seeds + 1) for name in sets]
    for name in sorted(set(wanted) - set(named), key=_order):
        yield Problem(
            code="missing-seed",
            path=path,
            found=f"no run for '{name}'",
            expected=f"{seeds} runs for each of: " + ", ".join(sets),
            hint="every query set has as many seeds, numbered without gaps",
        )


def list_runs(names: Iterable[str], *, sets: Iterable[str]) -> tuple[str, ...]:
    """What has to be in a tarball: a run for each set, and the further seeds that are named."""
    every = tuple(sets)
    return (*every, *sorted(n for n in names if "~" in n and query_set_of(n) in every))


def group_seeds(runs: Mapping[str, T]) -> Mapping[str, tuple[T, ...]]:
    """Query set -> what there is of its runs, the first seed first."""
    found: dict[str, list[T]] = {}
    for name in sorted(runs, key=_order):
        found.setdefault(query_set_of(name), []).append(runs[name])
    return {name: tuple(values) for name, values in found.items()}


def _order(name: str) -> tuple[str, int]:
    return query_set_of(name), seed_of(name)


def _too_many(seeds: int, most: int, path: str) -> Problem:
    one = most == 1
    return Problem(
        code="too-many-seeds",
        path=path,
        found=f"{seeds} seeds",
        expected="one run for each query set" if one else f"at most {most} seeds",
        hint="this board takes no further seeds" if one else "runs.seeds in board.toml",
    )
