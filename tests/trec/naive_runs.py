"""A second, naive reading of a run: every row in memory, everything sorted."""

import io
import struct
from collections.abc import Iterable, Mapping
from dataclasses import replace
from importlib.util import find_spec
from typing import Any, cast

import pytest

from heldout.trec.orders import Order
from heldout.trec.reading.streams import Limits
from heldout.trec.runs import scan_run
from heldout.trec.scanning import scanners
from heldout.trec.scanning.scanners import (
    Grades,
    Scanner,
    ScanResult,
    Segment,
    TextScanner,
    _cut_lines,
    make_scanner,
)
from heldout.trec.scans import Expected, Scan

Row = tuple[str, str, int, str]
"""Query, document, rank, score as text."""


class PlainScanner:
    """The scanner that the others are held to: it answers nothing at once."""

    def __init__(self, columns: int) -> None:
        self._columns = columns

    def scan(self, text: bytes, *, last: bool) -> ScanResult:
        return _cut_lines(text, columns=self._columns, last=last)

    def columns(self, _segment: Segment) -> None:
        return None


_COMPILED = ("compiled",) if find_spec("heldout.trec.scanning._scan") else ()
SCANNERS: tuple[str, ...] = ("plain", "numpy", *_COMPILED)


def scanner_of(name: Any, grades: Grades, *, columns: int, order: Order, depth: int) -> TextScanner:
    """As `make_scanner`, which knows no plain one."""
    if name == "plain":
        return PlainScanner(columns)
    return make_scanner(name, grades, columns=columns, order=order, depth=depth)


def scan_by(scanner: str, source: Any, **rules: Any) -> Scan:
    """As `scan_run`, by a scanner of `SCANNERS`."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scanners, "make_scanner", scanner_of)
        return scan_run(source, scanner=cast("Scanner", scanner), **rules)


def scan(
    data: bytes,
    order: Order | None,
    *,
    qrels: Mapping[str, Mapping[str, int]] | None = None,
    expected: Expected | None = None,
    limits: Limits | None = None,
) -> Scan:
    """The scan, the same by every scanner that there is."""
    rules = {"path": "run", "order": order, "qrels": qrels, "expected": expected, "limits": limits}
    first, *others = (scan_by(scanner, io.BytesIO(data), **rules) for scanner in SCANNERS)
    for other in others:
        assert_same(first, other)
    return first


def assert_same(one: Scan, other: Scan) -> None:
    """Every problem, count, fact and integer."""
    assert replace(one, answers=None) == replace(other, answers=None)
    assert (one.answers is None) == (other.answers is None)
    if one.answers is not None and other.answers is not None:
        assert integers(one) == integers(other)
        assert one.signature.queries == other.signature.queries
        assert one.signature.documents.tolist() == other.signature.documents.tolist()


def format_run(rows: Iterable[Row], *, trec: bool) -> bytes:
    if trec:
        return "".join(f"{q} Q0 {d} {r} {s} tag\n" for q, d, r, s in rows).encode()
    return "".join(f"{q}\t{d}\t{r}\n" for q, d, r, _ in rows).encode()


def as_float32(score: float) -> float:
    """The nearest float32, by the machine's own conversion."""
    return float(struct.unpack("f", struct.pack("f", score))[0])


def ranked_documents(rows: Iterable[Row], order: Order) -> dict[str, list[str]]:
    """Query -> documents, best first."""
    by_query: dict[str, list[Row]] = {}
    for row in rows:
        by_query.setdefault(row[0], []).append(row)
    ranked = {}
    for query, members in by_query.items():
        if order == "msmarco":
            members.sort(key=lambda row: row[2])
        else:
            convert = as_float32 if order == "trec9" else float
            members.sort(key=lambda row: (convert(float(row[3])), row[1].encode()), reverse=True)
        ranked[query] = [row[1] for row in members]
    return ranked


def judged(
    ranked: Mapping[str, list[str]], qrels: Mapping[str, Mapping[str, int]]
) -> dict[str, tuple[list[int], list[int], int]]:
    """Query -> positions, grades, number retrieved."""
    seen = {}
    for query, documents in ranked.items():
        grades = qrels.get(query, {})
        hits = [(place, grades[d]) for place, d in enumerate(documents, 1) if d in grades]
        seen[query] = ([p for p, _ in hits], [g for _, g in hits], len(documents))
    return seen


def integers(found: Scan) -> dict[str, tuple[list[int], list[int], int]]:
    """The scan's rankings in the form of `judged`."""
    return {
        query: (ranking.positions.tolist(), ranking.grades.tolist(), ranking.retrieved)
        for query, ranking in found.rankings.items()
    }


def hash_document(document: bytes) -> int:
    """The 64-bit hash as its docstring words it, one word after the other."""
    multiplier, mask = 0x9E3779B97F4A7C15, (1 << 64) - 1
    found = len(document) * multiplier & mask
    for start in range(0, len(document), 8):
        found ^= int.from_bytes(document[start : start + 8], "little")
        found = found * multiplier & mask
        found ^= found >> 32
    for finish in (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53):
        found = (found ^ found >> 33) * finish & mask
    return found ^ found >> 33
