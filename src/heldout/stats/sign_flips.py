"""Sign-flip permutation tests of all pairs of systems, and their max-t correction.

Where two systems are equally good, the sign of their difference on a query is a coin's. Flipping
the scores of a query for all systems at once flips every pair's difference, so one product of
scores and signs serves all pairs. Studentised: a flip leaves the sum of squared differences as it
is, so the largest t of a flip is that of the largest |sum of differences| / root of that sum.

Assumptions: queries are independent; under the hypothesis differences are symmetric about 0. With
many queries and unequal tails the studentised test still nearly holds its level.
p = (1 + hits) / (1 + flips), never 0. Sources: Westfall and Young 1993 (step-down maxT); Romano
and Wolf 2005; Mogstad, Romano, Shaikh and Wilhelm 2024 (both directions of a pair in one family).
"""

from concurrent.futures import Executor
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from heldout.stats.exact import Whole, whole_numbers
from heldout.stats.resampling import add_blocks, block_size

_QUERIES = 512
_PAIRS = 256
_WORD = 8
_ROUNDING = 1e-12
"""Values of t that differ by less than this share are equal, as those of two pairs may be."""


def flip_test(
    values: NDArray[np.float64],
    rng: Generator,
    *,
    flips: int = 10_000,
    executor: Executor | None = None,
) -> NDArray[np.float64]:
    """Two-sided p of every pair, not corrected for how many pairs there are.

    Args:
        values: finite scores, shape (systems, queries).
        rng: where signs come from.
        flips: how many, >= 1.
        executor: where to compute; `None` for here.

    Returns:
        Symmetric, shape (systems, systems). NaN where undefined: on the diagonal and where two
        systems have equal scores on every query. A flip hits where its mean difference is at
        least as large as the one found; those that differ by less than rounding are equal.
    """
    whole = whole_numbers(values, summed=values.shape[1])
    table = np.full((len(values), len(values)), np.nan)
    size = block_size(len(values))
    hits = add_blocks(
        _flip_block, whole, _sums(whole), rng=rng, draws=flips, size=size, executor=executor
    )
    p = (1 + hits) / (1 + flips)
    first, second = np.triu_indices(len(values), 1)
    table[first, second] = table[second, first] = np.where(_differ(whole), p, np.nan)
    return table


def max_t(
    values: NDArray[np.float64],
    rng: Generator,
    *,
    flips: int = 10_000,
    step_down: bool = True,
    executor: Executor | None = None,
) -> NDArray[np.float64]:
    """The p of every pair, corrected over all pairs and both directions of each.

    The hypotheses are `B is not better than A`, for every ordered pair. So a small p says which
    of the two is better, and the chance that any such word is wrong is at most the level.

    Args:
        values: finite scores, shape (systems, queries).
        rng: where signs come from.
        flips: how many, >= 1.
        step_down: leave those that are significant out of the maximum for those that follow;
            else the single step.
        executor: where to compute; `None` for here.

    Returns:
        Symmetric, shape (systems, systems): p of the direction in which the means differ. NaN
        on the diagonal and where two systems have equal scores on every query, but for
        differences below 1e-12: such a pair has
        no t and is left out of the family.
    """
    whole = whole_numbers(values, summed=values.shape[1])
    table = np.full((len(values), len(values)), np.nan)
    family = _family(whole, step_down=step_down)
    if not len(family.better):
        return table
    size = block_size(len(family.better))
    hits = add_blocks(
        _max_block, whole, _sums(whole), family, rng=rng, draws=flips, size=size, executor=executor
    )
    p = (1 + hits) / (1 + flips)
    # No p is smaller than that of a pair with a larger t.
    p = np.maximum.accumulate(p[::-1])[::-1]
    table[family.better, family.worse] = table[family.worse, family.better] = p
    return table


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Family:
    """The pairs that have a t, by rising t.

    Attributes:
        better, worse: their rows, the one with the larger sum first.
        scale: what makes t of a difference of sums, up to what all have in common.
        least: the t of a flip that hits.
        step_down: as given.
    """

    better: NDArray[np.int64]
    worse: NDArray[np.int64]
    scale: NDArray[np.float64]
    least: NDArray[np.float64]
    step_down: bool


def _family(whole: Whole, *, step_down: bool) -> _Family:
    squares = _squares(whole)
    tested = np.flatnonzero(squares)
    first, second = (rows[tested] for rows in np.triu_indices(len(whole.values), 1))
    sums = _sums(whole)
    up = sums[second] >= sums[first]
    better, worse = np.where(up, second, first), np.where(up, first, second)
    scale = 1 / np.sqrt(squares[tested])
    found = (sums[better] - sums[worse]) * scale
    rising = np.argsort(found, kind="stable")
    return _Family(
        better=better[rising],
        worse=worse[rising],
        scale=scale[rising],
        least=(found * (1 - _ROUNDING) - _slack(whole) * scale)[rising],
        step_down=step_down,
    )


