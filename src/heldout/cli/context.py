"""Options that many commands share: the moment, the vault, the board that one stands in."""

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from heldout.cli.printing import reports_errors
from heldout.errors import StoreError

if TYPE_CHECKING:
    from heldout.pipeline.desk import Desk
    from heldout.store.repository import Repository

__all__ = ["Place", "at_board", "in_clone", "json_option", "now_option", "reports_disk"]

Function = TypeVar("Function", bound=Callable[..., object])
_FIRST_YEAR, _LAST_YEAR = 1990, 2900


def _moment(value: str) -> datetime:
    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        raise click.BadParameter(f"{value!r} is no time like 2026-11-20T17:10:00Z") from None
    if not _FIRST_YEAR <= moment.year <= _LAST_YEAR:
        raise click.BadParameter(f"{value!r} is not between {_FIRST_YEAR} and {_LAST_YEAR}")
    utc = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    return utc.replace(microsecond=0)


def now_option(function: Function) -> Function:
    """`--now`: replaces the clock."""
    return click.option(
        "--now",
        type=_moment,
        default=lambda: datetime.now(UTC).isoformat(),
        metavar="ISO8601",
        help="Use this time (UTC) for the clock's.",
    )(function)


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where and when a command works, and how it answers.

    Attributes:
        board_folder: a folder in the board.
        vault: the vault's folder, `None` where none was named.
        now: the moment, UTC.
        as_json: whether to answer with one JSON document.
    """

    board_folder: Path
    vault: Path | None
    now: datetime
    as_json: bool

    def board(self) -> "Repository":
        """The board.

        Raises:
            StoreError: the folder lies in none.
        """
        from heldout.store.repository import find_board  # noqa: PLC0415 - heavy, --help is not

        return find_board(self.board_folder)

    @contextmanager
    def desk(self) -> "Iterator[Desk]":
        """The organiser's desk, with the vault locked while it is used.

        Raises:
            StoreError: no board, no vault, or another heldout holds the lock.
        """
        from heldout.pipeline.found import sit_down  # noqa: PLC0415 - heavy, --help is not
        from heldout.store.vault import Vault  # noqa: PLC0415 - the same

        repository = self.board()
        if self.vault is None:
            raise StoreError("which vault? name it: --vault DIR, or set HELDOUT_VAULT")
        vault = Vault.open(self.vault.absolute(), board=repository.root)
        with vault.locked(), repository.locked():
            yield sit_down(repository, vault, now=self.now)


_board = click.option(
    "--board",
    "board_folder",
    type=click.Path(path_type=Path, file_okay=False),
    default=".",
    metavar="DIR",
    help="The board [the one you stand in].",
)
_vault = click.option(
    "--vault",
    type=click.Path(path_type=Path, file_okay=False),
    envvar="HELDOUT_VAULT",
    metavar="DIR",
    help="The board's vault [or HELDOUT_VAULT].",
)
json_option = click.option("--json", "as_json", is_flag=True, help="One JSON document.")


def in_clone(command: Callable[..., None]) -> Callable[..., None]:
    """Options of a participant's command, handed over as `place`."""
    return _board(now_option(json_option(_packs(reports_disk(command)))))


def at_board(command: Callable[..., None]) -> Callable[..., None]:
    """Options of an organiser's command, handed over as `place`."""
    return _board(_vault(now_option(json_option(_packs(reports_disk(command))))))


def reports_disk(command: Callable[..., None]) -> Callable[..., None]:
    """Let a command say what the operating system refused, as a full disk, and end with 2."""

    @functools.wraps(command)
    def guarded(*args: Any, **kwargs: Any) -> None:
        try:
            command(*args, **kwargs)
        except OSError as error:
            if error.filename is None and error.errno is None:
                raise
            place = f"{error.filename}: " if error.filename else ""
            raise StoreError(f"{place}{error.strerror}") from error

    return reports_errors(guarded)


def _packs(command: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(command)
    def packed(
        *, board_folder: Path, now: datetime, as_json: bool, vault: Path | None = None, **rest: Any
    ) -> None:
        place = Place(board_folder=board_folder, vault=vault, now=now, as_json=as_json)
        command(place=place, **rest)

    return packed
