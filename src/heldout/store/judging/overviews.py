"""Every assignment and every worker, for the organiser."""

from collections import Counter
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import msgspec
from sqlalchemy import Connection, Subquery, and_, case, func, or_, select

from heldout.preferences.assignments import State
from heldout.preferences.settings import Money, Settings
from heldout.store.judging.answers import is_newest, of_item
from heldout.store.judging.database import Database
from heldout.store.judging.standing import owed_for
from heldout.store.judging.tables import assignments as assignment_rows
from heldout.store.judging.tables import batches, items, judgments, payments, tasks
from heldout.store.judging.tables import workers as worker_rows

__all__ = [
    "AssignmentOverview",
    "WorkerOverview",
    "assignments",
    "read_assignments",
    "workers",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class AssignmentOverview:
    """An assignment.

    Attributes:
        assignment: its id.
        task: the task's id.
        batch: the task's batch.
        worker: the worker's pseudonym.
        platform_id: the platform's id of the worker: for payment only.
        place: the platform's id of the sitting.
        study: the platform's id of the study.
        state: see `State`.
        consented_at: when the worker agreed.
        consent_version: to which text.
        ended_at: when it ended; `None` where it is under way.
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
    ended_at: datetime | None
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
    states: dict[State, int]
    answered: int
    cannot: int
    failed: int
    barred: bool
    owed: Money
    paid: Money


def assignments(database: Database) -> tuple[AssignmentOverview, ...]:
    """Every assignment, oldest first.

    Raises:
        DatabaseError: see `Fault`.
    """
    return database.read(read_assignments)


def workers(database: Database) -> tuple[WorkerOverview, ...]:
    """Every worker who ever consented, in the order of their first tasks.

    Raises:
        DatabaseError: see `Fault`.
    """
    by_worker: dict[str, list[AssignmentOverview]] = {}
    for one in assignments(database):
        by_worker.setdefault(one.worker, []).append(one)
    return tuple(
        WorkerOverview(
            worker=name,
            platform_id=own[0].platform_id,
            states=dict(Counter(one.state for one in own)),
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
    given, shown, paid = _count_given(), _count_items(), _sum_paid()
    rows = connection.execute(
        select(
            assignment_rows,
            tasks.c.batch,
            batches.c.settings,
            shown.c.size,
            shown.c.tests,
            worker_rows.c.platform_id,
            worker_rows.c.pseudonym,
            func.coalesce(given.c.answered, 0).label("answered"),
            func.coalesce(given.c.cannot, 0).label("cannot"),
            func.coalesce(given.c.wrong, 0).label("wrong"),
            func.coalesce(paid.c.paid, 0).label("paid"),
        )
        .join(worker_rows, worker_rows.c.id == assignment_rows.c.worker)
        .join(tasks, tasks.c.task == assignment_rows.c.task)
        .join(batches, batches.c.batch == tasks.c.batch)
        .join(shown, shown.c.task == assignment_rows.c.task)
        .outerjoin(given, given.c.assignment == assignment_rows.c.id)
        .outerjoin(paid, paid.c.assignment == assignment_rows.c.id)
        .order_by(assignment_rows.c.id)
    )
    return tuple(_make_assignment(row) for row in rows)


def _count_given() -> Subquery:
    """By assignment: items with an answer, without a preference, and tests failed."""
    right = or_(
        and_(judgments.c.side == "left", items.c.left == items.c.answer),
        and_(judgments.c.side == "right", items.c.right == items.c.answer),
    )
    wrong = case((items.c.answer.is_(None), 0), (right, 0), else_=1)
    return (
        select(
            judgments.c.assignment,
            func.count().label("answered"),
            func.sum(case((judgments.c.side.is_(None), 1), else_=0)).label("cannot"),
            func.sum(wrong).label("wrong"),
        )
        .join(items, of_item(items))
        .where(is_newest())
        .group_by(judgments.c.assignment)
        .subquery()
    )


def _count_items() -> Subquery:
    return (
        select(
            items.c.task,
            func.count().label("size"),
            func.count(items.c.answer).label("tests"),
        )
        .group_by(items.c.task)
        .subquery()
    )


def _sum_paid() -> Subquery:
    return (
        select(payments.c.assignment, func.sum(payments.c.amount).label("paid"))
        .group_by(payments.c.assignment)
        .subquery()
    )


def _make_assignment(row: Any) -> AssignmentOverview:
    settings = msgspec.json.decode(row.settings, type=Settings)
    return AssignmentOverview(
        assignment=row.id,
        task=row.task,
        batch=row.batch,
        worker=row.pseudonym,
        platform_id=row.platform_id,
        place=row.place,
        study=row.study,
        state=row.state,
        consented_at=row.consented_at,
        consent_version=row.consent_version,
        ended_at=row.ended_at,
        items=row.size,
        answered=row.answered,
        cannot=row.cannot,
        tests=row.tests,
        failed=row.wrong,
        excluded=(row.failed or 0) >= settings.failures,
        owed=owed_for(settings, row.wrong, answered=row.answered, items=row.size),
        paid=row.paid,
    )
