"""The organiser's switch, sign-outs, leases and payments, on both engines."""

from dataclasses import replace

import judging_databases
from small_campaign import NOW, SETTINGS, after, answer_all, finish, load, take

from heldout.database.database import Database
from heldout.judging.database.assignments import exit_assignment
from heldout.judging.database.organiser import (
    assignments,
    count_sign_outs,
    events,
    list_payments,
    note_sign_out,
    pair_texts,
    passage_lengths,
    payments_due,
    read_launch_state,
    record_payment,
    set_launch,
)

database = judging_databases.database


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


def test_a_payment_that_was_recorded_is_found_again(database: Database) -> None:
    load(database)
    finish(database, "ada")
    (due,) = payments_due(database)
    assert not due.paid_at
    record_payment(database, due, now=NOW)
    (made,) = list_payments(database)
    assert made == replace(due, paid_at="2026-11-21T12:00:00.000Z")
    assert (made.amount, made.kind, made.platform_id) == (200, "base", "ada")


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
