"""How far two rankings agree: Kendall's tau, AP correlation, and rank-biased overlap.

A ranking is given by its scores, the highest first; equal scores are ties. tau and tau_AP, which
cares most for the top, go from -1 (reversed) to 1 (the same). One that is not defined is `None`:
with fewer than two items, or where a ranking ties all of them.

Rank-biased overlap takes rankings of different lengths. The agreement at depth d is the overlap of
their first d items; the overlap weighs depth d by p^(d-1), so the top counts most and the rest of
the rankings, which nobody has seen, can be bounded. Ties are dealt with in three ways (`RboTies`).

Two sets of labels order runs alike among all, and among those that matter (`find_taus`): one tau
over all runs hides what happens at the top: in the study it is .65 over 16 runs and .16 over the
best ten (Arabzadeh et al. 2021, table 3). No interval is given: a bootstrap of queries orders runs
by fewer different queries, which lowers every tau. Of 45 runs on 50 queries its 95% held the true
one in no sample, and no other interval that was tried holds everywhere
(benchmarks/tau_coverage.py).

Sources: Corsi and Urbano 2024, The treatment of ties in rank-biased overlap; Webber, Moffat and
Zobel 2010, A similarity measure for indefinite rankings.
"""

import math
from collections.abc import Collection, Hashable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from heldout.errors import InputError, quote
from heldout.stats.results import check_scores

TauTies = Literal["a", "b"]
"""What tied pairs count in Kendall's tau. `a`: they agree with nothing, and count among all pairs.
`b`: each ranking's tied pairs are left out of its own total."""

Scores = NDArray[np.float64]


def kendall(x: ArrayLike, y: ArrayLike, *, ties: TauTies = "b") -> float | None:
    """Kendall's tau: pairs in the same order less pairs in opposite order, as a share of pairs.

    Args:
        x: finite scores of the items.
        y: scores of the same items; x and y may change places.
        ties: what tied pairs count.

    Returns:
        -1 to 1; `None` for fewer than two items, and with `b` where x or y ties all items.
        Without ties `a` and `b` are the same.

    Raises:
        InputError: code `not-finite`.
        ValueError: x and y have different lengths.

    Source: Kendall 1945, The treatment of ties in ranking problems.
    """
    return kendall_all(_check_both(x, y), ties=ties)[0][1]


def kendall_all(
    rankings: Sequence[Scores] | Scores, *, ties: TauTies = "b"
) -> tuple[tuple[float | None, ...], ...]:
    """Kendall's tau between all rankings of the same items, as one product of two matrices.

    Args:
        rankings: finite scores, shape (rankings, items). Memory grows with the square of the
            items: 8 MB for each ranking of 1,400.
        ties: what tied pairs count.

    Returns:
        A row and a column for each ranking; `None` where tau is not defined.
    """
    values = np.asarray(rankings, np.float64)
    first, second = np.triu_indices(values.shape[1], k=1)
    order = np.sign(values[:, first] - values[:, second])
    # Whole numbers, so that the sums are exact
    agreement = order @ order.T
    untied = np.abs(order).sum(axis=1)
    if ties == "a":
        untied = np.full_like(untied, len(first))
    totals = np.sqrt(np.outer(untied, untied))
    return tuple(
        tuple(min(1.0, max(-1.0, a / t)) if t else None for a, t in zip(sums, total, strict=True))
        for sums, total in zip(agreement.tolist(), totals.tolist(), strict=True)
    )


def tau_ap(truth: ArrayLike, estimate: ArrayLike) -> float | None:
    """AP correlation: how many of those that an estimate ranks above an item belong there.

    The share is taken at each place of the estimate and averaged, so errors near the top cost
    most. Truth and estimate cannot change places.

    Args:
        truth: finite scores of the items, all different.
        estimate: scores of the same items, all different.

    Returns:
        -1 to 1; `None` for fewer than two items.

    Raises:
        InputError: codes `not-finite`, `tied-scores`.
        ValueError: the two have different lengths.

    Source: Yilmaz, Aslam and Robertson 2008, A new rank correlation coefficient for information
    retrieval.
    """
    true, estimated = _check_both(truth, estimate)
    _refuse_ties(true, "truth")
    _refuse_ties(estimated, "estimate")
    return tau_ap_a(true, estimated)


