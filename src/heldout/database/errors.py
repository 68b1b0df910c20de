"""What can go wrong with a database, SQLite or PostgreSQL, as one error with a code."""

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Literal

from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from heldout.errors import StoreError

ErrorCode = Literal[
    "database-address",
    "database-busy",
    "database-connections",
    "database-damaged",
    "database-full",
    "database-lost",
    "database-other",
    "database-read-only",
]
"""What is wrong with a database; each has a row in docs/reference/errors.md."""


class DatabaseError(StoreError):
    """The database refused, failed or is gone; nothing of what was asked has been written.

    One exception: where the connection is lost while the database commits, it may have been. What
    is asked again is then found done: nothing is taken twice.

    Attributes:
        code: what is wrong: an `ErrorCode`, or one of the wing that raises it.
    """

    def __init__(self, code: str, text: str) -> None:
        super().__init__(f"{code}: {text}", code=code)


@contextmanager
def translated(name: str) -> Iterator[None]:
    """Within it, what a driver raises becomes a `DatabaseError`; a bug stays what it is.

    Args:
        name: of the database, for the text.
    """
    try:
        yield
    except PoolTimeoutError:
        raise DatabaseError("database-busy", f"{name}: every connection is in use") from None
    except DBAPIError as error:
        code = _classify(error)
        if code is None:
            raise
        first, *_ = str(error.orig).strip().splitlines() or ["no more is known"]
        raise DatabaseError(code, f"{name} {_TEXTS[code]} ({first})") from error


def is_passing(error: DBAPIError) -> bool:
    """Check whether the database undid a transaction that can run again."""
    return getattr(error.orig, "sqlstate", None) in ("40001", "40P01")


_TEXTS: Mapping[ErrorCode, str] = {
    "database-address": "cannot be opened with this name, password or address",
    "database-busy": "is busy; try again",
    "database-connections": (
        "has no free connection: all that its max_connections allows are in use. Raise that "
        "setting or start fewer --workers; what was asked can be asked again"
    ),
    "database-damaged": "is damaged, or no database; restore it from the backup",
    "database-full": "has no room left; nothing was written",
    "database-lost": "cannot be reached; what was asked can be asked again",
    "database-read-only": "cannot be written to by this user",
}

_SQLITE: Mapping[int, ErrorCode] = {
    sqlite3.SQLITE_BUSY: "database-busy",
    sqlite3.SQLITE_LOCKED: "database-busy",
    sqlite3.SQLITE_FULL: "database-full",
    sqlite3.SQLITE_CORRUPT: "database-damaged",
    sqlite3.SQLITE_NOTADB: "database-damaged",
    sqlite3.SQLITE_READONLY: "database-read-only",
    sqlite3.SQLITE_PERM: "database-read-only",
    sqlite3.SQLITE_AUTH: "database-read-only",
    sqlite3.SQLITE_CANTOPEN: "database-address",
    sqlite3.SQLITE_IOERR: "database-lost",
}

_POSTGRESQL: Mapping[str, ErrorCode] = {
    "08": "database-lost",
    "25006": "database-read-only",
    "28": "database-address",
    "3D": "database-address",
    "40": "database-busy",
    "42501": "database-read-only",
    "53100": "database-full",
    "53300": "database-connections",
    "53": "database-busy",
    "55P03": "database-busy",
    "57": "database-lost",
    "58": "database-lost",
    "XX": "database-damaged",
}
"""SQLSTATE, or the class that its first two characters name."""


_NO_CONNECTION = ("too many clients", "remaining connection slots")
"""What PostgreSQL answers then: to who is not connected, psycopg gives no SQLSTATE."""


def _classify(error: DBAPIError) -> ErrorCode | None:
    """Return what is wrong; `None` where it is nothing of the database's."""
    if isinstance(error.orig, sqlite3.Error):
        return _SQLITE.get(getattr(error.orig, "sqlite_errorcode", 0) & 0xFF)
    state = getattr(error.orig, "sqlstate", None)
    if state is None:
        if any(words in str(error.orig) for words in _NO_CONNECTION):
            return "database-connections"
        lost = error.connection_invalidated or type(error.orig).__name__ == "OperationalError"
        return "database-lost" if lost else None
    return _POSTGRESQL.get(state, _POSTGRESQL.get(state[:2]))
