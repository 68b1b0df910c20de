"""What `heldout survive train` trains on, read or made."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from pathlib import Path

import numpy as np

from heldout.collections.collection import Collection
from heldout.errors import InputError, Problem, plural, quote
from heldout.ids import Digest, DocId, QueryId
from heldout.options import OptionError
from heldout.progress import SILENT, Progress
from heldout.rankers.bm25 import Bm25Settings, rank_bm25
from heldout.rankers.run import Run, Task
from heldout.survivorship.annotations import Annotations
from heldout.survivorship.reading.depth_qrels import simulate_annotations
from heldout.survivorship.reading.passages import (
    keep_known,
    match_names,
    name_passages,
    seen_documents,
)
from heldout.survivorship.reading.source import AnnotationPlace, read_source
from heldout.survivorship.services.collections import CollectionReader
from heldout.survivorship.training.experiment import Cell, TestSet
from heldout.survivorship.training.options import TripleOptions
from heldout.survivorship.training.results import TrainedOn, find_trained_on
from heldout.survivorship.training.triple_files import (
    ReadTriples,
    Unknown,
    known_triples,
    read_triples,
    triples_with_texts,
)
from heldout.survivorship.training.triples import SelectedPlaces, Triple, make_triples, places_of
from heldout.trec.reading.sources import open_input

_SHOWN = 10
_PIECE = 1 << 20
"""Bytes of a file that are read at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Material:
    """What is trained on.

    Attributes:
        source: where the labels come from, for messages and the record.
        queries: their texts.
        documents: their texts.
        places: where the selected documents of each query were shown.
        read: the sequence of triples, from its beginning at each call. The annotations know each
            positive, and each id has a text; a triple of which that is not so is an error.
        unknown: triples of the last whole reading that were left out, since the annotations do
            not know their positive; `None` where none may be.
        digest: SHA-256 of the sequence; of its file where it is read.
    """

    source: str
    queries: Mapping[QueryId, str]
    documents: Mapping[DocId, str]
    places: SelectedPlaces
    read: ReadTriples
    unknown: Unknown | None
    digest: Digest


@dataclass(frozen=True, slots=True, kw_only=True)
class _Labels:
    """Labels with their places.

    Attributes:
        source: where they come from.
        places: where the selected documents of each query were shown.
        ranked: what BM25 ranks first for each query; empty where nobody asked.
    """

    source: str
    places: SelectedPlaces
    ranked: Run


def read_material(
    source: AnnotationPlace,
    choice: TripleOptions,
    reader: CollectionReader,
    progress: Progress = SILENT,
) -> Material:
    """Labels with their places, and the triples made of them or read.

    Args:
        source: annotations; without any they are simulated.
        choice: where triples come from.
        reader: of the collection.
        progress: is text which labels are left.

    Raises:
        OptionError: an option that plays no part here.
        InputError: a file has errors; `collection-without-labels`, `no-common-document`. Those
            of the triples come when they are read: `unknown-positive`, `triple-without-text`.
    """
    _refuse_others(source, choice)
    collection = reader.read(choice.collection)
    labels = _read_labels(collection, source, choice, progress)
    if choice.triples is not None:
        unknown = Unknown() if choice.skip_unknown else None
        rows: ReadTriples = partial(_read_file, Path(choice.triples), labels.places, unknown)
        where, digest = choice.triples, _digest(Path(choice.triples))
    else:
        unknown = None
        made = _make(labels, choice)
        rows = made.__iter__
        where, digest = labels.source, Digest(sha256(repr(made).encode()).hexdigest())
    return Material(
        source=labels.source,
        queries=collection.queries,
        documents=collection.documents,
        places=labels.places,
        read=lambda: triples_with_texts(
            rows(), collection.queries, collection.documents, path=where
        ),
        unknown=unknown,
        digest=digest,
    )


def note_unknown(material: Material, progress: Progress) -> None:
    """Report how many triples were left out, once they were read."""
    unknown = material.unknown
    if unknown is not None and unknown.first is not None:
        text = (
            f"{plural(unknown.triples, 'triple')} with positives that the annotations do not know"
        )
        progress.note("left out", f"{text}, first on line {unknown.first.line:,}")


def note_trained_on(
    material: Material, cells: Sequence[Cell], tests: Sequence[TestSet], progress: Progress
) -> Mapping[str, TrainedOn]:
    """Report what of the test sets is seen in some training.

    Returns:
        By the name of the test set.
    """
    triples = {triple for cell in cells for triple in cell.selection.triples}
    found = {
        test.name: find_trained_on(test, triples, material.queries, material.documents)
        for test in tests
    }
    for name, one in found.items():
        if one.queries:
            text = (
                f"{one.queries:,} of {plural(one.labelled, 'query', 'queries')} of {name} are "
                "trained on, in the same words or nearly so: scores say little of other queries"
            )
            progress.note("warning", text)
        if one.negatives:
            text = (
                f"{one.negatives:,} of {plural(one.relevant, 'relevant document')} of {name} are "
                "negatives of other queries in training"
            )
            progress.note("note", text)
    return found


