"""What the organiser reads of a campaign's course: tasks, workers, the log. Pure."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from heldout.errors import plural
from heldout.judging.campaign.payments import Payment, totals
from heldout.judging.campaign.settings import Settings, describe_hourly, format_money
from heldout.judging.database.organiser import Launch, Lease
from heldout.judging.database.overviews import (
    AssignmentOverview,
    Event,
    Progress,
    UncountedPay,
    WorkerOverview,
)
from heldout.judging.pages.admin_pages import (
    Ask,
    Cell,
    Press,
    Section,
    Table,
    ago,
    amount,
    moment,
    percent,
)
from heldout.judging.platforms.links import completion_address

PAGE = 100
"""Rows of a page."""

_SOON = timedelta(minutes=10)
_SWITCHES: Mapping[Launch, tuple[str, str, str]] = {
    "new": ("Open: everybody with a link gets a task.", "/admin/pause", "Pause"),
    "launched": ("Launched: everybody with a link gets a task.", "/admin/pause", "Pause"),
    "paused": (
        "Paused: nobody gets a new task. Judges who have a task can finish it.",
        "/admin/launch",
        "Launch",
    ),
}


_SPENT = (
    "Attention: tasks that do not count (stopped early, abandoned, failed tests) have earned "
    "{earned}; the limit is {limit}. {who} At {most} only workers whose tasks count get more. Look "
    "at the workers and the tests. To let everybody in again, raise uncounted_percent in "
    "campaign.toml and start heldout serve again."
)
_HELD_BACK = (
    "New ids get no task if they come from a network, or by a link of their own, of which more "
    "tasks do not count than count. All others go on."
)
_OVER = "Now only workers whose tasks count get new ones."


def batch_price(progress: Sequence[Progress], terms: Mapping[int, Settings]) -> int:
    """The price of every planned task, reward and fee, in hundredths."""
    return sum(one.tasks * terms[one.batch].task_price for one in progress if one.batch in terms)


def launch_section(
    state: Launch, price: int, settings: Settings, link: str, *, uncounted: UncountedPay
) -> Section:
    """The switch, and what it costs to turn it on."""
    switch, action, button = _SWITCHES[state]
    cost = format_money(price, settings.currency)
    words = f"{button}: up to {cost}" if state == "paused" and price else button
    pay = (("Price of all tasks", cost), ("Pay for an hour", describe_hourly(settings)))
    if uncounted.is_spent:
        sums = {
            name: format_money(getattr(uncounted, name), settings.currency)
            for name in ("earned", "limit", "most")
        }
        switch += " " + _SPENT.format(who=_OVER if uncounted.is_over else _HELD_BACK, **sums)
    return Section(
        paragraphs=[switch],
        facts=(
            ("Link for judges", link),
            *_completion(settings),
            *(pay if price else (("Pay", "none: reward and fee are 0 in campaign.toml"),)),
        ),
        press=(Press(action=action, button=words, quiet=state != "paused"),),
    )


def price_section(
    progress: Sequence[Progress],
    terms: Mapping[int, Settings],
    assignments: Sequence[AssignmentOverview],
    uncounted: UncountedPay,
) -> Section:
    """What all costs, what of it is owed and what was paid."""
    currency = terms[max(terms)].currency
    owed, paid = (sum(getattr(one, name) for one in assignments) for name in ("owed", "paid"))
    earned, limit = (format_money(one, currency) for one in (uncounted.earned, uncounted.limit))
    return Section(
        title="Price",
        facts=(
            ("All planned tasks", format_money(batch_price(progress, terms), currency)),
            ("Earned so far", f"{format_money(owed, currency)} of rewards"),
            ("Paid so far", format_money(paid, currency)),
            ("Earned by tasks that do not count", f"{earned} of at most {limit}"),
        ),
        table=Table(
            caption=f"Reward and fee of a task, in {currency}. Tasks that another worker repeats "
            "after a failed test or an early stop cost extra.",
            columns=("Batch", "Tasks", "Reward", "Fee", "Price"),
            rows=[
                (
                    *(str(one.batch), one.tasks, amount(term.reward), amount(term.fee)),
                    amount(one.tasks * term.task_price),
                )
                for one in progress
                for term in [terms[one.batch]]
            ],
            empty="There is no task yet.",
        ),
    )


_COUNTS = {
    "Pairs": "pairs",
    "Tasks": "tasks",
    "Done": "done",
    "With workers": "held",
    "Waiting": "waiting",
    "Repeated": "copies",
    "Votes": "votes",
    "Planned": "planned",
}
"""Heading -> field of `Progress`."""


def progress_section(progress: Sequence[Progress]) -> Section:
    """How far each batch is."""
    done, tasks = sum(one.done for one in progress), sum(one.tasks for one in progress)
    share = f"{done:,} of {plural(tasks, 'task')} done ({percent(done / tasks)})." if tasks else ""
    return Section(
        title="Progress",
        paragraphs=[share] if share else [],
        table=Table(
            caption="By batch. A vote is a preference that counts: not a test, in a finished task "
            "whose tests were passed.",
            columns=("Batch", *_COUNTS),
            rows=[
                (str(one.batch), *(getattr(one, name) for name in _COUNTS.values()))
                for one in progress
            ],
            empty="There is no task yet.",
        ),
    )


def lease_section(leases: Sequence[Lease], items: Mapping[int, int], *, now: datetime) -> Section:
    """Who has a task, and who is late.

    Args:
        leases: those that end soonest first.
        items: how many questions each assignment has.
        now: the time.
    """
    late = sum(one.until < now for one in leases)
    held = f"{plural(len(leases), 'task')} with workers, {late:,} late."
    return Section(
        title="With workers",
        paragraphs=[held] if leases else [],
        table=Table(
            caption="Tasks that end soonest come first. A late task goes to the next worker.",
            columns=("Worker", "Task", "Answered", "Begun", "Last answer", "Held"),
            rows=[
                (
                    one.worker,
                    one.task,
                    Cell(f"{one.answered} of {items.get(one.assignment, 0)}", number=True),
                    moment(one.since),
                    "none yet" if one.last is None else f"{ago(now - one.last)} ago",
                    _time_left(one.until - now),
                )
                for one in leases[:PAGE]
            ],
            empty="Nobody has a task.",
        ),
    )


def worker_section(workers: Sequence[WorkerOverview], settings: Settings) -> Section:
    """Every worker by pseudonym; who is barred, and why."""
    barred = sum(one.barred for one in workers)
    return Section(
        paragraphs=[
            (
                f"{plural(len(workers), 'worker')}, {barred:,} barred. A worker is barred from "
                f"later tasks by {plural(settings.failures, 'failed test')} in one task."
            )
        ],
        table=Table(
            caption="In the order of their first tasks. Names are random; the platform's ids "
            "are on the payments page only.",
            columns=(
                *("Worker", "Finished", "Stopped", "Expired", "Answers", "Can't judge"),
                *("Failed tests", "Owed", "Status"),
            ),
            rows=[
                (
                    one.worker,
                    *(one.states.get(state, 0) for state in ("submitted", "exited", "expired")),
                    *(one.answered, one.cannot, one.failed),
                    amount(one.owed),
                    f"barred: {plural(one.failed, 'failed test')}" if one.barred else "active",
                )
                for one in workers
            ],
            empty="There is no worker yet.",
        ),
    )


def log_section(events: Sequence[Event], start: int, shown: int) -> Section:
    """What happened, the newest first.

    Args:
        events: of this page.
        start: how many newer ones there are.
        shown: how many there are in all.
    """
    first, last = start + 1, start + len(events)
    return Section(
        table=Table(
            caption=f"{first:,} to {last:,} of {shown:,}, the newest first. Times are UTC.",
            columns=("Time", "What", "Assignment", "Note"),
            rows=[
                (
                    f"{one.at:%d %b %H:%M:%S}",
                    one.kind,
                    "–" if one.assignment is None else str(one.assignment),
                    one.note or "–",
                )
                for one in events
            ],
            empty="Nothing has happened yet.",
        ),
    )


def pages_section(address: str, start: int, shown: int) -> tuple[Section, ...]:
    """Where the next rows are; nothing where there are none.

    Args:
        address: of the page, with its other parameters and `?` or `&` at the end.
        start: how many rows come before.
        shown: how many there are in all.
    """
    links = []
    if start:
        links.append((f"{address}start={max(0, start - PAGE)}", f"The {PAGE} before"))
    if start + PAGE < shown:
        links.append((f"{address}start={start + PAGE}", "The next ones"))
    return tuple(Section(link=link) for link in links)


def _completion(settings: Settings) -> tuple[tuple[str, str], ...]:
    """Where Prolific's participants go at the end, for those who set up the study there."""
    if settings.platform != "prolific" or not settings.completion_code:
        return ()
    return (("Link at the end", completion_address(settings.completion_code)),)


