"""Annotators simulated: they see the first documents of one system, and select what is relevant.

Source: survivorship-bias, section 4.1, where labels that exist stand for what people would choose.
"""

from collections.abc import Mapping
from dataclasses import replace

from heldout.errors import InputError, Problem, plural
from heldout.ids import DocId, QueryId
from heldout.survivorship.annotations import Annotation, Annotations
from heldout.trec.tops import Tops

__all__ = ["select_anew", "simulate_annotations"]


def simulate_annotations(
    shown: Tops, labels: Mapping[str, Mapping[str, int]], *, depth: int, source: str
) -> Annotations:
    """What would have become of each query that has labels.

    Args:
        shown: query -> first documents of the system, best first; a query it does not answer is
            shown nothing, and discarded.
        labels: query -> document -> grade; above 0 is relevant.
        depth: documents that annotators see, >= 1.
        source: what this was made of, for messages and records.

    Returns:
        The queries in the order of `labels`; those without a relevant document have no record,
        since nobody could have selected one.

    Raises:
        InputError: code `no-common-query`: no query with a relevant document has a document shown;
            `depth-beyond-list`: no query has as many documents as annotators are to see.
    """
    answers = {
        query: {doc for doc, grade in grades.items() if grade > 0}
        for query, grades in labels.items()
    }
    answerable = {query: docs for query, docs in answers.items() if docs}
    _check(shown, answerable, depth, source)
    records = []
    for query, docs in answerable.items():
        seen = tuple(map(DocId, shown.get(query, ())[:depth]))
        places = {doc: place for place, doc in enumerate(seen, 1) if doc in docs}
        records.append(Annotation(query=QueryId(query), shown=seen, selected=places))
    return Annotations(
        source=source, records=tuple(records), depth=depth, open_ended=False, counts_discarded=True
    )


def select_anew(
    annotations: Annotations, labels: Mapping[str, Mapping[str, int]], *, path: str
) -> Annotations:
    """The same passages shown to annotators who select what these labels call relevant.

    Args:
        annotations: that tell what was shown.
        labels: query -> document -> grade; above 0 is relevant.
        path: where they were read, for messages.

    Returns:
        The queries that have labels, in the order of `annotations`. Notes are `unlabelled-query`
        and `label-not-shown`.

    Raises:
        InputError: code `no-common-query`: none has labels; `nothing-shown`: the annotations tell
            only what was selected.
    """
    if not any(record.shown for record in annotations.records):
        raise InputError(
            Problem(
                code="nothing-shown",
                path=annotations.source,
                found="annotations that tell what was selected, and not what was shown",
                expected="the passages shown, for other labels to select from",
            )
        )
    records = [
        _select(one, labels[one.query]) for one in annotations.records if one.query in labels
    ]
    if not records:
        raise InputError(
            Problem(
                code="no-common-query",
                path=path,
                found=f"labels of {plural(len(labels), 'query', 'queries')}, none of which was "
                "annotated",
                expected="labels of annotated queries",
                hint="are the ids of both files those of the same queries?",
            )
        )
    relevant = sum(grade > 0 for one in records for grade in labels[one.query].values())
    lost = relevant - sum(len(one.selected) for one in records)
    left = len(annotations.records) - len(records)
    notes = [
        _note(path, "unlabelled-query", f"no label for {plural(left, 'query', 'queries')} shown"),
        _note(path, "label-not-shown", f"{plural(lost, 'relevant document')} not shown"),
    ]
    told = [note for note, count in zip(notes, (left, lost), strict=True) if count]
    return replace(
        annotations,
        source=f"{annotations.source}, with {path}",
        records=tuple(records),
        counts_discarded=True,
        notes=(*annotations.notes, *told),
    )


def _select(record: Annotation, grades: Mapping[str, int]) -> Annotation:
    places = {doc: at for at, doc in enumerate(record.shown, 1) if grades.get(doc, 0) > 0}
    return replace(record, selected=places)


def _note(path: str, code: str, found: str) -> Problem:
    return Problem(
        code=code,
        path=path,
        found=found,
        expected="labels of what was shown",
        hint="these were left out",
        severity="note",
    )


def _check(shown: Tops, answers: Mapping[str, object], depth: int, source: str) -> None:
    lengths = [len(shown[query]) for query in answers if shown.get(query)]
    if not lengths:
        raise InputError(
            Problem(
                code="no-common-query",
                path=source,
                found=f"{plural(len(answers), 'query', 'queries')} with relevant documents, none "
                "of which the run answers",
                expected="queries with documents shown",
                hint="are the ids of both files those of the same queries?",
            )
        )
    if max(lengths) < depth:
        raise InputError(
            Problem(
                code="depth-beyond-list",
                path=source,
                found=f"annotators are to see {plural(depth, 'document')}, and the longest list "
                f"has {max(lengths)}",
                expected=f"a depth of 1 to {max(lengths)}",
            )
        )
