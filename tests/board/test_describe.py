"""What `board new` and `board describe` tell of query sets."""

from collections.abc import Callable
from pathlib import Path

import pytest

from heldout.board.scores.describe import (
    Description,
    describe_collection,
    describe_sets,
    list_columns,
)
from heldout.cli.printing import fill_facts
from heldout.trec.qrels import Qrels, parse_qrels
from heldout.trec.queries import Queries, parse_queries

QUERIES = b"1\thow to sort a list\n2\twhat is a tuple\n3\tWhat is a  tuple?\n4\tset union\n"
QRELS = b"1 0 a 2\n1 0 b 0\n2 0 a 0\n2 0 c -1\n3 0 c 1\n9 0 x 1\n9 0 y 0\n8 0 x 1\n"


def queries(data: bytes) -> Queries:
    return parse_queries(data, path="q")


def qrels(data: bytes) -> Qrels:
    return parse_qrels(data, path="j")


def list_notes(description: Description) -> tuple[str, ...]:
    return tuple(text for _, text in fill_facts("described_notes", about=description)[1:])


def list_warnings(description: Description) -> list[str]:
    return [text for _, text in fill_facts("described_warnings", about=description)]


def test_labels_are_counted_by_hand() -> None:
    facts = describe_sets({"dev": (queries(QUERIES), qrels(QRELS))}).sets[0]
    labels = facts.labels
    assert labels is not None
    assert (facts.queries, facts.mean_length, facts.repeated) == (4, (5 + 4 + 4 + 2) / 4, 1)
    assert (labels.judgments, labels.judgments_per_query) == (5, 5 / 4)
    assert labels.relevant_per_query == 2 / 4
    assert list(labels.grades.items()) == [(-1, 1), (0, 2), (1, 1), (2, 1)]
    assert (labels.judged, labels.unjudged, labels.without_relevant) == (3, 1, 1)
    assert (labels.outside, labels.outside_queries) == (3, 2)
    assert facts.resolution.queries == 3


def test_excluded_queries_leave_n_but_not_the_table() -> None:
    given = {"dev": (queries(QUERIES), qrels(QRELS))}
    labels = describe_sets(given, excluded={"dev": {"2", "4"}}).sets[0].labels
    assert labels is not None
    assert (labels.judgments, labels.judged, labels.excluded) == (5, 2, 1)
    assert (labels.unjudged, labels.without_relevant) == (1, 0)


def test_without_labels_nothing_is_made_up() -> None:
    description = describe_sets({"eval": (queries(QUERIES), None)})
    facts = description.sets[0]
    assert facts.labels is None
    assert facts.why == "no labels given"
    assert facts.resolution.queries == 4
    assert list_columns(description)[1] == ("eval", "4", "3.75", "-", "-", "-")


def test_one_judged_query_has_no_resolution() -> None:
    description = describe_sets({"e": (queries(b"1\tx\n2\ty\n"), qrels(b"1 0 a 1\n"))})
    assert description.sets[0].resolution.difference is None
    assert "1 judged queries; a paired test needs two" in list_notes(description)[-1]


def test_empty_inputs_are_refused() -> None:
    with pytest.raises(ValueError, match="dev has no query"):
        describe_sets({"dev": (Queries(texts={}, digest=queries(QUERIES).digest), None)})
    with pytest.raises(ValueError, match="no document"):
        describe_collection([])


def test_notes_say_what_was_found_and_nothing_else() -> None:
    described = describe_sets({"dev": (queries(QUERIES), qrels(QRELS))})
    assert list_notes(described)[:-1] == (
        "1 dev queries repeat the text of an earlier one",
        "1 dev queries have no judgment and are left out",
        "1 dev queries are judged and have no relevant document: they count 0 for every run",
    )
    assert list_warnings(described) == [
        "3 judgments of 2 queries outside the query file of dev, ignored"
    ]
    clean = describe_sets({"a": (queries(b"1\tone\n2\ttwo\n"), qrels(b"1 0 a 1\n2 0 a 1\n"))})
    assert len(list_notes(clean)) == 1


def test_notes_on_two_sets() -> None:
    eval_queries = queries(
        b"1\tother\n5\tSET UNION\n6\thow to sort a list?\n8\thow to sort a list in\n7\tunseen\n"
    )
    described = describe_sets({"dev": (queries(QUERIES), None), "eval": (eval_queries, None)})
    notes = list_notes(described)
    assert list_warnings(described) == ["1 query in both dev and eval, 1 of them with another text"]
    assert "2 eval queries have the text of a query in dev under another id" in notes
    assert any(
        note.startswith("1 eval queries are near-duplicates of one in dev") for note in notes
    )


@pytest.mark.real
def test_passage_dev_row_of_table_1(data: Callable[[str], Path]) -> None:
    """Lin et al. 2022, Table 1: 6,980 queries, 5.92 tokens, 7,437 judgments, 1.07, 1.07."""
    given = queries(data("qrels/queries.msmarco-passage.dev-subset.tsv.gz").read_bytes())
    labels = qrels(data("qrels/qrels.msmarco-passage.dev-subset.txt.gz").read_bytes())
    row = list_columns(describe_sets({"dev": (given, labels)}))[1]
    assert row == ("dev", "6,980", "5.92", "7,437", "1.07", "1.07")


@pytest.mark.real
def test_document_dev_row_of_table_1(data: Callable[[str], Path]) -> None:
    """Lin et al. 2022, Table 1: 5,193 queries, 5.89 tokens, 5,193 judgments, 1.0, 1.0.

    Its queries are those passage dev queries that have a judged document.
    """
    labels = qrels(data("qrels/qrels.msmarco-doc.dev.txt.gz").read_bytes())
    passage = queries(data("qrels/queries.msmarco-passage.dev-subset.tsv.gz").read_bytes())
    texts = {query: passage.texts[query] for query in labels.judgments}
    row = list_columns(describe_sets({"d": (Queries(texts=texts, digest=passage.digest), labels)}))
    assert row[1] == ("d", "5,193", "5.89", "5,193", "1.00", "1.00")
