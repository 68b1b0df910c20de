"""A file of triples divided into what each condition leaves, as it passes by.

The depths are written in one pass; a random sample needs a second one, since how large it has to
be is known only at the end of the first.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from heldout.errors import InputError, Problem
from heldout.survivorship.training.conditions import Condition
from heldout.survivorship.training.triple_files import write_triples
from heldout.survivorship.training.triples import (
    Label,
    Sample,
    Sampler,
    SelectedPlaces,
    Triple,
    TripleCounts,
    as_small_as,
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
        missing_labels: for a sample: how many labels.
    """

    condition: Condition
    path: Path
    counts: TripleCounts
    dropped: int
    missing: int = 0
    missing_labels: int = 0


def filter_triples(
    read: Callable[[], Iterator[Triple]],
    places: SelectedPlaces,
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
    per_label: Counter[Label] = Counter()
    with ExitStack() as files:
        writers = [(one.depth, files.enter_context(write_triples(name_of(one)))) for one in depths]
        for triple in read():
            place = places[triple.query][triple.positive]
            per_label[triple.query, triple.positive] += 1
            for depth, write in writers:
                if depth is None or place <= depth:
                    write(triple)
        counted = _Counted(per_label, places)
        for condition in conditions:
            counted.of(condition.like or condition.depth)
    samples = _write_samples(read, counted, conditions, name_of=name_of, seed=seed)
    whole = counted.of(None).triples
    return tuple(
        samples.get(one)
        or Written(
            condition=one,
            path=name_of(one),
            counts=counted.of(one.depth),
            dropped=whole - counted.of(one.depth).triples,
        )
        for one in conditions
    )


class _Counted:
    """How much each depth has: what a triple's place is depends on its label alone."""

    def __init__(self, per_label: Mapping[Label, int], places: SelectedPlaces) -> None:
        self._per_label = per_label
        self._places = places

    def of(self, depth: int | None) -> TripleCounts:
        """Of one depth.

        Raises:
            InputError: code `no-triples`.
        """
        found = TripleCounts(
            per_label={
                label: count
                for label, count in self._per_label.items()
                if depth is None or self._places[label[0]][label[1]] <= depth
            }
        )
        if not found.triples:
            raise InputError(
                Problem(
                    code="no-triples",
                    path="triples",
                    found=f"no triple for {Condition(depth=depth).name}",
                    expected="at least one for each condition",
                )
            )
        return found


def _write_samples(
    read: Callable[[], Iterator[Triple]],
    counted: _Counted,
    conditions: Sequence[Condition],
    *,
    name_of: Callable[[Condition], Path],
    seed: int,
) -> Mapping[Condition, Written]:
    """All samples in a pass of their own; none where none is asked for."""
    whole = counted.of(None)
    drawn: dict[Condition, tuple[Sample, Sampler]] = {}
    for one in conditions:
        if one.like is not None:
            rng = np.random.default_rng(seed)
            sample = as_small_as(counted.of(one.like), whole, rng)
            drawn[one] = sample, Sampler(sample, rng)
    per_label: dict[Condition, Counter[Label]] = {one: Counter() for one in drawn}
    with ExitStack() as files:
        writers = {one: files.enter_context(write_triples(name_of(one))) for one in drawn}
        for triple in read() if drawn else ():
            for one, (_, sampler) in drawn.items():
                if sampler.takes(triple):
                    per_label[one][triple.query, triple.positive] += 1
                    writers[one](triple)
    return {
        one: Written(
            condition=one,
            path=name_of(one),
            counts=TripleCounts(per_label=per_label[one]),
            dropped=whole.triples - sample.triples,
            missing=sample.missing,
            missing_labels=sample.missing_labels,
        )
        for one, (sample, _) in drawn.items()
    }
