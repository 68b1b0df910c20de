"""A collection as a folder: `documents.tsv`, `queries.tsv` and `qrels.txt`.

The tables have two columns, id and text, divided by a tab, one row per line, no header; the
queries are read as any query file is (`trec.queries`). The judgments have the four columns of
TREC qrels.
"""

from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path

from heldout.collections.collection import Collection
from heldout.errors import InputError, Problem
from heldout.ids import DocId, QueryId
from heldout.trec.qrels import format_qrels
from heldout.trec.queries import format_queries, parse_queries

__all__ = ["parse_documents", "read_texts", "write_collection"]

_MOST_PROBLEMS = 20


def write_collection(collection: Collection, folder: Path) -> None:
    """Write `documents.tsv`, `queries.tsv` and `qrels.txt`, in the order of the collection.

    Args:
        collection: what to write.
        folder: made if it is missing; files of these names are replaced.
    """
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "documents.tsv").write_bytes(_format_documents(collection.documents))
    queries = {str(query): text for query, text in collection.queries.items()}
    (folder / "queries.tsv").write_bytes(format_queries(queries))
    qrels = {
        str(query): {str(document): grade for document, grade in grades.items()}
        for query, grades in collection.qrels.items()
    }
    (folder / "qrels.txt").write_bytes(format_qrels(qrels))


def read_texts(folder: Path) -> tuple[dict[DocId, str], dict[QueryId, str]]:
    """Read the documents and queries of a folder; judgments are not needed to rank.

    Args:
        folder: holds `documents.tsv` and `queries.tsv`.

    Raises:
        InputError: codes `collection-file`, those of `parse_documents`, and of the queries
            those of `trec.queries`.
    """
    documents = folder / "documents.tsv"
    queries = folder / "queries.tsv"
    texts = parse_documents(_read(documents), path=str(documents))
    found = parse_queries(_read(queries), path=str(queries))
    return texts, {QueryId(query): text for query, text in found.texts.items()}


def parse_documents(content: bytes, *, path: str) -> dict[DocId, str]:
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
        raise InputError(
            _problem(
                code="collection-encoding", path=path, line=line, found="bytes that are not UTF-8"
            )
        ) from error
    if lines == [""]:
        raise InputError(_problem(code="collection-empty", path=path, found="no row"))
    rows = [line.rstrip("\r").partition("\t") for line in lines]
    problems = list(islice(_check(rows, path), _MOST_PROBLEMS))
    if problems:
        raise InputError(problems)
    return {DocId(key): text for key, _, text in rows}


def _check(rows: list[tuple[str, str, str]], path: str) -> Iterator[Problem]:
    seen: dict[str, int] = {}
    for line, (key, tab, _) in enumerate(rows, 1):
        if not tab:
            yield _problem(
                code="collection-row", path=path, line=line, found=f"no tab in {key[:40]!r}"
            )
        elif not key or key.split() != [key]:
            yield _problem(code="collection-id", path=path, line=line, found=f"the id {key[:40]!r}")
        elif key in seen:
            yield _problem(
                code="collection-id",
                path=path,
                line=line,
                found=f"{key[:40]!r} again, first in line {seen[key]}",
            )
        seen.setdefault(key, line)


_EXPECTED = {
    "collection-encoding": "UTF-8 text",
    "collection-empty": "at least one row: id, tab, text",
    "collection-file": "a readable file",
    "collection-id": "an id without white space, once in the file",
    "collection-row": "id, tab, text",
}


def _problem(*, code: str, path: str, found: str, line: int | None = None) -> Problem:
    return Problem(code=code, path=path, line=line, found=found, expected=_EXPECTED[code])


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        found = error.strerror or type(error).__name__
        raise InputError(_problem(code="collection-file", path=str(path), found=found)) from error


def _format_documents(texts: Mapping[DocId, str]) -> bytes:
    return "".join(f"{key}\t{text}\n" for key, text in texts.items()).encode()
