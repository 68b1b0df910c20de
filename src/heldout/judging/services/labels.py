"""Labels from preferences, every run scored on them and on the labels before, and the report."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
from numpy.random import PCG64, Generator

from heldout.answers.answer import Answer
from heldout.errors import OptionError, StoreError, plural
from heldout.files import durable, executors
from heldout.judging.campaign import judgments, pools
from heldout.judging.labels import labels as making
from heldout.judging.labels import rescoring
from heldout.judging.labels import source as sources
from heldout.judging.labels.contests import PASSAGE_PRIOR, PERFECT
from heldout.judging.services.boards import PublishedSource, ScoredRuns, open_set
from heldout.judging.studies.labels import Relabelled, labels_answer
from heldout.judging.studies.sample import fold_ranks, order_agreement
from heldout.options import Level, Opt, Seed
from heldout.progress_bar import SILENT, Progress
from heldout.scoring.names import read_own_measure
from heldout.trec.reading.sources import open_input
from heldout.trec.reading.streams import OWN_FILES
from heldout.trec.tops import RunPositions, read_positions

if TYPE_CHECKING:
    from heldout.judging.studies.report import ReportSection

KNOWN, BEFORE, AFTER = "known answers", "labels before", "preference labels"


_PRIVATE = 0o600


_Mode = Annotated[
    making.Algorithm | None,
    Opt(
        "Way to find the best of a pool [tournament, or what the campaign's mode needs].",
        names=("--mode",),
    ),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelOptions:
    """How labels are made, and where versions of them lie."""

    algorithm: _Mode = None
    prior: Annotated[
        float | None,
        Opt(
            f"Precision of the prior of --mode bradley-terry [{PASSAGE_PRIOR:g}].",
            above=0,
            metavar="P",
        ),
    ] = None
    name: Annotated[str | None, Opt("Name of the version [v1, v2, … in turn].", metavar="NAME")] = (
        None
    )
    out: Annotated[
        Path | None,
        Opt(
            "Folder of versions [labels/ of the campaign; nowhere without one].",
            metavar="DIR",
            path="folder",
        ),
    ] = None
    rebuild: Annotated[
        str | None, Opt("Version to make again and compare byte by byte.", metavar="NAME")
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportOptions:
    """What the report on a campaign shows."""

    out: Annotated[
        Path | None,
        Opt(
            "New folder for the report [report/ of the campaign].", metavar="FOLDER", path="folder"
        ),
    ] = None
    split: Annotated[
        str | None,
        Opt("Run to compare with the labels [the best on the labels before].", metavar="RUN"),
    ] = None
    examples: Annotated[
        int, Opt("Number of judged pairs to show, drawn by --seed.", least=0, most=100)
    ] = 3
    algorithm: _Mode = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Scoring:
    """Options of scoring runs again."""

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


def make_labels(
    source: sources.JudgedSource,
    published: PublishedSource,
    options: LabelOptions,
    scoring: Scoring,
    *,
    now: datetime,
    progress: Progress = SILENT,
) -> tuple[Answer, Path | None, bool]:
    """Make a version of the labels, and score every run on them.

    Args:
        source: judgments and runs.
        published: a board, instead of run files.
        options: how labels are made.
        scoring: how runs are scored.
        now: the time, UTC.
        progress: counts runs and queries.

    Returns:
        What they change; the version's file, `None` where there is no folder for it; whether it is
        new.

    Raises:
        OptionError: options that contradict each other.
        InputError: a file has errors, or code `no-judgments`.
        StoreError: no board, vault or campaign there.
        TrustError: a published run does not open.
    """
    if published.board is None:
        judged = _load(source, progress)
        sources.count_valid(judged)
        runs = read_runs(source, judged, progress=progress)
    else:
        judged, scored = _load_board(source, published, now=now, progress=progress)
        sources.count_valid(judged)
        runs = scored.ranks
    folder = options.out or (None if judged.folder is None else judged.folder.labels)
    made = _make(judged, choose_rules(judged.rules, options), options.name, folder)
    written = folder is not None and making.write_version(folder, made)
    answer = relabelled_answer(judged, made, scoring, runs, progress=progress)
    return answer, folder and folder / f"{made.version.name}.qrels", written


@executors.open_executor(jobs=1)
def rebuild_labels(
    source: sources.JudgedSource, options: LabelOptions, name: str, *, progress: Progress = SILENT
) -> tuple[making.LabelVersion, tuple[str, ...]]:
    """Make a version again, of the judgments that it names; and what differs from the files.

    Raises:
        OptionError: nothing says where versions lie.
        StoreError: there is no such version.
        InputError: a file has errors.
    """
    judged = _load(source, progress)
    folder = options.out or (None if judged.folder is None else judged.folder.labels)
    if folder is None:
        raise OptionError("where do versions lie? name a campaign, or --out DIR")
    before = making.read_version(folder, name)
    rules = making.Rules(**{one.name: getattr(before, one.name) for one in fields(making.Rules)})
    parent = before.parent
    again = making.make_version(name, judged.pools, judged.judgments, rules, parent=parent).version
    names = making.LabelVersion.__struct_fields__
    return again, tuple(one for one in names if getattr(before, one) != getattr(again, one))


def write_report(
    source: sources.JudgedSource,
    published: PublishedSource,
    options: ReportOptions,
    scoring: Scoring,
    *,
    now: datetime,
    progress: Progress = SILENT,
) -> "tuple[Path, Sequence[ReportSection], Sequence[str]]":
    """Write all that is known of a campaign into a folder; arguments as of `make_labels`.

    Returns:
        The folder, the report's sections, and the names of the files.

    Raises:
        OptionError, InputError, StoreError, TrustError: as `make_labels`; the folder holds files.
    """
    from heldout.judging.studies import report  # noqa: PLC0415 - only the report needs it

    if options.out is None and source.judgments is not None and source.campaign is None:
        raise OptionError("where does the report go? name a folder with --out")
    out = options.out or (source.campaign or Path()) / "report"
    if out.is_dir() and any(out.iterdir()):
        raise StoreError(f"{out} holds files already; name a new folder with --out")
    if published.board is None:
        tops = sources.read_first(source, depth=2, progress=progress)
        judged = sources.load_judged(source, tops=report.first_tops(tops), progress=progress)
        runs = ScoredRuns(tops=tops, ranks=read_runs(source, judged, progress=progress))
    else:
        judged, runs = _load_board(source, published, now=now, progress=progress)
    rules = replace(judged.rules, algorithm=options.algorithm or judged.rules.algorithm)
    made = making.make_version("report", judged.pools, judged.judgments, rules)
    measure = read_own_measure(scoring.measure_before or scoring.measure, path="--measure-before")
    labels = judged.labels
    given = report.ReportInput(
        judged=replace(judged, rules=rules),
        tops=runs.tops or ({} if judged.folder is None else judgments.pooled_tops(judged.pools)),
        ranks={} if labels is None else runs.ranks,
        before=None
        if labels is None
        else rescoring.ScoredLabels(name=BEFORE, labels=labels, measure=measure),
        relabelled=relabel(judged, made, scoring, runs.ranks, progress=progress),
        split=options.split,
        count=options.examples,
        seed=scoring.seed,
        level=scoring.level,
    )
    sections = tuple(report.write_sections(given))
    name, language = ("judgments" if source.judgments is None else source.judgments.name), "en"
    if judged.folder is not None:
        settings = judged.folder.settings()
        name, language = settings.name, settings.language
    until = f" up to {judged.rules.until}" if judged.rules.until else ""
    size = f"{plural(len(judged.judgments), 'judgment')}{until}"
    queries = f"{plural(len(judged.pools), 'query', 'queries')}; seed {scoring.seed}"
    words = f"{size}, {queries}. Private: it holds judgments, texts and scores."
    files = report.render_judging_report(sections, name=name, words=words, language=language)
    for path, data in sorted(files.items()):
        durable.Folder(out).write_whole(path, data, mode=_PRIVATE)
    return out, sections, sorted(files)


def _load(source: sources.JudgedSource, progress: Progress) -> sources.Judged:
    tops = sources.read_first(source, progress=progress) if source.judgments is not None else {}
    return sources.load_judged(source, tops=tops, progress=progress)


def _load_board(
    source: sources.JudgedSource, published: PublishedSource, *, now: datetime, progress: Progress
) -> tuple[sources.Judged, ScoredRuns]:
    """A campaign with a board's own labels, and the board's published runs."""
    if source.runs or source.qrels or source.judgments:
        raise OptionError(
            "--board has runs and labels, and needs a campaign: name no --runs, --qrels or "
            "--judgments with it"
        )
    board = open_set(published, now=now)
    judged = sources.load_judged(source, labels=board.data.judgments(None), progress=progress)
    return judged, board.read_runs(documents_to_find(judged), progress=progress)


def choose_rules(rules: making.Rules, options: LabelOptions) -> making.Rules:
    """The rules that were asked for.

    Args:
        rules: of the campaign, or those that hold without one.
        options: name an algorithm, and its prior.

    Raises:
        OptionError: a prior of an algorithm that has none.
    """
    chosen = rules if options.algorithm is None else replace(rules, algorithm=options.algorithm)
    if chosen.algorithm == "bradley-terry":
        return replace(chosen, prior=PASSAGE_PRIOR if options.prior is None else options.prior)
    if options.prior is not None:
        raise OptionError(f"--prior belongs to --mode bradley-terry; {chosen.algorithm} has none")
    return chosen


@executors.open_executor(jobs=1)
def _make(
    judged: sources.Judged, rules: making.Rules, name: str | None, folder: Path | None
) -> making.Made:
    """The labels; the newest version again where nothing is new and no other name is asked for."""
    newest = None if folder is None else making.newest_version(folder)
    made = making.make_version(
        name or _next_name(folder),
        judged.pools,
        judged.judgments,
        rules,
        parent=None if newest is None else newest.name,
    )
    if newest is not None and name in (None, newest.name):
        same = msgspec.structs.replace(made.version, name=newest.name, parent=newest.parent)
        again = replace(made, version=same)
        if again.version == newest:
            return again
    return made


def _next_name(folder: Path | None) -> str:
    taken = {path.stem for path in folder.glob("*.json")} if folder is not None else set()
    return next(name for n in range(1, len(taken) + 2) if (name := f"v{n}") not in taken)


def relabelled_answer(
    judged: sources.Judged,
    made: making.Made,
    scoring: Scoring,
    runs: Mapping[str, RunPositions],
    *,
    progress: Progress = SILENT,
) -> Answer:
    """Return what new labels change, as an answer; arguments as of `relabel`."""
    answer = labels_answer(relabel(judged, made, scoring, runs, progress=progress))
    return replace(answer, document={**answer.document, "seed": scoring.seed})


# Fits are many and small: threads of the linear algebra library would only wait, busily.
@executors.open_executor(jobs=1)
def relabel(
    judged: sources.Judged,
    made: making.Made,
    scoring: Scoring,
    runs: Mapping[str, RunPositions],
    *,
    progress: Progress = SILENT,
) -> Relabelled:
    """Return what new labels change.

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
    before = rescoring.spread_labels(_labels_before(judged), judged.pools)
    pairings = _count_pairings(judged, made, before.labels)
    if not runs:
        return Relabelled(made=made, pairings=pairings, orderings={}, spread=before)
    measure = read_own_measure(scoring.measure, path="--measure")
    after = rescoring.ScoredLabels(
        name=AFTER, labels=rescoring.grade(made.labels.labels), measure=measure
    )
    same = pools.stand_for(judged.pools)
    with progress.steps("leaving out runs", len(runs)) as done:
        left_out = rescoring.leave_each_out(
            runs,
            judged.pools,
            made.votes,
            after,
            find=making.find_by(made.rules),
            done=done,
        )
    return Relabelled(
        made=made,
        pairings=pairings,
        spread=before,
        rescored=_rescore(runs, judged, made, (before.labels, after), scoring, progress=progress),
        orderings={
            run: order_agreement(fold_ranks(ranks, same), made.votes, level=scoring.level)
            for run, ranks in runs.items()
        },
        left_out=left_out,
    )


