"""Tasks are handed out: each to one worker, no pair twice to the same one.

Each function is one transaction. On PostgreSQL a task that somebody is taking is passed over, on
SQLite whoever comes second waits: never is one handed out twice.
"""

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Literal

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from heldout.database.database import Database
from heldout.database.errors import DatabaseError
from heldout.errors import InputError, quote
from heldout.judging.campaign.settings import Settings
from heldout.judging.database import assignments, campaigns, organiser
from heldout.judging.database import tables as t

_ORIGINS = ("session_id", "study", "submit_to", "origin")
_LONGEST_ORIGIN = 1_000
_WAITING = ("open", "void")
_MOST_IDLE = 5
"""Tasks without an answer that unsigned ids of one network may hold, however few are free."""

_IDLE_SHARE = 4
"""Beyond that they may hold a quarter as many as are free."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """What a worker would consent to.

    Attributes:
        batch: of the task; `claim` is given the one that was shown.
        settings: the terms of this batch.
        items: how many pages the task has.
        assignment: the one under way, which this worker may continue; else `None`.
    """

    batch: int
    settings: Settings
    items: int
    assignment: int | None = None


_Reason = Literal["barred", "changed", "waiting", "seen", "done", "paused", "elsewhere"]


@dataclass(frozen=True, slots=True, kw_only=True)
class NoTask:
    """There is no task for this worker.

    Attributes:
        why: `barred`: failed the tests of an earlier task. `changed`: there are tasks, but not of
            the batch that was agreed to: show the new terms. `waiting`: others hold the last ones,
            or this network holds many without an answer; one may come free. `seen`: what is left
            are pairs this worker has judged. `done`: everything is judged. `paused`: the organiser
            has paused the campaign, or tasks that do not count have earned as much as they may, and
            more of this worker's, or from this network, do not count than count; who has a task
            goes on with it. `elsewhere`: the worker has a task with answers, and who comes cannot
            show that it is theirs.
        settings: of the newest batch.
    """

    why: _Reason
    settings: Settings


def offer(
    database: Database, worker: assignments.Worker | None, *, now: datetime
) -> Offer | NoTask:
    """Return what a worker would consent to; reads only.

    Args:
        database: of the campaign.
        worker: who it is; `None`, or an id that `claim` refuses: somebody who only looks.
        now: the time.

    Raises:
        DatabaseError: code `database-empty`: no batch was loaded yet; see `ErrorCode`.
    """
    known = _clean_origin(worker or assignments.Worker(platform_id=""))
    if not _is_usable(known.platform_id):
        known = replace(known, platform_id="")

    def read(connection: sa.Connection) -> Offer | NoTask:
        judge = connection.scalar(_select_worker(known)) or 0
        return _Visit(connection, known, judge, _read_terms(connection), now).offer()

    return database.read(read)


def claim(
    database: Database, worker: assignments.Worker, *, batch: int, now: datetime
) -> assignments.Assignment | NoTask:
    """Give a worker who consented a task; the one under way where this worker may continue it.

    A task with answers stays with the platform's assignment, or the link, that it was begun with:
    an id alone is known to others, who could otherwise be paid for the answers of its owner.

    Args:
        database: of the campaign.
        worker: who it is.
        batch: whose terms were agreed to.
        now: the time.

    Raises:
        InputError: code `worker-id`: empty, unprintable, or longer than 255 characters.
        DatabaseError: see `offer`.
    """
    if not _is_usable(worker.platform_id):
        found, most = quote(worker.platform_id), assignments.LONGEST_WORKER
        raise InputError.of("worker-id", "worker", found, most=most)

    def write(connection: sa.Connection) -> assignments.Assignment | NoTask:
        terms = _read_terms(connection)
        judge = _register(connection, worker, now)
        return _Visit(connection, _clean_origin(worker), judge, terms, now).claim(batch)

    return database.write(write)


def _is_usable(name: str) -> bool:
    return 0 < len(name) <= assignments.LONGEST_WORKER and name.isprintable()


def _read_terms(connection: sa.Connection) -> Mapping[int, Settings]:
    terms = campaigns.read_settings(connection)
    if not terms:
        raise DatabaseError(
            "database-empty", "the campaign has no task yet; `heldout prefer tasks` makes them"
        )
    return terms


def _select_worker(worker: assignments.Worker) -> sa.Select[Any]:
    return sa.select(t.workers.c.id).where(t.workers.c.platform_id == worker.platform_id)


def _register(connection: sa.Connection, worker: assignments.Worker, now: datetime) -> int:
    """The worker's id; until the transaction ends the same worker gets no second task."""
    row = {"platform_id": worker.platform_id, "pseudonym": secrets.token_hex(8), "first_seen": now}
    engine = postgresql if connection.dialect.name == "postgresql" else sqlite
    new = (
        engine.insert(t.workers).values(row).on_conflict_do_nothing(index_elements=["platform_id"])
    )
    connection.execute(new)
    return int(connection.execute(_select_worker(worker).with_for_update()).scalar_one())


