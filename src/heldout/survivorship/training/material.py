"""What a training study reads: collections, labels and triples, and test sets."""

from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import lru_cache, partial
from hashlib import sha256
from pathlib import Path

import numpy as np

from heldout.collections.collection import Collection, near_duplicate_groups
from heldout.collections.source import EMBEDDED, PREFIX, QuerySubset, read_whole, take_subset
from heldout.errors import InputError, OptionError, plural, quote
from heldout.ids import Digest, DocId, QueryId
from heldout.progress_bar import SILENT, Progress
from heldout.rankers import reranking, terms
from heldout.rankers.run import RankingTask, Run, read_run
from heldout.scoring.cache import digest_file
from heldout.scoring.measures import Measure
from heldout.scoring.names import read_own_measure
from heldout.survivorship.annotations import Annotations
from heldout.survivorship.reading import depth_qrels, passages
from heldout.survivorship.reading.source import AnnotationFiles, read_source
from heldout.survivorship.training import triple_files
from heldout.survivorship.training.options import COLLECTIONS, TestOptions, TripleOptions
from heldout.survivorship.training.triples import (
    ReadTriples,
    SelectedRanks,
    Triple,
    make_triples,
    ranks_of,
)
from heldout.trec.reading.sources import read_file

_SHOWN = 10
_FIRST = 100
_HALVES: Mapping[str, QuerySubset] = {"dev": "dev", "eval": "eval"}


@dataclass(frozen=True, slots=True, kw_only=True)
class TestSet:
    """Queries that trained models re-rank.

    Attributes:
        name: letters, digits, points, dashes and underscores; names its files.
        documents: text of every document of `first`.
        queries: text of every query of `first`.
        first: the run to re-rank.
        first_name: what it is called in tables.
        qrels: grade by query and document.
        measures: what is measured.
        depth: how many documents of each query are scored again, from 1.
        passage: words of a passage, where a document is as good as its best passage (MaxP);
            `None` where its beginning is scored.
    """

    __test__ = False  # pytest looks for classes of this name

    name: str
    documents: Mapping[DocId, str]
    queries: Mapping[QueryId, str]
    first: Run
    first_name: str
    qrels: Mapping[str, Mapping[str, int]]
    measures: tuple[Measure, ...]
    depth: int
    passage: int | None = None

    @property
    def file(self) -> str:
        """Name of the files of its runs."""
        return f"{self.name}.run.gz"

    @property
    def inputs(self) -> Digest:
        """What the run of a trained model depends on besides the model.

        Labels and measures play no part: they are asked of the run afterwards. Nor does what the
        test set is called.
        """
        digest = sha256(repr((self.depth, self.passage)).encode())
        for query, text in sorted(self.queries.items()):
            documents = [hit.document for hit in self.first[query]]
            texts = [self.documents[document] for document in documents[: self.depth]]
            digest.update(repr((query, text, documents, texts)).encode())
        return Digest(digest.hexdigest())


# Collections by name or folder, perhaps half of their queries.


class CollectionReader:
    """Reads collections by their names or folders; the last one stays at hand for its other half.

    The halves are those of `heldout rank --queries dev` and `eval`, by the same rule and seed.
    """

    def __init__(self, progress: Progress = SILENT) -> None:
        """Nothing is read yet.

        Args:
            progress: gets what is fetched and left out.
        """
        self._whole = lru_cache(maxsize=1)(partial(_read_whole, progress=progress))

    def read(self, source: str, *, labelled: bool = False) -> Collection:
        """Documents, queries and labels; a collection without labels has none.

        Args:
            source: as in `COLLECTIONS`.
            labelled: whether it must have labels.

        Raises:
            InputError: codes `collection-place`, `collection-without-labels`, and those of the
                readers.
            SetupError: the embedded collection or the catalogue cannot be read here.
        """
        base, subset = _split_source(source)
        collection = take_subset(self._whole(base), subset, 0)
        if labelled and not collection.qrels:
            raise InputError.of("collection-without-labels", quote(source))
        return collection


def find_first_stage(source: str) -> Path | None:
    """The run that lies in a folder to be re-ranked, `first.run` or `first.run.gz`."""
    folder = Path(_split_source(source)[0])
    paths = [folder / "first.run", folder / "first.run.gz"]
    return next((path for path in paths if path.is_file()), None)


