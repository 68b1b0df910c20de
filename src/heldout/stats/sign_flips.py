"""Sign-flip permutation tests of two systems, and of all pairs with the max-t correction.

Where two systems are equally good, the sign of their difference on a query is a coin's. Flipping
the scores of a query for all systems at once flips every pair's difference, so one product of
scores and signs serves all pairs. Studentised: a flip leaves the sum of squared differences as it
is, so the largest t of a flip is that of the largest |sum of differences| / root of that sum.

Assumptions: queries are independent; under the hypothesis differences are symmetric about 0. With
many queries and unequal tails the studentised test still nearly holds its level.
p = (1 + hits) / (1 + flips), never 0.

The maximum over all pairs is found without a table of pairs by flips. All but a few pairs lie far
below it in every flip, which single precision shows, with room for its error; what is left is
computed in double precision. Of a flip remain its largest t in the reversed direction and, for
the steps, the pairs by rising t at which the largest t so far exceeds that.

Sources: Westfall and Young 1993 (step-down maxT); Romano
and Wolf 2005; Mogstad, Romano, Shaikh and Wilhelm 2024 (both directions of a pair in one family).
"""

from collections.abc import Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from heldout.stats.exact import Whole, load_compiled, whole_numbers
from heldout.stats.resampling import Block, block_size, map_shares, run_tasks

_QUERIES = 512
_FLIPS = 512
_CELLS = 1 << 22
"""Flipped sums that are held at once: systems by flips, in double precision 32 MB."""
_ROWS = 128
_MANY = 256
"""Rows from which on what numba saves is more than it takes to load."""
_TASKS = 32
_WHOLE = 2.0**53
_ROUNDING = 1e-12
"""Values of t that differ by less than this share are equal, as those of two pairs may be."""
_SINGLE = 2.0**-20
"""More than the relative error of a difference of two numbers in single precision."""
_LEAST = 1e-20
"""Less than any t that is not 0: differences are whole numbers, and below 2^53."""

_STEPS = (1, 2, 3, 5)
_MOST_ABOVE = 1 << 18
_ALL = 256
"""So few pairs are looked at one and all."""
_FEW = 4
_CELLS_SQUARED = 1 << 15

Floats = NDArray[np.floating]
Doubles = NDArray[np.float64]
Indices = NDArray[np.int64]


def flip_test(a: Doubles, b: Doubles, rng: Generator, *, flips: int = 10_000) -> float | None:
    """Return the two-sided p of one pair of systems.

    Args:
        a: finite scores of a system.
        b: those of another on the same queries.
        rng: where signs come from.
        flips: how many, >= 1.

    Returns:
        `None` where the two have equal scores on every query. A flip hits where its mean difference
        is at least as large as the one found; those that differ by less than rounding are equal.
    """
    whole = whole_numbers(np.stack((a, b)), summed=len(a))
    if (np.abs(whole.values[1] - whole.values[0]) <= whole.nothing).all():
        return None
    sums = _sums(whole)
    least, hits = abs(sums[1] - sums[0]) - _slack(whole), 0
    size = block_size(2)
    counts = [min(size, flips - start) for start in range(0, flips, size)]
    for group in _group(list(zip(rng.spawn(len(counts)), counts, strict=True)), 2):
        flipped = _flip_sums(whole, sums, group).astype(np.float64)
        hits += int(np.count_nonzero(np.abs(flipped[1] - flipped[0]) >= least))
    return (1 + hits) / (1 + flips)


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
    pairs = _Pairs(len(values))
    family = _family(whole, executor)
    rising = np.flatnonzero(family.scale)
    if not len(rising):
        return np.full((len(values), len(values)), np.nan)
    rising = rising[np.argsort(family.found[rising], kind="stable")]
    shares = map_shares(
        _max_share,
        whole,
        family,
        step_down,
        rng=rng,
        draws=flips,
        size=block_size(len(rising)),
        executor=executor,
    )
    peaks = _join(list(shares))
    least = family.found * (1 - _ROUNDING) - _slack(whole) * np.abs(family.scale)
    positions = np.empty(pairs.count, np.int64)
    positions[rising] = np.arange(len(rising))
    hits = _count_reached(least[rising], peaks, positions)
    # No p is smaller than that of a pair with a larger t.
    corrected = (1 + hits) / (1 + flips)
    p = np.full(pairs.count, np.nan)
    p[rising] = np.maximum.accumulate(corrected[::-1])[::-1]
    return pairs.square(p)


