"""Killed processes, full disks, lost servers: what was acknowledged is there, the rest is not."""

import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import judging_databases
import psycopg
import pytest
from campaign_laws import check_laws
from small_campaign import NOW, choose, expire_leases, load, take
from sqlalchemy import Connection, event, insert, text

import databases
from heldout.database.database import Database
from heldout.database.errors import DatabaseError
from heldout.judging.campaign.judgments import Choice
from heldout.judging.campaign.settings import Payment
from heldout.judging.database.assignments import (
    Worker,
    exit_assignment,
    get_assignment,
    item,
    resume,
    submit,
)
from heldout.judging.database.claims import claim, offer
from heldout.judging.database.organiser import (
    assignments,
    judgments,
    payments_due,
    progress,
    record_payment,
)
from heldout.judging.database.tables import CAMPAIGN, events, open_database

url = judging_databases.url
sqlite_database = judging_databases.sqlite_database
BUSY_JUDGE = Path(__file__).with_name("busy_judge.py")
LEFT, RIGHT = Choice(side="left"), Choice(side="right")
PAYMENT = Payment(
    key="k",
    assignment=1,
    worker="p",
    platform_id="ann",
    session_id="",
    study="",
    kind="base",
    amount=1,
    currency="USD",
)


def answers_in(database: Database) -> set[tuple[int, int, str]]:
    """Assignment, position and side of every answer."""
    numbers = {row.task: row.assignment for row in assignments(database)}
    return {
        (numbers[one.task], one.position, "left" if one.preferred == one.left else "right")
        for one in judgments(database)
    }


def work_and_be_killed(url: str, *, answers: int) -> set[tuple[int, int, str]]:
    """What a judge was told is recorded, before the process was killed in the midst of it."""
    told = set()
    with subprocess.Popen(
        [sys.executable, BUSY_JUDGE, url], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        for line in process.stdout:
            assignment, position, side = line.split()
            told.add((int(assignment), int(position), side))
            if len(told) == answers:
                process.kill()
    return told


def test_a_killed_process_loses_no_acknowledged_answer(url: str) -> None:
    database = open_database(url)
    load(database, queries=80, tests=0)
    told = work_and_be_killed(url, answers=23)
    assert told <= answers_in(database)
    check_laws(database)
    assert len(answers_in(database)) <= len(told) + 2
    database.close()


def limit_pages(database: Database, pages: int) -> Callable[[], None]:
    """Let the file grow no further than so many pages; returns what lifts the limit again."""

    def set_limit(connection: Any, _record: object) -> None:
        connection.execute(f"PRAGMA max_page_count={pages}")

    database.engine.dispose()
    event.listen(database.engine, "connect", set_limit)

    def lift() -> None:
        event.remove(database.engine, "connect", set_limit)
        database.engine.dispose()

    return lift


def count_until_full(work: Callable[[int], object]) -> int:
    """How often it was done before the disk was full."""
    for number in range(10_000):
        try:
            work(number)
        except DatabaseError as error:
            assert error.code == "database-full"  # noqa: PT017 - the others are counted
            return number
    raise AssertionError


def test_a_full_disk_is_told_and_nothing_is_half_written(tmp_path: Path) -> None:
    database = open_database(databases.new_url("sqlite", tmp_path))
    load(database, queries=60, tests=0)
    held = take(database, "ann")
    pages = database.read(lambda one: int(one.exec_driver_sql("PRAGMA page_count").scalar_one()))
    lift = limit_pages(database, pages + 1)
    recorded = count_until_full(
        lambda number: choose(database, held.id, 1, (LEFT, RIGHT)[number % 2])
    )
    assert 0 < recorded == len(judgments(database))
    handed_out = count_until_full(lambda number: take(database, f"w{number}"))
    assert handed_out == len(assignments(database)) - 1
    check_laws(database)
    lift()
    last = choose(database, held.id, 1, (LEFT, RIGHT)[recorded % 2])
    assert last.outcome == "recorded"
    assert len(judgments(database)) == recorded + 1
    database.close()


@pytest.fixture
def server() -> Iterator[Any]:
    started = databases.serve_postgres()
    yield started
    started.cleanup()


def stop(server: Any) -> None:
    """Without a word to whoever is connected."""
    process = server.get_postmaster_info().process
    process.send_signal(signal.SIGQUIT)
    process.wait(10)


def test_a_lost_server_is_told_and_work_goes_on_when_it_is_back(server: Any) -> None:
    database = open_database(server.get_uri())
    load(database)
    held = take(database, "ann")
    choose(database, held.id, 1, LEFT)
    stop(server)
    for call in (
        lambda: offer(database, Worker(platform_id="bob", signed=True), now=NOW),
        lambda: claim(database, Worker(platform_id="bob", signed=True), batch=1, now=NOW),
        lambda: item(database, held.id, 1),
        lambda: get_assignment(database, held.id),
        lambda: choose(database, held.id, 2, LEFT),
        lambda: resume(database, held.id, now=NOW),
        lambda: submit(database, held.id, now=NOW),
        lambda: exit_assignment(database, held.id, now=NOW),
        lambda: expire_leases(database, now=NOW + timedelta(days=1)),
        lambda: payments_due(database),
        lambda: record_payment(database, PAYMENT, now=NOW),
        lambda: progress(database),
        lambda: judgments(database),
        lambda: open_database(server.get_uri()),
    ):
        with pytest.raises(DatabaseError) as caught:
            call()
        assert caught.value.code == "database-lost"
        assert "\n" not in str(caught.value)
    server.ensure_postgres_running()
    assert choose(database, held.id, 2, LEFT).outcome == "recorded"
    assert len(judgments(database)) == 2
    check_laws(database)
    database.close()


def test_a_connection_that_is_cut_in_a_transaction_writes_nothing() -> None:
    database = databases.wiped("postgresql", CAMPAIGN)
    load(database)

    def be_cut(connection: Connection) -> None:
        connection.execute(insert(events).values(at=NOW, kind="loaded", note="half"))
        pid = connection.execute(text("SELECT pg_backend_pid()")).scalar_one()
        with psycopg.connect(databases.shared_postgres(), autocommit=True) as admin:
            admin.execute("SELECT pg_terminate_backend(%s)", [pid])
        connection.execute(insert(events).values(at=NOW, kind="loaded", note="whole"))

    with pytest.raises(DatabaseError, match="database-lost"):
        database.write(be_cut)
    notes = database.read(lambda one: [row.note for row in one.execute(events.select())])
    assert notes == ["2 tasks"]


def test_a_bug_in_a_transaction_is_not_hidden_and_writes_nothing(
    sqlite_database: Database,
) -> None:
    load(sqlite_database)

    def fail(connection: Connection) -> None:
        connection.execute(insert(events).values(at=NOW, kind="loaded", note="half"))
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        sqlite_database.write(fail)
    notes = sqlite_database.read(lambda one: [row.note for row in one.execute(events.select())])
    assert notes == ["2 tasks"]


def test_what_the_server_undid_for_others_is_done_again() -> None:
    database = databases.wiped("postgresql", CAMPAIGN)
    load(database)
    tries = []

    def undone_twice(connection: Connection) -> int:
        tries.append(1)
        connection.execute(insert(events).values(at=NOW, kind="loaded", note=str(len(tries))))
        if len(tries) < 3:
            connection.execute(
                text("DO $$ BEGIN RAISE EXCEPTION 'x' USING ERRCODE = '40P01'; END $$")
            )
        return len(tries)

    assert database.write(undone_twice) == 3
    notes = database.read(lambda one: [row.note for row in one.execute(events.select())])
    assert notes == ["2 tasks", "3"]
