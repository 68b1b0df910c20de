"""Passages as assessors were shown them."""

import json
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from heldout.errors import InputError
from heldout.ids import DocId, QueryId
from heldout.survivorship.annotations import Annotation, Annotations
from heldout.survivorship.reading.depth_qrels import reselect
from heldout.survivorship.reading.records import read_shown_passages
from heldout.trec.qrels import read_qrels


def refused(call: Callable[[], object]) -> list[tuple[str, int | None]]:
    with pytest.raises(InputError) as caught:
        call()
    assert all(problem.found and problem.expected for problem in caught.value.problems)
    return [(problem.code, problem.line) for problem in caught.value.problems]


def shown(ranks: list[object], *, labels: list[object] | None = None, **more: Any) -> bytes:
    passages = [
        {
            "rank": rank,
            "passage_id": f"p{number}",
            "passage_text": "text",
            "bm25_label": "high",
            "msmarco_label": label,
        }
        for number, (rank, label) in enumerate(
            zip(ranks, labels or [1, *[0] * len(ranks)], strict=False)
        )
    ]
    row = {"query_id": "q1", "query": "who?", "passages": passages} | more
    return json.dumps(row).encode() + b"\n"


def read_shown(data: bytes) -> Annotations:
    return read_shown_passages(BytesIO(data), path="shown.jsonl")


def test_passages_stand_in_the_order_of_their_ranks() -> None:
    (record,) = read_shown(shown([2, 1, 3], labels=[1, 0, 1])).records
    assert record.shown == ("p1", "p0", "p2")
    assert record.selected == {"p0": 2, "p2": 3}
    assert record.text == "who?"


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (shown([]), "no-passages"),
        (shown([1, 1]), "shown-ranks"),
        (shown([1, 3]), "shown-ranks"),
        (shown([0, 1]), "bad-annotation"),
        (shown([1], labels=[2]), "bad-annotation"),
        (shown([1], labels=[None]), "bad-annotation"),
        (shown(["1"]), "bad-annotation"),
        (shown([1], query_id=7), "bad-annotation"),
        (shown([1], query_id="a b"), "no-query-id"),
        (b"{\n", "bad-annotation"),
    ],
)
def test_a_broken_list_of_passages_is_named(data: bytes, code: str) -> None:
    first = shown([1], query_id="q0")
    assert refused(lambda: read_shown(first + data)) == [(code, 2)]


def test_a_passage_or_query_twice_is_named() -> None:
    row = json.loads(shown([1, 2]))
    row["passages"][1]["passage_id"] = "p0"
    assert refused(lambda: read_shown(json.dumps(row).encode())) == [("repeated-document", 1)]
    row["passages"][1]["passage_id"] = ""
    assert refused(lambda: read_shown(json.dumps(row).encode())) == [("no-document-id", 1)]
    assert refused(lambda: read_shown(shown([1]) * 2)) == [("repeated-query", 2)]


def test_other_labels_select_among_what_was_shown() -> None:
    found = read_shown(shown([1, 2]) + shown([1], query_id="q2") + shown([1], query_id="q3"))
    labels = {"q1": {"p1": 1, "p0": 0, "p9": 2}, "q2": {"p0": 0}, "q9": {"p0": 1}}
    again = reselect(found, labels, path="strict.qrels")
    assert [(one.query, dict(one.selected)) for one in again.records] == [
        ("q1", {"p1": 2}),
        ("q2", {}),
    ]
    assert [note.code for note in again.notes] == ["unlabelled-query", "label-not-shown"]
    assert again.discarded == 1
    assert refused(lambda: reselect(found, {"q9": {"p0": 1}}, path="x")) == [
        ("no-common-query", None)
    ]
    bare = Annotations(
        source="depths",
        records=(Annotation(query=QueryId("q1"), selected={DocId("a"): 1}),),
        depth=1,
    )
    assert refused(lambda: reselect(bare, labels, path="x")) == [("nothing-shown", None)]


@pytest.mark.real
@pytest.mark.parametrize(
    ("labels", "expected"),
    [(None, 0.491), ("binary_threshold2", 0.976), ("binary_threshold3", 0.917)],
)
def test_the_order_shown_has_the_published_mrr_under_each_label_set(
    data: Callable[[str], Path], labels: str | None, expected: float
) -> None:
    folder = data("msmarco-dev-relabelled")
    with (folder / "shown_passages.jsonl.gz").open("rb") as file:
        found = read_shown_passages(file, path="shown", texts=False)
    assert (len(found.records), found.depth) == (300, 20)
    if labels is not None:
        with (folder / f"thesis_dataset_{labels}.tsv").open("rb") as file:
            found = reselect(found, read_qrels(file, path=labels).judgments, path=labels)
    queries = set((folder / "experiment_queries.txt").read_text().split())
    first = [one.first for one in found.records if one.query in queries]
    scores = [1 / place if place and place <= 10 else 0 for place in first]
    assert len(scores) == 42
    assert sum(scores) / 42 == pytest.approx(expected, abs=0.0005)
