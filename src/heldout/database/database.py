"""A database, SQLite or PostgreSQL: opened, given the tables of its schemas, used.

What is acknowledged is on the disk: connections are set up so. What goes wrong is a `DatabaseError`
with a code. One database may hold the tables of several wings: each wing has a `Schema` with a
version of its own, and tables of another version are refused.
"""

import os
import sqlite3
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeVar

import sqlalchemy as sa
from sqlalchemy.exc import ArgumentError, DBAPIError

from heldout.database.errors import DatabaseError, is_passing, translated
from heldout.database.times import format_time
from heldout.errors import SetupError, quote

if not find_spec("sqlalchemy"):
    raise SetupError("a database needs SQLAlchemy: pip install 'heldout[web]'")


WRITING = "heldout_writing"
"""Option of a connection whose transaction writes: SQLite then takes the lock at its beginning."""

_MAKING = threading.Lock()
_PATIENCE_S = 30
_CONNECTIONS = 40
_SPARED = 10
"""Connections of a PostgreSQL server that are left to others: a backup, psql, `heldout prefer`."""

_LEAST = 2
_JOURNAL_TRIES = 100
_PAUSE_S = 0.02
_FORMS = "expected sqlite:///FILE or postgresql://USER:PASSWORD@HOST/DATABASE"


def sqlite_url(path: Path) -> str:
    """The address of a SQLite file."""
    return sa.URL.create("sqlite", database=str(path)).render_as_string(hide_password=False)


def parse_url(text: str) -> sa.URL:
    """An address, with the driver that we use.

    Raises:
        DatabaseError: code `database-address`.
    """
    try:
        url = sa.make_url(text)
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


