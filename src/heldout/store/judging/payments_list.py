"""Payments made and payments due, together, as values that files are written from."""

from heldout.preferences.payments import Payment, payment_kind
from heldout.store.judging.database import Database
from heldout.store.judging.organiser import payments_made
from heldout.store.judging.payments import payments_due
from heldout.store.judging.tables import format_time

__all__ = ["list_payments"]


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
