"""What a judge does with a task: look at an item, answer, change, exit, submit.

Every function is one transaction: it happened whole, or not at all and a `DatabaseError` says why.
`claims` hands the tasks out.
"""

from datetime import datetime

from sqlalchemy import Connection, insert, select

from heldout.store.judging.database import Database
from heldout.store.judging.sittings import Answered, Choice, Given, Outcome, Shown, Sitting
from heldout.store.judging.standing import lock_assignment, read_shown, read_sitting
from heldout.store.judging.tables import assignments, judgments
from heldout.store.judging.transitions import end, prolong

__all__ = ["answer", "exit_assignment", "item", "resume", "sitting", "submit"]


def sitting(database: Database, assignment: int) -> Sitting:
    """An assignment as it stands; reads only.

    Raises:
        DatabaseError: code `unknown-assignment`; see `Fault`.
    """
    return database.read(lambda connection: read_sitting(connection, assignment))


def item(database: Database, assignment: int, position: int) -> Shown | None:
    """An item as it is shown, also when the assignment has ended; reads only.

    Args:
        database: of the campaign.
        assignment: its id.
        position: from 1.

    Returns:
        `None` where the task has no such position.

    Raises:
        DatabaseError: code `unknown-assignment`; see `Fault`.
    """
    return database.read(lambda connection: read_shown(connection, assignment, position))


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
        DatabaseError: code `unknown-assignment`; see `Fault`.
    """

    def work(connection: Connection) -> Answered | None:
        lock_assignment(connection, assignment)
        shown = read_shown(connection, assignment, position)
        if shown is None:
            return None
        outcome = _weigh(shown, choice, replaces)
        if outcome == "recorded":
            _record(connection, shown, choice, shown_at=shown_at, now=now)
        if shown.sitting.open and outcome in ("recorded", "repeated"):
            prolong(connection, shown.sitting, now=now)
        after = read_shown(connection, assignment, position)
        return Answered(outcome=outcome, shown=after or shown)

    return database.write(work)


def resume(database: Database, assignment: int, *, now: datetime) -> Sitting:
    """Lengthen the lease where the assignment is open; else change nothing.

    Raises:
        DatabaseError: code `unknown-assignment`; see `Fault`.
    """

    def work(connection: Connection) -> Sitting:
        lock_assignment(connection, assignment)
        found = read_sitting(connection, assignment)
        if found.open:
            prolong(connection, found, now=now)
        return read_sitting(connection, assignment)

    return database.write(work)


def submit(database: Database, assignment: int, *, now: datetime) -> Sitting:
    """Finish a task in which every item has an answer; else change nothing (see `first_open`).

    Failed tests bar the worker, and the task waits for another one.

    Raises:
        DatabaseError: code `unknown-assignment`; see `Fault`.
    """

    def work(connection: Connection) -> Sitting:
        lock_assignment(connection, assignment)
        found = read_sitting(connection, assignment)
        if found.open and found.first_open is None:
            end(connection, assignment, "submitted", found.settings, now=now)
        return read_sitting(connection, assignment)

    return database.write(work)


def exit_assignment(database: Database, assignment: int, *, now: datetime) -> Sitting:
    """Stop where the assignment is open; else change nothing. The task waits for another worker.

    Raises:
        DatabaseError: code `unknown-assignment`; see `Fault`.
    """

    def work(connection: Connection) -> Sitting:
        lock_assignment(connection, assignment)
        found = read_sitting(connection, assignment)
        if found.open:
            end(connection, assignment, "exited", found.settings, now=now)
        return read_sitting(connection, assignment)

    return database.write(work)


def _weigh(shown: Shown, choice: Choice, replaces: int) -> Outcome:
    """What becomes of an answer to an item as it stands."""
    stands = shown.given and (shown.given.side, shown.given.reason) == (choice.side, choice.reason)
    if not shown.sitting.open:
        return "repeated" if stands else "ended"
    first_open = shown.sitting.first_open
    if first_open is not None and shown.position > first_open:
        return "ahead"
    if stands:
        return "repeated"
    return "recorded" if replaces == _revision(shown.given) else "stale"


def _revision(given: Given | None) -> int:
    return 0 if given is None else given.revision


def _record(
    connection: Connection, shown: Shown, choice: Choice, *, shown_at: datetime, now: datetime
) -> None:
    assignment = shown.sitting.assignment
    of_it = select(assignments.c.task).where(assignments.c.id == assignment).scalar_subquery()
    row = {
        "assignment": assignment,
        "task": of_it,
        "position": shown.position,
        "revision": _revision(shown.given) + 1,
        "side": choice.side,
        "reason": choice.reason,
        "shown_at": shown_at,
        "answered_at": now,
        "active_ms": choice.active_ms,
        "by": choice.by,
    }
    connection.execute(insert(judgments).values(row))
