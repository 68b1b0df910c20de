"""Assignments, from consent to their end: what a judge sees, answers, changes, submits, leaves.

Functions that take a `Database` are one transaction each: it happened whole, or not at all and a
`DatabaseError` says why. `claims` hands the tasks out.

    consented -> submitted | exited | expired        expired -> consented | submitted | exited

An expired assignment goes on as if nothing had happened, unless it is closed: its task was given to
another worker, or it would not count for its failed tests. What was submitted or exited never
changes again.
"""

from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Literal

import msgspec
import sqlalchemy as sa

from heldout.database.database import Database
from heldout.database.errors import DatabaseError
from heldout.judging.campaign.judgments import Choice, failed_tests
from heldout.judging.campaign.rows import State, amount_owed
from heldout.judging.campaign.settings import Money, Settings
from heldout.judging.database import tables as t

LONGEST_WORKER = 255
"""Characters of a platform's id of a worker."""

Outcome = Literal["recorded", "repeated", "stale", "ahead", "ended"]
"""`recorded`: it is in the database. `repeated`: the same answer stands there already, also where
the assignment has ended since: whoever sent it did not see that it had arrived. `stale`:
another window answered since, nothing was changed. `ahead`: an earlier item has no answer yet.
`ended`: the assignment takes no other answers any more. Only `recorded` wrote a judgment."""

_ENDED = ("submitted", "exited")


@dataclass(frozen=True, slots=True, kw_only=True)
class Worker:
    """Who comes, as the platform says.

    Attributes:
        platform_id: the platform's id of the worker; 1 to 255 characters.
        session_id: its id of this assignment (`assignmentId`, `SESSION_ID`); empty where there is
            none.
        study: its id of the study (`hitId`, `STUDY_ID`); empty where there is none.
        submit_to: where Mechanical Turk wants the form at the end (`turkSubmitTo`), as it came: the
            page has to check it.
        signed: whether the link was signed for this worker, so that nobody else can have sent it.
        origin: what stands for the network that the worker comes from; "" where it is not known.
    """

    platform_id: str
    session_id: str = ""
    study: str = ""
    submit_to: str = ""
    signed: bool = False
    origin: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignment:
    """An assignment as it is now.

    Attributes:
        id: its number.
        task: the task's id.
        batch: the task's batch.
        pseudonym: of the worker.
        state: see `State`.
        open: whether answers are taken: it is under way, or expired and nobody else was given the
            task.
        items: how many there are.
        answered: how many have an answer, with or without a preference.
        first_open: position of the first without one, from 1; `None` where all have one.
        lease_until: until when the task stays the worker's without a further answer.
        owed: what the worker is owed now, in hundredths.
        barred: this worker gets no later task.
        settings: the terms that were agreed to.
        worker: who it is for the platform, as of the first visit, without `signed` and `origin`.
    """

    id: int
    task: str
    batch: int
    pseudonym: str
    state: State
    open: bool
    items: int
    answered: int
    first_open: int | None
    lease_until: datetime
    owed: Money
    barred: bool
    settings: Settings
    worker: Worker


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskPassage:
    """A passage as it is shown.

    Attributes:
        doc: its id, never shown to a judge.
        text: as the collection has it: it may hold anything.
    """

    doc: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """An item as it is shown, the same at every refresh.

    Attributes:
        assignment: whose.
        position: from 1.
        query: text of the query.
        passages: A and B; or all of the query, in the order shown.
        given: the answer that stands, without `by` and `active_ms`; `None` before there is one.
        revision: 1 for the first answer to the item, one more with every change; 0 before one.
    """

    assignment: Assignment
    position: int
    query: str
    passages: tuple[TaskPassage, ...]
    given: Choice | None
    revision: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """What became of an answer.

    Attributes:
        outcome: see `Outcome`.
        shown: the item as it stands afterwards.
    """

    outcome: Outcome
    shown: Shown


