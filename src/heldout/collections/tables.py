"""A collection's files: documents, queries and labels in tables, JSON lines or TREC's tags.

A folder has `documents.tsv`, `queries.tsv` and perhaps labels, or BEIR's files. Tables have two
columns, id and text, divided by a tab, one row per line, no header; the queries are read as any
query file is (`trec.queries`). Labels, `qrels.txt`, `qrels.tsv` or `qrels`, have the four columns
of TREC qrels. Files may be packed as `.gz`, `.bz2` or `.zst`.

BEIR gives JSON lines, and qrels of three columns: `corpus.jsonl` has `{"_id", "title", "text"}` in
each line, `queries.jsonl` `{"_id", "text"}`, and `qrels/test.tsv` the columns query, document and
grade below a heading. Source: Thakur et al., NeurIPS Datasets and Benchmarks 2021.

Documents are a table, JSON lines, as BEIR, MS MARCO v2 and Anserini write them, or TREC's `<DOC>`
with `<DOCNO>`: the first line shows which. Where a few of many are wanted, the others are read and
never held.
"""

import re
from collections.abc import Collection, Iterator
from itertools import chain, islice
from pathlib import Path
from typing import BinaryIO

import msgspec

from heldout.errors import InputError, Problem, quote
from heldout.ids import DocId, QueryId, digest_bytes
from heldout.trec.qrels import HIGHEST_GRADE, Grades, Qrels, parse_qrels, scale_grades
from heldout.trec.queries import parse_queries
from heldout.trec.reading.sources import open_input
from heldout.trec.reading.streams import Limits, TextReader, read_lines
from heldout.trec.text import ProblemLog, parse_grade, show

_MOST_PROBLEMS = 20
_COLUMNS = "3 columns: query, document, grade"
_HEADING = ("query-id", "corpus-id", "score")
_MOST = 1 << 37
"""Bytes: a collection is larger than any other file, plain (3 GB of MS MARCO) or packed."""

# A document is one line: that of a book is longer than that of a run.
_LONGEST = 1 << 26
_LIMITS = Limits(compressed_bytes=1 << 34, bytes=1 << 35, line_bytes=_LONGEST)
_OF_MANY = Limits(
    compressed_bytes=_MOST, bytes=_MOST, ratio=1000, lines=1 << 32, line_bytes=_LONGEST
)

_Lines = Iterator[tuple[int, bytes]]
_Row = tuple[int, bytes, bytes]
"""Line, id and text of a document that is wanted."""


class _Every(frozenset[bytes]):
    """Holds every id."""

    def __contains__(self, _key: object) -> bool:
        return True


def read_documents(
    source: BinaryIO, wanted: Collection[str] | None = None, *, path: str
) -> dict[str, str]:
    """Read a file of documents to its end: plain, gzip, bzip2 or zstd.

    Args:
        source: its bytes.
        wanted: ids of the wanted documents; `None` for all.
        path: its name for messages.

    Returns:
        Id -> text, of those that are there, in the order of the file. A table's text as it stands;
        of JSON title and text, and of TREC all without tags, on one line.

    Raises:
        InputError: codes `collection-row`: a line without a tab, or JSON without an id or a text;
            `collection-id`: an id with white space, or twice; `collection-encoding`: a text is not
            UTF-8; `collection-empty`: none, where all are wanted; and those of `TextReader`.
    """
    keys = _Every() if wanted is None else {one.encode() for one in wanted}
    limits = _LIMITS if wanted is None else _OF_MANY
    log = ProblemLog(limits.problems)
    found: dict[str, str] = {}
    with TextReader(source, path=path, limits=limits) as reader:
        for row in _rows(read_lines(reader), keys, path, log):
            if (problem := _add(found, row, path)) is not None:
                log.add(problem)
    log.raise_errors()
    if wanted is None and not found:
        raise InputError.of("collection-empty", path, "no document")
    return found


def _rows(lines: _Lines, keys: Collection[bytes], path: str, log: ProblemLog) -> Iterator[_Row]:
    """Yield the wanted documents, in the format that the first line shows."""
    first = next(lines, None)
    if first is None:
        return
    read = _table_rows
    if first[1].lstrip().startswith(b"{"):
        read = _json_rows
    elif first[1].lstrip()[:5].upper() == b"<DOC>":
        read = _trec_rows
    yield from read(chain([first], lines), keys, path, log)


def _table_rows(
    lines: _Lines, keys: Collection[bytes], path: str, log: ProblemLog
) -> Iterator[_Row]:
    for number, line in lines:
        key, tab, text = line.rstrip(b"\r").partition(b"\t")
        if not tab:
            log.add(Problem.of("collection-row", path, f"no tab in {show(key)}", line=number))
        elif key in keys:
            yield number, key, text


