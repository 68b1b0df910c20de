"""The first documents of each query with their ties."""

import gzip
from io import BytesIO

from hypothesis import given
from hypothesis import strategies as st

from heldout.trec.orders import Order
from heldout.trec.runs import scan_run
from heldout.trec.tops import TiedTops, tie_tops

SCORES = st.lists(st.sampled_from([0.5, 1.0, 2.0, -3.0]), min_size=1, max_size=30)


def read(rows: str | bytes, *, order: Order = "trec", depth: int = 100) -> TiedTops:
    data = rows.encode() if isinstance(rows, str) else rows
    return tie_tops(scan_run(BytesIO(data), path="run", order=order, listed=depth))


@given(SCORES, st.integers(1, 10))
def test_tops_are_those_of_a_sorted_list_and_all_that_tie_with_the_last(
    scores: list[float], depth: int
) -> None:
    rows = [f"q Q0 d{n:02} 1 {score!r} x" for n, score in enumerate(scores)]
    last = sorted(scores, reverse=True)[:depth][-1]
    wanted = tuple(
        tuple(f"d{n:02}" for n, score in enumerate(scores) if score == value)
        for value in sorted(set(scores), reverse=True)
        if value >= last
    )

    found = read("\n".join(rows) + "\n", depth=depth)

    assert found == {"q": wanted}
    assert read("\n".join(reversed(rows)) + "\n", depth=depth) == found


def test_scores_that_are_equal_as_float32_tie_under_trec9_alone() -> None:
    rows = "q Q0 a 1 0.300000011 x\nq Q0 b 2 0.300000012 x\n# note\n\n"

    assert read(rows) == {"q": (("b",), ("a",))}
    assert read(rows, order="trec9") == {"q": (("a", "b"),)}


def test_ranks_never_tie() -> None:
    assert read("q Q0 b 2 9 x\nq Q0 a 1 0 x\n", order="msmarco") == {"q": (("a",), ("b",))}


def test_rows_of_a_query_may_stand_apart_in_an_archive() -> None:
    rows = b"q2 Q0 a 1 1 x\nq1 Q0 a 1 1 x\nq2 Q0 b 1 2 x\n"
    found = read(gzip.compress(rows), depth=5)
    assert list(found.items()) == [("q1", (("a",),)), ("q2", (("b",), ("a",)))]
