"""The texts of a few documents out of a large collection, which is read once and never held.

A file is a table, `id<TAB>text`; JSON lines, as BEIR, MS MARCO v2 and Anserini write them; or
TREC's `<DOC>` with `<DOCNO>`. Its first line shows which. A folder is that of a collection, and
`irds:NAME` one of ir_datasets.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import BinaryIO

import msgspec

from heldout.collections.catalogue import PREFIX, open_dataset, read_part
from heldout.collections.tables import find_file
from heldout.errors import InputError, Problem
from heldout.progress_bar import SILENT, Progress
from heldout.trec.reading.sources import open_input
from heldout.trec.reading.streams import Limits, TextReader, read_lines
from heldout.trec.text import ProblemLog, show

_LONGEST = 64 << 20
_MOST = 1 << 37
"""Bytes: a collection is larger than any other file, plain (3 GB of MS MARCO) or packed."""

Row = tuple[int, str, bytes]
"""Line, id and text of a document that is wanted."""


def find_texts(
    sources: Sequence[str],
    wanted: Collection[str],
    *,
    longest: int | None = None,
    progress: Progress = SILENT,
) -> Mapping[str, str]:
    """The texts of documents, as far as the sources have them.

    Args:
        sources: files, folders with `documents.tsv` or `corpus.jsonl`, or `irds:` and a name of
            ir_datasets; the first that has a document counts.
        wanted: ids.
        longest: characters of a text; a longer one is cut and ends with an ellipsis.
        progress: gets what is read.

    Raises:
        InputError: codes `collection-file`, `collection-name`, and those of `read_wanted_texts`.
        SetupError: ir_datasets is missing or could not fetch its files.
    """
    found: dict[str, str] = {}
    for source in sources:
        missing = frozenset(wanted).difference(found)
        with progress.waiting(f"reading {source}"):
            found |= cut_texts(_find(source, missing), longest)
    return found


def _find(source: str, wanted: Collection[str]) -> Mapping[str, str]:
    if source.startswith(PREFIX):
        return _catalogued(source, wanted)
    path = Path(source)
    if path.is_dir():
        path = _file_of(path)
    with open_input(path) as file:
        return read_wanted_texts(file, wanted, path=str(path))


def _catalogued(named: str, wanted: Collection[str]) -> Mapping[str, str]:
    dataset = open_dataset(named, "docs")
    return read_part(
        named,
        lambda: {
            doc: " ".join(found.default_text().split())
            for doc, found in dataset.docs_store().get_many(sorted(wanted)).items()
        },
    )


def _file_of(folder: Path) -> Path:
    path = find_file(folder, "documents.tsv", "corpus.jsonl")
    if path is None:
        raise InputError.of(
            "collection-file",
            str(folder),
            "neither documents.tsv nor corpus.jsonl",
            "one of them, plain or packed",
            "name the file of the documents itself",
        )
    return path


def cut_texts(texts: Mapping[str, str], longest: int | None) -> Mapping[str, str]:
    """The texts, those with more characters cut and with an ellipsis at the end."""
    if longest is None:
        return texts
    return {
        doc: text if len(text) <= longest else f"{text[:longest].rstrip()}…"
        for doc, text in texts.items()
    }


def read_wanted_texts(source: BinaryIO, wanted: Collection[str], *, path: str) -> dict[str, str]:
    """Read a file of documents to its end: plain, gzip, bzip2 or zstd.

    Args:
        source: its bytes.
        wanted: ids of the wanted documents.
        path: its name for messages.

    Returns:
        Id -> text, of those that are there, in the order of the file. A table's text as it stands;
        of JSON title and text, and of TREC all without tags, on one line.

    Raises:
        InputError: codes `collection-row`: a line without a tab, or JSON without an id;
            `collection-id`: a wanted document twice; `collection-encoding`: its text is not UTF-8;
            and those of `TextReader`.
    """
    keys = {one.encode() for one in wanted}
    limits = Limits(
        compressed_bytes=_MOST, bytes=_MOST, ratio=1000, lines=1 << 32, line_bytes=_LONGEST
    )
    log = ProblemLog(limits.problems)
    found: dict[str, str] = {}
    with TextReader(source, path=path, limits=limits) as reader:
        for line, doc, text in _rows(read_lines(reader), keys, path, log):
            problem = _add(found, doc, text, path, line)
            if problem is not None:
                log.add(problem)
    log.raise_errors()
    return found


def _rows(
    lines: Iterator[tuple[int, bytes]], keys: Collection[bytes], path: str, log: ProblemLog
) -> Iterator[Row]:
    """The wanted documents, in the format that the first line shows."""
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
    lines: Iterator[tuple[int, bytes]], keys: Collection[bytes], path: str, log: ProblemLog
) -> Iterator[Row]:
    for number, line in lines:
        key, tab, text = line.rstrip(b"\r").partition(b"\t")
        if not tab:
            log.add(_problem("collection-row", path, number, f"no tab in {show(key)}"))
        elif key in keys:
            yield number, key.decode(), text


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
    def line(self) -> str:
        parts = (self.title, self.text or self.contents or self.passage or self.body)
        return " ".join(" ".join(filter(None, parts)).split())


def _json_rows(
    lines: Iterator[tuple[int, bytes]], keys: Collection[bytes], path: str, log: ProblemLog
) -> Iterator[Row]:
    named, texts = msgspec.json.Decoder(_Named), msgspec.json.Decoder(_Texts)
    for number, line in lines:
        if not line.strip():
            continue
        try:
            name = named.decode(line).name
            text = texts.decode(line).line if name.encode() in keys else ""
        except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
            log.add(_problem("collection-row", path, number, str(error), _OBJECT))
            continue
        if not name:
            log.add(_problem("collection-row", path, number, "no id", _OBJECT))
        elif name.encode() in keys:
            yield number, name, text.encode(errors="replace")


_DOCNO = re.compile(rb"<DOCNO>\s*(\S+?)\s*</DOCNO>", re.IGNORECASE)
_ENDS = re.compile(rb"</DOC>", re.IGNORECASE)
_TAG = re.compile(rb"<[^<>]*>")


def _trec_rows(
    lines: Iterator[tuple[int, bytes]], keys: Collection[bytes], path: str, log: ProblemLog
) -> Iterator[Row]:
    """Documents between tags; what is no UTF-8, as in TREC's own disks, is replaced."""
    del path, log  # nothing can be wrong
    start, key, parts = 0, b"", list[bytes]()
    for number, line in lines:
        found = _DOCNO.search(line)
        if found and not key:
            start, key, parts = number, found[1], [line[found.end() :]]
        elif key in keys:
            parts.append(line)
        if _ENDS.search(line):
            if key in keys:
                text = _TAG.sub(b" ", b" ".join(parts)).decode(errors="replace")
                yield start, key.decode(), " ".join(text.split()).encode()
            key = b""


def _add(found: dict[str, str], doc: str, text: bytes, path: str, line: int) -> Problem | None:
    if doc in found:
        return _problem("collection-id", path, line, f"{show(doc)} again")
    try:
        found[doc] = text.decode()
    except UnicodeDecodeError:
        return _problem("collection-encoding", path, line, f"the text of {show(doc)}")
    return None


_OBJECT = 'an object such as {"_id": "d1", "title": "", "text": "…"}'
_EXPECTED = {
    "collection-encoding": "UTF-8 text",
    "collection-id": "an id once in the file",
    "collection-row": "id, tab, text",
}


def _problem(code: str, path: str, line: int, found: str, expected: str = "") -> Problem:
    expected = expected or _EXPECTED[code]
    return Problem(code=code, path=path, line=line, found=found, expected=expected)
