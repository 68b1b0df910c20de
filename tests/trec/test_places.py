"""Where documents stand in a run, and that labels see there what a scan sees."""

from io import BytesIO
from pathlib import Path
from typing import Protocol

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heldout.errors import InputError
from heldout.scoring.evaluate import evaluate
from heldout.scoring.measures import parse_measure
from heldout.trec.qrels import read_qrels
from heldout.trec.reading.sources import open_input
from heldout.trec.runs import scan_run
from heldout.trec.tops import read_positions, see_through

_MEASURES = [parse_measure(name) for name in ("RR@10", "nDCG@10", "AP", "R@100", "Unjudged@10")]
_DOCS = ["a", "b", "c", "d", "e", "f"]


class Find(Protocol):
    def __call__(self, name: str, /) -> Path: ...


def test_documents_are_found_where_they_stand_and_unanswered_queries_are_no_answer() -> None:
    run = b"q1 Q0 x 1 9 t\nq1 Q0 y 2 8 t\nq2 Q0 z 1 5 t\n"
    wanted = {"q1": ["y", "nowhere"], "q3": ["x"]}
    found = read_positions(BytesIO(run), path="run", documents=wanted)
    assert found.found == {"q1": {"y": 2}}
    assert found.retrieved == {"q1": 2}
    assert set(see_through(found, {"q1": {"y": 1}, "q3": {"x": 1}})) == {"q1"}


def test_a_broken_run_is_an_error_with_its_line() -> None:
    with pytest.raises(InputError) as error:
        read_positions(BytesIO(b"q1 Q0 x 1 9 t\nq1 Q0\n"), path="run", documents={"q1": ["x"]})
    assert error.value.problems[0].line == 2


@given(
    ranking=st.permutations(_DOCS),
    grades=st.dictionaries(st.sampled_from(_DOCS), st.integers(-1, 3), min_size=1),
)
def test_labels_made_later_see_what_a_scan_with_them_sees(
    ranking: list[str], grades: dict[str, int]
) -> None:
    run = "".join(f"q Q0 {doc} {n} {-n} t\n" for n, doc in enumerate(ranking, 1)).encode()
    places = read_positions(BytesIO(run), path="run", documents={"q": _DOCS})
    labels = {"q": grades}
    later = evaluate(see_through(places, labels), labels, _MEASURES)
    at_once = evaluate(
        scan_run(BytesIO(run), path="run", order=None, qrels=labels).rankings, labels, _MEASURES
    )
    assert later.per_query() == at_once.per_query()


def test_a_real_run_is_scored_the_same_either_way(data: Find) -> None:
    folder = data("trec-dl-2021-passage")
    path = min((folder / "runs").glob("*"))
    with open_input(data("trec-dl-2021-passage/qrels.dl21-passage.txt.gz")) as source:
        qrels = read_qrels(source, path="qrels").judgments
    with open_input(path) as source:
        places = read_positions(source, path="run", documents=qrels)
    with open_input(path) as source:
        scan = scan_run(source, path="run", order=None, qrels=qrels)
    later = evaluate(see_through(places, qrels), qrels, _MEASURES)
    assert later.per_query() == evaluate(scan.rankings, qrels, _MEASURES).per_query()
