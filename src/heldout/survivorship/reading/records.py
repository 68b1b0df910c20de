"""Records of annotations: JSON lines, one query a line, and what other files add to them.

Other files give the types and texts that a record lacks. The relabelled dev queries of a thesis
(Tomjg14/Master_Thesis_MSMARCO_Passage_Reranking_BERT) are read too: `query_id`, `query` and ranked
`passages`, each with `rank`, `passage_id`, `passage_text` and `msmarco_label`, of which 1 says that
the annotators of MS MARCO selected it; the order shown there is that of BM25.
"""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from typing import Annotated, BinaryIO, Literal

import msgspec

from heldout.errors import InputError, Problem, plural
from heldout.ids import DocId, QueryId
from heldout.survivorship.annotations import Annotation, Annotations
from heldout.trec.reading.streams import Limits, TextReader, read_lines
from heldout.trec.text import ProblemLog, show


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
            Problem.of("two-types", path, query=show(query), one=show(one), other=show(other))
            for query, one, other in sorted(twice)[:5]
        )
    return kinds


def add_kinds(annotations: Annotations, kinds: Mapping[str, str], *, path: str) -> Annotations:
    """The same with these types of queries; a query that the file lacks has no type.

    Args:
        annotations: to be completed.
        kinds: type by query; replaces what the source says.
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
    """The same with texts; those that the source has stay.

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

    def fill(record: Annotation) -> Annotation:
        docs = dict.fromkeys((*record.shown, *record.selected))
        texts = {doc: documents[doc] for doc in docs if documents and doc in documents}
        text = (queries or {}).get(record.query) if record.text is None else record.text
        return replace(record, text=text, texts={**texts, **record.texts})

    return replace(annotations, records=tuple(map(fill, annotations.records)))


def pick_queries(annotations: Annotations, queries: AbstractSet[str], *, path: str) -> Annotations:
    """The annotations of some queries, in their order.

    Args:
        annotations: of all.
        queries: those that stay.
        path: where they were read, for messages.

    Raises:
        InputError: code `unknown-query`: some of them were not annotated.
    """
    records = tuple(record for record in annotations.records if record.query in queries)
    if lost := sorted(queries - {record.query for record in records}):
        found = f"{plural(len(lost), 'query', 'queries')} not annotated: {show_some(lost)}"
        raise InputError.of("unknown-query", path, found, f"queries of {annotations.source}")
    return replace(annotations, records=records)


def show_some(names: Sequence[str]) -> str:
    """The first five of some names, and dots where there are more."""
    return ", ".join(map(show, names[:5])) + (", …" if len(names) > 5 else "")  # noqa: PLR2004 - the same five


def _nothing_common(annotations: Annotations, path: str) -> InputError:
    queries = plural(len(annotations.records), "query", "queries")
    return no_common_query(path, f"none of the {queries} of {annotations.source}")


def no_common_query(
    path: str, found: str, expected: str = "queries that were annotated"
) -> InputError:
    """Code `no-common-query`: two files have no query in common."""
    hint = "are the ids of both files those of the same queries?"
    return InputError.of("no-common-query", path, found, expected, hint)


def no_common_document(annotations: Annotations, path: str) -> InputError:
    """Code `no-common-document`: a run lists none of the documents that were annotated.

    Such a run is hardly ever that bad: it names the documents by the ids of another collection.

    Args:
        annotations: that were read.
        path: the run.
    """
    known = sum(len({*record.shown, *record.selected}) for record in annotations.records)
    return InputError.of(
        "no-common-document",
        path,
        found=f"none of the {plural(known, 'document')} that were shown or selected",
        expected=f"the document ids of {annotations.source}",
        hint="are both of one collection? MS MARCO QnA has no ids: --documents FILE gives them",
    )


LIMITS = Limits(compressed_bytes=1 << 35, bytes=1 << 37, line_bytes=1 << 26, ratio=1000)
"""For files of annotations, which are the reader's own: 128 GiB of text, a record of 64 MiB."""

Fault = tuple[str, str, str]
"""Code, what was found, what is expected."""


