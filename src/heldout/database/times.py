"""Times as texts that sort as the times do: SQLite has no type for a time that keeps the zone."""

from datetime import UTC, datetime


def format_time(moment: datetime) -> str:
    """ISO 8601 in UTC with milliseconds.

    Raises:
        ValueError: the time has no zone.
    """
    if moment.tzinfo is None:
        raise ValueError(moment)
    return moment.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="milliseconds") + "Z"
