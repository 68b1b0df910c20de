"""Judging on values: what a notebook calls. Each function gives what the command of its name says.

Judgments are read once, with the labels there were; every question is asked of them. Runs are
paths, mappings, data frames or runs of `heldout.read_run`.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from os import PathLike, fspath
from pathlib import Path
from typing import Any, TypeAlias

from numpy.random import PCG64, Generator

from heldout.answers.answer import Answer
from heldout.collections.named import load_queries, open_qrels
from heldout.errors import InputError
from heldout.judging.campaign import judgments, settings
from heldout.judging.campaign import pools as campaign_pools
from heldout.judging.campaign.pools import Pool, sample_pools
from heldout.judging.labels.labels import Algorithm, Made, Rules, make_version
from heldout.judging.labels.rescoring import ScoredLabels
from heldout.judging.labels.rescoring import rescore as rescore_labels
from heldout.judging.labels.source import (
    Judged,
    JudgedSource,
    count_valid,
    join_judged,
    known_answers,
    load_judged,
)
from heldout.judging.services.labels import (
    LabelOptions,
    Scoring,
    choose_rules,
    documents_to_find,
    relabelled_answer,
)
from heldout.judging.services.pools import read_documents
from heldout.judging.studies.contests import compare_by_contests, compare_strengths
from heldout.judging.studies.judges import bias_answer
from heldout.judging.studies.labels import rescored_answer
from heldout.scoring.given_runs import GivenRuns, read_given_positions, read_given_tops
from heldout.scoring.names import read_own_measure
from heldout.stats.bradley_terry import PRIOR
from heldout.trec.judgments import read_ratings as read_ratings_file
from heldout.trec.qrels import Qrels
from heldout.trec.reading.sources import read_file

Grades: TypeAlias = Mapping[str, Mapping[str, int]]
"""Query -> document -> grade."""

GivenLabels: TypeAlias = str | PathLike[str] | Grades | Qrels | Made
"""Labels: the path of qrels, query -> document -> grade, or what `make_labels` made."""

GivenJudgments: TypeAlias = str | PathLike[str] | Iterable[judgments.Judgment | Sequence[str]]
"""Judgments: a file, a campaign's folder, or rows of query, passage, passage, preferred one."""

_COLUMNS = 4


def read_judgments(
    source: GivenJudgments,
    *,
    qrels: GivenLabels | None = None,
    pools: Sequence[Pool] | None = None,
    runs: GivenRuns | None = None,
    exclusion: settings.Exclusion = "task",
    failures: int = 1,
    until: str | None = None,
) -> Judged:
    """Preference judgments, with what they are of.

    Args:
        source: a file (JSON lines of `heldout prefer export`, or query, passage, passage, the
            preferred one), the folder of a campaign, or rows with these four columns.
        qrels: the labels there were, whose best documents are the known answers.
        pools: of `build_pools`; without them a query's pool is what was judged.
        runs: whose first documents were judged; the report then says which runs were pooled.
        exclusion: what a failed test excludes: its task, or its worker.
        failures: so many failed tests in a task exclude.
        until: last time of answers that are used, as in `2026-11-21T12:03:11.204Z`.

    Raises:
        InputError: the file has errors; code `no-judgments`.
        StoreError: a campaign lacks a file.

    Example:
        judged = heldout.judging.read_judgments("judgments.tsv", qrels="dev.qrels")
    """
    labels = None if qrels is None else _open_labels(qrels)
    tops = _tops(runs)
    if isinstance(source, str | PathLike) and Path(source).is_dir():
        return load_judged(JudgedSource(campaign=Path(source)), tops=tops, labels=labels)
    rules = Rules(exclusion=exclusion, failures=failures, until=until)
    if isinstance(source, str | PathLike):
        found = judgments.parse_judgments(Path(source).read_bytes(), path=str(source))
    else:
        found = tuple(map(_as_judgment, source))
    if not found:
        raise InputError.of("no-judgments", "judgments", "no judgment")
    return join_judged(found, rules, pools=pools, labels=labels, tops=tops)


def _as_judgment(row: judgments.Judgment | Sequence[str]) -> judgments.Judgment:
    if isinstance(row, judgments.Judgment):
        return row
    cells = tuple(row)
    right = len(cells) == _COLUMNS and all(isinstance(one, str) for one in cells)
    if not right or cells[1] == cells[2] or cells[3] not in cells[1:3]:
        expected = "query, two different passages, and one of the two again, all of them texts"
        raise InputError.of("bad-preference", "judgments", repr(cells)[:100], expected)
    query, left, right_, preferred = cells
    return judgments.Judgment(query=query, left=left, right=right_, preferred=preferred)


