"""What is drawn block by block needs the memory of a share, however many blocks there are."""

import tracemalloc
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import chain

import numpy as np
import pytest
from numpy.random import PCG64, Generator
from numpy.typing import NDArray

from heldout.stats import resampling
from heldout.stats.resampling import Block, bootstrap_ranks, map_blocks, map_shares
from heldout.stats.sign_flips import max_t

SYSTEMS = 100
BLOCK = 8

Scores = NDArray[np.float64]
Draw = Callable[[Scores, int], object]


def rng() -> Generator:
    return Generator(PCG64(0))


def draw(values: NDArray[np.int64], rng: Generator, draws: int) -> list[int]:
    chosen: list[int] = rng.choice(values, draws).tolist()
    return chosen


def draw_all(values: NDArray[np.int64], blocks: Sequence[Block]) -> list[int]:
    return [one for rng, draws in blocks for one in draw(values, rng, draws)]


DRAWS: dict[str, Draw] = {
    "bootstrap_ranks": lambda values, draws: bootstrap_ranks(values, rng(), trials=draws),
    "max_t": lambda values, draws: max_t(values, rng(), flips=draws),
}


def peak(draw: Draw, values: Scores, draws: int) -> int:
    tracemalloc.start()
    try:
        draw(values, draws)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("name", DRAWS)
def test_memory_does_not_grow_with_the_number_of_draws(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each block of these counts 4,950 pairs or more: 300 of them side by side are 12 MB."""
    monkeypatch.setattr(resampling, "_DRAWS", BLOCK)
    values = 1 / np.random.default_rng(1).integers(1, 11, (SYSTEMS, 20))
    DRAWS[name](values, BLOCK)  # what is loaded once is no memory of the draws
    few, many = (peak(DRAWS[name], values, BLOCK * count) for count in (4, 300))
    assert many < few + 1_000_000


@pytest.mark.parametrize("draws", [1, 7, 8, 9, 1000])
def test_shares_have_the_draws_of_the_blocks_whoever_works(draws: int) -> None:
    values = np.arange(5)
    each = map_blocks(draw, values, rng=rng(), draws=draws, size=8)
    here = list(map_shares(draw_all, values, rng=rng(), draws=draws, size=8))
    with ThreadPoolExecutor(3) as executor:
        there = list(
            map_shares(draw_all, values, rng=rng(), executor=executor, draws=draws, size=8)
        )
    assert here == there
    assert list(chain(*here)) == list(chain(*each))
    assert sum(map(len, here)) == draws
    assert len(here) <= 32
