"""Closes a board for good, once it is sure that all of it can be opened and checked."""

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from heldout.board.audit.archive import (
    AGREED,
    OPEN_RUNS,
    OpenedBoard,
    check_closable,
    list_files,
    list_open_runs,
    open_log,
    published,
)
from heldout.board.audit.archive_audit import audit_archive
from heldout.board.log.events import Draft
from heldout.board.log.history import History
from heldout.board.rules.days import may_open_runs, rule_for_runs
from heldout.board.scores.session import Session
from heldout.errors import InputError, StoreError
from heldout.files.zipped import write_zip


def close_board(session: Session, *, agreed: Sequence[str] = (), why: str = "") -> bool:
    """Close a board for good; the event says whose runs will be opened.

    Args:
        session: its lock is held.
        agreed: ids of published entries whose teams agreed to that otherwise than by their
            metadata, which says nothing; the event names them.
        why: how the organisers know; needed where there are any, and public.

    Returns:
        Whether it was closed now; a board that was closed before stays as it was.

    Raises:
        InputError: one of these ids is no published entry, or its runs may not be opened.
        StoreError: something is still to be done, its archive would not be sound, or it was closed
            with other runs to be opened.
    """
    history = session.history()
    for name in agreed:
        session.find_published(name)
        _check_agreed(history, name)
    if history.closed is not None:
        before = list_open_runs(session.vault.entries())
        if not set(agreed) <= set(before):
            raise StoreError(
                "the runs that are opened were named when the board was closed, and that stays "
                f"so: {', '.join(before) or 'none'}"
            )
        return False
    check_closable(session)
    opened = [
        submission.id
        for submission in published(history)
        if may_open_runs(history, submission, agreed=agreed)
    ]
    public: dict[str, object] = {OPEN_RUNS: sorted(opened)}
    if agreed:
        public |= {AGREED: sorted(set(agreed)), "why": why}
    closing = Draft(kind="closed-board", by=session.by, public=public, sealed={})
    rehearse(session, closing)
    session.log(closing.kind, None, public=public)
    return True


def rehearse(session: Session, closing: Draft) -> None:
    """Make and check the archive as if the board were closed: the event is for good.

    Args:
        session: its lock is held.
        closing: the event that would be logged.

    Raises:
        StoreError: something that belongs into the archive is missing, or not sound.
        InputError: something cannot be read.
    """
    event = session.vault.make_entry(closing, now=session.now)
    opened = OpenedBoard(session=session, log=(*open_log(session), event))
    with TemporaryDirectory(prefix="heldout-closing-") as folder:
        file = Path(folder) / "archive.zip"
        write_zip(file, list_files(opened))
        found = audit_archive(file)
    if found.faults:
        told = "; ".join(found.faults[:3])
        raise StoreError(f"the archive would not be sound, so nothing was closed: {told}")


def _check_agreed(history: History, name: str) -> None:
    """Refuse an organiser's word against that of the rules or of the team."""
    submission = history.submissions[name]
    if may_open_runs(history, submission, agreed=(name,)):
        return
    never = rule_for_runs(history, submission) == "never"
    raise InputError.of(
        code="no-consent",
        path=name,
        found='archive.runs = "never"' if never else "open_runs: false, the team's own word",
        expected="a board that opens runs, and a team that has not said no",
        hint="" if never else "the team can change it until the closing: heldout amend",
    )