def _split_source(source: str) -> tuple[str, QuerySubset]:
    """The collection, and which of its queries; a folder may have a colon in its own name."""
    base, _, half = source.removeprefix(PREFIX).rpartition(":")
    if not base or half not in _HALVES or Path(source).is_dir():
        return source, "all"
    return source.removesuffix(f":{half}"), _HALVES[half]


def _read_whole(source: str, *, progress: Progress) -> Collection:
    if source == EMBEDDED or source.startswith(PREFIX) or Path(source).is_dir():
        return read_whole(source, progress=progress)
    found = "no folder and no name of a collection"
    raise InputError.of("collection-place", quote(source), found, COLLECTIONS)


def _labels_of(collection: Collection) -> dict[str, dict[str, int]]:
    """The labels of a collection by ids as text."""
    return {
        str(query): {str(document): grade for document, grade in grades.items()}
        for query, grades in collection.qrels.items()
    }


def _rank(collection: Collection, depth: int) -> Run:
    task = RankingTask(documents=collection.documents, queries=collection.queries, depth=depth)
    return terms.rank_bm25(task, terms.Bm25Settings())


# Labels with their positions, and the triples made of them or read.


@dataclass(frozen=True, slots=True, kw_only=True)
class Material:
    """What is trained on.

    Attributes:
        source: where the labels come from, for messages and the record.
        queries: their texts.
        documents: their texts.
        selected: where the selected documents of each query were shown.
        read: the sequence of triples, from its beginning at each call. The annotations know each
            positive, and each id has a text; a triple of which that is not so is an error.
        unknown: triples of the last whole reading that were left out, since the annotations do
            not know their positive; `None` where none may be.
        digest: SHA-256 of the sequence; of its file where it is read.
    """

    source: str
    queries: Mapping[QueryId, str]
    documents: Mapping[DocId, str]
    selected: SelectedRanks
    read: ReadTriples
    unknown: triple_files.Unknown | None
    digest: Digest


def read_material(
    source: AnnotationFiles,
    choice: TripleOptions,
    reader: CollectionReader,
    progress: Progress = SILENT,
) -> Material:
    """Labels with their positions, and the triples made of them or read.

    Args:
        source: annotations; without any they are simulated.
        choice: where triples come from.
        reader: of the collection.
        progress: gets which labels are left.

    Raises:
        OptionError: an option that plays no part here.
        InputError: a file has errors; `collection-without-labels`, `no-common-document`. Those
            of the triples come when they are read: `unknown-positive`, `triple-without-text`.
    """
    _refuse_others(source, choice)
    simulated = not (choice.all_labels or source.named)
    labelled = choice.all_labels or simulated
    collection = reader.read(choice.collection, labelled=labelled)
    depth = (source.shown_depth or _SHOWN) if simulated else 0
    depth = max(depth, 0 if choice.triples else choice.negatives_from)
    ranked = _rank(collection, depth) if depth else {}
    if choice.all_labels:
        where, selected = f"labels of {choice.collection}", _all_labels(collection, progress)
    else:
        if simulated:
            annotations = _simulate(collection, ranked, source, choice, progress)
        else:
            name = partial(_name, collection, choice.collection)
            annotations = read_source(source, name=name, progress=progress)
        where, selected = annotations.source, ranks_of(annotations)
    unknown = triple_files.Unknown() if choice.triples and choice.skip_unknown else None
    if choice.triples is not None:
        path = Path(choice.triples)
        rows: ReadTriples = partial(triple_files.read_known_triples, path, selected, unknown)
        digest = digest_file(path)
    else:
        tops = {
            query: [hit.document for hit in hits[: choice.negatives_from]]
            for query, hits in ranked.items()
        }
        rng = np.random.default_rng(choice.seed)
        made = make_triples(selected, tops, negatives=choice.negatives, rng=rng)
        rows, digest = made.__iter__, Digest(sha256(repr(made).encode()).hexdigest())
    return Material(
        source=where,
        queries=collection.queries,
        documents=collection.documents,
        selected=selected,
        read=lambda: triple_files.triples_with_texts(
            rows(), collection.queries, collection.documents, path=choice.triples or where
        ),
        unknown=unknown,
        digest=digest,
    )


