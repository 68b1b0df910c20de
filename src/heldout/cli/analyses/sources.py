"""Where an analysis gets what it is computed from: files, tables, or a board's vault."""

from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Self

import click

from heldout.analyses import analysis
from heldout.analyses.analysis import Analysis
from heldout.analyses.dated import Dated
from heldout.analyses.entries import BoardScores, ViewScores, parse_entries
from heldout.analyses.subsets import cut_known
from heldout.board.old_boards.legacy import parse_table
from heldout.board.scores.analyses_source import scores_of_old_table
from heldout.cli.analyses.board_source import BoardSource, board_options, load_alike, load_board
from heldout.cli.analyses.score_source import Source, load_measures, load_scores, source_options
from heldout.cli.files import order_option
from heldout.cli.options import (
    Decorator,
    Function,
    add_option,
    add_options,
    jobs_option,
    one_argument,
)
from heldout.options import Opt
from heldout.scoring.run_files import describe_orders, read_table_text
from heldout.scoring.scores import Scores
from heldout.scoring.table import Better, ScoreTable
from heldout.trec.ranking import Order
from heldout.trec.reading.sources import open_input

if TYPE_CHECKING:
    from heldout.analyses.views.views import View


# Where an analysis over time gets its scores: a board, an old table, or scores with dates.


@dataclass(frozen=True, slots=True, kw_only=True)
class DatedSource:
    """What a command was told of scores over time.

    Attributes:
        source: runs, a table of scores, or a board.
        csv_file: the file of an MS MARCO leaderboard instead.
        entries: a table that says when each system of runs or a score table came.
    """

    source: Source
    csv_file: Path | None
    entries: Path | None

    @property
    def board(self) -> BoardSource | None:
        """The board, `None` where none was named."""
        board = self.source.board
        return None if board is None or board.folder is None else board

    @property
    def view(self) -> str | None:
        """Name of the view, `None` for the one that ranks."""
        return None if self.source.board is None else self.source.board.view


