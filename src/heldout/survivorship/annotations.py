"""What annotators were shown, in which order, and what they selected.

Labels that were made from the top few results of one system discard the queries on which it
fails. Everything in this package starts from a record of that: which documents an annotator
saw for a query, and at which position those stood that were taken for an answer.

Source: Gupta and MacAvaney 2022, §2 and 4.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from heldout.errors import InputError, Problem, plural
from heldout.ids import DocId, QueryId


@dataclass(frozen=True, slots=True, kw_only=True)
class Annotation:
    """What became of one query.

    Attributes:
        query: its id.
        text: its words; `None` where the source has none.
        kind: its type as the source names it (`DESCRIPTION`), `None` where it names none.
        shown: ids in the order shown, the first at place 1; empty where the source says only
            what was selected, and where.
        selected: document -> place at which it was shown, from 1; empty: the query was
            discarded. Where `shown` is known, every selected document stands there; its place is
            greater than there only where a document before it was shown twice.
        texts: document -> passage, for as many as the source has.
    """

    query: QueryId
    text: str | None = None
    kind: str | None = None
    shown: tuple[DocId, ...] = ()
    selected: Mapping[DocId, int] = field(default_factory=dict)
    texts: Mapping[DocId, str] = field(default_factory=dict)

    @property
    def first(self) -> int | None:
        """Place of the first selected document; `None` for a discarded query."""
        return min(self.selected.values(), default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Annotations:
    """The annotations of a collection.

    Attributes:
        source: where they were read, for messages and records.
        records: one for each query, discarded ones among them, in the order of the source.
        depth: deepest position that the source distinguishes, >= 1. A document selected at
            `depth` or, where `open_ended`, anywhere below it has this place.
        open_ended: whether `depth` stands for "this deep or deeper".
        counts_discarded: whether discarded queries are among `records`; some sources leave
            them out.
        by_text: whether documents are known by their text alone, for a collection to name.
        notes: how it was read, where that is worth reporting; one of each code.
    """

    source: str
    records: Sequence[Annotation]
    depth: int
    open_ended: bool = False
    counts_discarded: bool = True
    by_text: bool = False
    notes: tuple[Problem, ...] = ()

    def __repr__(self) -> str:
        queries = plural(len(self.records), "query", "queries")
        depth = f"{self.depth}{'+' if self.open_ended else ''}"
        return f"<Annotations: {queries} to depth {depth}, {self.survived:,} with a label>"

    @property
    def survived(self) -> int:
        """Queries with a selected document."""
        return sum(bool(record.selected) for record in self.records)

    @property
    def discarded(self) -> int | None:
        """Queries without one; `None` where the source leaves them out."""
        return len(self.records) - self.survived if self.counts_discarded else None


def labels_at(annotations: Annotations, depth: int | None = None) -> dict[str, dict[str, int]]:
    """The labels that an annotation of some depth would have left.

    Args:
        annotations: what was selected, and at which place.
        depth: documents that annotators see; `None` for all that they saw.

    Returns:
        Query -> selected document -> 1; queries without one are left out.
    """
    chosen = {
        record.query: {
            str(doc): 1 for doc, at in record.selected.items() if depth is None or at <= depth
        }
        for record in annotations.records
    }
    return {str(query): docs for query, docs in chosen.items() if docs}


def discarded_records(annotations: Annotations) -> list[Annotation]:
    """The queries without a selected document.

    Raises:
        InputError: code `no-discarded`: the source leaves them out.
    """
    if not annotations.counts_discarded:
        raise InputError.of("no-discarded", annotations.source)
    return [record for record in annotations.records if not record.selected]
