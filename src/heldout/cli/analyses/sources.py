"""Where an analysis gets what it is computed from: files, tables, or a board's vault."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Annotated, Any

from heldout.analyses import analysis
from heldout.analyses.analysis import Analysis
from heldout.analyses.dated import Dated
from heldout.cli.board_source import load_alike
from heldout.cli.dated_source import DatedSource, dated_options, load_dated
from heldout.cli.options import Decorator, Function, add_option, add_options
from heldout.cli.score_source import Source, load_scores, source_options
from heldout.options import Opt
from heldout.scoring.scores import Scores


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceOptions:
    """The options of one kind of source, and how it is read.

    Attributes:
        options: add an argument `source` to a command.
        load: reads what the analysis is given.
        jobs: how many processes were asked for.
    """

    options: Decorator
    load: Callable[[Any, Analysis[Any, Any]], Any]
    jobs: Callable[[Any], int | None]


def _load_scores(source: Source, wanted: Analysis[Any, Any]) -> Scores:
    named = source.measure is not None or source.table is not None
    of_board = source.board is not None and source.board.folder is not None
    default = wanted.measure if wanted.measure and not (named or of_board) else None
    return load_scores(source, measure=default)


@dataclass(frozen=True, slots=True, kw_only=True)
class _DevOptions:
    """Which dev view an analysis of drift looks at."""

    dev: Annotated[
        str | None, Opt("Dev view [public labels, the same measure].", metavar="VIEW")
    ] = None
    dev_scores: Annotated[
        Path | None,
        Opt(
            "With --runs or --scores: the scores on dev, by query.",
            metavar="TABLE.csv",
            path="file",
        ),
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _ReserveOptions:
    """Which reserve view an analysis of teams looks at, and whether at runs."""

    reserve: Annotated[
        str | None, Opt("Reserve view [a view that is not public].", metavar="VIEW")
    ] = None
    reserve_scores: Annotated[
        Path | None,
        Opt(
            "With --runs or --scores: the scores on the reserve, by query.",
            metavar="TABLE.csv",
            path="file",
        ),
    ] = None
    alike: Annotated[
        bool, Opt("Comparison of the runs of different teams; half a minute for a hundred entries.")
    ] = True


@dataclass(frozen=True, slots=True, kw_only=True)
class _Dated:
    """Scores over time, and the second view."""

    dated: DatedSource
    second: Any = None


def _renamed(options: Decorator, name: str) -> Decorator:
    """The argument that these options make, under the name `source`."""

    def decorate(function: Function) -> Function:
        @wraps(function)
        def called(*args: Any, **given: Any) -> Any:
            return function(*args, source=given.pop(name), **given)

        return options(called)

    return decorate


def _with_second(second: type[Any]) -> Decorator:
    """The options of scores over time, and those of the second view, as one `source`."""

    def decorate(function: Function) -> Function:
        @wraps(function)
        def called(*args: Any, dated: DatedSource, second: Any, **given: Any) -> Any:
            return function(*args, source=_Dated(dated=dated, second=second), **given)

        return dated_options(add_options("second", second)(called))

    return decorate


def _load_progress(source: DatedSource, _: Analysis[Any, Any]) -> Dated:
    loaded = load_dated(source)
    view = loaded.board.view(source.view)
    return Dated(board=loaded.board, views=(view,), orders=loaded.orders, source=loaded.source)


def _load_drift(source: _Dated, _: Analysis[Any, Any]) -> Dated:
    dated, second = source.dated, source.second
    loaded = load_dated(dated, second=second.dev_scores, name="dev", held_out=False)
    board = loaded.board
    official = board.view(dated.view)
    dev = board.dev_view(official) if second.dev is None else board.view(second.dev)
    return Dated(board=board, views=(official, dev), orders=loaded.orders, source=loaded.source)


def _load_teams(source: _Dated, _: Analysis[Any, Any]) -> Dated:
    dated, second = source.dated, source.second
    loaded = load_dated(dated, second=second.reserve_scores, name="reserve")
    board = loaded.board
    if dated.csv_file is None:
        public = board.view(dated.view)
        name = second.reserve
        reserve = board.reserve_view(public) if name is None else board.view(name)
    else:
        public, reserve = board.view(dated.view or "dev"), board.view(second.reserve or "eval")
    alike = load_alike(dated.board, board) if second.alike and dated.board is not None else None
    return Dated(
        board=board,
        views=(public, reserve),
        alike=alike,
        orders=loaded.orders,
        source=loaded.source,
    )


UNCUT: frozenset[analysis.Source] = frozenset(("measure",))
"""What has no queries, so that nothing can be cut out of it."""

SOURCES: Mapping[analysis.Source, SourceOptions] = {
    "scores": SourceOptions(
        options=source_options, load=_load_scores, jobs=lambda source: source.jobs
    ),
    "kinds": SourceOptions(
        options=source_options, load=_load_scores, jobs=lambda source: source.jobs
    ),
    "measure": SourceOptions(
        options=add_option(
            "source",
            Annotated[str, Opt("For example RR@3.", names=("-m", "--measure"), metavar="MEASURE")],
        ),
        load=lambda source, _: source,
        jobs=lambda _: 1,
    ),
    "dates": SourceOptions(
        options=_renamed(dated_options, "dated"),
        load=_load_progress,
        jobs=lambda source: source.source.jobs,
    ),
    "dates-dev": SourceOptions(
        options=_with_second(_DevOptions),
        load=_load_drift,
        jobs=lambda source: source.dated.source.jobs,
    ),
    "dates-reserve": SourceOptions(
        options=_with_second(_ReserveOptions),
        load=_load_teams,
        jobs=lambda source: source.dated.source.jobs,
    ),
}
"""By `Analysis.source`."""
