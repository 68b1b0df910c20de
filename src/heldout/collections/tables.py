"""A collection as a folder: `documents.tsv`, `queries.tsv` and perhaps labels, or BEIR's format.

The tables have two columns, id and text, divided by a tab, one row per line, no header; the
queries are read as any query file is (`trec.queries`). Labels, `qrels.txt`, `qrels.tsv` or `qrels`,
have the four columns of TREC qrels. Files may be packed as `.gz`, `.bz2` or `.zst`.

BEIR gives JSON lines, and qrels of three columns: `corpus.jsonl` has `{"_id", "title", "text"}` in
each line, `queries.jsonl` `{"_id", "text"}`, and `qrels/test.tsv` the columns query, document and
grade below a heading. Source: Thakur et al., NeurIPS Datasets and Benchmarks 2021.
"""

from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import msgspec

from heldout.errors import InputError, Problem, quote
from heldout.ids import DocId, QueryId, digest_bytes
from heldout.trec.qrels import HIGHEST_GRADE, Grades, Qrels, parse_qrels, scale_grades
from heldout.trec.queries import parse_queries
from heldout.trec.reading.sources import open_input
from heldout.trec.reading.streams import Limits, TextReader
from heldout.trec.text import parse_grade

_MOST_PROBLEMS = 20
_HEADING = ("query-id", "corpus-id", "score")


class _TableLine(msgspec.Struct, frozen=True, kw_only=True):
    """What is read of a line; BEIR's `metadata` is left alone."""

    identity: str = msgspec.field(name="_id")
    text: str
    title: str | None = None


def parse_beir_texts(content: bytes, *, path: str) -> dict[str, str]:
    """Documents or queries in JSON lines.

    Args:
        content: one object per line; empty lines are skipped.
        path: the file's name, for errors.

    Returns:
        Text by id in the order of the file, on one line, a title before it.

    Raises:
        InputError: the first twenty of `collection-row`, `collection-id`; `collection-empty`.
    """
    texts: dict[str, str] = {}
    _refuse(_read_lines(content, texts, path))
    if not texts:
        raise InputError(_problem("collection-empty", path, "no line"))
    return texts


def is_beir_qrels(content: bytes) -> bool:
    """Check whether judgments begin with BEIR's heading."""
    return tuple(content.split(b"\n", 1)[0].decode(errors="replace").split()) == _HEADING


def parse_beir_qrels(content: bytes, *, path: str, whole_for: str | None = "") -> Qrels:
    """Judgments below the heading `query-id corpus-id score`.

    Args:
        content: tab-separated rows, the heading first.
        path: the file's name, for errors.
        whole_for: as for `trec.qrels.read_qrels`.

    Raises:
        InputError: the first twenty of `wrong-columns`, `grade-not-a-number`, `grade-too-large`,
            `conflicting-judgment`; `collection-empty`.
    """
    judgments: Grades = {}
    _refuse(_read_rows(content, judgments, path, whole_for))
    if not judgments:
        raise InputError(_problem("collection-empty", path, "no judgment"))
    scaled, scale = scale_grades(judgments)
    return Qrels(judgments=scaled, digest=digest_bytes(content), scale=scale)


def _read_lines(content: bytes, texts: dict[str, str], path: str) -> Iterator[Problem]:
    decoder = msgspec.json.Decoder(_TableLine)
    for number, line in enumerate(content.split(b"\n"), 1):
        if not line.strip():
            continue
        try:
            read = decoder.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            yield _problem("collection-row", path, str(error), number, _OBJECT)
            continue
        key = read.identity
        if key.split() != [key] or not key.isprintable():
            yield _problem("collection-id", path, f"the id {quote(key)}", number)
        elif key in texts:
            yield _problem("collection-id", path, f"{quote(key)} again", number)
        else:
            texts[key] = " ".join(f"{read.title or ''} {read.text}".split())


def _read_rows(
    content: bytes, judgments: Grades, path: str, whole_for: str | None
) -> Iterator[Problem]:
    for number, line in enumerate(content.decode(errors="replace").split("\n")[1:], 2):
        row = line.split()
        if not row:
            continue
        if len(row) != len(_HEADING):
            yield _problem("wrong-columns", path, f"{len(row)} columns", number)
            continue
        query, document, written = row
        grade = parse_grade(written.encode())
        if grade is None or (whole_for is not None and not isinstance(grade, int)):
            needs = f"a whole number, which {whole_for} needs" if whole_for else ""
            yield _problem("grade-not-a-number", path, quote(written), number, needs)
            continue
        if grade > HIGHEST_GRADE or grade < -HIGHEST_GRADE:
            yield _problem("grade-too-large", path, quote(written), number)
            continue
        before = judgments.setdefault(query, {}).setdefault(document, grade)
        if before != grade:
            found = f"{quote(document)} for {quote(query)}: {grade} after {before}"
            yield _problem("conflicting-judgment", path, found, number)


