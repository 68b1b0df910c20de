"""First documents by id: the same as sorting the file by hand, in every form and order."""

import gzip
from collections.abc import Callable
from io import BytesIO
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heldout.errors import InputError
from heldout.trec.tops import read_tops

_SCORES = st.lists(st.integers(-3, 3), min_size=1, max_size=12)
_RUN = st.dictionaries(st.sampled_from(["q1", "q2", "10"]), _SCORES, min_size=1)


def written(run: dict[str, list[int]]) -> bytes:
    return "".join(
        f"{query} Q0 d{place}é {place + 1} {score} tag\n"
        for query, scores in run.items()
        for place, score in enumerate(scores)
    ).encode()


@given(run=_RUN, depth=st.integers(1, 13))
def test_tops_are_the_best_scores_ties_by_id_descending(
    run: dict[str, list[int]], depth: int
) -> None:
    found = read_tops(BytesIO(gzip.compress(written(run))), path="x", depth=depth)
    for query, scores in run.items():
        ids = [(score, f"d{place}é".encode()) for place, score in enumerate(scores)]
        best = [doc.decode() for _, doc in sorted(ids, reverse=True)]
        assert found[query] == tuple(best[:depth])
    assert set(found) == set(run)


def test_ranks_decide_where_there_are_no_scores_and_lines_may_stand_apart() -> None:
    text = b"# a comment\nq1\tb\t2\nq2\ta\t1\n\nq1\tc\t1\n"
    assert read_tops(BytesIO(text), path="x", depth=1) == {"q1": ("c",), "q2": ("a",)}


def test_a_run_with_errors_has_no_tops() -> None:
    with pytest.raises(InputError) as caught:
        read_tops(BytesIO(b"q1 Q0 d1 1 x tag\n"), path="x", depth=1)
    assert caught.value.problems[0].code == "score-not-a-number"
    with pytest.raises(ValueError, match="0"):
        read_tops(BytesIO(b""), path="x", depth=0)


@pytest.mark.real
def test_tops_of_a_real_run_are_those_of_a_sort(data: Callable[[str], Path]) -> None:
    path = next(iter(sorted(data("trec-dl-2021-passage/runs").iterdir())))
    raw = path.read_bytes()
    text = gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw
    rows: dict[str, list[tuple[float, bytes]]] = {}
    for line in text.splitlines():
        query, _, document, _, score, _ = line.split()
        rows.setdefault(query.decode(), []).append((float(score), document))
    with path.open("rb") as source:
        found = read_tops(source, path=path.name, depth=10)
    assert found == {
        query: tuple(doc.decode() for _, doc in sorted(documents, reverse=True)[:10])
        for query, documents in rows.items()
    }
