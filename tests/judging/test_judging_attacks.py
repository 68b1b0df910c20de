"""Who comes in another's name, or in many names, and what they get; on both engines."""

from datetime import datetime

import judging_databases
import msgspec
import pytest
from derived_states import derived_states, stored_states
from small_campaign import NOW, SETTINGS, after, answer_all, choose, finish, load, take

from heldout.database.database import Database
from heldout.judging.campaign.judgments import Choice
from heldout.judging.database.assignments import (
    Assignment,
    Worker,
    exit_assignment,
    get_assignment,
    submit,
)
from heldout.judging.database.claims import NoTask, Offer, claim, offer
from heldout.judging.database.organiser import assignments, payments_due, uncounted_pay

database = judging_databases.database
LEFT = Choice(side="left")
OPEN = msgspec.structs.replace(SETTINGS, links="open", uncounted_percent=20)
OWNER = Worker(platform_id="A1", session_id="theirs", submit_to="https://www.mturk.com")
THIEF = Worker(platform_id="A1", session_id="mine", submit_to="https://www.mturk.com")


def come(database: Database, worker: Worker, *, now: datetime = NOW) -> Assignment | NoTask:
    return claim(database, worker, batch=1, now=now)


def begin(database: Database, worker: Worker, *, now: datetime = NOW) -> Assignment:
    found = come(database, worker, now=now)
    assert isinstance(found, Assignment), found
    return found


def why(found: object) -> str:
    assert isinstance(found, NoTask), found
    return found.why


@pytest.mark.parametrize("unsigned", [THIEF, Worker(platform_id="A1")])
def test_who_knows_a_worker_id_never_takes_over_a_task_with_answers(
    database: Database, unsigned: Worker
) -> None:
    load(database)
    held = begin(database, OWNER)
    choose(database, held.id, 1, LEFT)
    assert why(come(database, unsigned)) == "elsewhere"
    assert why(offer(database, unsigned, now=NOW)) == "elsewhere"
    assert get_assignment(database, held.id).worker == OWNER
    again = begin(database, OWNER)
    assert (again.id, again.answered) == (held.id, 1)
    answer_all(database, again)
    submit(database, held.id, now=NOW)
    assert [(one.session_id, one.amount) for one in payments_due(database)] == [("theirs", 200)]


def test_a_task_begun_in_anothers_name_is_not_paid_to_who_began_it(database: Database) -> None:
    """Placed before the owner's first answer: the owner's answers stay with the owner."""
    load(database)
    first = begin(database, THIEF)
    own = begin(database, OWNER)
    assert own.id != first.id
    assert choose(database, first.id, 1, LEFT).outcome == "ended"
    answer_all(database, own)
    submit(database, own.id, now=NOW)
    assert [(one.session_id, one.amount) for one in payments_due(database)] == [("theirs", 200)]
    assert stored_states(database) == derived_states(database)


def test_a_task_left_on_another_assignment_ends_with_its_lease(database: Database) -> None:
    load(database)
    held = begin(database, OWNER)
    choose(database, held.id, 1, LEFT)
    returned = Worker(platform_id="A1", session_id="next", submit_to="https://www.mturk.com")
    assert why(come(database, returned, now=after(minutes=59))) == "elsewhere"
    later = begin(database, returned, now=after(minutes=61))
    assert later.id != held.id
    assert not get_assignment(database, held.id).open
    assert [(one.session_id, one.amount) for one in payments_due(database)] == [("theirs", 50)]
    assert stored_states(database) == derived_states(database)


def test_who_names_an_id_behind_an_open_link_reads_and_resumes_nothing_of_its_owner(
    database: Database,
) -> None:
    load(database, settings=OPEN)
    held = begin(database, Worker(platform_id="ada"))
    choose(database, held.id, 1, LEFT)
    assert why(come(database, Worker(platform_id="ada"))) == "elsewhere"
    assert choose(database, held.id, 2, LEFT).outcome == "recorded"


def test_failed_tests_under_anothers_id_never_void_what_its_owner_finished(
    database: Database,
) -> None:
    load(database, settings=msgspec.structs.replace(OPEN, exclusion="worker"))
    own = finish(database, "ada")
    finish(database, "ada", fail=True)  # in the same name, by whoever knows it
    tasks = {one.assignment: one.task for one in assignments(database)}
    assert stored_states(database).tasks[tasks[own.id]] == "done"
    assert stored_states(database) == derived_states(database)


def test_invented_ids_that_stop_early_earn_no_more_than_the_limit(database: Database) -> None:
    load(database, queries=10, settings=OPEN)
    taken = 0
    for number in range(100):
        found = come(database, Worker(platform_id=f"invented {number}"))
        if isinstance(found, NoTask):
            assert found.why == "paused"
            continue
        taken += 1
        for position in (1, 2, 3):
            choose(database, found.id, position, LEFT)
        exit_assignment(database, found.id, now=NOW)
    spent = uncounted_pay(database)
    assert spent.limit == 400  # 20% of ten rewards of $2.00
    owed = sum(one.amount for one in payments_due(database))
    assert spent.limit <= owed <= spent.limit + 150  # the last one may go over it
    assert taken == 3


