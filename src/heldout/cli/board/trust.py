"""Commands by which others can check the organisers: audit, archive, keys, stamps."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import fields
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import click
import msgspec

from heldout.cli import context
from heldout.cli.options import check_reason, command
from heldout.cli.printing import fill_facts
from heldout.errors import StoreError
from heldout.options import Opt

if TYPE_CHECKING:
    from heldout.board.log.events import Entry
    from heldout.board.participant.receipts import ReceiptCheck


_Root = Annotated[
    Path | None,
    Opt(
        "Certificates (PEM) of the authority whose time stamps are checked.",
        names=("--timestamp-root",),
        path="file",
        exists=True,
    ),
]
_Yes = Annotated[bool, Opt("Do not ask.")]


@command
def audit(
    *,
    archived: Annotated[
        Path | None, Opt(argument=True, path="file", exists=True, metavar="[ARCHIVE]")
    ] = None,
    receipt: Annotated[
        tuple[Path, ...],
        Opt(
            "Receipt of a submission, to be looked up in the log; of several also whether they "
            "agree.",
            path="file",
            exists=True,
        ),
    ] = (),
    earlier: Annotated[
        Path | None, Opt("Older copy of log.jsonl.", path="file", exists=True, metavar="LOG")
    ] = None,
    root: _Root = None,
    call: context.VaultCall,
) -> None:
    """Verify the public log, and with a vault also its own: chain, openings, scores, files.

    With --receipt: whether a submission is in the newest public log with the same files and time,
    and whether that log is the one that the receipt saw, with events added; receipts of two teams
    show whether both saw one log. With --earlier: the
    same for a copy of the log; released numbers that changed are named with their event. With
    --timestamp-root: whether the time stamps of the log hold, and which one is the latest. With
    ARCHIVE: whether everything in it follows from what is in it. Exit code 1 where something does
    not hold.

    \b
    Example:
      heldout audit --vault ../kb-vault
      heldout audit --receipt .git/heldout/receipts/20261120-lighthouse-monot5.json
      heldout audit kb-archive.zip
    """
    from heldout.board.audit import archive_audit, timestamps
    from heldout.board.audit.audit import audit_board, hold_against
    from heldout.board.log.events import format_time

    checked: tuple[ReceiptCheck, ...] = ()
    if archived is not None:
        if receipt or earlier is not None or root is not None:
            raise click.UsageError(
                "an archive is audited by itself, without --receipt, --earlier or --timestamp-root"
            )
        found = archive_audit.audit_archive(archived, public=_public_log(call))
    else:
        roots = () if root is None else timestamps.read_roots(root)
        board = call.board()
        found = audit_board(board, call.vault, roots=roots)
        if receipt or earlier is not None or board.has_seen_more(found.events):
            found, checked = hold_against(board, found, receipt, earlier)
        if call.vault is None and not found.faults:
            with suppress(OSError):  # a clone that is only read remembers nothing
                board.pin(board.log())
    document = {"ok": not found.faults, **msgspec.to_builtins(found), "receipts": checked}
    received = [one.received for one in checked if one.received is not None]
    facts = fill_facts("audit", found=found, received=received, format_time=format_time)
    call.answer(document, facts)
    if found.faults:
        raise click.exceptions.Exit(1)


@command
def archive(
    *,
    file: Annotated[Path, Opt(argument=True, path="file", metavar="FILE")],
    agreed: Annotated[
        tuple[str, ...],
        Opt("Submission whose runs are opened, since its team agreed in writing.", metavar="ID"),
    ] = (),
    why: Annotated[
        str | None,
        Opt("Evidence of the agreement, for --agreed; public.", check=check_reason, metavar="TEXT"),
    ] = None,
    yes: _Yes = False,
    call: context.OrganiserCall,
) -> None:
    """Close the board for good, and open it: one file by which anyone can score it again.

    The held-out labels are in it, so nothing can be submitted any more. Nothing is opened of what
    was not published, and no identity whose embargo still runs; call again when it has ended.
    Runs are opened as board.toml says (archive.runs): of teams whose metadata agree, unless it says
    otherwise. The closing event names them, and that stays so.

    \b
    Example:
      heldout archive kb-archive.zip --vault ../kb-vault --yes
    """
    from heldout.board.audit.archive import close_board, write_archive
    from heldout.board.organiser.rebuild import catch_up
    from heldout.cli.board.reports import rebuilt_document, rebuilt_facts

    if agreed and why is None:
        raise click.UsageError("--agreed is your word for a team's: say how you know, with --why")
    if why is not None and not agreed:
        raise click.UsageError("--why says how you know that a team agreed: name it with --agreed")
    with call.session() as session:
        catch_up(session, news=False)
        if session.history().closed is None and not yes:
            click.echo("This closes the board for good and opens its labels.", err=True)
            context.require_yes("Close it?")
        closed = close_board(session, agreed=agreed, why=why or "")
        rebuilt = catch_up(session, news=closed)
        made = write_archive(session, file)
        document = {"file": str(file), "archive": made, "closed_before": not closed}
        name = session.spec().name
        facts = fill_facts("archive", name=name, file=file, made=made, closed=closed)
        call.answer(
            {**document, **rebuilt_document(rebuilt)},
            [
                *facts,
                *rebuilt_facts(rebuilt),
                *context.next_facts(session.repository, [f"heldout audit {file}"]),
            ],
        )


@command
def rekey(
    *,
    why: context.Why,
    add: Annotated[
        tuple[str, ...], Opt("Public key of an organiser who joins.", metavar="KEY")
    ] = (),
    drop: Annotated[
        tuple[str, ...],
        Opt("Key of an organiser who leaves, or whose key was lost.", metavar="KEY"),
    ] = (),
    own_key_stays: Annotated[
        bool, Opt("Leave the vault's own key as it is.", names=("--keep-key",))
    ] = False,
    add_signer: Annotated[
        tuple[str, ...],
        Opt(
            "Organiser who signs events from now on, as heldout board signer prints it.",
            metavar="NAME=KEY",
        ),
    ] = (),
    drop_signer: Annotated[
        tuple[str, ...],
        Opt(
            "Signer who leaves, or whose key was lost: the name, or the beginning of the key.",
            metavar="NAME",
        ),
    ] = (),
    destroy_old: Annotated[bool, Opt("Remove old private keys from the vault.")] = False,
    grace: Annotated[
        int,
        Opt(
            "Number of days in which submissions sealed for the old key are accepted.",
            least=0,
            most=366,
            metavar="DAYS",
        ),
    ] = 14,
    yes: _Yes = False,
    call: context.OrganiserCall,
) -> None:
    """Change the organisers' keys: a new one for this vault, others that join or leave.

    What was submitted is sealed again for today's organisers. The old private key is stored, for
    submissions that are on their way, until it is destroyed: heldout board rekey --keep-key
    --destroy-old. A lost key is named with --drop where the board has several. The same reason
    given twice is one change.

    A new key for this vault comes with a new key for signatures of events. --add-signer and
    --drop-signer let other organisers sign, or end that.

    \b
    Example:
      heldout board rekey --why "a laptop was stolen" --vault ../kb-vault --yes
    """
    from heldout.board.organiser.rekey import KeyChange, ensure_key, is_begun
    from heldout.board.organiser.rekey import rekey as change_keys
    from heldout.cli.board.reports import rebuilt_document, rebuilt_facts
    from heldout.envelope.bundle import short_recipient

    joining = _read_signers(add_signer)
    if call.vault is not None and not own_key_stays:
        # A vault that has lost its key gets one first: without any, no session can be opened.
        ensure_key(call.board(), call.vault.absolute(), now=call.now)
    with call.session() as session:
        if not yes and not is_begun(session.vault):
            lost = (
                " The old private keys are removed from the vault: what was sealed for them and "
                "has not arrived yet can never be opened, and backups still hold them."
            )
            text = "Submissions are sealed for the new keys from now on."
            click.echo(text + lost * destroy_old, err=True)
            context.require_yes("Change the keys?")
        done = change_keys(
            session,
            KeyChange(
                new_key=not own_key_stays,
                add=add,
                drop=drop,
                add_signers=joining,
                drop_signers=drop_signer,
                why=why,
                destroy_old=destroy_old,
                grace_until=session.now.date() + timedelta(grace),
            ),
        )
        document = {one.name: getattr(done, one.name) for one in fields(done)}
        following = [f'heldout reject {name} --why "…"' for name in done.waiting]
        following += ["back up the vault: it has a new key"] * bool(
            done.added and not own_key_stays
        )
        short = partial(short_recipient, session.spec().envelope)
        facts = [*fill_facts("rekey", done=done, short=short), *rebuilt_facts(done.rebuilt)]
        facts += context.next_facts(session.repository, following)
        call.answer({**document, "rebuilt": rebuilt_document(done.rebuilt)}, facts)


@command
def signer(
    *,
    name: Annotated[
        str | None, Opt("Name to print the key under [that of your public key].", metavar="NAME")
    ] = None,
    call: context.VaultCall,
) -> None:
    """Print the public key with which this vault signs events; it is made where there is none.

    Another organiser adds it: heldout board rekey --keep-key --add-signer NAME=KEY.

    \b
    Example:
      heldout board signer --name Ada --vault ../kb-vault
    """
    from heldout.board.organiser.rekey import own_signer_key

    repository = call.board()
    own = own_signer_key(repository, call.need_vault(), name=name)
    text = f"{own.name}={own.key}"
    signs = "signs events of this board" if own.signs else "signs nothing yet"
    facts = [("signer", text), ("state", signs)]
    if not own.signs:
        command = f"heldout board rekey --keep-key --add-signer '{text}' --why \"…\""
        facts += context.next_facts(repository, [f"another organiser: {command}"])
    call.answer(own, facts)


@command
def timestamp(
    *,
    authority: Annotated[
        str | None, Opt("Address of a time stamp authority (RFC 3161).", metavar="URL")
    ] = None,
    request: Annotated[
        Path | None,
        Opt("Only write the request, to be sent by other means.", path="file"),
    ] = None,
    response: Annotated[
        Path | None,
        Opt("Response to a request, to be stored.", path="file", exists=True),
    ] = None,
    root: _Root = None,
    call: context.VaultCall,
) -> None:
    """Have an authority sign what the public log is now, and when: timestamps/SEQ.tsr.

    A log that is rewritten as a whole has no earlier time stamp: heldout audit
    --timestamp-root FILE checks them. Give one of --authority, --request and --response.

    \b
    Example:
      heldout board timestamp --authority https://tsa.example.org/tsr
      heldout board timestamp --request log.tsq
      heldout board timestamp --response log.tsr --timestamp-root tsa.pem
    """
    from heldout.board.audit import timestamps
    from heldout.board.log.events import format_time
    from heldout.board.store.repository import TIMESTAMPS
    from heldout.files.durable import write_whole

    if sum(given is not None for given in (authority, request, response)) != 1:
        raise click.UsageError("give one of --authority, --request and --response")
    repository = call.board()
    with repository.locked():
        log = repository.log()
        if not log:
            raise StoreError("log.jsonl is missing or empty: there is nothing to stamp")
        if request is not None:
            write_whole(request, timestamps.make_request(log[-1]))
            document = {"event": log[-1].event.seq, "request": str(request)}
            facts = [("wrote", f"{request}: a request for event {log[-1].event.seq}")]
        else:
            roots = () if root is None else timestamps.read_roots(root)
            if response is not None:
                data, where = response.read_bytes(), response.name
            else:
                where = str(authority)
                data = timestamps.ask_authority(where, timestamps.make_request(log[-1]))
            stamp = timestamps.store_response(repository, data, log, roots, path=where)
            document = msgspec.to_builtins(stamp)
            commands = f"git add {TIMESTAMPS} && git commit -m 'Time stamp' && git push"
            facts = [("stamped", f"event {stamp.event}, {format_time(stamp.at)}")]
            facts += [("wrote", stamp.file), ("next", commands)]
    call.answer(document, facts)


def _read_signers(given: tuple[str, ...]) -> dict[str, str]:
    """Name -> public key, of what `heldout board signer` prints."""
    from heldout.board.log.events import SIGNER_KINDS, signers_after

    found: dict[str, str] = {}
    for text in given:
        name, _, key = text.rpartition("=")
        try:
            found |= signers_after({}, SIGNER_KINDS[0], {"signers": {name.strip(): key.strip()}})
        except ValueError:
            raise click.BadParameter(
                f"{text!r} is no NAME=KEY, as heldout board signer prints it"
            ) from None
    return found


def _public_log(call: context.VaultCall) -> tuple[Entry, ...]:
    """The public log of the board that one stands in; empty where one stands in none.

    Raises:
        StoreError: that log is damaged.
    """
    try:
        board = call.board()
    except StoreError:
        return ()
    return board.newest_log()
