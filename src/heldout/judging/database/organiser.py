"""What the organiser looks at, takes out and does: progress, the log, the switch, payments.

Switch and sign-outs are events: each says when it happened, and no other table is needed. A payment
is recorded once, whatever happens.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

import msgspec
from sqlalchemy import Connection, Row, and_, case, distinct, func, insert, or_, select

from heldout.database import errors, times
from heldout.database.database import Database, exclude_others
from heldout.judging.campaign.judgments import Judgment
from heldout.judging.campaign.rows import State, Task, amount_owed
from heldout.judging.campaign.settings import Money, Payment, PaymentKind, Settings
from heldout.judging.database import campaigns
from heldout.judging.database import tables as t
from heldout.judging.database.assignments import owed_for


@dataclass(frozen=True, slots=True, kw_only=True)
class AssignmentOverview:
    """An assignment.

    Attributes:
        assignment: its id.
        task: the task's id.
        batch: the task's batch.
        worker: the worker's pseudonym.
        platform_id: the platform's id of the worker: for payment only.
        session_id: the platform's id of the assignment.
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
    session_id: str
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


def assignments(database: Database) -> tuple[AssignmentOverview, ...]:
    """Every assignment, oldest first.

    Raises:
        DatabaseError: see `ErrorCode`.
    """
    return database.read(read_assignments)


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
        .join(t.items, t.OF_ITEM)
        .where(t.NEWEST)
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
            *(t.workers.c.platform_id, row.place.label("session_id"), row.study, row.state),
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
        lambda connection: read_uncounted_pay(connection, campaigns.read_settings(connection))
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
        .join(t.items, t.OF_ITEM)
        .join(t.tasks, t.tasks.c.task == t.judgments.c.task)
        .where(
            t.tasks.c.state == "done",
            t.items.c.pair.is_not(None),
            t.judgments.c.side.is_not(None),
        )
        .where(t.NEWEST)
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
    return database.read(t.read_judgments)


def tasks(database: Database) -> tuple[Task, ...]:
    """Every task as it is shown, copies too, in the order in which they are handed out.

    Raises:
        DatabaseError: see `ErrorCode`.
    """
    return database.read(lambda connection: tuple(t.read_tasks(connection).values()))


def events(database: Database) -> tuple[Row[Any], ...]:
    """The log, oldest first: `at`, `kind` (see `EventKind`), `assignment`, `note`.

    Raises:
        DatabaseError: see `ErrorCode`.
    """
    row = t.events.c
    found = select(row.at, row.kind, row.assignment, row.note).order_by(row.id)
    return database.read(lambda connection: tuple(connection.execute(found)))


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
        terms = campaigns.read_settings(connection)
        found = {one.assignment: one for one in read_assignments(connection)}
        rows = connection.execute(select(t.payments).order_by(t.payments.c.id))
        made = [
            _make_payment(
                found[row.assignment],
                terms,
                key=row.key,
                kind=row.kind,
                amount=row.amount,
                paid_at=times.format_time(row.paid_at),
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
        session_id=one.session_id,
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
        exclude_others(connection)
        known = select(t.assignments.c.id).where(t.assignments.c.id == number)
        if connection.scalar(known) is None:
            raise errors.DatabaseError("unknown-assignment", "there is no such assignment here")
        columns = (t.payments.c.assignment, t.payments.c.amount, t.payments.c.kind)
        before = connection.execute(select(*columns).where(t.payments.c.key == key)).one_or_none()
        if before is not None:
            if tuple(before) != (number, amount, kind):
                raise errors.DatabaseError("payment-key", f"{key} is the key of another payment")
            return False
        row = {"assignment": number, "amount": amount, "kind": kind, "key": key, "paid_at": now}
        connection.execute(insert(t.payments).values(row))
        t.log_event(connection, "paid", at=now, assignment=number, text=str(amount))
        return True

    return database.write(write)


Launch = Literal["new", "launched", "paused"]
"""`new`: the switch was never turned: tasks are handed out, as when `launched`. `paused`: none
is handed out; who has one goes on with it."""

_SWITCH = ("launched", "paused")


def read_launch(connection: Connection) -> Launch:
    """Return how the switch stands, within a transaction."""
    last = (
        select(t.events.c.kind)
        .where(t.events.c.kind.in_(_SWITCH))
        .order_by(t.events.c.id.desc())
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
        exclude_others(connection)
        if read_launch(connection) == state:
            return False
        t.log_event(connection, state, at=now, text=text)
        return True

    return database.write(write)


def count_sign_outs(database: Database) -> int:
    """Count how often organisers signed out: sessions begun before the last are over.

    Raises:
        DatabaseError: see `ErrorCode`.
    """
    counted = select(func.count()).where(t.events.c.kind == "signed-out")
    return database.read(lambda connection: int(connection.execute(counted).scalar_one()))


def note_sign_out(database: Database, *, now: datetime) -> None:
    """End every session that was begun until now.

    Raises:
        DatabaseError: see `ErrorCode`.
    """
    database.write(lambda connection: t.log_event(connection, "signed-out", at=now))


def pair_texts(database: Database, query: str, a: str, b: str) -> tuple[str, str, str] | None:
    """The texts of a query and two passages by their ids; `None` where one is not shown.

    Raises:
        DatabaseError: see `ErrorCode`.
    """

    def read(connection: Connection) -> tuple[str, str, str] | None:
        asked = select(t.queries.c.text).where(t.queries.c.query == query)
        rows = select(t.passages.c.doc, t.passages.c.text).where(t.passages.c.doc.in_((a, b)))
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
    found = select(t.passages.c.doc, func.length(t.passages.c.text).label("length"))
    rows = database.read(lambda connection: connection.execute(found).all())
    return {row.doc: row.length for row in rows}
