"""Every way to read a run: who scans it, who unpacks it, in blocks of which size."""

import bz2
import gzip
import io
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import product
from typing import get_args

import pytest
import zstandard
from naive_runs import assert_same

from heldout.scoring.evaluate import evaluate
from heldout.scoring.measures import Measure, parse_measure
from heldout.trec.accelerators import Accelerators, Bzip2, Gzip, Scanner
from heldout.trec.orders import Order
from heldout.trec.reading import sources as archives
from heldout.trec.reading.streams import Limits
from heldout.trec.runs import scan_run
from heldout.trec.scanning import scanners as numeric
from heldout.trec.scans import Expected, Scan

Qrels = Mapping[str, Mapping[str, int]]

NAMES = {
    "RR",
    "nDCG",
    "AP",
    "P@3",
    "R@5",
    "Success@2",
    "Bpref",
    "RBP(p=0.7,max_rel=3)",
    "ERR",
    "FirstRel",
    "Unjudged@4",
}
MEASURES: tuple[Measure, ...] = tuple(parse_measure(name) for name in sorted(NAMES))
"""Each measure that asks for judgments alone."""

PACK: dict[str, Callable[[bytes], bytes]] = {
    "plain": bytes,
    "gzip": lambda data: gzip.compress(data, 1, mtime=0),
    "bzip2": lambda data: bz2.compress(data, 1),
    "zstd": zstandard.ZstdCompressor(write_checksum=True).compress,
}


def is_there(name: str) -> bool:
    """Whether a scanner or decompressor is installed."""
    if name in {"plain", "numpy", "stdlib"}:
        return True
    if name == "lbzip2":
        return shutil.which(name) is not None
    return find_spec("heldout.trec.scanning._scan" if name == "compiled" else name) is not None


ALL: tuple[str, ...] = (*get_args(Scanner), *get_args(Bzip2), *get_args(Gzip))
SCANNERS: tuple[Scanner, ...] = tuple(name for name in get_args(Scanner) if is_there(name))
BZIP2: tuple[Bzip2, ...] = tuple(name for name in get_args(Bzip2) if is_there(name))
GZIP: tuple[Gzip, ...] = tuple(name for name in get_args(Gzip) if is_there(name))


def combinations(kind: str | None = None) -> list[Accelerators]:
    """All there are; for a kind of file only those that may differ in reading it."""
    return [
        Accelerators(scanner=scanner, bzip2=bunzip, gzip=gunzip, threads=2)
        for scanner, bunzip, gunzip in product(
            SCANNERS,
            BZIP2 if kind in {None, "bzip2"} else BZIP2[-1:],
            GZIP if kind in {None, "gzip"} else GZIP[-1:],
        )
    ]


@contextmanager
def blocks_of(size: int) -> Iterator[None]:
    """Text comes in blocks of about so many bytes, and small archives are worth a process."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(archives, "PIECE", size)
        patch.setattr(archives, "_WORTH_A_PROCESS", 0)
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
    accelerators: Accelerators,
    *,
    qrels: Qrels,
    expected: Expected | None = None,
    limits: Limits | None = None,
) -> Seen:
    scan = scan_run(
        io.BytesIO(data),
        path="run",
        order=order,
        qrels=qrels,
        expected=expected,
        limits=limits,
        accelerators=accelerators,
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
    combinations_: list[Accelerators],
    *,
    qrels: Qrels,
    expected: Expected | None = None,
    limits: Limits | None = None,
) -> Seen:
    """What all of them see, the same."""
    seen = [
        see(data, order, accelerators, qrels=qrels, expected=expected, limits=limits)
        for accelerators in combinations_
    ]
    for other in seen[1:]:
        assert_agree(seen[0], other)
    return seen[0]