def get_assignment(database: Database, number: int) -> Assignment:
    """An assignment as it is now; reads only.

    Raises:
        DatabaseError: code `unknown-assignment`; see `ErrorCode`.
    """
    return database.read(lambda connection: read_assignment(connection, number))


def item(database: Database, number: int, position: int) -> Shown | None:
    """An item as it is shown, also when the assignment has ended; reads only.

    Args:
        database: of the campaign.
        number: of the assignment.
        position: from 1.

    Returns:
        `None` where the task has no such position.

    Raises:
        DatabaseError: code `unknown-assignment`; see `ErrorCode`.
    """
    return database.read(lambda connection: _read_shown(connection, number, position))


def answer(
    database: Database,
    number: int,
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
        number: of the assignment.
        position: from 1.
        choice: what was chosen.
        replaces: revision of the answer that the page showed; 0 where it showed none.
        shown_at: when the page left the server.
        now: the time.

    Returns:
        `None` where the task has no such position.

    Raises:
        DatabaseError: code `unknown-assignment`; see `ErrorCode`.
    """

    def work(connection: sa.Connection) -> Answered | None:
        lock_assignment(connection, number)
        shown = _read_shown(connection, number, position)
        if shown is None:
            return None
        outcome = _weigh(shown, choice, replaces)
        if outcome == "recorded":
            row = {
                "assignment": number,
                "task": _task_of(number),
                "position": position,
                "revision": shown.revision + 1,
                "shown_at": shown_at,
                "answered_at": now,
                **asdict(choice),
            }
            connection.execute(sa.insert(t.judgments).values(row))
        if shown.assignment.open and outcome in ("recorded", "repeated"):
            prolong(connection, shown.assignment, now=now)
        after = _read_shown(connection, number, position)
        return Answered(outcome=outcome, shown=after or shown)

    return database.write(work)


def resume(database: Database, number: int, *, now: datetime) -> Assignment:
    """Lengthen the lease where the assignment is open; else change nothing.

    Raises:
        DatabaseError: code `unknown-assignment`; see `ErrorCode`.
    """
    return _change(database, number, lambda connection, found: prolong(connection, found, now=now))


def submit(database: Database, number: int, *, now: datetime) -> Assignment:
    """Finish a task in which every item has an answer; else change nothing (see `first_open`).

    Failed tests bar the worker, and the task waits for another one.

    Raises:
        DatabaseError: code `unknown-assignment`; see `ErrorCode`.
    """

    def finish(connection: sa.Connection, found: Assignment) -> None:
        if found.first_open is None:
            end(connection, number, "submitted", found.settings, now=now)

    return _change(database, number, finish)


def exit_assignment(database: Database, number: int, *, now: datetime) -> Assignment:
    """Stop where the assignment is open; else change nothing. The task waits for another worker.

    Raises:
        DatabaseError: code `unknown-assignment`; see `ErrorCode`.
    """
    return _change(
        database,
        number,
        lambda connection, found: end(connection, number, "exited", found.settings, now=now),
    )


def _change(
    database: Database, number: int, change: Callable[[sa.Connection, Assignment], None]
) -> Assignment:
    """Change an assignment if it is open."""

    def work(connection: sa.Connection) -> Assignment:
        lock_assignment(connection, number)
        found = read_assignment(connection, number)
        if found.open:
            change(connection, found)
        return read_assignment(connection, number)

    return database.write(work)


def ended_at(database: Database, worker: Worker) -> int | None:
    """The assignment that a worker has submitted or exited at this place; reads only.

    A place is a platform's own assignment: each is paid once, and so holds one task.

    Args:
        database: of the campaign.
        worker: who comes, and where.

    Returns:
        The latest; `None` where there is none, and where the platform names no places.

    Raises:
        DatabaseError: see `ErrorCode`.
    """
    if not worker.session_id:
        return None
    ended = (t.assignments.c.place == worker.session_id) & t.assignments.c.state.in_(_ENDED)
    latest = _latest(worker.platform_id, ended)
    found: int | None = database.read(lambda connection: connection.scalar(latest))
    return found


def last_ended(database: Database, platform_id: str) -> Assignment | None:
    """The latest assignment of a worker that takes no answers any more; reads only.

    Returns:
        `None` where there is none.

    Raises:
        DatabaseError: see `ErrorCode`.
    """
    closed = (t.assignments.c.state == "expired") & t.assignments.c.failed.is_not(None)
    latest = _latest(platform_id, sa.or_(t.assignments.c.state.in_(_ENDED), closed))

    def find(connection: sa.Connection) -> Assignment | None:
        found = connection.scalar(latest)
        return None if found is None else read_assignment(connection, found)

    return database.read(find)


def _latest(platform_id: str, wanted: sa.ColumnElement[bool]) -> sa.Select[Any]:
    return (
        sa.select(t.assignments.c.id)
        .join(t.workers, t.workers.c.id == t.assignments.c.worker)
        .where(t.workers.c.platform_id == platform_id, wanted)
        .order_by(t.assignments.c.id.desc())
        .limit(1)
    )


def lock_assignment(connection: sa.Connection, number: int) -> None:
    """Let nobody else change it until the transaction ends.

    What is locked is its task: nothing changes an assignment without that lock.
    """
    of_it = sa.select(t.tasks.c.task).where(t.tasks.c.task == _task_of(number))
    connection.execute(of_it.with_for_update())


def _task_of(number: int) -> sa.ScalarSelect[Any]:
    return sa.select(t.assignments.c.task).where(t.assignments.c.id == number).scalar_subquery()


# Written once: to write them costs as much as to run them, and every page does.

_own = t.assignments.alias()
_worst = sa.select(sa.func.max(_own.c.failed)).where(_own.c.worker == t.assignments.c.worker)
_ASSIGNMENT = (
    sa.select(
        t.assignments,
        t.workers.c.platform_id,
        t.workers.c.pseudonym,
        *(t.batches.c.batch, t.batches.c.settings),
        _worst.scalar_subquery().label("worst"),
    )
    .join(t.workers, t.workers.c.id == t.assignments.c.worker)
    .join(t.tasks, t.tasks.c.task == t.assignments.c.task)
    .join(t.batches, t.batches.c.batch == t.tasks.c.batch)
    .where(t.assignments.c.id == sa.bindparam("assignment"))
)
_POSITIONS = (
    sa.select(t.items.c.position, sa.func.max(t.judgments.c.revision))
    .outerjoin(
        t.judgments,
        (t.judgments.c.assignment == sa.bindparam("assignment"))
        & (t.judgments.c.position == t.items.c.position),
    )
    .where(t.items.c.task == sa.bindparam("task"))
    .group_by(t.items.c.position)
    .order_by(t.items.c.position)
)
_left, _right = t.passages.alias(), t.passages.alias()
_ITEM = (
    sa.select(
        t.items.c.left,
        t.items.c.right,
        t.queries.c.text.label("query"),
        _left.c.text.label("left_text"),
        _right.c.text.label("right_text"),
        t.items.c.query.label("asked"),
        *(t.judgments.c[name] for name in ("revision", "side", "reason", "ticked")),
    )
    .join(t.assignments, t.assignments.c.task == t.items.c.task)
    .join(t.queries, t.queries.c.query == t.items.c.query)
    .outerjoin(_left, _left.c.doc == t.items.c.left)
    .outerjoin(_right, _right.c.doc == t.items.c.right)
    .outerjoin(t.judgments, (t.judgments.c.assignment == t.assignments.c.id) & t.OF_ITEM & t.NEWEST)
    .where(t.assignments.c.id == sa.bindparam("assignment"))
    .where(t.items.c.position == sa.bindparam("position"))
)


def read_assignment(connection: sa.Connection, number: int) -> Assignment:
    """As `get_assignment`, within a transaction."""
    row = connection.execute(_ASSIGNMENT, {"assignment": number}).one_or_none()
    if row is None:
        raise DatabaseError("unknown-assignment", "there is no such assignment here")
    newest = connection.execute(_POSITIONS, {"assignment": number, "task": row.task}).all()
    missing = [position for position, revision in newest if revision is None]
    answered = len(newest) - len(missing)
    settings = msgspec.json.decode(row.settings, type=Settings)
    failed = 0 if settings.pay_failed else row.failed
    if failed is None:
        failed = _count_failed(connection, number)
    return Assignment(
        id=number,
        task=row.task,
        batch=row.batch,
        pseudonym=row.pseudonym,
        state=row.state,
        open=row.state == "consented" or (row.state == "expired" and row.failed is None),
        items=len(newest),
        answered=answered,
        first_open=missing[0] if missing else None,
        lease_until=row.lease_until,
        owed=owed_for(settings, failed, answered=answered, items=len(newest)),
        barred=(row.worst or 0) >= settings.failures,
        settings=settings,
        worker=Worker(
            platform_id=row.platform_id,
            session_id=row.place,
            study=row.study,
            submit_to=row.submit_to,
        ),
    )


def _read_shown(connection: sa.Connection, number: int, position: int) -> Shown | None:
    assignment = read_assignment(connection, number)
    if not 1 <= position <= assignment.items:
        return None
    row = connection.execute(_ITEM, {"assignment": number, "position": position}).one()
    given = None
    if row.revision is not None:
        given = Choice(side=row.side, reason=row.reason, ticked=tuple(row.ticked))
    texts: Iterable[tuple[str, str]] = (row.left, row.left_text), (row.right, row.right_text)
    if row.left is None:
        of_query = t.question_passages.c
        found = (
            sa.select(t.passages.c.doc, t.passages.c.text)
            .join(t.question_passages, of_query.doc == t.passages.c.doc)
            .where(of_query.query == row.asked)
            .order_by(of_query.position)
        )
        texts = [(doc, text) for doc, text in connection.execute(found)]
    return Shown(
        assignment=assignment,
        position=position,
        query=row.query,
        passages=tuple(TaskPassage(doc=doc, text=text) for doc, text in texts),
        given=given,
        revision=row.revision or 0,
    )


def _count_failed(connection: sa.Connection, number: int) -> int:
    """Tests of an assignment whose answer, as it stands, is not the known one."""
    given = t.read_judgments(connection, t.judgments.c.assignment == number)
    return sum(failed_tests(given).values())


def _weigh(shown: Shown, choice: Choice, replaces: int) -> Outcome:
    """Return what becomes of an answer to an item as it stands."""
    stands = shown.given == replace(choice, by=None, active_ms=None)
    if not shown.assignment.open:
        return "repeated" if stands else "ended"
    first_open = shown.assignment.first_open
    if first_open is not None and shown.position > first_open:
        return "ahead"
    if stands:
        return "repeated"
    return "recorded" if replaces == shown.revision else "stale"


def owed_for(settings: Settings, failed: int, *, answered: int, items: int) -> Money:
    """Return what is owed for an assignment: the share that is answered, however it ends.

    With failed tests it is paid where `pay_failed` says so; to stop before the end changes nothing.

    Args:
        settings: its terms.
        failed: tests whose answer, as it stands, is not the known one.
        answered: how many items have an answer.
        items: how many there are.
    """
    if failed >= settings.failures and not settings.pay_failed:
        return 0
    return amount_owed(reward=settings.reward, answered=answered, items=items)


def is_barred(connection: sa.Connection, worker: int, settings: Settings) -> bool:
    """Check whether a worker failed the tests of a task, so that there is no later one."""
    failed = t.assignments.c.failed >= settings.failures
    found = sa.select(sa.exists().where(t.assignments.c.worker == worker, failed))
    return bool(connection.execute(found).scalar_one())


def end(
    connection: sa.Connection,
    number: int,
    state: Literal["submitted", "exited", "expired"],
    settings: Settings,
    *,
    now: datetime,
) -> None:
    """End an assignment: the task is done, or waits for another worker.

    Args:
        connection: of a transaction that holds its lock.
        number: of the assignment.
        state: how it ends.
        settings: its terms.
        now: the time.
    """
    failed = _count_failed(connection, number)
    excluded = failed >= settings.failures
    final = excluded or state != "expired"
    row = sa.update(t.assignments).where(t.assignments.c.id == number)
    connection.execute(row.values(state=state, ended_at=now, failed=failed if final else None))
    done = state == "submitted" and not excluded
    task = sa.update(t.tasks).where(t.tasks.c.task == _task_of(number))
    connection.execute(task.values(state="done" if done else "void"))
    t.log_event(connection, state, at=now, assignment=number)
    if not excluded:
        return
    t.log_event(connection, "excluded", at=now, assignment=number, text=f"{failed} tests failed")
    if settings.excludes == "worker":  # all that was done counts no more, and waits for others
        worker = (
            sa.select(t.assignments.c.worker).where(t.assignments.c.id == number).scalar_subquery()
        )
        of_worker = sa.select(t.assignments.c.task).where(t.assignments.c.worker == worker)
        finished = sa.update(t.tasks).where(
            t.tasks.c.task.in_(of_worker), t.tasks.c.state == "done"
        )
        connection.execute(finished.values(state="void"))


def end_lapsed(connection: sa.Connection, *, now: datetime) -> int:
    """End every assignment whose lease is over; those that somebody is busy with are passed over.

    Returns:
        How many there were.
    """
    rows = connection.execute(
        sa.select(t.assignments.c.id, t.batches.c.settings)
        .join(t.tasks, t.tasks.c.task == t.assignments.c.task)
        .join(t.batches, t.batches.c.batch == t.tasks.c.batch)
        .where(t.assignments.c.state == "consented", t.assignments.c.lease_until < now)
        .order_by(t.assignments.c.id)
        .with_for_update(skip_locked=True, of=(t.assignments, t.tasks))
    ).all()
    for row in rows:
        settings = msgspec.json.decode(row.settings, type=Settings)
        end(connection, row.id, "expired", settings, now=now)
    return len(rows)


def close_expired(connection: sa.Connection, task: str, *, now: datetime) -> None:
    """Another worker is given the task: if it expired, it can no longer go on.

    Args:
        connection: of a transaction that holds the task's lock.
        task: its id.
        now: the time.
    """
    row = sa.select(t.assignments.c.id, t.assignments.c.failed).where(t.assignments.c.task == task)
    found = connection.execute(row).one()
    if found.failed is None:
        failed = _count_failed(connection, found.id)
        closed = sa.update(t.assignments).where(t.assignments.c.id == found.id)
        connection.execute(closed.values(failed=failed))
    t.log_event(connection, "copied", at=now, assignment=found.id)


def prolong(connection: sa.Connection, found: Assignment, *, now: datetime) -> None:
    """Lengthen the lease; an expired assignment is under way again.

    Args:
        connection: of a transaction that holds the assignment's lock.
        found: the assignment, which is open.
        now: the time.
    """
    until = max(found.lease_until, now + timedelta(minutes=found.settings.lease_minutes))
    row = sa.update(t.assignments).where(t.assignments.c.id == found.id)
    connection.execute(row.values(lease_until=until, state="consented", ended_at=None))
    if found.state == "expired":
        task = sa.update(t.tasks).where(t.tasks.c.task == _task_of(found.id))
        connection.execute(task.values(state="held"))
        t.log_event(connection, "resumed", at=now, assignment=found.id)
