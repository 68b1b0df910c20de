"""What the organiser looks at and takes out: assignments, workers, progress, judgments, the log."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import msgspec
from sqlalchemy import Connection, Row, and_, case, distinct, func, or_, select

from heldout.database.database import Database
from heldout.judging.campaign.judgments import Judgment
from heldout.judging.campaign.rows import State, Task, amount_owed
from heldout.judging.campaign.settings import Money, Settings
from heldout.judging.database import tables as t
from heldout.judging.database.assignments import owed_for
from heldout.judging.database.campaigns import read_settings
from heldout.judging.database.rows import NEWEST, OF_ITEM, read_judgments, read_tasks


@dataclass(frozen=True, slots=True, kw_only=True)
class AssignmentOverview:
    """An assignment.

    Attributes:
        assignment: its id.
        task: the task's id.
        batch: the task's batch.
        worker: the worker's pseudonym.
        platform_id: the platform's id of the worker: for payment only.
        place: the platform's id of the assignment.
        study: the platform's id of the study.
        state: see `State`.
        consented_at: when the worker agreed.
        consent_version: to which text.
        lease_until: until when the task stays the worker's without a further answer.
        ended_at: when it ended; `None` where it is under way.
        last: when the last answer came; `None` before the first.
        items: how many there are.
        answered: how many have an answer.
        cannot: of these, how many have no preference.
        tests: how many are tests.
        failed: tests whose answer, as it stands, is not the known one.
        excluded: whether it ended with so many failed tests that it does not count.
        owed: hundredths, as of now.
        paid: hundredths recorded as paid.
    """

    assignment: int
    task: str
    batch: int
    worker: str
    platform_id: str
    place: str
    study: str
    state: State
    consented_at: datetime
    consent_version: str
    lease_until: datetime
    ended_at: datetime | None
    last: datetime | None
    items: int
    answered: int
    cannot: int
    tests: int
    failed: int
    excluded: bool
    owed: Money
    paid: Money


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerOverview:
    """A worker.

    Attributes:
        worker: the pseudonym.
        platform_id: the platform's id: for payment only.
        states: how many assignments are in each state.
        answered: items with an answer.
        cannot: of these, without a preference.
        failed: tests failed.
        barred: gets no later task.
        owed: hundredths.
        paid: hundredths.
    """

    worker: str
    platform_id: str
    states: Mapping[State, int]
    answered: int
    cannot: int
    failed: int
    barred: bool
    owed: Money
    paid: Money


def assignments(database: Database) -> tuple[AssignmentOverview, ...]:
    """Every assignment, oldest first.

    Raises:
        DatabaseError: see `ErrorCode`.
    """
    return database.read(read_assignments)


def workers(database: Database) -> tuple[WorkerOverview, ...]:
    """Every worker who ever consented, in the order of their first tasks.

    Raises:
        DatabaseError: see `ErrorCode`.
    """
    by_worker: dict[str, list[AssignmentOverview]] = {}
    for one in assignments(database):
        by_worker.setdefault(one.worker, []).append(one)
    return tuple(
        WorkerOverview(
            worker=name,
            platform_id=own[0].platform_id,
            states=Counter(one.state for one in own),
            answered=sum(one.answered for one in own),
            cannot=sum(one.cannot for one in own),
            failed=sum(one.failed for one in own),
            barred=any(one.excluded for one in own),
            owed=sum(one.owed for one in own),
            paid=sum(one.paid for one in own),
        )
        for name, own in by_worker.items()
    )


def read_assignments(connection: Connection) -> tuple[AssignmentOverview, ...]:
    """As `assignments`, within a transaction."""
    right = or_(
        and_(t.judgments.c.side == "left", t.items.c.left == t.items.c.answer),
        and_(t.judgments.c.side == "right", t.items.c.right == t.items.c.answer),
    )
    wrong = case((t.items.c.answer.is_(None), 0), (right, 0), else_=1)
    given = (
        select(
            t.judgments.c.assignment,
            func.count().label("answered"),
            func.sum(case((t.judgments.c.side.is_(None), 1), else_=0)).label("cannot"),
            func.sum(wrong).label("wrong"),
            func.max(t.judgments.c.answered_at).label("last"),
        )
        .join(t.items, OF_ITEM)
        .where(NEWEST)
        .group_by(t.judgments.c.assignment)
        .subquery()
    )
    shown = (
        select(
            t.items.c.task,
            func.count().label("size"),
            func.count(t.items.c.answer).label("tests"),
        )
        .group_by(t.items.c.task)
        .subquery()
    )
    paid = (
        select(t.payments.c.assignment, func.sum(t.payments.c.amount).label("paid"))
        .group_by(t.payments.c.assignment)
        .subquery()
    )
    row = t.assignments.c
    rows = connection.execute(
        select(
            row.id.label("assignment"),
            *(row.task, t.tasks.c.batch, t.workers.c.pseudonym.label("worker")),
            *(t.workers.c.platform_id, row.place, row.study, row.state),
            *(row.consented_at, row.consent_version, row.lease_until, row.ended_at),
            *(shown.c.size.label("items"), shown.c.tests),
            *(given.c.last, func.coalesce(given.c.answered, 0).label("answered")),
            func.coalesce(given.c.cannot, 0).label("cannot"),
            func.coalesce(given.c.wrong, 0).label("failed"),
            func.coalesce(paid.c.paid, 0).label("paid"),
            *(row.failed.label("final"), t.batches.c.settings),
        )
        .join(t.workers, t.workers.c.id == row.worker)
        .join(t.tasks, t.tasks.c.task == row.task)
        .join(t.batches, t.batches.c.batch == t.tasks.c.batch)
        .join(shown, shown.c.task == row.task)
        .outerjoin(given, given.c.assignment == row.id)
        .outerjoin(paid, paid.c.assignment == row.id)
        .order_by(row.id)
    )
    return tuple(_make_assignment(row._asdict()) for row in rows)


def _make_assignment(fields: dict[str, Any]) -> AssignmentOverview:
    settings = msgspec.json.decode(fields.pop("settings"), type=Settings)
    final, answered, items = fields.pop("final"), fields["answered"], fields["items"]
    return AssignmentOverview(
        **fields,
        excluded=(final or 0) >= settings.failures,
        owed=owed_for(settings, fields["failed"], answered=answered, items=items),
    )


_LEAST_REWARDS = 2
_LEAST_BEYOND = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchProgress:
    """How far a batch is.

    Attributes:
        batch: its number.
        tasks: how many were planned; copies for another worker are none of them.
        done: of those, finished and counted.
        held: in the hands of workers.
        waiting: not handed out, or to be handed out again.
        copies: how often a task was given to another worker.
        votes: preferences that count.
        planned: preferences that were planned.
        pairs: different pairs in it.
    """

    batch: int
    tasks: int
    done: int
    held: int
    waiting: int
    copies: int
    votes: int
    planned: int
    pairs: int


@dataclass(frozen=True, slots=True, kw_only=True)
class UncountedPay:
    """What tasks have earned that do not count: stopped early, abandoned, or with failed tests.

    Attributes:
        earned: in hundredths; the share that was answered, also where failed tests leave it unpaid:
            they cost the campaign a task.
        limit: `uncounted_percent` of the rewards of all planned tasks; at least two rewards.
        most: beyond it nobody new is given a task: twice the limit, or five rewards more than it,
            and as much as the tasks that count have earned.
    """

    earned: int
    limit: int
    most: int

    @property
    def is_spent(self) -> bool:
        """Whether who comes from where more tasks do not count than count is given none."""
        return self.earned > 0 and self.earned >= self.limit

    @property
    def is_over(self) -> bool:
        """Whether nobody is given a task but workers whose own tasks count."""
        return self.is_spent and self.earned >= self.most


def uncounted_pay(database: Database) -> UncountedPay:
    """Return what tasks have earned that do not count, and how much they may.

    Raises:
        DatabaseError: see `ErrorCode`.
    """
    return database.read(
        lambda connection: read_uncounted_pay(connection, read_settings(connection))
    )


def read_uncounted_pay(connection: Connection, terms: Mapping[int, Settings]) -> UncountedPay:
    """The same, within a transaction.

    Args:
        connection: of a transaction.
        terms: of every batch, by its number; at least one.
    """
    planned = connection.execute(
        select(t.tasks.c.batch, func.count()).where(t.tasks.c.copy == 1).group_by(t.tasks.c.batch)
    )
    newest = terms[max(terms)]
    rewards = sum(terms[batch].reward * number for batch, number in planned)
    given = (
        select(
            t.judgments.c.assignment,
            t.judgments.c.task,
            func.count(distinct(t.judgments.c.position)).label("answered"),
        )
        .group_by(t.judgments.c.assignment, t.judgments.c.task)
        .subquery()
    )
    of_task = select(func.count()).where(t.items.c.task == t.tasks.c.task).scalar_subquery()
    rows = connection.execute(
        select(t.tasks.c.batch, given.c.answered, of_task.label("items"))
        .join(given, given.c.task == t.tasks.c.task)
        .where(t.tasks.c.state.in_(("void", "replaced")))
    )
    earned = sum(
        amount_owed(reward=terms[row.batch].reward, answered=row.answered, items=row.items)
        for row in rows
    )
    counted = connection.execute(
        select(t.tasks.c.batch, func.count())
        .where(t.tasks.c.state == "done")
        .group_by(t.tasks.c.batch)
    )
    share = rewards * newest.uncounted_percent // 100
    limit = max(share, _LEAST_REWARDS * newest.reward)
    more = max(limit, _LEAST_BEYOND * newest.reward)
    most = limit + more + sum(terms[batch].reward * number for batch, number in counted)
    return UncountedPay(earned=earned, limit=limit, most=most)


def progress(database: Database) -> tuple[BatchProgress, ...]:
    """Return how far each batch is, by its number.

    Raises:
        DatabaseError: see `ErrorCode`.
    """
    return database.read(_read_progress)


def _read_progress(connection: Connection) -> tuple[BatchProgress, ...]:
    row = t.tasks.c
    counts = select(row.batch, row.state, func.count()).group_by(row.batch, row.state)
    states = Counter(
        {(batch, state): number for batch, state, number in connection.execute(counts)}
    )
    planned = connection.execute(
        select(t.tasks.c.batch, func.count(), func.count(distinct(t.items.c.pair)))
        .join(t.items, t.items.c.task == t.tasks.c.task)
        .where(t.tasks.c.copy == 1, t.items.c.pair.is_not(None))
        .group_by(t.tasks.c.batch)
    )
    pairs = {batch: (number, different) for batch, number, different in planned}
    votes = connection.execute(
        select(t.tasks.c.batch, func.count().label("votes"))
        .select_from(t.judgments)
        .join(t.items, OF_ITEM)
        .join(t.tasks, t.tasks.c.task == t.judgments.c.task)
        .where(
            t.tasks.c.state == "done",
            t.items.c.pair.is_not(None),
            t.judgments.c.side.is_not(None),
        )
        .where(NEWEST)
        .group_by(t.tasks.c.batch)
    )
    given = {row.batch: row.votes for row in votes}
    return tuple(
        BatchProgress(
            batch=batch,
            tasks=sum(states[batch, name] for name in ("open", "held", "done", "void")),
            done=states[batch, "done"],
            held=states[batch, "held"],
            waiting=states[batch, "open"] + states[batch, "void"],
            copies=states[batch, "replaced"],
            votes=given.get(batch, 0),
            planned=pairs.get(batch, (0, 0))[0],
            pairs=pairs.get(batch, (0, 0))[1],
        )
        for batch in sorted({batch for batch, _ in states})
    )


def judgments(database: Database) -> tuple[Judgment, ...]:
    """Every judgment in the order recorded, superseded ones and tests too; `counted` sorts them.

    Workers are named by their pseudonyms.

    Raises:
        DatabaseError: see `ErrorCode`.
    """
    return database.read(read_judgments)


def tasks(database: Database) -> tuple[Task, ...]:
    """Every task as it is shown, copies too, in the order in which they are handed out.

    Raises:
        DatabaseError: see `ErrorCode`.
    """
    return database.read(lambda connection: tuple(read_tasks(connection).values()))


def events(database: Database) -> tuple[Row[Any], ...]:
    """The log, oldest first: `at`, `kind` (see `EventKind`), `assignment`, `note`.

    Raises:
        DatabaseError: see `ErrorCode`.
    """
    row = t.events.c
    found = select(row.at, row.kind, row.assignment, row.note).order_by(row.id)
    return database.read(lambda connection: tuple(connection.execute(found)))
