"""How far a campaign is, batch by batch."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from sqlalchemy import Connection, distinct, func, select

from heldout.preferences.assignments import amount_owed
from heldout.preferences.settings import Settings
from heldout.store.judging.answers import is_newest, of_item
from heldout.store.judging.campaigns import read_settings
from heldout.store.judging.database import Database
from heldout.store.judging.tables import items, judgments, tasks

__all__ = ["Progress", "UncountedPay", "progress", "read_uncounted_pay", "uncounted_pay"]

_LEAST_REWARDS = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
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
    """

    earned: int
    limit: int

    @property
    def is_spent(self) -> bool:
        """Whether no further task is handed out."""
        return self.earned > 0 and self.earned >= self.limit


def uncounted_pay(database: Database) -> UncountedPay:
    """What tasks have earned that do not count, and how much they may.

    Raises:
        DatabaseError: see `Fault`.
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
        select(tasks.c.batch, func.count()).where(tasks.c.copy == 1).group_by(tasks.c.batch)
    )
    newest = terms[max(terms)]
    rewards = sum(terms[batch].reward * number for batch, number in planned)
    given = (
        select(
            judgments.c.assignment,
            judgments.c.task,
            func.count(distinct(judgments.c.position)).label("answered"),
        )
        .group_by(judgments.c.assignment, judgments.c.task)
        .subquery()
    )
    of_task = select(func.count()).where(items.c.task == tasks.c.task).scalar_subquery()
    rows = connection.execute(
        select(tasks.c.batch, given.c.answered, of_task.label("items"))
        .join(given, given.c.task == tasks.c.task)
        .where(tasks.c.state.in_(("void", "replaced")))
    )
    earned = sum(
        amount_owed(reward=terms[row.batch].reward, answered=row.answered, items=row.items)
        for row in rows
    )
    share = rewards * newest.uncounted_percent // 100
    return UncountedPay(earned=earned, limit=max(share, _LEAST_REWARDS * newest.reward))


def progress(database: Database) -> tuple[Progress, ...]:
    """How far each batch is, by its number.

    Raises:
        DatabaseError: see `Fault`.
    """
    return database.read(_read_progress)


def _read_progress(connection: Connection) -> tuple[Progress, ...]:
    states: Counter[tuple[int, str]] = Counter()
    copies: Counter[int] = Counter()
    rows = connection.execute(
        select(tasks.c.batch, tasks.c.state, func.count()).group_by(tasks.c.batch, tasks.c.state)
    )
    for batch, state, number in rows:
        states[batch, state] = number
        copies[batch] += number if state == "replaced" else 0
    planned = connection.execute(
        select(tasks.c.batch, func.count(), func.count(distinct(items.c.pair)))
        .join(items, items.c.task == tasks.c.task)
        .where(tasks.c.copy == 1, items.c.pair.is_not(None))
        .group_by(tasks.c.batch)
    )
    pairs = {batch: (number, different) for batch, number, different in planned}
    votes = connection.execute(
        select(tasks.c.batch, func.count().label("votes"))
        .select_from(judgments)
        .join(items, of_item(items))
        .join(tasks, tasks.c.task == judgments.c.task)
        .where(tasks.c.state == "done", items.c.pair.is_not(None), judgments.c.side.is_not(None))
        .where(is_newest())
        .group_by(tasks.c.batch)
    )
    counted = {row.batch: row.votes for row in votes}
    return tuple(
        Progress(
            batch=batch,
            tasks=sum(states[batch, name] for name in ("open", "held", "done", "void")),
            done=states[batch, "done"],
            held=states[batch, "held"],
            waiting=states[batch, "open"] + states[batch, "void"],
            copies=copies[batch],
            votes=counted.get(batch, 0),
            planned=pairs.get(batch, (0, 0))[0],
            pairs=pairs.get(batch, (0, 0))[1],
        )
        for batch in sorted({batch for batch, _ in states})
    )