def _rescore(
    runs: Mapping[str, RunPositions],
    judged: sources.Judged,
    made: making.Made,
    labels: tuple[rescoring.Labels, rescoring.ScoredLabels],
    scoring: Scoring,
    *,
    progress: Progress,
) -> rescoring.Rescored:
    there, after = labels
    measure = read_own_measure(scoring.measure_before or scoring.measure, path="--measure-before")
    before = rescoring.ScoredLabels(name=BEFORE, labels=there, measure=measure)
    known = {query: docs for query, docs in judged.known.items() if query in before.labels}
    rng = Generator(PCG64(scoring.seed))
    redrawn = None
    if scoring.redraws:
        with progress.steps("drawing judgments again", len(judged.pools)) as done:
            redrawn = rescoring.redraw_labels(
                judged.pools,
                made.votes,
                draws=scoring.redraws,
                rng=rng,
                find=making.find_by(made.rules),
                done=done,
            )
    return rescoring.rescore(
        {**runs, **({PERFECT: rescoring.perfect_ranks(known)} if known else {})},
        before,
        after,
        rng,
        pooled={run for pool in judged.pools for one in pool.candidates for run in one.runs},
        redrawn=redrawn if redrawn and rescoring.differs(redrawn) else None,
        level=scoring.level,
        trials=scoring.trials,
    )


