"""What of a test set was seen in training: near copies of queries, documents as negatives."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from heldout.collections.collection import near_duplicate_groups
from heldout.ids import DocId, QueryId
from heldout.rankers.run import Hit
from heldout.scoring.measures import parse_measure
from heldout.survivorship.training.experiment import TestSet
from heldout.survivorship.training.results import find_near_copies, find_trained_on
from heldout.survivorship.training.triples import Triple

_texts = st.lists(
    st.lists(st.sampled_from(["a", "B", "b", "c", "d", "e", "f"]), max_size=7).map(" ".join),
    max_size=8,
)


@given(_texts, _texts)
def test_near_copies_are_those_of_pairs_compared_one_by_one(
    texts: list[str], others: list[str]
) -> None:
    found = find_near_copies(texts, others)
    expected = {
        place
        for place, text in enumerate(texts)
        for other in others
        if len(np.unique(near_duplicate_groups((text, other)))) == 1
    }
    assert found == expected


def _test_set() -> TestSet:
    return TestSet(
        name="t",
        documents={DocId("d1"): "one", DocId("d2"): "two", DocId("d3"): "three"},
        queries={QueryId("1"): "how to open a file", QueryId("2"): "sum a list"},
        first={QueryId("1"): [Hit(DocId("d1"), 1.0)], QueryId("2"): [Hit(DocId("d2"), 1.0)]},
        first_name="BM25",
        qrels={"1": {"d1": 1, "d3": 0}, "2": {"d2": 2}},
        measures=(parse_measure("RR@10"),),
        depth=5,
    )


def test_queries_are_compared_by_words_and_documents_by_id_and_text() -> None:
    triples = [Triple(QueryId("1"), DocId("d3"), DocId("d2"))]
    documents = {DocId("d2"): "two", DocId("d3"): "three"}
    # The same id, other words: another query.
    found = find_trained_on(_test_set(), triples, {QueryId("1"): "walk the tree"}, documents)
    assert (found.queries, found.labelled, found.negatives, found.relevant) == (0, 2, 1, 2)
    # Another id, the same words in another order: this one.
    triples = [Triple(QueryId("9"), DocId("d3"), DocId("d2"))]
    queries = {QueryId("9"): "How to open file a", QueryId("2"): "not trained on: sum a list"}
    documents[DocId("d2")] = "the same id in another collection"
    found = find_trained_on(_test_set(), triples, queries, documents)
    assert (found.queries, found.negatives) == (1, 0)
