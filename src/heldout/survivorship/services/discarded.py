"""The pool of discarded queries: which of them, the tops of runs, the texts."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import numpy as np

from heldout.collections.collection import read_wanted_texts
from heldout.errors import InputError, Problem, StoreError
from heldout.ids import Digest
from heldout.options import Opt, OptionError, Seed
from heldout.progress import SILENT, Progress
from heldout.scoring.run_files import RunOrder, RunPatterns, name_runs, read_each
from heldout.survivorship.annotations import Annotation
from heldout.survivorship.discarded.answerable import SystemTop, pool_questions
from heldout.survivorship.discarded.folder import PoolRecord, QuestionFolder
from heldout.survivorship.discarded.questions import TRIAGE, Question
from heldout.survivorship.discarded.triage import count_labels, sound_queries
from heldout.survivorship.reading.source import AnnotationSource, read_source
from heldout.trec.queries import read_queries
from heldout.trec.reading.sources import open_input
from heldout.trec.tops import Tops

_SAMPLE = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolOptions:
    """Which discarded queries are pooled, and of which runs."""

    runs: RunPatterns = ()
    triage: Annotated[
        Path | None,
        Opt(
            "Folder of triage: only queries that are sound and rightly discarded.",
            metavar="FOLDER",
            path="folder",
        ),
    ] = None
    sample: Annotated[
        int | None, Opt("Number of queries, at random [50, or all].", least=1, metavar="N")
    ] = None
    depth: Annotated[
        int,
        Opt(
            "Number of first passages of each system to judge.",
            names=("--depth", "-k"),
            least=1,
            most=100,
        ),
    ] = 10
    order: RunOrder = None
    seed: Seed = 0


def pool_discarded(
    folder: QuestionFolder,
    pool: PoolOptions,
    source: AnnotationSource,
    progress: Progress = SILENT,
) -> tuple[Question, ...]:
    """Pool the tops of runs into a new folder; its questions.

    Raises:
        StoreError: the folder has questions already, or the one of triage has none.
        InputError: a file has errors; code `too-few-queries`.
        OptionError: neither queries nor texts are named.
    """
    if folder.exists():
        raise StoreError(f"{folder.place} is there already; name another folder")
    if source.documents is None:
        raise OptionError("--documents FILE: the texts that people look at")
    rng = np.random.default_rng(pool.seed)
    queries = _sample(_queries_of(pool.triage, source, progress), pool.sample, rng)
    paths = name_runs(pool.runs)
    tops = read_each(paths, depth=pool.depth, order=pool.order, progress=progress)
    own = {name: {query: top.get(query, ()) for query in queries} for name, top in tops.items()}
    documents = _read_texts(source.documents, own)
    questions = pool_questions(own, queries=queries, documents=documents, rng=rng)
    digests = {name: digest_file(Path(path)) for name, path in paths.items()}
    record = PoolRecord(depth=pool.depth, seed=pool.seed, runs_sha256=digests)
    folder.write_pool(_rows(own), record)
    return folder.add(questions)


def _queries_of(
    triage: Path | None, source: AnnotationSource, progress: Progress
) -> Mapping[str, str]:
    """Texts of discarded queries: those that triage found sound, or all of the annotations.

    Without either they are those of `--queries` alone.

    Raises:
        StoreError: the folder of triage has no questions.
        InputError: a file has errors; codes `too-few-queries`, `no-discarded`, `no-text`.
        OptionError: none of the three is named.
    """
    if triage is not None:
        folder = QuestionFolder(triage, TRIAGE)
        questions = folder.questions()
        found = count_labels(questions, folder.answers())
        return {one.query: one.text for one in sound_queries(questions, found)}
    if source.named:
        return _of_annotations(source, progress)
    if source.queries is None:
        raise OptionError("which queries? --triage FOLDER, --annotations PATH or --queries")
    with open_input(source.queries) as file:
        return read_queries(file, path=str(source.queries)).texts


def digest_file(path: Path) -> Digest:
    """SHA-256 of a file as it lies."""
    with path.open("rb") as file:
        return Digest(hashlib.file_digest(file, "sha256").hexdigest())


def read_discarded(
    source: AnnotationSource, *, texts: bool = False, progress: Progress = SILENT
) -> Sequence[Annotation]:
    """The discarded queries of annotations.

    Args:
        source: which annotations.
        texts: whether texts of queries are wanted.
        progress: gets the notes of the files.

    Raises:
        InputError: a file has errors; code `no-discarded`: the source leaves them out.
    """
    # Texts of documents are read later, of those alone that are pooled
    annotations = read_source(replace(source, documents=None), texts=texts, progress=progress)
    if not annotations.counts_discarded:
        raise _refused(annotations.source, "no-discarded", "queries with an answer alone")
    return [one for one in annotations.records if not one.selected]


def _of_annotations(source: AnnotationSource, progress: Progress) -> Mapping[str, str]:
    discarded = read_discarded(source, texts=True, progress=progress)
    lost = [str(one.query) for one in discarded if not one.text]
    if lost:
        place = str(source.queries or source.annotations or source.shown)
        raise _refused(place, "no-text", f"no text for query {lost[0]}")
    return {str(one.query): one.text or "" for one in discarded}


def _refused(path: str, code: str, found: str) -> InputError:
    expected = "discarded queries and their texts"
    return InputError(Problem(code=code, path=path, found=found, expected=expected))


def _sample(
    queries: Mapping[str, str], count: int | None, rng: np.random.Generator
) -> Mapping[str, str]:
    """Some of the queries, in the order drawn."""
    names = list(queries)
    size = min(_SAMPLE, len(names)) if count is None else count
    if not 0 < size <= len(names):
        raise InputError(
            Problem(
                code="too-few-queries",
                path="--sample",
                found=f"{len(names):,} discarded queries",
                expected=f"{max(size, 1):,} to judge",
            )
        )
    chosen = rng.choice(len(names), size=size, replace=False).tolist()
    return {names[place]: queries[names[place]] for place in chosen}


def _read_texts(path: Path, tops: Mapping[str, Tops]) -> Mapping[str, str]:
    wanted = {doc for top in tops.values() for docs in top.values() for doc in docs}
    with open_input(path) as file:
        return read_wanted_texts(file, wanted, path=str(path))


def _rows(tops: Mapping[str, Tops]) -> list[SystemTop]:
    return [
        SystemTop(system=system, query=query, docs=docs)
        for system, top in tops.items()
        for query, docs in top.items()
    ]
