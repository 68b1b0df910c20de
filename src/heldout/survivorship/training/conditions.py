"""What re-rankers are trained on: depths of annotation, random controls, shares of the labels.

Every condition takes its triples out of the same sequence and leaves them in order. They differ
in what is left out, in nothing else.

Source: Gupta and MacAvaney, SIGIR 2022 (survivorship-bias), section 5.1.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from math import ceil

import numpy as np

from heldout.survivorship.training.triples import (
    Places,
    Sampler,
    Triple,
    as_small_as,
    count_triples,
    shown_within,
)

__all__ = ["ALL", "Condition", "Selection", "paper_conditions", "select", "share_conditions"]

_WHOLE = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """Which triples are trained on.

    Attributes:
        depth: only those whose positive was shown at this place or above; `None` for all that
            annotators selected.
        like: instead a random sample of all, as small as with this depth.
        share: of the labelled queries, a random part of this size, in (0, 1].
    """

    depth: int | None = None
    like: int | None = None
    share: float = _WHOLE

    def __post_init__(self) -> None:
        """Refuse what is no condition."""
        sizes = [one for one in (self.depth, self.like) if one is not None]
        narrowed = len(sizes) + (self.share != _WHOLE)
        if narrowed > 1 or not 0 < self.share <= 1 or min(sizes, default=1) < 1:
            raise ValueError(self)

    @property
    def name(self) -> str:
        """What it is called in tables: `r=1`, `all`, `all, as few as r=1`, `10%`."""
        if self.depth is not None:
            return f"r={self.depth}"
        if self.like is not None:
            return f"all, as few as r={self.like}"
        return "all" if self.share == _WHOLE else f"{self.share:.12g} of all"

    @property
    def folder(self) -> str:
        """What its files are called: letters, digits, points and dashes."""
        if self.depth is not None:
            return f"r{self.depth}"
        if self.like is not None:
            return f"all-like-r{self.like}"
        return "all" if self.share == _WHOLE else f"share-{self.share:.12g}"


ALL = Condition()
"""Everything that annotators selected."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """What a condition leaves.

    Attributes:
        triples: in the order of the sequence, at least one.
        labels: different pairs of a query and its positive among them.
        queries: different queries among them.
        missing: for a control: how many triples fewer it has than the condition it follows.
    """

    triples: tuple[Triple, ...]
    labels: int
    queries: int
    missing: int = 0


def paper_conditions(depths: Sequence[int], *, controls: Sequence[int]) -> tuple[Condition, ...]:
    """The depths in rising order, all, and the controls.

    Args:
        depths: places from 1.
        controls: depths whose size a random sample is to have.
    """
    return (
        *(Condition(depth=depth) for depth in sorted(set(depths))),
        ALL,
        *(Condition(like=depth) for depth in sorted(set(controls))),
    )


def share_conditions(shares: Sequence[float]) -> tuple[Condition, ...]:
    """A condition for each share of the labelled queries, in rising order."""
    return tuple(Condition(share=share) for share in sorted(set(shares)))


def select(
    sequence: Sequence[Triple],
    places: Places,
    condition: Condition,
    *,
    seed: int,
    limit: int | None = None,
) -> Selection:
    """The triples of a condition.

    Args:
        sequence: all triples, whose positives the annotations know.
        places: where selected documents were shown.
        condition: which of them.
        seed: of what is drawn at random. With one seed a larger share holds the smaller ones.
        limit: how many triples there are steps for; what comes later is left out. A control
            is as small as what is left of the condition it follows.

    Returns:
        Something to train on, or no triple at all.
    """
    rng = np.random.default_rng(seed)
    if condition.like is not None:
        shallow = _within(sequence, places, condition.like)[:limit]
        return _sample(sequence, shallow, rng) if shallow else _counted(())
    if condition.depth is not None:
        return _counted(_within(sequence, places, condition.depth)[:limit])
    if condition.share == _WHOLE:
        return _counted(tuple(sequence[:limit]))
    return _counted(_share(sequence, condition.share, rng)[:limit])


def _within(sequence: Sequence[Triple], places: Places, depth: int) -> tuple[Triple, ...]:
    return tuple(triple for triple in sequence if shown_within(places, depth, triple))


def _sample(
    sequence: Sequence[Triple], shallow: Sequence[Triple], rng: np.random.Generator
) -> Selection:
    sample = as_small_as(count_triples(shallow), count_triples(sequence), rng)
    sampler = Sampler(sample, rng)
    return _counted(tuple(filter(sampler.takes, sequence)), missing=sample.missing)


def _share(
    sequence: Sequence[Triple], share: float, rng: np.random.Generator
) -> tuple[Triple, ...]:
    queries = sorted({triple.query for triple in sequence})
    order = rng.permutation(len(queries)).tolist()
    chosen = {queries[index] for index in islice(order, ceil(share * len(queries)))}
    return tuple(triple for triple in sequence if triple.query in chosen)


def _counted(triples: tuple[Triple, ...], *, missing: int = 0) -> Selection:
    counts = count_triples(triples)
    return Selection(triples=triples, labels=counts.labels, queries=counts.queries, missing=missing)
