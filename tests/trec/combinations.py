"""Every way to read a run: who scans it, in blocks of which size."""

import bz2
import gzip
import io
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

import pytest
import zstandard
from naive_runs import SCANNERS, assert_same, scan_by

from heldout.scoring.evaluate import evaluate
from heldout.scoring.measures import Measure, parse_measure
from heldout.trec.orders import Order
from heldout.trec.reading import sources as archives
from heldout.trec.reading.streams import Limits
from heldout.trec.scanning import scanners as numeric
from heldout.trec.scans import Expected, Scan

Qrels = Mapping[str, Mapping[str, int]]

NAMES = {
    *("RR", "nDCG", "AP", "P@3", "R@5", "Success@2", "Bpref", "RBP(p=0.7,max_rel=3)", "ERR"),
    *("FirstRel", "Unjudged@4"),
}
MEASURES: tuple[Measure, ...] = tuple(parse_measure(name) for name in sorted(NAMES))
"""Each measure that asks for judgments alone."""

PACK: dict[str, Callable[[bytes], bytes]] = {
    "plain": bytes,
    "gzip": lambda data: gzip.compress(data, 1, mtime=0),
    "bzip2": lambda data: bz2.compress(data, 1),
    "zstd": zstandard.ZstdCompressor(write_checksum=True).compress,
}


@contextmanager
def blocks_of(size: int) -> Iterator[None]:
    """Text comes in blocks of about so many bytes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(archives, "PIECE", size)
        patch.setattr(numeric, "_WINDOW", max(size // 2, 1))
        yield


@dataclass(frozen=True, slots=True)
class Seen:
    """A scan and the bytes of every score."""

    scan: Scan
    scores: tuple[bytes, ...]


def see(
    data: bytes,
    order: Order,
    scanner: str,
    *,
    qrels: Qrels,
    expected: Expected | None = None,
    limits: Limits | None = None,
) -> Seen:
    scan = scan_by(
        scanner,
        io.BytesIO(data),
        path="run",
        order=order,
        qrels=qrels,
        expected=expected,
        limits=limits,
    )
    return Seen(scan, _scores(scan, qrels) if scan.ok else ())


def _scores(scan: Scan, qrels: Qrels) -> tuple[bytes, ...]:
    found = evaluate(scan.rankings, qrels, MEASURES)
    return tuple(
        part
        for scores in found.scores.values()
        for part in (
            scores.values.tobytes(),
            scores.defined.tobytes(),
            repr((scores.mean, scores.why, scores.n, scores.without_relevant)).encode(),
        )
    )


def assert_agree(one: Seen, other: Seen) -> None:
    """In every problem, count, fact, integer, and bit of a score."""
    assert_same(one.scan, other.scan)
    assert one.scores == other.scores


def see_by_all(
    data: bytes,
    order: Order,
    *,
    qrels: Qrels,
    expected: Expected | None = None,
    limits: Limits | None = None,
) -> Seen:
    """What all scanners see, the same."""
    seen = [
        see(data, order, scanner, qrels=qrels, expected=expected, limits=limits)
        for scanner in SCANNERS
    ]
    for other in seen[1:]:
        assert_agree(seen[0], other)
    return seen[0]
