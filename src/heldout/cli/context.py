"""Options that the commands on a board share: the board, its vault, the time; questions."""

import os
import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import click

from heldout.cli.options import check_reason
from heldout.cli.printing import TERMINAL, answers, messages, print_facts, print_json
from heldout.errors import SetupError, StoreError, plural, printable
from heldout.options import Json, Now, Opt

if TYPE_CHECKING:
    from heldout.board.organiser.answer import ForgeAccess
    from heldout.board.participant.server import Server
    from heldout.board.scores.commitments import RuleChange
    from heldout.board.scores.session import Session
    from heldout.board.store.repository import Repository


Why = Annotated[str, Opt("Reason; it is public.", check=check_reason, metavar="TEXT")]
"""`--why` of a decision on somebody else's work."""

Identifier = Annotated[str, Opt(argument=True, metavar="ID")]
"""A submission."""

Identifiers = Annotated[tuple[str, ...], Opt(argument=True, metavar="ID...")]
"""Submissions."""

SendTo = Annotated[
    str | None,
    Opt("Folder, or address of the board's server [a branch].", names=("--to",), metavar="DIR|URL"),
]
"""`--to`; see `find_target`."""


def read_clock() -> datetime:
    """The time, UTC, in whole seconds."""
    return datetime.now(UTC).replace(microsecond=0)


def open_board(folder: Path | None) -> "Repository":
    """The board in a folder [the current one], or above it.

    Raises:
        StoreError: the folder lies in none.
        InputError: code `private-path`: somebody put a path there that is a clone's own.
    """
    from heldout.board.store.repository import find_board

    state, home = (os.environ.get(name, "") for name in ("XDG_STATE_HOME", "HOME"))
    if not state.startswith("/"):  # it has to be absolute, by its specification
        state = f"{home}/.local/state" if home else ""
    states = Path(state) / "heldout" if state else None
    return find_board(folder or Path(), states=states)


def show_path(path: Path) -> str:
    """A path as a person can type it here."""
    here = Path.cwd()
    return str(path.relative_to(here)) if path.is_relative_to(here) else str(path)


@dataclass(frozen=True, slots=True, kw_only=True)
class BoardCall:
    """Where and when a command works, and how it answers: options of a participant's command."""

    board_folder: Annotated[
        Path | None,
        Opt("Board [the current folder's].", names=("--board",), path="folder"),
    ] = None
    time: Now = None
    as_json: Json = False

    @property
    def now(self) -> datetime:
        """The moment, UTC: that of `--now`, else the clock's."""
        return self.time or read_clock()

    def board(self) -> "Repository":
        """The board.

        Raises:
            StoreError: the folder lies in none.
        """
        return open_board(self.board_folder)

    def answer(self, document: object, facts: Sequence[tuple[str, str]]) -> None:
        """Print one JSON document, or facts for a reader."""
        if self.as_json:
            print_json(document)
        else:
            print_facts(answers(), facts)


@dataclass(frozen=True, slots=True, kw_only=True)
class VaultCall(BoardCall):
    """The same of a command that reads a board and, where one is named, its vault."""

    vault: Annotated[
        Path | None,
        Opt("Vault of the board [HELDOUT_VAULT].", env="HELDOUT_VAULT", path="folder"),
    ] = None

    def need_vault(self) -> Path:
        """The vault's folder.

        Raises:
            StoreError: none was named.
        """
        if self.vault is None:
            raise StoreError("which vault? name it: --vault DIR, or set HELDOUT_VAULT")
        return self.vault.absolute()


@dataclass(frozen=True, slots=True, kw_only=True)
class OrganiserCall(VaultCall):
    """The same of a command that opens the organiser's session."""

    accept_rules: Annotated[bool, Opt("Log edited rules without a question.")] = False

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
        from heldout.board.scores.session import organiser_session

        opened = organiser_session(
            self.board(),
            self.need_vault(),
            clock=lambda: self.now,
            report=lambda text: print_facts(messages(), [("note", text)]),
            accept=lambda change: _show_rules(change, accepted=self.accept_rules),
            sure=late,
            restore=restore,
        )
        with ended_in_order(), opened as session:
            yield session


@contextmanager
def ended_in_order() -> Iterator[None]:
    """SIGTERM and a closed terminal end a call as Ctrl-C does: no container or git is left."""
    ours = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    ours = [one for one in ours if signal.getsignal(one) is signal.SIG_DFL]
    for one in ours:
        signal.signal(one, signal.default_int_handler)
    try:
        yield
    finally:
        for one in ours:
            signal.signal(one, signal.SIG_DFL)


