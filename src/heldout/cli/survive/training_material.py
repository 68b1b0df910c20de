"""What `heldout survive train` trains on and what it re-ranks, read or made."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from pathlib import Path

import click
import numpy as np

from heldout.cli.console import messages
from heldout.cli.printing import plural, print_facts
from heldout.cli.survive.annotation_source import AnnotationSource
from heldout.cli.survive.places import find_first_stage, read_collection
from heldout.cli.survive.training_options import TestChoice, TripleChoice
from heldout.collections.catalogue import PREFIX
from heldout.collections.collection import Collection
from heldout.errors import InputError, Problem, quote
from heldout.ids import Digest, DocId, QueryId
from heldout.measures.spec import parse_measure
from heldout.rankers.bm25 import Bm25Settings, rank_bm25
from heldout.rankers.first_stage import read_run
from heldout.rankers.run import Run, Task
from heldout.survivorship.annotations import Annotations
from heldout.survivorship.reading.passage_names import (
    keep_known,
    match_names,
    name_passages,
    seen_documents,
)
from heldout.survivorship.reading.simulated import simulate_annotations
from heldout.survivorship.training.experiment import TestSet
from heldout.survivorship.training.first_checks import check_first
from heldout.survivorship.training.trained_on import TrainedOn, find_trained_on
from heldout.survivorship.training.triple_checks import Unknown, check_texts, known_triples
from heldout.survivorship.training.triple_files import read_triples
from heldout.survivorship.training.triples import Places, Triple, make_triples, places_of
from heldout.trec.reading.streams import open_input

__all__ = ["Material", "name_of", "read_material", "read_tests", "tell_trained_on"]

_SHOWN = 10
_FIRST = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Material:
    """What is trained on.

    Attributes:
        source: where the labels come from, for messages and the record.
        queries: their texts.
        documents: their texts.
        places: where the selected documents of each query were shown.
        triples: the sequence; the annotations know each positive.
        digest: SHA-256 of the sequence.
    """

    source: str
    queries: Mapping[QueryId, str]
    documents: Mapping[DocId, str]
    places: Places
    triples: Sequence[Triple]
    digest: Digest


def read_material(source: AnnotationSource, choice: TripleChoice) -> Material:
    """Labels with their places, and the triples made of them or read.

    Raises:
        click.UsageError: an option that plays no part here.
        InputError: a file has errors; `collection-without-labels`, `unknown-positive`,
            `triple-without-text`.
    """
    named = source.annotations is not None or source.shown is not None
    _refuse_others(source, named=named)
    collection = read_collection(choice.collection)
    deepest = max(choice.negatives_from, source.shown_depth or _SHOWN)
    ranked = None if named and choice.triples else _rank(collection, deepest)
    annotations = (
        source.read(name=partial(_name, collection, choice.collection))
        if named
        else _simulate(collection, ranked or {}, source, choice)
    )
    places = places_of(annotations)
    if choice.triples is not None:
        triples = _read(choice, places)
        where = choice.triples
    else:
        rng = np.random.default_rng(choice.seed)
        tops = {
            query: [hit.document for hit in hits[: choice.negatives_from]]
            for query, hits in (ranked or {}).items()
        }
        triples = make_triples(places, tops, negatives=choice.negatives, rng=rng)
        where = annotations.source
    check_texts(triples, collection.queries, collection.documents, path=where)
    return Material(
        source=annotations.source,
        queries=collection.queries,
        documents=collection.documents,
        places=places,
        triples=triples,
        digest=Digest(sha256(repr(triples).encode()).hexdigest()),
    )


def read_tests(choice: TestChoice) -> tuple[TestSet, ...]:
    """The test sets, each with the run that is re-ranked.

    Raises:
        InputError: a file has errors; `collection-without-labels`, `repeated-test`.
    """
    tests = [_read_test(given, choice) for given in choice.tests]
    names = [test.name for test in tests]
    for name in names:
        if names.count(name) > 1:
            raise InputError(
                Problem(
                    code="repeated-test",
                    path="--test",
                    found=f"two test sets called {quote(name)}",
                    expected="a name for each",
                    hint="rename a folder",
                )
            )
    return tuple(tests)


def tell_trained_on(material: Material, tests: Sequence[TestSet]) -> Mapping[str, TrainedOn]:
    """Say on standard error what of the test sets is seen in training.

    Returns:
        By the name of the test set.
    """
    found = {
        test.name: find_trained_on(test, material.triples, material.queries, material.documents)
        for test in tests
    }
    for name, one in found.items():
        if one.queries:
            told = (
                f"{one.queries:,} of {plural(one.labelled, 'query', 'queries')} of {name} are "
                "trained on, in the same words or nearly so: scores say little of other queries"
            )
            print_facts(messages(), [("warning", told)])
        if one.negatives:
            told = (
                f"{one.negatives:,} of {plural(one.relevant, 'relevant document')} of {name} are "
                "negatives of other queries in training"
            )
            print_facts(messages(), [("note", told)])
    return found


def _read_test(given: str, choice: TestChoice) -> TestSet:
    place, _, measures = given.partition("=")
    collection = read_collection(place)
    _need_labels(collection, place)
    path = find_first_stage(place)
    if path is None:
        first = _rank(collection, max(_FIRST, choice.rerank))
    else:
        with open_input(path) as file:
            first = read_run(file, path=str(path))
    labels = _as_text(collection)
    unanswered = check_first(
        first,
        documents=collection.documents,
        queries=collection.queries.keys(),
        labelled=labels.keys(),
        path=str(path or place),
    )
    if unanswered:
        told = f"{unanswered:,} of {plural(len(labels), 'labelled query', 'labelled queries')}"
        print_facts(messages(), [("note", f"{told} of {place} score 0: {path or 'BM25'} has none")])
    asked = _split_measures(measures) if measures else choice.measures
    return TestSet(
        name=name_of(place),
        documents=collection.documents,
        queries={query: text for query, text in collection.queries.items() if query in first},
        first=first,
        first_name="BM25" if path is None else path.name,
        qrels=labels,
        measures=tuple(parse_measure(measure) for measure in asked),
        depth=choice.rerank,
        passage=choice.passages,
    )


def name_of(place: str) -> str:
    """What a test set is called, in characters that every file system takes.

    A folder is known by its last part, a published collection by its whole name: many of them
    end alike.
    """
    name = place.removeprefix(PREFIX)
    last = name if name != place else place.rstrip("/").rpartition("/")[2] or place
    return "".join(char if char.isascii() and char.isalnum() else "-" for char in last)


def _split_measures(text: str) -> list[str]:
    """At the commas outside of brackets."""
    parts, depth, start = [], 0, 0
    for place, char in enumerate(text):
        depth += (char in "({") - (char in ")}")
        if char == "," and not depth:
            parts.append(text[start:place])
            start = place + 1
    return [*parts, text[start:]]


def _refuse_others(source: AnnotationSource, *, named: bool) -> None:
    """Refuse options that would be left aside."""
    given = {
        "--types": source.types,
        "--queries": source.queries,
        "--documents": source.documents,
    }
    why = "texts, and ids of passages, come from --collection"
    if not named:
        why += "; of annotations none are named, with --annotations or --shown"
        given |= {
            "--qrels": source.qrels,
            "--query-list": source.query_list,
            "--save": source.save,
        }
    found = [option for option, value in given.items() if value is not None]
    if found:
        raise click.UsageError(f"{why}: without {', '.join(found)}")


def _name(collection: Collection, place: str, annotations: Annotations) -> Annotations:
    """Passages of annotations without ids, by the texts of the collection in hand."""
    names = match_names(collection.documents.items(), seen_documents(annotations))
    named = name_passages(annotations, names, path=place)
    return keep_known(named, collection.documents.keys(), path=place)


def _rank(collection: Collection, depth: int) -> Run:
    task = Task(documents=collection.documents, queries=collection.queries, depth=depth)
    return rank_bm25(task, Bm25Settings())


def _simulate(
    collection: Collection, ranked: Run, source: AnnotationSource, choice: TripleChoice
) -> Annotations:
    _need_labels(collection, choice.collection)
    depth = source.shown_depth or _SHOWN
    tops = {str(query): tuple(hit.document for hit in hits) for query, hits in ranked.items()}
    return simulate_annotations(
        tops,
        _as_text(collection),
        depth=depth,
        source=f"BM25's first {depth} on {choice.collection}, with its labels",
    )


def _read(choice: TripleChoice, places: Places) -> tuple[Triple, ...]:
    path = choice.triples or ""
    unknown = Unknown() if choice.skip_unknown else None
    with open_input(Path(path)) as file:
        rows = read_triples(file, path=path)
        triples = tuple(known_triples(rows, places, path=path, unknown=unknown))
    if unknown is not None and unknown.first is not None:
        told = (
            f"{plural(unknown.triples, 'triple')} with positives that the annotations do not know"
        )
        print_facts(messages(), [("left out", f"{told}, first on line {unknown.first.line:,}")])
    return triples


def _as_text(collection: Collection) -> dict[str, dict[str, int]]:
    """The labels by ids as text."""
    return {
        str(query): {str(document): grade for document, grade in grades.items()}
        for query, grades in collection.qrels.items()
    }


def _need_labels(collection: Collection, place: str) -> None:
    if not collection.qrels:
        raise InputError(
            Problem(
                code="collection-without-labels",
                path=quote(place),
                found="a collection without labels",
                expected="labels",
                hint="put them into the folder as qrels.txt",
            )
        )