def tau_ap_a(truth: ArrayLike, estimate: ArrayLike) -> float | None:
    """AP correlation where the estimate has ties: its mean over all ways to break them.

    Args:
        truth: finite scores of the items, all different.
        estimate: scores of the same items; ties mean that their order is not known.

    Returns:
        -1 to 1; `None` for fewer than two items. Without ties it is `tau_ap`.

    Raises:
        InputError: codes `not-finite`, `tied-scores`: the truth has ties, see `tau_ap_b`.
        ValueError: the two have different lengths.

    Source: Urbano and Marrero 2017, The treatment of ties in AP correlation, tau_AP,a.
    """
    true, estimated = _check_both(truth, estimate)
    _refuse_ties(true, "truth")
    count = len(true)
    if count < 2:  # noqa: PLR2004 - one item has no order
        return None
    above = estimated[:, np.newaxis] < estimated
    right = (above & (true[:, np.newaxis] < true)).sum(axis=1)
    higher = above.sum(axis=1)
    tied = (estimated[:, np.newaxis] == estimated).sum(axis=1)
    # 1/0 + 1/1 + ... + 1/(place - 1) above each place, where 1/0 counts nothing
    inverse = np.concatenate([[0.0, 0.0], np.cumsum(1 / np.arange(1, count))])
    # An item has each place of its group equally often; the items above the group are above it
    # wherever it stands, and of those of its group above it half are in the right order
    shares = (inverse[higher + tied] - inverse[higher]) / tied
    filled = np.where(higher > 0, tied, tied - 1)
    within = (filled - higher * shares * tied) / tied / 2
    return _bound(2 * math.fsum((right * shares + within).tolist()) / (count - 1) - 1)


def tau_ap_b(x: ArrayLike, y: ArrayLike) -> float | None:
    """AP correlation of two rankings that may both have ties, neither of which is the truth.

    The mean of both directions. In each, an item is compared with those strictly above its group
    of ties, and the items of the first group, which have none above, do not count. A pair that
    the other ranking ties is not in the right order.

    Args:
        x: finite scores of the items.
        y: scores of the same items; x and y may change places.

    Returns:
        -1 to 1; `None` for fewer than two items, and where x or y ties all of them. Without ties
        it is the mean of `tau_ap` in both directions.

    Raises:
        InputError: code `not-finite`.
        ValueError: x and y have different lengths.

    Source: Urbano and Marrero 2017, tau_AP,b.
    """
    first, second = _check_both(x, y)
    ways = (_one_way_b(first, second), _one_way_b(second, first))
    if ways[0] is None or ways[1] is None:
        return None
    return _bound((ways[0] + ways[1]) / 2)


def _one_way_b(truth: Scores, estimate: Scores) -> float | None:
    above = estimate[:, np.newaxis] < estimate
    higher = above.sum(axis=1)
    below = higher > 0
    if not below.any():
        return None
    right = (above & (truth[:, np.newaxis] < truth)).sum(axis=1)
    shares = (right[below] / higher[below]).tolist()
    return 2 * math.fsum(shares) / len(shares) - 1


def _check_both(x: ArrayLike, y: ArrayLike) -> tuple[Scores, Scores]:
    first, second = check_scores(x, "the first ranking"), check_scores(y, "the second ranking")
    if len(first) != len(second):
        raise ValueError(f"rankings of {len(first)} and of {len(second)} items")
    return first, second


def _refuse_ties(scores: Scores, name: str) -> None:
    values, counts = np.unique(scores, return_counts=True)
    if (counts > 1).any():
        position = int(np.argmax(counts > 1))
        raise InputError.of(
            "tied-scores", name, f"{float(values[position])!r} {int(counts[position])} times"
        )


