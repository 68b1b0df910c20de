"""A collection as a folder: `documents.tsv`, `queries.tsv` and `qrels.txt`.

The tables have two columns, id and text, divided by a tab, one row per line, no header. The
judgments have the four columns of TREC qrels.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path

from heldout.collections.collection import Collection
from heldout.errors import InputError, Problem
from heldout.ids import DocId, QueryId

__all__ = ["parse_texts", "read_texts", "write_collection"]

_MOST_PROBLEMS = 20


def write_collection(collection: Collection, folder: Path) -> None:
    """Write `documents.tsv`, `queries.tsv` and `qrels.txt`, in the order of the collection.

    Args:
        collection: what to write.
        folder: made if it is missing; files of these names are replaced.
    """
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "documents.tsv").write_bytes(_format_texts(collection.documents))
    (folder / "queries.tsv").write_bytes(_format_texts(collection.queries))
    (folder / "qrels.txt").write_bytes(_format_qrels(collection.qrels))


def read_texts(folder: Path) -> tuple[dict[DocId, str], dict[QueryId, str]]:
    """Read the documents and queries of a folder; judgments are not needed to rank.

    Args:
        folder: holds `documents.tsv` and `queries.tsv`.

    Raises:
        InputError: codes `collection-file`, `collection-encoding`, `collection-row`,
            `collection-id`, `collection-empty`.
    """
    documents, queries = (_read(folder / name) for name in ("documents.tsv", "queries.tsv"))
    return (
        {DocId(key): text for key, text in documents.items()},
        {QueryId(key): text for key, text in queries.items()},
    )


def parse_texts(content: bytes, *, path: str) -> dict[str, str]:
    """Parse one table of ids and texts.

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
    problems = [problem for problem, _ in zip(_check(rows, path), range(_MOST_PROBLEMS))]  # noqa: B905 - the range only cuts
    if problems:
        raise InputError(problems)
    return {key: text for key, _, text in rows}


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


def _read(path: Path) -> dict[str, str]:
    try:
        content = path.read_bytes()
    except OSError as error:
        found = error.strerror or type(error).__name__
        raise InputError(_problem(code="collection-file", path=str(path), found=found)) from error
    return parse_texts(content, path=str(path))


def _format_texts(texts: Mapping[DocId, str] | Mapping[QueryId, str]) -> bytes:
    return "".join(f"{key}\t{text}\n" for key, text in texts.items()).encode()


def _format_qrels(qrels: Mapping[QueryId, Mapping[DocId, int]]) -> bytes:
    return "".join(
        f"{query} 0 {document} {grade}\n"
        for query, grades in qrels.items()
        for document, grade in grades.items()
    ).encode()
