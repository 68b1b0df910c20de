"""Where an analysis of several views gets its scores: measures by judgments, tables, a board."""

from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Self

import click

from heldout.cli.board_source import BoardSource, board_options, load_board
from heldout.cli.files import order_option
from heldout.cli.options import jobs_option, one_argument
from heldout.cli.score_source import Source, load_measures, load_scores
from heldout.scoring.run_files import describe_orders
from heldout.scoring.scores import Scores
from heldout.trec.ranking import Order
from heldout.validity.subsets import cut_known

if TYPE_CHECKING:
    from heldout.validity.views import View

__all__ = ["LoadedViews", "ViewSource", "load_views", "view_options"]

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
            views.append(_as_view(name, scores))
            orders = scores.orders
    return views, orders


def _read_tables(source: ViewSource) -> "list[View]":
    measure = source.measures[0] if source.measures and not source.runs else None
    return [
        _as_view(_stem(table), load_scores(Source(table=table, measure=measure)))
        for table in source.tables
    ]


def _read_board(source: BoardSource) -> LoadedViews:
    from heldout.validity.views import views_of_board  # noqa: PLC0415 - heavy, --help is not

    known = load_board(source)
    views = views_of_board(known)
    facts = (("board", known.board), ("views", ", ".join(view.name for view in views)))
    return LoadedViews(views=views, facts=facts)


def _as_view(name: str, scores: Scores) -> "View":
    from heldout.validity.views import View  # noqa: PLC0415 - the same

    return View.of(name, scores.table, better=scores.better)


def _cut(view: "View", queries: AbstractSet[str]) -> "View":
    from heldout.validity.views import View  # noqa: PLC0415 - the same

    table = cut_known(view.table, queries, view=view.name)
    return View.of(view.name, table, better=view.better)


def _stem(path: str) -> str:
    """The file's name without folders and what it ends in."""
    name = Path(path).name.removesuffix(".gz")
    return Path(name).stem or name
