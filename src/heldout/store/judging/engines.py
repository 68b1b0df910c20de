"""Connections to SQLite and PostgreSQL, set up so that what is acknowledged is on the disk."""

import os
import sqlite3
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Engine, create_engine, event, make_url
from sqlalchemy.exc import ArgumentError

from heldout.errors import SetupError, quote
from heldout.store.judging.faults import DatabaseError

__all__ = ["WRITING", "connections_each", "make_engine", "parse_url", "sqlite_url"]

WRITING = "heldout_writing"
"""Option of a connection whose transaction writes: SQLite then takes the lock at its beginning."""

_MAKING = threading.Lock()
_PATIENCE_S = 30
_CONNECTIONS = 40
_SPARED = 10
"""Connections of a PostgreSQL server that are left to others: a backup, psql, `heldout prefer`."""

_LEAST = 2
_TRIES = 100
_PAUSE_S = 0.02
_FORMS = "expected sqlite:///FILE or postgresql://USER:PASSWORD@HOST/DATABASE"


def sqlite_url(path: Path) -> str:
    """The address of a SQLite file."""
    return URL.create("sqlite", database=str(path)).render_as_string(hide_password=False)


def parse_url(text: str) -> URL:
    """An address, with the driver that we use.

    Raises:
        DatabaseError: code `database-address`.
    """
    try:
        url = make_url(text)
    except (ArgumentError, ValueError):
        raise DatabaseError("database-address", f"not an address; {_FORMS}") from None
    engine = url.drivername.partition("+")[0]
    if engine in ("postgres", "postgresql"):
        return url.set(drivername="postgresql+psycopg")
    if engine != "sqlite":
        raise DatabaseError("database-address", f"{quote(engine)} is not supported; {_FORMS}")
    if url.database in (None, "", ":memory:"):
        raise DatabaseError("database-address", f"a database in memory is soon lost; {_FORMS}")
    return url


def connections_each(engine: Engine, processes: int) -> int:
    """How many connections each of some processes may open: at most 40.

    On PostgreSQL all of them together leave 10 of the server's free for others.

    Args:
        engine: of the database.
        processes: how many share it.

    Raises:
        SetupError: the server has too few for two connections each.
    """
    if engine.dialect.name != "postgresql":
        return _CONNECTIONS
    names = ("max_connections", "superuser_reserved_connections")
    with engine.connect() as connection:
        most, reserved = (
            int(connection.exec_driver_sql(f"SHOW {name}").scalar_one()) for name in names
        )
    share = (most - reserved - _SPARED) // processes
    if share < _LEAST:
        wanted = processes * _LEAST + reserved + _SPARED
        raise SetupError(
            f"the PostgreSQL server allows {most} connections (max_connections), too few for "
            f"{processes} workers: start fewer, or allow at least {wanted}"
        )
    return min(_CONNECTIONS, share)


def make_engine(url: URL, *, connections: int = _CONNECTIONS) -> Engine:
    """An engine; it connects when it is first used.

    SQLite: a new file is for its owner alone, as it holds the key that signs; a write-ahead log
    that is flushed at every commit, foreign keys, and a writer waits up to 30 s for another.
    PostgreSQL: a connection is tried before it is used, so that one lost with the server is
    replaced; a server that does not answer is given up after about 10 s.

    Args:
        url: from `parse_url`.
        connections: how many are open at most; who needs one more waits.

    Raises:
        SetupError: psycopg is not installed.
    """
    if url.get_backend_name() == "sqlite":
        _make_private(url)
        options: dict[str, Any] = {"isolation_level": None, "timeout": _PATIENCE_S}
        engine = create_engine(url, connect_args=options, pool_size=connections, max_overflow=0)
        event.listen(engine, "connect", _set_up_sqlite)
        event.listen(engine, "begin", _begin_sqlite)
        return engine
    alive = {"connect_timeout": 10, "keepalives_idle": 10, "tcp_user_timeout": 10_000}
    try:
        return create_engine(
            url,
            connect_args=alive,
            pool_size=connections,
            max_overflow=0,
            pool_pre_ping=True,
        )
    except ImportError as error:
        raise SetupError("PostgreSQL needs psycopg: pip install 'heldout[web]'") from error


def _make_private(url: URL) -> None:
    """Make a file that is not there; SQLite gives its log and its index the same rights.

    One that is there is not opened, and no thread uses one before it is closed here: closing a file
    undoes the locks that this process has on it.
    """
    if url.database is None or "uri" in url.query:
        return
    with _MAKING, suppress(OSError):  # it is there; or SQLite tells why it cannot be
        os.close(os.open(url.database, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))


def _set_up_sqlite(connection: sqlite3.Connection, _record: object) -> None:
    connection.execute("PRAGMA synchronous=FULL")
    connection.execute("PRAGMA foreign_keys=ON")
    for _ in range(_TRIES):
        try:
            connection.execute("PRAGMA journal_mode=WAL")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY:
                raise
            time.sleep(_PAUSE_S)  # of two who make one file, SQLite lets neither wait
        else:
            return
    connection.execute("PRAGMA journal_mode=WAL")


def _begin_sqlite(connection: Connection) -> None:
    writing = connection.get_execution_options().get(WRITING, False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writing else "BEGIN")
