"""A participant's commands that seal and send, inside a clone of a board."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Annotated, Any

import click
import msgspec

from heldout.cli.board.drafting import print_check, seen_facts
from heldout.cli.context import (
    BoardPlace,
    Identifier,
    SendTo,
    find_server,
    find_target,
    show_path,
)
from heldout.cli.options import with_options
from heldout.cli.printing import answers, fail, messages, print_facts, print_json
from heldout.errors import InputError, StoreError, plural
from heldout.ids import SubmissionId, parse_submission_id
from heldout.options import Opt

if TYPE_CHECKING:
    from heldout.board.participant.checks import Check
    from heldout.board.participant.send import Packed, Sent
    from heldout.board.participant.status import SubmissionStatus
    from heldout.board.store.repository import Repository

_DONE = "   (done before)"


@click.command()
@with_options
def pack(*, submission: Identifier, place: BoardPlace) -> None:
    """Check and seal a draft, and send nothing: for those who look first.

    \b
    Example:
      heldout pack 20261120-lighthouse-monot5
    """
    repository = place.board()
    with repository.locked():
        found, packed = _check_and_pack(repository, submission, place)
    facts = [*_packed_facts(repository, found.id, packed), ("", "")]
    place.answer(_document(found.id, packed), [*facts, ("next", f"heldout submit {found.id}")])


@click.command()
@with_options
def submit(*, submission: Identifier, to: SendTo = None, place: BoardPlace) -> None:
    """Check, seal and send a draft: a branch of its own, or with --to a folder or a server.

    The branch is pushed to the remote `origin` where there is one. A server asks for your team's
    token once and stores it for this clone; in scripts set HELDOUT_TEAM_TOKEN. An upload that was
    cut goes on where it stopped when you call this again.

    \b
    Example:
      heldout submit 20261120-lighthouse-monot5
      heldout submit 20261120-lighthouse-monot5 --to https://board.example
    """
    from heldout.board.participant.send import send

    repository = place.board()
    target = find_target(repository, to)
    with repository.locked():
        found, packed = _check_and_pack(repository, submission, place)
        sent = send(repository, found.id, packed, target, now=place.now)
    facts = [
        *_packed_facts(repository, found.id, packed),
        *seen_facts(found),
        ("sent", sent.sent + _DONE * sent.sent_before),
        ("store", f"{_own(repository, 'receipts', found.id)}.json: heldout audit --receipt FILE"),
        ("", ""),
        ("next", f"heldout status {found.id}"),
    ]
    place.answer(_document(found.id, packed, sent), facts)


@click.command()
@with_options
def amend(*, submission: Identifier, to: SendTo = None, place: BoardPlace) -> None:
    """Seal the draft's metadata again under the same key, one revision up, and send it.

    \b
    Example:
      heldout amend 20261120-lighthouse-monot5
    """
    _update(submission, to, place, withdrawn=False)


@click.command()
@with_options
def withdraw(*, submission: Identifier, to: SendTo = None, place: BoardPlace) -> None:
    """Take a submission back before it is published; the quota is given back.

    \b
    Example:
      heldout withdraw 20261120-lighthouse-monot5
    """
    _update(submission, to, place, withdrawn=True)


def _update(submission: str, to: SendTo, place: BoardPlace, *, withdrawn: bool) -> None:
    from heldout.board.participant.draft import read_metadata, require_draft
    from heldout.board.participant.send import send, update
    from heldout.board.policy.amending import check_update

    repository = place.board()
    name = parse_submission_id(submission)
    require_draft(repository, name)
    manifest = read_metadata(repository, name)
    try:
        check_update(repository.newest_log(), name, manifest, withdrawn=withdrawn)
    except InputError as error:
        fail(error, status=1)
    sent, target = None, find_target(repository, to)
    with repository.locked():
        packed = update(repository, name, manifest, withdrawn=withdrawn)
        # With --to it goes all the same: what was sent may have gone elsewhere.
        if to is not None or withdrawn or not packed.sent_before:
            sent = send(repository, name, packed, target, now=place.now)
    document = {"sent": "", **_document(name, packed, sent), "withdrawn": withdrawn}
    what = "a withdrawal" if withdrawn else "new metadata"
    text = f"{what} under the key of {name}, revision {packed.revision}{_DONE * packed.done_before}"
    facts = [("sealed", text)]
    if sent is None:
        text = f"since revision {packed.revision} was sent; nothing was sent now"
        facts = [("unchanged", text)]
    else:
        facts.append(("sent", sent.sent + _DONE * sent.sent_before))
    place.answer(document, [*facts, ("", ""), ("next", f"heldout status {name}")])


def _check_and_pack(
    repository: Repository, submission: str, place: BoardPlace
) -> tuple[Check, Packed]:
    from heldout.board.participant.checks import check
    from heldout.board.participant.send import pack as pack_draft

    found = check(repository, parse_submission_id(submission), now=place.now)
    if not found.ok or found.manifest is None:
        print_check(found, repository, place)
        raise click.exceptions.Exit(1)
    return found, pack_draft(repository, found.id, found.manifest)


def _packed_facts(
    repository: Repository, submission: SubmissionId, packed: Packed
) -> list[tuple[str, str]]:
    from heldout.board.participant.checks import rules_to_seal_by
    from heldout.envelope.bundle import short_recipient

    spec = rules_to_seal_by(repository)
    keys = ", ".join(short_recipient(spec.envelope, key) for key in spec.recipients)
    who = f"for {plural(len(spec.recipients), 'organiser')} ({keys}); nobody else can open it"
    sizes = {_own(repository, "sealed", name): size for name, size in packed.files.items()}
    width = max(map(len, sizes))
    wrote = [("", f"{path:<{width}}  {_bytes(size):>8}") for path, size in sizes.items()]
    return [
        ("sealed", who + _DONE * packed.done_before),
        ("wrote", wrote[0][1]),
        *wrote[1:],
        ("receipt", packed.receipt),
        ("your key", _own(repository, "keys", submission)),
        ("", "store a copy: only this key can change the metadata later"),
    ]


def _own(repository: Repository, folder: str, name: str) -> str:
    """Where a file of this clone's own lies."""
    return show_path(repository.state.path(f"{folder}/{name}"))


