"""A collection as a folder: `documents.tsv`, `queries.tsv` and perhaps labels.

The tables have two columns, id and text, divided by a tab, one row per line, no header; the
queries are read as any query file is (`trec.queries`). Labels, `qrels.txt`, `qrels.tsv` or `qrels`,
have the four columns of TREC qrels. A folder in BEIR's form is read as well (`beir`), and so are
files packed as `.gz`, `.bz2` or `.zst`.
"""

from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path

from heldout.collections.beir import is_beir_qrels, parse_beir_qrels, parse_beir_texts
from heldout.collections.collection import Collection
from heldout.collections.reading import find_file, read_text
from heldout.errors import InputError, Problem
from heldout.ids import DocId, QueryId
from heldout.trec.qrels import format_qrels, parse_qrels
from heldout.trec.queries import format_queries, parse_queries

__all__ = [
    "find_labels",
    "parse_documents",
    "read_labels",
    "read_texts",
    "write_collection",
]

Labels = dict[QueryId, dict[DocId, int]]

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
        folder: holds `documents.tsv` and `queries.tsv`, or `corpus.jsonl` and `queries.jsonl`,
            plain or packed.

    Raises:
        InputError: codes `collection-file`, `collection-twice`, those of `parse_documents` and of
            `parse_beir_texts`, and of the queries those of `trec.queries`.
    """
    return _read_documents(folder), _read_queries(folder)


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
        found: Mapping[str, Mapping[str, int]] = parse_beir_qrels(content, path=str(path))
    else:
        found = parse_qrels(content, path=str(path)).judgments
    return {
        QueryId(query): {DocId(document): grade for document, grade in grades.items()}
        for query, grades in found.items()
    }


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


def _read_documents(folder: Path) -> dict[DocId, str]:
    path = _need(folder, "documents.tsv", "corpus.jsonl")
    content = read_text(path)
    if "corpus.jsonl" not in path.name:
        return parse_documents(content, path=str(path))
    found = parse_beir_texts(content, path=str(path))
    return {DocId(document): text for document, text in found.items()}


def _read_queries(folder: Path) -> dict[QueryId, str]:
    path = _need(folder, "queries.tsv", "queries.jsonl")
    content = read_text(path)
    if "queries.jsonl" in path.name:
        found = parse_beir_texts(content, path=str(path))
    else:
        found = dict(parse_queries(content, path=str(path)).texts)
    return {QueryId(query): text for query, text in found.items()}


def _need(folder: Path, *names: str) -> Path:
    path = find_file(folder, *names)
    if path is None:
        found = "no such file" if folder.is_dir() else "no such folder"
        raise InputError(_problem(code="collection-file", path=str(folder / names[0]), found=found))
    return path


def _format_documents(texts: Mapping[DocId, str]) -> bytes:
    return "".join(f"{key}\t{text}\n" for key, text in texts.items()).encode()
