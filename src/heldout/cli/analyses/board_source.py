"""Where an analysis gets a board's scores: its vault."""

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from heldout.cli.options import now_option, one_argument
from heldout.errors import StoreError

if TYPE_CHECKING:
    from heldout.analyses.entries import AlikeRuns, BoardScores
    from heldout.board.scores.session import Session


@dataclass(frozen=True, slots=True, kw_only=True)
class BoardSource:
    """What a command was told of a board.

    Attributes:
        folder: a folder in the board, `None` where none was named.
        vault: the vault's folder, `None` where none was named.
        view: name of the view, `None` for the one that ranks.
        unpublished: whether entries that wait or were rejected count too.
        now: the moment, UTC; says which season's view ranks.
    """

    folder: Path | None
    vault: Path | None
    view: str | None
    unpublished: bool
    now: datetime


board_options = one_argument(
    "board",
    BoardSource,
    click.option(
        "--board",
        "folder",
        type=click.Path(path_type=Path, file_okay=False),
        metavar="DIR",
        help="A board whose vault has the scores.",
    ),
    click.option(
        "--vault",
        type=click.Path(path_type=Path, file_okay=False),
        envvar="HELDOUT_VAULT",
        metavar="DIR",
        help="The board's vault [or HELDOUT_VAULT].",
    ),
    click.option("--view", metavar="NAME", help="A view of the board [the one that ranks]."),
    click.option(
        "--unpublished",
        is_flag=True,
        help="Also entries that wait for a decision or were rejected.",
    ),
    now_option,
)
"""`--board`, `--vault`, `--view`, `--unpublished` and `--now`, as one `board` argument."""


def load_board(source: BoardSource) -> "BoardScores":
    """A board's entries and scores, read from its vault; nothing is written.

    Raises:
        StoreError: no board or vault there, or nothing is published yet.
    """
    from heldout.board.scores.analyses_source import read_board_scores  # noqa: PLC0415 - heavy, --help is not

    return read_board_scores(open_session(source), unpublished=source.unpublished)


def load_alike(source: BoardSource, known: "BoardScores") -> "tuple[AlikeRuns, ...]":
    """Which entries of a board, of different teams, have nearly the same runs.

    Args:
        source: names the board and its vault.
        known: what `load_board` gave for it.
    """
    from heldout.board.scores.analyses_source import find_alike_runs  # noqa: PLC0415 - the same

    return find_alike_runs(open_session(source), known)


def open_session(source: BoardSource) -> "Session":
    """The organiser's session, to read at.

    Raises:
        StoreError: no board or vault there.
    """
    from heldout.board.scores.session import look_at  # noqa: PLC0415 - the same
    from heldout.board.store.repository import find_board  # noqa: PLC0415 - the same

    repository = find_board(source.folder or Path())
    if source.vault is None:
        raise StoreError("which vault? name it: --vault DIR, or set HELDOUT_VAULT")
    return look_at(repository, source.vault.absolute(), now=source.now)
