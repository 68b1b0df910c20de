"""What a judge does: look at the offer, claim a task, answer, change, exit, submit.

Every function is one transaction: it happened whole, or not at all and a `DatabaseError` says why.
"""

from datetime import datetime

from heldout.store.judging.database import Database
from heldout.store.judging.sittings import (
    Answered,
    Choice,
    NoTask,
    Offer,
    Shown,
    Sitting,
    Visitor,
)

__all__ = [
    "answer",
    "claim",
    "exit_assignment",
    "expire_leases",
    "item",
    "offer",
    "resume",
    "sitting",
    "submit",
]


def offer(database: Database, *, worker: str | None, now: datetime) -> Offer | NoTask:
    """What a worker would consent to; reads only.

    Args:
        database: of the campaign.
        worker: the platform's id; `None` for somebody who only looks (a preview).
        now: the time.
    """
    raise NotImplementedError


def claim(database: Database, visitor: Visitor, *, batch: int, now: datetime) -> Sitting | NoTask:
    """Give a worker who consented a task; the one under way where there is one.

    Args:
        database: of the campaign.
        visitor: who it is.
        batch: whose terms were agreed to.
        now: the time.

    Raises:
        InputError: code `worker-id`: empty, or longer than 255 characters.
    """
    raise NotImplementedError


def sitting(database: Database, assignment: int) -> Sitting:
    """An assignment as it stands; reads only.

    Raises:
        DatabaseError: code `unknown-assignment`.
    """
    raise NotImplementedError


def item(database: Database, assignment: int, position: int) -> Shown | None:
    """An item as it is shown, also when the assignment has ended; reads only.

    Args:
        database: of the campaign.
        assignment: its id.
        position: from 1.

    Returns:
        `None` where the task has no such position.

    Raises:
        DatabaseError: code `unknown-assignment`.
    """
    raise NotImplementedError


def answer(
    database: Database,
    assignment: int,
    position: int,
    choice: Choice,
    *,
    replaces: int,
    shown_at: datetime,
    now: datetime,
) -> Answered | None:
    """Record an answer, or the change of one; it lengthens the lease.

    Args:
        database: of the campaign.
        assignment: its id.
        position: from 1.
        choice: what was chosen.
        replaces: revision of the answer that the page showed; 0 where it showed none.
        shown_at: when the page left the server.
        now: the time.

    Returns:
        `None` where the task has no such position.

    Raises:
        DatabaseError: code `unknown-assignment`.
    """
    raise NotImplementedError


def resume(database: Database, assignment: int, *, now: datetime) -> Sitting:
    """Lengthen the lease where the assignment is open; else change nothing.

    Raises:
        DatabaseError: code `unknown-assignment`.
    """
    raise NotImplementedError


def submit(database: Database, assignment: int, *, now: datetime) -> Sitting:
    """Finish a task in which every item has an answer; else change nothing (see `first_open`).

    Failed tests bar the worker, and the task waits for another one.

    Raises:
        DatabaseError: code `unknown-assignment`.
    """
    raise NotImplementedError


def exit_assignment(database: Database, assignment: int, *, now: datetime) -> Sitting:
    """Stop where the assignment is open; else change nothing. The task waits for another worker.

    Raises:
        DatabaseError: code `unknown-assignment`.
    """
    raise NotImplementedError


def expire_leases(database: Database, *, now: datetime) -> int:
    """End every lease that is over; `claim` does so itself.

    Returns:
        How many there were.
    """
    raise NotImplementedError
