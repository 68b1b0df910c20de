"""The bootstrap and the sign flips of all pairs for the benchmark: ours, loops, and floors."""

import numpy as np
from numpy.random import PCG64, Generator
from numpy.typing import NDArray
from scipy import stats

from heldout.files.executors import open_executor
from heldout.stats.resampling import bootstrap_ranks
from heldout.stats.sign_flips import max_t

__all__ = [
    "FLIPS",
    "LOOPED_TRIALS",
    "loop_over_trials",
    "multiply_counts",
    "multiply_signs",
    "permute_one_pair",
    "range_all_pairs",
    "rank_resampled",
]

FLIPS = 10_000
LOOPED_TRIALS = 200
_BLOCK = 500

Floats = NDArray[np.float64]


def rank_resampled(values: Floats, trials: int) -> object:
    """Ours, on all cores."""
    with open_executor() as executor:
        return bootstrap_ranks(values, Generator(PCG64(0)), trials=trials, executor=executor)


def loop_over_trials(values: Floats, trials: int) -> float:
    """One trial after the other: draw, index, mean, rank."""
    random = np.random.default_rng(0)
    systems, queries = values.shape
    table = np.zeros((systems, systems), np.int64)
    for _ in range(LOOPED_TRIALS):
        means = values[:, random.integers(0, queries, queries)].mean(axis=1)
        table[np.argsort(-means, kind="stable"), np.arange(systems)] += 1
    return LOOPED_TRIALS / trials


def multiply_counts(values: Floats, trials: int) -> None:
    """The product of counts and scores alone."""
    counts = np.ones((_BLOCK, values.shape[1]))
    for _ in range(trials // _BLOCK):
        _ = counts @ values.T


def range_all_pairs(values: Floats) -> object:
    """Ours, on all cores, with max-t and step-down."""
    with open_executor() as executor:
        return max_t(values, Generator(PCG64(0)), flips=FLIPS, executor=executor)


def permute_one_pair(values: Floats) -> float:
    """A tenth of scipy's flips of one pair."""
    stats.permutation_test(
        (values[1] - values[0],),
        lambda difference, axis: difference.mean(axis=axis),
        permutation_type="samples",
        vectorized=True,
        n_resamples=FLIPS // 10,
        batch=100,
        rng=np.random.default_rng(0),
    )
    return 1 / (10 * len(values) * (len(values) - 1) / 2)


def multiply_signs(values: Floats) -> None:
    """The product of scores and signs alone."""
    signs = np.ones((values.shape[1], _BLOCK))
    for _ in range(FLIPS // _BLOCK):
        _ = values @ signs
