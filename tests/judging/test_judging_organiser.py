"""The organiser's switch, sign-outs, leases and payments, on both engines."""

from dataclasses import replace

import judging_databases
from small_campaign import NOW, SETTINGS, after, answer_all, finish, load, take

from heldout.database.database import Database
from heldout.judging.database.assignments import exit_assignment, submit
from heldout.judging.database.organiser import (
    count_sign_outs,
    leases,
    list_payments,
    note_sign_out,
    pair_texts,
    passage_lengths,
    payments_due,
    read_launch_state,
    record_payment,
    set_launch,
)
from heldout.judging.database.overviews import JudgedSoFar, events, judged_so_far, judgments

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


def test_how_far_judging_is_changes_with_an_answer_and_with_a_task_handed_in(
    database: Database,
) -> None:
    load(database)
    sitting = take(database, "ada")
    assert judged_so_far(database) == JudgedSoFar(judgments=0, newest=0, finished=0)
    answer_all(database, sitting)
    answered = judged_so_far(database)
    found = judgments(database)
    assert (answered.judgments, answered.newest > 0, answered.finished) == (len(found), True, 0)
    take(database, "bob")
    assert judged_so_far(database) == answered
    submit(database, sitting.id, now=NOW)
    assert judged_so_far(database).finished == 1


def test_each_sign_out_is_counted(database: Database) -> None:
    load(database)
    assert count_sign_outs(database) == 0
    note_sign_out(database, now=NOW)
    note_sign_out(database, now=NOW)
    assert count_sign_outs(database) == 2


def test_leases_are_those_under_way_the_soonest_to_end_first(database: Database) -> None:
    load(database, queries=3)
    finish(database, "ada")
    late = take(database, "bob", now=after(minutes=1))
    early = take(database, "eve", now=NOW)
    answer_all(database, late, now=after(minutes=5))
    first, second = leases(database)
    assert (first.assignment, first.answered, first.last) == (early.id, 0, None)
    assert first.until == after(minutes=SETTINGS.lease_minutes)
    assert (second.assignment, second.answered) == (late.id, 4)
    assert (second.since, second.last) == (after(minutes=1), after(minutes=5))
    assert second.until == after(minutes=5 + SETTINGS.lease_minutes)


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
    found = pair_texts(database, "q1", "d1b", "d1a")
    assert found
    assert (found.query, found.a, found.b) == ("question 1", "passage b of 1", "passage a of 1")
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
