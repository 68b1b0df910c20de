"""Labels beside a collection and a run: do they fit, and where do the relevant documents stand?

Labels that annotators chose from one system's top results leave out what that system missed
(survivorship-bias-2022), and any comparison on them favours it. A run's own places of the labels
are a hint of that: no relevant document stands where nobody looked.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from itertools import islice

from heldout.errors import InputError, Problem
from heldout.ids import DocId, QueryId, find_near, say_near
from heldout.rankers.run import Run, Task

__all__ = ["TOP", "FittedLabels", "LabelPlaces", "Labels", "find_places", "fit_labels"]

Labels = Mapping[QueryId, Mapping[DocId, int]]
"""Grade by query and document."""


TOP = 10
"""Places in which a document counts as found, and labels as standing at a run's top."""

_AT_TOP = 0.9
_FEWEST_LABELS = 20
_MOST_COMPARED = 200_000


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedLabels:
    """Labels of the queries that are asked.

    Attributes:
        labels: at least one query.
        unasked: labelled queries that are not asked.
        unknown: relevant documents of asked queries that the collection does not have.
        near: which of the unknown documents, and which labelled queries, would match if both
            files wrote their ids alike; "" where none would.
    """

    labels: Labels
    unasked: int
    unknown: int
    near: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelPlaces:
    """Where a run puts the relevant documents.

    Attributes:
        top: within the first `TOP`.
        below: further down.
        missed: not in the run.
    """

    top: int
    below: int
    missed: int

    @property
    def labels(self) -> int:
        """All of them."""
        return self.top + self.below + self.missed

    @property
    def at_top(self) -> bool:
        """Whether nine of ten stand at the top, as where annotators saw nothing else."""
        return self.labels >= _FEWEST_LABELS and self.top >= _AT_TOP * self.labels


def fit_labels(labels: Labels, task: Task) -> FittedLabels:
    """Keep the labels of the queries that are asked.

    Raises:
        InputError: code `labels-match-nothing`: no labelled query is asked, or the collection has
            no document that a label calls relevant.
    """
    asked = {query: grades for query, grades in labels.items() if query in task.queries and grades}
    if not asked:
        raise _mismatch(labels, task.queries, "query", "queries")
    relevant = {
        document: grade
        for grades in asked.values()
        for document, grade in grades.items()
        if grade > 0
    }
    if relevant and not task.documents.keys() & relevant.keys():
        raise _mismatch(relevant, task.documents, "document", "documents")
    unknown = [
        document
        for grades in asked.values()
        for document, grade in grades.items()
        if grade > 0 and document not in task.documents
    ]
    near = (_say_near(set(unknown), task.documents), _say_near(labels, task.queries))
    return FittedLabels(
        labels=asked,
        unasked=len(labels) - len(asked),
        unknown=len(unknown),
        near="; ".join(filter(None, near)),
    )


def _say_near(labelled: Iterable[str], known: Collection[str]) -> str:
    """What would match under another spelling; not looked for in millions of documents."""
    lost = [name for name in labelled if name not in known]
    return say_near(find_near(lost, islice(known, _MOST_COMPARED))) if lost else ""


def find_places(run: Run, labels: Labels) -> LabelPlaces:
    """Count where a run puts the relevant documents of labelled queries."""
    top = below = labelled = 0
    for query, grades in labels.items():
        relevant = [grades.get(hit.document, 0) > 0 for hit in run.get(query, ())]
        top += sum(relevant[:TOP])
        below += sum(relevant[TOP:])
        labelled += sum(grade > 0 for grade in grades.values())
    return LabelPlaces(top=top, below=below, missed=labelled - top - below)


def _mismatch(
    labelled: Collection[str],
    known: Collection[str],
    one: str,
    many: str,
) -> InputError:
    first, other = next(iter(labelled), ""), next(iter(known), "")
    return InputError(
        Problem(
            code="labels-match-nothing",
            path="labels",
            found=f"{len(labelled):,} {many} in the labels, such as {first[:40]!r}, and none of "
            "them in the collection",
            expected=f"ids of the collection, such as {other[:40]!r}",
            hint=_say_near(labelled, known)
            or f"labels and collection number their {many} differently, or belong to another "
            f"{one} set",
        )
    )
