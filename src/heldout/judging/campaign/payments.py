"""Payments to workers: what each is for, and the list of them as CSV.

Every payment has an idempotency key: who pays, by hand or by a program, pays each key once.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from heldout.files.csv import defuse, format_csv
from heldout.judging.campaign.settings import Money

PaymentKind = Literal["base", "pro-rata", "bonus"]
"""`base`: the reward of a finished task; a platform pays it when the work is approved. `pro-rata`:
the share of a task that was not finished; `bonus`: what was still owed for a finished one: both
are sent as a bonus."""

_HEADER = (
    *("key", "worker", "platform_id", "study", "place", "assignment"),
    *("kind", "amount", "currency", "paid_at"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Payment:
    """A payment, made or due.

    Attributes:
        key: of this payment and no other.
        assignment: for which.
        worker: the pseudonym.
        platform_id: the platform's id of the worker.
        place: the platform's id of the assignment.
        study: the platform's id of the study.
        kind: what it is for.
        amount: hundredths, above 0.
        currency: ISO 4217.
        paid_at: when it was recorded as paid, ISO 8601 in UTC; empty where it is due.
    """

    key: str
    assignment: int
    worker: str
    platform_id: str
    place: str
    study: str
    kind: PaymentKind
    amount: Money
    currency: str
    paid_at: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PaymentTotals:
    """Sums over payments, in hundredths.

    Attributes:
        due: of those not yet made.
        paid: of those made.
        by_kind: of those due, by what they are for.
    """

    due: Money
    paid: Money
    by_kind: Mapping[PaymentKind, Money]


def totals(payments: Iterable[Payment]) -> PaymentTotals:
    """Sum up payments of one currency."""
    by_kind: dict[PaymentKind, Money] = {"base": 0, "pro-rata": 0, "bonus": 0}
    paid = 0
    for one in payments:
        if one.paid_at:
            paid += one.amount
        else:
            by_kind[one.kind] += one.amount
    return PaymentTotals(due=sum(by_kind.values()), paid=paid, by_kind=by_kind)


def format_payments(payments: Iterable[Payment]) -> bytes:
    """CSV with a header, in the order given; amounts in units, as 0.77; no cell is a formula."""
    rows = (
        [
            *map(defuse, (one.key, one.worker, one.platform_id, one.study, one.place)),
            *(str(one.assignment), one.kind, f"{one.amount // 100}.{one.amount % 100:02}"),
            *(one.currency, one.paid_at),
        ]
        for one in payments
    )
    return format_csv(_HEADER, rows)
