"""Triples that pass by, checked: labels that nobody knows, ids without a text."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice

from heldout.errors import InputError, Problem
from heldout.ids import DocId, QueryId
from heldout.survivorship.training.triple_files import PlacedTriple
from heldout.survivorship.training.triples import SelectedPlaces, Triple, shown_within
from heldout.trec.problems import show

__all__ = ["Unknown", "known_triples", "triples_with_texts"]

_MOST = 20


@dataclass(slots=True)
class Unknown:
    """Triples whose positive the annotations do not know, counted while they pass by.

    Attributes:
        triples: how many.
        first: the first of them with its line, `None` where there is none.
    """

    triples: int = 0
    first: PlacedTriple | None = field(default=None)


def known_triples(
    rows: Iterable[PlacedTriple], places: SelectedPlaces, *, path: str, unknown: Unknown | None
) -> Iterator[Triple]:
    """The triples whose positive the annotations know, in their order.

    Args:
        rows: triples with their lines.
        places: where selected documents were shown.
        path: the file of the triples, for messages.
        unknown: counts the others, which are passed over; `None` where there may be none.

    Raises:
        InputError: code `unknown-positive`, at the first of them, where there may be none.
    """
    for row in rows:
        if shown_within(places, None, row.triple) is not None:
            yield row.triple
        elif unknown is None:
            raise InputError(_unknown(row, places, path))
        else:
            unknown.triples += 1
            unknown.first = unknown.first or row


def triples_with_texts(
    triples: Iterable[Triple],
    queries: Mapping[QueryId, str],
    documents: Mapping[DocId, str],
    *,
    path: str,
) -> Iterator[Triple]:
    """The triples, each of whose ids has a text, in their order.

    Args:
        triples: in any number.
        queries: texts of queries.
        documents: texts of documents.
        path: where the triples come from, for messages.

    Raises:
        InputError: code `triple-without-text`, with up to twenty ids: behind the twentieth, or at
            the end.
    """
    missing: dict[tuple[str, str], None] = {}
    for triple in triples:
        query, positive, negative = triple
        if query in queries and positive in documents and negative in documents:
            yield triple
            continue
        missing |= {("query", query): None} if query not in queries else {}
        missing |= {("document", one): None for one in (positive, negative) if one not in documents}
        if len(missing) >= _MOST:
            break
    if missing:
        raise InputError(
            [
                Problem(
                    code="triple-without-text",
                    path=path,
                    found=f"no text of {kind} {show(identity)}",
                    expected="triples of the collection's queries and documents",
                )
                for kind, identity in islice(missing, _MOST)
            ]
        )


def _unknown(row: PlacedTriple, places: SelectedPlaces, path: str) -> Problem:
    triple = row.triple
    known = triple.query in places
    found = f"positive {show(triple.positive)} of query {show(triple.query)}"
    return Problem(
        code="unknown-positive",
        path=path,
        line=row.line,
        found=f"{found}, which annotators did not select"
        if known
        else f"{found}, a query without labels in the annotations",
        expected="positives that the annotations tell the place of",
        hint="are both of the same collection? --skip-unknown leaves such triples out",
    )
