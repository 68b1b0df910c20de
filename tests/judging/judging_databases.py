"""Both engines for the tests of the judging database: SQLite files, and a real PostgreSQL.

A test module takes the fixture it needs: `database = judging_databases.database`.
"""

import atexit
import shutil
import sqlite3
import tempfile
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any

import psycopg
import pytest
from sqlalchemy import Connection, delete, event, make_url, text

from heldout.database.database import Database, sqlite_url
from heldout.judging.database.database import open_database
from heldout.judging.database.tables import metadata
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


@cache
def shared_database(engine: str) -> Database:
    """A database that does not wait for its disk, opened once for all tests of the process."""
    folder = Path(tempfile.mkdtemp(prefix="heldout-judging-"))
    opened = open_database(new_url(engine, folder))
    if engine == "sqlite":
        opened.engine.dispose()
        event.listen(opened.engine, "connect", _do_not_wait)
    atexit.register(shutil.rmtree, folder)
    atexit.register(opened.close)
    return opened


def wiped(engine: str) -> Database:
    """The same database without a row."""
    opened = shared_database(engine)

    def wipe(connection: Connection) -> None:
        for table in reversed(metadata.sorted_tables):
            connection.execute(delete(table))
        if engine == "postgresql":
            for name in ("assignments", "workers", "judgments", "payments", "events"):
                connection.execute(text(f"ALTER SEQUENCE {name}_id_seq RESTART"))

    opened.write(wipe)
    return opened


def _do_not_wait(connection: sqlite3.Connection, _record: object) -> None:
    connection.execute("PRAGMA synchronous=OFF")


@pytest.fixture(params=ENGINES)
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of an empty database, of each engine in turn."""
    return new_url(request.param, tmp_path)


@pytest.fixture
def sqlite_database() -> Database:
    """An open SQLite database without a campaign, where one engine shows it."""
    return wiped("sqlite")


@pytest.fixture(params=ENGINES)
def database(request: pytest.FixtureRequest) -> Database:
    """An open database without a campaign, of each engine in turn."""
    return wiped(request.param)
