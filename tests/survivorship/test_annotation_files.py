"""Annotations as a file of our own, and passages as assessors were shown them."""

import gzip
import json
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heldout.errors import InputError
from heldout.ids import DocId, QueryId
from heldout.survivorship.annotations import Annotation, Annotations
from heldout.survivorship.reading.annotation_file import format_annotations, read_annotation_file
from heldout.survivorship.reading.depth_qrels import reselect
from heldout.survivorship.reading.records import read_shown_passages
from heldout.trec.qrels import read_qrels

_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
_IDS = st.text("abcé-_.:01", min_size=1, max_size=6)


@st.composite
def _records(draw: st.DrawFn, depth: int) -> tuple[Annotation, ...]:
    made = []
    for query in draw(st.lists(_IDS, min_size=1, max_size=5, unique=True)):
        docs = draw(st.lists(_IDS.map(DocId), max_size=depth, unique=True))
        chosen = draw(st.lists(st.sampled_from(docs), unique=True)) if docs else []
        places = {doc: at for at, doc in enumerate(docs, 1) if doc in chosen}
        made.append(
            Annotation(
                query=QueryId(query),
                text=draw(st.none() | _TEXT),
                kind=draw(st.none() | _TEXT),
                shown=tuple(docs) if draw(st.booleans()) else (),
                selected=places,
                texts={
                    doc: draw(_TEXT)
                    for doc in draw(st.lists(st.sampled_from(docs or [DocId("d")])))
                },
                answers=tuple(draw(st.lists(_TEXT, max_size=2))),
            )
        )
    return tuple(made)


def read(data: bytes, *, texts: bool = True) -> Annotations:
    return read_annotation_file(BytesIO(data), path="annotations.jsonl", texts=texts)


def refused(call: Callable[[], object]) -> list[tuple[str, int | None]]:
    with pytest.raises(InputError) as caught:
        call()
    assert all(problem.found and problem.expected for problem in caught.value.problems)
    return [(problem.code, problem.line) for problem in caught.value.problems]


@given(records=_records(6), opened=st.booleans(), packed=st.booleans())
def test_what_was_written_is_read_again(
    records: tuple[Annotation, ...], *, opened: bool, packed: bool
) -> None:
    written = Annotations(
        source="somewhere", records=records, depth=6, open_ended=opened, counts_discarded=True
    )
    data = format_annotations(written)
    assert read(gzip.compress(data) if packed else data) == written
    bare = read(data, texts=False)
    assert [(one.query, one.shown, one.selected) for one in bare.records] == [
        (one.query, one.shown, one.selected) for one in records
    ]
    assert not any(one.text or one.texts or one.answers for one in bare.records)


HEAD = '{"annotations":1,"source":"x","depth":3,"open_ended":false,"counts_discarded":true}'
ROW = '{"query":"q1","shown":["a","b"],"selected":{"b":2}}'


@pytest.mark.parametrize(
    ("rows", "code", "line"),
    [
        ([], "empty-file", None),
        (['{"query":"q1","shown":["a"],"selected":{"z":1}}'], "not-shown", 2),
        (['{"query":"q1","shown":["a","a"]}'], "repeated-document", 2),
        (['{"query":"q1","selected":{"a":4}}'], "bad-place", 2),
        (['{"query":"q1","selected":{"a":0}}'], "bad-annotation", 2),
        (['{"query":"q1","shown":["a","b"],"selected":{"b":1}}'], "bad-place", 2),
        (['{"query":"q1","shown":["a b"]}'], "no-document-id", 2),
        (['{"query":"q1","shown":["a\\u202eb"]}'], "no-document-id", 2),
        (['{"query":"q 1"}'], "no-query-id", 2),
        ([ROW, "", ROW], "repeated-query", 4),
        ([ROW, '{"query":"q2","shown":'], "bad-annotation", 3),
        (['{"query":"q1","shown":[1]}'], "bad-annotation", 2),
        (['{"query":"q1","extra":1}'], "bad-annotation", 2),
        (['{"shown":["a"]}'], "bad-annotation", 2),
        ([HEAD], "bad-annotation", 2),
        (["[" * 5_000], "bad-annotation", 2),
    ],
)
def test_a_bad_line_is_named(rows: list[str], code: str, line: int | None) -> None:
    data = "\n".join([HEAD, *rows, ""]).encode()
    assert refused(lambda: read(data)) == [(code, line)]


@pytest.mark.parametrize(
    "head",
    [
        ROW,
        HEAD.replace(":1,", ":2,"),
        HEAD.replace(":3,", ":0,"),
        HEAD.replace(',"depth":3', ""),
        HEAD.replace("false", "0"),
    ],
)
def test_without_its_first_line_a_file_is_refused(head: str) -> None:
    """And nothing is said of the lines that follow, which may be right."""
    assert refused(lambda: read(f"{head}\n{ROW}\n{ROW}\n".encode())) == [("bad-annotation", 1)]


def test_another_version_is_told_with_the_one_that_is_known() -> None:
    with pytest.raises(InputError) as caught:
        read(HEAD.replace(":1,", ":2,").encode())
    (problem,) = caught.value.problems
    assert (problem.found, problem.expected) == ("version 2 of this form", "version 1")


@pytest.mark.parametrize(("opened", "codes"), [("false", ["bad-place"]), ("true", [])])
def test_what_was_shown_below_the_depth_was_not_selected_above_it(
    opened: str, codes: list[str]
) -> None:
    """Unless the deepest place stands for all below."""
    shown = ",".join(f'"{doc}"' for doc in "abcdefgh")
    row = f'{{"query":"q1","shown":[{shown}],"selected":{{"h":3}}}}'
    data = f"{HEAD.replace('false', opened)}\n{row}\n".encode()
    if codes:
        assert refused(lambda: read(data)) == [(code, 2) for code in codes]
    else:
        assert read(data).records[0].selected == {"h": 3}


def test_a_discarded_query_contradicts_a_file_that_counts_none() -> None:
    data = HEAD.replace("true", "false") + '\n{"query":"q1","shown":["a"]}\n'
    assert refused(lambda: read(data.encode())) == [("bad-annotation", 2)]


def test_an_empty_file_is_refused() -> None:
    assert refused(lambda: read(b"")) == [("empty-file", None)]


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
        open_ended=False,
        counts_discarded=True,
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
