"""What a judge does with a task: look at an item, answer, change, exit, submit.

Every function is one transaction: it happened whole, or not at all and a `DatabaseError` says why.
`claims` hands the tasks out. What a worker who comes back has ended before is found by the place on
a platform, or by the worker.
"""

from datetime import datetime, timedelta
from typing import Literal

import msgspec
from sqlalchemy import Connection, insert, or_, select, update

from heldout.judging.campaign.settings import Settings
from heldout.judging.database.database import Database
from heldout.judging.database.rows import count_failed, note
from heldout.judging.database.sittings import (
    Answered,
    Choice,
    Given,
    Outcome,
    Shown,
    Sitting,
    Visitor,
    lock_assignment,
    read_shown,
    read_sitting,
)
from heldout.judging.database.tables import assignments, batches, judgments, tasks, workers


def ended_at(database: Database, visitor: Visitor) -> int | None:
    """The assignment that a worker has submitted or exited at this place; reads only.

    A place is a platform's own sitting: each is paid once, and so holds one task.

    Args:
        database: of the campaign.
        visitor: who comes, and where.

    Returns:
        The latest; `None` where there is none, and where the platform names no places.

    Raises:
        DatabaseError: see `Fault`.
    """
    if not visitor.place:
        return None

    def find(connection: Connection) -> int | None:
        return connection.execute(
            select(assignments.c.id)
            .join(workers, workers.c.id == assignments.c.worker)
            .where(
                workers.c.platform_id == visitor.worker,
                assignments.c.place == visitor.place,
                assignments.c.state.in_(("submitted", "exited")),
            )
            .order_by(assignments.c.id.desc())
            .limit(1)
        ).scalar_one_or_none()

    return database.read(find)


def last_ended(database: Database, worker: str) -> Sitting | None:
    """The latest assignment of a worker that takes no answers any more; reads only.

    Args:
        database: of the campaign.
        worker: the platform's id.

    Returns:
        `None` where there is none.

    Raises:
        DatabaseError: see `Fault`.
    """

    def find(connection: Connection) -> Sitting | None:
        closed = (assignments.c.state == "expired") & assignments.c.failed.is_not(None)
        found = connection.execute(
            select(assignments.c.id)
            .join(workers, workers.c.id == assignments.c.worker)
            .where(workers.c.platform_id == worker)
            .where(or_(assignments.c.state.in_(("submitted", "exited")), closed))
            .order_by(assignments.c.id.desc())
            .limit(1)
        ).scalar_one_or_none()
        return None if found is None else read_sitting(connection, found)

    return database.read(find)


def end(
    connection: Connection,
    assignment: int,
    state: Literal["submitted", "exited", "expired"],
    settings: Settings,
    *,
    now: datetime,
) -> None:
    """End an assignment: the task is done, or waits for another worker.

    Args:
        connection: of a transaction that holds its lock.
        assignment: its id.
        state: how it ends.
        settings: its terms.
        now: the time.
    """
    failed = count_failed(connection, assignment)
    excluded = failed >= settings.failures
    final = excluded or state != "expired"
    row = update(assignments).where(assignments.c.id == assignment)
    connection.execute(row.values(state=state, ended_at=now, failed=failed if final else None))
    done = state == "submitted" and not excluded
    of_it = select(assignments.c.task).where(assignments.c.id == assignment).scalar_subquery()
    task = update(tasks).where(tasks.c.task == of_it)
    connection.execute(task.values(state="done" if done else "void"))
    note(connection, state, at=now, assignment=assignment)
    if excluded:
        _exclude(connection, assignment, settings, failed, now=now)


def end_lapsed(connection: Connection, *, now: datetime) -> int:
    """End every assignment whose lease is over; those that somebody is busy with are passed over.

    Returns:
        How many there were.
    """
    rows = connection.execute(
        select(assignments.c.id, batches.c.settings)
        .join(tasks, tasks.c.task == assignments.c.task)
        .join(batches, batches.c.batch == tasks.c.batch)
        .where(assignments.c.state == "consented", assignments.c.lease_until < now)
        .order_by(assignments.c.id)
        .with_for_update(skip_locked=True, of=(assignments, tasks))
    ).all()
    for row in rows:
        settings = msgspec.json.decode(row.settings, type=Settings)
        end(connection, row.id, "expired", settings, now=now)
    return len(rows)


def close_expired(connection: Connection, task: str, *, now: datetime) -> None:
    """Another worker is given the task: if it expired, it can no longer go on.

    Args:
        connection: of a transaction that holds the task's lock.
        task: its id.
        now: the time.
    """
    row = select(assignments.c.id, assignments.c.failed).where(assignments.c.task == task)
    found = connection.execute(row).one()
    if found.failed is None:
        failed = count_failed(connection, found.id)
        closed = update(assignments).where(assignments.c.id == found.id)
        connection.execute(closed.values(failed=failed))
    note(connection, "copied", at=now, assignment=found.id)


def prolong(connection: Connection, found: Sitting, *, now: datetime) -> None:
    """Lengthen the lease; an expired assignment is under way again.

    Args:
        connection: of a transaction that holds the assignment's lock.
        found: the assignment, which is open.
        now: the time.
    """
    until = max(found.lease_until, now + timedelta(minutes=found.settings.lease_minutes))
    row = update(assignments).where(assignments.c.id == found.assignment)
    connection.execute(row.values(lease_until=until, state="consented", ended_at=None))
    if found.state == "expired":
        of_it = select(assignments.c.task).where(assignments.c.id == found.assignment)
        task = update(tasks).where(tasks.c.task == of_it.scalar_subquery())
        connection.execute(task.values(state="held"))
        note(connection, "resumed", at=now, assignment=found.assignment)


def _exclude(
    connection: Connection, assignment: int, settings: Settings, failed: int, *, now: datetime
) -> None:
    """What a worker did counts no more: the task, or all tasks; each waits for another worker."""
    note(connection, "excluded", at=now, assignment=assignment, text=f"{failed} tests failed")
    if settings.excludes != "worker":
        return
    worker = select(assignments.c.worker).where(assignments.c.id == assignment).scalar_subquery()
    of_worker = select(assignments.c.task).where(assignments.c.worker == worker)
    finished = update(tasks).where(tasks.c.task.in_(of_worker), tasks.c.state == "done")
    connection.execute(finished.values(state="void"))


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
