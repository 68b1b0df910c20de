"""The first tables of a campaign, named by the convention of the tables that there are today."""

from alembic import op
from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    Integer,
    LargeBinary,
    String,
    Text,
    UniqueConstraint,
    text,
)

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make them."""
    op.create_table(
        "campaign",
        Column("id", Integer, CheckConstraint("id = 1", name="one"), primary_key=True),
        Column("code", Text, nullable=False),
        Column("key", LargeBinary, nullable=False),
        Column("created_at", String(24), nullable=False),
    )
    op.create_table(
        "batches",
        Column("batch", Integer, primary_key=True, autoincrement=False),
        Column("settings", Text, nullable=False),
        Column("loaded_at", String(24), nullable=False),
    )
    op.create_table(
        "queries",
        Column("query", Text, primary_key=True),
        Column("text", Text, nullable=False),
    )
    op.create_table(
        "passages",
        Column("doc", Text, primary_key=True),
        Column("text", Text, nullable=False),
    )
    op.create_table(
        "pairs",
        Column("id", Integer, primary_key=True, autoincrement=False),
        Column("query", Text, ForeignKey("queries.query"), nullable=False),
        Column("a", Text, ForeignKey("passages.doc"), nullable=False),
        Column("b", Text, ForeignKey("passages.doc"), nullable=False),
        UniqueConstraint("query", "a", "b"),
        CheckConstraint("a <> b", name="two"),
    )
    op.create_table(
        "tasks",
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
    op.create_table(
        "items",
        Column("task", Text, ForeignKey("tasks.task"), primary_key=True),
        Column("position", Integer, primary_key=True),
        Column("query", Text, ForeignKey("queries.query"), nullable=False),
        Column("left", Text, ForeignKey("passages.doc"), nullable=False),
        Column("right", Text, ForeignKey("passages.doc"), nullable=False),
        Column("answer", Text),
        Column("pair", Integer, ForeignKey("pairs.id"), index=True),
        CheckConstraint("(answer IS NULL) = (pair IS NOT NULL)", name="test"),
    )
    op.create_table(
        "workers",
        Column("id", Integer, primary_key=True),
        Column("platform_id", Text, nullable=False, unique=True),
        Column("pseudonym", Text, nullable=False, unique=True),
        Column("first_seen", String(24), nullable=False),
    )
    op.create_table(
        "assignments",
        Column("id", Integer, primary_key=True),
        Column("task", Text, ForeignKey("tasks.task"), nullable=False, unique=True),
        Column("worker", Integer, ForeignKey("workers.id"), nullable=False, index=True),
        Column("state", String(16), nullable=False),
        Column("consent_version", Text, nullable=False),
        Column("consented_at", String(24), nullable=False),
        Column("lease_until", String(24), nullable=False),
        Column("ended_at", String(24)),
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
    op.create_table(
        "seen",
        Column("worker", Integer, ForeignKey("workers.id"), primary_key=True),
        Column("pair", Integer, ForeignKey("pairs.id"), primary_key=True),
    )
    op.create_table(
        "judgments",
        Column("id", Integer, primary_key=True),
        Column("assignment", Integer, ForeignKey("assignments.id"), nullable=False),
        Column("task", Text, nullable=False),
        Column("position", Integer, nullable=False),
        Column("revision", Integer, nullable=False),
        Column("side", String(8)),
        Column("reason", String(16)),
        Column("shown_at", String(24), nullable=False),
        Column("answered_at", String(24), nullable=False),
        Column("active_ms", BigInteger),
        Column("by", String(8)),
        ForeignKeyConstraint(["task", "position"], ["items.task", "items.position"]),
        UniqueConstraint("assignment", "position", "revision"),
        CheckConstraint("(side IS NULL) <> (reason IS NULL)", name="choice"),
    )
    op.create_table(
        "payments",
        Column("id", Integer, primary_key=True),
        Column("assignment", Integer, ForeignKey("assignments.id"), nullable=False, index=True),
        Column("amount", Integer, nullable=False),
        Column("kind", String(16), nullable=False),
        Column("key", Text, nullable=False, unique=True),
        Column("paid_at", String(24), nullable=False),
    )
    op.create_table(
        "events",
        Column("id", Integer, primary_key=True),
        Column("at", String(24), nullable=False),
        Column("kind", String(16), nullable=False, index=True),
        Column("assignment", Integer, ForeignKey("assignments.id"), index=True),
        Column("note", Text, nullable=False),
    )


def downgrade() -> None:
    """Drop them, with all that they hold."""
    for name in (
        *("events", "payments", "judgments", "seen", "assignments", "workers", "items", "tasks"),
        *("pairs", "passages", "queries", "batches", "campaign"),
    ):
        op.drop_table(name)
