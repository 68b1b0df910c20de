"""Alembic runs this file."""

from heldout.database.database import run_migrations

run_migrations()
