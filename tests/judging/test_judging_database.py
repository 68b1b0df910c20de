"""The database is opened, made, or refused."""

import importlib
import os
import sqlite3
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Any

import judging_databases
import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_campaign import NOW, load
from sqlalchemy import create_engine, event, insert, text

import databases
import heldout.database.database
from heldout.database.database import Database, sqlite_url
from heldout.database.errors import DatabaseError
from heldout.database.times import format_time
from heldout.errors import SetupError
from heldout.judging.database.organiser import read_launch, tasks
from heldout.judging.database.tables import events, open_database

url = judging_databases.url


def refused(address: str) -> DatabaseError:
    with pytest.raises(DatabaseError) as caught:
        open_database(address)
    return caught.value


def test_what_was_written_is_there_when_it_is_opened_again(url: str) -> None:
    first = open_database(url)
    load(first)
    before = tasks(first)
    first.close()
    again = open_database(url)
    assert tasks(again) == before
    again.close()


def test_a_new_file_is_for_its_owner_alone(tmp_path: Path) -> None:
    """It holds the key that signs tokens, and the ids by which people are paid."""
    before = os.umask(0o022)
    try:
        database = open_database(sqlite_url(tmp_path / "campaign.sqlite"))
        load(database)
        rights = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.iterdir()}
    finally:
        os.umask(before)
    database.close()
    names = ("campaign.sqlite", "campaign.sqlite-wal", "campaign.sqlite-shm")
    assert rights == dict.fromkeys(names, 0o600)


def test_a_file_that_is_there_keeps_its_rights(tmp_path: Path) -> None:
    """An organiser may let a group read it."""
    path = tmp_path / "campaign.sqlite"
    path.touch()
    path.chmod(0o640)
    open_database(sqlite_url(path)).close()
    assert path.stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize("engine", databases.ENGINES)
def test_how_the_switch_stands_is_found_without_reading_the_log(
    engine: str, tmp_path: Path
) -> None:
    database = open_database(databases.new_url(engine, tmp_path))
    load(database)
    rows = [{"at": NOW, "kind": "resumed", "assignment": None, "note": ""}] * 20_000
    database.write(lambda connection: connection.execute(insert(events), rows))
    if engine == "postgresql":
        database.write(lambda connection: connection.execute(text("ANALYZE events")))
    asked: list[tuple[str, Any]] = []

    def look(_connection: object, _cursor: object, *given: Any) -> None:
        asked.append(given[:2])

    event.listen(database.engine, "before_cursor_execute", look)
    database.read(read_launch)
    event.remove(database.engine, "before_cursor_execute", look)
    ((question, values),) = (one for one in asked if "FROM events" in one[0])
    explain = "EXPLAIN QUERY PLAN" if engine == "sqlite" else "EXPLAIN"
    plan = database.read(
        lambda connection: connection.exec_driver_sql(f"{explain} {question}", values).all()
    )
    assert "ix_events_kind" in str(plan)
    database.close()


def test_several_may_open_an_empty_database_at_once(url: str) -> None:
    with ThreadPoolExecutor(4) as pool:
        opened = list(pool.map(open_database, [url] * 4))
    load(opened[0])
    assert all(len(tasks(one)) == 2 for one in opened)
    for one in opened:
        one.close()


def test_a_database_of_another_version_of_heldout_is_refused(url: str) -> None:
    database = open_database(url)
    database.write(
        lambda connection: connection.execute(text("UPDATE heldout_versions SET version = 9"))
    )
    database.close()
    error = refused(url)
    assert error.code == "database-other"
    assert "version 9" in str(error)


def test_a_database_of_another_program_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "other.sqlite"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE tasks (id INTEGER)")
    connection.close()
    assert refused(sqlite_url(path)).code == "database-other"
    with sqlite3.connect(path) as connection:
        names = [name for (name,) in connection.execute("SELECT name FROM sqlite_master")]
    connection.close()
    assert names == ["tasks"]


@pytest.mark.parametrize(
    "address",
    ["", "nonsense", "mysql://a@b/c", "sqlite://", "sqlite:///:memory:", "postgresql://x:y:z/"],
)
def test_an_address_that_is_none_is_refused(address: str) -> None:
    assert refused(address).code == "database-address"


def test_a_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "damaged.sqlite"
    path.write_bytes(b"this is a text, and a long one at that " * 300)
    assert refused(sqlite_url(path)).code == "database-damaged"


def test_a_folder_that_is_missing_is_told(tmp_path: Path) -> None:
    error = refused(sqlite_url(tmp_path / "nowhere" / "campaign.sqlite"))
    assert error.code == "database-address"
    assert "nowhere" in str(error)


