"""What of a test set was seen in training: near copies of queries, documents as negatives."""

from heldout.ids import DocId, QueryId
from heldout.rankers.run import Hit
from heldout.scoring.measures import parse_measure
from heldout.survivorship.training.material import TestSet, find_trained_on
from heldout.survivorship.training.triples import Triple


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
    triples = {Triple(QueryId("1"), DocId("d3"), DocId("d2"))}
    documents = {DocId("d2"): "two", DocId("d3"): "three"}
    # The same id, other words: another query.
    found = find_trained_on(_test_set(), triples, {QueryId("1"): "walk the tree"}, documents)
    assert (found.queries, found.labelled, found.negatives, found.relevant) == (0, 2, 1, 2)
    # Another id, the same words in another order: this one.
    triples = {Triple(QueryId("9"), DocId("d3"), DocId("d2"))}
    queries = {QueryId("9"): "How to open file a", QueryId("2"): "not trained on: sum a list"}
    documents[DocId("d2")] = "the same id in another collection"
    found = find_trained_on(_test_set(), triples, queries, documents)
    assert (found.queries, found.negatives) == (1, 0)
