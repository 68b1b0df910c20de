"""Three scanners find queries and judged documents in a text.

The compiled one; the one of numpy, which takes the columns of a whole text at once; and the plain
one (`scanning.plain`), which the others are held to.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from heldout.trec.accelerators import Scanner
from heldout.trec.orders import ORDERS, Order
from heldout.trec.ranking import equal_as_float32, sort_keys
from heldout.trec.scanning.plain import (
    CLOSE,
    Columns,
    Found,
    Grades,
    PlainScanner,
    Segment,
    TextScanner,
    find_judged,
    hash_documents,
)
from heldout.trec.text import is_clean, is_regular, parse_scores

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
        """Whether float32 would put a document above the one before it."""
        places = np.flatnonzero(self.close[rows.start + 1 : rows.stop]) + rows.start + 1
        return any(self.documents[at] > self.documents[at - 1] for at in places.tolist())


class NumpyScanner:
    """Answers queries whose ranks are 1, 2, 3, … and whose scores agree; others are `BROKEN`."""

    def __init__(self, grades: Grades, *, columns: int, order: Order, depth: int) -> None:
        self._grades = grades
        self._columns = columns
        self._order = order
        self._depth = depth
        self._plain = PlainScanner(columns=columns)
        self._usual_ranks: list[bytes] = []

    def scan(self, text: bytes, *, last: bool) -> Found:
        """As `TextScanner.scan`; looks at a part of a long text only: tokens take much room."""
        most = _WINDOW
        while True:
            cut = text.rfind(b"\n", 0, most) + 1 if len(text) > most else len(text)
            whole = cut == len(text)
            found = self._scan(text[:cut], last=last and whole)
            if found.consumed or whole:
                return replace(found, more=not whole)
            most *= 2

    def _scan(self, text: bytes, *, last: bool) -> Found:
        tokens = text.split()
        ends = np.flatnonzero(np.frombuffer(text, dtype=np.uint8) == _NEWLINE)
        if not (is_clean(text) and is_regular(text, ends, len(tokens), self._columns)):
            return self._plain.scan(text, last=last)
        queries = [(query, len(list(rows))) for query, rows in groupby(tokens[:: self._columns])]
        if not last:
            queries = queries[:-1]
        rows = sum(count for _, count in queries)
        segments = self._segments(text, queries, ends[:rows])
        hits, tops = self._answer(segments, queries, self._table(tokens[: rows * self._columns]))
        consumed = segments[-1].end if segments else 0
        return Found(
            consumed=consumed, lines=rows, segments=segments, hits=hits, tops=tops, more=False
        )

    def columns(self, _segment: Segment) -> Columns | None:
        """None are kept."""
        return None

    def _segments(
        self, text: bytes, queries: Sequence[tuple[bytes, int]], ends: NDArray[np.int64]
    ) -> list[Segment]:
        """Where the queries stand; not yet what is in them."""
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
                keys = sort_keys(scores, self._order)
                sound = np.isfinite(keys)
                before, after = keys[:-1], keys[1:]
                falls[1:] = after <= before if self._order == "msmarco" else after < before
                if self._order == "trec":
                    close[1:] = equal_as_float32(keys) & falls[1:]
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
        for place, (segment, (query, _)) in enumerate(zip(segments, queries, strict=True)):
            rows = slice(segment.row, segment.row + segment.rows)
            documents = table.documents[rows]
            if len(set(documents)) < segment.rows or not self._regular(table, rows):
                continue
            found = find_judged(documents, self._grades.get(query.decode(), _NO_GRADES))
            segments[place] = segment._replace(
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

    def __init__(self, grades: Grades, *, columns: int, order: Order, depth: int) -> None:
        judged = {
            query: documents if isinstance(documents, dict) else dict(documents)
            for query, documents in grades.items()
        }
        from heldout.trec.scanning import _scan  # noqa: PLC0415 - not everywhere built

        self._most = _scan.MOST_SEGMENTS
        self._inner = _scan.Scanner(judged, columns, ORDERS.index(order), depth)

    def scan(self, text: bytes, *, last: bool) -> Found:
        """As `TextScanner.scan`."""
        consumed, lines, segments, hits, tops = self._inner.scan(text, last)
        rows = np.frombuffer(segments, dtype=np.int64).reshape(-1, _FIELDS).tolist()
        return Found(
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


def make_scanner(
    name: Scanner, grades: Grades, *, columns: int, order: Order, depth: int
) -> TextScanner:
    """A scanner for one run.

    Args:
        name: who scans.
        grades: the judgments to look for.
        columns: 3 or 6.
        order: how documents are ordered; by rank if there are 3 columns.
        depth: hashes kept of each query's first documents.

    Raises:
        ModuleNotFoundError: the compiled scanner was asked for and not built.
    """
    if name == "compiled":
        return CompiledScanner(grades, columns=columns, order=order, depth=depth)
    if name == "numpy":
        return NumpyScanner(grades, columns=columns, order=order, depth=depth)
    return PlainScanner(columns=columns)