class _Pairs:
    """The pairs of rows in one order: of the first row with each after it, then of the second."""

    __slots__ = ("count", "rows")

    def __init__(self, rows: int) -> None:
        self.rows = rows
        self.count = rows * (rows - 1) // 2

    def slice(self, row: int) -> slice:
        """Those of a row with each after it."""
        start = row * (2 * self.rows - row - 1) // 2
        return slice(start, start + self.rows - row - 1)

    def find_positions(self, first: Indices, second: Indices) -> Indices:
        """Of each pair of two rows, the upper one first."""
        return first * (2 * self.rows - first - 1) // 2 + second - first - 1

    def square(self, p: Doubles) -> Doubles:
        """A number for each pair as a symmetric table, NaN on the diagonal."""
        table = np.full((self.rows, self.rows), np.nan)
        for row in range(self.rows):
            table[row, row + 1 :] = table[row + 1 :, row] = p[self.slice(row)]
        return table


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Family:
    """All pairs, those without a t too.

    Attributes:
        scale: what makes t of the sum of differences of the second row from the first, up to what
            all have in common; negative where the first row has the larger sum, so that the t found
            is not; 0 where there is none.
        found: the t found; 0 where there is none.
        limits: a little less than 1 / |scale|, in single precision.
    """

    scale: Doubles
    found: Doubles
    limits: NDArray[np.float32]


def _family(whole: Whole, executor: Executor | None) -> _Family:
    pairs = _Pairs(len(whole.values))
    sums = _sums(whole)
    scale, found = _squares(whole, executor), np.empty(pairs.count)
    limits = np.empty(pairs.count, np.float32)
    for row in range(pairs.rows):
        some = pairs.slice(row)
        norms = np.sqrt(scale[some])
        limits[some] = np.where(norms > 0, norms * (1 - _SINGLE), np.inf)
        differences = sums[row + 1 :] - sums[row]
        sizes = np.divide(1, norms, out=np.zeros_like(norms), where=norms > 0)
        found[some] = np.abs(differences) * sizes
        scale[some] = np.where(differences >= 0, sizes, -sizes)
    return _Family(scale=scale, found=found, limits=limits)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Peaks:
    """What remains of flips.

    Attributes:
        largest: the largest t of each flip in the reversed directions; without steps in all.
        flips, pairs, values: where, by flip and by rising t found, the largest t so far exceeds
            that; none without steps.
    """

    largest: Doubles
    flips: Indices
    pairs: Indices
    values: Doubles


def _join(parts: Sequence[_Peaks]) -> _Peaks:
    """Flips that follow one another."""
    before = np.cumsum([0, *(len(part.largest) for part in parts)]).tolist()
    moved = [part.flips + start for part, start in zip(parts, before, strict=False)]
    return _Peaks(
        largest=np.concatenate([part.largest for part in parts]),
        flips=np.concatenate(moved),
        pairs=np.concatenate([part.pairs for part in parts]),
        values=np.concatenate([part.values for part in parts]),
    )


def _max_share(
    whole: Whole,
    family: _Family,
    step_down: bool,  # noqa: FBT001 - sent to another process by place
    blocks: Sequence[Block],
) -> _Peaks:
    sums = _sums(whole)
    return _join(
        [
            _find_peaks(_flip_sums(whole, sums, group), family, step_down=step_down)
            for group in _group(blocks, len(sums))
        ]
    )


