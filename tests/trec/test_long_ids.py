"""One long id among thousands of short ones, or many judgments of one query, cost little."""

import io
import time
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from naive_runs import SCANNERS, scan_by

from heldout.trec.scanning.scanners import hash_documents
from heldout.trec.tops import read_tops

LONG = b"x" * 60_000
QUERIES = 20_000
MOST = 40 << 20
"""Bytes; were each id as long as the longest, they would take 240 MB and more."""


@contextmanager
def at_most(limit: int) -> Iterator[None]:
    """Fails if what runs inside ever holds more memory."""
    tracemalloc.start()
    try:
        yield
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < limit


@pytest.mark.slow
def test_hashing_a_long_id_beside_short_ones() -> None:
    ids = [b"%x" % number for number in range(QUERIES)]
    with at_most(MOST):
        hashes = hash_documents([*ids, LONG])
    assert hashes[:-1].tolist() == hash_documents(ids).tolist()
    assert hashes[-1] == hash_documents([LONG])[0]


@pytest.mark.slow
@pytest.mark.parametrize("scanner", SCANNERS)
def test_scanning_a_run_of_many_queries_and_a_long_id(scanner: str) -> None:
    queries = QUERIES // 20
    rows = [b"%x\td\t1\n" % number for number in range(queries)]
    rows.insert(queries // 2, b"long\t%b\t1\n" % LONG)
    with at_most(MOST):
        found = scan_by(
            scanner,
            io.BytesIO(b"".join(rows)),
            path="run",
            order="msmarco",
            signature_depth=1,
        )
    assert (found.ok, found.facts.queries) == (True, queries + 1)


def test_tops_of_a_run_with_a_long_id() -> None:
    rows = [b"q\t%x\t%d\n" % (number, number + 1) for number in range(QUERIES)]
    rows.append(b"q\t%b\t%d\n" % (LONG, QUERIES + 1))
    with at_most(MOST):
        tops = read_tops(io.BytesIO(b"".join(rows)), path="run", depth=2)
    assert tops == {"q": ("0", "1")}


@pytest.mark.parametrize("scanner", SCANNERS)
def test_a_query_with_as_many_judgments_as_documents_takes_its_length(
    scanner: str,
) -> None:
    """Looked up in a list they would take seconds, four times as long for twice as many."""
    count = 40_000
    data = b"".join(b"q\td%d\t%d\n" % (number, number + 1) for number in range(count))
    judged = {"q": {f"d{number}": number for number in range(count - 1)}}
    before = time.process_time()
    found = scan_by(
        scanner,
        io.BytesIO(data),
        path="run",
        order="msmarco",
        qrels=judged,
    )
    assert time.process_time() - before < 2
    assert found.rankings["q"].grades.tolist() == list(range(count - 1))