def connections_each(engine: sa.Engine, processes: int) -> int:
    """Return how many connections each of some processes may open: at most 40.

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


def make_engine(url: sa.URL, *, connections: int = _CONNECTIONS) -> sa.Engine:
    """An engine; it connects when it is first used.

    SQLite: a new file is for its owner alone, as it holds the key that signs; a write-ahead log
    that is flushed at every commit, foreign keys, and a writer waits up to 30 s for another.
    PostgreSQL: a connection is tried before it is used, so that one lost with the server is
    replaced; a server that does not answer is given up after about 10 s, a lock after 30 s.

    Args:
        url: from `parse_url`.
        connections: how many are open at most; who needs one more waits.

    Raises:
        SetupError: psycopg is not installed.
    """
    if url.get_backend_name() == "sqlite":
        _make_private(url)
        options: dict[str, Any] = {"isolation_level": None, "timeout": _PATIENCE_S}
        engine = sa.create_engine(
            url, connect_args=options, pool_size=connections, max_overflow=0, pool_use_lifo=True
        )
        sa.event.listen(engine, "connect", _set_up_sqlite)
        sa.event.listen(engine, "begin", _begin_sqlite)
        return engine
    alive = {"connect_timeout": 10, "keepalives_idle": 10, "tcp_user_timeout": 10_000}
    try:
        engine = sa.create_engine(
            url,
            connect_args=alive,
            pool_size=connections,
            max_overflow=0,
            pool_pre_ping=True,
        )
    except ImportError as error:
        raise SetupError("PostgreSQL needs psycopg: pip install 'heldout[web]'") from error
    sa.event.listen(engine, "connect", _set_up_postgresql)
    return engine


def _make_private(url: sa.URL) -> None:
    """Make a file that is not there; SQLite gives its log and its index the same rights.

    One that is there is not opened, and no thread uses one before it is closed here: closing a file
    undoes the locks that this process has on it.
    """
    if url.database is None or "uri" in url.query:
        return
    with _MAKING, suppress(OSError):  # it is there; or SQLite says why it cannot be
        os.close(os.open(url.database, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))


def _set_up_sqlite(connection: sqlite3.Connection, _record: object) -> None:
    connection.execute("PRAGMA synchronous=FULL")
    connection.execute("PRAGMA foreign_keys=ON")
    for _ in range(_JOURNAL_TRIES):
        try:
            connection.execute("PRAGMA journal_mode=WAL")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY:
                raise
            time.sleep(_PAUSE_S)  # of two who make one file, SQLite lets neither wait
        else:
            return
    connection.execute("PRAGMA journal_mode=WAL")


def _set_up_postgresql(connection: Any, _record: object) -> None:
    """Wait for a lock no longer than SQLite does: else one that is held stops all threads."""
    connection.execute(f"SET lock_timeout = '{_PATIENCE_S}s'")
    connection.commit()


def _begin_sqlite(connection: sa.Connection) -> None:
    writing = connection.get_execution_options().get(WRITING, False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writing else "BEGIN")


_LOCK = 0x6865_6C64
_TRIES = 4
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True, kw_only=True)
class Database:
    """An open database; threads may share it.

    Attributes:
        name: its address without a password, for messages.
        engine: its connections.
        writers: held while a transaction writes: SQLite has one writer at a time, and threads that
            wait here are served at once, where SQLite itself would have them look again and again.
    """

    name: str
    engine: sa.Engine
    writers: AbstractContextManager[object]

    def read(self, work: Callable[[sa.Connection], Result]) -> Result:
        """Read everything as of one moment.

        Raises:
            DatabaseError: see `ErrorCode`.
        """
        options: dict[str, object] = {}
        if self.engine.dialect.name == "postgresql":
            options = {"isolation_level": "REPEATABLE READ", "postgresql_readonly": True}
        with translated(self.name), self.engine.connect() as connection:
            connection = connection.execution_options(**options)  # noqa: PLW2901 - the same one
            with connection.begin():
                return work(connection)

    def write(self, work: Callable[[sa.Connection], Result]) -> Result:
        """Write all of it or nothing; done again where the database undid it for others.

        Args:
            work: what to do; it may be called more than once, and changes nothing but the database.

        Raises:
            DatabaseError: see `ErrorCode`.
        """
        with translated(self.name):
            for _ in range(_TRIES - 1):
                try:
                    return self._write(work)
                except DBAPIError as error:
                    if not is_passing(error):
                        raise
            return self._write(work)

    def close(self) -> None:
        """Close every connection that is not in use."""
        self.engine.dispose()

    def _write(self, work: Callable[[sa.Connection], Result]) -> Result:
        with self.writers, self.engine.connect() as connection:
            writing = connection.execution_options(**{WRITING: True})
            with writing.begin():
                return work(writing)


versions = sa.Table(
    "heldout_versions",
    sa.MetaData(),
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("version", sa.Integer, nullable=False),
)
"""Which tables a database has: name and version of each schema."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Schema:
    """The tables of one wing.

    Attributes:
        name: what holds them, for messages: "campaign".
        metadata: the tables.
        version: of them; whoever changes a table counts it up.
    """

    name: str
    metadata: sa.MetaData
    version: int = 1

    def find_version(self, connection: sa.Connection) -> int | None:
        """Return the version of a database's tables; `None` where it has none of this wing."""
        if not sa.inspect(connection).has_table(versions.name):
            return None
        own = sa.select(versions.c.version).where(versions.c.name == self.name)
        return connection.execute(own).scalar()


