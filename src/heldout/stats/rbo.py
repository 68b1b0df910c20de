"""Rank-biased overlap of two rankings that may have ties and different lengths.

The agreement of two rankings at depth d is the overlap of their first d items; the overlap weighs
depth d by p^(d-1), so the top counts most and the rest of the rankings, which nobody has seen, can
be bounded. Ties are dealt with in three ways (`RboTies`).

Source: Corsi and Urbano 2024, The treatment of ties in rank-biased overlap; Webber, Moffat and
Zobel 2010, A similarity measure for indefinite rankings.
"""

import math
from collections.abc import Collection, Hashable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from heldout.errors import InputError, quote
from heldout.stats.checks import problem_of

__all__ = ["Rbo", "RboTies", "rank_biased_overlap"]

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
    """How far two rankings overlap, the top first.

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
        raise InputError(
            problem_of("bad-persistence", "p", quote(p), "a number above 0 and below 1")
        )
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
    for place, group in enumerate(ranking, start=1):
        if isinstance(group, str) or not group:
            found = f"{quote(group)} in place {place}"
        repeated = seen.intersection(group)
        if repeated or len(set(group)) < len(group):
            found = f"an item of place {place} twice"
        seen.update(group)
    if found or not seen:
        expected = "groups of at least one item, each item once"
        raise InputError(problem_of("bad-ranking", name, found or "no item", expected))


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
    places = {item: place for place, (item,) in enumerate(first)}
    common = np.zeros(depth)
    for place, (item,) in enumerate(second):
        if item in places:
            common[max(place, places[item])] += 1
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
    """What a ranking's agreement is divided by at each depth; beyond its end, the depth."""
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


def _open_places(seen: _Seen) -> NDArray[np.int64]:
    """How many items of the shorter ranking are unseen at each depth."""
    return np.maximum(np.arange(1, seen.longer + 1) - seen.shorter, 0)


def _most_unseen(seen: _Seen) -> Array:
    """The most overlap that unseen items can add: one for each, from the longer one's top."""
    opened = _open_places(seen)
    sums = np.concatenate([np.zeros((1, seen.longer)), np.cumsum(seen.lone, axis=0)])
    most: Array = sums[opened, np.arange(seen.longer)]
    return most


def _likely_unseen(seen: _Seen, low: Array) -> Array:
    """The overlap that unseen items add where the agreement at the shorter one's end goes on."""
    opened = _open_places(seen)
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
