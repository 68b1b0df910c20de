"""Which scanner there is for which name."""

import numpy as np

from heldout.trec import accelerators
from heldout.trec.orders import ORDERS, Order
from heldout.trec.scanning import _scan
from heldout.trec.scanning.numeric import NumpyScanner
from heldout.trec.scanning.plain import Columns, Found, Grades, PlainScanner, Scanner, Segment

# The compiled scanner: `_scan.c`, built with the package where a C compiler is.

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


def make_scanner(
    name: accelerators.Scanner, grades: Grades, *, columns: int, order: Order, depth: int
) -> Scanner:
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
