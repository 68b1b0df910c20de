"""Receipts: what a participant stores, so that the organisers cannot forget or rewrite anything.

`receipts/ID.json` in the clone's state holds the digests of the sealed files that were sent, and
the head of the public log: the number and hash of its last event when they were sent, and when it
was last seen. It is written when something is sent, and again when the organisers have taken it in.
Held against the log of a later day it answers: is my submission in it, with the same bytes and the
same time, and is that log the old one with events added? Every released number is in an event, so a
number that changed without one would need another history, and this is reported. Two receipts that
name different events of one number, of two teams perhaps, show that two logs were shown.

A receipt proves to its owner. To a third person it says no more than the public log does, for
nobody but its owner has written it.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec

from heldout.board.log.events import Entry
from heldout.board.log.history import read_history
from heldout.board.participant.draft import read_sealed, receipt_of
from heldout.board.store.repository import Repository
from heldout.errors import InputError, StoreError, quote
from heldout.files.durable import File
from heldout.ids import parse_submission_id

_MOST_BYTES = 1 << 20


class Mark(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An event that was seen: its number, hash and time."""

    seq: int
    hash: str
    at: str


class Receipt(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a participant stores of a submission.

    Attributes:
        board: hash of the board's first event: which board it is.
        id: the submission.
        files: name of each sealed file that was sent -> SHA-256.
        sent_at: when something was first sent, UTC, by the participant's clock.
        head: the last event of the public log when these files were sent.
        seen: the last event of the public log that was seen.
        received: the event that took it in, `None` while it was not in the log.
        schema: version of this format.
    """

    board: str
    id: str
    files: dict[str, str]
    sent_at: datetime
    head: Mark
    seen: Mark
    received: Mark | None = None
    schema: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ReceiptCheck:
    """What the log says to a receipt.

    Attributes:
        received: the event that took the submission in, `None` where there is none.
        faults: what does not hold.
    """

    received: Mark | None
    faults: tuple[str, ...]


def read_receipt(path: Path | File) -> Receipt:
    """Read a receipt that somebody gives.

    Raises:
        InputError: it is none.
    """
    try:
        with path.open("rb") as file:
            receipt = msgspec.json.decode(file.read(_MOST_BYTES), type=Receipt)
        parse_submission_id(receipt.id)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, InputError) as error:
        found, expected = quote(str(error)), "a receipt, as heldout submit wrote it"
        raise InputError.of("not-json", path.name, found, expected) from None
    return receipt


def store_receipt(repository: Repository, submission: str, log: Sequence[Entry]) -> File | None:
    """Write or renew the receipt of what this clone sent last.

    Args:
        repository: the clone.
        submission: its id.
        log: the newest public log.

    Returns:
        Its file, `None` where nothing was sent from here.

    Raises:
        StoreError: the log is not the one that the receipt saw with events added; the receipt
            stays as it was, for it is the evidence.
    """
    note = read_sealed(repository, submission)
    file = repository.state.file(f"receipts/{submission}.json")
    if note is None or note.sent_at is None or note.sent != receipt_of(note.outputs) or not log:
        return file if file.is_file() else None
    before = read_receipt(file) if file.is_file() else None
    for error in () if before is None else _find_rewritten(before, log):
        raise StoreError(f"{error}; do not delete {file} and ask the organisers")
    files = dict(sorted(note.outputs.items()))
    receipt = Receipt(
        board=log[0].hash,
        id=submission,
        files=files,
        sent_at=note.sent_at,
        head=before.head if before is not None and before.files == files else _mark(log[-1]),
        seen=_mark(log[-1]),
        received=_find_received(log, submission, note.outputs),
    )
    data = msgspec.json.encode(receipt, order="deterministic")
    file.write_whole(msgspec.json.format(data, indent=2) + b"\n")
    return file


def check_receipt(receipt: Receipt, log: Sequence[Entry]) -> ReceiptCheck:
    """Hold a receipt against a public log.

    Args:
        receipt: of a participant.
        log: verified, not empty.
    """
    if receipt.board != log[0].hash:
        return ReceiptCheck(received=None, faults=("it is a receipt of another board",))
    faults = [*_find_rewritten(receipt, log), *_find_missing(receipt, log)]
    received = _find_received(log, receipt.id, receipt.files)
    if receipt.received is not None and received != receipt.received:
        event = f"event {receipt.received.seq} of {receipt.received.at}"
        faults.append(f"{receipt.id} was taken in by {event}, and is no longer")
    return ReceiptCheck(received=received, faults=tuple(faults))


def find_forks(receipts: Sequence[Receipt]) -> Iterator[str]:
    """Find receipts of one board that name different events of one number: two logs were shown.

    Args:
        receipts: of any teams.
    """
    seen: dict[tuple[str, int], tuple[str, str]] = {}
    for receipt in receipts:
        for mark in _marks(receipt):
            hash_, name = seen.setdefault((receipt.board, mark.seq), (mark.hash, receipt.id))
            if hash_ != mark.hash:
                yield (
                    f"the receipts of {name} and {receipt.id} name different events {mark.seq}: "
                    "the organisers, or whoever serves the board, showed two logs"
                )


def list_changes(earlier: Sequence[Entry], later: Sequence[Entry]) -> Iterator[str]:
    """The released scores that changed from one log to its continuation, each with its event.

    Args:
        earlier: a copy from before.
        later: continues it.
    """
    before = read_history(earlier).submissions
    for name, submission in read_history(later).submissions.items():
        old = before[name].scores if name in before else {}
        changed = [view for view in old if submission.scores.get(view) != old[view]]
        seqs = [
            entry.event.seq
            for entry in later[len(earlier) :]
            if entry.event.submission == name and "scores" in entry.event.public
        ]
        for view in changed:
            events = ", ".join(map(str, seqs)) or "none"
            new = submission.scores.get(view, "nothing")
            yield f"{name}: {view} {old[view]} -> {new}, by event {events}"


def _mark(entry: Entry) -> Mark:
    return Mark(seq=entry.event.seq, hash=entry.hash, at=entry.event.at)


def _marks(receipt: Receipt) -> Iterator[Mark]:
    """The events that a receipt names."""
    yield receipt.head
    yield receipt.seen
    if receipt.received is not None:
        yield receipt.received


def _find_rewritten(receipt: Receipt, log: Sequence[Entry]) -> Iterator[str]:
    """Yield whether the last event that the receipt saw is still where it was."""
    seen = receipt.seen
    if not 0 <= seen.seq < len(log):
        yield f"the log ends before event {seen.seq}, which it had: events were cut off"
    elif log[seen.seq].hash != seen.hash:
        yield f"event {seen.seq} or one before it is not what it was: history was rewritten"
    elif not 0 <= receipt.head.seq <= seen.seq or log[receipt.head.seq].hash != receipt.head.hash:
        yield f"event {receipt.head.seq}, the last one when it was sent, is not what it was"


def _find_missing(receipt: Receipt, log: Sequence[Entry]) -> Iterator[str]:
    events = [entry for entry in log if entry.event.submission == receipt.id]
    if not events:
        yield f"the log has no event about {receipt.id}: it was not taken in yet, or left out"
        return
    logged = [_files(entry) for entry in events]
    for name, digest in receipt.files.items():
        if not any(files.get(name) == digest for files in logged):
            yield f"no event about {receipt.id} has {quote(name)} with the digest {digest[:12]}…"


def _files(entry: Entry) -> Mapping[str, Any]:
    """The sealed files that an event names; none where a hostile log has something else there."""
    files = entry.get("files")
    return files if isinstance(files, dict) else {}


def _find_received(log: Sequence[Entry], submission: str, files: Mapping[str, str]) -> Mark | None:
    """The event that took these files in; the metadata may be newer by now."""
    for entry in log:
        given = _files(entry)
        same = {name for name, digest in files.items() if given.get(name) == digest}
        about = entry.event.submission == submission and entry.event.kind == "received"
        if about and same >= {name for name in files if "-metadata.json." not in name}:
            return _mark(entry)
    return None
