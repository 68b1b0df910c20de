"""Commands by which others can check the organisers: audit, archive, keys, stamps."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from heldout.cli.context import Place, at_board, confirm, print_next, with_vault
from heldout.cli.options import REASON, why_option
from heldout.cli.printing import answers, print_facts, print_json
from heldout.errors import StoreError, plural, quote

if TYPE_CHECKING:
    from heldout.board.audit.archive import Archived
    from heldout.board.audit.audit import Audit
    from heldout.board.audit.timestamps import Stamp
    from heldout.board.log.events import Entry
    from heldout.board.organiser.rekey import Rekeyed
    from heldout.board.participant.receipts import ReceiptCheck
    from heldout.board.scores.session import Session


_file = click.Path(path_type=Path, exists=True, dir_okay=False)
_root = click.option(
    "--timestamp-root",
    "root",
    type=_file,
    metavar="FILE",
    help="Certificates (PEM) of the authority whose time stamps are checked.",
)
Facts = list[tuple[str, str]]


@click.command()
@click.argument("archived", metavar="[ARCHIVE]", required=False, type=_file)
@click.option("--receipt", type=_file, metavar="FILE", help="Is what I submitted in the log?")
@click.option("--earlier", type=_file, metavar="LOG", help="An older copy of log.jsonl.")
@_root
@with_vault
def audit(
    *,
    archived: Path | None,
    receipt: Path | None,
    earlier: Path | None,
    root: Path | None,
    place: Place,
) -> None:
    """Verify the public log, and with a vault also its own: chain, openings, scores, files.

    With --receipt: whether a submission is in the newest public log with the same files and time,
    and whether that log is the one that the receipt saw, with events added. With --earlier: the
    same for a copy of the log; released numbers that changed are named with their event. With
    --timestamp-root: whether the time stamps of the log hold, and which one is the latest. With
    ARCHIVE: whether everything in it follows from what is in it. Exit code 1 where something does
    not hold.

    \b
    Example:
      heldout audit --vault ../kb-vault
      heldout audit --receipt .heldout/receipts/20261120-lighthouse-monot5.json
      heldout audit kb-archive.zip
    """
    from heldout.board.audit.archive_audit import audit_archive
    from heldout.board.audit.audit import audit_board, hold_against
    from heldout.board.audit.timestamps import read_roots

    checked: ReceiptCheck | None = None
    if archived is not None:
        if receipt is not None or earlier is not None or root is not None:
            raise click.UsageError(
                "an archive is audited by itself, without --receipt, --earlier or --timestamp-root"
            )
        found = audit_archive(archived, public=_public_log(place))
    else:
        roots = () if root is None else read_roots(root)
        found = audit_board(place.board(), place.vault, roots=roots)
        if receipt is not None or earlier is not None:
            found, checked = hold_against(place.board(), found, receipt, earlier)
    if place.as_json:
        print_json(_audit_json(found, checked))
    else:
        print_facts(answers(), _audit_facts(found, checked))
    if found.faults:
        raise click.exceptions.Exit(1)


@click.command()
@click.argument("file", metavar="FILE", type=click.Path(path_type=Path, dir_okay=False))
@click.option(
    "--agreed",
    multiple=True,
    metavar="ID",
    help="Open the runs of this submission: its team agreed by letter.",
)
@click.option("--why", type=REASON, metavar="TEXT", help="How you know, with --agreed; public.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@at_board
def archive(
    *, file: Path, agreed: tuple[str, ...], why: str | None, yes: bool, place: Place
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
    from heldout.board.audit.archive import write_archive
    from heldout.board.audit.closing import close_board
    from heldout.board.organiser.rebuild import catch_up
    from heldout.board.organiser.words import rebuilt_document, rebuilt_facts

    if agreed and why is None:
        raise click.UsageError("--agreed is your word for a team's: say how you know, with --why")
    if why is not None and not agreed:
        raise click.UsageError("--why says how you know that a team agreed: name it with --agreed")
    with place.session() as session:
        catch_up(session, news=False)
        if session.history().closed is None and not yes:
            confirm("This closes the board for good and opens its labels.", "Close it?")
        closed = close_board(session, agreed=agreed, why=why or "")
        rebuilt = catch_up(session, news=closed)
        made = write_archive(session, file)
        if place.as_json:
            print_json({**_archive_json(file, made, closed=closed), **rebuilt_document(rebuilt)})
            return
        print_facts(answers(), [*_archive_facts(session, file, made, closed=closed)])
        print_facts(answers(), rebuilt_facts(rebuilt))
        print_next(session.repository, [f"heldout audit {file}"])


@click.command()
@why_option("The reason; it is public.")
@click.option("--add", multiple=True, metavar="KEY", help="Public key of an organiser who joins.")
@click.option(
    "--drop",
    multiple=True,
    metavar="KEY",
    help="Key of an organiser who leaves, or whose key was lost.",
)
@click.option("--keep-key", is_flag=True, help="This vault's own key stays.")
@click.option(
    "--add-signer",
    "add_signers",
    multiple=True,
    metavar="NAME=KEY",
    help="Organiser who signs events from now on, as heldout board signer prints it.",
)
@click.option(
    "--drop-signer",
    "drop_signers",
    multiple=True,
    metavar="NAME",
    help="Signer who leaves, or whose key was lost: the name, or the beginning of the key.",
)
@click.option("--sign", is_flag=True, help="Begin to sign events, on a board that did not.")
@click.option("--destroy-old", is_flag=True, help="Remove old private keys from the vault.")
@click.option(
    "--grace",
    type=click.IntRange(0, 366),
    default=14,
    show_default=True,
    metavar="DAYS",
    help="How long what is sealed for the old key is taken.",
)
@click.option("--yes", is_flag=True, help="Do not ask.")
@at_board
def rekey(
    *,
    why: str,
    add: tuple[str, ...],
    drop: tuple[str, ...],
    keep_key: bool,
    add_signers: tuple[str, ...],
    drop_signers: tuple[str, ...],
    sign: bool,
    destroy_old: bool,
    grace: int,
    yes: bool,
    place: Place,
) -> None:
    """Change the organisers' keys: a new one for this vault, others that join or leave.

    What was submitted is sealed again for the organisers of now. The old private key is kept, for
    submissions that are on their way, until it is destroyed: heldout board rekey --keep-key
    --destroy-old. A lost key is named with --drop where the board has several. The same reason
    given twice is one change.

    A new key for this vault comes with a new key for signatures of events. --add-signer and
    --drop-signer let other organisers sign, or end that.

    \b
    Example:
      heldout board rekey --why "a laptop was stolen" --vault ../kb-vault --yes
      heldout board rekey --keep-key --sign --why "events are signed" --vault ../kb-vault --yes
    """
    from heldout.board.organiser.rekey import KeyChange, is_begun
    from heldout.board.organiser.rekey import rekey as change_keys
    from heldout.board.organiser.words import rebuilt_facts

    joining = _read_signers(add_signers)
    _give_key(place, keep_key=keep_key)
    with place.session() as session:
        if not yes and not is_begun(session.vault):
            confirm(_consequences(destroy_old=destroy_old), "Change the keys?")
        done = change_keys(
            session,
            KeyChange(
                new_key=not keep_key,
                add=add,
                drop=drop,
                sign=sign,
                add_signers=joining,
                drop_signers=drop_signers,
                why=why,
                destroy_old=destroy_old,
                grace_until=session.now.date() + timedelta(grace),
            ),
        )
        if place.as_json:
            print_json(_rekey_json(done))
            return
        print_facts(answers(), [*_rekey_facts(session, done), *rebuilt_facts(done.rebuilt)])
        following = [f'heldout reject {name} --why "…"' for name in done.waiting]
        following += ["back up the vault: it has a new key"] * bool(done.added and not keep_key)
        print_next(session.repository, following)


@click.command()
@click.option(
    "--name", metavar="NAME", help="Name to print the key under [that of your public key]."
)
@with_vault
def signer(*, name: str | None, place: Place) -> None:
    """Print the public key with which this vault signs events; it is made where there is none.

    Another organiser adds it: heldout board rekey --keep-key --add-signer NAME=KEY.

    \b
    Example:
      heldout board signer --name Ada --vault ../kb-vault
    """
    from heldout.board.organiser.rekey import own_signer_key

    repository = place.board()
    if place.vault is None:
        raise StoreError("which vault? name it: --vault DIR, or set HELDOUT_VAULT")
    own = own_signer_key(repository, place.vault.absolute(), name=name)
    if place.as_json:
        print_json({"name": own.name, "key": own.key, "signs": own.signs})
        return
    text = f"{own.name}={own.key}"
    signs = "signs events of this board" if own.signs else "signs nothing yet"
    print_facts(answers(), [("signer", text), ("state", signs)])
    if not own.signs:
        command = f"heldout board rekey --keep-key --add-signer '{text}' --why \"…\""
        print_next(repository, [f"another organiser: {command}"])


@click.command()
@click.option("--authority", metavar="URL", help="Address of a time stamp authority (RFC 3161).")
@click.option(
    "--request",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Only write the request, to be sent by other means.",
)
@click.option("--response", type=_file, metavar="FILE", help="Store the response to a request.")
@_root
@with_vault
def timestamp(
    *,
    authority: str | None,
    request: Path | None,
    response: Path | None,
    root: Path | None,
    place: Place,
) -> None:
    """Have an authority sign what the public log is now, and when: timestamps/SEQ.tsr.

    A log that is made again as a whole has no time stamp of before: heldout audit
    --timestamp-root FILE checks them. Give one of --authority, --request and --response.

    \b
    Example:
      heldout board timestamp --authority https://tsa.example.org/tsr
      heldout board timestamp --request log.tsq
      heldout board timestamp --response log.tsr --timestamp-root tsa.pem
    """
    from heldout.board.audit.timestamps import keep_response, make_request, read_roots
    from heldout.board.log.events import format_time
    from heldout.board.store.repository import TIMESTAMPS
    from heldout.files.durable import write_whole

    if sum(given is not None for given in (authority, request, response)) != 1:
        raise click.UsageError("give one of --authority, --request and --response")
    repository = place.board()
    with repository.locked():
        log = repository.log()
        if not log:
            raise StoreError("log.jsonl is missing or empty: there is nothing to stamp")
        stamp = None
        if request is not None:
            write_whole(request, make_request(log[-1]))
        else:
            roots = () if root is None else read_roots(root)
            data = _read_response(authority, response, log[-1])
            where = str(authority) if response is None else response.name
            stamp = keep_response(repository, data, log, roots, path=where)
    if place.as_json:
        print_json(_stamp_json(stamp, log[-1], request))
    elif stamp is None:
        print_facts(answers(), [("wrote", f"{request}: a request for event {log[-1].event.seq}")])
    else:
        print_facts(answers(), [("stamped", f"event {stamp.event}, {format_time(stamp.at)}")])
        commands = f"git add {TIMESTAMPS} && git commit -m 'Time stamp' && git push"
        print_facts(answers(), [("wrote", stamp.file), ("next", commands)])


def _read_response(authority: str | None, response: Path | None, last: Entry) -> bytes:
    from heldout.board.audit.timestamps import ask_authority, make_request

    if response is not None:
        return response.read_bytes()
    return ask_authority(str(authority), make_request(last))


def _stamp_json(stamp: Stamp | None, last: Entry, request: Path | None) -> dict[str, Any]:
    from heldout.board.log.events import format_time

    if stamp is None:
        return {"event": last.event.seq, "request": str(request)}
    return {"event": stamp.event, "at": format_time(stamp.at), "file": stamp.file}


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


def _public_log(place: Place) -> tuple[Entry, ...]:
    """The public log of the board that one stands in; empty where one stands in none.

    Raises:
        StoreError: that log is damaged.
    """
    try:
        board = place.board()
    except StoreError:
        return ()
    return board.newest_log()


def _audit_facts(found: Audit, receipt: ReceiptCheck | None) -> Facts:
    from heldout.board.log.events import format_time

    facts = [("fault", fault) for fault in found.faults]
    if not found.faults:
        told = f"{plural(found.events, 'event')}: {', '.join(found.checked)}"
        facts.append(("sound", told))
    if receipt is not None and receipt.received is not None:
        mark = receipt.received
        facts.append(("received", f"{mark.at}, event {mark.seq}, hash {mark.hash}"))
    facts += [("signer", f"{quote(name)}: {key}") for name, key in found.signers.items()]
    for last in found.stamps[-1:]:
        count = plural(len(found.stamps), "time stamp")
        told = f"{count}; event {last.event} and all before it existed on {format_time(last.at)}"
        facts.append(("stamped", told))
    facts += [("note", note) for note in found.notes]
    return [*facts, *(("note", f"unchecked: {what}") for what in found.unchecked)]


def _audit_json(found: Audit, receipt: ReceiptCheck | None) -> dict[str, Any]:
    from heldout.board.log.events import format_time

    told: dict[str, Any] = {
        "ok": not found.faults,
        "events": found.events,
        "faults": list(found.faults),
        "notes": list(found.notes),
        "unchecked": list(found.unchecked),
        "signers": dict(found.signers),
        "timestamps": [{"event": one.event, "at": format_time(one.at)} for one in found.stamps],
    }
    if receipt is not None:
        mark = receipt.received
        event = None if mark is None else {"event": mark.seq, "at": mark.at, "hash": mark.hash}
        told["receipt"] = {"ok": not receipt.faults, "received": event}
    return told


def _archive_facts(session: Session, file: Path, made: Archived, *, closed: bool) -> Facts:
    before = "" if closed else "   (done before)"
    name = session.spec().name
    told = f"{plural(made.entries, 'entry', 'entries')}, runs of {len(made.runs)}"
    hidden = [
        ("hidden", f"{name} is under an embargo; call again when it has ended")
        for name in made.embargoed
    ]
    return [
        ("closed", f"{name}{before}"),
        ("wrote", f"{file}: {made.bytes:,} bytes; {told}"),
        ("sha256", made.digest),
        *hidden,
    ]


def _archive_json(file: Path, made: Archived, *, closed: bool) -> dict[str, Any]:
    return {
        "file": str(file),
        "bytes": made.bytes,
        "sha256": made.digest,
        "closed_before": not closed,
        "archived": made.entries,
        "runs": list(made.runs),
        "embargoed": list(made.embargoed),
    }


def _give_key(place: Place, *, keep_key: bool) -> None:
    """A vault that has lost its key gets one first: without any, no session can be opened."""
    from heldout.board.organiser.rekey import ensure_key

    if place.vault is None or keep_key:
        return
    ensure_key(place.board(), place.vault.absolute(), now=place.clock())


def _consequences(*, destroy_old: bool) -> str:
    text = "Submissions are sealed for the new keys from now on."
    if destroy_old:
        text += (
            " The old private keys are removed from the vault: what was sealed for them and has "
            "not arrived yet can never be opened, and backups still hold them."
        )
    return text


def _rekey_facts(session: Session, done: Rekeyed) -> Facts:
    from heldout.envelope.bundle import short_recipient

    form = session.spec().envelope
    facts = [("went on", "with the change of keys that an earlier call began")] * done.went_on
    again = "this change was made before; another reason (--why) makes another one"
    facts += [("note", again)] * done.done_before
    facts += [("joins", short_recipient(form, key)) for key in done.added]
    facts += [("goes", short_recipient(form, key)) for key in done.removed]
    facts += [("signs", f"{name} ({key[:16]}…)") for name, key in done.signers.items()]
    facts.append(("sealed", f"again: the keys of {plural(len(done.sealed_again), 'submission')}"))
    if done.grace_until is not None:
        text = (
            f"the old private key is kept; what is sealed for it is taken until {done.grace_until}"
        )
        facts.append(("grace", text))
    elif done.old_keys == "destroyed":
        facts.append(("destroyed", "the old private keys here; destroy them in the backups too"))
    for name in done.not_opened:
        asks = ": it has to be refused" if name in done.waiting else ""
        facts.append(("shut", f"{name} opens for nobody here{asks}"))
    return [*facts, ("logged", f"event {done.event}")]


def _rekey_json(done: Rekeyed) -> dict[str, Any]:
    from heldout.board.organiser.words import rebuilt_document

    return {
        "event": done.event,
        "went_on": done.went_on,
        "done_before": done.done_before,
        "added": list(done.added),
        "removed": list(done.removed),
        "signers": dict(done.signers),
        "old_keys": done.old_keys,
        "grace_until": None if done.grace_until is None else done.grace_until.isoformat(),
        "sealed_again": list(done.sealed_again),
        "not_opened": list(done.not_opened),
        "waiting": list(done.waiting),
        **rebuilt_document(done.rebuilt),
    }
