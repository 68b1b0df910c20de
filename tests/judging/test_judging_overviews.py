"""What the organiser sees and switches: progress, workers, payments, pauses; on both engines."""

from dataclasses import replace

import judging_databases
import msgspec
import pytest
from small_campaign import (
    NOW,
    SETTINGS,
    after,
    answer_all,
    choose,
    expire_leases,
    finish,
    load,
    take,
)

from heldout.database.database import Database
from heldout.database.errors import DatabaseError
from heldout.judging.campaign.judgments import Choice
from heldout.judging.database.assignments import Assignment, Worker, exit_assignment, submit
from heldout.judging.database.claims import NoTask, Offer, claim, offer
from heldout.judging.database.organiser import (
    BatchProgress,
    assignments,
    count_sign_outs,
    events,
    list_payments,
    note_sign_out,
    pair_texts,
    passage_lengths,
    payments_due,
    progress,
    read_launch_state,
    record_payment,
    set_launch,
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


def test_the_switch_stands_as_it_was_turned_last(database: Database) -> None:
    load(database)
    assert read_launch_state(database) == "new"
    assert set_launch(database, "launched", now=NOW, text="$9.60")
    assert not set_launch(database, "launched", now=NOW)
    assert read_launch_state(database) == "launched"
    assert set_launch(database, "paused", now=after(minutes=1))
    assert read_launch_state(database) == "paused"
    told = [(event.kind, event.note) for event in events(database)][1:]
    assert told == [("launched", "$9.60"), ("paused", "")]


def test_each_sign_out_is_counted(database: Database) -> None:
    load(database)
    assert count_sign_outs(database) == 0
    note_sign_out(database, now=NOW)
    note_sign_out(database, now=NOW)
    assert count_sign_outs(database) == 2


def test_who_is_under_way_has_a_lease_and_a_last_answer(database: Database) -> None:
    load(database, queries=3)
    late = take(database, "bob", now=after(minutes=1))
    early = take(database, "eve", now=NOW)
    answer_all(database, late, now=after(minutes=5))
    found = {one.assignment: one for one in assignments(database)}
    first, second = found[early.id], found[late.id]
    assert (first.answered, first.last) == (0, None)
    assert first.lease_until == after(minutes=SETTINGS.lease_minutes)
    assert (second.answered, second.last) == (4, after(minutes=5))
    assert second.lease_until == after(minutes=5 + SETTINGS.lease_minutes)


def test_texts_and_lengths_are_found_by_id(database: Database) -> None:
    load(database)
    texts = ("question 1", "passage b of 1", "passage a of 1")
    assert pair_texts(database, "q1", "d1b", "d1a") == texts
    assert pair_texts(database, "q1", "d1b", "unknown") is None
    assert pair_texts(database, "unknown", "d1a", "d1b") is None
    assert passage_lengths(database)["d1b"] == len("passage b of 1")


def test_payments_made_and_due_are_one_list(database: Database) -> None:
    load(database, queries=3)
    for worker in ("ada", "bob"):
        finish(database, worker)
    cy = take(database, "cy")
    exit_assignment(database, cy.id, now=NOW)
    first, _ = payments_due(database)
    record_payment(database, first, now=NOW)
    made, due = list_payments(database)
    assert (made.platform_id, made.kind, made.paid_at) == (
        *("ada", "base"),
        "2026-11-21T12:00:00.000Z",
    )
    assert (due.platform_id, due.kind, due.paid_at, due.currency) == ("bob", "base", "", "USD")


def test_nobody_is_given_a_task_and_who_has_one_goes_on(database: Database) -> None:
    load(database)
    ada = take(database, "ada")
    set_launch(database, "paused", now=NOW)
    for found in (
        offer(database, Worker(platform_id="bob", signed=True), now=NOW),
        offer(database, None, now=NOW),
        claim(database, Worker(platform_id="bob", signed=True), batch=1, now=NOW),
    ):
        assert isinstance(found, NoTask)
        assert found.why == "paused"
    again = claim(database, Worker(platform_id="ada", signed=True), batch=1, now=NOW)
    assert isinstance(again, Assignment)
    assert again.id == ada.id
    answer_all(database, ada)
    assert submit(database, ada.id, now=NOW).state == "submitted"
    set_launch(database, "launched", now=NOW)
    assert isinstance(offer(database, Worker(platform_id="bob", signed=True), now=NOW), Offer)
    assert take(database, "bob").id != ada.id
