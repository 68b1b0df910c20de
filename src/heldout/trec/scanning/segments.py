"""What a scanner says of a text: where queries stand in it, and integers.

A scanner cuts text into segments: neighbouring rows of one query, with any lines between or
behind them that are no rows. What is regular it answers at once. What is odd it only marks; what
that means is decided elsewhere, by code that all scanners share.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "BROKEN",
    "CLOSE",
    "UNICODE",
    "UNRANKED",
    "UNSORTED",
    "Columns",
    "Found",
    "Grades",
    "Scanner",
    "Segment",
]

BROKEN: Final = 1
"""Something that only reading line by line can tell: the segment's other integers mean nothing."""
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
    flags: int
    hit: int
    hits: int
    top: int


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


class Scanner(Protocol):
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
