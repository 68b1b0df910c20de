"""The tables of the intake.

Of a token only its SHA-256 is stored. Times are UTC. The files of an upload lie on the disk; what
is said of them here is what was acknowledged.
"""

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    ForeignKey,
    Index,
    Integer,
    String,
    Table,
    Text,
    UniqueConstraint,
    text,
)

from heldout.database.database import Instant, Schema, new_metadata

metadata = new_metadata()

NAMED = {
    **{name: f"{name}_at" for name in ("created", "closed", "expires", "used")},
    **{name: f"{name}_at" for name in ("changed", "completed", "ended")},
}
"""Attribute of what stands for a row -> its column; others are called as theirs."""

INTAKE = Schema(name="intake", metadata=metadata)
"""The tables of the intake."""

teams = Table(
    "teams",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("name", Text, nullable=False),
    Column("key", Text, nullable=False, unique=True),
    Column("mail", Text, nullable=False),
    Column("created_at", Instant, nullable=False),
    Column("closed_at", Instant),
)
"""`key`: the name as names are compared (`board.log.manifest.team_key`). `mail`: "" for none.
`closed_at`: from then on none of its tokens opens anything."""

invitations = Table(
    "invitations",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("hash", String(64), nullable=False, unique=True),
    Column("note", Text, nullable=False),
    Column("team", Integer, ForeignKey("teams.id"), index=True),
    Column("created_at", Instant, nullable=False),
    Column("expires_at", Instant, nullable=False),
    Column("used_at", Instant),
)
"""`team`: who it was for, or who registered by it. `note`: whom the organiser gave it to."""

tokens = Table(
    "tokens",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("team", Integer, ForeignKey("teams.id"), nullable=False, index=True),
    Column("hash", String(64), nullable=False, unique=True),
    Column("kind", String(16), nullable=False),
    Column("created_at", Instant, nullable=False),
    Column("expires_at", Instant),
    Column("revoked_at", Instant),
    CheckConstraint("kind IN ('api', 'session')", name="kind"),
)

identities = Table(
    "identities",
    metadata,
    Column("provider", String(32), primary_key=True),
    Column("subject", Text, primary_key=True),
    Column("team", Integer, ForeignKey("teams.id"), nullable=False, index=True),
    Column("created_at", Instant, nullable=False),
)

uploads = Table(
    "uploads",
    metadata,
    Column("id", String(32), primary_key=True),
    Column("team", Integer, ForeignKey("teams.id"), nullable=False),
    Column("kind", String(16), nullable=False),
    Column("owner", Text, nullable=False),
    Column("state", String(16), nullable=False),
    Column("address", Text, nullable=False),
    Column("created_at", Instant, nullable=False),
    Column("changed_at", Instant, nullable=False),
    Column("completed_at", Instant),
    Column("ended_at", Instant),
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
"""`open`: its files come. `complete`: all are here, and it uses quota; a job hands it over.
`accepted`: it lies where the inbox takes it. `failed` (`code` and `why` say for what) and
`cancelled` use no quota. `owner`: id of the submission or handle of the team that registers.
`address`: who sends it, "" once it has ended."""

upload_files = Table(
    "upload_files",
    metadata,
    Column("upload", String(32), ForeignKey("uploads.id"), primary_key=True),
    Column("name", Text, primary_key=True),
    Column("size", BigInteger, nullable=False),
    Column("digest", String(64), nullable=False),
    Column("received", BigInteger, nullable=False),
    CheckConstraint("received >= 0 AND received <= size", name="received"),
)
"""`size` and `digest` as the sender says; `received`: bytes that are on the disk."""

notices = Table(
    "notices",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("team", Integer, ForeignKey("teams.id"), nullable=False, index=True),
    Column("recipient", Text, nullable=False),
    Column("kind", String(32), nullable=False),
    Column("key", Text, nullable=False),
    Column("owner", Text, nullable=False),
    Column("outcome", Text, nullable=False),
    Column("state", String(16), nullable=False),
    Column("created_at", Instant, nullable=False),
    Column("ended_at", Instant),
    Column("why", Text, nullable=False),
    UniqueConstraint("kind", "key"),
    CheckConstraint("state IN ('waiting', 'sent', 'failed')", name="state"),
)
"""Mails. `key`: what a notice of a kind is about; there is one of each. `outcome`: in words."""
