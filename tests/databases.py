"""Both engines for tests: SQLite files, and a real PostgreSQL."""

import atexit
import shutil
import sqlite3
import tempfile
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any

import psycopg
from sqlalchemy import Connection, MetaData, delete, event, make_url, text

from heldout.database.database import Database, Schema, open_database, sqlite_url
from postgres import start_postgres

ENGINES = ("sqlite", "postgresql")
_NUMBERS = count()


def serve_postgres() -> Any:
    """A PostgreSQL server of its own; `cleanup` stops it, and so does the end of the process."""
    folder = tempfile.TemporaryDirectory(prefix="heldout-pg-")  # noqa: SIM115, RUF100 - see below
    atexit.register(folder.cleanup)  # after the server, which registers itself later
    return start_postgres(Path(folder.name))


@cache
def shared_postgres() -> str:
    """The address of a server that does not wait for its disk: nothing here cuts the power."""
    uri = str(serve_postgres().get_uri())
    with psycopg.connect(uri, autocommit=True) as connection:
        connection.execute("ALTER SYSTEM SET fsync = off")
        connection.execute("SELECT pg_reload_conf()")
    return uri


def new_url(engine: str, folder: Path = Path()) -> str:
    """The address of an empty database."""
    name = f"heldout_{next(_NUMBERS)}"
    if engine == "sqlite":
        return sqlite_url(folder / f"{name}.sqlite")
    uri = shared_postgres()
    with psycopg.connect(uri, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    return make_url(uri).set(database=name).render_as_string(hide_password=False)


_SHARED: dict[tuple[str, str], Database] = {}


def wiped(engine: str, schema: Schema) -> Database:
    """A database without a row that does not wait for its disk, one for all tests of a process."""
    opened = _SHARED.get((engine, schema.name))
    if opened is None:
        opened = _SHARED[engine, schema.name] = _open(engine, schema)
    wipe(opened, schema.metadata)
    return opened


def wipe(database: Database, metadata: MetaData) -> None:
    """Remove every row; numbers begin at 1 again."""

    def remove(connection: Connection) -> None:
        for table in reversed(metadata.sorted_tables):
            connection.execute(delete(table))
        if connection.dialect.name == "postgresql":
            names = connection.execute(text("SELECT sequencename FROM pg_sequences")).scalars()
            for name in names.all():
                connection.execute(text(f"ALTER SEQUENCE {name} RESTART"))

    database.write(remove)


def _open(engine: str, schema: Schema) -> Database:
    folder = Path(tempfile.mkdtemp(prefix="heldout-database-"))
    opened = open_database(new_url(engine, folder), schema)
    if engine == "sqlite":
        opened.engine.dispose()
        event.listen(opened.engine, "connect", _do_not_wait)
    atexit.register(shutil.rmtree, folder)
    atexit.register(opened.close)
    return opened


def _do_not_wait(connection: sqlite3.Connection, _record: object) -> None:
    connection.execute("PRAGMA synchronous=OFF")