dated_options = one_argument(
    "dated",
    DatedSource,
    source_options,
    click.option(
        "--entries",
        type=click.Path(path_type=Path, dir_okay=False),
        metavar="FILE",
        help="With --runs or --scores: a CSV table with id, date, and team, institution, "
        "description, baseline (yes or no).",
    ),
    click.option(
        "--csv",
        "csv_file",
        type=click.Path(path_type=Path, dir_okay=False),
        metavar="FILE",
        help="The table of an MS MARCO leaderboard instead: means alone, so no tests.",
    ),
)
"""`source_options`, `--csv` and `--entries`, as one `dated` argument."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DatedScores:
    """Scores over time.

    Attributes:
        board: entries with their days and scores.
        orders: of the documents of runs, each once; none where scores are no runs'.
        given: the order that was asked for; `None` where the columns decided.
    """

    board: BoardScores
    orders: tuple[Order, ...] = ()
    given: Order | None = None

    @property
    def source(self) -> tuple[tuple[str, str], ...]:
        """How documents are ordered, in lines of `name      what there is to say`."""
        return tuple(describe_orders(self.orders, given=self.given))


def load_dated(
    source: DatedSource, *, second: Path | None = None, name: str = "", held_out: bool = True
) -> DatedScores:
    """Entries with their days and scores.

    Args:
        source: what the command was told.
        second: a table of scores of the same systems on a second view; its queries are taken for
            others than those of the first.
        name: of the second view.
        held_out: whether nobody but the organisers has the second view's labels.

    Raises:
        click.UsageError: not just one source is named, or the dates are missing.
        InputError: a file has errors, or a system has no row among the entries.
        StoreError: the board or its vault cannot be read.
    """
    scores = source.source
    board = source.board
    named = [source.csv_file is not None, board is not None, bool(scores.runs or scores.table)]
    if sum(named) != 1:
        raise click.UsageError(
            "which scores? --board DIR --vault DIR, --csv FILE, or --runs or --scores with "
            "--entries FILE"
        )
    if (source.entries is None) == named[2]:
        raise click.UsageError("--entries FILE says when each system of --runs or --scores came")
    if second is not None and not named[2]:
        raise click.UsageError("a board and an old table have their views: name one of them")
    if source.csv_file is not None:
        with open_input(source.csv_file) as file:
            table = parse_table(file.read(), path=source.csv_file.name)
        return DatedScores(board=scores_of_old_table(table))
    if board is not None:
        return DatedScores(board=load_board(board))
    return _join(source, second, name, held_out=held_out)


def _join(source: DatedSource, second: Path | None, name: str, *, held_out: bool) -> DatedScores:
    first = load_scores(source.source)
    views = [_as_view("scores", first.table, first.measure, first.better, held_out=True)]
    if second is not None:
        table = load_scores(Source(table=str(second))).table
        view = _as_view(name, table, first.measure, first.better, held_out=held_out)
        views.append(view)
    path = source.entries or Path()
    text = read_table_text(path)
    board = BoardScores(
        board=path.stem,
        entries=parse_entries(text, path=path.name, systems=first.table.systems),
        views={view.view: view for view in views},
        primary=views[0].view,
    )
    return DatedScores(board=board, orders=first.orders, given=source.source.order)


def _as_view(
    name: str, table: ScoreTable, measure: str, better: Better, *, held_out: bool
) -> ViewScores:
    means = {system: table.mean(system) for system in table.systems}
    return ViewScores(
        view=name,
        queries=name,
        measure=measure,
        public=name != "reserve",
        held_out=held_out,
        means={system: mean for system, mean in means.items() if mean is not None},
        table=table,
        better=better,
    )


# Where an analysis of several views gets its scores: measures by judgments, tables, a board.

_LEAST = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewSource:
    """What a command was told of its views.

    Attributes:
        runs: patterns or paths of run files.
        qrels: files of judgments; each is a view, with each measure.
        measures: names of measures; with tables of scores at most one, which all of them have.
        tables: CSV tables of scores; each is a view.
        order: how documents are ordered; `None` for what fits a run's columns.
        board: a board, all of whose views are taken.
        jobs: processes that read runs side by side; `None` for what pays.
    """

    runs: tuple[str, ...]
    qrels: tuple[str, ...]
    measures: tuple[str, ...]
    tables: tuple[str, ...]
    order: Order | None
    board: BoardSource
    jobs: int | None

    @property
    def named(self) -> bool:
        """Whether there is any view in it."""
        return bool(self.runs or self.qrels or self.tables or self.board.folder is not None)


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedViews:
    """Views with their source.

    Attributes:
        views: by query.
        facts: where they come from, in lines of `name      what there is to say`.
        orders: of the runs' documents, each once.
    """

    views: "tuple[View, ...]"
    facts: tuple[tuple[str, str], ...]
    orders: tuple[Order, ...] = ()

    @property
    def size(self) -> int:
        """Fewest queries of a view."""
        return min(0 if view.table is None else len(view.table.queries) for view in self.views)

    def cut(self, queries: AbstractSet[str]) -> Self:
        """The same on some of the queries.

        Raises:
            InputError: code `no-query-scores`: of a view only means are known.
        """
        return replace(self, views=tuple(_cut(view, queries) for view in self.views))


view_options = one_argument(
    "source",
    ViewSource,
    click.option(
        "--runs", multiple=True, metavar="'GLOB'", help="Run files. Can be given many times."
    ),
    click.option(
        "--qrels", multiple=True, metavar="Q", help="Judgments; many times for many views."
    ),
    click.option(
        "-m",
        "--measure",
        "measures",
        multiple=True,
        metavar="MEASURE",
        help="For example RR@10; many times for many views.",
    ),
    order_option,
    click.option(
        "--scores",
        "tables",
        multiple=True,
        metavar="TABLE.csv",
        help="A table of scores by query, a view; many times for many views.",
    ),
    board_options,
    jobs_option,
)
"""The options that say where views come from, as one `source` argument."""


def load_views(source: ViewSource) -> LoadedViews:
    """All views that a command was told of.

    Raises:
        click.UsageError: fewer than two, two with one name, or sources that do not go together.
        InputError: a file has errors, or a system lacks a score.
        StoreError: the board or its vault cannot be read.
    """
    if source.board.folder is not None:
        if source.runs or source.qrels or source.tables or source.measures or source.board.view:
            raise click.UsageError(
                "all views of a board are taken: leave --runs, --qrels, --scores, -m, --view away"
            )
        loaded = _read_board(source.board)
    else:
        loaded = _read_files(source)
    names = [view.name for view in loaded.views]
    if len(set(names)) < len(names):
        raise click.UsageError(f"two views have one name: {', '.join(names)}")
    if len(names) < _LEAST:
        raise click.UsageError(
            "two views at least: several -m or --qrels with --runs, several --scores, or a board "
            "with two views"
        )
    return loaded


def _read_files(source: ViewSource) -> LoadedViews:
    if source.tables and not source.runs and len(source.measures) > 1:
        raise click.UsageError("tables of scores have one measure: give -m once or not at all")
    views, orders = _score_runs(source)
    views += _read_tables(source)
    shown = ", ".join(view.name for view in views)
    return LoadedViews(
        views=tuple(views),
        facts=(("views", shown), *describe_orders(orders, given=source.order)),
        orders=orders,
    )


def _score_runs(source: ViewSource) -> "tuple[list[View], tuple[Order, ...]]":
    """Views of runs, and how the documents of these are ordered."""
    if not source.runs and not source.qrels:
        return [], ()
    if not source.qrels or not source.measures:
        raise click.UsageError("runs need --qrels Q and -m MEASURE")
    views = []
    orders: tuple[Order, ...] = ()
    for qrels in source.qrels:
        one = Source(runs=source.runs, qrels=qrels, order=source.order, jobs=source.jobs)
        for measure, scores in load_measures(one, source.measures).items():
            name = f"{measure} {_stem(qrels)}" if len(source.qrels) > 1 else measure
            views.append(_view_source_as_view(name, scores))
            orders = scores.orders
    return views, orders


def _read_tables(source: ViewSource) -> "list[View]":
    measure = source.measures[0] if source.measures and not source.runs else None
    return [
        _view_source_as_view(_stem(table), load_scores(Source(table=table, measure=measure)))
        for table in source.tables
    ]


def _read_board(source: BoardSource) -> LoadedViews:
    from heldout.analyses.views.views import views_of_board  # noqa: PLC0415 - heavy, --help is not

    known = load_board(source)
    views = views_of_board(known)
    facts = (("board", known.board), ("views", ", ".join(view.name for view in views)))
    return LoadedViews(views=views, facts=facts)


def _view_source_as_view(name: str, scores: Scores) -> "View":
    from heldout.analyses.views.views import View  # noqa: PLC0415 - the same

    return View.of(name, scores.table, better=scores.better)


def _cut(view: "View", queries: AbstractSet[str]) -> "View":
    from heldout.analyses.views.views import View  # noqa: PLC0415 - the same

    table = cut_known(view.table, queries, view=view.name)
    return View.of(view.name, table, better=view.better)


def _stem(path: str) -> str:
    """The file's name without folders and what it ends in."""
    name = Path(path).name.removesuffix(".gz")
    return Path(name).stem or name


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
