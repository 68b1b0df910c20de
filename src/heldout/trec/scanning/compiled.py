"""The compiled scanner: `_scan.c`, built with the package where a C compiler is."""

import numpy as np

from heldout.trec.ranking import ORDERS, Order
from heldout.trec.scanning import _scan
from heldout.trec.scanning.segments import Columns, Found, Grades, Segment

__all__ = ["CompiledScanner"]

_FIELDS = len(Segment._fields)
_ROW = np.dtype([("key", "f8"), ("rank", "i8"), ("document", "u4"), ("length", "u4")])


class CompiledScanner:
    """One hash probe a line; releases the GIL; serves one thread at a time."""

    def __init__(self, grades: Grades, *, columns: int, order: Order, depth: int) -> None:
        judged = {
            query: documents if isinstance(documents, dict) else dict(documents)
            for query, documents in grades.items()
        }
        self._inner = _scan.Scanner(judged, columns, ORDERS.index(order), depth)

    def scan(self, text: bytes, *, last: bool) -> Found:
        """As `Scanner.scan`."""
        consumed, lines, segments, hits, tops = self._inner.scan(text, last)
        rows = np.frombuffer(segments, dtype=np.int64).reshape(-1, _FIELDS).tolist()
        return Found(
            consumed=consumed,
            lines=lines,
            segments=[Segment._make(row) for row in rows],
            hits=np.frombuffer(hits, dtype=np.int64).reshape(-1, 2),
            tops=np.frombuffer(tops, dtype=np.uint64),
            more=len(rows) >= _scan.MOST_SEGMENTS,
        )

    def columns(self, segment: Segment) -> Columns:
        """As `Scanner.columns`."""
        rows = np.frombuffer(self._inner.columns(segment.row, segment.rows), dtype=_ROW)
        return Columns(
            ranks=rows["rank"],
            keys=rows["key"],
            starts=rows["document"],
            lengths=rows["length"],
        )
