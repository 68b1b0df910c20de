"""Scores of runs on the labels that a shallower annotation would have left.

At depth k only what was selected among the first k documents shown is a label, and a query without
one drops out. Queries are counted from the labels: one that a run does not answer scores 0 and
counts. (Table 4 of the paper has 5 to 36 queries fewer than its own labels; it seems to leave out
what its runs do not answer.) The order in which annotators saw documents is scored as a system too.

Source: Gupta and MacAvaney 2022, §4.1.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from heldout.errors import InputError, plural
from heldout.ids import DocId, QueryId
from heldout.judging.labels.rescoring import score_each
from heldout.scoring.measures import Measure
from heldout.survivorship.annotations import Annotation, Annotations
from heldout.trec.tops import Places


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DepthScores:
    """Scores of runs at each depth.

    Attributes:
        systems: names of the runs.
        depths: rising; the last one has all labels.
        open_ended: whether the last depth means "this deep or deeper".
        measure: what was computed.
        queries: those with a label at the last depth.
        values: float64, shape (systems, queries, depths); 0 where not `known`.
        known: bool, shape (queries, depths): whether the query has a label at this depth.
        unanswered: int64, shape (systems, depths): queries with a label that the run does not
            answer; each scores 0.
    """

    systems: tuple[str, ...]
    depths: tuple[int, ...]
    open_ended: bool
    measure: Measure
    queries: tuple[str, ...]
    values: NDArray[np.float64]
    known: NDArray[np.bool_]
    unanswered: NDArray[np.int64]

    @property
    def counts(self) -> tuple[int, ...]:
        """Queries with a label at each depth (NumQ)."""
        return tuple(self.known.sum(axis=0).tolist())

    @property
    def names(self) -> tuple[str, ...]:
        """The depths as they are written: `1`, `2`, `10+`."""
        last = f"{self.depths[-1]}{'+' if self.open_ended else ''}"
        return (*map(str, self.depths[:-1]), last)

    def scores(self, system: int, depth: int) -> NDArray[np.float64]:
        """Scores of a system on the queries with a label, by the places of both in the tables."""
        found: NDArray[np.float64] = self.values[system, self.known[:, depth], depth]
        return found

    def means(self) -> tuple[tuple[float | None, ...], ...]:
        """A row for each depth with the mean of each system; `None` where no query has a label."""
        return tuple(
            tuple(_mean(self.scores(system, depth)) for system in range(len(self.systems)))
            for depth in range(len(self.depths))
        )


def score_depths(
    annotations: Annotations,
    runs: Mapping[str, Places],
    measure: Measure,
    *,
    first_only: bool = False,
) -> DepthScores:
    """Score runs on the labels of every depth from 1 to the last.

    Equal labels of a query are measured once.

    Args:
        annotations: with at least one selected document.
        runs: by name, where each lists the selected documents.
        measure: what is computed.
        first_only: of each query the first selected document alone is a label; then a deeper
            annotation adds queries, and no label to the queries there are.

    Raises:
        InputError: code `no-survivor`: no query has a selected document; as `score_each`: code
            `missing-scores` where the measure has no value.

    Source: Gupta and MacAvaney 2022, §4.1; `first_only` is the control of its footnote 6.
    """
    survivors = [record for record in annotations.records if record.selected]
    if not survivors:
        raise InputError.of(
            "no-survivor",
            annotations.source,
            found=f"{plural(len(annotations.records), 'query', 'queries')}, and no document "
            "selected for any",
            expected="at least one query with a selected document",
        )
    depths = tuple(range(1, annotations.depth + 1))
    queries = tuple(record.query for record in survivors)
    first = np.array([record.first for record in survivors], np.int64)
    known = first[:, np.newaxis] <= np.array(depths)
    labels = [_sets(record, depths, first_only=first_only) for record in survivors]
    # A query without a label yet is measured on all of its labels, and not looked at
    filled = [[one or sets[-1] for one in sets] for sets in labels]
    values = score_each(runs, filled, measure, queries=queries) * known
    missing = np.array(
        [[query not in places.found for query in queries] for places in runs.values()]
    )
    return DepthScores(
        systems=tuple(runs),
        depths=depths,
        open_ended=annotations.open_ended,
        measure=measure,
        queries=queries,
        values=values,
        known=known,
        unanswered=missing.astype(np.int64) @ known.astype(np.int64),
    )


def pick_depths(scores: DepthScores, depths: Sequence[int]) -> DepthScores:
    """Some of the depths, and the last, which has all labels.

    Args:
        scores: at each depth.
        depths: those that are wanted.

    Raises:
        InputError: code `depth-beyond-list`: annotators did not look so deep.
    """
    beyond = [depth for depth in depths if depth not in scores.depths]
    if beyond:
        raise InputError.of(
            "depth-beyond-list",
            "--depth",
            found=f"depth {beyond[0]}",
            expected=f"a depth from 1 to {scores.depths[-1]}",
            hint="deeper than annotators looked there are no labels",
        )
    wanted = sorted({*depths, scores.depths[-1]})
    places = [scores.depths.index(depth) for depth in wanted]
    return replace(
        scores,
        depths=tuple(wanted),
        values=scores.values[:, :, places],
        known=scores.known[:, places],
        unanswered=scores.unanswered[:, places],
    )


def _sets(
    record: Annotation, depths: Sequence[int], *, first_only: bool
) -> list[Mapping[str, int]]:
    """The labels at each depth; the same dict at depths that have the same labels."""
    ordered = sorted(record.selected.items(), key=lambda item: item[1])
    sets: list[Mapping[str, int]] = []
    for depth in depths:
        docs = [doc for doc, place in ordered if place <= depth]
        docs = docs[:1] if first_only else docs
        grades: Mapping[str, int] = dict.fromkeys(docs, 1)
        sets.append(sets[-1] if sets and len(sets[-1]) == len(docs) else grades)
    return sets


def _mean(values: NDArray[np.float64]) -> float | None:
    return math.fsum(values.tolist()) / len(values) if len(values) else None


SHOWN = "shown"
"""The name of this system."""

SHOWN_IS_FAVOURED = (
    "the order that annotators saw: a ranking only if a system made it, and favoured by labels "
    "that were chosen from it; at depth 1 it is perfect by construction"
)
"""What is said wherever it is scored."""


def shown_documents(annotations: Annotations) -> Mapping[QueryId, tuple[DocId, ...]]:
    """Return what was shown for each query, best first.

    That annotators saw documents in this order says nothing of what the order means: it is a
    ranking only where a system ranked them, and nobody mixed them.

    Args:
        annotations: of a source that says what was shown.

    Raises:
        InputError: code `no-shown`: the source says only what was selected.
    """
    shown = {record.query: record.shown for record in annotations.records if record.shown}
    if not shown:
        raise InputError.of(
            "no-shown",
            annotations.source,
            found=f"{plural(len(annotations.records), 'query', 'queries')}, and what was shown "
            "for none",
            expected="a source that says what was shown, or run files",
            hint="--runs 'GLOB'",
        )
    return shown


def shown_places(annotations: Annotations) -> Places:
    """Return where the order shown has what was selected.

    Args:
        annotations: as in `shown_documents`.

    Raises:
        InputError: as `shown_documents`.
    """
    shown = shown_documents(annotations)
    selected = {record.query: record.selected for record in annotations.records}
    return Places(
        found={
            query: {doc: at for at, doc in enumerate(docs, 1) if doc in selected[query]}
            for query, docs in shown.items()
        },
        retrieved={query: len(docs) for query, docs in shown.items()},
    )
