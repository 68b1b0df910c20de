"""Where one run and the labels agree: category A, its first document is the known answer, or B.

Each query gives one pair: in A the known answer against the second document, in B against the
first (shallow-pooling, section 3.1, tables 1 and 2).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from heldout.trec.tops import Tops

__all__ = ["Category", "Split", "split_queries"]

Category = Literal["A", "B"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """A query's category and pair.

    Attributes:
        query: its id.
        category: `A`: the run puts the known answer first; `B`: another document.
        known: the known answer.
        other: the document that it is compared with.
    """

    query: str
    category: Category
    known: str
    other: str


def split_queries(
    tops: Tops, known: Mapping[str, Sequence[str]], *, queries: Iterable[str]
) -> tuple[Split, ...]:
    """Split queries by whether a run agrees with their labels.

    Args:
        tops: the run's first two documents of each query.
        known: query -> relevant documents in the order of their file; of several the first is
            taken, whatever the run says.
        queries: in this order.

    Returns:
        One for each query that has a known answer, and a document to compare it with: those the
        run does not answer, or answers with the known answer alone, are left out.
    """
    found = []
    for query in queries:
        documents, labels = tops.get(query, ()), known.get(query, ())
        if not documents or not labels:
            continue
        category: Category = "A" if documents[0] == labels[0] else "B"
        compared = documents[1:2] if category == "A" else documents[:1]
        found += [
            Split(query=query, category=category, known=labels[0], other=other)
            for other in compared
        ]
    return tuple(found)
