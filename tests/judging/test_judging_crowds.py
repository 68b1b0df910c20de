"""Many judges at once: no task is handed out twice, no answer taken twice; on both engines."""

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from pathlib import Path
from random import Random
from threading import Barrier
from typing import TypeVar

import judging_databases
from campaign_laws import check_laws
from small_campaign import NOW, expire_leases, load

import databases
from heldout.database.database import Database
from heldout.judging.campaign.judgments import Choice
from heldout.judging.database.assignments import (
    Assignment,
    Worker,
    answer,
    exit_assignment,
    item,
    submit,
)
from heldout.judging.database.claims import NoTask, claim
from heldout.judging.database.organiser import assignments, judgments
from heldout.judging.database.tables import open_database

database = judging_databases.database
Result = TypeVar("Result")


def at_once(work: Callable[[int], Result], numbers: Iterable[int]) -> list[Result]:
    """Begin all of it at the same moment, each in a thread."""
    every = list(numbers)
    start = Barrier(len(every))

    def run(number: int) -> Result:
        start.wait()
        return work(number)

    with ThreadPoolExecutor(len(every)) as pool:
        return list(pool.map(run, every))


def test_80_judges_claim_60_tasks_at_once(database: Database) -> None:
    load(database, queries=60)
    found = at_once(
        lambda number: claim(
            database, Worker(platform_id=f"w{number}", signed=True), batch=1, now=NOW
        ),
        range(80),
    )
    got = [one for one in found if isinstance(one, Assignment)]
    none = [one for one in found if isinstance(one, NoTask)]
    assert len({one.id for one in got}) == len(got) == 60
    assert {one.why for one in none} == {"waiting"}
    assert len({row.task for row in assignments(database)}) == 60
    check_laws(database)


def test_copies_are_made_once_however_many_ask(database: Database) -> None:
    load(database, queries=5)
    first = [
        claim(database, Worker(platform_id=f"early {number}", signed=True), batch=1, now=NOW)
        for number in range(5)
    ]
    later = NOW + timedelta(minutes=61)
    found = at_once(
        lambda number: claim(
            database, Worker(platform_id=f"w{number}", signed=True), batch=1, now=later
        ),
        range(40),
    )
    got = [one for one in found if isinstance(one, Assignment)]
    assert len(first) == len({one.id for one in got}) == len(got) == 5
    check_laws(database)


def test_one_worker_in_many_windows_has_one_assignment(database: Database) -> None:
    load(database, queries=20)
    found = at_once(
        lambda _: claim(database, Worker(platform_id="ann", signed=True), batch=1, now=NOW),
        range(20),
    )
    assert len({one.id for one in found if isinstance(one, Assignment)}) == 1
    assert len(assignments(database)) == 1


def test_of_many_posts_at_once_one_is_recorded(database: Database) -> None:
    load(database)
    held = claim(database, Worker(platform_id="ann", signed=True), batch=1, now=NOW)
    assert isinstance(held, Assignment)

    def post(number: int) -> str:
        choice = Choice(side=("left", "right")[number % 2])
        done = answer(database, held.id, 1, choice, replaces=0, shown_at=NOW, now=NOW)
        assert done is not None
        return done.outcome

    outcomes = at_once(post, range(20))
    assert outcomes.count("recorded") == 1
    assert outcomes.count("repeated") == 9
    assert outcomes.count("stale") == 10
    assert len(judgments(database)) == 1


def test_processes_that_share_a_file_hand_out_no_task_twice(tmp_path: Path) -> None:
    address = databases.new_url("sqlite", tmp_path)
    opened = [open_database(address) for _ in range(3)]
    load(opened[0], queries=15)
    found = at_once(
        lambda number: claim(
            opened[number % 3], Worker(platform_id=f"w{number}", signed=True), batch=1, now=NOW
        ),
        range(24),
    )
    got = [one for one in found if isinstance(one, Assignment)]
    assert len({one.id for one in got}) == len(got) == 15
    check_laws(opened[0])
    for one in opened:
        one.close()


def test_judges_who_do_anything_at_once_break_no_law(database: Database) -> None:
    load(database, queries=4, judges=2)

    def live(number: int) -> None:
        rng = Random(number)  # noqa: S311 - which of a test's steps comes next
        worker = f"w{number % 9}"
        for step in range(6):
            now = NOW + timedelta(minutes=25 * step)
            found = claim(database, Worker(platform_id=worker, signed=True), batch=1, now=now)
            if isinstance(found, NoTask):
                continue
            _act(database, found, rng, now=now)

    at_once(live, range(18))
    check_laws(database)


def _act(database: Database, held: Assignment, rng: Random, *, now: datetime) -> None:
    chance = rng.random()
    if chance < 0.5:
        for position in range(1, held.items + 1):
            shown = item(database, held.id, position)
            assert shown is not None
            answer(
                database,
                held.id,
                position,
                Choice(side=rng.choice(["left", "right"])),
                replaces=shown.revision,
                shown_at=now,
                now=now,
            )
        submit(database, held.id, now=now)
    elif chance < 0.7:
        exit_assignment(database, held.id, now=now)
    else:
        expire_leases(database, now=now + timedelta(minutes=rng.choice([0, 90])))
