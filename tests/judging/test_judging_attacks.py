"""Who comes in another's name, or in many names, and what they get; on both engines."""

from datetime import datetime

import judging_databases
import msgspec
import pytest
from derived_states import derived_states, stored_states
from small_campaign import (
    NOW,
    SETTINGS,
    after,
    answer_all,
    choose,
    finish,
    load,
    take,
)

from heldout.database.database import Database
from heldout.judging.campaign.judgments import Choice
from heldout.judging.database.assignments import (
    Assignment,
    Worker,
    exit_assignment,
    get_assignment,
    submit,
)
from heldout.judging.database.claims import NoTask, claim, offer
from heldout.judging.database.organiser import payments_due
from heldout.judging.database.overviews import assignments, uncounted_pay

database = judging_databases.database
LEFT = Choice(side="left")
OPEN = msgspec.structs.replace(SETTINGS, links="open", uncounted_percent=20)
OWNER = Worker(platform_id="A1", place="theirs", submit_to="https://www.mturk.com")
THIEF = Worker(platform_id="A1", place="mine", submit_to="https://www.mturk.com")


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
    assert [(one.place, one.amount) for one in payments_due(database)] == [("theirs", 200)]


def test_a_task_begun_in_anothers_name_is_not_paid_to_who_began_it(database: Database) -> None:
    """Placed before the owner's first answer: the owner's answers stay with the owner."""
    load(database)
    first = begin(database, THIEF)
    own = begin(database, OWNER)
    assert own.id != first.id
    assert choose(database, first.id, 1, LEFT).outcome == "ended"
    answer_all(database, own)
    submit(database, own.id, now=NOW)
    assert [(one.place, one.amount) for one in payments_due(database)] == [("theirs", 200)]
    assert stored_states(database) == derived_states(database)


def test_a_task_left_on_another_assignment_ends_with_its_lease(database: Database) -> None:
    load(database)
    held = begin(database, OWNER)
    choose(database, held.id, 1, LEFT)
    returned = Worker(platform_id="A1", place="next", submit_to="https://www.mturk.com")
    assert why(come(database, returned, now=after(minutes=59))) == "elsewhere"
    later = begin(database, returned, now=after(minutes=61))
    assert later.id != held.id
    assert not get_assignment(database, held.id).open
    assert [(one.place, one.amount) for one in payments_due(database)] == [("theirs", 50)]
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
    for number in range(400):
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
        if isinstance(come(database, Worker(platform_id=f"w{number}", signed=True)), Assignment):
            finish(database, f"w{number}", fail=True)
    assert sum(one.amount for one in payments_due(database)) == uncounted_pay(database).limit == 400


def test_what_does_not_count_closes_nothing_to_who_has_a_task(database: Database) -> None:
    load(database, queries=10, settings=OPEN)
    held = take(database, "ann")
    for number in range(2):
        finish(database, f"w{number}", fail=True)
    assert why(come(database, Worker(platform_id="new", signed=True))) == "paused"
    answer_all(database, held)
    done = submit(database, held.id, now=NOW)
    assert (done.state, done.owed) == ("submitted", 200)


def test_finished_tasks_that_count_use_nothing_of_the_limit(database: Database) -> None:
    load(database, queries=10, settings=OPEN)
    for number in range(10):
        finish(database, f"w{number}")
    assert uncounted_pay(database).earned == 0
