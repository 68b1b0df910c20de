"""What each condition takes out of a sequence of triples, while the sequence passes by.

A sequence may have hundreds of millions of triples, of which a training sees as many as it has
steps for. So nothing else is kept of it but how many triples each label has. Depths need one
pass; random samples and shares need a second one, since what they draw from is known only at the
end of the first.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from math import ceil

import numpy as np

from heldout.ids import QueryId
from heldout.survivorship.training.conditions import WHOLE, Condition
from heldout.survivorship.training.triples import (
    Label,
    Sampler,
    SelectedPlaces,
    Triple,
    TripleCounts,
    as_small_as,
    count_triples,
)

__all__ = ["ReadTriples", "Selected", "Selection", "select_triples", "share_queries"]

ReadTriples = Callable[[], Iterable[Triple]]
"""Gives the same sequence from its beginning at each call; the annotations know each positive."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """What a condition leaves.

    Attributes:
        triples: in the order of the sequence; perhaps none.
        labels: different pairs of a query and its positive among them.
        queries: different queries among them.
        missing: for a control: how many triples fewer it has than the condition it follows.
    """

    triples: tuple[Triple, ...]
    labels: int
    queries: int
    missing: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Selected:
    """What all conditions leave of a sequence.

    Attributes:
        selections: in the order in which they were asked for.
        counts: of the whole sequence.
    """

    selections: tuple[Selection, ...]
    counts: TripleCounts


@dataclass(frozen=True, slots=True, kw_only=True)
class _Drawn:
    """What is drawn at random: which triples it takes, and those that it has taken."""

    takes: Callable[[Triple], bool]
    most: int | None
    missing: int
    kept: list[Triple]


def select_triples(
    read: ReadTriples,
    places: SelectedPlaces,
    wanted: Sequence[tuple[Condition, int]],
    *,
    limit: int | None = None,
) -> Selected:
    """The triples of each condition.

    Args:
        read: the sequence; it is read once, or twice where something is drawn at random.
        places: where selected documents were shown.
        wanted: conditions, each with the seed of what is drawn at random. With one seed a larger
            share holds the smaller ones.
        limit: how many triples there are steps for; what comes later is left out. A control
            is as small as what is left of the condition it follows.
    """
    depths = {one.like or one.depth for one, _ in wanted if one.share == WHOLE}
    heads: dict[int | None, list[Triple]] = {depth: [] for depth in depths}
    per_label: Counter[Label] = Counter()
    for triple in read():
        place = places[triple.query][triple.positive]
        per_label[triple.query, triple.positive] += 1
        for depth, head in heads.items():
            if (depth is None or place <= depth) and len(head) != limit:
                head.append(triple)
    counts = TripleCounts(per_label=per_label)
    shallow = {depth: _selection(head) for depth, head in heads.items()}
    drawn = _draw(read, counts, wanted, heads, limit)
    return Selected(
        selections=tuple(drawn.get(one) or shallow[one[0].depth] for one in wanted), counts=counts
    )


def share_queries(counts: TripleCounts, share: float, *, seed: int) -> frozenset[QueryId]:
    """The queries of a random share of the labels.

    Args:
        counts: of the whole sequence.
        share: of its queries, in (0, 1]; with one seed a larger share holds the smaller ones.
        seed: of the draw.
    """
    queries = sorted({query for query, _ in counts.per_label})
    order = np.random.default_rng(seed).permutation(len(queries)).tolist()
    return frozenset(queries[index] for index in islice(order, ceil(share * len(queries))))


def _draw(
    read: ReadTriples,
    counts: TripleCounts,
    wanted: Collection[tuple[Condition, int]],
    heads: Mapping[int | None, Sequence[Triple]],
    limit: int | None,
) -> Mapping[tuple[Condition, int], Selection]:
    """All samples and shares in a pass of their own; none where nothing is drawn."""
    drawn: dict[tuple[Condition, int], _Drawn] = {}
    for condition, seed in wanted:
        if condition.like is not None:
            found = _sample(counts, count_triples(heads[condition.like]), seed)
            drawn[condition, seed] = found
        elif condition.share != WHOLE:
            queries = share_queries(counts, condition.share, seed=seed)
            drawn[condition, seed] = _Drawn(
                takes=_of_queries(queries), most=limit, missing=0, kept=[]
            )
    _fill(read, [one for one in drawn.values() if one.most != 0])
    return {key: _selection(one.kept, missing=one.missing) for key, one in drawn.items()}


def _fill(read: ReadTriples, waiting: list[_Drawn]) -> None:
    """Pass by the sequence until each has as many triples as it may have."""
    for triple in read() if waiting else ():
        for one in waiting:
            if one.takes(triple):
                one.kept.append(triple)
                if len(one.kept) == one.most:
                    waiting = [other for other in waiting if other is not one]
        if not waiting:
            break


def _sample(counts: TripleCounts, shallow: TripleCounts, seed: int) -> _Drawn:
    if not shallow.triples:
        return _Drawn(takes=lambda _: False, most=0, missing=0, kept=[])
    rng = np.random.default_rng(seed)
    sample = as_small_as(shallow, counts, rng)
    takes = Sampler(sample, rng).takes
    return _Drawn(takes=takes, most=sample.triples, missing=sample.missing, kept=[])


def _of_queries(queries: frozenset[QueryId]) -> Callable[[Triple], bool]:
    return lambda triple: triple.query in queries


def _selection(triples: Sequence[Triple], *, missing: int = 0) -> Selection:
    counts = count_triples(triples)
    return Selection(
        triples=tuple(triples), labels=counts.labels, queries=counts.queries, missing=missing
    )
