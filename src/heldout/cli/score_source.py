"""Where an analysis gets its scores: runs with judgments, a table of scores, a board's vault."""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import get_args

import click

from heldout.analyses.dated import tell_view
from heldout.cli.board_source import BoardSource, board_options, load_board
from heldout.cli.files import order_option, read_table_text, tell_orders
from heldout.cli.many_runs import print_notes, refuse_runs, score_all
from heldout.cli.options import jobs_option, one_argument
from heldout.cli.printing import messages, plural
from heldout.cli.scoring import Failed, Scored, Work
from heldout.cli.transforms import Transform, prefer_scores, rank_scores
from heldout.errors import InputError, Problem
from heldout.measures.evaluate import prepare
from heldout.measures.spec import Measure, parse_measure
from heldout.scores import Better, ScoreTable, parse_scores, table_of
from heldout.scoring.run_files import find_runs, name_paths
from heldout.scoring.scores import Scores
from heldout.store.cache import code_version, find_cache
from heldout.trec.accelerators import find_accelerators
from heldout.trec.qrels import Qrels, read_qrels
from heldout.trec.ranking import Order
from heldout.trec.reading.streams import open_input

__all__ = [
    "Source",
    "load_measures",
    "load_scores",
    "queries_with_several",
    "read_judgments",
    "source_options",
]

_SHOWN = 3
_WHICH = "which scores? --runs 'GLOB' --qrels Q -m MEASURE, --scores FILE, or --board DIR"


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """What a command was told of its scores.

    Attributes:
        runs: patterns or paths of run files.
        qrels: file of the judgments.
        measure: name of the measure.
        order: how documents are ordered; `None` for what fits a run's columns.
        table: a CSV table of scores instead of runs.
        board: a board instead; `None` or without a folder where none was named.
        jobs: processes that read runs side by side; `None` for what pays.
        transform: what scores are turned into; `None` for scores as they are.
        preferences: file of the judgments that a transform is calibrated on.
    """

    runs: tuple[str, ...] = ()
    qrels: str | None = None
    measure: str | None = None
    order: Order | None = None
    table: str | None = None
    board: BoardSource | None = None
    jobs: int | None = None
    transform: Transform | None = None
    preferences: Path | None = None


source_options = one_argument(
    "source",
    Source,
    click.option(
        "--runs",
        multiple=True,
        metavar="'GLOB'",
        help="Run files; a pattern in quotes, or a path. Can be given many times.",
    ),
    click.option(
        "--qrels",
        metavar="Q",
        help="Their judgments.",
    ),
    click.option(
        "-m",
        "--measure",
        metavar="MEASURE",
        help="For example RR@10 or nDCG@10.",
    ),
    order_option,
    click.option(
        "--scores",
        "table",
        metavar="TABLE.csv",
        help="Scores instead of runs: a header of system names, then a row per query; a first "
        "column named query has the queries' names.",
    ),
    board_options,
    jobs_option,
    click.option(
        "--transform",
        type=click.Choice(get_args(Transform)),
        help="Of runs: ranks of scores among all attainable, or what people prefer.",
    ),
    click.option(
        "--preferences",
        type=click.Path(path_type=Path, dir_okay=False),
        metavar="FILE",
        help="For --transform preference: query, item, item, the preferred one.",
    ),
)
"""The options that say where scores come from, as one `source` argument."""


def load_scores(source: Source, *, measure: str | None = None) -> Scores:
    """The scores that a command was told of.

    Args:
        source: what it was told.
        measure: the measure where the analysis needs a certain one.

    Raises:
        click.UsageError: something is not named, or too much.
        InputError: a file has errors, two runs have one name, or a system lacks a score.
        StoreError: the board or its vault cannot be read.
    """
    if (source.transform == "preference") != (source.preferences is not None):
        raise click.UsageError("--transform preference and --preferences FILE go together")
    if source.transform is not None and (measure is not None or not source.runs):
        raise click.UsageError("--transform is for --runs, and for analyses of any measure")
    if source.board is not None and source.board.folder is not None:
        return _read_board(source, source.board, measure)
    if source.table is not None:
        if source.runs or source.qrels:
            raise click.UsageError("--scores has the scores already: leave --runs and --qrels away")
        return _read_table(source.table, measure or source.measure)
    name = measure or source.measure
    if name is None:
        raise click.UsageError("which measure? for example -m RR@10" if source.runs else _WHICH)
    qrels = read_judgments(source)
    (scores,) = _load(source, [name], qrels).values()
    return scores if source.transform is None else _transform(scores, qrels, source)


