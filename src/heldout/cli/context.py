"""Options that many commands share: the moment, the vault, the board that one stands in."""

import functools
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.core import ParameterSource

from heldout.cli.options import json_option
from heldout.cli.printing import TERMINAL, answers, messages, print_facts, reports_errors
from heldout.errors import StoreError, plural, printable

if TYPE_CHECKING:
    from heldout.board.organiser.answer import ForgeAccess
    from heldout.board.scores.commitments import RuleChange
    from heldout.board.scores.session import Session
    from heldout.board.store.repository import Repository


Function = TypeVar("Function", bound=Callable[..., object])
_FIRST_YEAR, _LAST_YEAR = 1990, 2900
_ATTEMPTS = 3


class _BegunAgain(Exception):  # noqa: N818 - no error yet; no command handles it as one
    """Another organiser's event came first: the command looks at the new history."""


def _clock() -> datetime:
    return datetime.now(UTC).replace(microsecond=0)


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
        default=lambda: _clock().isoformat(),
        metavar="ISO8601",
        help="Pretend that it is this time (UTC).",
    )(function)


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where and when a command works, and how it answers.

    Attributes:
        board_folder: a folder in the board.
        vault: the vault's folder, `None` where none was named.
        now: the moment, UTC.
        as_json: whether to answer with one JSON document.
        accept_rules: whether rules that were edited are logged without a question.
        clock: the time, read again where a command has waited for others.
    """

    board_folder: Path
    vault: Path | None
    now: datetime
    as_json: bool
    clock: Callable[[], datetime]
    accept_rules: bool = False

    def board(self) -> "Repository":
        """The board.

        Raises:
            StoreError: the folder lies in none.
        """
        from heldout.board.store.repository import find_board  # noqa: PLC0415 - heavy, --help is not

        return find_board(self.board_folder)

    @contextmanager
    def session(self, *, late: bool = False, restore: bool = False) -> "Iterator[Session]":
        """The organiser's session, with the vault locked while it is used.

        A shared vault is brought up to its remote first. Rules in the board's folder that the log
        does not have, by an edit or by git, are shown and need a yes; then they are logged.

        Args:
            late: whether a person says that it is as late as the clock says.
            restore: whether edited rules are replaced by those of the log.

        Raises:
            Exit: there are new rules, and nobody said yes to them; nothing was done.
            StoreError: no board, no vault, another heldout holds the lock, the remote of a shared
                vault cannot be followed, the clock is behind or far ahead, or board.toml was edited
                and names a missing file.
            InputError: board.toml was edited in a way that cannot hold; nothing was done.
        """
        from heldout.board.scores.session import organiser_session  # noqa: PLC0415 - heavy
        from heldout.board.store.sharing import OvertakenError  # noqa: PLC0415 - the same

        repository = self.board()
        if self.vault is None:
            raise StoreError("which vault? name it: --vault DIR, or set HELDOUT_VAULT")
        opened = organiser_session(
            repository,
            self.vault.absolute(),
            clock=self.clock,
            tell=lambda told: print_facts(messages(), [("note", told)]),
            accept=lambda change: _show_rules(change, accepted=self.accept_rules),
            sure=late,
            restore=restore,
        )
        try:
            with opened as session:
                yield session
        except OvertakenError as error:
            raise _BegunAgain(str(error)) from None


def _show_rules(change: "RuleChange", *, accepted: bool) -> None:
    """Show rules that the log does not have, and ask whether they are to hold.

    Raises:
        Exit: nobody said yes; nothing was logged.
    """
    for line in change.diff():
        click.echo(printable(line), err=True)
    keys = [(one.key, one.meaning or "a text of the page") for one in change.differences]
    keys += [(one.path, f"{lines}; later scores are made with it") for one, lines in change.files]
    width = max((len(key) for key, _ in keys), default=0)
    for key, meaning in keys or [("", "no key of board.toml changes")]:
        click.echo(f"  {printable(key):<{width}}  {meaning}", err=True)
    if not accepted and not _agrees():
        click.echo(
            "nothing was done: the log has other rules than the board's folder, and nobody "
            "accepted the new ones; --accept-rules logs them without a question, heldout rebuild "
            "--restore-rules puts the log's back",
            err=True,
        )
        raise click.exceptions.Exit(1)


def _agrees() -> bool:
    try:
        return click.confirm("Log these rules, so that they hold from now on?", err=True)
    except click.Abort:  # no terminal, or the input ended
        click.echo(err=True)
        return False


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


_accept_rules = click.option(
    "--accept-rules", is_flag=True, help="Log edited rules without a question."
)


def in_clone(command: Callable[..., None]) -> Callable[..., None]:
    """Options of a participant's command, handed over as `place`."""
    return _board(now_option(json_option(_packs(reports_disk(command)))))