def open_database(url: str, *schemas: Schema, processes: int = 1) -> Database:
    """Open a database; the tables of each schema are made where there are none.

    Args:
        url: `sqlite:///FILE` or `postgresql://…`.
        schemas: of the wings that will use it.
        processes: how many open it like this one; they share the server's connections.

    Raises:
        SetupError: PostgreSQL is asked for, and psycopg is not installed, or the server allows too
            few connections for so many processes.
        DatabaseError: codes `database-address`, `database-lost`, `database-other` (tables of
            another program, or of another version of heldout), `database-damaged`.
    """
    address = parse_url(url)
    name = address.render_as_string(hide_password=True)
    engine = make_engine(address)
    sqlite = engine.dialect.name == "sqlite"
    if not sqlite:
        try:
            with translated(name):
                share = connections_each(engine, processes)
        finally:
            engine.dispose()
        engine = make_engine(address, connections=share)
    database = Database(
        name=name,
        engine=engine,
        writers=threading.Lock() if sqlite else nullcontext(),
    )
    try:
        for schema in schemas:
            if database.read(schema.find_version) != schema.version:
                database.write(partial(_make_tables, name=name, schema=schema))
    except BaseException:
        database.close()
        raise
    return database


def open_existing(url: str) -> Database:
    """Open a database that is there, and change nothing in it, not even its tables.

    Raises:
        SetupError: as `open_database`.
        DatabaseError: code `database-address`: a SQLite file is not there; as `open_database`.
    """
    address = parse_url(url)
    if address.get_backend_name() == "sqlite" and not Path(str(address.database)).is_file():
        name = address.render_as_string(hide_password=True)
        raise DatabaseError("database-address", f"{name} is not there")
    return open_database(url)


def check_schemas(database: Database, *schemas: Schema) -> str:
    """Check that an open database can be read and has these tables: "ok", or an `ErrorCode`.

    Raises:
        DatabaseError: it cannot be read.
    """
    found = database.read(lambda connection: [one.find_version(connection) for one in schemas])
    return "ok" if found == [one.version for one in schemas] else "database-other"


def exclude_others(connection: sa.Connection) -> None:
    """Wait until no other transaction is here, and keep them waiting until this one ends.

    For what is done seldom and whole: making tables, loading a campaign.
    """
    if connection.dialect.name == "postgresql":
        lock = sa.text("SELECT pg_advisory_xact_lock(:lock)")
        connection.execute(lock, {"lock": _LOCK})


def _make_tables(connection: sa.Connection, *, name: str, schema: Schema) -> None:
    """Make the tables of a schema, all of them or none.

    Raises:
        DatabaseError: code `database-other`.
    """
    exclude_others(connection)
    found = schema.find_version(connection)
    if found == schema.version:
        return  # another process has just made them
    if found is not None:
        raise DatabaseError(
            "database-other",
            f"{name} holds version {found} of the tables of a {schema.name}, and this heldout "
            f"has version {schema.version}: use the heldout that wrote it",
        )
    if set(sa.inspect(connection).get_table_names()) & set(schema.metadata.tables):
        raise DatabaseError("database-other", f"{name} holds tables that are no {schema.name}'s")
    versions.create(connection, checkfirst=True)
    schema.metadata.create_all(connection)
    row = {"name": schema.name, "version": schema.version}
    connection.execute(sa.insert(versions).values(row))


# What the tables of every wing are made with: times, and the names of their constraints.


class Instant(sa.TypeDecorator[datetime]):
    """A time, stored as text: SQLite has no type for it that keeps the zone."""

    impl = sa.String(24)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: sa.Dialect) -> str | None:  # noqa: ARG002 - SQLAlchemy's signature
        """Return what is stored."""
        return None if value is None else format_time(value)

    def process_result_value(self, value: str | None, dialect: sa.Dialect) -> datetime | None:  # noqa: ARG002 - SQLAlchemy's signature
        """Return what is read."""
        return None if value is None else datetime.fromisoformat(value)


def new_metadata() -> sa.MetaData:
    """Tables whose constraints and indexes are named by one convention."""
    return sa.MetaData(
        naming_convention={
            "ix": "ix_%(table_name)s_%(column_0_N_name)s",
            "uq": "uq_%(table_name)s_%(column_0_N_name)s",
            "ck": "ck_%(table_name)s_%(constraint_name)s",
            "fk": "fk_%(table_name)s_%(column_0_N_name)s",
            "pk": "pk_%(table_name)s",
        }
    )