class _Named(msgspec.Struct, frozen=True, kw_only=True):
    """The id of a document, under the names that BEIR, Anserini and MS MARCO v2 use."""

    beir: str | int | None = msgspec.field(name="_id", default=None)
    id: str | int | None = None
    docid: str | int | None = None
    docno: str | int | None = None
    pid: str | int | None = None

    @property
    def name(self) -> str:
        names = (self.beir, self.id, self.docid, self.docno, self.pid)
        return next((str(name) for name in names if name not in (None, "")), "")


class _Texts(msgspec.Struct, frozen=True, kw_only=True):
    """Its title and its text, under theirs."""

    title: str | None = None
    text: str | None = None
    contents: str | None = None
    passage: str | None = None
    body: str | None = None

    @property
    def line(self) -> str | None:
        given = (self.text, self.contents, self.passage, self.body)
        text = next(filter(None, given), None if set(given) == {None} else "")
        return None if text is None else " ".join(f"{self.title or ''} {text}".split())


def _json_rows(
    lines: _Lines, keys: Collection[bytes], path: str, log: ProblemLog
) -> Iterator[_Row]:
    named, texts = msgspec.json.Decoder(_Named), msgspec.json.Decoder(_Texts)
    for number, line in lines:
        if not line.strip():
            continue
        try:
            key = named.decode(line).name.encode()
            text = texts.decode(line).line if key in keys else ""
            found = "no id" if not key else "no text"
        except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
            key, text, found = b"", None, str(error)
        if not key or text is None:
            log.add(Problem.of("collection-row", path, found, _OBJECT, line=number))
        elif key in keys:
            yield number, key, text.encode(errors="replace")


_DOCNO = re.compile(rb"<DOCNO>\s*(\S+?)\s*</DOCNO>", re.IGNORECASE)
_ENDS = re.compile(rb"</DOC>", re.IGNORECASE)
_TAG = re.compile(rb"<[^<>]*>")


def _trec_rows(
    lines: _Lines, keys: Collection[bytes], path: str, log: ProblemLog
) -> Iterator[_Row]:
    """Yield documents between tags; what is no UTF-8, as in TREC's own disks, is replaced."""
    del path, log  # nothing can be wrong
    start, key, parts = 0, b"", list[bytes]()
    for number, line in lines:
        found = _DOCNO.search(line)
        if found and not key:
            start, key, parts = number, found[1], [line[found.end() :]]
        elif key and key in keys:
            parts.append(line)
        if _ENDS.search(line):
            if key and key in keys:
                text = _TAG.sub(b" ", b" ".join(parts)).decode(errors="replace")
                yield start, key, " ".join(text.split()).encode()
            key = b""


def _add(found: dict[str, str], row: _Row, path: str) -> Problem | None:
    line, key, text = row
    try:
        doc, content = key.decode(), text.decode()
    except UnicodeDecodeError:
        return Problem.of("collection-encoding", path, f"the text of {show(key)}", line=line)
    if doc in found:
        return Problem.of("collection-id", path, f"{show(doc)} again", line=line)
    if doc.split() != [doc] or not doc.isprintable():
        return Problem.of("collection-id", path, f"the id {show(doc)}", line=line)
    found[doc] = content
    return None


def is_beir_qrels(content: bytes) -> bool:
    """Check whether judgments begin with BEIR's heading."""
    return tuple(content.split(b"\n", 1)[0].decode(errors="replace").split()) == _HEADING


def parse_beir_qrels(content: bytes, *, path: str, whole_for: str | None = "") -> Qrels:
    """Read judgments below the heading `query-id corpus-id score`.

    Args:
        content: tab-separated rows, the heading first.
        path: the file's name, for errors.
        whole_for: as for `trec.qrels.read_qrels`.

    Raises:
        InputError: the first twenty of `wrong-columns`, `grade-not-a-number`, `grade-too-large`,
            `conflicting-judgment`; `collection-empty`.
    """
    judgments: Grades = {}
    if first := list(islice(_read_rows(content, judgments, path, whole_for), _MOST_PROBLEMS)):
        raise InputError(first)
    if not judgments:
        raise InputError.of("collection-empty", path, "no judgment")
    scaled, scale = scale_grades(judgments)
    return Qrels(judgments=scaled, digest=digest_bytes(content), scale=scale)