def _show_rules(change: "RuleChange", *, accepted: bool) -> None:
    """Show rules that the log does not have, and ask whether they are to hold.

    Raises:
        Exit: nobody said yes; nothing was logged.
    """
    for line in change.diff():
        click.echo(printable(line), err=True)
    words = {True: "may decide a score, a key or a quota", False: "decides no score, key or quota"}
    keys = [(one.key, words[one.decides]) for one in change.differences]
    what = "is not what the log has; later scores are made with it"
    keys += [(one.path, what) for one in change.files]
    width = max((len(key) for key, _ in keys), default=0)
    for key, meaning in keys or [("", "no key of board.toml changes")]:
        click.echo(f"  {printable(key):<{width}}  {meaning}", err=True)
    if not accepted:
        require_yes(
            "Log these rules, so that they hold from now on?",
            "nothing was done: the log has other rules than the board's folder, and nobody "
            "accepted the new ones; --accept-rules logs them without a question, heldout rebuild "
            "--restore-rules puts the log's back",
        )


def find_target(repository: "Repository", to: str | None) -> "Path | Server | None":
    """Return where `--to` sends files: a folder, a server with the team's token, or a branch.

    The token is that of the environment, else the clone's; a person is asked for it once.

    Raises:
        SetupError: there is no token, or the address is none that a token may go to.
        BadParameter: it is a file.
    """
    if to is None:
        return None
    from heldout.board.participant import server

    address = server.read_address(to)
    if address is None:
        if Path(to).exists() and not Path(to).is_dir():
            raise click.BadParameter(f"{to!r} is a file", param_hint="--to")
        return Path(to)
    found = find_server(repository, address)
    return found or _server(address, _ask_token(repository, address))


def find_server(repository: "Repository", address: str) -> "Server | None":
    """A server with the team's token; `None` where this clone has none for it.

    Raises:
        SetupError: others can read the token's file, or it holds none.
    """
    from heldout.board.participant import server

    token = server.find_token(repository, address, os.environ)
    return None if token is None else _server(address, token)


def _server(address: str, token: str) -> "Server":
    from heldout.board.participant import server

    return server.Server(address=address, token=token, connect=server.new_client, sleep=time.sleep)


def _ask_token(repository: "Repository", address: str) -> str:
    from heldout.board.participant import server
    from heldout.board.store.uploads import TEAM_TOKEN

    try:
        token: str = click.prompt(f"Token of your team at {address}", hide_input=True, err=True)
    except click.Abort:
        raise SetupError(
            f"{address} needs your team's token: set {TEAM_TOKEN}, or call this in a terminal, "
            "which asks for it once"
        ) from None
    stored = server.store_token(repository, address, token)
    print_facts(messages(), [("stored", f"the token in {show_path(stored)}, for you alone")])
    return token.strip()


def next_facts(repository: "Repository", commands: Sequence[str] = ()) -> list[tuple[str, str]]:
    """The commands to call next, and what is committed but not pushed yet."""
    lines = [*commands]
    unpushed = repository.git.unpushed() if repository.git.is_repository() else 0
    if unpushed:
        lines.append(f"not yet public: {plural(unpushed, 'commit')}; git push")
    return [("", ""), ("next", lines[0]), *(("", line) for line in lines[1:])] if lines else []


def agrees(question: str) -> bool:
    """Check whether a person says yes; without a terminal nobody does."""
    try:
        return click.confirm(question, err=True)
    except click.Abort:  # no terminal, or the input ended
        click.echo(err=True)
        return False


def require_yes(
    question: str, otherwise: str = "nothing was done; --yes skips the question"
) -> None:
    """Ask whether to go on; else say `otherwise`, and end with exit code 1."""
    if not agrees(question):
        click.echo(otherwise, err=True)
        raise click.exceptions.Exit(1)


def reach_forge() -> "ForgeAccess":
    """Return how this machine reaches the board's forge: a token, and questions."""
    from heldout.board.organiser.answer import ForgeAccess
    from heldout.board.store.forges import TOKEN

    return ForgeAccess(
        environ=os.environ,
        agree=lambda host: agrees(f"Send {TOKEN} to {host}, now and from now on?"),
        progress=TERMINAL,
    )