def note_unknown(material: Material, progress: Progress) -> None:
    """Report how many triples were left out, once they were read."""
    unknown = material.unknown
    if unknown is not None and unknown.first is not None:
        progress.note("left out", f"{unknown}, first on line {unknown.first.line:,}")


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainedOn:
    """What of a test set was seen in training.

    Attributes:
        queries: labelled queries of the test set that were trained on, in the same words or
            nearly so. Ids do not show that: two collections number their queries alike.
        labelled: its labelled queries.
        negatives: its relevant documents that were negatives in training, where they have the
            same id and text.
        relevant: its relevant documents.
    """

    queries: int
    labelled: int
    negatives: int
    relevant: int


def note_trained_on(
    material: Material, triples: AbstractSet[Triple], tests: Sequence[TestSet], progress: Progress
) -> Mapping[str, TrainedOn]:
    """Report what of the test sets is seen in some training.

    Returns:
        By the name of the test set.
    """
    seen = {
        test.name: find_trained_on(test, triples, material.queries, material.documents)
        for test in tests
    }
    for name, one in seen.items():
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
    return seen


def find_trained_on(
    test: TestSet,
    triples: AbstractSet[Triple],
    queries: Mapping[QueryId, str],
    documents: Mapping[DocId, str],
) -> TrainedOn:
    """Compare a test set with what is trained on.

    Args:
        test: queries without a text are left aside.
        triples: that are trained on.
        queries: text of each query of the triples.
        documents: text of each document of the triples.
    """
    relevant = {
        QueryId(query): {DocId(document) for document, grade in grades.items() if grade > 0}
        for query, grades in test.qrels.items()
    }
    labelled = [query for query, found in relevant.items() if found]
    asked = [test.queries[query] for query in labelled if query in test.queries]
    trained = [queries[query] for query in sorted({triple.query for triple in triples})]
    groups = near_duplicate_groups((*asked, *trained)).tolist()
    seen = set(groups[len(asked) :])
    wanted = frozenset[DocId]().union(*relevant.values())
    return TrainedOn(
        queries=sum(group in seen for group in groups[: len(asked)]),
        labelled=len(labelled),
        negatives=sum(
            documents[one] == test.documents.get(one)
            for one in wanted.intersection(triple.negative for triple in triples)
        ),
        relevant=len(wanted),
    )


def _refuse_others(source: AnnotationFiles, choice: TripleOptions) -> None:
    """Refuse options that would be left aside."""
    names = ["qrels", "query_list"] if choice.all_labels or not source.named else []
    why = "no annotations are named, with --annotations or --shown"
    if choice.all_labels:
        why, names = (
            "--all-labels has no annotators",
            ["annotations", "shown", "shown_depth", *names],
        )
    idle = [f"--{name.replace('_', '-')}" for name in names if getattr(source, name) is not None]
    if idle:
        raise OptionError(f"{why}: without {', '.join(idle)}")


def _all_labels(collection: Collection, progress: Progress) -> SelectedRanks:
    """Each relevant document of each query that has a text; at place 1, as nobody was shown any."""
    relevant = {
        query: {document: 1 for document, grade in grades.items() if grade > 0}
        for query, grades in collection.qrels.items()
    }
    known = {q: found for q, found in relevant.items() if found and q in collection.queries}
    labels = plural(sum(map(len, known.values())), "label")
    text = f"{labels} of {plural(len(known), 'query', 'queries')}"
    if lost := sum(map(bool, relevant.values())) - len(known):
        text = f"{text}; {plural(lost, 'labelled query has', 'labelled queries have')} no text"
    progress.note("labels", text)
    return known


def _simulate(
    collection: Collection,
    ranked: Run,
    source: AnnotationFiles,
    choice: TripleOptions,
    progress: Progress,
) -> Annotations:
    depth = source.shown_depth or _SHOWN
    labels = _labels_of(collection)
    annotations = depth_qrels.simulate_annotations(
        {str(query): tuple(hit.document for hit in hits) for query, hits in ranked.items()},
        labels,
        depth=depth,
        source=f"BM25's first {depth} on {choice.collection}, with its labels",
    )
    before = sum(grade > 0 for grades in labels.values() for grade in grades.values())
    left = sum(len(record.selected) for record in annotations.records)
    text = (
        f"{left:,} of {plural(before, 'label')}, {annotations.survived:,} of "
        f"{plural(len(annotations.records), 'query', 'queries')}: what simulated annotators find "
        f"among BM25's first {depth}; --all-labels takes all"
    )
    progress.note("labels", text)
    return annotations


