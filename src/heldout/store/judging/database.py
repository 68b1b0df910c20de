"""The database of a campaign: where it is, opened and brought to the present schema."""

from dataclasses import dataclass

__all__ = ["Database", "open_database"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Database:
    """An open database; threads may share it.

    Attributes:
        name: its address without a password, for messages.
    """

    name: str

    def close(self) -> None:
        """Close every connection."""
        raise NotImplementedError


def open_database(url: str) -> Database:
    """Open a database, made or migrated where necessary.

    Args:
        url: `sqlite:///FILE` or `postgresql://…`.

    Raises:
        SetupError: the extra `web` is not installed.
        DatabaseError: codes `database-address`, `database-lost`, `database-newer` (written by a
            later heldout), `database-other` (not a campaign's), `database-damaged`.
    """
    raise NotImplementedError(url)