def _document(name: SubmissionId, packed: Packed, sent: Sent | None = None) -> dict[str, Any]:
    return {"id": name, **msgspec.to_builtins(packed), **msgspec.to_builtins(sent or {})}


def _bytes(size: int) -> str:
    kilo, mega = 1_000, 1_000_000
    return f"{size / mega:.1f} MB" if size >= mega else f"{size / kilo:.1f} kB"


@click.command()
@with_options
def status(
    *,
    submission: Annotated[str | None, Opt(argument=True, metavar="[ID]")] = None,
    place: BoardPlace,
) -> None:
    """Say how far a submission has come, by the board's public log.

    Asks the remotes `origin` and, in a clone of a fork, `upstream` for the newest log, and the
    server that a submission was sent to. Where the organisers have a question, or what was sent
    last is not in force, it says so and what to do.

    \b
    Example:
      heldout status 20261120-lighthouse-monot5
    """
    from heldout.board.log.history import read_history
    from heldout.board.organiser.words import overdue_document, overdue_facts
    from heldout.board.participant.checks import check_tree_rules
    from heldout.board.participant.status import describe_submission, status_facts
    from heldout.board.rules.changes import difference_facts
    from heldout.board.standings.overdue import list_overdue_at

    repository, now = place.board(), place.now
    log = repository.newest_log()
    with suppress(OSError):  # a clone that is only read remembers nothing
        repository.pin(log)
    names = map(parse_submission_id, [submission] if submission else repository.own_ids())
    try:
        rows = [describe_submission(repository, log, name, now=now) for name in names]
    except InputError as error:
        fail(error, status=1)
    rows = [_with_server(repository, row) for row in rows]
    closed = read_history(log).closed
    overdue = list_overdue_at(log, now=now) if log and submission is None else ()
    if place.as_json:
        print_json({"submissions": rows, "closed": closed, "due": overdue_document(overdue)})
        return
    if log:
        print_facts(messages(), difference_facts(check_tree_rules(repository, log)))
    if closed is not None:
        text = f"closed for good on {closed:%d %b %Y}: it takes nothing any more"
        print_facts(answers(), [("board", text)])
    if not rows:
        print_facts(answers(), [("status", "this clone has sent nothing yet")])
    for row in rows:
        print_facts(answers(), status_facts(row, now=now))
    print_facts(answers(), overdue_facts(overdue))


def _with_server(repository: Repository, row: SubmissionStatus) -> SubmissionStatus:
    """With what the server says; where it says nothing, the log alone says how far it has come."""
    from heldout.board.participant.status import ask_server

    try:
        return ask_server(repository, row, lambda address: find_server(repository, address))
    except (InputError, StoreError) as error:
        print_facts(messages(), [("note", str(error))])
        return row
