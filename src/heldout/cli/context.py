"""Options that many commands share: the moment, the vault, the board that one stands in."""

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.core import ParameterSource

from heldout.charts.extras import check_extra
from heldout.cli.printing import messages, plural, print_facts, reports_errors
from heldout.errors import StoreError, printable

if TYPE_CHECKING:
    from heldout.pipeline.organiser.desk import Desk
    from heldout.store.repository import Repository
    from heldout.store.vault import Vault

__all__ = [
    "Place",
    "at_board",
    "in_clone",
    "json_option",
    "not_pushed",
    "now_option",
    "reports_disk",
    "with_vault",
]

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
        from heldout.store.repository import find_board  # noqa: PLC0415 - heavy, --help is not

        return find_board(self.board_folder)

    @contextmanager
    def desk(
        self, *, page: bool = True, late: bool = False, restore: bool = False
    ) -> "Iterator[Desk]":
        """The organiser's desk, with the vault locked while it is used.

        A shared vault is brought up to its remote first. Rules in the board's folder that the log
        does not have, by an edit or by git, are shown and need a yes; then they are logged.

        Args:
            page: whether the page is made anew in the end: then what makes it must be here first.
            late: whether a person says that it is as late as the clock says.
            restore: whether edited rules are replaced by those of the log.

        Raises:
            Exit: there are new rules, and nobody said yes to them; nothing was done.
            SetupError: the page could not be made; nothing was done.
            StoreError: no board, no vault, another heldout holds the lock, the remote of a shared
                vault cannot be followed, the clock is behind or far ahead, or board.toml was edited
                and names a missing file.
            InputError: board.toml was edited in a way that cannot hold; nothing was done.
        """
        from heldout.pipeline.founding.found import sit_down  # noqa: PLC0415 - heavy, --help is not
        from heldout.pipeline.organiser.clock import check_clock  # noqa: PLC0415 - the same
        from heldout.store.sharing import OvertakenError  # noqa: PLC0415 - the same
        from heldout.store.vault import Vault  # noqa: PLC0415 - the same

        if page:
            check_extra()
        repository = self.board()
        if self.vault is None:
            raise StoreError("which vault? name it: --vault DIR, or set HELDOUT_VAULT")
        vault = Vault.open(self.vault.absolute(), board=repository.root)
        try:
            with vault.locked() as news, repository.locked():
                print_facts(messages(), [("note", told) for told in news])
                # The clock after the fetch: what came with it happened before.
                desk = sit_down(repository, vault, now=self.clock())
                if vault.is_shared():
                    _check_pulled(repository)
                    _check_let_in(desk)
                if restore:
                    _restore_rules(desk)
                _take_over_rules(repository, vault)
                check_clock(desk, sure=late)
                yield _settle_rules(desk, accepted=self.accept_rules)
        except OvertakenError as error:
            raise _BegunAgain(str(error)) from None


def _check_pulled(repository: "Repository") -> None:
    """Refuse a board that lacks what another organiser made public: both would make it anew.

    Raises:
        StoreError: its remote has commits that the folder lacks.
    """
    git = repository.git
    ref = git.tracked() if git.is_repository() else None
    if ref is None:
        return
    _, _, remote, branch = ref.split("/", 3)
    with suppress(StoreError):  # offline: the vault's remote has answered, that is what counts
        git.fetch(remote, f"+refs/heads/{branch}:{ref}")
    if count := git.unpulled():
        raise StoreError(
            f"the board here lacks {plural(count, 'commit')} of {remote}: git pull --ff-only, then "
            "call again; where that fails, docs/organisers.md says how to go on"
        )


def _take_over_rules(repository: "Repository", vault: "Vault") -> None:
    """Write the rules that the vault has and the board's folder lacks; an edit is left alone.

    Another organiser put them in force, or a change of keys was stopped on its way.
    """
    from heldout.store.repository import SPEC  # noqa: PLC0415 - heavy, --help is not
    from heldout.store.shared_rules import newer_agreement, newer_rules  # noqa: PLC0415 - the same

    try:
        public = repository.log()
    except StoreError:
        public = ()  # damaged; rebuild writes it anew
    rules = newer_rules(repository.tree_rules(), public=public, entries=vault.entries())
    if rules is not None:
        repository.write_file(SPEC, rules.encode())
        print_facts(messages(), [("note", f"{SPEC} taken over: the vault has newer rules")])
    agreement = newer_agreement(repository.files, public=public, entries=vault.entries())
    if agreement is not None:
        path, text = agreement
        repository.write_file(path, text.encode())
        print_facts(messages(), [("note", f"{path} taken over: the vault has a newer text")])


