"""What the organiser does: launch switch, sign-outs, leases, payments, texts of a pair.

Switch and sign-outs are events: each says when it happened, and no other table is needed. A payment
is recorded once, whatever happens; payments made and due together are values that files are written
from.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from sqlalchemy import Connection, func, insert, select

from heldout.judging.campaign.payments import Payment, payment_kind
from heldout.judging.campaign.rows import State
from heldout.judging.campaign.settings import Money
from heldout.judging.database.database import Database, DatabaseError, keep_others_out
from heldout.judging.database.overviews import read_assignments
from heldout.judging.database.rows import note
from heldout.judging.database.tables import (
    assignments,
    events,
    format_time,
    judgments,
    passages,
    payments,
    queries,
    tasks,
    workers,
)

Kind = Literal["reward", "part"]
"""`reward`: for a task that was submitted. `part`: for the share of one that was not, or what was
still owed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Due:
    """A payment to be made.

    Attributes:
        assignment: for which.
        worker: the pseudonym.
        platform_id: the platform's id of the worker.
        place: the platform's id of the sitting.
        study: the platform's id of the study.
        state: how it ended.
        kind: see `Kind`.
        amount: hundredths, above 0: what is owed less what was paid.
        key: for `record_payment`: the same until this amount was recorded.
    """

    assignment: int
    worker: str
    platform_id: str
    place: str
    study: str
    state: State
    kind: Kind
    amount: Money
    key: str


def payments_due(database: Database) -> tuple[Due, ...]:
    """What is owed for assignments that ended, less what was paid; oldest first.

    Raises:
        DatabaseError: see `Fault`.
    """
    return tuple(
        Due(
            assignment=one.assignment,
            worker=one.worker,
            platform_id=one.platform_id,
            place=one.place,
            study=one.study,
            state=one.state,
            kind="reward" if one.state == "submitted" and not one.paid else "part",
            amount=one.owed - one.paid,
            key=f"{one.assignment}-{one.paid}-{one.owed}",
        )
        for one in database.read(read_assignments)
        if one.state != "consented" and one.owed > one.paid
    )


def record_payment(
    database: Database, assignment: int, *, amount: Money, kind: Kind, key: str, now: datetime
) -> bool:
    """Record that a payment was made.

    Args:
        database: of the campaign.
        assignment: for which.
        amount: hundredths.
        kind: see `Kind`.
        key: of this payment and no other: `Due.key`.
        now: the time.

    Returns:
        Whether it is new; `False` where this payment was recorded before.

    Raises:
        DatabaseError: code `payment-key`: another payment was recorded under it;
            `unknown-assignment`; see `Fault`.
    """

    def write(connection: Connection) -> bool:
        keep_others_out(connection)
        known = select(assignments.c.id).where(assignments.c.id == assignment)
        if connection.execute(known).one_or_none() is None:
            raise DatabaseError("unknown-assignment", "there is no such assignment here")
        columns = (payments.c.assignment, payments.c.amount, payments.c.kind)
        before = connection.execute(select(*columns).where(payments.c.key == key)).one_or_none()
        if before is not None:
            if tuple(before) != (assignment, amount, kind):
                raise DatabaseError("payment-key", f"{key} is the key of another payment")
            return False
        row = {"assignment": assignment, "amount": amount, "kind": kind, "key": key}
        connection.execute(insert(payments).values(row | {"paid_at": now}))
        note(connection, "paid", at=now, assignment=assignment, text=str(amount))
        return True

    return database.write(write)


Launch = Literal["new", "launched", "paused"]
"""`new`: the switch was never turned: tasks are handed out, as when `launched`. `paused`: none
is handed out; who has one goes on with it."""

_SWITCH = ("launched", "paused")
_SIGNED_OUT = "signed-out"


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """A task in the hands of a worker.

    Attributes:
        assignment: its id.
        task: the task's id.
        batch: the task's batch.
        worker: the pseudonym.
        since: when the worker consented.
        last: when the last answer came; `None` before the first.
        answered: items with an answer.
        until: when the task goes to another worker without a further answer.
    """

    assignment: int
    task: str
    batch: int
    worker: str
    since: datetime
    last: datetime | None
    answered: int
    until: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class PaymentMade:
    """A payment that was recorded.

    Attributes:
        assignment: for which.
        worker: the pseudonym.
        platform_id: the platform's id of the worker.
        place: the platform's id of the sitting.
        study: the platform's id of the study.
        state: how it ended.
        kind: see `payments.Kind`.
        amount: hundredths.
        key: its idempotency key.
        paid_at: when it was recorded.
    """

    assignment: int
    worker: str
    platform_id: str
    place: str
    study: str
    state: State
    kind: Kind
    amount: Money
    key: str
    paid_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class PairTexts:
    """The texts of a pair.

    Attributes:
        query: of the query.
        a: of the first passage.
        b: of the second.
    """

    query: str
    a: str
    b: str


def read_launch(connection: Connection) -> Launch:
    """How the switch stands, within a transaction."""
    last = (
        select(events.c.kind)
        .where(events.c.kind.in_(_SWITCH))
        .order_by(events.c.id.desc())
        .limit(1)
    )
    found: Launch | None = connection.execute(last).scalar_one_or_none()
    return found or "new"


def read_launch_state(database: Database) -> Launch:
    """How the switch stands.

    Raises:
        DatabaseError: see `Fault`.
    """
    return database.read(read_launch)