def _read_rows(
    content: bytes, judgments: Grades, path: str, whole_for: str | None
) -> Iterator[Problem]:
    for number, line in enumerate(content.decode(errors="replace").split("\n")[1:], 2):
        row = line.split()
        if not row:
            continue
        if len(row) != len(_HEADING):
            yield Problem.of("wrong-columns", path, f"{len(row)} columns", _COLUMNS, line=number)
            continue
        query, document, written = row
        grade = parse_grade(written.encode())
        if grade is None or (whole_for is not None and not isinstance(grade, int)):
            needs = f"a whole number, which {whole_for} needs" if whole_for else ""
            yield Problem.of("grade-not-a-number", path, quote(written), needs, line=number)
            continue
        if grade > HIGHEST_GRADE or grade < -HIGHEST_GRADE:
            yield Problem.of(
                "grade-too-large", path, quote(written), line=number, most=HIGHEST_GRADE
            )
            continue
        before = judgments.setdefault(query, {}).setdefault(document, grade)
        if before != grade:
            found = f"{quote(document)} for {quote(query)}: {grade} after {before}"
            yield Problem.of("conflicting-judgment", path, found, line=number)


PACKED = ("", ".gz", ".bz2", ".zst")
"""What may follow a file's name: packed files are unpacked as they are read."""


def find_file(folder: Path, *names: str) -> Path | None:
    """Find the file of a folder that has one of these names, plain or packed.

    Args:
        folder: where to look.
        names: without `.gz`, `.bz2` or `.zst`.

    Returns:
        `None` where there is none.

    Raises:
        InputError: code `collection-twice` where there are several.
    """
    paths = [folder / f"{name}{packed}" for name in names for packed in PACKED]
    found = [path for path in paths if path.is_file()]
    if len(found) > 1:
        raise InputError.of(
            "collection-twice", str(folder), " and ".join(path.name for path in found)
        )
    return found[0] if found else None


def read_text(path: Path) -> bytes:
    r"""Read the text of a file, unpacked; lines end with `\n`, a byte order mark is gone.

    Raises:
        InputError: code `unreadable-file`, and those of `TextReader`.
    """
    with open_input(path) as file, TextReader(file, path=str(path), limits=_LIMITS) as reader:
        return b"".join(block.text for block in reader.blocks())


def read_file(path: Path, wanted: Collection[str] | None = None) -> dict[str, str]:
    """Read the documents or queries of a file; see `read_documents`."""
    with open_input(path) as file:
        return read_documents(file, wanted, path=str(path))


def find_documents(folder: Path) -> Path:
    """Find the documents in the folder of a collection.

    Raises:
        InputError: codes `collection-file`, `collection-twice`.
    """
    return _need(folder, "documents.tsv", "corpus.jsonl")


Labels = dict[QueryId, dict[DocId, int]]


def read_texts(folder: Path) -> tuple[dict[DocId, str], dict[QueryId, str]]:
    """Read the documents and queries of a folder; judgments are not needed to rank.

    Args:
        folder: holds `documents.tsv` and `queries.tsv`, or `corpus.jsonl` and `queries.jsonl`,
            plain or packed.

    Raises:
        InputError: codes `collection-file`, `collection-twice`, those of `read_documents`, and of
            the queries those of `trec.queries`.
    """
    documents = read_file(find_documents(folder))
    path = _need(folder, "queries.tsv", "queries.jsonl")
    if "queries.jsonl" in path.name:
        queries = read_file(path)
    else:
        queries = dict(parse_queries(read_text(path), path=str(path)).texts)
    return (
        {DocId(document): text for document, text in documents.items()},
        {QueryId(query): text for query, text in queries.items()},
    )


def find_labels(folder: Path) -> Path | None:
    """Find the labels that lie in the folder of a collection.

    Returns:
        `qrels.txt`, `qrels.tsv` or `qrels`, plain or packed, or BEIR's `qrels/test.tsv`; `None`
        where there is none.

    Raises:
        InputError: code `collection-twice`.
    """
    return find_file(folder, "qrels.txt", "qrels.tsv", "qrels", "qrels/test.tsv")


def read_labels(path: Path) -> Labels:
    """Read labels in the form of TREC or of BEIR.

    Returns:
        Grade by query and document, in the order of the file.

    Raises:
        InputError: as `trec.qrels.read_qrels` and `parse_beir_qrels`.
    """
    content = read_text(path)
    if is_beir_qrels(content):
        found = parse_beir_qrels(content, path=str(path)).judgments
    else:
        found = parse_qrels(content, path=str(path)).judgments
    return {
        QueryId(query): {DocId(document): grade for document, grade in grades.items()}
        for query, grades in found.items()
    }


_OBJECT = 'an object such as {"_id": "d1", "title": "", "text": "…"}'


def _need(folder: Path, *names: str) -> Path:
    path = find_file(folder, *names)
    if path is None:
        found = "no such file" if folder.is_dir() else "no such folder"
        expected = f"{' or '.join(names)} in the folder, plain or compressed"
        raise InputError.of("collection-file", str(folder / names[0]), found, expected)
    return path