def _count_pairings(
    judged: sources.Judged, made: making.Made, before: rescoring.Labels
) -> Mapping[str, making.Pairings]:
    """Return how known answers, all labels there were, and the new ones did in the judged pairs."""
    same = pools.stand_for(judged.pools)
    named: Mapping[str, Mapping[str, Sequence[str]]] = {
        KNOWN: {query: docs[:1] for query, docs in judged.known.items() if query in before},
        BEFORE: {
            query: [d for d, g in grades.items() if g > 0] for query, grades in before.items()
        },
        AFTER: made.labels.labels,
    }
    return {
        name: making.count_pairings(_stand(one, same), made.votes)
        for name, one in named.items()
        if one
    }


def _labels_before(judged: sources.Judged) -> rescoring.Labels:
    """The labels of the pooled queries: those of the file, or the known answers of the pools."""
    pooled = {pool.query for pool in judged.pools}
    if judged.labels is None:
        return rescoring.grade(
            {query: docs for query, docs in judged.known.items() if query in pooled}
        )
    return {query: grades for query, grades in judged.labels.items() if query in pooled}


def _stand(
    labels: Mapping[str, Sequence[str]], same: Mapping[str, Mapping[str, str]]
) -> Mapping[str, Sequence[str]]:
    """Labels by the documents that stand for their texts."""
    return {
        query: sorted({same.get(query, {}).get(doc, doc) for doc in docs})
        for query, docs in labels.items()
    }


def documents_to_find(judged: sources.Judged) -> Mapping[str, set[str]]:
    """Query -> passages of its pool and labelled documents: all that scores depend on."""
    wanted = {query: set(grades) for query, grades in (judged.labels or {}).items()}
    for pool in judged.pools:
        passages = {doc for one in pool.candidates for doc in one.ids}
        wanted.setdefault(pool.query, set()).update(passages)
    return wanted


def read_runs(
    source: sources.JudgedSource, judged: sources.Judged, *, progress: Progress = SILENT
) -> Mapping[str, RunPositions]:
    """Return where each run file has the documents that scores depend on; none without run files.

    Raises:
        InputError: a run has errors.
    """
    if not source.runs:
        return {}
    paths, wanted = sources.name_judged_runs(source.runs), documents_to_find(judged)
    runs: dict[str, RunPositions] = {}
    with progress.steps("reading runs", len(paths)) as done:
        for name, path in paths.items():
            with open_input(Path(path)) as file:
                runs[name] = read_positions(
                    file, path=path, documents=wanted, order=source.order, limits=OWN_FILES
                )
            done()
    return runs
