"""Jobs that take long, in a table and with leases: no broker.

A job is claimed for the length of its lease. Who still works renews it; a lease that ends is taken
by another worker. Each claim has a number (`Job.attempt`), and only the newest may renew, finish or
fail the job, so that a worker that was away too long overwrites nothing. What a job does outside
of the database may so be done twice and has to bear it; what it writes into the database is in one
transaction with its end, and is written once.

Workers are threads of `heldout serve`: decision 30. Their machines' clocks have to agree to within
a few seconds.
"""

import json
import logging
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Literal

from sqlalchemy import Connection, Row, delete, func, insert, select, update

from heldout.database.database import Database
from heldout.database.errors import DatabaseError
from heldout.errors import InputError
from heldout.intake.tables import jobs

JobState = Literal["waiting", "leased", "done", "failed"]

MOST_ATTEMPTS = 20
"""How often a job is begun at most, unless it says otherwise."""

_LONGEST_PAUSE = timedelta(minutes=10)
_LOG = logging.getLogger("heldout.intake")


class LeaseLostError(Exception):
    """Another worker has the job by now, or it has ended: nothing of this attempt is written."""


class JobLaterError(Exception):
    """The job cannot be done yet, for no fault of its own: it is begun again, as often as needed.

    Args:
        why: what it waits for.
        after: how long until the next attempt.
    """

    def __init__(self, why: str, *, after: timedelta) -> None:
        self.why, self.after = why, after
        super().__init__(why)


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A job that was claimed.

    Attributes:
        id: of the row.
        kind: what to do.
        key: what it is about; a kind has one job of each key.
        payload: JSON value with what the job needs.
        attempt: number of the claim, from 1 on.
    """

    id: int
    kind: str
    key: str
    payload: Any
    attempt: int


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRecord:
    """A job as it lies in the table.

    Attributes:
        kind: what it does.
        key: what it is about.
        state: how far it is.
        attempts: how often it was begun.
        due: when it may begin, or when its lease ends; UTC.
        created: when it was added.
        ended: when it was done or failed; `None` before.
        result: JSON value; `None` before it is done.
        why: of the last failure; "" for none.
    """

    kind: str
    key: str
    state: JobState
    attempts: int
    due: datetime
    created: datetime
    ended: datetime | None
    result: Any
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """What an attempt came to.

    Attributes:
        write: writes what it found, in the transaction that ends the job; returns its result, a
            JSON value.
        after: what remains once that is committed; a kill may leave it undone.
    """

    write: Callable[[Connection], Any] = field(default=lambda _: None)
    after: Callable[[], None] = field(default=lambda: None)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobKind:
    """How jobs of a kind are done.

    Attributes:
        name: of the kind.
        work: does the job; gets it and a function that renews its lease, to be called again and
            again while the work goes on. Raises `InputError` where it fails for good,
            `JobLaterError` where it has to wait; after anything else it is tried again later.
        give_up: writes what follows where the job has failed for good; gets the job, the code of
            the problem ("job-failed" for none of its own) and the reason.
        lease: how long a claim holds.
    """

    name: str
    work: Callable[[Job, Callable[[], None]], Done]
    give_up: Callable[[Connection, Job, str, str], None] = field(default=lambda *_: None)
    lease: timedelta = timedelta(minutes=1)


def add_job(
    connection: Connection,
    kind: str,
    key: str,
    payload: Any = None,
    *,
    now: datetime,
    most: int = MOST_ATTEMPTS,
) -> bool:
    """Add a job, in the transaction of what asks for it.

    Args:
        connection: of a transaction.
        kind: name of a `JobKind`.
        key: what it is about.
        payload: JSON value.
        now: the time, UTC; it may begin at once.
        most: how often it is begun at most.

    Returns:
        Whether it is new: a kind has one job of each key.
    """
    there = select(jobs.c.id).where(jobs.c.kind == kind, jobs.c.key == key)
    if connection.execute(there).first() is not None:
        return False
    row: dict[str, Any] = {
        "kind": kind,
        "key": key,
        "payload": json.dumps(payload),
        "state": "waiting",
    }
    row |= {"attempts": 0, "most": most, "result": "null", "why": ""}
    connection.execute(insert(jobs).values(**row, due_at=now, created_at=now))
    return True


def claim_job(database: Database, kinds: Collection[JobKind], *, now: datetime) -> Job | None:
    """Claim the job that has been due for longest; `None` where none is.

    One that was begun as often as it may be, and whose lease has ended again, fails.

    Args:
        database: open.
        kinds: that the caller can do.
        now: the time, UTC.

    Raises:
        DatabaseError: see `ErrorCode`.
    """
    known = {kind.name: kind for kind in kinds}
    due = (
        select(jobs)
        .where(jobs.c.state.in_(("waiting", "leased")), jobs.c.due_at <= now)
        .where(jobs.c.kind.in_(known))
        .order_by(jobs.c.due_at, jobs.c.id)
        .limit(1)
    )

    def claim(connection: Connection) -> tuple[Job, bool] | None:
        row = connection.execute(due.with_for_update(skip_locked=True)).first()
        if row is None:
            return None
        if row.attempts >= row.most:
            why = row.why or f"its worker ended or was too slow {row.attempts} times"
            _end(connection, _job(row), now=now, state="failed", why=why)
            known[row.kind].give_up(connection, _job(row), "job-failed", why)
            return _job(row), False
        values = {"state": "leased", "attempts": row.attempts + 1}
        values |= {"due_at": now + known[row.kind].lease}
        connection.execute(update(jobs).where(jobs.c.id == row.id).values(values))
        return _job(row, attempt=row.attempts + 1), True

    while database.read(lambda connection: connection.execute(due).first()) is not None:
        claimed = database.write(claim)
        if claimed is None:
            return None
        job, mine = claimed
        if mine:
            return job
    return None


def renew_job(database: Database, job: Job, *, until: datetime) -> None:
    """Hold on to a job.

    Raises:
        LeaseLostError: another worker has it.
        DatabaseError: see `ErrorCode`.
    """
    database.write(lambda connection: _change(connection, job, due_at=until))


def finish_job(
    database: Database, job: Job, write: Callable[[Connection], Any], *, now: datetime
) -> None:
    """End a job, together with what it writes.

    Args:
        database: open.
        job: as claimed.
        write: writes it; returns the result, a JSON value.
        now: the time, UTC.

    Raises:
        LeaseLostError: another worker has it; nothing is written.
        DatabaseError: see `ErrorCode`.
    """

    def end(connection: Connection) -> None:
        _end(connection, job, now=now, state="done", why="")  # the lease first: it locks the row
        result = json.dumps(write(connection))
        connection.execute(update(jobs).where(jobs.c.id == job.id).values(result=result))

    database.write(end)


def fail_job(
    database: Database, kind: JobKind, job: Job, error: Exception, *, now: datetime
) -> None:
    """Write why an attempt failed: for good, or until it is tried again.

    Raises:
        LeaseLostError: another worker has it; nothing is written.
        DatabaseError: see `ErrorCode`.
    """
    if isinstance(error, JobLaterError):
        values = {"state": "waiting", "due_at": now + error.after, "why": error.why}
        values |= {"most": jobs.c.most + 1}  # such an attempt does not count
        database.write(lambda connection: _change(connection, job, **values))
        return
    final = isinstance(error, InputError)
    code = error.code if isinstance(error, InputError) else "job-failed"
    why = str(error) if final else f"{type(error).__name__}: {error}"

    def note(connection: Connection) -> None:
        most = connection.execute(select(jobs.c.most).where(jobs.c.id == job.id)).scalar_one()
        if final or job.attempt >= most:
            _end(connection, job, now=now, state="failed", why=why)
            kind.give_up(connection, job, code, why)
            return
        pause = min(_LONGEST_PAUSE, timedelta(seconds=2 ** min(job.attempt, 16)))
        _change(connection, job, state="waiting", due_at=now + pause, why=why)

    database.write(note)


def remove_jobs(connection: Connection, *, before: datetime) -> int:
    """Remove jobs that were done or failed before some time; gives their number."""
    ended = jobs.c.state.in_(("done", "failed")), jobs.c.ended_at < before
    return connection.execute(delete(jobs).where(*ended)).rowcount


def list_jobs(database: Database, *, kind: str | None = None) -> tuple[JobRecord, ...]:
    """All jobs, or those of a kind, in the order in which they were added.

    Raises:
        DatabaseError: see `ErrorCode`.
    """
    wanted = [] if kind is None else [jobs.c.kind == kind]
    rows = database.read(
        lambda connection: connection.execute(select(jobs).where(*wanted).order_by(jobs.c.id)).all()
    )
    return tuple(_record(row) for row in rows)


def count_jobs(database: Database) -> Mapping[tuple[str, JobState], int]:
    """How many jobs there are, by kind and state.

    Raises:
        DatabaseError: see `ErrorCode`.
    """
    counts = select(jobs.c.kind, jobs.c.state, func.count()).group_by(jobs.c.kind, jobs.c.state)
    rows = database.read(lambda connection: connection.execute(counts).all())
    return {(kind, state): count for kind, state, count in rows}


@dataclass(frozen=True, slots=True, kw_only=True)
class Worker:
    """Does jobs one after the other, in a thread or a process of its own.

    Attributes:
        database: open.
        kinds: what it can do.
        clock: the time, UTC.
        idle: called after each job, and about once a second while there is none; it is quick.
    """

    database: Database
    kinds: Sequence[JobKind]
    clock: Callable[[], datetime]
    idle: Callable[[], None] = field(default=lambda: None)

    def run_one(self, *only: str) -> bool:
        """Do one job; `False` where none is due.

        Args:
            only: names of the kinds to do; none for all. Who answers a request sends no mail.

        Raises:
            DatabaseError: see `ErrorCode`. The job is done again when its lease has ended.
        """
        kinds = [kind for kind in self.kinds if not only or kind.name in only]
        job = claim_job(self.database, kinds, now=self.clock())
        if job is None:
            return False
        kind = next(kind for kind in self.kinds if kind.name == job.kind)

        def keep() -> None:
            renew_job(self.database, job, until=self.clock() + kind.lease)

        try:
            done = kind.work(job, keep)
            finish_job(self.database, job, done.write, now=self.clock())
        except LeaseLostError:
            _LOG.warning("%s %s: another worker has it by now", job.kind, job.key)
            return True
        except DatabaseError:
            raise
        except Exception as error:  # noqa: BLE001 - a job that fails must not end its worker
            expected = isinstance(error, InputError | JobLaterError)
            _LOG.warning("%s %s: %s", job.kind, job.key, error, exc_info=not expected)
            try:
                fail_job(self.database, kind, job, error, now=self.clock())
            except LeaseLostError:
                _LOG.warning("%s %s: another worker has it by now", job.kind, job.key)
            return True
        done.after()
        return True

    def run(self, stop: threading.Event, *, pause: float = 1.0) -> None:
        """Do jobs until it is stopped.

        Args:
            stop: set to end it, after the job that it does.
            pause: seconds between two looks where there is nothing to do.
        """
        while not stop.is_set():
            try:
                busy = self.run_one()
                self.idle()
                if busy:
                    continue
            except DatabaseError as error:
                _LOG.warning("jobs wait: %s", error)
            except Exception:  # noqa: BLE001 - a bug that one job meets must not end the worker
                _LOG.exception("jobs wait")
            stop.wait(pause)


def _change(connection: Connection, job: Job, **values: Any) -> None:
    held = (jobs.c.id == job.id, jobs.c.state == "leased", jobs.c.attempts == job.attempt)
    if connection.execute(update(jobs).where(*held).values(**values)).rowcount != 1:
        raise LeaseLostError(job.key)


def _end(connection: Connection, job: Job, *, now: datetime, state: JobState, why: str) -> None:
    _change(connection, job, state=state, ended_at=now, why=why)


def _job(row: Row[Any], *, attempt: int | None = None) -> Job:
    return Job(
        id=row.id,
        kind=row.kind,
        key=row.key,
        payload=json.loads(row.payload),
        attempt=row.attempts if attempt is None else attempt,
    )


def _record(row: Row[Any]) -> JobRecord:
    return JobRecord(
        kind=row.kind,
        key=row.key,
        state=row.state,
        attempts=row.attempts,
        due=row.due_at,
        created=row.created_at,
        ended=row.ended_at,
        result=json.loads(row.result) if row.state == "done" else None,
        why=row.why,
    )
