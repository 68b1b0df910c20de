"""What lies in the tables, as values: judgments, the answers that stand, tasks, the log.

The log says what happened to assignments, and when; lines are only added to it.
"""

import hashlib
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Literal

import numpy as np
from sqlalchemy import ColumnElement, Connection, Row, and_, exists, insert, select, update

from heldout.database.times import format_time
from heldout.judging.campaign.judgments import Judgment
from heldout.judging.campaign.rows import Item, Task, copy_task
from heldout.judging.database.tables import (
    assignments,
    campaign,
    events,
    items,
    judgments,
    tasks,
    workers,
)

_later = judgments.alias()
NEWEST = ~exists().where(
    _later.c.assignment == judgments.c.assignment,
    _later.c.position == judgments.c.position,
    _later.c.revision > judgments.c.revision,
)
"""No later revision of this judgment is there."""

OF_ITEM = and_(items.c.task == judgments.c.task, items.c.position == judgments.c.position)
"""This judgment is of that item."""


def read_judgments(connection: Connection, *wanted: ColumnElement[bool]) -> tuple[Judgment, ...]:
    """Judgments in the order in which they were recorded; superseded ones too.

    Args:
        connection: of a transaction.
        wanted: conditions on `judgments`, `items` or `assignments`.
    """
    rows = connection.execute(
        select(
            judgments,
            *(items.c.query, items.c.left, items.c.right, items.c.answer),
            tasks.c.why,
            workers.c.pseudonym,
            *(assignments.c.state, assignments.c.ended_at),
        )
        .join(items, OF_ITEM)
        .join(tasks, tasks.c.task == judgments.c.task)
        .join(assignments, assignments.c.id == judgments.c.assignment)
        .join(workers, workers.c.id == assignments.c.worker)
        .where(*wanted)
        .order_by(judgments.c.id)
    )
    return tuple(_make_judgment(row) for row in rows)


def _make_judgment(row: Row[Any]) -> Judgment:
    stored = row._asdict()  # columns of a judgment have the names of its fields
    fields = {name: stored[name] for name in Judgment.__struct_fields__ if name in stored}
    submitted = row.state == "submitted"
    asked = row.left is None
    return Judgment(
        **fields
        | {
            "left": row.left or "",
            "right": row.right or "",
            "preferred": {"left": row.left, "right": row.right}.get(row.side),
            "choice": row.side if asked else None,
            "ticked": tuple(row.ticked),
            "worker": row.pseudonym,
            "shown_at": format_time(row.shown_at),
            "answered_at": format_time(row.answered_at),
            "submitted": submitted,
            "submitted_at": format_time(row.ended_at) if submitted else "",
        }
    )


MARK = "~"
"""Stands between a task's id and the number of its copy."""

EventKind = Literal[
    "loaded",
    "consented",
    "resumed",
    "copied",
    "submitted",
    "exited",
    "expired",
    "excluded",
    "paid",
    "launched",
    "paused",
    "signed-out",
]
"""`copied`: the task was given to another worker. `excluded`: failed tests; what counts no more.
`launched`, `paused`, `signed-out`: the organiser did (see `organiser`)."""


def log_event(
    connection: Connection,
    kind: EventKind,
    *,
    at: datetime,
    assignment: int | None = None,
    text: str = "",
) -> None:
    """Add an event."""
    row = {"at": at, "kind": kind, "assignment": assignment, "note": text}
    connection.execute(insert(events).values(row))


def read_tasks(connection: Connection, *, only: str | None = None) -> dict[str, Task]:
    """Tasks by id, in the order in which they are handed out; copies too.

    Args:
        connection: of a transaction.
        only: id of the one to read; `None` for all.
    """
    wanted = [] if only is None else [tasks.c.task == only]
    rows = connection.execute(
        select(items, tasks.c.why, tasks.c.batch)
        .join(tasks, tasks.c.task == items.c.task)
        .where(*wanted)
        .order_by(tasks.c.number, tasks.c.copy, items.c.position)
    )
    found: dict[str, list[Row[Any]]] = {}
    for row in rows:
        found.setdefault(row.task, []).append(row)
    return {
        name: Task(
            task=name,
            items=tuple(_make_item(row) for row in of_task),
            why=of_task[0].why,
            batch=of_task[0].batch,
        )
        for name, of_task in found.items()
    }


def add_items(
    connection: Connection, new: Iterable[Task], pairs: Mapping[tuple[str, str, str], int]
) -> None:
    """Write the items of tasks.

    Args:
        connection: of a transaction.
        new: tasks that are in the table already.
        pairs: ids of the pairs that nobody knows.
    """
    rows = [
        {
            "task": task.task,
            "position": position,
            "query": item.query,
            "left": item.left or None,
            "right": item.right or None,
            "answer": item.answer,
            "pair": pairs[item.pair] if item.answer is None else None,
        }
        for task in new
        for position, item in enumerate(task.items, 1)
    ]
    connection.execute(insert(items), rows)


def add_copy(connection: Connection, name: str, *, keep_sides: bool) -> str:
    """Copy a task that waits for another worker, and mark it as replaced.

    Order and sides come from the campaign's key and the name of the copy.

    Args:
        connection: of a transaction that holds the task's lock.
        name: of the task.
        keep_sides: see `copy_task`.

    Returns:
        The id of the copy.
    """
    row = connection.execute(select(tasks).where(tasks.c.task == name)).one()
    copy = f"{row.root}{MARK}{row.copy + 1}"
    key = connection.execute(select(campaign.c.key)).scalar_one()
    seed = hashlib.sha256(key + copy.encode()).digest()
    task = copy_task(
        read_tasks(connection, only=name)[name],
        name=copy,
        keep_sides=keep_sides,
        rng=np.random.default_rng(int.from_bytes(seed)),
    )
    connection.execute(update(tasks).where(tasks.c.task == name).values(state="replaced"))
    values = {"task": copy, "batch": row.batch, "number": row.number, "why": row.why}
    values |= {"state": "open", "root": row.root, "copy": row.copy + 1, "parent": name}
    connection.execute(insert(tasks).values(values))
    known = select(items).where(items.c.task == name, items.c.pair.is_not(None))
    pairs = {_make_item(row).pair: row.pair for row in connection.execute(known)}
    add_items(connection, [task], pairs)
    return copy


def _make_item(row: Row[Any]) -> Item:
    return Item(query=row.query, left=row.left or "", right=row.right or "", answer=row.answer)
