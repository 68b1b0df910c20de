"""Random draws in fixed blocks, each with a generator of its own.

How many workers share the blocks, and in which order they finish, changes nothing: the same seed
gives the same bytes on one core, on ten, and on a cluster.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from typing import Any, TypeVar

from numpy.random import Generator

__all__ = ["block_size", "map_blocks"]

Found = TypeVar("Found")

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
    counts = [min(size, draws - start) for start in range(0, draws, size)]
    blocks = list(zip(rng.spawn(len(counts)), counts, strict=True))
    if executor is None:
        return _do(blocks, work, *shared)
    # Few tasks: each may carry the scores to whoever does it.
    length = -(-len(blocks) // _TASKS)
    futures = [
        executor.submit(_do, blocks[start : start + length], work, *shared)
        for start in range(0, len(blocks), length)
    ]
    return [found for future in futures for found in future.result()]


def _do(
    blocks: Sequence[tuple[Generator, int]], work: Callable[..., Found], *shared: Any
) -> list[Found]:
    return [work(*shared, rng, draws) for rng, draws in blocks]
