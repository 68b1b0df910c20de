"""Writes everything that a closed board's results follow from into one archive."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path

import msgspec

from heldout.board.log.history import History
from heldout.board.rules.deadlines import one_shot_deadline
from heldout.board.rules.spec_file import parse_spec
from heldout.errors import StoreError
from heldout.ids import Digest, digest_bytes
from heldout.pipeline.auditing.audit import audit_board
from heldout.pipeline.auditing.opening import (
    OpenedBoard,
    list_members,
    open_log,
    published,
)
from heldout.pipeline.organiser.desk import Desk
from heldout.pipeline.scoring.mixed_labels import find_mixed, say_mixed
from heldout.store.zipped import write_zip

__all__ = [
    "MANIFEST",
    "Archived",
    "Contents",
    "Member",
    "check_closable",
    "list_files",
    "write_archive",
]

MANIFEST = "MANIFEST.json"


class Member(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A file of an archive: its size in bytes and its SHA-256."""

    bytes: int
    sha256: str


class Contents(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`MANIFEST.json`: what an archive holds.

    Attributes:
        board: name of the board.
        events: number of events in the log.
        head: hash of the last of them: whoever knows it from elsewhere knows the whole log.
        files: every other file of the archive.
        schema: version of this format.
    """

    board: str
    events: int
    head: str
    files: dict[str, Member]
    schema: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Archived:
    """What an archive holds.

    Attributes:
        bytes: its size.
        digest: its SHA-256.
        entries: published entries and baselines in it.
        runs: ids of those whose runs are in it.
        embargoed: ids of those whose identity is not, for their embargo still runs.
    """

    bytes: int
    digest: Digest
    entries: int
    runs: tuple[str, ...]
    embargoed: tuple[str, ...]


def check_closable(desk: Desk) -> None:
    """Refuse to close a board on which something is still to be done.

    Raises:
        StoreError: a submission waits, a deadline is to come, the board is not sound, its entries
            are scored with different labels, or it is the record of an old one.
    """
    history = desk.history()
    if not published(history) and any(s.status == "imported" for s in history.submissions.values()):
        raise StoreError(
            "this is the record of an old board: there are no labels and no scores by query to "
            "open, and its log is public as it is; nothing was closed"
        )
    waiting = [s.id for s in history.submissions.values() if s.waits_since is not None]
    if waiting:
        raise StoreError(
            f"{', '.join(waiting[:3])} {'wait' if len(waiting) > 1 else 'waits'} for a decision "
            f"({len(waiting)} in all); nothing was closed: decide first, heldout inbox lists them"
        )
    final = history.final
    if final is not None and final.opened is None:
        raise StoreError(
            f"finalists are named, and the final ({final.view}) is not opened; nothing was closed: "
            "heldout board final"
        )
    last = max(_days_to_wait_for(history), default=desk.now.date() - timedelta(1))
    if desk.now.date() <= last:
        raise StoreError(f"scores are still sealed until {last} is over; nothing was closed")
    found = audit_board(desk.repository, desk.vault.root)
    if found.faults:
        told = "; ".join(found.faults[:3])
        raise StoreError(f"the board is not sound, so nothing was archived: {told}")
    mixed = find_mixed(desk.vault, history)
    if mixed:
        told, every = "; ".join(map(say_mixed, mixed)), {n for one in mixed for n in one.earlier}
        raise StoreError(
            f"{told}; nothing was archived: heldout correct {' '.join(sorted(every))} --why "
            '"…", or put the earlier labels back and correct the others'
        )


def _days_to_wait_for(history: History) -> Iterator[date]:
    """The days after which scores are released that are sealed until then."""
    deadline = one_shot_deadline(history)
    if deadline is not None:
        yield deadline
    rules = parse_spec(history.rules[-1][1].encode())
    for submission in published(history) if rules.final_views else ():
        last = rules.last_day(submission.received.date())
        if last is not None:
            yield last


def write_archive(desk: Desk, path: Path) -> Archived:
    """Write the archive of a closed board; equal input gives equal bytes.

    Args:
        desk: its lock is held.
        path: a new file; one with just these bytes is left as it is.

    Raises:
        StoreError: the board is not closed or not sound, or the file holds something else.
    """
    check_closable(desk)
    opened = OpenedBoard(desk=desk, log=open_log(desk))
    if opened.history.closed is None:
        raise StoreError("the board is not closed yet, so nothing can be opened")
    write_zip(path, list_files(opened))
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    shown = opened.entries
    return Archived(
        bytes=path.stat().st_size,
        digest=Digest(digest),
        entries=len(shown),
        runs=tuple(s.id for s in shown if opened.shows_runs(s)),
        embargoed=tuple(s.id for s in shown if s.identity is None),
    )


def list_files(opened: OpenedBoard) -> Iterator[tuple[str, bytes]]:
    """Every file of an archive, name and content; the one that lists the others comes last.

    Raises:
        StoreError: one is missing or damaged, or two would have one name.
    """
    listed: dict[str, Member] = {}
    for name, data in list_members(opened):
        if name in listed:
            raise StoreError(f"two files of the archive would be called {name}; rename the board's")
        listed[name] = Member(bytes=len(data), sha256=digest_bytes(data))
        yield name, data
    head = opened.log[-1].hash
    told = Contents(board=opened.spec.name, events=len(opened.log), head=head, files=listed)
    data = msgspec.json.encode(told, order="deterministic")
    yield MANIFEST, msgspec.json.format(data, indent=1) + b"\n"