def set_launch(
    database: Database, state: Literal["launched", "paused"], *, now: datetime, note: str = ""
) -> bool:
    """Turn the switch.

    Args:
        database: of the campaign.
        state: to which.
        now: the time.
        note: what is written beside it, as the price.

    Returns:
        Whether it stood otherwise before.

    Raises:
        DatabaseError: see `Fault`.
    """

    def write(connection: Connection) -> bool:
        keep_others_out(connection)
        if read_launch(connection) == state:
            return False
        row = {"at": now, "kind": state, "assignment": None, "note": note}
        connection.execute(insert(events).values(row))
        return True

    return database.write(write)


def count_sign_outs(database: Database) -> int:
    """How often organisers signed out: a session is over when it was begun before the last time.

    Raises:
        DatabaseError: see `Fault`.
    """
    counted = select(func.count()).where(events.c.kind == _SIGNED_OUT)
    return database.read(lambda connection: int(connection.execute(counted).scalar_one()))


def note_sign_out(database: Database, *, now: datetime) -> None:
    """End every session that was begun until now.

    Raises:
        DatabaseError: see `Fault`.
    """
    row = insert(events).values(at=now, kind=_SIGNED_OUT, assignment=None, note="")
    database.write(lambda connection: connection.execute(row))


def leases(database: Database) -> tuple[Lease, ...]:
    """Tasks in the hands of workers, those that end soonest first.

    Raises:
        DatabaseError: see `Fault`.
    """
    given = (
        select(
            judgments.c.assignment,
            func.count(judgments.c.position.distinct()).label("answered"),
            func.max(judgments.c.answered_at).label("last"),
        )
        .group_by(judgments.c.assignment)
        .subquery()
    )
    found = (
        select(
            assignments.c.id,
            assignments.c.task,
            tasks.c.batch,
            workers.c.pseudonym,
            assignments.c.consented_at,
            given.c.last,
            func.coalesce(given.c.answered, 0).label("answered"),
            assignments.c.lease_until,
        )
        .join(tasks, tasks.c.task == assignments.c.task)
        .join(workers, workers.c.id == assignments.c.worker)
        .outerjoin(given, given.c.assignment == assignments.c.id)
        .where(assignments.c.state == "consented")
        .order_by(assignments.c.lease_until, assignments.c.id)
    )
    rows = database.read(lambda connection: connection.execute(found).all())
    return tuple(
        Lease(
            assignment=row.id,
            task=row.task,
            batch=row.batch,
            worker=row.pseudonym,
            since=row.consented_at,
            last=row.last,
            answered=row.answered,
            until=row.lease_until,
        )
        for row in rows
    )


def payments_made(database: Database) -> tuple[PaymentMade, ...]:
    """Every payment that was recorded, oldest first.

    Raises:
        DatabaseError: see `Fault`.
    """
    found = (
        select(
            payments,
            workers.c.pseudonym,
            workers.c.platform_id,
            assignments.c.place,
            assignments.c.study,
            assignments.c.state,
        )
        .join(assignments, assignments.c.id == payments.c.assignment)
        .join(workers, workers.c.id == assignments.c.worker)
        .order_by(payments.c.id)
    )
    rows = database.read(lambda connection: connection.execute(found).all())
    return tuple(
        PaymentMade(
            assignment=row.assignment,
            worker=row.pseudonym,
            platform_id=row.platform_id,
            place=row.place,
            study=row.study,
            state=row.state,
            kind=row.kind,
            amount=row.amount,
            key=row.key,
            paid_at=row.paid_at,
        )
        for row in rows
    )


def pair_texts(database: Database, query: str, a: str, b: str) -> PairTexts | None:
    """The texts of a pair by its ids; `None` where the campaign shows none of them.

    Raises:
        DatabaseError: see `Fault`.
    """

    def read(connection: Connection) -> PairTexts | None:
        asked = select(queries.c.text).where(queries.c.query == query)
        rows = select(passages.c.doc, passages.c.text).where(passages.c.doc.in_((a, b)))
        text = connection.execute(asked).scalar_one_or_none()
        docs = {row.doc: row.text for row in connection.execute(rows)}
        if text is None or a not in docs or b not in docs:
            return None
        return PairTexts(query=text, a=docs[a], b=docs[b])

    return database.read(read)


def passage_lengths(database: Database) -> dict[str, int]:
    """Characters of every passage, by its id.

    Raises:
        DatabaseError: see `Fault`.
    """
    found = select(passages.c.doc, func.length(passages.c.text).label("length"))
    rows = database.read(lambda connection: connection.execute(found).all())
    return {row.doc: row.length for row in rows}


def list_payments(database: Database, *, currency: str) -> tuple[Payment, ...]:
    """Payments that were made, oldest first, then those that are due.

    Args:
        database: of the campaign.
        currency: of all its batches.

    Raises:
        DatabaseError: see `Fault`.
    """
    made = [
        Payment(
            key=one.key,
            assignment=one.assignment,
            worker=one.worker,
            platform_id=one.platform_id,
            place=one.place,
            study=one.study,
            kind=payment_kind(one.kind, one.state),
            amount=one.amount,
            currency=currency,
            paid_at=format_time(one.paid_at),
        )
        for one in payments_made(database)
    ]
    due = [
        Payment(
            key=one.key,
            assignment=one.assignment,
            worker=one.worker,
            platform_id=one.platform_id,
            place=one.place,
            study=one.study,
            kind=payment_kind(one.kind, one.state),
            amount=one.amount,
            currency=currency,
        )
        for one in payments_due(database)
    ]
    return (*made, *due)
