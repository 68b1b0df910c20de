"""What a record of annotations lacks and another file has: types of queries, texts."""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import replace

from heldout.errors import InputError, Problem, plural
from heldout.ids import DocId
from heldout.survivorship.annotations import Annotation, Annotations
from heldout.trec.problems import show

__all__ = ["add_kinds", "add_texts", "keep_queries", "kinds_by_query"]


def kinds_by_query(groups: Mapping[str, frozenset[str]], *, path: str) -> dict[str, str]:
    """Type of each query, out of the queries of each type as `trec.groups.read_facets` has them.

    Raises:
        InputError: code `two-types`: a query of several types, the first five of them.
    """
    rows = [(query, kind) for kind, queries in groups.items() for query in queries]
    kinds = dict(rows)
    twice = [(query, kind, kinds[query]) for query, kind in rows if kinds[query] != kind]
    if twice:
        raise InputError(
            Problem(
                code="two-types",
                path=path,
                found=f"{show(query)} of type {show(one)} and of type {show(other)}",
                expected="one type for each query",
            )
            for query, one, other in sorted(twice)[:5]
        )
    return kinds


def add_kinds(annotations: Annotations, kinds: Mapping[str, str], *, path: str) -> Annotations:
    """The same with these types of queries; a query that the file lacks has no type.

    Args:
        annotations: to be completed.
        kinds: type by query; takes the place of what the source tells.
        path: where they were read, for messages.

    Raises:
        InputError: code `no-common-query`: the file has none of the queries.
    """
    if not any(record.query in kinds for record in annotations.records):
        raise _nothing_common(annotations, path)
    records = tuple(replace(one, kind=kinds.get(one.query)) for one in annotations.records)
    return replace(annotations, records=records)


def add_texts(
    annotations: Annotations,
    *,
    queries: Mapping[str, str] | None = None,
    documents: Mapping[str, str] | None = None,
    path: str,
) -> Annotations:
    """The same with texts; those that the source tells stay.

    Args:
        annotations: to be completed.
        queries: text by query; `None` where no file was named.
        documents: text by document; `None` where no file was named.
        path: where the queries were read, for messages.

    Raises:
        InputError: code `no-common-query`: the file has none of the queries.
    """
    if queries is not None and not any(one.query in queries for one in annotations.records):
        raise _nothing_common(annotations, path)
    records = tuple(_fill(one, queries or {}, documents or {}) for one in annotations.records)
    return replace(annotations, records=records)


def keep_queries(annotations: Annotations, queries: AbstractSet[str], *, path: str) -> Annotations:
    """The annotations of some queries, in their order.

    Args:
        annotations: of all.
        queries: those that are kept.
        path: where they were read, for messages.

    Raises:
        InputError: code `unknown-query`: some of them were not annotated.
    """
    records = tuple(record for record in annotations.records if record.query in queries)
    if lost := sorted(queries - {record.query for record in records}):
        some = ", ".join(map(show, lost[:5])) + (", …" if len(lost) > 5 else "")  # noqa: PLR2004 - as many as are told
        raise InputError(
            Problem(
                code="unknown-query",
                path=path,
                found=f"{plural(len(lost), 'query', 'queries')} not annotated: {some}",
                expected=f"queries of {annotations.source}",
            )
        )
    return replace(annotations, records=records)


def _fill(
    record: Annotation, queries: Mapping[str, str], documents: Mapping[str, str]
) -> Annotation:
    docs = dict.fromkeys((*record.shown, *record.selected))
    found = {DocId(doc): documents[doc] for doc in docs if doc in documents}
    text = queries.get(record.query) if record.text is None else record.text
    return replace(record, text=text, texts={**found, **record.texts})


def _nothing_common(annotations: Annotations, path: str) -> InputError:
    return InputError(
        Problem(
            code="no-common-query",
            path=path,
            found="none of the "
            + plural(len(annotations.records), "query", "queries")
            + f" of {annotations.source}",
            expected="queries that were annotated",
            hint="are the ids of both files those of the same queries?",
        )
    )
