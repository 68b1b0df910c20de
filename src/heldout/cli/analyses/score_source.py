"""Where an analysis gets its scores: runs with judgments, a table of scores, a board's vault."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

import click

from heldout.cli.analyses.board_source import BoardSource, board_options, load_board
from heldout.cli.options import add_option, jobs_option, one_argument
from heldout.cli.printing import TERMINAL, messages, print_notes
from heldout.errors import InputError, Problem
from heldout.scoring.cache import code_version, find_cache
from heldout.scoring.many import Reading
from heldout.scoring.run_files import RunOrder
from heldout.scoring.scores import Scores
from heldout.scoring.sources import (
    check_complete,
    read_scores,
    score_runs,
    transform_scores,
)
from heldout.scoring.sources import read_judgments as read_qrels
from heldout.scoring.transforms import Transform
from heldout.trec.accelerators import find_accelerators
from heldout.trec.qrels import Qrels
from heldout.trec.ranking import Order

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
        help="Run files: a path, or a pattern in quotes. Can be given many times.",
    ),
    click.option(
        "--qrels",
        metavar="Q",
        help="Judgments of the runs.",
    ),
    click.option(
        "-m",
        "--measure",
        metavar="MEASURE",
        help="Measure, such as RR@10 or nDCG@10.",
    ),
    add_option("order", RunOrder, None),
    click.option(
        "--scores",
        "table",
        metavar="TABLE.csv",
        help="Scores instead of runs: a header of system names, then one row per query. A first "
        "column called query has the query ids.",
    ),
    board_options,
    jobs_option,
    click.option(
        "--transform",
        type=click.Choice(get_args(Transform)),
        help="Transformation of the scores of runs: interval for ranks among attainable scores, "
        "preference for what people prefer.",
    ),
    click.option(
        "--preferences",
        type=click.Path(path_type=Path, dir_okay=False),
        metavar="FILE",
        help="Preference judgments for --transform preference: query, item, item, preferred item.",
    ),
)
"""The options that say where scores come from, as one `source` argument."""


def find_reading(jobs: int | None = None, *, cached: bool = True) -> Reading:
    """How this machine reads run files, by the environment; progress goes to standard error."""
    return Reading(
        accelerators=find_accelerators(os.environ),
        cache=find_cache(os.environ) if cached else None,
        code=code_version() if cached else "",
        jobs=jobs,
        progress=TERMINAL,
    )


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
        return read_scores(source.table, measure or source.measure)
    name = measure or source.measure
    if name is None:
        raise click.UsageError("which measure? for example -m RR@10" if source.runs else _WHICH)
    qrels = read_judgments(source)
    (scores,) = _load(source, [name], qrels).values()
    if source.transform is None:
        return scores
    return transform_scores(scores, qrels, source.transform, source.preferences)


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
    return read_qrels(source.qrels)


def _load(source: Source, measures: Sequence[str], qrels: Qrels) -> Mapping[str, Scores]:
    scores = score_runs(
        source.runs,
        qrels,
        measures,
        find_reading(source.jobs),
        judgments=source.qrels or "",
        order=source.order,
    )
    for one in list(scores.values())[:1]:
        print_notes(messages(), one.notes)
    return scores


def _read_board(source: Source, board: BoardSource, measure: str | None) -> Scores:
    if source.runs or source.qrels or source.table or source.measure:
        raise click.UsageError(
            "--board has scores and measure already: leave --runs, --qrels, --scores and -m away"
        )
    from heldout.analyses.dated import tell_view  # noqa: PLC0415 - most calls name no board

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
        table=check_complete(view.table, f"view {view.view}"),
        measure=view.measure,
        facts=tell_view(known, view),
        better=view.better,
    )
