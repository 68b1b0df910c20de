"""What a scan says of a good run."""

import bz2
import gzip
import hashlib
import io

import numpy as np
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st
from naive_runs import format_run, hash_document, integers, scan

from heldout.trec.runs import scan_run
from heldout.trec.scanning.scanners import hash_documents
from heldout.trec.scans import Expected, Facts

MSMARCO = b"7\tb\t1\n7\ta\t2\n9\tc\t1\n"
TREC = b"7 Q0 a 1 0.5 t\n7 Q0 b 2 0.75 t\n7 Q0 c 3 0.5 t\n9\tQ0\tc\t1\t-1\tt\n"
QRELS = {"7": {"a": 0, "c": 2, "x": 3}, "8": {"c": 1}}


def test_a_run_by_rank() -> None:
    found = scan(MSMARCO, "msmarco", qrels=QRELS)
    assert found.ok
    assert (found.form, found.order, found.path) == ("msmarco", "msmarco", "run")
    assert integers(found) == {"7": ([2], [0], 2), "9": ([], [], 1)}
    assert found.digest == hashlib.sha256(MSMARCO).hexdigest()
    assert found.problems == ()


def test_a_run_by_score() -> None:
    found = scan(TREC, "trec", qrels=QRELS)
    assert integers(found) == {"7": ([2, 3], [2, 0], 3), "9": ([], [], 1)}
    assert found.facts == Facts(
        lines=4,
        queries=2,
        documents=4,
        min_depth=1,
        max_depth=3,
        first_ranks={1: 2},
        tied=1,
        tied_top=1,
        queries_tied=1,
        displaced_top=3,
        queries_displaced_top=1,
        repeated_ranks=0,
    )
    (note,) = found.problems
    assert (note.code, note.line, note.severity) == ("rank-disagrees", 1, "note")
    assert note.found == "a at rank 1 for 7, but place 3 by score"


@pytest.mark.parametrize(
    ("ranks", "scores", "rising"),
    [
        ((1, 2, 3), (0.1, 0.2, 0.3), 1),
        ((99, 98, 97), (1, 2, 3), 1),
        ((7, 7, 7), (1, 2, 3), 1),
        (("x", "y", "z"), (1, 2, 3), 1),
        ((99, 98, 97), (2, 3, 4), 0),
        ((99, 98, 97), (1, 2, 4), 0),
        ((1, 2, 3), (0.1, 0.1, 0.3), 0),
        ((1, 2), (1, 2), 0),
    ],
)
def test_scores_rise_with_the_ranks_or_count_the_lines(
    ranks: tuple[object, ...], scores: tuple[float, ...], rising: int
) -> None:
    rows = zip("abc", ranks, scores, strict=False)
    data = "".join(f"7 Q0 {doc} {rank} {score} t\n" for doc, rank, score in rows).encode()
    for order in ("trec", "trec9"):
        assert scan(data, order).facts.queries_rising == rising
    assert scan(data, "msmarco").facts.queries_rising == 0


def test_arrays_have_their_types() -> None:
    found = scan(TREC, "trec9", qrels=QRELS)
    for ranking in found.rankings.values():
        assert ranking.positions.dtype == np.int64
        assert ranking.grades.dtype == np.int64
    assert found.signature.queries == ("7", "9")
    assert found.signature.documents.dtype == np.uint64
    assert found.signature.documents.shape == (2, 100)
    first = [hash_document(document) for document in (b"b", b"c", b"a")]
    assert found.signature.documents[0].tolist() == first + [0] * 97


def test_the_hash_of_a_document_never_changes() -> None:
    """Signatures are kept for years. Golden values: `hash_document` of naive_runs.py."""
    ids = [b"d04417", b"", b"12345678", b"clueweb09-en0000-00-00000", "é".encode()]
    expected = [
        0x55AA868D51CB310B,
        0x0000000000000000,
        0x8C16A78DA14A30C1,
        0x6D69259032CD3CA2,
        0xB993713F891D2869,
    ]
    assert hash_documents(ids).tolist() == expected == [hash_document(id_) for id_ in ids]


@given(st.lists(st.binary(max_size=20).map(lambda id_: id_.replace(b"\0", b"x")), max_size=9))
def test_ids_of_any_lengths_have_the_hash_that_each_has_alone(begins: list[bytes]) -> None:
    lengths = (0, 63, 64, 65, 127, 128, 300, 9000)
    ids = [begin + b"y" * lengths[place % 8] for place, begin in enumerate(begins)]
    assert hash_documents(ids).tolist() == [hash_document(id_) for id_ in ids]