class RecordLog:
    """Collects records and what is wrong with them; a query is annotated once.

    Attributes:
        records: in the order added.
        problems: of all that were refused.
    """

    def __init__(self) -> None:
        self.records: list[Annotation] = []
        self.problems = ProblemLog(LIMITS.problems)
        self._queries: set[QueryId] = set()

    def add(self, record: Annotation, *, path: str, line: int | None = None) -> None:
        """Add a record unless its query was added before, or cannot be an id.

        Args:
            record: to be added.
            path: the file, and the field where it has no lines.
            line: of the file.
        """
        fault = id_fault(record.query)
        if record.query in self._queries:
            fault = ("repeated-query", f"query {show(record.query)} again", "each query once")
        self._queries.add(record.query)
        if fault is None:
            self.records.append(record)
        else:
            self.refuse(fault, path=path, line=line)

    def refuse(self, fault: Fault, *, path: str, line: int | None = None, hint: str = "") -> None:
        """Add a problem."""
        code, found, expected = fault
        self.problems.add(
            Problem.of(code=code, path=path, line=line, found=found, expected=expected, hint=hint)
        )


def id_fault(name: str) -> Fault | None:
    """Return why an id cannot stand in qrels; `None` where it can."""
    if name.isprintable() and name.split() == [name]:
        return None
    return "no-query-id", f"id {show(name)}", "an id of visible characters, without blanks"


_EXPECTED = "a JSON object with query_id, query and passages: rank, passage_id, passage_text, "
_EXPECTED += "msmarco_label 0 or 1"


class _Passage(msgspec.Struct, frozen=True, kw_only=True):
    rank: Annotated[int, msgspec.Meta(ge=1)]
    passage_id: str
    passage_text: str
    msmarco_label: Literal[0, 1]


class _RecordRow(msgspec.Struct, frozen=True, kw_only=True):
    query_id: str
    query: str
    passages: list[_Passage]


def read_shown_passages(source: BinaryIO, *, path: str, texts: bool = True) -> Annotations:
    """Read such a file, plain or compressed, to its end; empty lines are skipped.

    Args:
        source: its bytes.
        path: its name for messages.
        texts: whether texts are stored.

    Raises:
        InputError: code `bad-annotation`: a line of another kind; `no-passages`: a query that was
            shown nothing; `shown-ranks`: ranks other than 1, 2, 3, …; `repeated-document`,
            `no-document-id`, `no-query-id`, `repeated-query`, and those of `TextReader`.
    """
    decode = msgspec.json.Decoder(_RecordRow).decode
    log = RecordLog()
    with TextReader(source, path=path, limits=LIMITS) as reader:
        for number, line in read_lines(reader):
            if not line.strip():
                continue
            try:
                made = _make(decode(line), texts=texts)
            except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
                fault = ("bad-annotation", show(line), _EXPECTED)
                log.refuse(fault, path=path, line=number, hint=str(error))
                continue
            if isinstance(made, Annotation):
                log.add(made, path=path, line=number)
            else:
                log.refuse(made, path=path, line=number)
    log.problems.extend(reader.notes)
    if not log.records and not log.problems.errors:
        log.refuse(("empty-file", "no annotation", "at least one"), path=path)
    log.problems.raise_errors()
    return Annotations(
        source=path,
        records=tuple(log.records),
        depth=max(len(record.shown) for record in log.records),
        notes=log.problems.notes(),
    )


def _make(row: _RecordRow, *, texts: bool) -> Annotation | Fault:
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
    shown = tuple(DocId(passage.passage_id) for passage in passages)
    if len(set(shown)) < len(shown):
        twice = next(doc for at, doc in enumerate(shown) if doc in shown[:at])
        return "repeated-document", f"{show(twice)} twice", "each document shown once"
    return Annotation(
        query=QueryId(row.query_id),
        text=row.query if texts else None,
        shown=shown,
        selected={
            DocId(passage.passage_id): passage.rank for passage in passages if passage.msmarco_label
        },
        texts={DocId(one.passage_id): one.passage_text for one in passages} if texts else {},
    )
