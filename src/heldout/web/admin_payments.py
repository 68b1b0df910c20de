"""What the organiser reads of payments: due, made, and whose completion code that is. Pure."""

from collections.abc import Sequence

from heldout.preferences.payments import Payment, totals
from heldout.preferences.pricing import format_money
from heldout.preferences.settings import Settings
from heldout.store.judging.overviews import AssignmentOverview
from heldout.web.admin_pages import Ask, Cell, Column, Press, Section, Table
from heldout.web.admin_views import PAGE
from heldout.web.admin_words import amount, plural

__all__ = ["code_section", "payment_sections"]


def payment_sections(payments: Sequence[Payment], settings: Settings) -> tuple[Section, ...]:
    """What is due and what was paid; a button beside each payment that is due."""
    found, due = totals(payments), [one for one in payments if not one.paid_at]
    made = len(payments) - len(due)
    shown = due[:PAGE]
    columns = ("Worker", "Platform's id", "For", "Task ended")
    money = settings.currency
    return (
        Section(
            facts=(
                ("Due", f"{format_money(found.due, money)} in {plural(len(due), 'payment')}"),
                *(
                    (f"of it {kind}", format_money(sum_, money))
                    for kind, sum_ in found.by_kind.items()
                    if sum_
                ),
                ("Paid", f"{format_money(found.paid, money)} in {plural(made, 'payment')}"),
            ),
            told=(
                (
                    "Base is paid by approving the work on the platform; pro-rata and bonus are "
                    "sent as a bonus. Each payment has a key: pay each key once."
                ),
            ),
            link=("/admin/payments.csv", "All payments as CSV"),
        ),
        Section(
            title="Due",
            table=Table(
                caption=f"The oldest {len(shown):,} of {len(due):,}, in {money}."
                if len(shown) < len(due)
                else f"In {money}.",
                columns=(
                    *(Column(name) for name in columns[:3]),
                    Column("Amount", number=True),
                    *(Column(name) for name in ("Key", "When paid")),
                ),
                rows=tuple(
                    (
                        Cell(one.worker),
                        Cell(one.platform_id),
                        Cell(one.kind),
                        Cell(amount(one.amount)),
                        Cell(one.key),
                        Cell("Mark as paid", press=one.key, hint=f"key {one.key}"),
                    )
                    for one in shown
                ),
                empty="Nothing is due.",
                form="/admin/payments",
                field="keys",
            ),
            press=(
                Press(
                    action="/admin/payments",
                    button=f"Mark these {len(shown):,} as paid",
                    fields={"keys": " ".join(one.key for one in shown)},
                ),
            )
            if shown
            else (),
        ),
    )


def code_section(asked: str, found: AssignmentOverview | None) -> Section:
    """Whose completion code is this?"""
    told: tuple[str, ...] = ()
    if asked and found is None:
        told = ("That is nobody's code.",)
    elif asked and found is not None:
        told = (
            (
                f"The code of {found.worker}: task {found.task}, {found.state}, "
                f"{found.answered} of {found.items} answered."
            ),
        )
    return Section(
        title="A completion code",
        told=told,
        ask=Ask(
            action="/admin/payments", name="code", label="Code that a worker gave", value=asked
        ),
    )
