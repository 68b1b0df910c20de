"""The tables of a campaign in its database, SQLite or PostgreSQL, which is opened here.

Judgments, payments and events are only added to. `tasks.state` and `assignments.failed` say
nothing that the other tables do not: a test derives them. Of the other modules `campaigns` fills
the tables, `claims` hands out tasks, `assignments` is what a judge does with one, `overviews` and
`organiser` are for the organiser. `heldout.database` says what goes wrong; the wing's own codes are
`database-empty`, `payment-key` and `unknown-assignment`.
"""

from sqlalchemy import (
    JSON,
    BigInteger,
    CheckConstraint,
    Column,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    Integer,
    LargeBinary,
    String,
    Table,
    Text,
    UniqueConstraint,
    text,
)

from heldout.database import database
from heldout.database.columns import Instant, new_metadata
from heldout.database.database import Database, Schema

metadata = new_metadata()

campaign = Table(
    "campaign",
    metadata,
    Column("id", Integer, CheckConstraint("id = 1", name="one"), primary_key=True),
    Column("code", Text, nullable=False),
    Column("key", LargeBinary, nullable=False),
    Column("created_at", Instant, nullable=False),
)

batches = Table(
    "batches",
    metadata,
    Column("batch", Integer, primary_key=True, autoincrement=False),
    Column("settings", Text, nullable=False),
    Column("loaded_at", Instant, nullable=False),
)

queries = Table(
    "queries",
    metadata,
    Column("query", Text, primary_key=True),
    Column("text", Text, nullable=False),
)

passages = Table(
    "passages",
    metadata,
    Column("doc", Text, primary_key=True),
    Column("text", Text, nullable=False),
)

pairs = Table(
    "pairs",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("query", Text, ForeignKey("queries.query"), nullable=False),
    Column("a", Text, ForeignKey("passages.doc")),
    Column("b", Text, ForeignKey("passages.doc")),
    UniqueConstraint("query", "a", "b"),
    CheckConstraint("a <> b", name="two"),
)
"""Pairs that nobody knows, by their lesser id first; tests are none. Without `a` and `b`: a query
that is shown with all of its `question_passages`."""

question_passages = Table(
    "question_passages",
    metadata,
    Column("query", Text, ForeignKey("queries.query"), primary_key=True),
    Column("position", Integer, primary_key=True),
    Column("doc", Text, ForeignKey("passages.doc"), nullable=False),
)

tasks = Table(
    "tasks",
    metadata,
    Column("task", Text, primary_key=True),
    Column("batch", Integer, ForeignKey("batches.batch"), nullable=False),
    Column("number", Integer, nullable=False),
    Column("why", String(16), nullable=False),
    Column("state", String(16), nullable=False),
    Column("root", Text, ForeignKey("tasks.task"), nullable=False),
    Column("copy", Integer, nullable=False),
    Column("parent", Text, ForeignKey("tasks.task"), unique=True),
    UniqueConstraint("root", "copy"),
    CheckConstraint("state IN ('open', 'held', 'done', 'void', 'replaced')", name="state"),
    Index("ix_tasks_waiting", "batch", "state", "number"),
)
"""`open`: not handed out. `held`: a worker has it. `done`: finished, and it counts. `void`: handed
out, and it will not count: it waits to be copied for another worker. `replaced`: it was."""

items = Table(
    "items",
    metadata,
    Column("task", Text, ForeignKey("tasks.task"), primary_key=True),
    Column("position", Integer, primary_key=True),
    Column("query", Text, ForeignKey("queries.query"), nullable=False),
    Column("left", Text, ForeignKey("passages.doc")),
    Column("right", Text, ForeignKey("passages.doc")),
    Column("answer", Text),
    Column("pair", Integer, ForeignKey("pairs.id"), index=True),
    CheckConstraint("(answer IS NULL) = (pair IS NOT NULL)", name="test"),
)

workers = Table(
    "workers",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("platform_id", Text, nullable=False, unique=True),
    Column("pseudonym", Text, nullable=False, unique=True),
    Column("first_seen", Instant, nullable=False),
)

assignments = Table(
    "assignments",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("task", Text, ForeignKey("tasks.task"), nullable=False, unique=True),
    Column("worker", Integer, ForeignKey("workers.id"), nullable=False, index=True),
    Column("state", String(16), nullable=False),
    Column("consent_version", Text, nullable=False),
    Column("consented_at", Instant, nullable=False),
    Column("lease_until", Instant, nullable=False),
    Column("ended_at", Instant),
    Column("failed", Integer),
    Column("place", Text, nullable=False),
    Column("study", Text, nullable=False),
    Column("submit_to", Text, nullable=False),
    Column("origin", Text, nullable=False),
    CheckConstraint("state IN ('consented', 'submitted', 'exited', 'expired')", name="state"),
    Index("ix_assignments_lease", "state", "lease_until"),
    Index(
        "uq_assignments_under_way",
        "worker",
        unique=True,
        sqlite_where=text("state = 'consented'"),
        postgresql_where=text("state = 'consented'"),
    ),
)
"""`failed`: tests failed, once nothing about the assignment can change any more; NULL before.
`origin`: a keyed digest of the network it was begun from; "" where that is not known."""

seen = Table(
    "seen",
    metadata,
    Column("worker", Integer, ForeignKey("workers.id"), primary_key=True),
    Column("pair", Integer, ForeignKey("pairs.id"), primary_key=True),
)
"""Which pairs a worker was given: none twice."""

judgments = Table(
    "judgments",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("assignment", Integer, ForeignKey("assignments.id"), nullable=False),
    Column("task", Text, nullable=False),
    Column("position", Integer, nullable=False),
    Column("revision", Integer, nullable=False),
    Column("side", String(16)),
    Column("reason", String(16)),
    Column("shown_at", Instant, nullable=False),
    Column("answered_at", Instant, nullable=False),
    Column("active_ms", BigInteger),
    Column("by", String(8)),
    Column("ticked", JSON, nullable=False),
    ForeignKeyConstraint(["task", "position"], ["items.task", "items.position"]),
    UniqueConstraint("assignment", "position", "revision"),
    CheckConstraint("(side IS NULL) <> (reason IS NULL)", name="choice"),
)
"""Only added to: revision 2 supersedes revision 1 of the same item."""

payments = Table(
    "payments",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("assignment", Integer, ForeignKey("assignments.id"), nullable=False, index=True),
    Column("amount", Integer, nullable=False),
    Column("kind", String(16), nullable=False),
    Column("key", Text, nullable=False, unique=True),
    Column("paid_at", Instant, nullable=False),
)

events = Table(
    "events",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("at", Instant, nullable=False),
    Column("kind", String(16), nullable=False, index=True),
    Column("assignment", Integer, ForeignKey("assignments.id"), index=True),
    Column("note", Text, nullable=False),
)


CAMPAIGN = Schema(name="campaign", metadata=metadata)
"""The tables of a campaign."""


def open_database(url: str, *, processes: int = 1) -> Database:
    """Open the database of a campaign: see `heldout.database.database.open_database`.

    Raises:
        DatabaseError, SetupError: as there.
    """
    return database.open_database(url, CAMPAIGN, processes=processes)
