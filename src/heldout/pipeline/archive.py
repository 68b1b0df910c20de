"""Closes a board, and writes everything that its results follow from into one archive."""

import hashlib
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path

import msgspec

from heldout.board.consent import may_open_runs, rule_for_runs
from heldout.board.deadlines import one_shot_deadline
from heldout.board.history import History
from heldout.board.spec_file import parse_spec
from heldout.errors import InputError, Problem, StoreError
from heldout.ids import Digest, digest_bytes
from heldout.pipeline.audit import audit_board
from heldout.pipeline.decide import check_published
from heldout.pipeline.desk import Desk
from heldout.pipeline.opening import (
    AGREED,
    OPEN_RUNS,
    OpenedBoard,
    list_members,
    list_open_runs,
    open_log,
    published,
)
from heldout.store.zipped import write_zip

__all__ = [
    "MANIFEST",
    "Archived",
    "Contents",
    "Member",
    "check_closable",
    "close_board",
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
        StoreError: a submission waits, a deadline is to come, or the board is not sound.
    """
    history = desk.history()
    waiting = [s.id for s in history.submissions.values() if s.pending]
    if waiting:
        raise StoreError(
            f"{', '.join(waiting[:3])} {'wait' if len(waiting) > 1 else 'waits'} for a decision "
            f"({len(waiting)} in all); nothing was closed: decide first, heldout inbox lists them"
        )
    last = max(_days_to_wait_for(history), default=desk.now.date() - timedelta(1))
    if desk.now.date() <= last:
        raise StoreError(f"scores are still sealed until {last} is over; nothing was closed")
    found = audit_board(desk.repository, desk.vault.root)
    if found.faults:
        told = "; ".join(found.faults[:3])
        raise StoreError(f"the board is not sound, so nothing was archived: {told}")


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


def close_board(desk: Desk, *, agreed: Sequence[str] = (), why: str = "") -> bool:
    """Close a board for good; the event says whose runs will be opened.

    Args:
        desk: its lock is held.
        agreed: ids of published entries whose teams agreed to that otherwise than by their
            metadata, which says nothing; the event names them.
        why: how the organisers know; needed where there are any, and public.

    Returns:
        Whether it was closed now; a board that was closed before stays as it was.

    Raises:
        InputError: one of these ids is no published entry, or its runs may not be opened.
        StoreError: something is still to be done, or it was closed with other runs to be opened.
    """
    history = desk.history()
    for name in agreed:
        check_published(desk, name)
        _check_agreed(history, name)
    if history.closed is not None:
        before = list_open_runs(desk.vault.entries())
        if not set(agreed) <= set(before):
            raise StoreError(
                "the runs that are opened were named when the board was closed, and that stays "
                f"so: {', '.join(before) or 'none'}"
            )
        return False
    check_closable(desk)
    public: dict[str, object] = {OPEN_RUNS: sorted(_list_opened(history, agreed))}
    if agreed:
        public |= {AGREED: sorted(set(agreed)), "why": why}
    desk.log("closed-board", None, public=public)
    return True


def _list_opened(history: History, agreed: Collection[str]) -> Iterator[str]:
    """The entries whose runs may be opened, and the baselines whose runs the vault has."""
    for submission in published(history):
        kept = submission.runs or not submission.baseline
        if kept and may_open_runs(history, submission, agreed=agreed):
            yield submission.id


def _check_agreed(history: History, name: str) -> None:
    """Refuse an organiser's word against that of the rules or of the team."""
    submission = history.submissions[name]
    if may_open_runs(history, submission, agreed=(name,)):
        return
    never = rule_for_runs(history, submission) == "never"
    raise InputError(
        Problem(
            code="no-consent",
            path=name,
            found='archive.runs = "never"' if never else "open_runs: false, the team's own word",
            expected="a board that opens runs, and a team that has not said no",
            hint="" if never else "the team can change it until the closing: heldout amend",
        )
    )


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
    write_zip(path, _with_contents(opened))
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


def _with_contents(opened: OpenedBoard) -> Iterator[tuple[str, bytes]]:
    """Every file of the archive; the one that lists the others comes last."""
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
