"""Discarded queries: drawn or pooled for people to look at, and what people say of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import numpy as np

from heldout.answers.answer import Answer
from heldout.collections import named, tables
from heldout.errors import InputError, OptionError, plural, printable
from heldout.ids import digest_bytes
from heldout.judging.campaign.judgments import Judgment
from heldout.judging.campaign.pools import Pool
from heldout.judging.campaign.questions import TRIAGE
from heldout.judging.campaign.rows import format_rows
from heldout.judging.services.pools import refuse_pools
from heldout.options import Opt, Seed
from heldout.progress_bar import SILENT, Progress
from heldout.scoring import cache, options, run_files
from heldout.survivorship.annotations import Annotation, discarded_records
from heldout.survivorship.discarded import answerable
from heldout.survivorship.discarded.folder import PoolRecord, QuestionFolder
from heldout.survivorship.discarded.judging import (
    MadeLabels,
    judge_agreement,
    judged_passages,
    make_labels,
)
from heldout.survivorship.discarded.triage import (
    count_labels,
    draw_discarded,
    report_triage,
    sound_queries,
    triage_agreement,
)
from heldout.survivorship.reading.source import AnnotationSource, read_source
from heldout.trec.reading.sources import read_file

_SAMPLE = 50


# Triage: why were queries discarded?


def draw_triage(
    folder: QuestionFolder,
    source: AnnotationSource,
    *,
    sample: int,
    split: str,
    seed: int,
    progress: Progress = SILENT,
) -> Answer:
    """Draw discarded queries into a folder, behind those that are there.

    Args:
        folder: where they are put.
        source: annotations, with texts.
        sample: how many are drawn.
        split: what the sample is of, as `dev`.
        seed: of the draw.
        progress: gets the notes of the files.

    Raises:
        InputError: a file has errors; as `draw_discarded` and `QuestionFolder.add`.
    """
    annotations = read_source(source, texts=True, progress=progress)
    before = folder.questions() if folder.exists() else ()
    drawn = draw_discarded(
        annotations,
        count=sample,
        rng=np.random.default_rng(seed),
        split=split,
        known={one.query for one in before if one.split == split},
    )
    total = folder.add(drawn)
    of = f" of {annotations.discarded:,} discarded" if annotations.discarded else ""
    return Answer(
        answer=f"{plural(len(drawn), 'query', 'queries')}{of} drawn by seed {seed}.",
        summary=[
            ("folder", f"{folder.path}: {plural(len(total), 'question')}"),
            ("next", f"heldout prefer tasks {folder.path}, then heldout serve {folder.path}"),
        ],
        tables=(),
        document={
            "folder": str(folder.path),
            "drawn": len(drawn),
            "discarded": annotations.discarded,
            "split": split,
            "seed": seed,
            "questions": len(total),
        },
    )


def count_triage(folder: QuestionFolder, *, seed: int, level: float) -> Answer:
    """Count why queries were discarded, by what people answered.

    Args:
        folder: questions and answers.
        seed: of the draws of the interval of agreement.
        level: of the intervals.

    Raises:
        StoreError, InputError: as `QuestionFolder.questions` and `answers`.
    """
    questions, given = folder.questions(), folder.answers()
    agreement = triage_agreement(given, np.random.default_rng(seed), level=level)
    return report_triage(count_labels(questions, given, level=level), agreement, level=level)


# The pool of discarded queries: which of them, the tops of runs, the texts.


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscardedPoolOptions:
    """Which discarded queries are pooled, and of which runs."""

    runs: options.RunPatterns = ()
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
    order: options.RunOrder = None
    seed: Seed = 0


def pool_discarded(
    folder: QuestionFolder,
    pool: DiscardedPoolOptions,
    source: AnnotationSource,
    progress: Progress = SILENT,
) -> Answer:
    """Pool the tops of runs into a new folder.

    Raises:
        StoreError: the folder has questions already, or the one of triage has none.
        InputError: a file has errors; code `too-few-queries`.
        OptionError: neither queries nor texts are named.
    """
    refuse_pools(folder)
    if source.documents is None:
        raise OptionError("--documents FILE: the texts that people look at")
    rng = np.random.default_rng(pool.seed)
    queries = _sample(_queries_of(pool.triage, source, progress), pool.sample, rng)
    paths = run_files.name_runs(pool.runs)
    tops = run_files.read_each(paths, depth=pool.depth, order=pool.order, progress=progress)
    own = {name: {query: top.get(query, ()) for query in queries} for name, top in tops.items()}
    wanted = {doc for top in own.values() for docs in top.values() for doc in docs}
    documents = read_file(tables.read_documents, source.documents, wanted=wanted)
    questions = answerable.pool_questions(own, queries=queries, documents=documents, rng=rng)
    digests = {name: cache.digest_file(Path(path)) for name, path in paths.items()}
    rows = [
        answerable.SystemTop(system=system, query=query, docs=docs)
        for system, top in own.items()
        for query, docs in top.items()
    ]
    folder.write_pool(rows, PoolRecord(depth=pool.depth, seed=pool.seed, runs_sha256=digests))
    questions = folder.add(questions)
    passages = sum(len(one.candidates) for one in questions)
    mean = passages / len(questions)
    return Answer(
        answer=(
            f"{passages:,} passages of {plural(len(questions), 'query', 'queries')} pooled for "
            "people to look at."
        ),
        summary=[
            ("pooled", f"{mean:.1f} a query on average, each text once, in random order"),
            ("folder", str(folder.path)),
            ("next", f"heldout prefer tasks {folder.path}, then heldout serve {folder.path}"),
        ],
        tables=(),
        document={
            "folder": str(folder.path),
            "queries": len(questions),
            "passages": passages,
            "depth": pool.depth,
            "seed": pool.seed,
        },
    )


def _queries_of(
    triage: Path | None, source: AnnotationSource, progress: Progress
) -> Mapping[str, str]:
    """Texts of discarded queries: those that triage found sound, or all of the annotations.

    Without either they are those of `--queries` alone.
    """
    if triage is not None:
        folder = QuestionFolder(triage, form=TRIAGE)
        questions = folder.questions()
        counts = count_labels(questions, folder.answers())
        return {one.query: one.text for one in sound_queries(questions, counts)}
    if source.named:
        discarded = _read_discarded(source, texts=True, progress=progress)
        lost = [str(one.query) for one in discarded if not one.text]
        if lost:
            location = str(source.queries or source.annotations or source.shown)
            raise InputError.of("no-text", location, name=f"query {lost[0]}")
        return {str(one.query): one.text or "" for one in discarded}
    if source.queries is None:
        raise OptionError("which queries? --triage FOLDER, --annotations PATH or --queries")
    return named.load_queries(source.queries).texts


def _read_discarded(
    source: AnnotationSource, *, texts: bool = False, progress: Progress
) -> Sequence[Annotation]:
    # Texts of documents are read later, of those alone that are pooled
    annotations = read_source(replace(source, documents=None), texts=texts, progress=progress)
    return discarded_records(annotations)


def _sample(
    queries: Mapping[str, str], count: int | None, rng: np.random.Generator
) -> Mapping[str, str]:
    """Some of the queries, in the order drawn."""
    names = list(queries)
    size = min(_SAMPLE, len(names)) if count is None else count
    if not 0 < size <= len(names):
        found = f"{len(names):,} discarded queries"
        raise InputError.of("too-few-queries", "--sample", found, f"{max(size, 1):,} to judge")
    chosen = rng.choice(len(names), size=size, replace=False).tolist()
    return {names[index]: queries[names[index]] for index in chosen}


# What people say of the pool, and labels made of it.


def count_ranks(path: Path, *, depth: int, level: float) -> Answer:
    """Count which systems answer how many queries, by a table of first ranks.

    Args:
        path: of the table.
        depth: to which an answer counts.
        level: of the intervals.

    Raises:
        InputError: as `read_first_ranks`.
    """
    ranks = read_file(answerable.read_first_ranks, path)
    note = answerable.unseen_note(ranks, depth, path=printable(str(path)))
    return answerable.report_reach(ranks, depth=depth, level=level, note=note)


def count_answerable(
    folder: QuestionFolder,
    labels: str | None,
    *,
    seed: int,
    level: float,
    progress: Progress = SILENT,
) -> Answer:
    """Count which systems answer how many queries, by what people answered; write its labels.

    Args:
        folder: the pool and the answers.
        labels: name of the labels that are written; `None` for none.
        seed: of the draws of the interval of agreement.
        level: of the intervals.
        progress: gets which labels were written.

    Raises:
        InputError: a file has errors; code `no-judgments`: labels are wanted, and nobody judged.
        StoreError: there are other labels of this name; nothing was written.
    """
    questions, given = folder.questions(), folder.answers()
    judged = judged_passages(questions, given)
    if labels is not None:
        made = _make_labels(folder, questions, given, labels)
        record = made.record
        queries = plural(record["queries"], "query", "queries")
        path = folder.write_labels(made)
        progress.note("labels", f"{path}: {queries}, {record['answered']:,} with an answer")
        progress.note("", f"{plural(record['lines'], 'judgment')} by people")
        if record["disputed"]:
            documents = plural(record["disputed"], "document")
            words = f"{documents}, ticked by just half of their annotators: no line"
            progress.note("disputed", words)
    judging = judge_agreement(questions, given, np.random.default_rng(seed), level=level)
    ranks = answerable.first_ranks(judged, folder.tops())
    return answerable.report_reach(ranks, depth=folder.pool().depth, level=level, judging=judging)


def _make_labels(
    folder: QuestionFolder, questions: Sequence[Pool], answers: Sequence[Judgment], name: str
) -> MadeLabels:
    judged = judged_passages(questions, answers)
    if not judged:
        raise InputError.of("no-judgments", str(folder.path), "no query that somebody judged")
    pool = folder.pool()
    # Of the rows as they were read: people may go on answering
    source = {
        "annotators": sorted({one.worker for one in answers if one.choice is not None}),
        "depth": pool.depth,
        "systems": list(pool.runs_sha256),
        "questions_sha256": digest_bytes(format_rows(questions)),
        "answers_sha256": digest_bytes(format_rows(answers)),
    }
    return make_labels(name, judged, source)
