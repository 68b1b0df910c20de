"""Read two runs, their labels and texts, and compare them query by query."""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from os import PathLike, fspath
from pathlib import Path

from heldout.analyses.outcomes import failures, outcomes
from heldout.collections.source import cut_texts, find_texts
from heldout.errors import InputError
from heldout.files.frames import PARQUET, read_parquet
from heldout.progress_bar import SILENT, Progress
from heldout.scoring import measures, names, score
from heldout.scoring.sources import ComparedRuns, queries_with_several, score_runs
from heldout.scoring.table import ScoreTable, cut_table
from heldout.trec.memory import MemoryRun, run_from_frame
from heldout.trec.orders import Order
from heldout.trec.qrels import Qrels
from heldout.trec.reading.sources import open_input
from heldout.trec.reading.streams import OWN_FILES
from heldout.trec.tops import TopRankings, memory_rankings, read_rankings

_LONGEST_TEXT = 2000
"""Characters of a document that are held: a page of 7,000 queries has up to 140,000 documents."""

Documents = Mapping[str, str] | Sequence[str] | str | PathLike[str]
"""Text by document, or where texts are, as `find_texts` takes it."""


def list_failures(
    runs: ComparedRuns,
    qrels: Qrels,
    *,
    judgments: str = "qrels",
    measure: str | None = None,
    queries: Mapping[str, str] | None = None,
    documents: Documents | None = None,
    only: AbstractSet[str] | None = None,
    depth: int | None = None,
    k: int = 100,
    rel: int = 1,
    order: Order | None = None,
    reading: score.Reading | None = None,
    progress: Progress = SILENT,
) -> failures.Failures:
    """Compare two runs query by query.

    Args:
        runs: both sides, of one run each; `find_compared` finds files.
        qrels: the labels.
        judgments: what they are called on the page.
        measure: that queries are scored by; `None` for RR@10 where at most a fifth of the queries
            have several relevant documents, else nDCG@10.
        queries: text by query.
        documents: texts of the documents.
        only: the queries to look at; `None` for all that have labels.
        depth: documents of each list that are shown, 1 to 100; `None` for 10, or less where the
            measure looks at less.
        k: documents of each list in which a first relevant one is looked for.
        rel: lowest grade that is relevant.
        order: how documents are ordered; `None` for what fits a run's columns.
        reading: how runs are scored.
        progress: gets what is being read.

    Raises:
        InputError: a file has errors; codes `one-run`: a side is a group of runs;
            `too-few-queries`: no query is left; and those of `scoring.sources.score_runs`.
        ValueError: a depth that cannot be shown.
    """
    check_single(runs)
    wanted = choose_measure(measure, qrels, rel)
    shown = _depth(depth, wanted)
    name = str(wanted)
    scores = score_runs(
        runs.runs, qrels, [name], reading or score.Reading(), judgments=judgments, order=order
    )[name]
    table = scores.table if only is None else cut_table(scores.table, only)
    if not table.queries:
        raise InputError.of("too-few-queries", "queries", "no query with labels", "at least one")
    a, b = (
        failures.Side(
            name=side.name,
            rankings=_read(runs.runs[side.runs[0]], qrels, shown, order),
            scores=_row(table, side.runs[0]),
        )
        for side in (runs.a, runs.b)
    )
    found = failures.compare_lists(
        a, b, qrels.judgments, better=scores.better, k=k, rel=rel, texts=queries
    )
    texts, missing = _texts(found, documents, progress)
    return failures.Failures(
        a=a.name,
        b=b.name,
        qrels=judgments,
        measure=name,
        better=scores.better,
        cutoff=wanted.cutoff,
        chosen=measure is None,
        k=k,
        rel=rel,
        depth=shown,
        queries=found,
        texts=texts,
        missing_texts=missing,
    )


def check_single(runs: ComparedRuns) -> None:
    """Refuse groups of runs: two rankings can be shown side by side, those of six seeds cannot.

    Raises:
        InputError: code `one-run`.
    """
    for side, given in (("A", runs.a), ("B", runs.b)):
        if len(given.runs) > 1:
            raise InputError.of(
                "one-run",
                side,
                f"{len(given.runs)} runs",
                "one run on each side, to show both rankings of a query",
                "name one seed of the group; without the page groups are compared by their means",
            )


def choose_measure(named: str | None, qrels: Qrels, rel: int) -> measures.Measure:
    """The measure that queries are scored by.

    Args:
        named: `None` where nobody named one: RR@10 fits labels with one relevant document, of which
            at most a fifth of the queries may have more; nDCG@10 fits the others.
        qrels: the labels.
        rel: lowest grade that is relevant.

    Raises:
        InputError: the measure is unknown.
    """
    if named is None:
        several = len(queries_with_several(qrels, rel))
        fits = outcomes.fits_labels(several, len(qrels.judgments))
        named = f"RR(rel={rel})@10" if fits else "nDCG@10"
    return names.read_measure(named)


def _depth(asked: int | None, measure: measures.Measure) -> int:
    if asked is None:
        return min(failures.DEPTH, measure.cutoff or failures.DEPTH)
    if not 1 <= asked <= failures.MOST_DEPTH:
        raise ValueError(f"depth: {asked}, which is not from 1 to {failures.MOST_DEPTH}")
    return asked


def _read(run: str | MemoryRun, qrels: Qrels, depth: int, order: Order | None) -> TopRankings:
    judgments = qrels.judgments
    if isinstance(run, str) and run.lower().endswith(PARQUET):
        run = run_from_frame(read_parquet(run), name=run)
    if isinstance(run, MemoryRun):
        return memory_rankings(run, depth=depth, documents=judgments, order=order)
    with open_input(Path(run)) as file:
        return read_rankings(
            file, path=run, depth=depth, documents=judgments, order=order, limits=OWN_FILES
        )


def _row(table: ScoreTable, run: str) -> Mapping[str, float]:
    return dict(zip(table.queries, table.values[table.systems.index(run)].tolist(), strict=True))


def _texts(
    queries: Sequence[failures.QueryDifference],
    documents: Documents | None,
    progress: Progress,
) -> tuple[Mapping[str, str], int]:
    """The texts of the documents that are shown, and how many are missing."""
    if documents is None:
        return {}, 0
    wanted = frozenset(document for query in queries for document in failures.documents_of(query))
    if isinstance(documents, Mapping):
        known = {doc: documents[doc] for doc in wanted if doc in documents}
        found = cut_texts(known, _LONGEST_TEXT)
    else:
        sources = (fspath(documents),) if isinstance(documents, str | PathLike) else documents
        found = find_texts(sources, wanted, longest=_LONGEST_TEXT, progress=progress)
    return found, len(wanted) - len(found)
