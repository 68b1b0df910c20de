"""The first tables of a campaign."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make them."""
    op.create_table(
        "batches",
        sa.Column("batch", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("settings", sa.Text(), nullable=False),
        sa.Column("loaded_at", sa.String(24), nullable=False),
        sa.PrimaryKeyConstraint("batch", name=op.f("pk_batches")),
    )
    op.create_table(
        "campaign",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("code", sa.Text(), nullable=False),
        sa.Column("key", sa.LargeBinary(), nullable=False),
        sa.Column("created_at", sa.String(24), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_campaign")),
    )
    op.create_table(
        "passages",
        sa.Column("doc", sa.Text(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("doc", name=op.f("pk_passages")),
    )
    op.create_table(
        "queries",
        sa.Column("query", sa.Text(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("query", name=op.f("pk_queries")),
    )
    op.create_table(
        "workers",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("platform_id", sa.Text(), nullable=False),
        sa.Column("pseudonym", sa.Text(), nullable=False),
        sa.Column("first_seen", sa.String(24), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_workers")),
        sa.UniqueConstraint("platform_id", name=op.f("uq_workers_platform_id")),
        sa.UniqueConstraint("pseudonym", name=op.f("uq_workers_pseudonym")),
    )
    op.create_table(
        "pairs",
        sa.Column("id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("query", sa.Text(), nullable=False),
        sa.Column("a", sa.Text(), nullable=False),
        sa.Column("b", sa.Text(), nullable=False),
        sa.CheckConstraint("a <> b", name=op.f("ck_pairs_two")),
        sa.ForeignKeyConstraint(["a"], ["passages.doc"], name=op.f("fk_pairs_a")),
        sa.ForeignKeyConstraint(["b"], ["passages.doc"], name=op.f("fk_pairs_b")),
        sa.ForeignKeyConstraint(["query"], ["queries.query"], name=op.f("fk_pairs_query")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_pairs")),
        sa.UniqueConstraint("query", "a", "b", name=op.f("uq_pairs_query_a_b")),
    )
    op.create_table(
        "tasks",
        sa.Column("task", sa.Text(), nullable=False),
        sa.Column("batch", sa.Integer(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("why", sa.String(length=16), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("root", sa.Text(), nullable=False),
        sa.Column("copy", sa.Integer(), nullable=False),
        sa.Column("parent", sa.Text(), nullable=True),
        sa.CheckConstraint(
            "state IN ('open', 'held', 'done', 'void', 'replaced')", name=op.f("ck_tasks_state")
        ),
        sa.ForeignKeyConstraint(["batch"], ["batches.batch"], name=op.f("fk_tasks_batch")),
        sa.ForeignKeyConstraint(["parent"], ["tasks.task"], name=op.f("fk_tasks_parent")),
        sa.ForeignKeyConstraint(["root"], ["tasks.task"], name=op.f("fk_tasks_root")),
        sa.PrimaryKeyConstraint("task", name=op.f("pk_tasks")),
        sa.UniqueConstraint("parent", name=op.f("uq_tasks_parent")),
        sa.UniqueConstraint("root", "copy", name=op.f("uq_tasks_root_copy")),
    )
    op.create_index("ix_tasks_waiting", "tasks", ["batch", "state", "number"], unique=False)
    op.create_table(
        "assignments",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("task", sa.Text(), nullable=False),
        sa.Column("worker", sa.Integer(), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("consent_version", sa.Text(), nullable=False),
        sa.Column("consented_at", sa.String(24), nullable=False),
        sa.Column("lease_until", sa.String(24), nullable=False),
        sa.Column("ended_at", sa.String(24), nullable=True),
        sa.Column("failed", sa.Integer(), nullable=True),
        sa.Column("place", sa.Text(), nullable=False),
        sa.Column("study", sa.Text(), nullable=False),
        sa.Column("submit_to", sa.Text(), nullable=False),
        sa.CheckConstraint(
            "state IN ('consented', 'submitted', 'exited', 'expired')",
            name=op.f("ck_assignments_state"),
        ),
        sa.ForeignKeyConstraint(["task"], ["tasks.task"], name=op.f("fk_assignments_task")),
        sa.ForeignKeyConstraint(["worker"], ["workers.id"], name=op.f("fk_assignments_worker")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_assignments")),
        sa.UniqueConstraint("task", name=op.f("uq_assignments_task")),
    )
    op.create_index("ix_assignments_lease", "assignments", ["state", "lease_until"], unique=False)
    op.create_index(op.f("ix_assignments_worker"), "assignments", ["worker"], unique=False)
    op.create_index(
        "uq_assignments_under_way",
        "assignments",
        ["worker"],
        unique=True,
        sqlite_where=sa.text("state = 'consented'"),
        postgresql_where=sa.text("state = 'consented'"),
    )
    op.create_table(
        "items",
        sa.Column("task", sa.Text(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("query", sa.Text(), nullable=False),
        sa.Column("left", sa.Text(), nullable=False),
        sa.Column("right", sa.Text(), nullable=False),
        sa.Column("answer", sa.Text(), nullable=True),
        sa.Column("pair", sa.Integer(), nullable=True),
        sa.CheckConstraint("(answer IS NULL) = (pair IS NOT NULL)", name=op.f("ck_items_test")),
        sa.ForeignKeyConstraint(["left"], ["passages.doc"], name=op.f("fk_items_left")),
        sa.ForeignKeyConstraint(["pair"], ["pairs.id"], name=op.f("fk_items_pair")),
        sa.ForeignKeyConstraint(["query"], ["queries.query"], name=op.f("fk_items_query")),
        sa.ForeignKeyConstraint(["right"], ["passages.doc"], name=op.f("fk_items_right")),
        sa.ForeignKeyConstraint(["task"], ["tasks.task"], name=op.f("fk_items_task")),
        sa.PrimaryKeyConstraint("task", "position", name=op.f("pk_items")),
    )
    op.create_index(op.f("ix_items_pair"), "items", ["pair"], unique=False)
    op.create_table(
        "seen",
        sa.Column("worker", sa.Integer(), nullable=False),
        sa.Column("pair", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(["pair"], ["pairs.id"], name=op.f("fk_seen_pair")),
        sa.ForeignKeyConstraint(["worker"], ["workers.id"], name=op.f("fk_seen_worker")),
        sa.PrimaryKeyConstraint("worker", "pair", name=op.f("pk_seen")),
    )
    op.create_table(
        "events",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("at", sa.String(24), nullable=False),
        sa.Column("kind", sa.String(length=16), nullable=False),
        sa.Column("assignment", sa.Integer(), nullable=True),
        sa.Column("note", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["assignment"], ["assignments.id"], name=op.f("fk_events_assignment")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_events")),
    )
    op.create_index(op.f("ix_events_assignment"), "events", ["assignment"], unique=False)
    op.create_index(op.f("ix_events_kind"), "events", ["kind"], unique=False)
    op.create_table(
        "judgments",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("assignment", sa.Integer(), nullable=False),
        sa.Column("task", sa.Text(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.Column("side", sa.String(length=8), nullable=True),
        sa.Column("reason", sa.String(length=16), nullable=True),
        sa.Column("shown_at", sa.String(24), nullable=False),
        sa.Column("answered_at", sa.String(24), nullable=False),
        sa.Column("active_ms", sa.BigInteger(), nullable=True),
        sa.Column("by", sa.String(length=8), nullable=True),
        sa.CheckConstraint("(side IS NULL) <> (reason IS NULL)", name=op.f("ck_judgments_choice")),
        sa.ForeignKeyConstraint(
            ["assignment"], ["assignments.id"], name=op.f("fk_judgments_assignment")
        ),
        sa.ForeignKeyConstraint(
            ["task", "position"],
            ["items.task", "items.position"],
            name=op.f("fk_judgments_task_position"),
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_judgments")),
        sa.UniqueConstraint(
            "assignment",
            "position",
            "revision",
            name=op.f("uq_judgments_assignment_position_revision"),
        ),
    )
    op.create_table(
        "payments",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("assignment", sa.Integer(), nullable=False),
        sa.Column("amount", sa.Integer(), nullable=False),
        sa.Column("kind", sa.String(length=16), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("paid_at", sa.String(24), nullable=False),
        sa.ForeignKeyConstraint(
            ["assignment"], ["assignments.id"], name=op.f("fk_payments_assignment")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_payments")),
        sa.UniqueConstraint("key", name=op.f("uq_payments_key")),
    )
    op.create_index(op.f("ix_payments_assignment"), "payments", ["assignment"], unique=False)