@dataclass(frozen=True, slots=True)
class _Visit:
    """A worker comes, within a transaction; `judge` is the worker's number, 0 before the first."""

    connection: sa.Connection
    worker: assignments.Worker
    judge: int
    terms: Mapping[int, Settings]
    now: datetime

    @property
    def _newest(self) -> Settings:
        return self.terms[max(self.terms)]

    def offer(self) -> Offer | NoTask:
        number = self._find_under_way()
        if number is not None:
            found = assignments.read_assignment(self.connection, number)
            if self._may_continue(found):
                batch, settings = found.batch, found.settings
                return Offer(batch=batch, settings=settings, items=found.items, assignment=number)
            if self._is_held(found):
                return self._none("elsewhere")
        if (why := self._find_refusal()) is not None:
            return self._none(why)
        task = self._find_task(self._waiting_or_lapsed())
        if task is None:
            return self._explain(None)
        size = sa.select(sa.func.count()).select_from(t.items).where(t.items.c.task == task.task)
        shown = int(self.connection.execute(size).scalar_one())
        return Offer(batch=task.batch, settings=self.terms[task.batch], items=shown)

    def claim(self, batch: int) -> assignments.Assignment | NoTask:
        closed = self._is_closed()
        again = self._come_back(closed=closed)
        if again is not None:
            return again
        if self._is_barred():
            return self._none("barred")
        if closed:
            return self._none("paused")
        if self._has_its_share():
            return self._none("waiting")
        assignments.end_lapsed(self.connection, now=self.now)
        task = self._take_task(batch) if batch in self.terms else None
        if task is None:
            return self._explain(batch if batch in self.terms else 0)
        name = task.task
        if task.state == "void":
            assignments.close_expired(self.connection, name, now=self.now)
            name = t.add_copy(self.connection, name, same_sides=self.terms[batch].judges % 2 == 0)
        return self._assign(name, self.terms[batch])

    def _none(self, why: _Reason) -> NoTask:
        return NoTask(why=why, settings=self._newest)

    def _find_refusal(self) -> _Reason | None:
        """Find why this worker gets no new task, whichever are free; `None` for no reason."""
        if self._is_barred():
            return "barred"
        if self._is_closed():
            return "paused"
        return "waiting" if self._has_its_share() else None

    def _is_barred(self) -> bool:
        return assignments.is_barred(self.connection, self.judge, self._newest)

    def _is_closed(self) -> bool:
        """Check whether this worker gets no new task: paused, or too much paid for void ones.

        Where too much was paid, a worker is judged by the tasks of their own if some count; else,
        where the link was not signed, by all from the same network, as ids can be made up. So
        nobody is kept out by what others do elsewhere, and each network can add one reward more
        than its tasks that count earned.
        """
        if organiser.read_launch(self.connection) == "paused":
            return True
        pay = organiser.read_uncounted_pay(self.connection, self.terms)
        if not pay.is_spent:
            return False
        counted, other = self._count_tasks(t.assignments.c.worker == self.judge)
        if not counted:
            if pay.is_over or not (self.worker.signed or self.worker.origin):
                return True
            if not self.worker.signed:
                same = t.assignments.c.origin == self.worker.origin
                counted, other = self._count_tasks(same)
        return other > counted

    def _has_its_share(self) -> bool:
        """Tell whether this worker's network holds its share of tasks without an answer.

        Ids can be made up, and each could hold a task until its lease ends. Who came by a signed
        link or has a task that counts is given one all the same.
        """
        if self.worker.signed or not self.worker.origin:
            return False
        answered = sa.exists().where(t.judgments.c.assignment == t.assignments.c.id)
        held = sa.select(sa.func.count()).where(
            t.assignments.c.origin == self.worker.origin,
            t.assignments.c.state == "consented",
            t.assignments.c.lease_until >= self.now,
            ~answered,
        )
        free = sa.select(sa.func.count()).where(t.tasks.c.state.in_(_WAITING))
        idle = self.connection.scalar(held) or 0
        if idle < max(_MOST_IDLE, (self.connection.scalar(free) or 0) // _IDLE_SHARE):
            return False
        return not self._count_tasks(t.assignments.c.worker == self.judge)[0]

    def _count_tasks(self, which: sa.ColumnElement[bool]) -> tuple[int, int]:
        """Tasks of some assignments that count, and those under way or that earned and do not."""
        answered = sa.exists().where(t.judgments.c.assignment == t.assignments.c.id)
        other = (t.tasks.c.state == "held") | (t.tasks.c.state.in_(("void", "replaced")) & answered)
        row = self.connection.execute(
            sa.select(
                sa.func.coalesce(sa.func.sum(sa.case((t.tasks.c.state == "done", 1), else_=0)), 0),
                sa.func.coalesce(sa.func.sum(sa.case((other, 1), else_=0)), 0),
            )
            .select_from(t.assignments)
            .join(t.tasks, t.tasks.c.task == t.assignments.c.task)
            .where(which)
        ).one()
        return int(row[0]), int(row[1])

    def _come_back(self, *, closed: bool) -> assignments.Assignment | NoTask | None:
        """The assignment that is under way; `None` where this worker may be given a new one.

        Without proof that it is the same worker, a task with answers waits until its lease ends;
        one without answers ends at once, so that whoever named the id first cannot keep its owner
        away.
        """
        number = self._find_under_way()
        if number is None:
            return None
        assignments.lock_assignment(self.connection, number)
        found = assignments.read_assignment(self.connection, number)
        if not found.open:
            return None
        if self._may_continue(found):
            assignments.prolong(self.connection, found, now=self.now)
            return assignments.read_assignment(self.connection, number)
        if self._is_held(found):
            return self._none("elsewhere")
        if self._is_barred() or closed:
            return None
        assignments.end(self.connection, number, "expired", found.settings, now=self.now)
        assignments.close_expired(self.connection, found.task, now=self.now)
        t.add_copy(self.connection, found.task, same_sides=found.settings.judges % 2 == 0)
        if not found.answered:  # nothing was judged: the same worker may be given the same pairs
            of_task = sa.select(t.items.c.pair).where(t.items.c.task == found.task)
            forget = sa.delete(t.seen).where(
                t.seen.c.worker == self.judge, t.seen.c.pair.in_(of_task)
            )
            self.connection.execute(forget)
        return None

    def _may_continue(self, found: assignments.Assignment) -> bool:
        """Check whether it can be nobody but the worker who began the task."""
        begun_at = found.worker.session_id
        same = self.worker.session_id == begun_at
        return same and bool(self.worker.signed or begun_at)

    def _is_held(self, found: assignments.Assignment) -> bool:
        """Check whether a task has answers, and its lease has not ended."""
        return found.lease_until >= self.now and found.answered > 0

    def _find_under_way(self) -> int | None:
        found = sa.select(t.assignments.c.id).where(
            t.assignments.c.worker == self.judge,
            t.assignments.c.state.in_(("consented", "expired")),
            t.assignments.c.failed.is_(None),
        )
        return self.connection.execute(found).scalar_one_or_none()

    def _take_task(self, batch: int) -> sa.Row[Any, Any, Any] | None:
        """A task that waits, locked: first of those that nobody is busy with, then of the others.

        The others are waited for: who is busy with one may be ending its lease, and not taking it.
        """
        of_batch = t.tasks.c.batch == batch
        free = self._find_task(t.tasks.c.state.in_(_WAITING), of_batch, lock="pass over")
        if free is not None:
            return free
        last = self._find_task(self._waiting_or_lapsed(), of_batch, lock="wait")
        return last if last is not None and last.state in _WAITING else None

    def _waiting_or_lapsed(self) -> sa.ColumnElement[bool]:
        lapsed = sa.exists().where(
            t.assignments.c.task == t.tasks.c.task,
            t.assignments.c.state == "consented",
            t.assignments.c.lease_until < self.now,
        )
        return sa.or_(t.tasks.c.state.in_(_WAITING), (t.tasks.c.state == "held") & lapsed)

    def _find_task(
        self, *wanted: sa.ColumnElement[bool], lock: Literal["pass over", "wait"] | None = None
    ) -> sa.Row[Any, Any, Any] | None:
        """The first task with pairs that are all new to the worker.

        Args:
            wanted: conditions on the task.
            lock: whether to lock it, and what to do about tasks that somebody else has locked.
        """
        met = (
            sa.select(t.items.c.task)
            .join(t.seen, t.seen.c.pair == t.items.c.pair)
            .where(t.items.c.task == t.tasks.c.task, t.seen.c.worker == self.judge)
            .exists()
        )
        found = (
            sa.select(t.tasks.c.task, t.tasks.c.batch, t.tasks.c.state)
            .where(*wanted, ~met)
            .order_by(t.tasks.c.batch, t.tasks.c.number)
            .limit(1)
        )
        if lock is not None:
            found = found.with_for_update(skip_locked=lock == "pass over", of=t.tasks)
        return self.connection.execute(found).one_or_none()

    def _explain(self, batch: int | None) -> NoTask:
        """Explain why there is no task, in this batch if one was agreed to."""
        waiting = t.tasks.c.state.in_(_WAITING)
        if batch is not None and self._find_task(waiting, t.tasks.c.batch != batch):
            return self._none("changed")
        unfinished = t.tasks.c.state.in_((*_WAITING, "held"))
        if self._find_task(unfinished) is not None:
            return self._none("waiting")
        left = self.connection.scalar(sa.select(sa.exists().where(unfinished)))
        return self._none("seen" if left else "done")

    def _assign(self, task: str, settings: Settings) -> assignments.Assignment:
        values: dict[str, object] = {"task": task, "worker": self.judge, "state": "consented"}
        values |= {"consent_version": settings.consent_version, "consented_at": self.now}
        values["lease_until"] = self.now + timedelta(minutes=settings.lease_minutes)
        values |= {name: getattr(self.worker, name) for name in _ORIGINS}
        values["place"] = values.pop("session_id")
        new = sa.insert(t.assignments).values(values).returning(t.assignments.c.id)
        number = int(self.connection.execute(new).scalar_one())
        given = sa.select(t.items.c.pair).where(t.items.c.task == task, t.items.c.pair.is_not(None))
        rows = [{"worker": self.judge, "pair": pair} for pair in self.connection.scalars(given)]
        if rows:
            self.connection.execute(sa.insert(t.seen), rows)
        self.connection.execute(
            sa.update(t.tasks).where(t.tasks.c.task == task).values(state="held")
        )
        text = settings.consent_version
        t.log_event(self.connection, "consented", at=self.now, assignment=number, text=text)
        return assignments.read_assignment(self.connection, number)


def _clean_origin(worker: assignments.Worker) -> assignments.Worker:
    """Make the texts on where a worker is and comes from such as a database can store."""
    found = {name: getattr(worker, name).encode(errors="replace") for name in _ORIGINS}
    texts = {name: text.decode().replace("\0", "") for name, text in found.items()}
    return replace(worker, **{name: text[:_LONGEST_ORIGIN] for name, text in texts.items()})
