"""Where an analysis over time gets its scores: a board, an old table, or scores with dates."""

from dataclasses import dataclass
from pathlib import Path

import click

from heldout.board.old_boards.legacy import parse_table
from heldout.cli.board_source import BoardSource, load_board
from heldout.cli.options import one_argument
from heldout.cli.score_source import Source, load_scores, source_options
from heldout.pipeline.scoring.board_scores import scores_of_old_table
from heldout.scores import Better, ScoreTable
from heldout.scoring.run_files import describe_orders, read_table_text
from heldout.trec.ranking import Order
from heldout.trec.reading.streams import open_input
from heldout.validity.entries import BoardScores, ViewScores
from heldout.validity.entry_table import parse_entries

__all__ = ["DatedScores", "DatedSource", "dated_options", "load_dated"]


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
