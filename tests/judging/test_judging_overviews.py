"""What the organiser sees: progress, workers, payments, histories; on both engines."""

from dataclasses import replace

import judging_databases
import msgspec
import pytest
from small_campaign import NOW, SETTINGS, after, choose, expire_leases, finish, load, take

from heldout.database.database import Database
from heldout.database.errors import DatabaseError
from heldout.judging.campaign.judgments import Choice
from heldout.judging.database.assignments import exit_assignment, submit
from heldout.judging.database.organiser import (
    BatchProgress,
    assignments,
    events,
    payments_due,
    progress,
    record_payment,
)

database = judging_databases.database


def test_progress_counts_tasks_and_votes(database: Database) -> None:
    load(database, queries=2, judges=2)
    finish(database, "ann")
    finish(database, "bob", fail=True)
    take(database, "cid")
    assert progress(database) == (
        BatchProgress(
            batch=1,
            tasks=4,
            done=1,
            held=1,
            waiting=2,
            copies=1,
            votes=3,
            planned=12,
            pairs=6,
        ),
    )


def test_an_assignment_says_what_was_agreed_to_when(database: Database) -> None:
    load(database, settings=msgspec.structs.replace(SETTINGS, consent_version="7"))
    finish(database, "ann", now=after(minutes=3))
    one = assignments(database)[0]
    assert (one.consent_version, one.consented_at, one.ended_at) == (
        "7",
        after(minutes=3),
        after(minutes=3),
    )
    assert (one.items, one.tests, one.answered, one.failed, one.excluded) == (4, 1, 4, 0, False)


def test_a_payment_is_due_until_it_was_recorded(database: Database) -> None:
    load(database)
    finish(database, "ann")
    held = take(database, "bob")
    choose(database, held.id, 1, Choice(side="left"))
    assert [one.platform_id for one in payments_due(database)] == ["ann"]
    exit_assignment(database, held.id, now=NOW)
    whole, part = payments_due(database)
    assert (whole.kind, whole.amount, part.kind, part.amount) == ("base", 200, "pro-rata", 50)
    for due in (whole, part):
        assert record_payment(database, due, now=NOW)
        assert not record_payment(database, due, now=NOW)
    assert payments_due(database) == ()
    assert [one.paid for one in assignments(database)] == [200, 50]


def test_who_was_paid_a_part_and_goes_on_is_owed_the_rest(database: Database) -> None:
    load(database, queries=1, tests=0)
    held = take(database, "ann")
    choose(database, held.id, 1, Choice(side="left"))
    take(database, "ann", now=after(minutes=61))
    assert payments_due(database) == ()
    expire_leases(database, now=after(minutes=200))
    (part,) = payments_due(database)
    record_payment(database, part, now=NOW)
    for position in (2, 3):
        choose(database, held.id, position, Choice(side="left"), now=after(minutes=201))
    submit(database, held.id, now=after(minutes=202))
    (rest,) = payments_due(database)
    assert (part.kind, part.amount, rest.kind, rest.amount) == ("pro-rata", 67, "bonus", 133)
    assert rest.key != part.key


def test_the_key_of_one_payment_pays_no_other(database: Database) -> None:
    load(database)
    finish(database, "ann")
    (due,) = payments_due(database)
    record_payment(database, due, now=NOW)
    with pytest.raises(DatabaseError, match="payment-key"):
        record_payment(database, replace(due, amount=due.amount + 1), now=NOW)
    with pytest.raises(DatabaseError, match="unknown-assignment"):
        record_payment(database, replace(due, assignment=99, key="new"), now=NOW)
    assert [one.paid for one in assignments(database)] == [200]


def test_the_log_tells_what_happened(database: Database) -> None:
    load(database, queries=1)
    first = finish(database, "ann", fail=True)
    held = take(database, "bob")
    exit_assignment(database, held.id, now=after(minutes=2))
    kinds = [(one.kind, one.assignment) for one in events(database)]
    assert kinds == [
        ("loaded", None),
        ("consented", first.id),
        ("submitted", first.id),
        ("excluded", first.id),
        ("copied", first.id),
        ("consented", held.id),
        ("exited", held.id),
    ]
    assert events(database)[-1].at == after(minutes=2)