def _name(collection: Collection, source: str, annotations: Annotations) -> Annotations:
    """Passages of annotations without ids, by the texts of the collection in hand."""
    names = passages.match_names(collection.documents.items(), passages.seen_documents(annotations))
    named = passages.name_passages(annotations, names, path=source)
    return passages.drop_unknown(named, collection.documents.keys(), path=source)


# Test sets, each with a first run that is checked before anything is trained.


def read_tests(
    choice: TestOptions, reader: CollectionReader, progress: Progress = SILENT
) -> tuple[TestSet, ...]:
    """The test sets, each with the run that is re-ranked.

    Args:
        choice: which.
        reader: of their collections.
        progress: gets how many queries a first run leaves out.

    Raises:
        InputError: a file has errors; `collection-without-labels`, `repeated-test`; of a first
            run `rerank-document`, `no-common-query`.
    """
    tests = [_read_test(given, choice, reader, progress) for given in choice.tests]
    names = [test.name for test in tests]
    for name in names:
        if names.count(name) > 1:
            raise InputError.of("repeated-test", "--test", name=quote(name))
    return tuple(tests)


def name_of(source: str) -> str:
    """Return what a test set is called, in characters that every file system takes.

    A folder is known by its last part, a published collection by its whole name: many of them
    end alike.
    """
    name = source.removeprefix(PREFIX)
    last = name if name != source else source.rstrip("/").rpartition("/")[2] or source
    return "".join(char if char.isascii() and char.isalnum() else "-" for char in last)


def _read_test(
    given: str, choice: TestOptions, reader: CollectionReader, progress: Progress
) -> TestSet:
    source, _, measures = given.partition("=")
    collection = reader.read(source, labelled=True)
    path = find_first_stage(source)
    if path is None:
        first, first_name = _rank(collection, max(_FIRST, choice.rerank)), "BM25"
    else:
        run = read_file(read_run, path)
        first = {query: hits for query, hits in run.items() if query in collection.queries}
        first_name = path.name
    labels = _labels_of(collection)
    unanswered = _check_first(first, collection, labels.keys(), path=str(path or source))
    if unanswered:
        queries = f"{unanswered:,} of {plural(len(labels), 'labelled query', 'labelled queries')}"
        progress.note("note", f"{queries} of {source} score 0: {first_name} has none")
    asked = _split_measures(measures) if measures else choice.measures
    # Only the texts that are re-ranked or relevant: a collection may have millions
    needed = {hit.document for hits in first.values() for hit in hits}
    needed |= {document for grades in collection.qrels.values() for document in grades}
    documents = collection.documents
    return TestSet(
        name=name_of(source),
        documents={one: documents[one] for one in needed if one in documents},
        queries={query: text for query, text in collection.queries.items() if query in first},
        first=first,
        first_name=first_name,
        qrels=labels,
        measures=tuple(read_own_measure(measure, path="--measure") for measure in asked),
        depth=choice.rerank,
        passage=choice.passage,
    )


def _check_first(first: Run, collection: Collection, labelled: AbstractSet[str], path: str) -> int:
    """Make sure that a run of a collection's queries can be re-ranked and scored.

    Returns:
        How many labelled queries it does not answer; they score 0.
    """
    for query, hits in first.items():
        reranking.check_known(hits, collection.documents, query=query, path=path)
    missing = labelled - {str(query) for query, hits in first.items() if hits}
    if len(missing) == len(labelled):
        found = "none of the collection's labelled queries"
        hint = "was the run made on this collection?"
        raise InputError.of("no-common-query", path, found, "a run of its queries", hint)
    return len(missing)


def _split_measures(text: str) -> Iterator[str]:
    """At the commas outside of brackets."""
    depth = start = 0
    for position, char in enumerate(text):
        depth += (char in "({") - (char in ")}")
        if char == "," and not depth:
            yield text[start:position]
            start = position + 1
    yield text[start:]
