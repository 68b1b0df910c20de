"""The tables of a campaign in its database, which is opened here, and their rows as values.

Judgments, payments and events are only added to. `tasks.state` and `assignments.failed` say
nothing that the other tables do not: a test derives them. Of the other modules `campaigns` fills
the tables, `claims` hands out tasks, `assignments` is what a judge does with one, `organiser` is
for the organiser. `heldout.database` says what goes wrong; the wing's own codes are
`database-empty`, `payment-key` and `unknown-assignment`.
"""

import hashlib
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Literal

import numpy as np
import sqlalchemy as sa

from heldout.database import database, times
from heldout.database.database import Database, Instant, Schema, new_metadata
from heldout.judging.campaign.judgments import Judgment
from heldout.judging.campaign.rows import Item, Task, copy_task

metadata = new_metadata()

campaign = sa.Table(
    "campaign",
    metadata,
    sa.Column("id", sa.Integer, sa.CheckConstraint("id = 1", name="one"), primary_key=True),
    sa.Column("code", sa.Text, nullable=False),
    sa.Column("key", sa.LargeBinary, nullable=False),
    sa.Column("created_at", Instant, nullable=False),
)

batches = sa.Table(
    "batches",
    metadata,
    sa.Column("batch", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("settings", sa.Text, nullable=False),
    sa.Column("loaded_at", Instant, nullable=False),
)

queries = sa.Table(
    "queries",
    metadata,
    sa.Column("query", sa.Text, primary_key=True),
    sa.Column("text", sa.Text, nullable=False),
)

passages = sa.Table(
    "passages",
    metadata,
    sa.Column("doc", sa.Text, primary_key=True),
    sa.Column("text", sa.Text, nullable=False),
)

pairs = sa.Table(
    "pairs",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("query", sa.Text, sa.ForeignKey("queries.query"), nullable=False),
    sa.Column("a", sa.Text, sa.ForeignKey("passages.doc")),
    sa.Column("b", sa.Text, sa.ForeignKey("passages.doc")),
    sa.UniqueConstraint("query", "a", "b"),
    sa.CheckConstraint("a <> b", name="two"),
)
"""Pairs that nobody knows, by their lesser id first; tests are none. Without `a` and `b`: a query
that is shown with all of its `question_passages`."""

question_passages = sa.Table(
    "question_passages",
    metadata,
    sa.Column("query", sa.Text, sa.ForeignKey("queries.query"), primary_key=True),
    sa.Column("position", sa.Integer, primary_key=True),
    sa.Column("doc", sa.Text, sa.ForeignKey("passages.doc"), nullable=False),
)

tasks = sa.Table(
    "tasks",
    metadata,
    sa.Column("task", sa.Text, primary_key=True),
    sa.Column("batch", sa.Integer, sa.ForeignKey("batches.batch"), nullable=False),
    sa.Column("number", sa.Integer, nullable=False),
    sa.Column("why", sa.String(16), nullable=False),
    sa.Column("state", sa.String(16), nullable=False),
    sa.Column("root", sa.Text, sa.ForeignKey("tasks.task"), nullable=False),
    sa.Column("copy", sa.Integer, nullable=False),
    sa.Column("parent", sa.Text, sa.ForeignKey("tasks.task"), unique=True),
    sa.UniqueConstraint("root", "copy"),
    sa.CheckConstraint("state IN ('open', 'held', 'done', 'void', 'replaced')", name="state"),
    sa.Index("ix_tasks_waiting", "batch", "state", "number"),
)
"""`open`: not handed out. `held`: a worker has it. `done`: finished, and it counts. `void`: handed
out, and it will not count: it waits to be copied for another worker. `replaced`: it was."""

items = sa.Table(
    "items",
    metadata,
    sa.Column("task", sa.Text, sa.ForeignKey("tasks.task"), primary_key=True),
    sa.Column("position", sa.Integer, primary_key=True),
    sa.Column("query", sa.Text, sa.ForeignKey("queries.query"), nullable=False),
    sa.Column("left", sa.Text, sa.ForeignKey("passages.doc")),
    sa.Column("right", sa.Text, sa.ForeignKey("passages.doc")),
    sa.Column("answer", sa.Text),
    sa.Column("pair", sa.Integer, sa.ForeignKey("pairs.id"), index=True),
    sa.CheckConstraint("(answer IS NULL) = (pair IS NOT NULL)", name="test"),
)

workers = sa.Table(
    "workers",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("platform_id", sa.Text, nullable=False, unique=True),
    sa.Column("pseudonym", sa.Text, nullable=False, unique=True),
    sa.Column("first_seen", Instant, nullable=False),
)

assignments = sa.Table(
    "assignments",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("task", sa.Text, sa.ForeignKey("tasks.task"), nullable=False, unique=True),
    sa.Column("worker", sa.Integer, sa.ForeignKey("workers.id"), nullable=False, index=True),
    sa.Column("state", sa.String(16), nullable=False),
    sa.Column("consent_version", sa.Text, nullable=False),
    sa.Column("consented_at", Instant, nullable=False),
    sa.Column("lease_until", Instant, nullable=False),
    sa.Column("ended_at", Instant),
    sa.Column("failed", sa.Integer),
    sa.Column("place", sa.Text, nullable=False),
    sa.Column("study", sa.Text, nullable=False),
    sa.Column("submit_to", sa.Text, nullable=False),
    sa.Column("origin", sa.Text, nullable=False),
    sa.CheckConstraint("state IN ('consented', 'submitted', 'exited', 'expired')", name="state"),
    sa.Index("ix_assignments_lease", "state", "lease_until"),
    sa.Index(
        "uq_assignments_under_way",
        "worker",
        unique=True,
        sqlite_where=sa.text("state = 'consented'"),
        postgresql_where=sa.text("state = 'consented'"),
    ),
)
"""`failed`: tests failed, once nothing about the assignment can change any more; NULL before.
`origin`: a keyed digest of the network it was begun from; "" where that is not known."""

seen = sa.Table(
    "seen",
    metadata,
    sa.Column("worker", sa.Integer, sa.ForeignKey("workers.id"), primary_key=True),
    sa.Column("pair", sa.Integer, sa.ForeignKey("pairs.id"), primary_key=True),
)
"""Which pairs a worker was given: none twice."""

judgments = sa.Table(
    "judgments",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("assignment", sa.Integer, sa.ForeignKey("assignments.id"), nullable=False),
    sa.Column("task", sa.Text, nullable=False),
    sa.Column("position", sa.Integer, nullable=False),
    sa.Column("revision", sa.Integer, nullable=False),
    sa.Column("side", sa.String(16)),
    sa.Column("reason", sa.String(16)),
    sa.Column("shown_at", Instant, nullable=False),
    sa.Column("answered_at", Instant, nullable=False),
    sa.Column("active_ms", sa.BigInteger),
    sa.Column("by", sa.String(8)),
    sa.Column("ticked", sa.JSON, nullable=False),
    sa.ForeignKeyConstraint(["task", "position"], ["items.task", "items.position"]),
    sa.UniqueConstraint("assignment", "position", "revision"),
    sa.CheckConstraint("(side IS NULL) <> (reason IS NULL)", name="choice"),
)
"""Only added to: revision 2 supersedes revision 1 of the same item."""

payments = sa.Table(
    "payments",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column(
        "assignment", sa.Integer, sa.ForeignKey("assignments.id"), nullable=False, index=True
    ),
    sa.Column("amount", sa.Integer, nullable=False),
    sa.Column("kind", sa.String(16), nullable=False),
    sa.Column("key", sa.Text, nullable=False, unique=True),
    sa.Column("paid_at", Instant, nullable=False),
)

events = sa.Table(
    "events",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("at", Instant, nullable=False),
    sa.Column("kind", sa.String(16), nullable=False, index=True),
    sa.Column("assignment", sa.Integer, sa.ForeignKey("assignments.id"), index=True),
    sa.Column("note", sa.Text, nullable=False),
)


CAMPAIGN = Schema(name="campaign", metadata=metadata)
"""The tables of a campaign."""


def open_database(url: str, *, processes: int = 1) -> Database:
    """Open the database of a campaign: see `heldout.database.database.open_database`.

    Raises:
        DatabaseError, SetupError: as there.
    """
    return database.open_database(url, CAMPAIGN, processes=processes)


# What lies in the tables, as values: judgments, the answers that stand, tasks, the log.
#
# The log says what happened to assignments, and when; lines are only added to it.


_later = judgments.alias()
NEWEST = ~sa.exists().where(
    _later.c.assignment == judgments.c.assignment,
    _later.c.position == judgments.c.position,
    _later.c.revision > judgments.c.revision,
)
"""No later revision of this judgment is there."""

OF_ITEM = sa.and_(items.c.task == judgments.c.task, items.c.position == judgments.c.position)
"""This judgment is of that item."""


def read_judgments(
    connection: sa.Connection, *wanted: sa.ColumnElement[bool]
) -> tuple[Judgment, ...]:
    """Judgments in the order in which they were recorded; superseded ones too.

    Args:
        connection: of a transaction.
        wanted: conditions on `judgments`, `items` or `assignments`.
    """
    rows = connection.execute(
        sa.select(
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


def _make_judgment(row: sa.Row[Any]) -> Judgment:
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
            "shown_at": times.format_time(row.shown_at),
            "answered_at": times.format_time(row.answered_at),
            "submitted": submitted,
            "submitted_at": times.format_time(row.ended_at) if submitted else "",
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
    connection: sa.Connection,
    kind: EventKind,
    *,
    at: datetime,
    assignment: int | None = None,
    text: str = "",
) -> None:
    """Add an event."""
    row = {"at": at, "kind": kind, "assignment": assignment, "note": text}
    connection.execute(sa.insert(events).values(row))


def read_tasks(connection: sa.Connection, *, only: str | None = None) -> dict[str, Task]:
    """Tasks by id, in the order in which they are handed out; copies too.

    Args:
        connection: of a transaction.
        only: id of the one to read; `None` for all.
    """
    wanted = [] if only is None else [tasks.c.task == only]
    rows = connection.execute(
        sa.select(items, tasks.c.why, tasks.c.batch)
        .join(tasks, tasks.c.task == items.c.task)
        .where(*wanted)
        .order_by(tasks.c.number, tasks.c.copy, items.c.position)
    )
    found: dict[str, list[sa.Row[Any]]] = {}
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
    connection: sa.Connection, new: Iterable[Task], pairs: Mapping[tuple[str, str, str], int]
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
    connection.execute(sa.insert(items), rows)


def add_copy(connection: sa.Connection, name: str, *, same_sides: bool) -> str:
    """Copy a task that waits for another worker, and mark it as replaced.

    Order and sides come from the campaign's key and the name of the copy.

    Args:
        connection: of a transaction that holds the task's lock.
        name: of the task.
        same_sides: see `copy_task`.

    Returns:
        The id of the copy.
    """
    row = connection.execute(sa.select(tasks).where(tasks.c.task == name)).one()
    copy = f"{row.root}{MARK}{row.copy + 1}"
    key = connection.execute(sa.select(campaign.c.key)).scalar_one()
    seed = hashlib.sha256(key + copy.encode()).digest()
    task = copy_task(
        read_tasks(connection, only=name)[name],
        name=copy,
        same_sides=same_sides,
        rng=np.random.default_rng(int.from_bytes(seed)),
    )
    connection.execute(sa.update(tasks).where(tasks.c.task == name).values(state="replaced"))
    values = {"task": copy, "batch": row.batch, "number": row.number, "why": row.why}
    values |= {"state": "open", "root": row.root, "copy": row.copy + 1, "parent": name}
    connection.execute(sa.insert(tasks).values(values))
    known = sa.select(items).where(items.c.task == name, items.c.pair.is_not(None))
    pairs = {_make_item(row).pair: row.pair for row in connection.execute(known)}
    add_items(connection, [task], pairs)
    return copy


def _make_item(row: sa.Row[Any]) -> Item:
    return Item(query=row.query, left=row.left or "", right=row.right or "", answer=row.answer)
