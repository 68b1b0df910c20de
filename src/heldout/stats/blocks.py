"""Random draws in fixed blocks, each with a generator of its own.

How many workers share the blocks, and in which order they finish, changes nothing: the same seed
gives the same bytes on one core, on ten, and on a cluster.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor
from functools import reduce
from typing import Any, TypeVar

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

__all__ = ["add_blocks", "block_size", "map_blocks"]

Found = TypeVar("Found")
Counts = NDArray[np.int64]

_CELLS = 1 << 19
_DRAWS = 256
_TASKS = 32


def block_size(width: int) -> int:
    """Draws in a block: 256, fewer where a draw is wide, never fewer than 8.

    Args:
        width: numbers that a draw takes; a block then needs some 4 MB for each array, which
            is faster than more.
    """
    return min(_DRAWS, max(8, _CELLS // max(width, 1)))


def map_blocks(
    work: Callable[..., Found],
    *shared: Any,
    rng: Generator,
    draws: int,
    size: int,
    executor: Executor | None = None,
) -> list[Found]:
    """Do all blocks of draws.

    Args:
        work: called as `work(*shared, generator, draws)` for each block; a function of a module,
            so that it can be sent to another process.
        shared: what every block needs.
        rng: the blocks' generators are spawned from it.
        draws: how many in all, >= 1.
        size: how many a block has; the last one may have fewer.
        executor: where to do it; `None` for here.

    Returns:
        What each block gave, in the order of the blocks.
    """
    shares, ask = _share(rng, draws, size, executor), (work, *shared)
    if executor is None:
        return [found for blocks in shares for found in _do(blocks, *ask)]
    futures = [executor.submit(_do, blocks, *ask) for blocks in shares]
    return [found for future in futures for found in future.result()]


def add_blocks(
    work: Callable[..., Counts],
    *shared: Any,
    rng: Generator,
    draws: int,
    size: int,
    executor: Executor | None = None,
) -> Counts:
    """Do all blocks of draws and add up what they give, with no more than one sum in memory.

    Args:
        work: as for `map_blocks`; gives whole numbers in an array of one shape, whose sum is the
            same in whatever order.
        shared: what every block needs.
        rng: the blocks' generators are spawned from it, as by `map_blocks`.
        draws: how many in all, >= 1.
        size: how many a block has; the last one may have fewer.
        executor: where to do it; `None` for here. Each task sends one sum back.
    """
    shares, ask = _share(rng, draws, size, executor), (work, *shared)
    if executor is None:
        return _total(_add(blocks, *ask) for blocks in shares)
    futures = [executor.submit(_add, blocks, *ask) for blocks in shares]
    futures.reverse()
    return _total(futures.pop().result() for _ in range(len(futures)))


Block = tuple[Generator, int]


def _share(
    rng: Generator, draws: int, size: int, executor: Executor | None
) -> list[Sequence[Block]]:
    """The blocks, divided into tasks: few, since each may carry the scores to another process."""
    counts = [min(size, draws - start) for start in range(0, draws, size)]
    blocks = list(zip(rng.spawn(len(counts)), counts, strict=True))
    length = len(blocks) if executor is None else -(-len(blocks) // _TASKS)
    return [blocks[start : start + length] for start in range(0, len(blocks), length)]


def _do(blocks: Sequence[Block], work: Callable[..., Found], *shared: Any) -> list[Found]:
    return [work(*shared, rng, draws) for rng, draws in blocks]


def _add(blocks: Sequence[Block], work: Callable[..., Counts], *shared: Any) -> Counts:
    return _total(work(*shared, rng, draws) for rng, draws in blocks)


def _total(parts: Iterable[Counts]) -> Counts:
    """The sum, in the place of the first part."""
    rest: Iterator[Counts] = iter(parts)
    return reduce(lambda total, part: np.add(total, part, out=total), rest, next(rest))
