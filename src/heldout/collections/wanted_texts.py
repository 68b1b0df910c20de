"""The texts of a few documents out of a large table, line by line, so that only these are kept."""

from collections.abc import Collection
from typing import BinaryIO

from heldout.errors import Problem
from heldout.trec.problems import ProblemLog, show
from heldout.trec.reading.streams import Limits, TextReader, read_lines

__all__ = ["read_wanted_texts"]

_LONGEST = 64 << 20
_MOST = 1 << 37
"""Bytes: a collection is larger than any other file, plain (3 GB of MS MARCO) or packed."""


def read_wanted_texts(source: BinaryIO, wanted: Collection[str], *, path: str) -> dict[str, str]:
    """Read a table of documents, `id<TAB>text`, to its end: plain, gzip, bzip2 or zstd.

    Args:
        source: its bytes.
        wanted: ids of the documents to keep.
        path: its name for messages.

    Returns:
        Id -> text, of those that are there, in the order of the table.

    Raises:
        InputError: codes `collection-row`: a line without a tab; `collection-id`: a wanted
            document twice; `collection-encoding`: its text is not UTF-8; and those of
            `TextReader`.
    """
    keys = {one.encode() for one in wanted}
    limits = Limits(compressed_bytes=_MOST, bytes=_MOST, line_bytes=_LONGEST)
    log = ProblemLog(limits.problems)
    found: dict[str, str] = {}
    with TextReader(source, path=path, limits=limits) as reader:
        for number, line in read_lines(reader):
            key, tab, text = line.rstrip(b"\r").partition(b"\t")
            if not tab:
                log.add(_problem("collection-row", path, number, f"no tab in {show(key)}"))
            elif key in keys:
                problem = _keep(found, key, text, path, number)
                if problem is not None:
                    log.add(problem)
    log.raise_errors()
    return found


def _keep(found: dict[str, str], key: bytes, text: bytes, path: str, number: int) -> Problem | None:
    name = key.decode()
    if name in found:
        return _problem("collection-id", path, number, f"{show(name)} again")
    try:
        found[name] = text.decode()
    except UnicodeDecodeError:
        return _problem("collection-encoding", path, number, f"the text of {show(name)}")
    return None


_EXPECTED = {
    "collection-encoding": "UTF-8 text",
    "collection-id": "an id once in the file",
    "collection-row": "id, tab, text",
}


def _problem(code: str, path: str, line: int, found: str) -> Problem:
    return Problem(code=code, path=path, line=line, found=found, expected=_EXPECTED[code])