def text_labels(collection: Collection) -> dict[str, dict[str, int]]:
    """The labels of a collection by ids as text."""
    return {
        str(query): {str(document): grade for document, grade in grades.items()}
        for query, grades in collection.qrels.items()
    }


def need_labels(collection: Collection, place: str) -> None:
    """Make sure that a collection has labels.

    Raises:
        InputError: code `collection-without-labels`.
    """
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


def _refuse_others(source: AnnotationPlace, choice: TripleOptions) -> None:
    """Refuse options that would be left aside."""
    given: dict[str, object] = {}
    why = "no annotations are named, with --annotations or --shown"
    if choice.all_labels:
        why = "--all-labels has no annotators"
        given |= {
            "--annotations": source.annotations,
            "--shown": source.shown,
            "--shown-depth": source.shown_depth,
        }
    if choice.all_labels or not source.named:
        given |= {"--qrels": source.qrels, "--query-list": source.query_list}
    found = [option for option, value in given.items() if value is not None]
    if found:
        raise OptionError(f"{why}: without {', '.join(found)}")


def _read_labels(
    collection: Collection, source: AnnotationPlace, choice: TripleOptions, progress: Progress
) -> _Labels:
    named = source.named
    needed = 0 if named or choice.all_labels else source.shown_depth or _SHOWN
    if choice.triples is None:
        needed = max(needed, choice.negatives_from)
    ranked = _rank(collection, needed) if needed else {}
    if choice.all_labels:
        places = _all_labels(collection, choice.collection, progress)
        return _Labels(source=f"labels of {choice.collection}", places=places, ranked=ranked)
    if named:
        name = partial(_name, collection, choice.collection)
        annotations = read_source(source, name=name, progress=progress)
    else:
        annotations = _simulate(collection, ranked, source, choice, progress)
    return _Labels(source=annotations.source, places=places_of(annotations), ranked=ranked)


def _all_labels(collection: Collection, place: str, progress: Progress) -> SelectedPlaces:
    """Each relevant document of each query that has a text; at place 1, as nobody was shown any."""
    need_labels(collection, place)
    relevant = {
        query: {document: 1 for document, grade in grades.items() if grade > 0}
        for query, grades in collection.qrels.items()
    }
    places = {query: found for query, found in relevant.items() if found}
    known = {query: found for query, found in places.items() if query in collection.queries}
    text = _amount(known)
    if lost := len(places) - len(known):
        text = f"{text}; {plural(lost, 'labelled query has', 'labelled queries have')} no text"
    progress.note("labels", text)
    return known


def _simulate(
    collection: Collection,
    ranked: Run,
    source: AnnotationPlace,
    choice: TripleOptions,
    progress: Progress,
) -> Annotations:
    need_labels(collection, choice.collection)
    depth = source.shown_depth or _SHOWN
    tops = {str(query): tuple(hit.document for hit in hits) for query, hits in ranked.items()}
    labels = text_labels(collection)
    found = simulate_annotations(
        tops,
        labels,
        depth=depth,
        source=f"BM25's first {depth} on {choice.collection}, with its labels",
    )
    before = sum(grade > 0 for grades in labels.values() for grade in grades.values())
    left = sum(len(record.selected) for record in found.records)
    text = (
        f"{left:,} of {plural(before, 'label')}, {found.survived:,} of "
        f"{plural(len(found.records), 'query', 'queries')}: what simulated annotators find among "
        f"BM25's first {depth}; --all-labels takes all"
    )
    progress.note("labels", text)
    return found


def _amount(places: SelectedPlaces) -> str:
    labels = sum(map(len, places.values()))
    return f"{plural(labels, 'label')} of {plural(len(places), 'query', 'queries')}"


def _name(collection: Collection, place: str, annotations: Annotations) -> Annotations:
    """Passages of annotations without ids, by the texts of the collection in hand."""
    names = match_names(collection.documents.items(), seen_documents(annotations))
    named = name_passages(annotations, names, path=place)
    return keep_known(named, collection.documents.keys(), path=place)


def _rank(collection: Collection, depth: int) -> Run:
    task = Task(documents=collection.documents, queries=collection.queries, depth=depth)
    return rank_bm25(task, Bm25Settings())


def _make(labels: _Labels, choice: TripleOptions) -> tuple[Triple, ...]:
    tops = {
        query: [hit.document for hit in hits[: choice.negatives_from]]
        for query, hits in labels.ranked.items()
    }
    rng = np.random.default_rng(choice.seed)
    return make_triples(labels.places, tops, negatives=choice.negatives, rng=rng)


def _read_file(path: Path, places: SelectedPlaces, unknown: Unknown | None) -> Iterator[Triple]:
    """The triples of a file from its beginning; `unknown` is text at its end."""
    counted = None if unknown is None else Unknown()
    with open_input(path) as file:
        rows = read_triples(file, path=str(path))
        yield from known_triples(rows, places, path=str(path), unknown=counted)
    if unknown is not None and counted is not None:
        unknown.triples, unknown.first = counted.triples, counted.first


def _digest(path: Path) -> Digest:
    found = sha256()
    with open_input(path) as file:
        for piece in iter(partial(file.read, _PIECE), b""):
            found.update(piece)
    return Digest(found.hexdigest())
