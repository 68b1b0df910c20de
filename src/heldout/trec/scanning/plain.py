"""The scanner that all others are held to, what a scanner returns, and the hash of ids.

A scanner cuts text into segments: neighbouring rows of one query, with any lines between or
behind them that are no rows. What is regular it answers at once. What is odd it only marks; what
that means is decided elsewhere, by code that all scanners share. The plain scanner answers nothing
at once.

The hash has 64 bits and is the same on every machine and in every scanner. It separates ids for
comparing runs later and protects against nobody: two ids with one hash can be made. The compiled
scanner computes the same in `_scan_core.h`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

_WORD = 8
_SHORT = 64
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
_FINISH = (np.uint64(0xFF51AFD7ED558CCD), np.uint64(0xC4CEB9FE1A85EC53))


def hash_documents(documents: Sequence[bytes]) -> NDArray[np.uint64]:
    """The hash of each id.

    An id is read as little-endian words of 8 bytes, the last one filled up with zeros; beginning
    with its length, each word is absorbed by a multiplication and a shift, and the end is that of
    MurmurHash3 (Appleby 2011).

    Args:
        documents: ids in UTF-8, without NUL.

    Returns:
        uint64, one per id.
    """
    if not documents:
        return np.empty(0, dtype=np.uint64)
    lengths = np.fromiter(map(len, documents), dtype=np.uint64, count=len(documents))
    if lengths.max() <= _SHORT:
        return _hash_filled(documents, lengths)
    hashes = np.empty(len(documents), dtype=np.uint64)
    _, size = np.frexp(np.maximum(lengths, _SHORT))
    for of_one_size in (np.flatnonzero(size == one) for one in np.unique(size)):
        some = [documents[place] for place in of_one_size.tolist()]
        hashes[of_one_size] = _hash_filled(some, lengths[of_one_size])
    return hashes


def _hash_filled(documents: Sequence[bytes], lengths: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The hashes of ids that are all filled up to the longest, so one long one costs as many."""
    width = max(1, -(-int(lengths.max()) // _WORD))
    words = np.array(documents, dtype=f"S{width * _WORD}").view("<u8").reshape(-1, width)
    hashes = lengths * _MULTIPLIER
    for place in range(width):
        absorbed = (hashes ^ words[:, place]) * _MULTIPLIER
        absorbed ^= absorbed >> np.uint64(32)
        hashes = np.where(lengths > place * _WORD, absorbed, hashes)
    for multiplier in _FINISH:
        hashes = (hashes ^ (hashes >> np.uint64(33))) * multiplier
    finished: NDArray[np.uint64] = hashes ^ (hashes >> np.uint64(33))
    return finished


BROKEN: Final = 1
"""Something that only reading line by line shows: the segment's other integers mean nothing."""
UNICODE: Final = 2
"""Bytes beyond ASCII: they may be no UTF-8, or invisible."""
UNSORTED: Final = 4
"""Scores do not fall strictly and decide, or they rise and ranks decide."""
UNRANKED: Final = 8
"""Ranks are not 1, 2, 3, … in the order of the rows."""
CLOSE: Final = 16
"""Under `trec`: scores of two neighbours fall, but not as float32, and `trec9` would swap them."""

Grades = Mapping[str, Mapping[str, int]]
"""Query -> document -> grade."""


class Segment(NamedTuple):
    """Neighbouring lines of one query.

    Attributes:
        start: first byte in the text.
        end: byte after its last newline.
        line: its first line, counted from 0 in the text.
        lines: how many there are.
        query: first byte of the query's id.
        query_length: its length; 0 if no line is a row.
        row: its first row in the scanner's columns.
        rows: how many lines are rows.
        flags: `BROKEN`, `UNICODE`, `UNSORTED`, `UNRANKED`, `CLOSE`.
        hit: its first row in `Found.hits`.
        hits: how many of its documents are judged.
        top: its first hash in `Found.tops`; there are as many as rows, at most the depth.
    """

    start: int
    end: int
    line: int
    lines: int
    query: int
    query_length: int
    row: int
    rows: int
    flags: int = BROKEN
    hit: int = 0
    hits: int = 0
    top: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What a scanner found in a text.

    Attributes:
        consumed: bytes that are dealt with; the rest must come again, with more text behind it.
        lines: lines in them.
        segments: in the order of the text.
        hits: int64, shape (hits, 2): row within its segment from 0, grade; rows ascend.
        tops: uint64, hashes of each segment's first documents in the order of the file.
        more: whether there may be whole segments in the rest, which were left to save memory.
    """

    consumed: int
    lines: int
    segments: Sequence[Segment]
    hits: NDArray[np.int64]
    tops: NDArray[np.uint64]
    more: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """The rows of a segment that is not broken.

    Attributes:
        ranks: int64.
        keys: float64, scores as the order compares them; 0 in files without scores.
        starts: uint32, first byte of the document's id in the text.
        lengths: uint32, its length.
    """

    ranks: NDArray[np.int64]
    keys: NDArray[np.float64]
    starts: NDArray[np.uint32]
    lengths: NDArray[np.uint32]


class TextScanner(Protocol):
    """Finds segments."""

    def scan(self, text: bytes, *, last: bool) -> Found:
        r"""Cut whole lines into segments.

        Args:
            text: lines that end with `\n`.
            last: whether no more text follows; otherwise the last query is left, since it may go
                on. If nothing is consumed, more text is needed.
        """

    def columns(self, segment: Segment) -> Columns | None:
        """Rows of a segment of the latest text, `None` if this scanner keeps none."""


_BYTES = bytes({*range(0x20, 0x7F), *range(0x80, 0x100)} | {0x09})
"""What a row may hold, as far as one byte shows."""


class PlainScanner:
    """Finds where queries begin, and leaves everything else to be read line by line."""

    def __init__(self, *, columns: int) -> None:
        self._columns = columns

    def scan(self, text: bytes, *, last: bool) -> Found:
        """As `TextScanner.scan`; every segment is `BROKEN`."""
        segments: list[Segment] = []
        query: bytes | None = None
        start = 0
        for line, content in enumerate(text.split(b"\n")[:-1]):
            end = start + len(content) + 1
            tokens = content.split()
            is_row = (
                len(tokens) == self._columns
                and not content.startswith(b"#")
                and not content.translate(None, _BYTES)
            )
            if segments and (not is_row or tokens[0] == query):
                open_ = segments[-1]
                segments[-1] = open_._replace(
                    end=end, lines=open_.lines + 1, rows=open_.rows + is_row
                )
            else:
                query = tokens[0] if is_row else b""
                segments.append(
                    Segment(
                        start=start,
                        end=end,
                        line=line,
                        lines=1,
                        query=start + content.find(query),
                        query_length=len(query),
                        row=0,
                        rows=int(is_row),
                    )
                )
            start = end
        if segments and not last and segments[-1].query_length:
            start = segments.pop().start
        return Found(
            consumed=start,
            lines=sum(segment.lines for segment in segments),
            segments=segments,
            hits=np.empty((0, 2), dtype=np.int64),
            tops=np.empty(0, dtype=np.uint64),
            more=False,
        )

    def columns(self, _segment: Segment) -> Columns | None:
        """None are kept."""
        return None


def find_judged(documents: Sequence[bytes], grades: Mapping[str, int]) -> list[tuple[int, int]]:
    """Row and grade of each judged document, rows ascending; looks up the shorter list."""
    if len(grades) < len(documents):
        rows = dict(zip(documents, range(len(documents)), strict=True))
        judged = ((rows.get(document.encode()), grade) for document, grade in grades.items())
        return sorted((row, grade) for row, grade in judged if row is not None)
    pairs = ((row, grades.get(document.decode())) for row, document in enumerate(documents))
    return [(row, grade) for row, grade in pairs if grade is not None]