def read_ratings(path: str | PathLike[str]) -> Mapping[str, Grades]:
    """Grades of several judges in one file: query, judge, document, grade.

    Args:
        path: the file, plain or compressed.

    Returns:
        Judge -> query -> document -> grade, as `heldout.agreement` takes it.

    Raises:
        InputError: the file has errors.

    Example:
        heldout.agreement(heldout.judging.read_ratings("ratings.tsv"))
    """
    return read_file(read_ratings_file, Path(path))


def build_pools(
    runs: GivenRuns,
    qrels: GivenLabels,
    *,
    queries: str | PathLike[str] | Mapping[str, str] | None = None,
    documents: str | PathLike[str] | Mapping[str, str] | None = None,
    depth: int = 1,
    sample: int | None = None,
    seed: int = 0,
) -> tuple[Pool, ...]:
    """The passages that people compare: the first documents of runs, and the known answers.

    Args:
        runs: which.
        qrels: their best document of a query is its known answer.
        queries: id -> text, or a file of them; without it all queries that have labels.
        documents: id -> text, or a file of them; passages of one text are then one.
        depth: first documents of each run.
        sample: number of queries, drawn at random; `None` for all.
        seed: of the draw.

    Raises:
        InputError: a file has errors; code `no-text`.

    Example:
        pools = heldout.judging.build_pools("runs/*.gz", "dev.qrels", sample=500)
        sum(pool.pairs for pool in pools)
    """
    labels = _open_labels(qrels)
    texts: Mapping[str, str] = (
        load_queries(fspath(queries)).texts
        if isinstance(queries, str | PathLike)
        else dict.fromkeys(labels, "")
        if queries is None
        else queries
    )
    given = read_documents(str(documents)) if isinstance(documents, str | PathLike) else documents
    pools = campaign_pools.build_pools(
        read_given_tops(runs, depth=depth),
        known_answers(labels),
        queries=texts,
        documents=given,
    )
    if sample is None:
        return pools
    return tuple(sample_pools(pools, count=sample, rng=Generator(PCG64(seed))))


def contests(judged: Judged, runs: GivenRuns | None = None, *, level: float = 0.95) -> Answer:
    """Return whose first document do people prefer, on how many queries?

    Args:
        judged: of `read_judgments`.
        runs: which; without them those of the pools.
        level: of the intervals.

    Raises:
        InputError: a run has errors; code `no-judgments`: none counts.

    Example:
        heldout.judging.contests(judged, {"bm25": "bm25.run", "dense": "dense.run"})
    """
    return compare_by_contests(judged, _tops(runs), level=level)


def strengths(
    judged: Judged,
    runs: GivenRuns | None = None,
    *,
    prior: float = PRIOR,
    draws: int = 1000,
    level: float = 0.95,
    seed: int = 0,
) -> Answer:
    """How much more is one run preferred than another? Bradley-Terry strengths with intervals.

    Args:
        judged: of `read_judgments`.
        runs: which; without them those of the pools.
        prior: precision of the prior on strengths; 0 for none.
        draws: bootstrap samples of the queries.
        level: of the intervals.
        seed: of the draws.

    Raises:
        InputError: as `contests`.

    Example:
        heldout.judging.strengths(judged, "runs/*.gz").to_pandas()
    """
    return compare_strengths(judged, _tops(runs), prior=prior, draws=draws, level=level, seed=seed)


def bias(judged: Judged, *, level: float = 0.95) -> Answer:
    """Do judges prefer a side, or the longer passage, and how attentive are they?

    Args:
        judged: of `read_judgments`, with the texts of a campaign or of `build_pools`.
        level: of the intervals.

    Example:
        heldout.judging.bias(heldout.judging.read_judgments("campaign"))
    """
    return bias_answer(judged, level=level)


