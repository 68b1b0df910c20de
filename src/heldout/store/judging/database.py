"""The database of a campaign: opened, brought to the present schema, read and written whole."""

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from alembic import command
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, Engine, inspect, text
from sqlalchemy.exc import DBAPIError

from heldout.store.judging.engines import WRITING, connections_each, make_engine, parse_url
from heldout.store.judging.faults import DatabaseError, is_passing, translated
from heldout.store.judging.tables import metadata

__all__ = ["Database", "keep_others_out", "open_database"]

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
            DatabaseError: see `Fault`.
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
            DatabaseError: see `Fault`.
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