def _restore_rules(desk: "Desk") -> None:
    """Write the log's rules and agreement over what lies in the board's folder."""
    from heldout.store.repository import SPEC  # noqa: PLC0415 - heavy, --help is not

    history, registration = desk.history(), desk.spec().registration
    files = {SPEC: desk.rules()}
    if registration is not None and registration.agreement is not None and history.agreements:
        files[registration.agreement] = history.agreements[-1].text
    for path, text in files.items():
        if desk.repository.write_file(path, text.encode()):
            print_facts(messages(), [("note", f"{path} is again as the log has it")])


def _settle_rules(desk: "Desk", *, accepted: bool) -> "Desk":
    """Show rules that the log does not have, and log them where somebody says yes.

    Whoever may push to the board can edit its board.toml: an organiser who pulled has not read it.

    Raises:
        Exit: nobody said yes; nothing was logged.
        InputError: such rules cannot hold.
        StoreError: they changed while the question stood.
    """
    from heldout.pipeline.organiser.desk import accept_rules  # noqa: PLC0415 - heavy, --help is not
    from heldout.pipeline.organiser.new_rules import (  # noqa: PLC0415 - the same
        check_new_rules,
        find_rule_change,
    )

    change = find_rule_change(desk.repository, desk.vault)
    if change is None:
        return desk
    check_new_rules(desk.repository, desk.vault, now=desk.now)
    for line in change.diff():
        click.echo(printable(line), err=True)
    meanings = [(one.key, one.meaning or "a text of the page") for one in change.differences] or [
        ("board.toml", "no key changes, or the agreement alone")
    ]
    print_facts(messages(), [("", ""), *meanings])
    if not accepted and not _agrees():
        click.echo(
            "nothing was done: the log has other rules than the board's folder, and nobody "
            "accepted the new ones; --accept-rules logs them without a question, heldout rebuild "
            "--restore-rules puts the log's back",
            err=True,
        )
        raise click.exceptions.Exit(1)
    if find_rule_change(desk.repository, desk.vault) != change:
        raise StoreError("board.toml changed while you read it; nothing was done, call again")
    return replace(desk, accepted=accept_rules(desk))


def _agrees() -> bool:
    try:
        return click.confirm("Log these rules, so that they hold from now on?", err=True)
    except click.Abort:  # no terminal, or the input ended
        click.echo(err=True)
        return False


def _check_let_in(desk: "Desk") -> None:
    """Refuse who cannot open submissions: what they review would be logged as broken, for all.

    Raises:
        StoreError: no key in this vault is one of the board's recipients.
    """
    from heldout.board.log.events import signers_of  # noqa: PLC0415 - heavy, --help is not
    from heldout.pipeline.founding.key_plan import among  # noqa: PLC0415 - the same
    from heldout.pipeline.organiser.recipients import own_recipients  # noqa: PLC0415 - the same

    spec = desk.spec()
    ours = list(own_recipients(spec.envelope, desk.vault))
    if not any(among(recipient, ours) for recipient in spec.recipients):
        raise StoreError(
            f"your key {desk.by} is none of the board's recipients, so nothing opens for you; "
            "another organiser lets you in (docs/organisers.md, Joining)"
        )
    signers = signers_of(desk.vault.entries())
    if signers and desk.vault.own_signer(signers) is None:
        raise StoreError(
            "no key in this vault is that of a signer of the board, so it can sign no event; "
            "heldout board signer prints yours, and another organiser adds it "
            "(docs/organisers.md, Joining)"
        )


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


_accept_rules = click.option(
    "--accept-rules", is_flag=True, help="Log an edited board.toml without a question."
)


def in_clone(command: Callable[..., None]) -> Callable[..., None]:
    """Options of a participant's command, handed over as `place`."""
    return _board(now_option(json_option(_packs(reports_disk(command)))))


def at_board(command: Callable[..., None]) -> Callable[..., None]:
    """Options of an organiser's command that sits at the desk, handed over as `place`."""
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