def _time_left(left: timedelta) -> str:
    if left < timedelta(0):
        return f"late by {ago(-left)}"
    return f"{ago(left)} left, ends soon" if left < _SOON else f"{ago(left)} left"


# What the organiser reads of payments: due, made, and whose completion code that is. Pure.


def payment_sections(payments: Sequence[Payment], settings: Settings) -> tuple[Section, ...]:
    """What is due and what was paid; a button beside each payment that is due."""
    found, due = totals(payments), [one for one in payments if not one.paid_at]
    made = len(payments) - len(due)
    shown = due[:PAGE]
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
            paragraphs=[
                (
                    "Base: approve the work on the platform. Pro-rata and bonus: send a bonus. "
                    "Each payment has a key: pay each key once."
                )
            ],
            link=("/admin/payments.csv", "All payments as CSV"),
        ),
        Section(
            title="Due",
            table=Table(
                caption=f"The oldest {len(shown):,} of {len(due):,}, in {money}."
                if len(shown) < len(due)
                else f"In {money}.",
                columns=("Worker", "Platform's id", "For", "Amount", "Key", "When paid"),
                rows=[
                    (
                        *(one.worker, one.platform_id, one.kind, amount(one.amount), one.key),
                        Cell("Mark as paid", press=one.key, hint=f"key {one.key}"),
                    )
                    for one in shown
                ],
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
    whose = "This campaign did not give out that code."
    if found is not None:
        whose = (
            f"The code of {found.worker}: task {found.task}, {found.state}, "
            f"{found.answered} of {found.items} answered."
        )
    return Section(
        title="A completion code",
        paragraphs=[whose] if asked else [],
        ask=Ask(
            action="/admin/payments", name="code", label="Code that a worker gave", value=asked
        ),
    )
