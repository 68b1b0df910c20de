"""The bootstrap of ranks and means, against loops, and whoever computes it."""

from collections.abc import Iterator
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray

from heldout.stats.resampling import block_size, bootstrap_means, bootstrap_ranks, rank_rows

Scores = NDArray[np.float64]
RR = st.sampled_from([0.0, *(1 / rank for rank in range(1, 11))])
ANY = st.floats(0, 1, allow_subnormal=False)


def tables(cells: st.SearchStrategy[float]) -> st.SearchStrategy[Scores]:
    return arrays(np.float64, st.tuples(st.integers(1, 6), st.integers(1, 12)), elements=cells)


def rng() -> np.random.Generator:
    return np.random.Generator(np.random.PCG64(0))


def draws_of(queries: int, size: int, trials: int) -> Iterator[NDArray[np.int32]]:
    """The queries of each trial, drawn as the bootstrap draws them."""
    block = block_size(max(size, queries))
    counts = [min(block, trials - start) for start in range(0, trials, block)]
    for child, count in zip(rng().spawn(len(counts)), counts, strict=True):
        yield from child.integers(0, queries, (count, size), dtype=np.int32)


@given(tables(ANY), st.integers(1, 20))
def test_means_are_those_of_an_index_loop(values: Scores, size: int) -> None:
    found = bootstrap_means(values, rng(), trials=70, size=size)

    drawn = draws_of(values.shape[1], size, 70)
    loop = np.stack([values[:, queries].mean(axis=1) for queries in drawn])
    np.testing.assert_allclose(found, loop, rtol=0, atol=1.1e-12)


@given(tables(RR))
def test_ranks_are_those_of_an_index_loop_over_fractions(values: Scores) -> None:
    found = bootstrap_ranks(values, rng(), trials=70)

    units = np.rint(values * 2520).astype(int)
    counts, tied = np.zeros((len(values), len(values)), int), 0
    for queries in draws_of(values.shape[1], values.shape[1], 70):
        sums = [sum(row[query] for query in queries) for row in units.tolist()]
        order = sorted(range(len(sums)), key=lambda row: -sums[row])
        tied += len(set(sums)) < len(sums)
        for rank, row in enumerate(order):
            counts[row, rank] += 1
    assert found.counts.tolist() == counts.tolist()
    assert found.tied == tied


@given(tables(RR | ANY), st.randoms(use_true_random=False))
def test_the_order_of_systems_changes_no_shared_rank(values: Scores, random: object) -> None:
    order = list(range(len(values)))
    random.shuffle(order)  # type: ignore[attr-defined] # hypothesis gives a random.Random

    found = bootstrap_ranks(values, rng(), trials=50, ties="shared").counts
    shuffled = bootstrap_ranks(values[order], rng(), trials=50, ties="shared").counts

    assert shuffled.tolist() == found[order].tolist()


@given(tables(RR | ANY))
def test_every_trial_ranks_every_system_once(values: Scores) -> None:
    for ties in ("earlier", "shared"):
        counts = bootstrap_ranks(values, rng(), trials=50, ties=ties).counts
        assert (counts.sum(axis=1) == 50).all()
        assert counts[:, 0].sum() >= 50
        if ties == "earlier":
            assert (counts.sum(axis=0) == 50).all()


@pytest.mark.parametrize(
    ("means", "earlier", "shared", "tied"),
    [
        ([0.1, 0.3, 0.2], [3, 1, 2], [3, 1, 2], 0),
        ([0.2, 0.3, 0.3, 0.2], [3, 1, 2, 4], [3, 1, 1, 3], 1),
        ([0.5, 0.5, 0.5], [1, 2, 3], [1, 1, 1], 1),
        ([0.5], [1], [1], 0),
    ],
)
def test_equal_means_are_ranked_by_the_rule(
    means: list[float], earlier: list[int], shared: list[int], tied: int
) -> None:
    row = np.array([means])

    assert (rank_rows(row, "earlier")[0].tolist(), rank_rows(row, "earlier")[1]) == (
        [earlier],
        tied,
    )
    assert (rank_rows(row, "shared")[0].tolist(), rank_rows(row, "shared")[1]) == ([shared], tied)


def test_sums_that_differ_by_rounding_only_are_a_tie() -> None:
    # 1/3 + 1/6 and 1/2 + 0 are equal; floats of many values would say otherwise
    values = np.array([[1 / 3, 1 / 6], [1 / 2, 0.0]])

    assert bootstrap_ranks(values, rng(), trials=200, size=2, ties="shared").tied > 50
    general = np.array([[0.1 + 0.2, np.pi / 10], [0.3, np.pi / 10]])
    assert bootstrap_ranks(general, rng(), trials=20, ties="shared").counts.tolist() == [
        [20, 0],
        [20, 0],
    ]


@contextmanager
def workers(kind: str) -> Iterator[Executor]:
    if kind == "processes":
        with ProcessPoolExecutor(2, get_context("forkserver")) as executor:
            yield executor
        return
    with ThreadPoolExecutor(int(kind)) as executor:
        yield executor


@pytest.mark.parametrize("kind", ["1", "2", "5", "processes"])
def test_the_same_seed_gives_the_same_bytes_whoever_works(kind: str) -> None:
    values = np.random.default_rng(1).random((7, 300))
    here = bootstrap_ranks(values, rng(), trials=3000)
    means = bootstrap_means(values, rng(), trials=3000)

    with workers(kind) as executor:
        there = bootstrap_ranks(values, rng(), trials=3000, executor=executor)
        others = bootstrap_means(values, rng(), trials=3000, executor=executor)

    assert there.counts.tobytes() == here.counts.tobytes()
    assert others.tobytes() == means.tobytes()


def test_more_trials_begin_with_the_same_ones() -> None:
    values = np.random.default_rng(1).random((3, 30))

    few, many = (bootstrap_means(values, rng(), trials=trials) for trials in (512, 2000))

    assert many[:512].tobytes() == few.tobytes()