def test_a_file_that_may_not_be_written_is_told(tmp_path: Path) -> None:
    path = tmp_path / "campaign.sqlite"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE anything (id INTEGER)")
    connection.close()
    assert refused(f"sqlite:///file:{path}?mode=ro&uri=true").code == "database-read-only"


def test_a_server_that_is_not_there_is_told_without_the_password() -> None:
    error = refused("postgresql://somebody:s3cret@127.0.0.1:1/judging")
    assert error.code == "database-lost"
    assert "somebody" in str(error)
    assert "s3cret" not in str(error)


def test_a_database_that_the_server_does_not_have_is_named() -> None:
    address = databases.new_url("postgresql", Path())
    error = refused(address.replace("heldout_", "nowhere_"))
    assert "does not exist" in str(error)


def test_what_is_acknowledged_is_on_the_disk(tmp_path: Path) -> None:
    database = open_database(sqlite_url(tmp_path / "campaign.sqlite"))
    found = database.read(
        lambda connection: [
            connection.exec_driver_sql(f"PRAGMA {name}").scalar_one()
            for name in ("journal_mode", "synchronous", "foreign_keys", "busy_timeout")
        ]
    )
    assert found == ["wal", 2, 1, 30_000]
    database.close()


def test_without_the_extra_it_is_said_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with pytest.raises(SetupError, match=r"heldout\[web\]"):
        importlib.reload(heldout.database.database)


def test_without_a_driver_it_is_said_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(SetupError, match=r"heldout\[web\]"):
        open_database("postgresql://somebody@127.0.0.1:1/judging")


def test_who_waits_too_long_for_another_writer_is_told_so(tmp_path: Path) -> None:
    path = tmp_path / "campaign.sqlite"
    database = open_database(sqlite_url(path))
    database.engine.dispose()
    event.listen(database.engine, "connect", lambda one, _: one.execute("PRAGMA busy_timeout=20"))
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(DatabaseError, match="database-busy"):
        load(database)
    assert tasks(database) == ()
    other.execute("COMMIT")
    other.close()
    load(database)
    assert len(tasks(database)) == 2
    database.close()


def test_who_waits_too_long_for_a_connection_is_told_so(tmp_path: Path) -> None:
    engine = create_engine(
        sqlite_url(tmp_path / "campaign.sqlite"), pool_size=1, max_overflow=0, pool_timeout=0.02
    )
    database = Database(name="campaign.sqlite", engine=engine, writers=nullcontext())
    with engine.connect(), pytest.raises(DatabaseError) as caught:
        tasks(database)
    assert caught.value.code == "database-busy"
    database.close()


@given(st.datetimes(timezones=st.timezones()), st.datetimes(timezones=st.timezones()))
def test_stored_times_are_in_the_order_of_time(one: object, other: object) -> None:
    first, second = format_time(one), format_time(other)  # type: ignore[arg-type]  # both are datetimes
    assert len(first) == len(second) == 24
    if one <= other:  # type: ignore[operator]  # the same
        assert first <= second


def test_a_time_without_a_zone_is_a_mistake() -> None:
    with pytest.raises(ValueError, match="2026"):
        format_time(NOW.replace(tzinfo=None))


def test_processes_share_the_servers_connections_and_leave_some_free() -> None:
    url = databases.new_url("postgresql")
    with psycopg.connect(url.replace("+psycopg", "")) as plain:
        row = plain.execute("SHOW max_connections").fetchone()
    assert row
    most = int(row[0])
    for processes in (1, 2, 4, 8):
        database = open_database(url, processes=processes)
        size = int(database.engine.pool.size())  # type: ignore[attr-defined]
        database.close()
        assert 2 <= size <= 40
        assert processes * size <= most - 10
    with pytest.raises(SetupError, match="start fewer, or allow at least") as caught:
        open_database(url, processes=64)
    assert str(most) in str(caught.value)


def test_a_server_whose_connections_are_all_in_use_is_named_as_that() -> None:
    """It is not lost: it answers, and what to change is said."""
    url = databases.new_url("postgresql")
    database = open_database(url)
    database.close()
    held: list[Any] = []
    try:
        with suppress(psycopg.OperationalError):
            while True:
                held.append(psycopg.connect(url.replace("+psycopg", "")))
        with pytest.raises(DatabaseError) as caught:
            database.read(lambda connection: connection.exec_driver_sql("SELECT 1").scalar_one())
    finally:
        for one in held:
            one.close()
        database.close()
    assert caught.value.code == "database-connections"
    assert "max_connections" in str(caught.value)
