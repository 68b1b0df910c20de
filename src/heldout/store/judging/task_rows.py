"""Tasks in the tables: read, written, and copied for another worker."""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from sqlalchemy import Connection, Row, insert, select, update

from heldout.preferences.assignments import copy_task
from heldout.preferences.tasks import Item, Task
from heldout.store.judging.loading import MARK
from heldout.store.judging.tables import campaign, items, tasks

__all__ = ["add_copy", "add_items", "read_tasks"]


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
    return {name: _make_task(name, of_task) for name, of_task in found.items()}


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
            "left": item.left,
            "right": item.right,
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
    add_items(connection, [task], _read_pairs(connection, name))
    return copy


def _read_pairs(connection: Connection, name: str) -> dict[tuple[str, str, str], int]:
    rows = connection.execute(select(items).where(items.c.task == name, items.c.pair.is_not(None)))
    return {_make_item(row).pair: row.pair for row in rows}


def _make_task(name: str, rows: Sequence[Row[Any]]) -> Task:
    shown = tuple(_make_item(row) for row in rows)
    return Task(task=name, items=shown, why=rows[0].why, batch=rows[0].batch)


def _make_item(row: Row[Any]) -> Item:
    return Item(query=row.query, left=row.left, right=row.right, answer=row.answer)
