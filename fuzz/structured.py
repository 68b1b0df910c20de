"""Bytes as a run, judgments, and what is expected of the run.

Every byte is a choice, so that a fuzzer that changes a byte changes one thing: a token, a blank,
where a query goes on. All of what is odd in real files occurs often, all of it together seldom.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from heldout.trec.orders import ORDERS, Order
from heldout.trec.reading.streams import Limits
from heldout.trec.scans import Expected

__all__ = ["Case", "make_case"]

T = TypeVar("T")

QUERIES = ["1", "q", "01", "ü", "12345678", "123456789", "#1", "q2"]
DOCUMENTS = [
    *("a", "b", "aa", "d0000001", "d0000002", "d00000012", "é", "\U0001f600", "-"),
    *("x" * 23, "x" * 64, "x" * 65, "y" * 300),
]
RANKS = ["1", "2", "01", "0", "-1", "x", "1.0", "9" * 18, "9" * 19, "0" * 18 + "1", "\u0661"]
SCORES = [
    *("1", "1.0", "0", "-0", "-1", "1e-7", "0.1", "+.5e-3", "7.", "1.000000001", "2e1"),
    *("9007199254740993", "9007199254740992", "1234567890123456789", "0.1234567890123456789"),
    *("1e-40", "1e-46", "5e-324", "1e22", "1e23", "1e39", "1e400", "1e-400", "1e309"),
    *("3.4028235677973366e38", "nan", "-inf", "0x10", "1_0", "1,5", ".", "e1", "1e", "--1", "é"),
]  # fmt: skip
TAGS = ["t", "tag", "é", "12345678", "\u00ad", "t\x01"]
LINES = [
    *(b"", b" \t", b"#", b"# x", b"1", b"1 a", b"1 Q0 a 1 2 t x", b"1 a 1 2", b"q\tc\xff\t1"),
    *(b"q Q0 \xc0\xaf 1 2 t", b"1\t\x1b[2Jc\t3", b"1\x0ca\t1", b"1\x7f\ta\t1", b"1 Q0 a\x0b9 2 t"),
    *(b"1\ta\r\t1", b"\x0b", b"\r", b"1\x0b Q0 b 1 2 t", b" 1 a 1", b" 1 Q0 a 1 2 t ", b"\x1c"),
    *("1\tc\u200b\t3".encode(), "1\u00a0a\t3".encode(), "q Q0 a 1 2 \u202et".encode()),
    *(b"1\ta\0\t1", b"01 Q0 a 2 1 t\r"),
]  # fmt: skip
BLANKS = [" ", "\t", "  ", "\t "]
ENDS = ["\n", "\n", "\n", "\n", "\r\n", " \n", "\t\r\n"]
_LINES = 60


class Choices:
    """Bytes taken one after the other; zeros at their end."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    @property
    def left(self) -> int:
        return max(0, len(self._data) - self._at)

    def below(self, count: int) -> int:
        """A number from 0 to `count` - 1, at most 255."""
        taken = self._data[self._at] if self.left else 0
        self._at += 1
        return taken % count

    def one(self, items: Sequence[T]) -> T:
        return items[self.below(len(items))]

    def seldom(self) -> bool:
        return self.below(12) == 1

    def some(self, items: Sequence[T]) -> list[T]:
        chosen = self.below(256) | self.below(256) << 8
        return [item for place, item in enumerate(items) if chosen >> place & 1]

    def bytes(self, count: int) -> bytes:
        taken = self._data[self._at : self._at + count]
        self._at += count
        return taken


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One input of `scan_run`, and how small its buffers are.

    Attributes:
        run: the file.
        order: how documents are ordered.
        qrels: the judgments.
        expected: what the run must be like.
        limits: how much is read.
        depth: documents of a query in the signature.
        piece: bytes that a reader yields at once.
        window: bytes that numpy looks at.
        in_memory: bytes that are gathered before they go to a database.
    """

    run: bytes
    order: Order
    qrels: dict[str, dict[str, int]]
    expected: Expected
    limits: Limits
    depth: int
    piece: int
    window: int
    in_memory: int


def make_case(data: bytes) -> Case:
    """The case that these bytes choose."""
    choices = Choices(data)
    return Case(
        order=choices.one(ORDERS),
        qrels=_qrels(choices),
        expected=_expected(choices) if choices.below(3) == 1 else Expected(),
        limits=_limits(choices) if choices.below(3) == 1 else Limits(),
        depth=choices.one([100, 0, 1, 3]),
        piece=choices.one([1 << 20, 40, 100, 300, 7]),
        window=choices.one([1 << 18, 1, 30, 100]),
        in_memory=50 if choices.seldom() else 1 << 23,
        run=_run(choices),
    )


def _qrels(choices: Choices) -> dict[str, dict[str, int]]:
    return {
        query: {document: choices.below(5) - 1 for document in choices.some(DOCUMENTS)}
        for query in choices.some(QUERIES)[:3]
    }


def _expected(choices: Choices) -> Expected:
    return Expected(
        queries=choices.some(QUERIES) if choices.below(2) else None,
        min_depth=choices.one([None, None, 1, 2, 3]),
        max_depth=choices.one([None, None, 1, 2, 3]),
        candidates={query: set(choices.some(DOCUMENTS)) for query in choices.some(QUERIES)[:2]}
        if choices.below(2)
        else None,
        complete=choices.below(2) == 1,
    )


def _limits(choices: Choices) -> Limits:
    default = Limits()
    return Limits(
        lines=choices.one([default.lines, default.lines, 5, 20]),
        line_bytes=choices.one([default.line_bytes, default.line_bytes, 20, 60]),
        queries=choices.one([default.queries, default.queries, 1, 3]),
        documents=choices.one([default.documents, default.documents, 1, 3]),
        query_bytes=choices.one([default.query_bytes, default.query_bytes, 60, 200]),
        problems=choices.one([default.problems, 1, 3]),
    )


def _run(choices: Choices) -> bytes:
    trec = choices.below(3) > 0
    pieces = [b"\xef\xbb\xbf"] if choices.seldom() else []
    query, rank, tag = QUERIES[0], 0, TAGS[0]
    close = choices.below(4) == 1  # equal as float32, and in float64 not
    while choices.left > 0 and len(pieces) < _LINES:
        kind = choices.below(16)
        if kind == 0:
            pieces.append(choices.one(LINES) + choices.one(ENDS).encode())
            continue
        if kind == 1:
            pieces.append(choices.bytes(choices.below(32)) + b"\n")
            continue
        if kind < 6:  # noqa: PLR2004  a quarter of the lines begin a query
            query, rank = choices.one(QUERIES), 0
            tag = choices.one(TAGS) if choices.seldom() else tag
        rank += 1
        pieces.append(_row(choices, trec, query, rank, tag, close=close).encode())
    text = b"".join(pieces)
    return text.removesuffix(b"\n") if choices.seldom() else text


def _row(choices: Choices, trec: bool, query: str, rank: int, tag: str, *, close: bool) -> str:  # noqa: FBT001
    odd = choices.below(4) == 1
    blank = choices.one(BLANKS) if odd else " "
    longer = f"doc{rank - 1}0"  # begins as the document of the rank before
    usual = (f"doc{rank}", f"doc{rank}", f"document{rank:08d}", longer)
    document = choices.one([*DOCUMENTS, *usual])
    column, score = str(rank), f"{100 - rank / 1e7:.7f}" if close else str(100 - rank)
    if odd:
        column = choices.one([column, column, *RANKS])
        score = choices.one([score, *SCORES])
    tokens = (query, "Q0", document, column, score, tag) if trec else (query, document, column)
    return blank.join(tokens) + (choices.one(ENDS) if odd else "\n")