def load_measures(
    source: Source, measures: Sequence[str], *, qrels: Qrels | None = None
) -> Mapping[str, Scores]:
    """Several measures of the same runs, in one pass over each.

    Args:
        source: what the command was told.
        measures: their names.
        qrels: the judgments, where they have been read already.

    Raises:
        click.UsageError: runs or judgments are not named, or scores should be transformed.
        InputError: a file has errors, is named twice, or a system lacks a score.
    """
    if source.transform is not None:
        raise click.UsageError("this reads positions off scores as they are: no --transform")
    return _load(source, measures, qrels or read_judgments(source))


def read_judgments(source: Source) -> Qrels:
    """The judgments; what is missing is asked for in the order of the options.

    Raises:
        click.UsageError: runs or judgments are not named.
        InputError: the file has errors.
    """
    if not source.runs:
        raise click.UsageError(_WHICH)
    if source.qrels is None:
        raise click.UsageError("which judgments? --qrels Q")
    with open_input(Path(source.qrels)) as file:
        return read_qrels(file, path=source.qrels)


def queries_with_several(qrels: Qrels, rel: int) -> frozenset[str]:
    """The queries with more than one relevant document.

    Args:
        qrels: the judgments.
        rel: lowest grade that is relevant.
    """
    return frozenset(
        query
        for query, grades in qrels.judgments.items()
        if sum(grade >= rel for grade in grades.values()) > 1
    )


def _transform(scores: Scores, qrels: Qrels, source: Source) -> Scores:
    measure = parse_measure(scores.measure, path="-m")
    if source.transform == "interval":
        table, told = rank_scores(scores.table, measure, qrels)
    else:
        table, told = prefer_scores(scores.table, measure, qrels, source.preferences)
    facts = (*scores.facts, ("transform", told))
    return replace(scores, table=table, facts=facts, transformed=True)


def _load(source: Source, measures: Sequence[str], qrels: Qrels) -> Mapping[str, Scores]:
    paths = find_runs(source.runs)
    _check_apart(paths)
    names = {path: name for name, path in name_paths(paths).items()}
    parsed = {name: parse_measure(name, path="-m") for name in measures}
    runs = _score(paths, source, tuple(parsed.values()), qrels)
    orders = tuple(dict.fromkeys(run.order for run in runs))
    told = tell_orders(orders, given=source.order)
    facts = _tell(runs, source.qrels or "")

    def tabulate(measure: Measure) -> Scores:
        rows = {names[run.path]: _per_query(run, measure) for run in runs}
        zeros = tuple(_tell_zeros(runs, measure))
        lines = (("", line) for line in zeros)
        return Scores(
            table=_complete(table_of(rows), str(measure)),
            measure=str(measure),
            better=measure.kind.better,
            facts=(*facts, *lines, ("measure", str(measure)), *told),
            orders=orders,
            zeros=zeros,
            judgments=qrels,
        )

    return {name: tabulate(measure) for name, measure in parsed.items()}


def _score(
    paths: Sequence[str], source: Source, measures: tuple[Measure, ...], qrels: Qrels
) -> list[Scored]:
    work = Work(
        qrels=qrels,
        judged=prepare(qrels.judgments, measures),
        order=source.order,
        accelerators=find_accelerators(os.environ),
        cache=find_cache(os.environ),
        code=code_version(),
    )
    outcomes = score_all(paths, work, source.jobs)
    failed = [outcome for outcome in outcomes if isinstance(outcome, Failed)]
    if failed:
        raise refuse_runs(failed)
    runs = [outcome for outcome in outcomes if isinstance(outcome, Scored)]
    print_notes(messages(), runs, qrels)
    return runs


def _check_apart(paths: Sequence[str]) -> None:
    """Refuse a file that is named twice, under two spellings: it would count as two systems."""
    known: dict[Path, str] = {}
    for path in paths:
        first = known.setdefault(Path(path).resolve(), path)
        if first != path:
            raise InputError(
                Problem(
                    code="repeated-system",
                    path=path,
                    found=f"the same file as {first}",
                    expected="each run once",
                )
            )


