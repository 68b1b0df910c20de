"""What a training study re-ranks: test sets, each with a first run that is checked before."""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet

from heldout.collections.catalogue import PREFIX
from heldout.collections.collection import Collection
from heldout.errors import InputError, Problem, plural, quote
from heldout.ids import DocId, QueryId
from heldout.progress import SILENT, Progress
from heldout.rankers.bm25 import Bm25Settings, rank_bm25
from heldout.rankers.run import Run, Task, read_run
from heldout.scoring.spec import parse_measure
from heldout.survivorship.services.collections import CollectionReader, find_first_stage
from heldout.survivorship.services.training_material import need_labels, text_labels
from heldout.survivorship.training.experiment import TestSet
from heldout.survivorship.training.options import TestOptions
from heldout.trec.reading.sources import open_input


def check_first(
    first: Run,
    *,
    documents: Mapping[DocId, str],
    queries: AbstractSet[QueryId],
    labelled: AbstractSet[str],
    path: str,
) -> int:
    """Make sure that a run can be re-ranked and scored.

    Args:
        first: the run.
        documents: text of each document of the collection.
        queries: those of the collection.
        labelled: queries that have labels.
        path: the run's file, for messages.

    Returns:
        How many labelled queries it does not answer; they score 0.

    Raises:
        InputError: codes `rerank-document` (a query of the collection has a document that the
            collection has not) and `no-common-query`.
    """
    answered = [query for query in first if query in queries]
    for query in answered:
        shown = (hit.document for hit in first[query])
        unknown = next((document for document in shown if document not in documents), None)
        if unknown is not None:
            raise InputError(
                Problem(
                    code="rerank-document",
                    path=path,
                    found=f"document {quote(unknown)} of query {quote(query)}",
                    expected="only documents of the collection",
                    hint="was the run made on this collection?",
                )
            )
    missing = labelled - {str(query) for query in answered if first[query]}
    if len(missing) == len(labelled):
        raise InputError(
            Problem(
                code="no-common-query",
                path=path,
                found="none of the collection's labelled queries",
                expected="a run of its queries",
                hint="was the run made on this collection?",
            )
        )
    return len(missing)


_FIRST = 100


def read_tests(
    choice: TestOptions, reader: CollectionReader, progress: Progress = SILENT
) -> tuple[TestSet, ...]:
    """The test sets, each with the run that is re-ranked.

    Args:
        choice: which.
        reader: of their collections.
        progress: is told how many queries a first run leaves out.

    Raises:
        InputError: a file has errors; `collection-without-labels`, `repeated-test`.
    """
    tests = [_read_test(given, choice, reader, progress) for given in choice.tests]
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


def name_of(place: str) -> str:
    """What a test set is called, in characters that every file system takes.

    A folder is known by its last part, a published collection by its whole name: many of them
    end alike.
    """
    name = place.removeprefix(PREFIX)
    last = name if name != place else place.rstrip("/").rpartition("/")[2] or place
    return "".join(char if char.isascii() and char.isalnum() else "-" for char in last)


def _read_test(
    given: str, choice: TestOptions, reader: CollectionReader, progress: Progress
) -> TestSet:
    place, _, measures = given.partition("=")
    collection = reader.read(place)
    need_labels(collection, place)
    first, first_name = _read_first(collection, place, depth=max(_FIRST, choice.rerank))
    labels = text_labels(collection)
    unanswered = check_first(
        first,
        documents=collection.documents,
        queries=collection.queries.keys(),
        labelled=labels.keys(),
        path=str(find_first_stage(place) or place),
    )
    if unanswered:
        queries = f"{unanswered:,} of {plural(len(labels), 'labelled query', 'labelled queries')}"
        progress.note("note", f"{queries} of {place} score 0: {first_name} has none")
    asked = _split_measures(measures) if measures else choice.measures
    return TestSet(
        name=name_of(place),
        documents=_needed_texts(collection, first),
        queries={query: text for query, text in collection.queries.items() if query in first},
        first=first,
        first_name=first_name,
        qrels=labels,
        measures=tuple(parse_measure(measure) for measure in asked),
        depth=choice.rerank,
        passage=choice.passages,
    )


def _read_first(collection: Collection, place: str, *, depth: int) -> tuple[Run, str]:
    """The run to re-rank, of the collection's queries, and what it is called."""
    path = find_first_stage(place)
    if path is None:
        task = Task(documents=collection.documents, queries=collection.queries, depth=depth)
        return rank_bm25(task, Bm25Settings()), "BM25"
    with open_input(path) as file:
        run = read_run(file, path=str(path))
    return {query: hits for query, hits in run.items() if query in collection.queries}, path.name


def _needed_texts(collection: Collection, first: Run) -> dict[DocId, str]:
    """Those of documents that are re-ranked or relevant: a collection may have millions."""
    ranked = {hit.document for hits in first.values() for hit in hits}
    labelled = {document for grades in collection.qrels.values() for document in grades}
    documents = collection.documents
    # Unknown documents of the run are told of by the check of it.
    return {one: documents[one] for one in ranked | labelled if one in documents}


def _split_measures(text: str) -> list[str]:
    """At the commas outside of brackets."""
    parts, depth, start = [], 0, 0
    for place, char in enumerate(text):
        depth += (char in "({") - (char in ")}")
        if char == "," and not depth:
            parts.append(text[start:place])
            start = place + 1
    return [*parts, text[start:]]