PACKED = ("", ".gz", ".bz2", ".zst")
"""What may follow a file's name: packed files are unpacked as they are read."""

# A document is one line: that of a book is longer than that of a run.
_LIMITS = Limits(compressed_bytes=1 << 34, bytes=1 << 35, line_bytes=1 << 26)


def find_file(folder: Path, *names: str) -> Path | None:
    """The file of a folder that has one of these names, plain or packed.

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
            code="collection-twice",
            path=str(folder),
            found=" and ".join(path.name for path in found),
            expected="one of them",
            hint="take the others out of the folder, or name the labels with --qrels",
        )
    return found[0] if found else None


def read_text(path: Path) -> bytes:
    r"""The text of a file, unpacked; lines end with `\n`, a byte order mark is gone.

    Raises:
        InputError: code `unreadable-file`, and those of `TextReader`.
    """
    with open_input(path) as file, TextReader(file, path=str(path), limits=_LIMITS) as reader:
        return b"".join(block.text for block in reader.blocks())


Labels = dict[QueryId, dict[DocId, int]]


def read_texts(folder: Path) -> tuple[dict[DocId, str], dict[QueryId, str]]:
    """Read the documents and queries of a folder; judgments are not needed to rank.

    Args:
        folder: holds `documents.tsv` and `queries.tsv`, or `corpus.jsonl` and `queries.jsonl`,
            plain or packed.

    Raises:
        InputError: codes `collection-file`, `collection-twice`, those of `parse_documents` and of
            `parse_beir_texts`, and of the queries those of `trec.queries`.
    """
    path = _need(folder, "documents.tsv", "corpus.jsonl")
    parse = parse_beir_texts if "corpus.jsonl" in path.name else parse_documents
    documents = parse(read_text(path), path=str(path))
    path = _need(folder, "queries.tsv", "queries.jsonl")
    content = read_text(path)
    if "queries.jsonl" in path.name:
        queries = parse_beir_texts(content, path=str(path))
    else:
        queries = dict(parse_queries(content, path=str(path)).texts)
    return (
        {DocId(document): text for document, text in documents.items()},
        {QueryId(query): text for query, text in queries.items()},
    )


def find_labels(folder: Path) -> Path | None:
    """The labels that lie in the folder of a collection.

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


def parse_documents(content: bytes, *, path: str) -> dict[str, str]:
    """Parse a table of documents.

    Args:
        content: UTF-8, rows `id<TAB>text`; the text may be empty and may hold further tabs.
        path: the file's name, for errors.

    Raises:
        InputError: what is wrong, the first twenty rows of it: `collection-encoding`,
            `collection-row`, `collection-id`, `collection-empty`.
    """
    try:
        lines = content.decode().removesuffix("\n").split("\n")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        found = "bytes that are not UTF-8"
        raise InputError(_problem("collection-encoding", path, found, line)) from error
    if lines == [""]:
        raise InputError(_problem("collection-empty", path, "no row"))
    rows = [line.rstrip("\r").partition("\t") for line in lines]
    _refuse(_check(rows, path))
    return {key: text for key, _, text in rows}


def _check(rows: list[tuple[str, str, str]], path: str) -> Iterator[Problem]:
    seen: dict[str, int] = {}
    for line, (key, tab, _) in enumerate(rows, 1):
        if not tab:
            yield _problem("collection-row", path, f"no tab in {key[:40]!r}", line)
        elif not key or key.split() != [key]:
            yield _problem("collection-id", path, f"the id {key[:40]!r}", line)
        elif key in seen:
            found = f"{key[:40]!r} again, first in line {seen[key]}"
            yield _problem("collection-id", path, found, line)
        seen.setdefault(key, line)


_OBJECT = 'an object such as {"_id": "d1", "title": "", "text": "…"}'
_EXPECTED = {
    "collection-empty": "at least one line: id and text, or a judgment",
    "collection-encoding": "UTF-8 text",
    "collection-file": "a readable file",
    "collection-id": "an id without white space, once in the file",
    "collection-row": "id, tab, text",
    "conflicting-judgment": "one judgment per query and document",
    "grade-not-a-number": "a whole number",
    "grade-too-large": f"a grade of at most {HIGHEST_GRADE:,}",
    "wrong-columns": "3 columns: query, document, grade",
}


def _problem(
    code: str, path: str, found: str, line: int | None = None, expected: str = ""
) -> Problem:
    expected = expected or _EXPECTED[code]
    return Problem(code=code, path=path, line=line, found=found, expected=expected)


def _refuse(problems: Iterator[Problem]) -> None:
    """Raise the first twenty."""
    if first := list(islice(problems, _MOST_PROBLEMS)):
        raise InputError(first)


def _need(folder: Path, *names: str) -> Path:
    path = find_file(folder, *names)
    if path is None:
        found = "no such file" if folder.is_dir() else "no such folder"
        expected = f"{' or '.join(names)} in the folder, plain or compressed"
        raise InputError(_problem("collection-file", str(folder / names[0]), found, None, expected))
    return path
