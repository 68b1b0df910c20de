"""Every run scored on the labels there were and on new ones: its options and its steps."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from numpy.random import PCG64, Generator

from heldout.files.executors import open_executor
from heldout.judging.campaign.pools import stand_for
from heldout.judging.labels.contests import PERFECT
from heldout.judging.labels.labels import Made, Pairings, count_pairings, find_by
from heldout.judging.labels.rescoring import (
    Labels,
    Rescored,
    ScoredLabels,
    differs,
    grade,
    leave_each_out,
    perfect_places,
    redraw_labels,
    rescore,
    spread_labels,
)
from heldout.judging.labels.source import Judged, JudgedSource, name_judged_runs
from heldout.judging.studies.labels import Relabelled
from heldout.judging.studies.sample import fold_places, order_agreement
from heldout.options import Level, Opt, Seed
from heldout.progress_bar import SILENT, Progress
from heldout.scoring.names import read_own_measure
from heldout.trec.reading.sources import open_input
from heldout.trec.reading.streams import OWN_FILES
from heldout.trec.tops import Places, read_places

KNOWN, BEFORE, AFTER = "known answers", "labels before", "preference labels"


@dataclass(frozen=True, slots=True, kw_only=True)
class Scoring:
    """How runs are scored again."""

    measure: Annotated[
        str, Opt("Measure of the runs.", names=("-m", "--measure"), metavar="MEASURE")
    ] = "RR@10"
    measure_before: Annotated[
        str | None,
        Opt(
            "Measure on the labels before, such as RR(rel=2)@10 for graded ones [--measure].",
            metavar="MEASURE",
        ),
    ] = None
    trials: Annotated[int, Opt("Number of bootstrap samples of the queries.", least=1)] = 2000
    redraws: Annotated[
        int, Opt("Number of times that each query's judgments are drawn again.", least=0)
    ] = 100
    level: Level = 0.95
    seed: Seed = 0


# Fits are many and small: threads of the linear algebra library would only wait, busily.
@open_executor(jobs=1)
def relabel(
    judged: Judged,
    made: Made,
    scoring: Scoring,
    runs: Mapping[str, Places],
    *,
    progress: Progress = SILENT,
) -> Relabelled:
    """What new labels change.

    Args:
        judged: what the labels were made of.
        made: the labels.
        scoring: how runs are scored.
        runs: where each has the documents that `documents_to_find` names; without any only labels
            are looked at.
        progress: counts runs and queries.

    Raises:
        InputError: as `rescore`.
    """
    before = spread_labels(_labels_before(judged), judged.pools)
    pairings = _count_pairings(judged, made, before.labels)
    if not runs:
        return Relabelled(made=made, pairings=pairings, orderings={}, spread=before)
    measure = read_own_measure(scoring.measure, path="--measure")
    after = ScoredLabels(name=AFTER, labels=grade(made.labels.labels), measure=measure)
    same = stand_for(judged.pools)
    with progress.steps("leaving out runs", len(runs)) as done:
        left_out = leave_each_out(
            runs,
            judged.pools,
            made.votes,
            after,
            find=find_by(made.rules),
            done=done,
        )
    return Relabelled(
        made=made,
        pairings=pairings,
        spread=before,
        rescored=_rescore(runs, judged, made, (before.labels, after), scoring, progress=progress),
        orderings={
            run: order_agreement(fold_places(places, same), made.votes, level=scoring.level)
            for run, places in runs.items()
        },
        left_out=left_out,
    )


def _rescore(
    runs: Mapping[str, Places],
    judged: Judged,
    made: Made,
    labels: tuple[Labels, ScoredLabels],
    scoring: Scoring,
    *,
    progress: Progress,
) -> Rescored:
    there, after = labels
    measure = read_own_measure(scoring.measure_before or scoring.measure, path="--measure-before")
    before = ScoredLabels(name=BEFORE, labels=there, measure=measure)
    known = {query: docs for query, docs in judged.known.items() if query in before.labels}
    rng = Generator(PCG64(scoring.seed))
    redrawn = None
    if scoring.redraws:
        with progress.steps("drawing judgments again", len(judged.pools)) as done:
            redrawn = redraw_labels(
                judged.pools,
                made.votes,
                draws=scoring.redraws,
                rng=rng,
                find=find_by(made.rules),
                done=done,
            )
    return rescore(
        {**runs, **({PERFECT: perfect_places(known)} if known else {})},
        before,
        after,
        rng,
        pooled={run for pool in judged.pools for one in pool.candidates for run in one.runs},
        redrawn=redrawn if redrawn and differs(redrawn) else None,
        level=scoring.level,
        trials=scoring.trials,
    )


def _count_pairings(judged: Judged, made: Made, before: Labels) -> Mapping[str, Pairings]:
    """How known answers, all labels there were, and the new ones did in the judged pairs."""
    same = stand_for(judged.pools)
    named: Mapping[str, Mapping[str, Sequence[str]]] = {
        KNOWN: {query: docs[:1] for query, docs in judged.known.items() if query in before},
        BEFORE: {
            query: [d for d, g in grades.items() if g > 0] for query, grades in before.items()
        },
        AFTER: made.labels.labels,
    }
    return {
        name: count_pairings(_stand(one, same), made.votes) for name, one in named.items() if one
    }


def _labels_before(judged: Judged) -> Labels:
    """The labels of the pooled queries: those of the file, or the known answers of the pools."""
    pooled = {pool.query for pool in judged.pools}
    if judged.labels is None:
        return grade({query: docs for query, docs in judged.known.items() if query in pooled})
    return {query: grades for query, grades in judged.labels.items() if query in pooled}


def _stand(
    labels: Mapping[str, Sequence[str]], same: Mapping[str, Mapping[str, str]]
) -> Mapping[str, Sequence[str]]:
    """Labels by the documents that stand for their texts."""
    return {
        query: sorted({same.get(query, {}).get(doc, doc) for doc in docs})
        for query, docs in labels.items()
    }


def documents_to_find(judged: Judged) -> Mapping[str, set[str]]:
    """Query -> passages of its pool and labelled documents: all that scores depend on."""
    wanted = {query: set(grades) for query, grades in (judged.labels or {}).items()}
    for pool in judged.pools:
        passages = {doc for one in pool.candidates for doc in one.ids}
        wanted.setdefault(pool.query, set()).update(passages)
    return wanted


def read_runs(
    source: JudgedSource, judged: Judged, *, progress: Progress = SILENT
) -> Mapping[str, Places]:
    """Where each run file has the documents that scores depend on; none without run files.

    Raises:
        InputError: a run has errors.
    """
    if not source.runs:
        return {}
    paths, wanted = name_judged_runs(source.runs), documents_to_find(judged)
    runs: dict[str, Places] = {}
    with progress.steps("reading runs", len(paths)) as done:
        for name, path in paths.items():
            with open_input(Path(path)) as file:
                runs[name] = read_places(
                    file, path=path, documents=wanted, order=source.order, limits=OWN_FILES
                )
            done()
    return runs
