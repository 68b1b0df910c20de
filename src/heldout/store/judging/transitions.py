"""How assignments go on and end, and what that does to their tasks; within a transaction."""

from datetime import datetime, timedelta
from typing import Literal

import msgspec
from sqlalchemy import Connection, select, update

from heldout.preferences.settings import Settings
from heldout.store.judging.judgment_rows import count_failed
from heldout.store.judging.log import note
from heldout.store.judging.sittings import Sitting
from heldout.store.judging.tables import assignments, batches, tasks

__all__ = ["close_expired", "end", "end_lapsed", "prolong"]


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
