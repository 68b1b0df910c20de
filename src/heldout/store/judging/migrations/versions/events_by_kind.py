"""An index of events by kind: every claim asks for the last switch."""

from alembic import op

__all__ = ["branch_labels", "depends_on", "down_revision", "revision", "upgrade"]

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make it."""
    op.create_index(op.f("ix_events_kind"), "events", ["kind"], unique=False)