def _flip_block(
    whole: Whole, sums: NDArray[np.float64], rng: Generator, flips: int
) -> NDArray[np.int64]:
    """For each pair, in how many flips its difference is at least as large as the one found."""
    flipped = _flip_sums(whole, sums, rng, flips)
    # No difference exceeds what both rows have above or below the first: most pairs are far apart
    flipped -= flipped[0].copy()
    reach = np.abs(flipped).max(axis=1).astype(np.float64)
    first, second = np.triu_indices(len(sums), 1)
    least = np.abs(sums[second] - sums[first]) - _slack(whole)
    near = np.flatnonzero(least <= reach[first] + reach[second])
    hits = np.zeros(len(least), np.int64)
    for start in range(0, len(near), _PAIRS):
        some = near[start : start + _PAIRS]
        differences = flipped[second[some]]
        differences -= flipped[first[some]]
        np.abs(differences, out=differences)
        hits[some] = _count_reached(differences, least[some].astype(differences.dtype))
    return hits


def _count_reached(values: NDArray[np.floating], least: NDArray[np.floating]) -> NDArray[np.int64]:
    """How many values of each row are at least as large as that row asks.

    A byte of 1 or 0 for each is added up eight at a time, which numpy does not do by itself; rows
    of up to 2,040 values do not overflow a byte.
    """
    rows, width = values.shape
    reached = np.zeros((rows, -(-width // _WORD) * _WORD), np.bool_)
    np.greater_equal(values, least[:, np.newaxis], out=reached[:, :width])
    bytewise = reached.view(np.uint64).sum(axis=1).view(np.uint8)
    counts: NDArray[np.int64] = bytewise.reshape(rows, _WORD).sum(axis=1, dtype=np.int64)
    return counts


def _max_block(
    whole: Whole, sums: NDArray[np.float64], family: _Family, rng: Generator, flips: int
) -> NDArray[np.int64]:
    """For each pair, by rising t, in how many flips the largest t reaches its own.

    The reversed directions are all in every maximum: none is rejected before its pair is.
    """
    flipped = _flip_sums(whole, sums, rng, flips).astype(np.float64, copy=False)
    scores = flipped[family.better]
    scores -= flipped[family.worse]
    scores *= family.scale[:, np.newaxis]
    largest = -scores.min(axis=0)
    if family.step_down:
        np.maximum.accumulate(scores, axis=0, out=scores)
    else:
        largest = np.maximum(largest, scores.max(axis=0))
    np.maximum(scores, largest, out=scores)
    return _count_reached(scores, family.least)


def _sums(whole: Whole) -> NDArray[np.float64]:
    sums: NDArray[np.float64] = whole.values.sum(axis=1, dtype=np.float64)
    return sums


def _slack(whole: Whole) -> int:
    """By how many units a flip that gives the same difference may miss it."""
    return 0 if whole.exact else whole.values.shape[1]


def _flip_sums(
    whole: Whole, sums: NDArray[np.float64], rng: Generator, flips: int
) -> NDArray[np.floating]:
    """Sums of all systems under each flip, shape (systems, flips), exact."""
    values = whole.values
    kept = np.zeros((len(values), flips), values.dtype)
    part = np.empty_like(kept)
    for start in range(0, values.shape[1], _QUERIES):
        some = values[:, start : start + _QUERIES]
        queries = some.shape[1]
        bits = np.unpackbits(np.frombuffer(rng.bytes(-(-queries * flips // 8)), np.uint8))
        signs = bits[: queries * flips].reshape(queries, flips).astype(values.dtype)
        kept += np.matmul(some, signs, out=part)
    # What is flipped is the sum less what is kept
    kept *= 2
    kept -= sums.astype(values.dtype)[:, np.newaxis]
    return kept


def _differ(whole: Whole) -> NDArray[np.bool_]:
    """Whether the rows of each pair differ by more than rounding."""
    values = whole.values
    rows = [
        (np.abs(values[row + 1 :] - values[row]) > whole.nothing).any(axis=1)
        for row in range(len(values) - 1)
    ]
    return np.concatenate([np.empty(0, np.bool_), *rows])


def _squares(whole: Whole) -> NDArray[np.float64]:
    """The sum of squared differences of each pair, 0 only where all of them are rounding."""
    wide = whole.values.astype(np.float64, copy=False)
    rows = [_square(wide[row + 1 :] - wide[row], whole.nothing) for row in range(len(wide) - 1)]
    return np.concatenate([np.empty(0), *rows])


def _square(differences: NDArray[np.float64], nothing: float) -> NDArray[np.float64]:
    if nothing:
        differences[np.abs(differences) <= nothing] = 0.0
    squares: NDArray[np.float64] = (differences**2).sum(axis=1)
    return squares
