"""Official candidates: per query the documents that a re-ranking run may order."""

from collections.abc import Mapping
from typing import BinaryIO

from heldout.errors import Problem
from heldout.trec.problems import ProblemLog, show
from heldout.trec.reading.streams import Limits, TextReader, read_lines
from heldout.trec.text import check_line

__all__ = ["read_candidates"]

_TOP1000 = 4
_DOCUMENT_COLUMN = {2: 1, 3: 1, 6: 2}
"""Columns separated by blanks or tabs -> where the document id stands."""


def read_candidates(
    source: BinaryIO, *, path: str, limits: Limits | None = None
) -> Mapping[str, frozenset[str]]:
    """Read candidates to their end: plain, gzip, bzip2 or zstd.

    All rows have the layout of the first: query and document; a run of 3 or 6 columns; or, as
    MS MARCO gives its top 1000, query, document, query text and passage, separated by tabs.

    Args:
        source: its bytes.
        path: its name for messages.
        limits: how much is read.

    Returns:
        Query -> documents; a document that is listed twice counts once.

    Raises:
        InputError: all problems up to `limits.problems`: `wrong-columns`, `bad-utf8`,
            `control-character`, and those of `TextReader`.
    """
    limits = limits or Limits()
    log = ProblemLog(limits.problems)
    candidates: dict[str, set[str]] = {}
    width = 0
    with TextReader(source, path=path, limits=limits) as reader:
        for number, line in read_lines(reader):
            problem = check_line(line, path=path, number=number, prose=True)
            if problem is not None:
                log.add(problem)
                continue
            columns = _split(line)
            width = width or len(columns)
            if len(columns) != width or width not in {*_DOCUMENT_COLUMN, _TOP1000}:
                log.add(_wrong_columns(line, len(columns), path, number))
                continue
            document = columns[_DOCUMENT_COLUMN.get(width, 1)].decode()
            candidates.setdefault(columns[0].decode(), set()).add(document)
    if not candidates and not log.errors:
        log.add(Problem(code="empty-file", path=path, found="no rows", expected="at least one row"))
    log.raise_errors()
    return {query: frozenset(documents) for query, documents in candidates.items()}


def _split(line: bytes) -> list[bytes]:
    by_tab = line.split(b"\t")
    return by_tab if len(by_tab) == _TOP1000 else line.split()


def _wrong_columns(line: bytes, found: int, path: str, number: int) -> Problem:
    return Problem(
        code="wrong-columns",
        path=path,
        line=number,
        found=f"{found} columns in {show(line)}",
        expected="query and document, a run of 3 or 6 columns, or query, document and two texts "
        "separated by tabs; the same in every line",
    )
