"""Simulated annotators select what is labelled among what they see; queries get types, texts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heldout.errors import InputError
from heldout.ids import DocId, QueryId
from heldout.survivorship.annotations import Annotation, Annotations
from heldout.survivorship.reading.depth_qrels import simulate_annotations
from heldout.survivorship.reading.records import add_kinds, add_texts, kinds_by_query

_DOCS = st.lists(st.integers(0, 9).map("d{}".format), min_size=5, max_size=8, unique=True).map(
    tuple
)
_QUERIES = st.sampled_from(["q1", "q2", "q3"])
_LABELS = st.dictionaries(
    _QUERIES, st.dictionaries(st.integers(0, 9).map("d{}".format), st.integers(-1, 2))
)


def of(*records: Annotation) -> Annotations:
    return Annotations(
        source="log", records=records, depth=3, open_ended=False, counts_discarded=True
    )


@given(shown=st.dictionaries(_QUERIES, _DOCS), labels=_LABELS, depth=st.integers(1, 5))
def test_annotators_select_the_relevant_ones_among_the_first(
    shown: dict[str, tuple[str, ...]], labels: dict[str, dict[str, int]], depth: int
) -> None:
    answerable = [query for query, grades in labels.items() if max(grades.values(), default=0) > 0]
    if not any(query in shown for query in answerable):
        with pytest.raises(InputError):
            simulate_annotations(shown, labels, depth=depth, source="x")
        return
    found = simulate_annotations(shown, labels, depth=depth, source="x")
    assert [one.query for one in found.records] == answerable
    for one in found.records:
        first = shown.get(one.query, ())[:depth]
        assert one.shown == first
        relevant = {doc for doc, grade in labels[one.query].items() if grade > 0}
        assert set(one.selected) == relevant & set(first)
        assert all(first[place - 1] == doc for doc, place in one.selected.items())
    assert found.counts_discarded
    assert found.depth == depth


def test_a_depth_that_no_list_has_is_refused() -> None:
    with pytest.raises(InputError) as caught:
        simulate_annotations({"q1": ("a", "b")}, {"q1": {"a": 1}}, depth=3, source="x")
    assert caught.value.problems[0].code == "depth-beyond-list"


def test_a_query_of_two_types_is_named() -> None:
    kinds = {"HOW": frozenset({"q1", "q2"}), "WHAT": frozenset({"q2"})}
    with pytest.raises(InputError) as caught:
        kinds_by_query(kinds, path="types.tsv")
    (problem,) = caught.value.problems
    assert (problem.code, problem.found) == ("two-types", "q2 of type HOW and of type WHAT")


def test_a_file_of_types_takes_the_place_of_those_the_source_tells() -> None:
    records = (Annotation(query=QueryId("q1"), kind="A"), Annotation(query=QueryId("q2"), kind="A"))
    found = add_kinds(of(*records), {"q1": "B"}, path="types.tsv")
    assert [one.kind for one in found.records] == ["B", None]
    with pytest.raises(InputError) as caught:
        add_kinds(of(*records), {"q9": "B"}, path="types.tsv")
    assert caught.value.problems[0].code == "no-common-query"


def test_texts_of_files_fill_only_what_is_missing() -> None:
    record = Annotation(
        query=QueryId("q1"),
        shown=(DocId("a"), DocId("b"), DocId("c")),
        texts={DocId("a"): "as shown"},
    )
    (found,) = add_texts(
        of(record),
        queries={"q1": "who?"},
        documents={"a": "other", "b": "text", "z": "none's"},
        path="queries.tsv",
    ).records
    assert found.text == "who?"
    assert found.texts == {"a": "as shown", "b": "text"}
    with pytest.raises(InputError):
        add_texts(of(record), queries={"q9": "who?"}, path="queries.tsv")
