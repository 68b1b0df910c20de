"""Tasks are handed out: each to one worker, no pair twice to the same one.

Each function is one transaction. On PostgreSQL a task that somebody is taking is passed over, on
SQLite whoever comes second waits: never is one handed out twice.
"""

import secrets
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Literal, NamedTuple

from sqlalchemy import ColumnElement, Connection, delete, exists, func, insert, or_, select, update
from sqlalchemy.dialects import postgresql, sqlite

from heldout.errors import InputError, Problem, quote
from heldout.judging.campaign.settings import Settings
from heldout.judging.database.campaigns import read_settings
from heldout.judging.database.database import Database, DatabaseError
from heldout.judging.database.organiser import read_launch
from heldout.judging.database.overviews import read_uncounted_pay
from heldout.judging.database.rows import add_copy, note
from heldout.judging.database.sittings import (
    LONGEST_WORKER,
    NoTask,
    Offer,
    Sitting,
    Visitor,
    is_barred,
    lock_assignment,
    read_sitting,
)
from heldout.judging.database.tables import assignments, items, judgments, seen, tasks, workers
from heldout.judging.database.working import close_expired, end, end_lapsed, prolong

_LONGEST_PLACE = 1_000
_WAITING = ("open", "void")


class _UnderWay(NamedTuple):
    assignment: int
    task: str
    batch: int
    place: str
    lease_until: datetime


class _Waiting(NamedTuple):
    task: str
    batch: int
    state: str


def offer(database: Database, visitor: Visitor | None, *, now: datetime) -> Offer | NoTask:
    """What a worker would consent to; reads only.

    Args:
        database: of the campaign.
        visitor: who it is; `None` for somebody who only looks (a preview). An id that `claim`
            refuses is nobody's.
        now: the time.

    Raises:
        DatabaseError: code `database-empty`: no batch was loaded yet; see `Fault`.
    """
    known = visitor if visitor and _is_usable(visitor.worker) else Visitor(worker="")
    return database.read(lambda connection: _offer(connection, known, now))


def claim(database: Database, visitor: Visitor, *, batch: int, now: datetime) -> Sitting | NoTask:
    """Give a worker who consented a task; the one under way where this visitor may continue it.

    A task with answers stays with the platform's assignment, or the link, that it was begun with:
    an id alone is known to others, who could otherwise be paid for the answers of its owner.

    Args:
        database: of the campaign.
        visitor: who it is.
        batch: whose terms were agreed to.
        now: the time.

    Raises:
        InputError: code `worker-id`: empty, unprintable, or longer than 255 characters.
        DatabaseError: see `offer`.
    """
    if not _is_usable(visitor.worker):
        raise InputError(
            Problem(
                code="worker-id",
                path="worker",
                found=quote(visitor.worker),
                expected=f"1 to {LONGEST_WORKER} printable characters",
            )
        )
    return database.write(lambda connection: _claim(connection, visitor, batch, now))


def expire_leases(database: Database, *, now: datetime) -> int:
    """End every lease that is over; `claim` does so itself.

    Returns:
        How many there were.
    """
    return database.write(lambda connection: end_lapsed(connection, now=now))


def _is_usable(name: str) -> bool:
    return 0 < len(name) <= LONGEST_WORKER and name.isprintable()


def _offer(connection: Connection, visitor: Visitor, now: datetime) -> Offer | NoTask:
    terms = _read_terms(connection)
    newest = terms[max(terms)]
    known = select(workers.c.id).where(workers.c.platform_id == visitor.worker)
    judge = connection.execute(known).scalar_one_or_none() or 0
    row = _find_under_way(connection, judge)
    if row is not None and not _may_continue(row, visitor):
        if _is_kept(connection, row, now):
            return NoTask(why="elsewhere", settings=newest)
        row = None
    if row is None and is_barred(connection, judge, newest):
        return NoTask(why="barred", settings=newest)
    if row is None and _is_closed(connection, terms):
        return NoTask(why="paused", settings=newest)
    task = row or _find_task(connection, judge, _waiting_or_lapsed(now))
    if task is None:
        return _explain(connection, judge, newest)
    return Offer(
        batch=task.batch,
        settings=terms[task.batch],
        items=_count_items(connection, task.task),
        assignment=None if row is None else row.assignment,
    )


