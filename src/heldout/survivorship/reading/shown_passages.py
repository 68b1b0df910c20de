"""Passages as assessors saw them, one query a line: `query_id`, `query` and ranked `passages`.

Each passage has `rank`, `passage_id`, `passage_text` and `msmarco_label`, of which 1 says that the
annotators of MS MARCO selected it. This is the form of the relabelled dev queries of a thesis
(Tomjg14/Master_Thesis_MSMARCO_Passage_Reranking_BERT), where the order shown is that of BM25.
"""

from typing import Annotated, BinaryIO, Literal

import msgspec

from heldout.ids import DocId, QueryId
from heldout.survivorship.annotations import Annotation, Annotations
from heldout.survivorship.reading.record_lines import (
    Fault,
    id_fault,
    read_record_lines,
    shown_fault,
)
from heldout.trec.problems import show

__all__ = ["read_shown_passages"]

_EXPECTED = "a JSON object with query_id, query and passages: rank, passage_id, passage_text, "
_EXPECTED += "msmarco_label 0 or 1"


class _Passage(msgspec.Struct, frozen=True, kw_only=True):
    rank: Annotated[int, msgspec.Meta(ge=1)]
    passage_id: str
    passage_text: str
    msmarco_label: Literal[0, 1]


class _Row(msgspec.Struct, frozen=True, kw_only=True):
    query_id: str
    query: str
    passages: list[_Passage]


def read_shown_passages(source: BinaryIO, *, path: str, texts: bool = True) -> Annotations:
    """Read such a file, plain or compressed.

    Args:
        source: its bytes.
        path: its name for messages.
        texts: whether texts are kept.

    Raises:
        InputError: code `bad-annotation`: a line of another kind; `no-passages`: a query that was
            shown nothing; `shown-ranks`: ranks other than 1, 2, 3, …; `repeated-document`,
            `no-document-id`, `no-query-id`, `repeated-query`, and those of `TextReader`.
    """
    decode = msgspec.json.Decoder(_Row).decode
    log = read_record_lines(
        source, path=path, make=lambda line: _make(decode(line), texts=texts), expected=_EXPECTED
    )
    return Annotations(
        source=path,
        records=tuple(log.records),
        depth=max(len(record.shown) for record in log.records),
        open_ended=False,
        counts_discarded=True,
        notes=log.problems.notes(),
    )


def _make(row: _Row, *, texts: bool) -> Annotation | Fault:
    if not row.passages:
        found = f"no passage for query {show(row.query_id)}"
        return "no-passages", found, "what annotators were shown"
    passages = sorted(row.passages, key=lambda passage: passage.rank)
    ranks = [passage.rank for passage in passages]
    if ranks != list(range(1, len(ranks) + 1)):
        found = f"ranks {', '.join(map(str, ranks[:20]))} for query {show(row.query_id)}"
        return "shown-ranks", found, f"each of 1 to {len(ranks)} once"
    for passage in passages:
        if fault := id_fault(passage.passage_id):
            return "no-document-id", *fault[1:]
    record = Annotation(
        query=QueryId(row.query_id),
        text=row.query if texts else None,
        shown=tuple(DocId(passage.passage_id) for passage in passages),
        selected={
            DocId(passage.passage_id): passage.rank for passage in passages if passage.msmarco_label
        },
        texts={DocId(one.passage_id): one.passage_text for one in passages} if texts else {},
    )
    return shown_fault(record, depth=len(ranks)) or record
