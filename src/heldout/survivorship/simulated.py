"""Annotators simulated: they see the first documents of one system, and select what is relevant.

Source: survivorship-bias, section 4.1, where labels that exist stand for what people would choose.
"""

from collections.abc import Mapping

from heldout.errors import InputError, Problem, plural
from heldout.ids import DocId, QueryId
from heldout.survivorship.annotations import Annotation, Annotations
from heldout.trec.tops import Tops

__all__ = ["simulate_annotations"]


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