def _bound(value: float) -> float:
    """The coefficient without what rounding adds beyond its ends."""
    return min(1.0, max(-1.0, value))


def midranks(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Ranks from 1, ascending; equal values share the mean of their places.

    Args:
        values: finite, one dimension.
    """
    _, positions, sizes = np.unique(values, return_inverse=True, return_counts=True)
    ends = np.cumsum(sizes)
    return np.asarray((ends - (sizes - 1) / 2)[positions], np.float64)


RboTies = Literal["w", "a", "b"]
"""What items that share a place mean. `w`: they are equally good, as in sports, and a depth that
reaches the first of them has them all. `a`: their order is not known; the mean over all ways to
break ties. `b`: the same, corrected for what ties hide, so that a ranking agrees with itself."""

Ranking = Sequence[Collection[Hashable]]
Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rbo:
    """Rank-biased overlap.

    Attributes:
        ext: the agreement that was seen goes on where nothing was.
        min: nothing in common where nothing was seen.
        max: all in common that can be.
        res: max - min, what the unseen leaves open.
        p: persistence.
        ties: what ties mean.
    """

    ext: float
    min: float
    max: float
    res: float
    p: float
    ties: RboTies


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Seen:
    """Two rankings by depth: how far each item is in, and what follows from it.

    Attributes:
        shorter, longer: their lengths.
        common: of depths 1 to `longer`: the overlap of what was seen.
        sizes: for both, the shorter one first: what stands for a ranking's size in its agreement.
        lone: shape (items, depths): how far the items are in that only the longer one has.
    """

    shorter: int
    longer: int
    common: Array
    sizes: tuple[Array, Array]
    lone: Array


def rank_biased_overlap(x: Ranking, y: Ranking, p: float, *, ties: RboTies = "a") -> Rbo:
    """Return how far two rankings overlap, the top first.

    Args:
        x: groups of tied items, the best first; a group of one item is an item without ties.
            At least one item; none stands twice.
        y: the same; x and y may change places.
        p: persistence, above 0 and below 1: the share of readers who go on to the next item.
            The first 1 / (1 - p) items have most of the weight.
        ties: what items that share a place mean; no matter where there are none.

    Returns:
        0 to 1 each, with min <= ext, max; time and memory grow with items times depth.

    Raises:
        InputError: codes `bad-persistence`, `bad-ranking`.
    """
    if not 0 < p < 1:
        raise InputError.of("bad-persistence", "p", quote(p))
    _check(x, "the first ranking")
    _check(y, "the second ranking")
    short, long = sorted((x, y), key=_length)
    alike = len(short) == len(long) == _length(short) == _length(long)
    seen = _look_untied(short, long) if alike else _look(short, long, ties)
    depths = np.arange(1, seen.longer + 1)
    weights = p**depths
    low = _agreement(seen, 0.0, ties)
    high = _agreement(seen, _most_unseen(seen), ties)
    likely = _agreement(seen, _likely_unseen(seen, low), ties)
    last = float(seen.common[-1])
    beyond = (
        # -log(1 - p) is the sum of p^d / d over all depths
        last * (-math.log1p(-p) - float(np.sum(weights / depths))),
        _most_beyond(seen, p),
        _likely_beyond(seen, low) * p ** (seen.longer + 1) / (1 - p),
    )
    least, most, extrapolated = (
        min(1.0, max(0.0, (1 - p) / p * (float(agreement @ weights) + rest)))
        for agreement, rest in zip((low, high, likely), beyond, strict=True)
    )
    return Rbo(ext=extrapolated, min=least, max=most, res=most - least, p=p, ties=ties)


def _check(ranking: Ranking, name: str) -> None:
    found = None
    seen: set[Hashable] = set()
    for position, group in enumerate(ranking, start=1):
        if isinstance(group, str) or not group:
            found = f"{quote(group)} in place {position}"
        repeated = seen.intersection(group)
        if repeated or len(set(group)) < len(group):
            found = f"an item of place {position} twice"
        seen.update(group)
    if found or not seen:
        expected = "groups of at least one item, each item once"
        raise InputError.of("bad-ranking", name, found or "no item", expected)


def _length(ranking: Ranking) -> int:
    return sum(len(group) for group in ranking)


def _look(short: Ranking, long: Ranking, ties: RboTies) -> _Seen:
    items = {item: row for row, item in enumerate(i for group in long for i in group)}
    # Rows: the items of the longer ranking in its order, then those that only the shorter one has
    for group in short:
        for item in group:
            items.setdefault(item, len(items))
    shorter, longer = _length(short), _length(long)
    first = _how_far_in(short, items, longer, ties)
    second = _how_far_in(long, items, longer, ties)
    in_short = {item for group in short for item in group}
    lone = [row for item, row in items.items() if row < longer and item not in in_short]
    return _Seen(
        shorter=shorter,
        longer=longer,
        common=np.einsum("id,id->d", first, second),
        sizes=(_size(first, shorter, ties), _size(second, longer, ties)),
        lone=second[lone],
    )


def _look_untied(first: Ranking, second: Ranking) -> _Seen:
    """The same for two rankings of one length without ties, without a row for each item."""
    depth = len(first)
    positions = {item: position for position, (item,) in enumerate(first)}
    common = np.zeros(depth)
    for position, (item,) in enumerate(second):
        if item in positions:
            common[max(position, positions[item])] += 1
    depths = np.arange(1.0, depth + 1)
    return _Seen(
        shorter=depth,
        longer=depth,
        common=np.cumsum(common),
        sizes=(depths, depths),
        lone=np.zeros((0, depth)),
    )


def _how_far_in(ranking: Ranking, items: dict[Hashable, int], depth: int, ties: RboTies) -> Array:
    """For each item and depth the chance that the item is among the first so many."""
    befores, sizes = np.full(len(items), depth), np.ones(len(items))
    rows, above, together, before = [], [], [], 0
    for group in ranking:
        size = len(group)
        rows += [items[item] for item in group]
        above += [before] * size
        together += [1 if ties == "w" else size] * size
        before += size
    befores[rows], sizes[rows] = above, together
    depths = np.arange(1, depth + 1)
    share: Array = np.clip((depths - befores[:, np.newaxis]) / sizes[:, np.newaxis], 0, 1)
    return share


def _size(share: Array, length: int, ties: RboTies) -> Array:
    """Return what a ranking's agreement is divided by at each depth; beyond its end, the depth."""
    depths = np.arange(1.0, share.shape[1] + 1)
    if ties == "a":
        return depths
    size = np.sum(share if ties == "w" else share**2, axis=0)
    return np.where(depths > length, depths, size)


def _agreement(seen: _Seen, unseen: Array | float, ties: RboTies) -> Array:
    """Overlap at each depth as a share of what it can be."""
    overlap = seen.common + unseen
    short, long = seen.sizes
    share: Array = 2 * overlap / (short + long) if ties == "w" else overlap / np.sqrt(short * long)
    return share


def _open_positions(seen: _Seen) -> NDArray[np.int64]:
    """Return how many items of the shorter ranking are unseen at each depth."""
    return np.maximum(np.arange(1, seen.longer + 1) - seen.shorter, 0)


def _most_unseen(seen: _Seen) -> Array:
    """The most overlap that unseen items can add: one for each, from the longer one's top."""
    opened = _open_positions(seen)
    sums = np.concatenate([np.zeros((1, seen.longer)), np.cumsum(seen.lone, axis=0)])
    most: Array = sums[opened, np.arange(seen.longer)]
    return most


def _likely_unseen(seen: _Seen, low: Array) -> Array:
    """The overlap that unseen items add where the agreement at the shorter one's end goes on."""
    opened = _open_positions(seen)
    reached = np.count_nonzero(seen.lone, axis=0)
    mean = np.sum(seen.lone, axis=0) / np.maximum(reached, 1)
    likely: Array = opened * low[seen.shorter - 1] * mean
    return likely


def _most_beyond(seen: _Seen, p: float) -> float:
    """The weighted agreement beyond the longer one's end if all comes that can be in common."""
    lacking = seen.shorter + seen.longer - round(float(seen.common[-1]))
    depths = np.arange(seen.longer + 1, lacking + 1)
    rising = float(np.sum((2 * depths - lacking) / depths * p**depths))
    return rising + float(p ** (lacking + 1)) / (1 - p)


def _likely_beyond(seen: _Seen, low: Array) -> float:
    """The agreement beyond the longer one's end if that at both ends goes on."""
    unseen = seen.longer - seen.shorter
    return float((seen.common[-1] + unseen * low[seen.shorter - 1]) / seen.longer)


Floats = NDArray[np.float64]
_TOP = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class TauRange:
    """Kendall's tau between the orders on both labels, among some of the runs.

    Attributes:
        name: which runs.
        runs: how many.
        tau: tau-b; `None` where undefined.
        discordant: pairs that one of the labels orders one way, and the other the other way.
        pairs: all pairs.
    """

    name: str
    runs: int
    tau: float | None
    discordant: int
    pairs: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Noise:
    """How alike the preference labels would rank runs if the same pairs were judged again.

    Attributes:
        tau: Kendall's tau-b between the ranking and that by redrawn judgments, on the same
            queries: mean of all draws.
        draws: labels drawn.
    """

    tau: float
    draws: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Both:
    """Means of runs on both labels; higher ones are better.

    Attributes:
        before: float64, shape (runs,).
        after: same shape.
    """

    before: Floats
    after: Floats


def tails(level: float) -> tuple[float, float]:
    """The quantiles that an interval of this level ends at."""
    return (1 - level) / 2, (1 + level) / 2


def find_taus(
    runs: Sequence[str],
    means: Both,
    *,
    pooled: AbstractSet[str] = frozenset(),
    apart: str = "",
) -> tuple[TauRange, ...]:
    """Tau among all runs, the best ten before, the pooled ones, and with one that stands apart.

    Args:
        runs: their names.
        means: of each run.
        pooled: runs whose first documents were in the pools.
        apart: a run in no range but one of its own: the perfect run of a comparison of labels.

    Returns:
        One for each range that is not that of all runs again.
    """
    positions = [position for position, run in enumerate(runs) if run != apart]
    ranges = {"all": positions}
    if len(positions) > _TOP:
        best = sorted(positions, key=lambda position: -means.before[position])[:_TOP]
        ranges[f"the best {_TOP} before"] = best
    inside = [position for position in positions if runs[position] in pooled]
    if 0 < len(inside) < len(positions):
        ranges["pooled"] = inside
    if len(positions) < len(runs):
        ranges[f"all and {apart}"] = list(range(len(runs)))
    return tuple(_range(name, some, means) for name, some in ranges.items())


def noise_of(after: Floats, redrawn: Floats) -> Noise | None:
    """Return how alike redrawn labels rank runs.

    Args:
        after: means of the runs, shape (runs,).
        redrawn: means on labels drawn again, shape (draws, runs).

    Returns:
        `None` where tau is defined in no draw.
    """
    taus = [tau for tau in (kendall(after, one) for one in redrawn) if tau is not None]
    if not taus:
        return None
    return Noise(tau=float(np.mean(taus)), draws=len(redrawn))


def _range(name: str, positions: Sequence[int], means: Both) -> TauRange:
    before, after = means.before[list(positions)], means.after[list(positions)]
    first, second = np.triu_indices(len(positions), k=1)
    against = np.sign(before[first] - before[second]) * np.sign(after[first] - after[second])
    return TauRange(
        name=name,
        runs=len(positions),
        tau=kendall(before, after),
        discordant=int((against < 0).sum()),
        pairs=len(first),
    )