def test_invented_ids_that_fail_every_test_earn_no_more_than_the_limit(database: Database) -> None:
    load(database, queries=10, settings=OPEN)
    for number in range(40):
        found = come(database, Worker(platform_id=f"w{number}"))
        if isinstance(found, Assignment):
            answer_all(database, found, fail=True)
            submit(database, found.id, now=NOW)
    assert sum(one.amount for one in payments_due(database)) == uncounted_pay(database).limit == 400


def stop_early(database: Database, name: str, origin: str, *, answers: int = 1) -> bool:
    """Whether a made-up id is given a task, of which it answers some and stops."""
    found = come(database, Worker(platform_id=name, origin=origin))
    if isinstance(found, NoTask):
        assert found.why == "paused"
        return False
    for position in range(1, answers + 1):
        choose(database, found.id, position, LEFT)
    exit_assignment(database, found.id, now=NOW)
    return True


def test_made_up_ids_hold_back_new_ids_of_their_own_networks_alone(database: Database) -> None:
    """The limit is $4.00, as the last answer of a task of four is $0.50: eight stop early."""
    load(database, queries=10, settings=OPEN)
    known = finish(database, "known")  # has a task that counts, and a signed link
    taken = [stop_early(database, f"made up {n}", f"net {n % 4}") for n in range(25)]
    assert taken == [True] * 8 + [False] * 17
    assert uncounted_pay(database).is_spent
    for origin in ("net 0", ""):
        assert why(offer(database, Worker(platform_id="new", origin=origin), now=NOW)) == "paused"
    assert why(offer(database, None, now=NOW)) == "paused"
    honest = Worker(platform_id="honest", origin="elsewhere")
    assert isinstance(offer(database, honest, now=NOW), Offer)
    assert isinstance(offer(database, Worker(platform_id="", origin="elsewhere"), now=NOW), Offer)
    begun = begin(database, honest)
    neighbour = Worker(platform_id="neighbour", origin="elsewhere")
    assert why(come(database, neighbour)) == "paused"  # one at a time, until one counts
    answer_all(database, begun)
    submit(database, begun.id, now=NOW)
    assert isinstance(come(database, neighbour), Assignment)
    assert isinstance(come(database, Worker(platform_id="signed", signed=True)), Assignment)
    own = Worker(platform_id="known", signed=True, origin="net 0")
    assert begin(database, own).id != known.id


def test_a_signed_link_that_stops_early_again_and_again_holds_back_itself_alone(
    database: Database,
) -> None:
    load(database, queries=10, settings=OPEN)
    bad = Worker(platform_id="bad", signed=True)
    taken = 0
    while isinstance(found := come(database, bad), Assignment):
        choose(database, found.id, 1, LEFT)
        exit_assignment(database, found.id, now=NOW)
        taken += 1
    assert taken == 8
    assert isinstance(come(database, Worker(platform_id="good", signed=True)), Assignment)


def test_what_tasks_that_do_not_count_cost_is_bounded_however_many_networks_come(
    database: Database,
) -> None:
    """$4.00, five rewards more, and what the tasks that count have earned; one may go over it."""
    load(database, queries=10, settings=OPEN)
    taken = sum(stop_early(database, f"id {n}", f"net {n}", answers=3) for n in range(60))
    spent = uncounted_pay(database)
    assert (spent.limit, spent.most) == (400, 1_400)
    assert spent.earned == 150 * taken == 1_500
    assert spent.is_over
    new = Worker(platform_id="new", origin="new")
    assert why(come(database, new)) == "paused"
    assert why(come(database, Worker(platform_id="signed", signed=True))) == "paused"


def test_who_judges_well_reopens_the_study_to_others(database: Database) -> None:
    load(database, queries=14, settings=OPEN)
    finish(database, "known")
    for number in range(60):
        stop_early(database, f"id {number}", f"net {number}", answers=3)
    new = Worker(platform_id="new", origin="new")
    assert why(come(database, new)) == "paused"
    finish(database, "known")
    assert isinstance(come(database, new), Assignment)


def test_what_does_not_count_closes_nothing_to_who_has_a_task(database: Database) -> None:
    load(database, queries=10, settings=OPEN)
    held = take(database, "ann")
    for number in range(2):
        finish(database, f"w{number}", fail=True)
    assert why(come(database, Worker(platform_id="new"))) == "paused"
    answer_all(database, held)
    done = submit(database, held.id, now=NOW)
    assert (done.state, done.owed) == ("submitted", 200)


def test_finished_tasks_that_count_use_nothing_of_the_limit(database: Database) -> None:
    load(database, queries=10, settings=OPEN)
    for number in range(10):
        finish(database, f"w{number}")
    assert uncounted_pay(database).earned == 0
