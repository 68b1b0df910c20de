"""What the organiser does: launch switch, sign-outs, leases, payments, texts of a pair.

Switch and sign-outs are events: each says when it happened, and no other table is needed. A payment
is recorded once, whatever happens.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Literal

from sqlalchemy import Connection, func, insert, select

from heldout.database.database import Database, keep_others_out
from heldout.database.errors import DatabaseError
from heldout.database.times import format_time
from heldout.judging.campaign.payments import Payment, PaymentKind
from heldout.judging.campaign.settings import Money, Settings
from heldout.judging.database.campaigns import read_settings
from heldout.judging.database.overviews import AssignmentOverview, read_assignments
from heldout.judging.database.rows import log_event
from heldout.judging.database.tables import (
    assignments,
    events,
    passages,
    payments,
    queries,
)

_Paid = Literal["reward", "part"]
"""What the database calls a payment. `reward`: for a task that was submitted. `part`: for the share
of one that was not, or what was still owed."""


def list_payments(database: Database) -> tuple[Payment, ...]:
    """Payments that were made, oldest first, then those that are due.

    Due is what is owed for assignments that ended, less what was paid.

    Raises:
        DatabaseError: see `ErrorCode`.
    """

    def read(connection: Connection) -> tuple[Payment, ...]:
        terms = read_settings(connection)
        found = {one.assignment: one for one in read_assignments(connection)}
        rows = connection.execute(select(payments).order_by(payments.c.id))
        made = [
            _make_payment(
                found[row.assignment],
                terms,
                key=row.key,
                kind=row.kind,
                amount=row.amount,
                paid_at=format_time(row.paid_at),
            )
            for row in rows
        ]
        due = [
            _make_payment(
                one,
                terms,
                key=f"{one.assignment}-{one.paid}-{one.owed}",
                kind="reward" if one.state == "submitted" and not one.paid else "part",
                amount=one.owed - one.paid,
            )
            for one in found.values()
            if one.state != "consented" and one.owed > one.paid
        ]
        return (*made, *due)

    return database.read(read)


def payments_due(database: Database) -> tuple[Payment, ...]:
    """The payments of `list_payments` that were not made yet; keys stay until they are."""
    return tuple(one for one in list_payments(database) if not one.paid_at)


def _make_payment(
    one: AssignmentOverview,
    terms: Mapping[int, Settings],
    *,
    key: str,
    kind: _Paid,
    amount: Money,
    paid_at: str = "",
) -> Payment:
    part: PaymentKind = "bonus" if one.state == "submitted" else "pro-rata"
    return Payment(
        key=key,
        assignment=one.assignment,
        worker=one.worker,
        platform_id=one.platform_id,
        place=one.place,
        study=one.study,
        kind="base" if kind == "reward" else part,
        amount=amount,
        currency=terms[one.batch].currency,
        paid_at=paid_at,
    )


def record_payment(database: Database, payment: Payment, *, now: datetime) -> bool:
    """Record that a payment was made.

    Args:
        database: of the campaign.
        payment: of `payments_due`.
        now: the time.

    Returns:
        Whether it is new; `False` where this payment was recorded before.

    Raises:
        DatabaseError: code `payment-key`: another payment was recorded under its key;
            `unknown-assignment`; see `ErrorCode`.
    """
    number, amount, key = payment.assignment, payment.amount, payment.key
    kind: _Paid = "reward" if payment.kind == "base" else "part"

    def write(connection: Connection) -> bool:
        keep_others_out(connection)
        known = select(assignments.c.id).where(assignments.c.id == number)
        if connection.scalar(known) is None:
            raise DatabaseError("unknown-assignment", "there is no such assignment here")
        columns = (payments.c.assignment, payments.c.amount, payments.c.kind)
        before = connection.execute(select(*columns).where(payments.c.key == key)).one_or_none()
        if before is not None:
            if tuple(before) != (number, amount, kind):
                raise DatabaseError("payment-key", f"{key} is the key of another payment")
            return False
        row = {"assignment": number, "amount": amount, "kind": kind, "key": key, "paid_at": now}
        connection.execute(insert(payments).values(row))
        log_event(connection, "paid", at=now, assignment=number, text=str(amount))
        return True

    return database.write(write)


Launch = Literal["new", "launched", "paused"]
"""`new`: the switch was never turned: tasks are handed out, as when `launched`. `paused`: none
is handed out; who has one goes on with it."""

_SWITCH = ("launched", "paused")


def read_launch(connection: Connection) -> Launch:
    """Return how the switch stands, within a transaction."""
    last = (
        select(events.c.kind)
        .where(events.c.kind.in_(_SWITCH))
        .order_by(events.c.id.desc())
        .limit(1)
    )
    found: Launch | None = connection.execute(last).scalar_one_or_none()
    return found or "new"


def read_launch_state(database: Database) -> Launch:
    """Return how the switch stands.

    Raises:
        DatabaseError: see `ErrorCode`.
    """
    return database.read(read_launch)


def set_launch(
    database: Database, state: Literal["launched", "paused"], *, now: datetime, text: str = ""
) -> bool:
    """Turn the switch.

    Args:
        database: of the campaign.
        state: to which.
        now: the time.
        text: what is written beside it, as the price.

    Returns:
        Whether it stood otherwise before.

    Raises:
        DatabaseError: see `ErrorCode`.
    """

    def write(connection: Connection) -> bool:
        keep_others_out(connection)
        if read_launch(connection) == state:
            return False
        log_event(connection, state, at=now, text=text)
        return True

    return database.write(write)


def count_sign_outs(database: Database) -> int:
    """Count how often organisers signed out: sessions begun before the last are over.

    Raises:
        DatabaseError: see `ErrorCode`.
    """
    counted = select(func.count()).where(events.c.kind == "signed-out")
    return database.read(lambda connection: int(connection.execute(counted).scalar_one()))


def note_sign_out(database: Database, *, now: datetime) -> None:
    """End every session that was begun until now.

    Raises:
        DatabaseError: see `ErrorCode`.
    """
    database.write(lambda connection: log_event(connection, "signed-out", at=now))


def pair_texts(database: Database, query: str, a: str, b: str) -> tuple[str, str, str] | None:
    """The texts of a query and two passages by their ids; `None` where one is not shown.

    Raises:
        DatabaseError: see `ErrorCode`.
    """

    def read(connection: Connection) -> tuple[str, str, str] | None:
        asked = select(queries.c.text).where(queries.c.query == query)
        rows = select(passages.c.doc, passages.c.text).where(passages.c.doc.in_((a, b)))
        text = connection.execute(asked).scalar_one_or_none()
        docs = {row.doc: row.text for row in connection.execute(rows)}
        if text is None or a not in docs or b not in docs:
            return None
        return text, docs[a], docs[b]

    return database.read(read)


def passage_lengths(database: Database) -> dict[str, int]:
    """Characters of every passage, by its id.

    Raises:
        DatabaseError: see `ErrorCode`.
    """
    found = select(passages.c.doc, func.length(passages.c.text).label("length"))
    rows = database.read(lambda connection: connection.execute(found).all())
    return {row.doc: row.length for row in rows}