def at_board(command: Callable[..., None]) -> Callable[..., None]:
    """Options of an organiser's command that sits at the session, handed over as `place`."""
    return _board(_vault(_accept_rules(_at_vault(command))))


def with_vault(command: Callable[..., None]) -> Callable[..., None]:
    """Options of a command that only looks at a board and its vault, handed over as `place`."""
    return _board(_vault(_at_vault(command)))


def _at_vault(command: Callable[..., None]) -> Callable[..., None]:
    return now_option(json_option(_packs(_begins_again(reports_disk(command)))))


def reports_disk(command: Callable[..., None]) -> Callable[..., None]:
    """Let a command say what the operating system refused, as a full disk, and end with 2."""

    @functools.wraps(command)
    def guarded(*args: Any, **kwargs: Any) -> None:
        try:
            command(*args, **kwargs)
        except BrokenPipeError:
            raise  # as in `heldout … | head`: who reads has enough, and click ends quietly
        except OSError as error:
            if error.filename is None and error.errno is None:
                raise
            place = f"{error.filename}: " if error.filename else ""
            raise StoreError(f"{place}{error.strerror}") from error

    return reports_errors(guarded)


def _begins_again(command: Callable[..., None]) -> Callable[..., None]:
    """Call a command anew where another organiser was first: what it did before it finds done."""

    @reports_errors
    @functools.wraps(command)
    def persistent(*, place: Place, **rest: Any) -> None:
        for _ in range(_ATTEMPTS):
            try:
                command(place=replace(place, now=place.clock()), **rest)
            except _BegunAgain as again:
                told = str(again)
                print_facts(messages(), [("note", told)])
            else:
                return
        raise StoreError(f"{_ATTEMPTS} times {told}; call again")

    return persistent


def _packs(command: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(command)
    def packed(
        *,
        board_folder: Path,
        now: datetime,
        as_json: bool,
        vault: Path | None = None,
        accept_rules: bool = False,
        **rest: Any,
    ) -> None:
        source = click.get_current_context().get_parameter_source("now")
        command(
            place=Place(
                board_folder=board_folder,
                vault=vault,
                now=now,
                as_json=as_json,
                accept_rules=accept_rules,
                clock=_clock if source is ParameterSource.DEFAULT else lambda: now,
            ),
            **rest,
        )

    return packed


def not_pushed(branch: str, error: StoreError) -> StoreError:
    """What to do with a branch that the board's remote did not take."""
    return StoreError(
        f"branch {branch} is ready, but could not be pushed ({error}); push it to a fork and open "
        "a pull request: git remote rename origin upstream, git remote add origin YOUR-FORK, then "
        "call this again (docs/forge.md)"
    )


def print_next(repository: "Repository", commands: Sequence[str]) -> None:
    """The commands to call next, and what is committed but not pushed yet."""
    lines = [*commands]
    unpushed = repository.git.unpushed() if repository.git.is_repository() else 0
    if unpushed:
        lines.append(f"not yet public: {plural(unpushed, 'commit')}; git push")
    heads = ["next", *[""] * len(lines)]
    if lines:
        print_facts(answers(), [("", ""), *zip(heads, lines, strict=False)])


def confirm(text: str, question: str) -> None:
    """Say what cannot be taken back, and ask whether to go on."""
    click.echo(text, err=True)
    try:
        agreed = click.confirm(question, err=True)
    except click.Abort:  # no terminal, or the input ended
        agreed = False
        click.echo(err=True)
    if not agreed:
        click.echo("nothing was done; --yes skips the question", err=True)
        raise click.exceptions.Exit(1)


def reach_forge() -> "ForgeAccess":
    """How this machine reaches the board's forge: the token of the environment, and questions."""
    from heldout.board.organiser.answer import ForgeAccess  # noqa: PLC0415 - heavy

    return ForgeAccess(environ=os.environ, agree=_may_send_token, progress=TERMINAL)


def _may_send_token(host: str) -> bool:
    from heldout.board.store.forges.rest import TOKEN  # noqa: PLC0415 - heavy

    try:
        return click.confirm(f"Send {TOKEN} to {host}, now and from now on?", err=True)
    except click.Abort:  # no terminal, or the input ended
        click.echo(err=True)
        return False


def keep_token_host(session: "Session", address: str) -> None:
    """Remember that the token is for the forge of the board's rules, as the organiser names it.

    Raises:
        BadParameter: the rules name another forge, or none that is asked over HTTP.
    """
    forge = session.spec().forge
    host = forge.host if forge is not None and forge.hosted else ""
    if address.rstrip("/").lower() != host:
        names = f"names {host}" if host else "names none that is asked over HTTP"
        raise click.BadParameter(
            f"{address!r}: [forge] of board.toml {names}", param_hint="--token-host"
        )
    session.vault.keep_token_host(host)
