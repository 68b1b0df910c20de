"""A small campaign, and a judge to go through it."""

from datetime import UTC, datetime, timedelta
from typing import Any

from heldout.database.database import Database
from heldout.judging.campaign.judgments import Choice
from heldout.judging.campaign.pools import Candidate, Pool
from heldout.judging.campaign.rows import Item, Task
from heldout.judging.campaign.settings import Settings
from heldout.judging.database.assignments import (
    Answered,
    Assignment,
    Worker,
    answer,
    end_lapsed,
    item,
    submit,
)
from heldout.judging.database.campaigns import load_campaign
from heldout.judging.database.claims import claim

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
SETTINGS = Settings(
    name="A study",
    consent="You judge pairs.",
    completion_code="C0DE",
    uncounted_percent=1_000,
    reward=200,
    fee=40,
)


def after(*, minutes: float) -> datetime:
    return NOW + timedelta(minutes=minutes)


def make_pools(queries: int) -> list[Pool]:
    """Each query has passages a, b, c, and one that is off topic."""
    return [
        Pool(
            query=f"q{number}",
            text=f"question {number}",
            candidates=tuple(
                Candidate(doc=f"d{number}{letter}", text=f"passage {letter} of {number}")
                for letter in "abcx"
            ),
        )
        for number in range(queries)
    ]


def make_tasks(queries: int, *, judges: int = 1, tests: int = 1, batch: int = 1) -> list[Task]:
    """For each query and judge a task with its three pairs and tests that `a` answers."""
    return [
        Task(
            task=f"b{batch}-{number}-{judge}",
            items=(
                *_pairs(number, turned=judge % 2 == 1),
                *[_test(number)] * tests,
            ),
            batch=batch,
        )
        for judge in range(judges)
        for number in range(queries)
    ]


def _pairs(number: int, *, turned: bool) -> list[Item]:
    sides = [("a", "b"), ("b", "c"), ("a", "c")]
    return [
        Item(
            query=f"q{number}", left=f"d{number}{two[turned]}", right=f"d{number}{two[not turned]}"
        )
        for two in sides
    ]


def _test(number: int) -> Item:
    a, off = f"d{number}a", f"d{number}x"
    return Item(query=f"q{number}", left=off, right=a, answer=a)


def load(
    database: Database,
    *,
    queries: int = 2,
    judges: int = 1,
    tests: int = 1,
    settings: Settings = SETTINGS,
) -> None:
    tasks = make_tasks(queries, judges=judges, tests=tests)
    load_campaign(database, settings, make_pools(queries), tasks, now=NOW)


def take(database: Database, worker: str, *, now: datetime = NOW) -> Assignment:
    """Claim a task, which there has to be."""
    found = claim(database, Worker(platform_id=worker, signed=True), batch=1, now=now)
    assert isinstance(found, Assignment), found
    return found


def choose(
    database: Database,
    assignment: int,
    position: int,
    choice: Choice,
    *,
    now: datetime = NOW,
) -> Answered:
    """Answer an item as somebody does who sees its page as it is."""
    shown: Any = item(database, assignment, position)
    done = answer(
        database,
        assignment,
        position,
        choice,
        replaces=shown.revision,
        shown_at=now,
        now=now,
    )
    assert done is not None
    return done


def answer_all(
    database: Database, sitting: Assignment, *, fail: bool = False, now: datetime = NOW
) -> None:
    """Prefer what has the lesser id; in tests that is the known answer, unless they shall fail."""
    for position in range(1, sitting.items + 1):
        shown: Any = item(database, sitting.id, position)
        lesser = shown.passages[0].doc < shown.passages[1].doc
        is_test = "x" in shown.passages[0].doc + shown.passages[1].doc
        left = lesser != (fail and is_test)
        side = Choice(side="left" if left else "right", by="key", active_ms=1_500)
        assert choose(database, sitting.id, position, side, now=now).outcome in (
            "recorded",
            "repeated",
        )


def expire_leases(database: Database, *, now: datetime) -> int:
    """End every lease that is over, as `claim` does."""
    return database.write(lambda connection: end_lapsed(connection, now=now))


def finish(
    database: Database, worker: str, *, fail: bool = False, now: datetime = NOW
) -> Assignment:
    """Claim a task, answer every item, submit."""
    sitting = take(database, worker, now=now)
    answer_all(database, sitting, fail=fail, now=now)
    return submit(database, sitting.id, now=now)