def _group(blocks: Sequence[Block], rows: int) -> Iterator[list[Block]]:
    """Blocks that are done together, since a few flips at a time are slow."""
    most = min(_FLIPS, _CELLS // rows)
    group: list[Block] = []
    for block in blocks:
        if group and sum(flips for _, flips in (*group, block)) > most:
            yield group
            group = []
        group.append(block)
    yield group


def _find_peaks(flipped: Floats, family: _Family, *, step_down: bool) -> _Peaks:
    """Return what remains of some flips.

    Rows are divided by the largest t so far before they are subtracted: then one number for each
    pair says in all flips whether its t may be larger.
    """
    peaks = _Search(flipped, family, step_down=step_down)
    if len(family.scale) <= _ALL:
        peaks.look_at(*np.triu_indices(len(flipped), 1))
        return peaks.result()
    centred = (flipped - np.rint(flipped.mean(axis=0, dtype=np.float64))).astype(np.float32)
    spread = np.abs(centred).max(axis=0).astype(np.float64)
    scaled = np.empty_like(centred)
    peaks.look_at_neighbours()
    for first in range(0, len(flipped), _ROWS):
        last = min(first + _ROWS, len(flipped))
        largest = peaks.largest
        np.multiply(centred[:last], (1 / largest).astype(np.float32), out=scaled[:last])
        margin = np.float32(_SINGLE * (spread / largest).max())
        upper, lower = np.nonzero(_mark(scaled, family.limits, margin, first, last))
        peaks.look_at(upper, lower + first)
    return peaks.result()


class _Search:
    """The largest t of some flips, and what exceeds it, of the pairs that are looked at."""

    def __init__(self, flipped: Floats, family: _Family, *, step_down: bool) -> None:
        self.largest = np.full(flipped.shape[1], _LEAST)
        self._flipped, self._family, self._step_down = flipped, family, step_down
        self._pairs = _Pairs(len(flipped))
        none = np.empty(0, np.int64)
        self._above = _Peaks(largest=self.largest, flips=none, pairs=none, values=np.empty(0))

    def look_at_neighbours(self) -> None:
        """Some pairs to begin with, so that few are left that are larger."""
        for step in _STEPS:
            upper = np.arange(len(self._flipped) - step)
            self.look_at(upper, upper + step)

    def look_at(self, upper: Indices, lower: Indices) -> None:
        """Pairs of two rows."""
        for start in range(0, len(upper), _ROWS):
            first, second = upper[start : start + _ROWS], lower[start : start + _ROWS]
            pairs = self._pairs.find_positions(first, second)
            t = self._flipped[second].astype(np.float64)
            t -= self._flipped[first]
            t *= self._family.scale[pairs, np.newaxis]
            np.maximum(self.largest, -t.min(axis=0), out=self.largest)
            if not self._step_down:
                np.maximum(self.largest, t.max(axis=0), out=self.largest)
                continue
            position, flip = np.nonzero(t > self.largest)
            self._add(flip, pairs[position], t[position, flip])

    def _add(self, flips: Indices, pairs: Indices, values: Doubles) -> None:
        above = self._above
        self._above = _Peaks(
            largest=self.largest,
            flips=np.concatenate((above.flips, flips)),
            pairs=np.concatenate((above.pairs, pairs)),
            values=np.concatenate((above.values, values)),
        )
        if len(self._above.flips) > _MOST_ABOVE:
            self._above = self.result()

    def result(self) -> _Peaks:
        """Of the pairs that exceed the largest reversed t those that exceed all before them."""
        above = self._above
        selected = np.flatnonzero(above.values > self.largest[above.flips])
        flips, pairs, values = above.flips[selected], above.pairs[selected], above.values[selected]
        order = np.lexsort((pairs, self._family.found[pairs], flips))
        flips, pairs, values = flips[order], pairs[order], values[order]
        ranks = np.unique(values, return_inverse=True)[1]
        # Flips stand in order, so that the largest so far begins again with each
        so_far = np.maximum.accumulate(flips * len(values) + ranks)
        rises = np.ones(len(values), np.bool_)
        rises[1:] = so_far[1:] > so_far[:-1]
        return _Peaks(
            largest=self.largest, flips=flips[rises], pairs=pairs[rises], values=values[rises]
        )


def _mark(
    scaled: NDArray[np.float32],
    limits: NDArray[np.float32],
    margin: np.float32,
    first: int,
    last: int,
) -> NDArray[np.bool_]:
    """Mark the pairs that reach their limit in some flip.

    Args:
        scaled: shape (rows, flips).
        limits: of all pairs, in the order of `_Pairs`.
        margin: how much less is enough.
        first: the first of the rows that are second rows of pairs.
        last: the row after the last of them.

    Returns:
        Shape (last, last - first): by the first and the second row.
    """
    if len(scaled) >= _MANY and (loops := load_compiled()):
        found: NDArray[np.bool_] = loops.mark(scaled, limits, margin, first, last)
        return found
    pairs = _Pairs(len(scaled))
    marks = np.zeros((last, last - first), np.bool_)
    part = np.empty((last - first, scaled.shape[1]), np.float32)
    for row in range(last - 1):
        begin = max(first, row + 1)
        differences = part[: last - begin]
        np.subtract(scaled[begin:last], scaled[row], out=differences)
        np.abs(differences, out=differences)
        start = pairs.slice(row).start + begin - row - 1
        least = limits[start : start + last - begin] - margin
        np.greater_equal(differences.max(axis=1), least, out=marks[row, begin - first :])
    return marks


def _count_reached(least: Doubles, peaks: _Peaks, positions: Indices) -> NDArray[np.int64]:
    """For each pair, by rising t, in how many flips the largest t reaches its own.

    The largest t of a flip changes only at its peaks. Between two of them, of whatever flips, one
    sorted list of the largest t of all flips serves all pairs.

    Args:
        least: the t of a flip that hits.
        peaks: of all flips.
        positions: where a pair stands by rising t.
    """
    at = positions[peaks.pairs]
    order = np.argsort(at, kind="stable")
    if len(least) <= len(order):
        return _compare_each(least, peaks, order, np.searchsorted(at[order], range(len(least) + 1)))
    first = np.ones(len(order), np.bool_)
    first[1:] = peaks.flips[1:] != peaks.flips[:-1]
    before = np.where(first, peaks.largest[peaks.flips], np.roll(peaks.values, 1))
    current = np.sort(peaks.largest)
    hits, done = np.empty(len(least), np.int64), 0
    for position, old, new in zip(
        *(part[order].tolist() for part in (at, before, peaks.values)), strict=True
    ):
        hits[done:position] = len(current) - current.searchsorted(least[done:position])
        done = position
        out, into = current.searchsorted((old, new)).tolist()
        current[out : into - 1] = current[out + 1 : into]
        current[into - 1] = new
    hits[done:] = len(current) - current.searchsorted(least[done:])
    return hits


def _compare_each(
    least: Doubles, peaks: _Peaks, order: Indices, starts: Indices
) -> NDArray[np.int64]:
    """The same of few pairs: each is compared with the largest t of all flips.

    Args:
        least: the t of a flip that hits.
        peaks: of all flips.
        order: of the peaks, by the places of their pairs.
        starts: where those of a place begin, and after the last one where they end.
    """
    current = peaks.largest.copy()
    hits = np.empty(len(least), np.int64)
    for position, (start, end) in enumerate(pairwise(starts.tolist())):
        some = order[start:end]
        current[peaks.flips[some]] = peaks.values[some]
        hits[position] = np.count_nonzero(current >= least[position])
    return hits


def _sums(whole: Whole) -> Doubles:
    sums: Doubles = whole.values.sum(axis=1, dtype=np.float64)
    return sums


def _slack(whole: Whole) -> int:
    """By how many units a flip that gives the same difference may miss it."""
    return 0 if whole.exact else whole.values.shape[1]


def _flip_sums(whole: Whole, sums: Doubles, blocks: Sequence[Block]) -> Floats:
    """Sums of all systems under each flip of some blocks, shape (systems, flips), exact."""
    values = whole.values
    selected = np.zeros((len(values), sum(flips for _, flips in blocks)), values.dtype)
    part = np.empty_like(selected)
    for start in range(0, values.shape[1], _QUERIES):
        some = values[:, start : start + _QUERIES]
        signs = np.concatenate(
            [_draw_signs(rng, some.shape[1], flips) for rng, flips in blocks], axis=1
        )
        selected += np.matmul(some, signs.astype(values.dtype), out=part)
    # What is flipped is the sum less what is kept
    selected *= 2
    selected -= sums.astype(values.dtype)[:, np.newaxis]
    return selected


def _draw_signs(rng: Generator, queries: int, flips: int) -> NDArray[np.uint8]:
    """Return whether a query keeps its sign, 1 or 0, shape (queries, flips)."""
    bits = np.unpackbits(np.frombuffer(rng.bytes(-(-queries * flips // 8)), np.uint8))
    return bits[: queries * flips].reshape(queries, flips)


def _squares(whole: Whole, executor: Executor | None) -> Doubles:
    """The sum of squared differences of each pair, 0 only where all of them are rounding."""
    wide = whole.values.astype(np.float64, copy=False)
    pairs = _Pairs(len(wide))
    if not whole.nothing and 4 * wide.shape[1] * float(np.abs(wide).max()) ** 2 <= _WHOLE:
        work = _square_products
    else:
        work = _square_differences
    count = max(1, min(_TASKS, pairs.rows // _TASKS))  # few pairs are done before a task is sent
    tasks = [range(start, pairs.rows, count) for start in range(count)]
    squares = np.empty(pairs.count)
    nothing = whole.nothing
    found = run_tasks(work, ((wide, nothing, rows) for rows in tasks), executor)
    for rows, parts in zip(tasks, found, strict=True):
        for row, part in zip(rows, parts, strict=True):
            squares[pairs.slice(row)] = part
    return squares


def _square_products(values: Doubles, nothing: float, rows: range) -> list[Doubles]:
    """Of some rows with each after it, where all products are whole numbers below 2^53."""
    del nothing
    own = np.einsum("sq,sq->s", values, values)
    products = values[rows.start :: rows.step] @ values.T
    return [
        own[row] + own[row + 1 :] - 2 * product[row + 1 :]
        for row, product in zip(rows, products, strict=True)
    ]


def _square_differences(values: Doubles, nothing: float, rows: range) -> list[Doubles]:
    """Of some rows with each after it, few at a time, which the processor's cache holds."""
    squares = [np.empty(len(values) - row - 1) for row in rows]
    size = max(_FEW, _CELLS_SQUARED // values.shape[1])
    part = np.empty((size, values.shape[1]))
    for first in range(0, len(values), size):
        for row, square in zip(rows, squares, strict=True):
            begin = max(first, row + 1)
            differences = part[: max(0, min(first + size, len(values)) - begin)]
            np.subtract(values[begin : first + size], values[row], out=differences)
            # Others are whole numbers: what is less than 1 is 0
            if nothing >= 1:
                differences *= np.abs(differences) > nothing
            np.multiply(differences, differences, out=differences)
            differences.sum(
                axis=1, out=square[begin - row - 1 : begin - row - 1 + len(differences)]
            )
    return squares
