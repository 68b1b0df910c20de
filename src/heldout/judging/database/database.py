"""The database of a campaign, SQLite or PostgreSQL: opened, brought to the present schema, used.

What is acknowledged is on the disk: connections are set up so. What goes wrong is a `DatabaseError`
with a code. Of the other modules `campaigns` fills it, `claims` hands out tasks, `assignments` is
what a judge does with one, `overviews` and `organiser` are for the organiser; `tables` and `rows`
are what lies in it.
"""

import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal, TypeVar

from alembic import command
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import URL, Connection, Engine, create_engine, event, inspect, make_url, text
from sqlalchemy.exc import ArgumentError, DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from heldout.errors import SetupError, StoreError, quote
from heldout.judging.database.tables import metadata

if not (find_spec("sqlalchemy") and find_spec("alembic")):
    raise SetupError("a campaign's database needs SQLAlchemy: pip install 'heldout[web]'")


ErrorCode = Literal[
    "database-address",
    "database-busy",
    "database-connections",
    "database-damaged",
    "database-empty",
    "database-full",
    "database-lost",
    "database-newer",
    "database-other",
    "database-read-only",
    "payment-key",
    "unknown-assignment",
]
"""What is wrong; each has a row in docs/reference/errors.md."""


class DatabaseError(StoreError):
    """The database refused, failed or is gone; nothing of what was asked has been written.

    One exception: where the connection is lost while the database commits, it may have been. What
    is asked again is then found done: an answer, a payment, the end of an assignment are never
    taken twice.

    Attributes:
        code: what is wrong.
    """

    def __init__(self, code: ErrorCode, text: str) -> None:
        self.code = code
        super().__init__(f"{code}: {text}")


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
    """Whether the database undid a transaction for the sake of others, so that it can run again."""
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
    """What is wrong; `None` where it is nothing of the database's."""
    if isinstance(error.orig, sqlite3.Error):
        return _SQLITE.get(getattr(error.orig, "sqlite_errorcode", 0) & 0xFF)
    state = getattr(error.orig, "sqlstate", None)
    if state is None:
        if any(words in str(error.orig) for words in _NO_CONNECTION):
            return "database-connections"
        lost = error.connection_invalidated or type(error.orig).__name__ == "OperationalError"
        return "database-lost" if lost else None
    return _POSTGRESQL.get(state, _POSTGRESQL.get(state[:2]))


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


def _begin_sqlite(connection: Connection) -> None:
    writing = connection.get_execution_options().get(WRITING, False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writing else "BEGIN")


_MIGRATIONS = Path(__file__).parent / "migrations"
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
    engine: Engine
    writers: AbstractContextManager[object]

    def read(self, work: Callable[[Connection], Result]) -> Result:
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

    def write(self, work: Callable[[Connection], Result]) -> Result:
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

    def _write(self, work: Callable[[Connection], Result]) -> Result:
        with self.writers, self.engine.connect() as connection:
            writing = connection.execution_options(**{WRITING: True})
            with writing.begin():
                return work(writing)


def open_database(url: str, *, processes: int = 1) -> Database:
    """Open a database, made or migrated where necessary.

    Args:
        url: `sqlite:///FILE` or `postgresql://…`.
        processes: how many open it like this one; they share the server's connections.

    Raises:
        SetupError: PostgreSQL is asked for, and psycopg is not installed, or the server allows too
            few connections for so many processes.
        DatabaseError: codes `database-address`, `database-lost`, `database-newer` (written by a
            later heldout), `database-other` (not a campaign's), `database-damaged`.
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
        if database.read(_find_revision) != _scripts().get_current_head():
            database.write(lambda connection: _migrate(connection, database.name))
    except BaseException:
        database.close()
        raise
    return database


def keep_others_out(connection: Connection) -> None:
    """Wait until no other transaction is here, and keep them waiting until this one ends.

    For what is done seldom and whole: a migration, the loading of a campaign.
    """
    if connection.dialect.name == "postgresql":
        lock = text("SELECT pg_advisory_xact_lock(:lock)")
        connection.execute(lock, {"lock": _LOCK})


def _scripts() -> ScriptDirectory:
    return ScriptDirectory(str(_MIGRATIONS))


def _find_revision(connection: Connection) -> str | None:
    return MigrationContext.configure(connection).get_current_revision()


def _migrate(connection: Connection, name: str) -> None:
    keep_others_out(connection)
    found = _find_revision(connection)
    if found is None and set(inspect(connection).get_table_names()) & set(metadata.tables):
        raise DatabaseError("database-other", f"{name} holds tables that are no campaign's")
    known = {script.revision for script in _scripts().walk_revisions()}
    if found is not None and found not in known:
        raise DatabaseError(
            "database-newer", f"{name} was written by a later heldout (schema {found}): upgrade"
        )
    config = Config()
    config.set_main_option("script_location", str(_MIGRATIONS).replace("%", "%%"))
    config.attributes["connection"] = connection
    command.upgrade(config, "head")
