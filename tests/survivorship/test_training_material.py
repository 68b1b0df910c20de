"""What `heldout survive train` trains on: labels with their places, and triples of them."""

import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from qna_files import as_columns, pack, query

from heldout.cli.printing import TERMINAL
from heldout.errors import InputError, OptionError
from heldout.ids import DocId, QueryId
from heldout.rankers.run import Hit
from heldout.scoring.measures import parse_measure
from heldout.survivorship.reading.source import AnnotationFiles
from heldout.survivorship.training.material import (
    CollectionReader,
    Material,
    TestSet,
    find_trained_on,
    note_unknown,
    read_material,
)
from heldout.survivorship.training.options import TripleOptions
from heldout.survivorship.training.triples import (
    Triple,
    draw_triples,
    paper_conditions,
    share_conditions,
)

SHOWN = 4


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Six queries in the form of MS MARCO QnA, and a collection of the same passages by number."""
    queries = [
        query(number, [int(at == number % SHOWN) for at in range(SHOWN)]) for number in range(6)
    ]
    (tmp_path / "train.json").write_bytes(pack(as_columns(queries)))
    documents = [
        f"{100 * number + at}\tpassage {at} of {number}\n"
        for number in range(6)
        for at in range(1, SHOWN + 1)
    ]
    (tmp_path / "documents.tsv").write_text("".join(documents))
    (tmp_path / "queries.tsv").write_text("".join(f"{n}\twhat is {n}\n" for n in range(6)))
    (tmp_path / "triples.tsv").write_text(
        "".join(f"{n}\t{100 * n + n % SHOWN + 1}\t{100 * ((n + 1) % 6) + 1}\n" for n in range(6))
    )
    return tmp_path


def read(
    place: Path,
    *,
    half: str = "",
    triples: str | None = None,
    skip_unknown: bool = False,
    all_labels: bool = False,
    **source: Any,
) -> Material:
    choice = TripleOptions(
        collection=f"{place}{half}",
        triples=None if triples is None else str(place / triples),
        negatives=2,
        negatives_from=10,
        skip_unknown=skip_unknown,
        all_labels=all_labels,
    )
    return read_material(AnnotationFiles(**source), choice, CollectionReader(), TERMINAL)


def test_passages_of_qna_have_the_ids_of_the_collection_that_is_trained_on(place: Path) -> None:
    found = read(place, triples="triples.tsv", annotations=place / "train.json")
    assert found.selected == {
        str(n): {str(100 * n + n % SHOWN + 1): n % SHOWN + 1} for n in range(6)
    }
    assert len(list(found.read())) == 6


def test_other_labels_select_from_the_passages_by_the_ids_of_the_collection(place: Path) -> None:
    (place / "other.qrels").write_text("3 0 302 1\n")
    found = read(place, annotations=place / "train.json", qrels=place / "other.qrels")
    assert found.selected == {"3": {"302": 2}}


def test_a_label_that_the_collection_has_no_text_of_is_left_out_and_told(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    documents = (place / "documents.tsv").read_text()
    (place / "documents.tsv").write_text(documents.replace("passage 1 of 0\n", "another\n"))
    found = read(place, annotations=place / "train.json")
    assert set(found.selected) == {"1", "2", "3", "4", "5"}
    told = " ".join(capsys.readouterr().err.split())
    assert "1 passage missing of 24 that were shown" in told
    assert "1 of 6 selected passages missing" in told


def test_a_collection_of_other_texts_is_refused(place: Path) -> None:
    (place / "documents.tsv").write_text("1\tnothing of that\n")
    with pytest.raises(InputError, match="no-common-document"):
        read(place, annotations=place / "train.json")


@pytest.mark.parametrize("option", ["qrels", "query_list"])
def test_options_of_annotations_are_refused_where_none_are_named(place: Path, option: str) -> None:
    options: dict[str, Any] = {option: place / "x"}
    with pytest.raises(OptionError, match=f"without --{option.replace('_', '-')}"):
        read(place, **options)
    assert not (place / "x").exists()


@pytest.mark.slow
def test_of_a_sequence_nothing_stays_but_what_the_steps_take() -> None:
    places = {QueryId(f"q{n}"): {DocId(f"p{n}"): 1 + n % 4} for n in range(100)}

    def pass_by() -> Iterator[Triple]:
        for number in range(20_000):
            query = QueryId(f"q{number % 100}")
            yield Triple(query, DocId(f"p{number % 100}"), DocId(f"n{number}"))

    wanted = [*paper_conditions([1, 3], controls=[1]), *share_conditions([0.1, 0.5])]
    passed = [0]

    def count() -> Iterator[Triple]:
        for triple in pass_by():
            passed[0] += 1
            yield triple

    shares = [(one, 0) for one in share_conditions([0.1, 0.5])]
    draw_triples(count, places, shares, source="t", limit=100)
    assert 20_100 <= passed[0] < 22_000  # the second time no further than it has to
    tracemalloc.start()
    draws, counts = draw_triples(
        pass_by, places, [(one, 0) for one in wanted], source="t", limit=100
    )
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert counts.triples == 20_000
    assert [len(one.triples) for one in draws] == [100] * 6
    assert most < 1 << 20  # all of them take 4 MB


def test_a_positive_that_nobody_selected_is_an_error_or_left_out_and_counted(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with (place / "triples.tsv").open("a") as file:
        file.write("1\t101\t201\n")
    found = read(place, triples="triples.tsv", annotations=place / "train.json")
    with pytest.raises(InputError, match="unknown-positive"):
        list(found.read())
    found = read(place, triples="triples.tsv", skip_unknown=True, annotations=place / "train.json")
    for _ in range(2):
        assert len(list(found.read())) == 6
    next(iter(found.read()))  # a reading that ends early counts nothing
    note_unknown(found, TERMINAL)
    assert "1 triple with positives that" in " ".join(capsys.readouterr().err.split())


def test_ids_without_a_text_are_named_together_and_early(place: Path) -> None:
    lines = [f"1\t102\tnowhere{number}\n" for number in range(1000)]
    (place / "triples.tsv").write_text("".join(lines))
    found = read(place, triples="triples.tsv", annotations=place / "train.json")
    with pytest.raises(InputError) as caught:
        list(found.read())
    assert [one.found for one in caught.value.problems] == [
        f"no text of document nowhere{number}" for number in range(20)
    ]


def test_other_triples_have_another_digest(place: Path) -> None:
    source: dict[str, Any] = {"annotations": place / "train.json"}
    one = read(place, triples="triples.tsv", **source)
    assert one.digest == read(place, triples="triples.tsv", **source).digest
    with (place / "triples.tsv").open("a") as file:
        file.write("1\t102\t302\n")
    assert one.digest != read(place, triples="triples.tsv", **source).digest


def test_simulated_annotators_leave_some_labels_which_is_told_and_all_can_be_taken(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each query has one relevant document that it shares words with, and one that it does not."""
    (place / "documents.tsv").write_text(
        "".join(f"a{n}\twhat is {n} about\nz{n}\telsewhere\n" for n in range(6))
    )
    labels = [f"{n} 0 a{n} 1\n{n} 0 z{n} 2\n{n} 0 a{(n + 1) % 6} 0\n" for n in range(6)]
    (place / "qrels.txt").write_text("".join(labels) + "99 0 a1 1\n")
    some = read(place, shown_depth=3)
    assert some.selected == {str(n): {f"a{n}": 1} for n in range(6)}
    assert "6 of 13 labels, 6 of 7 queries" in " ".join(capsys.readouterr().err.split())
    every = read(place, all_labels=True)
    assert {query: set(found) for query, found in every.selected.items()} == {
        str(n): {f"a{n}", f"z{n}"} for n in range(6)
    }
    assert {triple.positive[0] for triple in every.read()} == {"a", "z"}
    assert not {triple.negative for triple in every.read() if triple.query == "3"} & {"a3", "z3"}
    told = " ".join(capsys.readouterr().err.split())
    assert "12 labels of 6 queries; 1 labelled query has no text" in told


def test_half_of_a_folder_trains_on_its_own_labels_only(place: Path) -> None:
    (place / "documents.tsv").write_text("".join(f"a{n}\twhat is {n}\n" for n in range(6)))
    (place / "qrels.txt").write_text("".join(f"{n} 0 a{n} 1\n" for n in range(6)))
    halves = [read(place, half=half, all_labels=True) for half in (":dev", ":eval")]
    assert set(halves[0].selected) | set(halves[1].selected) == set("012345")
    assert not set(halves[0].selected) & set(halves[1].selected)


def test_a_file_of_triples_may_have_every_label_of_the_collection(place: Path) -> None:
    (place / "qrels.txt").write_text(
        "".join(f"{n} 0 {100 * n + n % SHOWN + 1} 1\n" for n in range(6))
    )
    assert len(list(read(place, triples="triples.tsv", all_labels=True).read())) == 6


@pytest.mark.parametrize("option", ["annotations", "shown", "shown_depth", "qrels"])
def test_all_labels_have_no_annotators(place: Path, option: str) -> None:
    options: dict[str, Any] = {option: place / "x"}
    with pytest.raises(OptionError, match="--all-labels has no annotators"):
        read(place, all_labels=True, **options)


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
