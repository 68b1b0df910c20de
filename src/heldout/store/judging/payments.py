"""What workers are owed, and what was paid; a payment is recorded once, whatever happens."""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from sqlalchemy import Connection, insert, select

from heldout.preferences.assignments import State
from heldout.preferences.settings import Money
from heldout.store.judging.database import Database, keep_others_out
from heldout.store.judging.faults import DatabaseError
from heldout.store.judging.log import note
from heldout.store.judging.overviews import read_assignments
from heldout.store.judging.tables import assignments, payments

__all__ = ["Due", "Kind", "payments_due", "record_payment"]

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
