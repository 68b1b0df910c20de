"""Where an analysis gets what it is computed from: files, tables, or a board's vault."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Annotated, Any

import click

from heldout.analyses import analysis
from heldout.analyses.agreement.judges import Ratings
from heldout.analyses.agreement.reading import read_judges, read_tops
from heldout.analyses.agreement.runs import Tops
from heldout.analyses.analysis import Analysis
from heldout.analyses.dated import Dated
from heldout.analyses.entries import BoardScores, ViewScores, parse_entries
from heldout.analyses.views.analysis import LoadedViews, Means
from heldout.analyses.views.views import View, views_of_board
from heldout.board.old_boards.legacy import parse_table, scores_of_old_table
from heldout.cli.analyses.board_source import BoardSource, board_options, load_alike, load_board
from heldout.cli.analyses.score_source import Source, load_measures, load_scores, source_options
from heldout.cli.options import (
    Decorator,
    Function,
    add_option,
    add_options,
    one_argument,
)
from heldout.cli.printing import TERMINAL
from heldout.options import Jobs, Opt
from heldout.scoring.run_files import RunOrder, describe_orders, find_runs, read_table_text
from heldout.scoring.scores import Scores
from heldout.scoring.table import Better, ScoreTable, parse_scores
from heldout.trec.ranking import Order
from heldout.trec.reading.sources import open_input

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
    """Where views come from."""

    runs: Annotated[
        tuple[str, ...],
        Opt(
            "Run files: a path, or a pattern in quotes. Can be given many times.", metavar="'GLOB'"
        ),
    ] = ()
    qrels: Annotated[
        tuple[str, ...],
        Opt("Judgments of the runs; each file makes views. Can be given many times.", metavar="Q"),
    ] = ()
    measures: Annotated[
        tuple[str, ...],
        Opt(
            "Measure, such as RR@10; each makes views. Can be given many times.",
            names=("-m", "--measure"),
            metavar="MEASURE",
        ),
    ] = ()
    order: RunOrder = None
    tables: Annotated[
        tuple[str, ...],
        Opt(
            "Table of scores by query, which is a view. Can be given many times.",
            names=("--scores",),
            metavar="TABLE.csv",
        ),
    ] = ()
    jobs: Jobs = None
    transfer: Annotated[
        Path | None,
        Opt(
            "Means instead: a header `collection` and system names, then a row per collection; "
            "empty where there is no score.",
            metavar="TABLE.csv",
            path="file",
        ),
    ] = None


def load_views(source: ViewSource, board: BoardSource) -> LoadedViews | Means:
    """All views that a command was told of.

    Raises:
        click.UsageError: fewer than two, two with one name, or sources that do not go together.
        InputError: a file has errors, or a system lacks a score.
        StoreError: the board or its vault cannot be read.
    """
    if source.transfer is not None:
        if source.runs or source.qrels or source.tables or board.folder is not None:
            raise click.UsageError("--transfer has means of everything: leave the others away")
        return Means(table=_read_means(source.transfer), path=str(source.transfer))
    if board.folder is not None:
        if source.runs or source.qrels or source.tables or source.measures or board.view:
            raise click.UsageError(
                "all views of a board are taken: leave --runs, --qrels, --scores, -m, --view away"
            )
        loaded = _read_board(board)
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


def _score_runs(source: ViewSource) -> tuple[list[View], tuple[Order, ...]]:
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
            views.append(_name_view(name, scores))
            orders = scores.orders
    return views, orders


def _read_tables(source: ViewSource) -> list[View]:
    measure = source.measures[0] if source.measures and not source.runs else None
    return [
        _name_view(_stem(table), load_scores(Source(table=table, measure=measure)))
        for table in source.tables
    ]


def _read_board(source: BoardSource) -> LoadedViews:
    known = load_board(source)
    views = views_of_board(known)
    facts = (("board", known.board), ("views", ", ".join(view.name for view in views)))
    return LoadedViews(views=views, facts=facts)


def _name_view(name: str, scores: Scores) -> View:
    return View.of(name, scores.table, better=scores.better)


def _read_means(path: Path) -> ScoreTable:
    """A table of means: one of scores whose queries are collections."""
    text = re.sub(r"^collection(?=\s*,)", "query", read_table_text(path), flags=re.IGNORECASE)
    return parse_scores(text, path=str(path))


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


@dataclass(frozen=True, slots=True, kw_only=True)
class _Judges:
    """Whose agreement is looked at: judges', or runs'."""

    qrels: Annotated[
        tuple[Path, ...],
        Opt("Judgments: one file per judge, at least two.", metavar="Q", path="file"),
    ] = ()
    ratings: Annotated[
        Path | None,
        Opt(
            "Judgments of several judges in one file: query, judge, document, grade.",
            metavar="FILE",
            path="file",
        ),
    ] = None
    preferences: Annotated[
        tuple[Path, ...],
        Opt(
            "Preferences: query, item, item, preferred item; a pair may be judged many times.",
            metavar="FILE",
            path="file",
        ),
    ] = ()
    runs: Annotated[
        tuple[str, ...],
        Opt("Run files instead; no judgments are needed.", metavar="'GLOB'"),
    ] = ()
    relevant: Annotated[
        int | None,
        Opt(
            "Lowest grade that counts as 1, others as 0 [grades as they are].",
            least=1,
            metavar="GRADE",
        ),
    ] = None
    depth: Annotated[
        int,
        Opt(
            "Documents of each query that are compared, and those that tie with the last of them.",
            least=1,
            most=1000,
        ),
    ] = 100
    order: RunOrder = None


def _load_judges(source: _Judges, _: Analysis[Any, Any]) -> Ratings | Tops:
    named = (source.qrels, source.ratings, source.preferences, source.runs)
    if sum(map(bool, named)) != 1:
        raise click.UsageError(
            "who? --qrels A --qrels B, --ratings FILE, --preferences FILE, or --runs 'GLOB'"
        )
    if source.preferences and source.relevant is not None:
        raise click.UsageError("--relevant is for grades: preferences have none")
    if source.runs:
        paths = find_runs(source.runs)
        return read_tops(paths, order=source.order, depth=source.depth, progress=TERMINAL)
    return read_judges(
        qrels=source.qrels,
        ratings=source.ratings,
        preferences=source.preferences,
        relevant=source.relevant,
        progress=TERMINAL,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Views:
    """Views of files, or of a board."""

    views: ViewSource
    board: BoardSource


def _view_options(function: Function) -> Function:
    @wraps(function)
    def called(*args: Any, views: ViewSource, board: BoardSource, **given: Any) -> Any:
        return function(*args, source=_Views(views=views, board=board), **given)

    return add_options("views", ViewSource)(board_options(called))


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
    "views": SourceOptions(
        options=_view_options,
        load=lambda source, _: load_views(source.views, source.board),
        jobs=lambda source: source.views.jobs,
    ),
    "judges": SourceOptions(
        options=add_options("source", _Judges), load=_load_judges, jobs=lambda _: 1
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