@pytest.mark.parametrize(
    "compress", [gzip.compress, bz2.compress, zstandard.ZstdCompressor().compress]
)
def test_archives_are_told_by_content(compress: object) -> None:
    assert callable(compress)
    data = compress(MSMARCO)
    found = scan(data, "msmarco", qrels=QRELS)
    assert integers(found) == integers(scan(MSMARCO, "msmarco", qrels=QRELS))
    assert found.digest == hashlib.sha256(data).hexdigest()


def test_more_judged_than_retrieved_and_the_other_way() -> None:
    rows = [("q", f"d{rank}", rank, str(-rank)) for rank in range(1, 51)]
    few = {"q": {"d50": 1, "d7": 2}}
    many = {"q": {f"d{number}": number for number in range(0, 400, 7)}}
    data = format_run(rows, trec=True)
    assert integers(scan(data, "trec", qrels=few)) == {"q": ([7, 50], [2, 1], 50)}
    places = list(range(7, 50, 7))
    assert integers(scan(data, "trec", qrels=many)) == {"q": (places, places, 50)}


def test_checking_sees_depths_and_no_judgments() -> None:
    found = scan_run(io.BytesIO(MSMARCO), path="r", order="msmarco")
    assert integers(found) == {"7": ([], [], 2), "9": ([], [], 1)}


def test_reading_starts_where_the_source_stands_even_the_second_time() -> None:
    apart = b"7\tb\t1\n9\tc\t1\n7\ta\t2\n"
    source = io.BytesIO(b"head" + apart)
    source.seek(4)
    found = scan_run(source, path="r", order="msmarco", qrels=QRELS)
    assert integers(found) == integers(scan(MSMARCO, "msmarco", qrels=QRELS))
    assert found.digest == hashlib.sha256(apart).hexdigest()


def test_a_pipe_can_be_scanned_where_queries_stand_apart() -> None:
    class Pipe(io.RawIOBase):
        def __init__(self, data: bytes) -> None:
            self.inner = io.BytesIO(data)

        def read(self, size: int = -1) -> bytes:
            return self.inner.read(min(size, 5))

    apart = gzip.compress(b"7\tb\t1\n9\tc\t1\n7\ta\t2\n")
    found = scan_run(Pipe(apart), path="r", order="msmarco", qrels=QRELS)  # type: ignore[arg-type]  # a pipe reads, no more is needed
    assert integers(found) == integers(scan(MSMARCO, "msmarco", qrels=QRELS))
    assert found.digest == hashlib.sha256(apart).hexdigest()


def test_errors_of_the_source_are_not_swallowed() -> None:
    class Broken(io.RawIOBase):
        def read(self, _size: int = -1) -> bytes:
            raise ConnectionResetError

    with pytest.raises(ConnectionResetError):
        scan_run(Broken(), path="r", order="msmarco")  # type: ignore[arg-type]  # as above


def test_a_query_over_block_borders_is_one_query() -> None:
    rows = [
        (f"{query}", f"doc{rank:08d}", rank, "0") for query in range(3) for rank in range(1, 20001)
    ]
    data = format_run(rows, trec=False)
    assert len(data) > 4 << 18
    found = scan(data, "msmarco", qrels={"1": {"doc00019999": 1}})
    assert found.facts.max_depth == found.facts.min_depth == 20000
    assert found.rankings["1"].positions.tolist() == [19999]


def test_candidates_bind_only_listed_queries() -> None:
    expected = Expected(candidates={"7": {"a", "b"}})
    assert scan(MSMARCO, "msmarco", expected=expected).ok


def test_depths_at_the_bounds_are_allowed() -> None:
    expected = Expected(min_depth=1, max_depth=2, queries=("7", "9"), complete=True)
    assert scan(MSMARCO, "msmarco", expected=expected).problems == ()


def test_repeated_ranks_are_counted() -> None:
    data = b"1 Q0 a 1 3 t\n1 Q0 b 1 2 t\n1 Q0 c 1 1 t\n2 Q0 a 0 1 t\n3 Q0 a x 1 t\n"
    facts = scan(data, "trec").facts
    assert facts.repeated_ranks == 2
    assert facts.first_ranks == {0: 1, 1: 1, None: 1}