def make_labels(
    judged: Judged,
    *,
    mode: Algorithm | None = None,
    prior: float | None = None,
    name: str = "labels",
) -> Made:
    """Labels from preferences: the best passages of each query.

    Args:
        judged: of `read_judgments`.
        mode: how the best are found: "tournament" (most pairings won), "sequential" (not beaten),
            or "bradley-terry" (the greatest strength); `None` for what the campaign's mode needs.
        prior: precision of the prior of "bradley-terry".
        name: of the version.

    Returns:
        `grades` are the labels, as `heldout.evaluate` takes them; `qrels` the bytes of their file;
        `version` says what they are made of.

    Raises:
        OptionError: a prior of a mode that has none.
        InputError: code `label-id`, `no-judgments`.

    Example:
        labels = heldout.judging.make_labels(judged)
        heldout.evaluate("runs/*.gz", labels.grades, "RR@10")
    """
    count_valid(judged)
    rules = choose_rules(judged.rules, LabelOptions(algorithm=mode, prior=prior))
    return make_version(name, judged.pools, judged.judgments, rules)


def rescore(
    judged: Judged,
    labels: Made,
    runs: GivenRuns,
    measure: str = "RR@10",
    *,
    measure_before: str | None = None,
    trials: int = 2000,
    redraws: int = 100,
    level: float = 0.95,
    seed: int = 0,
) -> Answer:
    """Score every run on the labels there were and on the preference labels.

    Args:
        judged: of `read_judgments`, with the labels there were.
        labels: of `make_labels`.
        runs: which.
        measure: on the new labels.
        measure_before: on the labels before, as `RR(rel=2)@10` for graded ones; `None` for the
            same.
        trials: bootstrap samples of the queries.
        redraws: how often each query's judgments are drawn again.
        level: of the intervals.
        seed: of the draws.

    Raises:
        InputError: a run has errors; code `no-common-query`.

    Example:
        heldout.judging.rescore(judged, labels, "runs/*.gz", "RR@10").to_pandas()
    """
    scoring = Scoring(
        measure=measure,
        measure_before=measure_before,
        trials=trials,
        redraws=redraws,
        level=level,
        seed=seed,
    )
    if judged.folder is None and not any(one.runs for p in judged.pools for one in p.candidates):
        tops = read_given_tops(runs, depth=1)
        pools = judgments.pool_judged(judged.judgments, known=judged.known, tops=tops)
        judged = replace(judged, pools=pools)
    listed = read_given_positions(runs, documents=documents_to_find(judged))
    return relabelled_answer(judged, labels, scoring, listed)


def compare_labels(
    before: GivenLabels,
    after: GivenLabels,
    runs: GivenRuns,
    measure: str = "RR@10",
    *,
    measure_before: str | None = None,
    trials: int = 2000,
    level: float = 0.95,
    seed: int = 0,
) -> Answer:
    """Return what another version of the labels changes: every run on both, and Kendall's tau.

    Args:
        before: labels.
        after: other labels of the same queries.
        runs: which.
        measure: on the labels after.
        measure_before: on those before; `None` for the same.
        trials: bootstrap samples of the queries.
        level: of the intervals.
        seed: of the draws.

    Raises:
        InputError: a file has errors; code `no-common-query`.

    Example:
        heldout.judging.compare_labels("v1.qrels", "v2.qrels", "runs/*.gz", "RR@10")
    """
    old, new = _open_labels(before), _open_labels(after)
    documents = {query: {*old.get(query, {}), *new.get(query, {})} for query in {**old, **new}}
    earlier = read_own_measure(measure_before or measure, path="measure_before")
    found = rescore_labels(
        read_given_positions(runs, documents=documents),
        ScoredLabels(name=_label_name(before, "before"), labels=old, measure=earlier),
        ScoredLabels(
            name=_label_name(after, "after"),
            labels=new,
            measure=read_own_measure(measure, path="measure"),
        ),
        Generator(PCG64(seed)),
        level=level,
        trials=trials,
    )
    answer = rescored_answer(found)
    return replace(answer, document={**answer.document, "seed": seed})


def _open_labels(labels: GivenLabels) -> Grades:
    """Labels as query -> document -> grade.

    Raises:
        InputError: the file has errors.
    """
    return labels.grades if isinstance(labels, Made) else open_qrels(labels).judgments


def _label_name(labels: GivenLabels, otherwise: str) -> str:
    if isinstance(labels, str | PathLike):
        return Path(labels).name
    return labels.version.name if isinstance(labels, Made) else otherwise


def _tops(runs: GivenRuns | None) -> Mapping[str, Any] | None:
    return None if runs is None else read_given_tops(runs, depth=1)
