"""What the tables of every wing are made with: times, and the names of their constraints."""

from datetime import datetime

from sqlalchemy import Dialect, MetaData, String, TypeDecorator

from heldout.database.times import format_time


class Instant(TypeDecorator[datetime]):
    """A time, stored as text: SQLite has no type for it that keeps the zone."""

    impl = String(24)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> str | None:  # noqa: ARG002 - SQLAlchemy's signature
        """Return what is stored."""
        return None if value is None else format_time(value)

    def process_result_value(self, value: str | None, dialect: Dialect) -> datetime | None:  # noqa: ARG002 - SQLAlchemy's signature
        """Return what is read."""
        return None if value is None else datetime.fromisoformat(value)


def new_metadata() -> MetaData:
    """Tables whose constraints and indexes are named by one convention."""
    return MetaData(
        naming_convention={
            "ix": "ix_%(table_name)s_%(column_0_N_name)s",
            "uq": "uq_%(table_name)s_%(column_0_N_name)s",
            "ck": "ck_%(table_name)s_%(constraint_name)s",
            "fk": "fk_%(table_name)s_%(column_0_N_name)s",
            "pk": "pk_%(table_name)s",
        }
    )