def _claim(connection: Connection, visitor: Visitor, batch: int, now: datetime) -> Sitting | NoTask:
    terms = _read_terms(connection)
    newest = terms[max(terms)]
    judge = _register(connection, visitor.worker, now)
    closed = _is_closed(connection, terms)
    again = _come_back(connection, judge, visitor, newest, closed=closed, now=now)
    if again is not None:
        return again
    if is_barred(connection, judge, newest):
        return NoTask(why="barred", settings=newest)
    if closed:
        return NoTask(why="paused", settings=newest)
    end_lapsed(connection, now=now)
    task = _take_task(connection, judge, batch, now) if batch in terms else None
    if task is None:
        return _explain(connection, judge, newest, batch=batch if batch in terms else 0)
    name = task.task
    if task.state == "void":
        close_expired(connection, name, now=now)
        name = add_copy(connection, name, keep_sides=terms[batch].judges % 2 == 0)
    return _assign(connection, name, judge, visitor, settings=terms[batch], now=now)


def _read_terms(connection: Connection) -> dict[int, Settings]:
    terms = read_settings(connection)
    if not terms:
        raise DatabaseError(
            "database-empty", "the campaign has no task yet; `heldout prefer tasks` makes them"
        )
    return terms


def _register(connection: Connection, name: str, now: datetime) -> int:
    """The worker's id; until the transaction ends the same worker gets no second task."""
    row = {"platform_id": name, "pseudonym": secrets.token_hex(8), "first_seen": now}
    engine = postgresql if connection.dialect.name == "postgresql" else sqlite
    new = engine.insert(workers).values(row).on_conflict_do_nothing(index_elements=["platform_id"])
    connection.execute(new)
    known = select(workers.c.id).where(workers.c.platform_id == name)
    return int(connection.execute(known.with_for_update()).scalar_one())


def _is_closed(connection: Connection, terms: Mapping[int, Settings]) -> bool:
    """Whether nobody is given a new task: paused, or too much was paid for what does not count."""
    return read_launch(connection) == "paused" or read_uncounted_pay(connection, terms).is_spent


def _come_back(
    connection: Connection,
    judge: int,
    visitor: Visitor,
    newest: Settings,
    *,
    closed: bool,
    now: datetime,
) -> Sitting | NoTask | None:
    """The assignment that is under way; `None` where this visitor may be given a new one.

    Without proof that it is the same worker, a task with answers waits until its lease ends; one
    without answers ends at once, so that whoever named the id first cannot keep its owner away.
    """
    row = _find_under_way(connection, judge)
    if row is None:
        return None
    lock_assignment(connection, row.assignment)
    found = read_sitting(connection, row.assignment)
    if not found.open:
        return None
    if _may_continue(row, visitor):
        prolong(connection, found, now=now)
        return read_sitting(connection, row.assignment)
    if _is_kept(connection, row, now):
        return NoTask(why="elsewhere", settings=newest)
    if is_barred(connection, judge, newest) or closed:
        return None
    end(connection, row.assignment, "expired", found.settings, now=now)
    close_expired(connection, row.task, now=now)
    add_copy(connection, row.task, keep_sides=found.settings.judges % 2 == 0)
    if not found.answered:  # nothing was judged: the same worker may be given the same pairs
        pairs_of_task = select(items.c.pair).where(items.c.task == row.task)
        forget = delete(seen).where(seen.c.worker == judge, seen.c.pair.in_(pairs_of_task))
        connection.execute(forget)
    return None


def _may_continue(row: _UnderWay, visitor: Visitor) -> bool:
    """Whether a visitor can be nobody but the worker who began the task."""
    same = _place(visitor)["place"] == row.place
    return same and bool(visitor.signed or row.place)


def _is_kept(connection: Connection, row: _UnderWay, now: datetime) -> bool:
    """Whether a task has answers, and its lease has not ended."""
    answered = select(exists().where(judgments.c.assignment == row.assignment))
    return row.lease_until >= now and bool(connection.execute(answered).scalar_one())


def _find_under_way(connection: Connection, judge: int) -> _UnderWay | None:
    row = connection.execute(
        select(
            assignments.c.id,
            assignments.c.task,
            tasks.c.batch,
            assignments.c.place,
            assignments.c.lease_until,
        )
        .join(tasks, tasks.c.task == assignments.c.task)
        .where(
            assignments.c.worker == judge,
            assignments.c.state.in_(("consented", "expired")),
            assignments.c.failed.is_(None),
        )
    ).one_or_none()
    return None if row is None else _UnderWay(*row)


