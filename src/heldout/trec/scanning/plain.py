"""The scanner that all others are held to: plain Python, nothing answered at once."""

import numpy as np

from heldout.trec.scanning.segments import BROKEN, Columns, Found, Segment

__all__ = ["PlainScanner"]

_BYTES = bytes({*range(0x20, 0x7F), *range(0x80, 0x100)} | {0x09})
"""What a row may hold, as far as one byte tells."""


class PlainScanner:
    """Finds where queries begin, and leaves everything else to be read line by line."""

    def __init__(self, *, columns: int) -> None:
        self._columns = columns

    def scan(self, text: bytes, *, last: bool) -> Found:
        """As `Scanner.scan`; every segment is `BROKEN`."""
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
                segments.append(_segment(content, query, start=start, end=end, line=line))
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


def _segment(content: bytes, query: bytes, *, start: int, end: int, line: int) -> Segment:
    return Segment(
        start=start,
        end=end,
        line=line,
        lines=1,
        query=start + content.find(query),
        query_length=len(query),
        row=0,
        rows=int(bool(query)),
        flags=BROKEN,
        hit=0,
        hits=0,
        top=0,
    )