def _per_query(run: Scored, measure: Measure) -> dict[str, float | None]:
    return {query: row[measure] for query, row in run.evaluation.per_query().items()}


def _tell(runs: Sequence[Scored], qrels: str) -> tuple[tuple[str, str], ...]:
    judged = plural(len(runs[0].evaluation.queries), "query", "queries")
    return (
        ("systems", f"{len(runs):,}"),
        ("queries", f"{judged} with judgments in {qrels}"),
    )


def _tell_zeros(runs: Sequence[Scored], measure: Measure) -> Iterator[str]:
    unanswered = sum(run.evaluation.unanswered > 0 for run in runs)
    if unanswered:
        yield f"{plural(unanswered, 'run')} did not answer all; unanswered ones count 0"
    empty = runs[0].evaluation.scores[measure].without_relevant
    if measure.kind.better == "higher" and empty:
        yield f"{empty:,} without a relevant document count 0"


def _read_table(path: str, measure: str | None) -> Scores:
    table = _complete(parse_scores(read_table_text(Path(path)), path=path), path)
    wanted = None if measure is None else parse_measure(measure, path="-m")
    if wanted is not None and wanted.largest is not None:
        _refuse_range(table, wanted, path)
    better: Better = "higher" if wanted is None else wanted.kind.better
    facts = (
        ("systems", f"{len(table.systems):,}"),
        ("queries", f"{len(table.queries):,}, in {path}"),
    )
    return Scores(table=table, measure=measure or "", facts=facts, better=better)


def _read_board(source: Source, board: BoardSource, measure: str | None) -> Scores:
    if source.runs or source.qrels or source.table or source.measure:
        raise click.UsageError(
            "--board has scores and measure already: leave --runs, --qrels, --scores and -m away"
        )
    known = load_board(board)
    view = known.view(board.view)
    if measure not in (None, view.measure):
        raise click.UsageError(f"this needs {measure}; view {view.view} has {view.measure}: --view")
    if view.table is None:
        raise InputError(
            Problem(
                code="no-query-scores",
                path=f"view {view.view}",
                found="means alone",
                expected="a view with a score for each query",
                hint="an imported board has none, nor has a summary over groups of queries",
            )
        )
    return Scores(
        table=_complete(view.table, f"view {view.view}"),
        measure=view.measure,
        facts=tell_view(known, view),
        better=view.better,
    )


def _complete(table: ScoreTable, where: str) -> ScoreTable:
    """The table, refused where a system lacks a score: missing is not zero."""
    lacking = [
        (system, int((~known).sum()))
        for system, known in zip(table.systems, table.known, strict=True)
        if not known.all()
    ]
    if not lacking:
        _refuse_zeros(table, where)
        return table
    shown = ", ".join(f"{system} ({count:,})" for system, count in lacking[:_SHOWN])
    more = f" and {len(lacking) - _SHOWN} more" if len(lacking) > _SHOWN else ""
    raise InputError(
        Problem(
            code="missing-scores",
            path=where,
            found=f"no score for some queries: {shown}{more}",
            expected=f"every system on the same {len(table.queries):,} queries",
            hint="leave out the systems or the queries; a missing score is not 0",
        )
    )


def _refuse_zeros(table: ScoreTable, where: str) -> None:
    """Refuse a table without a score other than 0: whoever stands first in it leads nobody."""
    if table.values.size and not table.values.any():
        raise InputError(
            Problem(
                code="all-zero",
                path=where,
                found=f"0 for {plural(len(table.systems), 'system')} on all "
                f"{plural(len(table.queries), 'query', 'queries')}",
                expected="another score for some system and query: equal zeros rank nobody",
                hint="is the grade the last column of the qrels, and are documents named as there?",
            )
        )


def _refuse_range(table: ScoreTable, measure: Measure, path: str) -> None:
    """Refuse scores that a measure from 0 to 1 cannot have: tests rely on its range."""
    low, high = float(table.values.min()), float(table.values.max())
    if low < 0 or high > 1:
        raise InputError(
            Problem(
                code="scores-range",
                path=path,
                found=f"scores from {low:g} to {high:g}",
                expected=f"{measure} from 0 to 1",
                hint="divide percentages by 100; leave -m away for scores of another kind",
            )
        )
