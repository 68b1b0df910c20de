"""Damaged archives: never an unhandled exception, never another text that passes."""

import bz2
import gzip
import io
import random

import pytest
import zstandard
from naive_runs import format_run, integers, scan

from heldout.errors import InputError
from heldout.trec.reading.streams import Limits, TextReader

ROWS = [
    (f"q{query}", f"D{query * 7919 % 1000:04d}-{rank}", rank, f"{30 - rank}.{query}")
    for query in range(12)
    for rank in range(1, 9)
]
TEXT = format_run(ROWS, trec=False)
QRELS = {query: {document: 1} for query, document, rank, _ in ROWS if rank == 3}
ARCHIVES = {
    "gzip": gzip.compress(TEXT, mtime=0),
    "gzip members": gzip.compress(TEXT[:999], mtime=0) + gzip.compress(TEXT[999:], mtime=0),
    "bzip2": bz2.compress(TEXT),
    # Without its checksum, which the zstd program writes, changed text can pass as in plain files.
    "zstd": zstandard.ZstdCompressor(write_checksum=True).compress(TEXT),
}


def read(data: bytes) -> bytes | None:
    """The text, `None` where it is refused."""
    try:
        reader = TextReader(io.BytesIO(data), path="f", limits=Limits())
        return b"".join(block.text for block in reader.blocks())
    except InputError:
        return None


def check(data: bytes) -> bool:
    """Whether a mutation was refused; if not, nothing about the run may have changed."""
    found = scan(data, "msmarco", qrels=QRELS)
    if not found.ok:
        return True
    assert read(data) == TEXT
    assert integers(found) == integers(scan(TEXT, "msmarco", qrels=QRELS))
    return False


@pytest.mark.parametrize("kind", ARCHIVES)
def test_bit_flips(kind: str) -> None:
    data = ARCHIVES[kind]
    rng = random.Random(kind)  # noqa: S311 - which bit to flip
    refused = 0
    for place in range(len(data)):
        flipped = bytearray(data)
        flipped[place] ^= 1 << rng.randrange(8)
        refused += check(bytes(flipped))
    # What passes says nothing about the text: time, name and system in gzip's header.
    assert refused >= len(data) - (20 if kind.startswith("gzip") else 2)


@pytest.mark.parametrize("kind", ARCHIVES)
def test_truncations(kind: str) -> None:
    data = ARCHIVES[kind]
    passed = [size for size in range(len(data)) if not check(data[:size])]
    assert passed == []


@pytest.mark.parametrize("kind", ARCHIVES)
def test_bytes_removed_doubled_or_swapped(kind: str) -> None:
    data = ARCHIVES[kind]
    rng = random.Random(kind)  # noqa: S311 - where to cut
    for _ in range(40):
        start, end = sorted(rng.sample(range(len(data)), 2))
        assert check(data[:start] + data[end:])
        check(data[:end] + data[start:])
        check(data[:start] + data[start:end][::-1] + data[end:])
