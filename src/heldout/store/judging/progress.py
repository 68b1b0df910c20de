"""How far a campaign is, batch by batch."""

from collections import Counter
from dataclasses import dataclass

from sqlalchemy import Connection, distinct, func, select

from heldout.store.judging.answers import is_newest, of_item
from heldout.store.judging.database import Database
from heldout.store.judging.tables import items, judgments, tasks

__all__ = ["Progress", "progress"]


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
