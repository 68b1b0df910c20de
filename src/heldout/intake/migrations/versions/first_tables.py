"""The first tables of the intake, named by the convention of the tables that there are today."""

from alembic import op
from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    ForeignKey,
    Index,
    Integer,
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
        "teams",
        Column("id", Integer, primary_key=True),
        Column("name", Text, nullable=False),
        Column("key", Text, nullable=False, unique=True),
        Column("mail", Text, nullable=False),
        Column("created_at", String(24), nullable=False),
        Column("closed_at", String(24)),
    )
    op.create_table(
        "invitations",
        Column("id", Integer, primary_key=True),
        Column("hash", String(64), nullable=False, unique=True),
        Column("note", Text, nullable=False),
        Column("team", Integer, ForeignKey("teams.id"), index=True),
        Column("created_at", String(24), nullable=False),
        Column("expires_at", String(24), nullable=False),
        Column("used_at", String(24)),
    )
    op.create_table(
        "tokens",
        Column("id", Integer, primary_key=True),
        Column("team", Integer, ForeignKey("teams.id"), nullable=False, index=True),
        Column("hash", String(64), nullable=False, unique=True),
        Column("kind", String(16), nullable=False),
        Column("name", Text, nullable=False),
        Column("created_at", String(24), nullable=False),
        Column("expires_at", String(24)),
        Column("used_at", String(24)),
        Column("revoked_at", String(24)),
        CheckConstraint("kind IN ('api', 'session')", name="kind"),
    )
    op.create_table(
        "identities",
        Column("provider", String(32), primary_key=True),
        Column("subject", Text, primary_key=True),
        Column("team", Integer, ForeignKey("teams.id"), nullable=False, index=True),
        Column("name", Text, nullable=False),
        Column("created_at", String(24), nullable=False),
    )
    op.create_table(
        "uploads",
        Column("id", String(32), primary_key=True),
        Column("team", Integer, ForeignKey("teams.id"), nullable=False),
        Column("kind", String(16), nullable=False),
        Column("owner", Text, nullable=False),
        Column("state", String(16), nullable=False),
        Column("address", Text, nullable=False),
        Column("created_at", String(24), nullable=False),
        Column("changed_at", String(24), nullable=False),
        Column("completed_at", String(24)),
        Column("ended_at", String(24)),
        Column("code", Text, nullable=False),
        Column("why", Text, nullable=False),
        CheckConstraint("kind IN ('submission', 'update', 'registration')", name="kind"),
        CheckConstraint(
            "state IN ('open', 'complete', 'accepted', 'failed', 'cancelled')", name="state"
        ),
        Index("ix_uploads_team", "team", "created_at"),
        Index("ix_uploads_state", "state", "changed_at"),
        Index(
            "uq_uploads_submission",
            "owner",
            unique=True,
            sqlite_where=text("kind = 'submission' AND state IN ('complete', 'accepted')"),
            postgresql_where=text("kind = 'submission' AND state IN ('complete', 'accepted')"),
        ),
    )
    op.create_table(
        "upload_files",
        Column("upload", String(32), ForeignKey("uploads.id"), primary_key=True),
        Column("name", Text, primary_key=True),
        Column("size", BigInteger, nullable=False),
        Column("digest", String(64), nullable=False),
        Column("received", BigInteger, nullable=False),
        CheckConstraint("received >= 0 AND received <= size", name="received"),
    )
    op.create_table(
        "notices",
        Column("id", Integer, primary_key=True),
        Column("team", Integer, ForeignKey("teams.id"), nullable=False, index=True),
        Column("recipient", Text, nullable=False),
        Column("kind", String(32), nullable=False),
        Column("key", Text, nullable=False),
        Column("details", Text, nullable=False),
        Column("state", String(16), nullable=False),
        Column("created_at", String(24), nullable=False),
        Column("ended_at", String(24)),
        Column("why", Text, nullable=False),
        UniqueConstraint("kind", "key"),
        CheckConstraint("state IN ('waiting', 'sent', 'failed')", name="state"),
    )
    op.create_table(
        "jobs",
        Column("id", Integer, primary_key=True),
        Column("kind", String(32), nullable=False),
        Column("key", Text, nullable=False),
        Column("payload", Text, nullable=False),
        Column("state", String(16), nullable=False),
        Column("attempts", Integer, nullable=False),
        Column("most", Integer, nullable=False),
        Column("due_at", String(24), nullable=False),
        Column("created_at", String(24), nullable=False),
        Column("ended_at", String(24)),
        Column("result", Text, nullable=False),
        Column("why", Text, nullable=False),
        UniqueConstraint("kind", "key"),
        CheckConstraint("state IN ('waiting', 'leased', 'done', 'failed')", name="state"),
        Index("ix_jobs_due", "state", "due_at"),
    )


def downgrade() -> None:
    """Drop them, with all that they hold."""
    for name in (
        "jobs",
        "notices",
        "upload_files",
        "uploads",
        "identities",
        "tokens",
        "invitations",
        "teams",
    ):
        op.drop_table(name)