def _take_task(connection: Connection, judge: int, batch: int, now: datetime) -> _Waiting | None:
    """A task that waits, locked: first of those that nobody is busy with, then of the others.

    The others are waited for: who is busy with one may be ending its lease, and not taking it.
    """
    of_batch = tasks.c.batch == batch
    waiting = tasks.c.state.in_(_WAITING)
    free = _find_task(connection, judge, waiting, of_batch, lock="pass over")
    if free is not None:
        return free
    last = _find_task(connection, judge, _waiting_or_lapsed(now), of_batch, lock="wait")
    return last if last is not None and last.state in _WAITING else None


def _waiting_or_lapsed(now: datetime) -> ColumnElement[bool]:
    lapsed = exists().where(
        assignments.c.task == tasks.c.task,
        assignments.c.state == "consented",
        assignments.c.lease_until < now,
    )
    return or_(tasks.c.state.in_(_WAITING), (tasks.c.state == "held") & lapsed)


def _find_task(
    connection: Connection,
    judge: int,
    *wanted: ColumnElement[bool],
    lock: Literal["pass over", "wait"] | None = None,
) -> _Waiting | None:
    """The first task with pairs that are all new to the worker.

    Args:
        connection: of a transaction.
        judge: the worker.
        wanted: conditions on the task.
        lock: whether to lock it, and what to do about tasks that somebody else has locked.
    """
    found = (
        select(tasks.c.task, tasks.c.batch, tasks.c.state)
        .where(*wanted, ~_seen_by(judge))
        .order_by(tasks.c.batch, tasks.c.number)
        .limit(1)
    )
    if lock is not None:
        found = found.with_for_update(skip_locked=lock == "pass over", of=tasks)
    row = connection.execute(found).one_or_none()
    return None if row is None else _Waiting(*row)


def _seen_by(judge: int) -> ColumnElement[bool]:
    shared = items.join(seen, seen.c.pair == items.c.pair)
    return (
        select(items.c.task)
        .select_from(shared)
        .where(items.c.task == tasks.c.task, seen.c.worker == judge)
        .exists()
    )


def _explain(
    connection: Connection, judge: int, settings: Settings, *, batch: int | None = None
) -> NoTask:
    """Why there is no task, in this batch if one was agreed to; 0 is a batch that is not there."""
    waiting = tasks.c.state.in_(_WAITING)
    if batch is not None and _find_task(connection, judge, waiting, tasks.c.batch != batch):
        return NoTask(why="changed", settings=settings)
    unfinished = tasks.c.state.in_((*_WAITING, "held"))
    if _find_task(connection, judge, unfinished) is not None:
        return NoTask(why="waiting", settings=settings)
    left = connection.execute(select(exists().where(unfinished))).scalar_one()
    return NoTask(why="seen" if left else "done", settings=settings)


def _assign(
    connection: Connection,
    task: str,
    judge: int,
    visitor: Visitor,
    *,
    settings: Settings,
    now: datetime,
) -> Sitting:
    values: dict[str, object] = {"task": task, "worker": judge, "state": "consented"}
    values |= {"consent_version": settings.consent_version, "consented_at": now}
    values["lease_until"] = now + timedelta(minutes=settings.lease_minutes)
    new = insert(assignments).values(values | _place(visitor)).returning(assignments.c.id)
    assignment = int(connection.execute(new).scalar_one())
    given = select(items.c.pair).where(items.c.task == task, items.c.pair.is_not(None))
    rows = [{"worker": judge, "pair": pair} for pair in connection.scalars(given)]
    if rows:
        connection.execute(insert(seen), rows)
    connection.execute(update(tasks).where(tasks.c.task == task).values(state="held"))
    note(connection, "consented", at=now, assignment=assignment, text=settings.consent_version)
    return read_sitting(connection, assignment)


def _place(visitor: Visitor) -> dict[str, str]:
    """Where a worker is on the platform, as far as a database can store it."""
    return {
        name: getattr(visitor, name)
        .encode(errors="replace")
        .decode()
        .replace("\0", "")[:_LONGEST_PLACE]
        for name in ("place", "study", "submit_to")
    }


def _count_items(connection: Connection, task: str) -> int:
    found = select(func.count()).select_from(items).where(items.c.task == task)
    return int(connection.execute(found).scalar_one())
