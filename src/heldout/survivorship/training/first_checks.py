"""The run that is to be re-ranked, checked before anything is trained."""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet

from heldout.errors import InputError, Problem, quote
from heldout.ids import DocId, QueryId
from heldout.rankers.run import Run

__all__ = ["check_first"]


def check_first(
    first: Run,
    *,
    documents: Mapping[DocId, str],
    queries: AbstractSet[QueryId],
    labelled: AbstractSet[str],
    path: str,
) -> int:
    """Make sure that a run can be re-ranked and scored.

    Args:
        first: the run.
        documents: text of each document of the collection.
        queries: those of the collection.
        labelled: queries that have labels.
        path: the run's file, for messages.

    Returns:
        How many labelled queries it does not answer; they score 0.

    Raises:
        InputError: codes `rerank-document` (a query of the collection has a document that the
            collection has not) and `no-common-query`.
    """
    answered = [query for query in first if query in queries]
    for query in answered:
        shown = (hit.document for hit in first[query])
        unknown = next((document for document in shown if document not in documents), None)
        if unknown is not None:
            raise InputError(
                Problem(
                    code="rerank-document",
                    path=path,
                    found=f"document {quote(unknown)} of query {quote(query)}",
                    expected="only documents of the collection",
                    hint="was the run made on this collection?",
                )
            )
    missing = labelled - {str(query) for query in answered if first[query]}
    if len(missing) == len(labelled):
        raise InputError(
            Problem(
                code="no-common-query",
                path=path,
                found="none of the collection's labelled queries",
                expected="a run of its queries",
                hint="was the run made on this collection?",
            )
        )
    return len(missing)
