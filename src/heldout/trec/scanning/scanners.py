"""Scanners find queries and judged documents in the text of a run: the compiled one, and numpy's.

A scanner cuts text into segments: neighbouring rows of one query, with any lines between or
behind them that are no rows. What is regular it answers at once. What is odd it only marks; what
that means is decided elsewhere, by code that both scanners share. numpy's takes the columns of a
whole text at once, wherever no C compiler is.

Documents are known by a hash of 64 bits, the same on every machine and in every scanner. It
separates ids for comparing runs later and protects against nobody: two ids with one hash can be
made. The compiled scanner computes the same in `_scan_core.h`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from itertools import groupby
from typing import Final, Literal, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from heldout.trec import orders, ranking
from heldout.trec.text import is_clean, is_regular, parse_scores

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
        some = [documents[position] for position in of_one_size.tolist()]
        hashes[of_one_size] = _hash_filled(some, lengths[of_one_size])
    return hashes


def _hash_filled(documents: Sequence[bytes], lengths: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The hashes of ids that are all filled up to the longest, so one long one costs as many."""
    width = max(1, -(-int(lengths.max()) // _WORD))
    words = np.array(documents, dtype=f"S{width * _WORD}").view("<u8").reshape(-1, width)
    hashes = lengths * _MULTIPLIER
    for position in range(width):
        absorbed = (hashes ^ words[:, position]) * _MULTIPLIER
        absorbed ^= absorbed >> np.uint64(32)
        hashes = np.where(lengths > position * _WORD, absorbed, hashes)
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
class ScanResult:
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

    def scan(self, text: bytes, *, last: bool) -> ScanResult:
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


def _cut_lines(text: bytes, *, columns: int, last: bool) -> ScanResult:
    """Find where queries begin, and leave everything else to be read line by line."""
    segments: list[Segment] = []
    query: bytes | None = None
    start = 0
    for line, content in enumerate(text.split(b"\n")[:-1]):
        end = start + len(content) + 1
        tokens = content.split()
        is_row = (
            len(tokens) == columns
            and not content.startswith(b"#")
            and not content.translate(None, _BYTES)
        )
        if segments and (not is_row or tokens[0] == query):
            open_ = segments[-1]
            segments[-1] = open_._replace(end=end, lines=open_.lines + 1, rows=open_.rows + is_row)
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
    return ScanResult(
        consumed=start,
        lines=sum(segment.lines for segment in segments),
        segments=segments,
        hits=np.empty((0, 2), dtype=np.int64),
        tops=np.empty(0, dtype=np.uint64),
        more=False,
    )


def find_judged(documents: Sequence[bytes], grades: Mapping[str, int]) -> list[tuple[int, int]]:
    """Row and grade of each judged document, rows ascending; looks up the shorter list."""
    if len(grades) < len(documents):
        rows = dict(zip(documents, range(len(documents)), strict=True))
        judged = ((rows.get(document.encode()), grade) for document, grade in grades.items())
        return sorted((row, grade) for row, grade in judged if row is not None)
    pairs = ((row, grades.get(document.decode())) for row, document in enumerate(documents))
    return [(row, grade) for row, grade in pairs if grade is not None]


_NEWLINE = ord("\n")
_WINDOW = 1 << 18
_TREC = 6
_NO_GRADES: Mapping[str, int] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Table:
    """Columns of the rows of a text.

    Attributes:
        documents: their ids.
        ranks: as they stand there.
        sound: bool, whether the score is a usable number.
        falls: bool, whether it is below that of the row before; where ranks decide, not above.
        close: bool, whether it falls, but not as float32; nowhere but under `trec`.
    """

    documents: list[bytes]
    ranks: list[bytes]
    sound: NDArray[np.bool_]
    falls: NDArray[np.bool_]
    close: NDArray[np.bool_]

    def swapped(self, rows: slice) -> bool:
        """Check whether float32 would put a document above the one before it."""
        positions = np.flatnonzero(self.close[rows.start + 1 : rows.stop]) + rows.start + 1
        return any(self.documents[at] > self.documents[at - 1] for at in positions.tolist())


class NumpyScanner:
    """Answers queries whose ranks are 1, 2, 3, … and whose scores agree; others are `BROKEN`."""

    def __init__(self, grades: Grades, *, columns: int, order: orders.Order, depth: int) -> None:
        self._grades = grades
        self._columns = columns
        self._order = order
        self._depth = depth
        self._usual_ranks: list[bytes] = []

    def scan(self, text: bytes, *, last: bool) -> ScanResult:
        """As `TextScanner.scan`; looks at a part of a long text only: tokens take much room."""
        most = _WINDOW
        while True:
            cut = text.rfind(b"\n", 0, most) + 1 if len(text) > most else len(text)
            whole = cut == len(text)
            found = self._scan(text[:cut], last=last and whole)
            if found.consumed or whole:
                return replace(found, more=not whole)
            most *= 2

    def _scan(self, text: bytes, *, last: bool) -> ScanResult:
        tokens = text.split()
        ends = np.flatnonzero(np.frombuffer(text, dtype=np.uint8) == _NEWLINE)
        if not (is_clean(text) and is_regular(text, ends, len(tokens), self._columns)):
            return _cut_lines(text, columns=self._columns, last=last)
        queries = [(query, len(list(rows))) for query, rows in groupby(tokens[:: self._columns])]
        if not last:
            queries = queries[:-1]
        rows = sum(count for _, count in queries)
        segments = self._segments(text, queries, ends[:rows])
        hits, tops = self._answer(segments, queries, self._table(tokens[: rows * self._columns]))
        consumed = segments[-1].end if segments else 0
        return ScanResult(
            consumed=consumed, lines=rows, segments=segments, hits=hits, tops=tops, more=False
        )

    def columns(self, _segment: Segment) -> Columns | None:
        """None are kept."""
        return None

    def _segments(
        self, text: bytes, queries: Sequence[tuple[bytes, int]], ends: NDArray[np.int64]
    ) -> list[Segment]:
        """Return where the queries stand; not yet what is in them."""
        segments = []
        row = start = 0
        for query, rows in queries:
            end = int(ends[row + rows - 1]) + 1
            segments.append(
                Segment(
                    start=start,
                    end=end,
                    line=row,
                    lines=rows,
                    query=text.index(query, start),
                    query_length=len(query),
                    row=row,
                    rows=rows,
                )
            )
            row, start = row + rows, end
        return segments

    def _table(self, tokens: list[bytes]) -> _Table:
        document = 2 if self._columns == _TREC else 1
        documents = tokens[document :: self._columns]
        sound = np.ones(len(documents), dtype=np.bool_)
        falls = np.ones(len(documents), dtype=np.bool_)
        close = np.zeros(len(documents), dtype=np.bool_)
        if self._columns == _TREC and documents:
            scores = parse_scores(tokens[document + 2 :: self._columns])
            if scores is None:
                sound[:] = False
            else:
                keys = ranking.sort_keys(scores, self._order)
                sound = np.isfinite(keys)
                before, after = keys[:-1], keys[1:]
                falls[1:] = after <= before if self._order == "msmarco" else after < before
                if self._order == "trec":
                    close[1:] = ranking.equal_as_float32(keys) & falls[1:]
        return _Table(
            documents=documents,
            ranks=tokens[document + 1 :: self._columns],
            sound=sound,
            falls=falls,
            close=close,
        )

    def _answer(
        self, segments: list[Segment], queries: Sequence[tuple[bytes, int]], table: _Table
    ) -> tuple[NDArray[np.int64], NDArray[np.uint64]]:
        """Hits and tops of the regular segments, which are marked so in place."""
        hits: list[tuple[int, int]] = []
        tops: list[bytes] = []
        for position, (segment, (query, _)) in enumerate(zip(segments, queries, strict=True)):
            rows = slice(segment.row, segment.row + segment.rows)
            documents = table.documents[rows]
            if len(set(documents)) < segment.rows or not self._regular(table, rows):
                continue
            found = find_judged(documents, self._grades.get(query.decode(), _NO_GRADES))
            segments[position] = segment._replace(
                flags=CLOSE * table.swapped(rows), hit=len(hits), hits=len(found), top=len(tops)
            )
            hits += found
            tops += documents[: self._depth]
        return np.array(hits, dtype=np.int64).reshape(-1, 2), hash_documents(tops)

    def _regular(self, table: _Table, rows: slice) -> bool:
        count = rows.stop - rows.start
        for rank in range(len(self._usual_ranks) + 1, count + 1):
            self._usual_ranks.append(b"%d" % rank)
        return (
            table.ranks[rows] == self._usual_ranks[:count]
            and bool(table.sound[rows].all())
            and bool(table.falls[rows.start + 1 : rows.stop].all())
        )


_FIELDS = len(Segment._fields)
_ROW = np.dtype([("key", "f8"), ("rank", "i8"), ("document", "u4"), ("length", "u4")])


class CompiledScanner:
    """`_scan.c`: one hash probe a line; releases the GIL; serves one thread at a time.

    Raises:
        ImportError: it was not built; it is where a C compiler is.
    """

    def __init__(self, grades: Grades, *, columns: int, order: orders.Order, depth: int) -> None:
        judged = {
            query: documents if isinstance(documents, dict) else dict(documents)
            for query, documents in grades.items()
        }
        from heldout.trec.scanning import _scan  # noqa: PLC0415 - not everywhere built

        self._most = _scan.MOST_SEGMENTS
        self._inner = _scan.Scanner(judged, columns, orders.ORDERS.index(order), depth)

    def scan(self, text: bytes, *, last: bool) -> ScanResult:
        """As `TextScanner.scan`."""
        consumed, lines, segments, hits, tops = self._inner.scan(text, last)
        rows = np.frombuffer(segments, dtype=np.int64).reshape(-1, _FIELDS).tolist()
        return ScanResult(
            consumed=consumed,
            lines=lines,
            segments=[Segment._make(row) for row in rows],
            hits=np.frombuffer(hits, dtype=np.int64).reshape(-1, 2),
            tops=np.frombuffer(tops, dtype=np.uint64),
            more=len(rows) >= self._most,
        )

    def columns(self, segment: Segment) -> Columns:
        """As `TextScanner.columns`."""
        rows = np.frombuffer(self._inner.columns(segment.row, segment.rows), dtype=_ROW)
        return Columns(
            ranks=rows["rank"],
            keys=rows["key"],
            starts=rows["document"],
            lengths=rows["length"],
        )


Scanner = Literal["compiled", "numpy"]
INTERFACE: Final = 2
"""What `CompiledScanner` was written for; `_scan.c` says the same, unless it was built long ago."""


def find_scanner() -> Scanner:
    """Return the compiled scanner where it loads and is of this version, else that of numpy."""
    try:
        built = import_module("heldout.trec.scanning._scan")
    except ImportError:
        return "numpy"
    return "compiled" if built.INTERFACE == INTERFACE else "numpy"


def make_scanner(
    name: Scanner | None, grades: Grades, *, columns: int, order: orders.Order, depth: int
) -> TextScanner:
    """Make a scanner for one run.

    Args:
        name: who scans; `None` for the fastest.
        grades: the judgments to look for.
        columns: 3 or 6.
        order: how documents are ordered; by rank if there are 3 columns.
        depth: hashes kept of each query's first documents.

    Raises:
        ModuleNotFoundError: the compiled scanner was asked for and not built.
    """
    made = CompiledScanner if (name or find_scanner()) == "compiled" else NumpyScanner
    return made(grades, columns=columns, order=order, depth=depth)
