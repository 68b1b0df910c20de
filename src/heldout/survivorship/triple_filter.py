"""A file of triples divided into what each condition leaves, as it passes by.

The depths are written in one pass; a random sample needs a second one, since how large it has to
be is known only at the end of the first.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from heldout.errors import InputError, Problem
from heldout.ids import DocId, QueryId
from heldout.survivorship.conditions import Condition
from heldout.survivorship.triple_files import write_triples
from heldout.survivorship.triples import (
    Places,
    Triple,
    TripleCounts,
    as_small_as,
    draw_sample,
    shown_within,
)

__all__ = ["Written", "filter_triples"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """A file of triples that was written.

    Attributes:
        condition: what it has.
        path: the file.
        counts: how much there is in it.
        dropped: triples that the condition left out.
        missing: for a sample: how many triples it has too few.
    """

    condition: Condition
    path: Path
    counts: TripleCounts
    dropped: int
    missing: int = 0


def filter_triples(
    read: Callable[[], Iterator[Triple]],
    places: Places,
    conditions: Sequence[Condition],
    *,
    name_of: Callable[[Condition], Path],
    seed: int,
) -> tuple[Written, ...]:
    """Write the triples of each condition, in their order.

    Args:
        read: gives the same sequence at each call; the annotations know each positive.
        places: where selected documents were shown.
        conditions: depths, all, or samples as small as a depth; without shares.
        name_of: the file of each; a name in `.gz` or `.bz2` compresses it.
        seed: of the samples.

    Returns:
        What was written, in the order of the conditions.

    Raises:
        InputError: code `no-triples`: a depth leaves none; nothing is written then.
        OSError: a file cannot be written; files of these names that were there are kept, unless
            the failure came between two of them.
    """
    depths = [one for one in conditions if one.like is None]
    followed = [Condition(depth=one.like) for one in conditions if one.like is not None]
    tallies = {one: _Tally() for one in [*depths, *followed, Condition()]}
    with ExitStack() as files:
        writers = {one: files.enter_context(write_triples(name_of(one))) for one in depths}
        for triple in read():
            for condition, tally in tallies.items():
                if shown_within(places, condition.depth, triple):
                    tally.add(triple)
                    if condition in writers:
                        writers[condition](triple)
        counts = {condition: tally.counts() for condition, tally in tallies.items()}
        _check(counts)
    whole = counts[Condition()]
    return tuple(
        _written_sample(read, one, counts, name_of(one), np.random.default_rng(seed))
        if one.like is not None
        else Written(
            condition=one,
            path=name_of(one),
            counts=counts[one],
            dropped=whole.triples - counts[one].triples,
        )
        for one in conditions
    )


class _Tally:
    """Counts what passes by."""

    def __init__(self) -> None:
        self._per_query: Counter[QueryId] = Counter()
        self._labels: set[tuple[QueryId, DocId]] = set()

    def add(self, triple: Triple) -> None:
        self._per_query[triple.query] += 1
        self._labels.add(triple[:2])

    def counts(self) -> TripleCounts:
        return TripleCounts(
            triples=self._per_query.total(),
            labels=len(self._labels),
            per_query=dict(self._per_query),
        )


def _written_sample(
    read: Callable[[], Iterator[Triple]],
    condition: Condition,
    counts: dict[Condition, TripleCounts],
    path: Path,
    rng: np.random.Generator,
) -> Written:
    whole = counts[Condition()]
    sample = as_small_as(counts[Condition(depth=condition.like)], whole, rng)
    tally = _Tally()
    with write_triples(path) as write:
        for triple in draw_sample(read(), sample, rng):
            tally.add(triple)
            write(triple)
    return Written(
        condition=condition,
        path=path,
        counts=tally.counts(),
        dropped=whole.triples - tally.counts().triples,
        missing=sample.missing,
    )


def _check(counts: dict[Condition, TripleCounts]) -> None:
    for condition, found in counts.items():
        if not found.triples:
            raise InputError(
                Problem(
                    code="no-triples",
                    path="triples",
                    found=f"no triple for {condition.name}",
                    expected="at least one for each condition",
                )
            )
