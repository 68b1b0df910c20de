"""Who gets which task; on both engines."""

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
    make_pools,
    make_tasks,
    take,
)

from heldout.database.database import Database
from heldout.database.errors import DatabaseError
from heldout.errors import InputError
from heldout.judging.campaign.judgments import Choice
from heldout.judging.campaign.rows import Task
from heldout.judging.database.assignments import (
    Assignment,
    Worker,
    answer,
    exit_assignment,
    get_assignment,
    item,
    resume,
    submit,
)
from heldout.judging.database.campaigns import load_campaign
from heldout.judging.database.claims import NoTask, Offer, claim, offer
from heldout.judging.database.organiser import assignments, tasks

database = judging_databases.database
LEFT = Choice(side="left")


def why(database: Database, worker: str, *, batch: int = 1, minutes: float = 0) -> str:
    found = claim(
        database, Worker(platform_id=worker, signed=True), batch=batch, now=after(minutes=minutes)
    )
    return found.why if isinstance(found, NoTask) else "task"


def shown_task(database: Database, assignment: int) -> Task:
    name = next(one.task for one in assignments(database) if one.assignment == assignment)
    return next(task for task in tasks(database) if task.task == name)


def test_the_offer_names_the_terms_before_anything_is_claimed(database: Database) -> None:
    load(database)
    found = offer(database, None, now=NOW)
    assert found == Offer(batch=1, settings=SETTINGS, items=4)
    assert assignments(database) == ()


def test_who_comes_back_by_a_signed_link_gets_the_same_assignment(database: Database) -> None:
    load(database)
    first = take(database, "ann")
    choose(database, first.id, 1, LEFT)
    again = take(database, "ann")
    assert (again.id, again.answered) == (first.id, 1)
    known = offer(database, Worker(platform_id="ann", signed=True), now=NOW)
    assert isinstance(known, Offer)
    assert known.assignment == first.id


def test_nobody_judges_a_pair_twice(database: Database) -> None:
    load(database, queries=2, judges=2)
    finish(database, "ann")
    finish(database, "ann")
    assert why(database, "ann") == "seen"
    finish(database, "bob")
    finish(database, "bob")
    assert why(database, "ann") == "done"


def test_it_is_told_whether_a_task_may_come_free(database: Database) -> None:
    load(database, queries=1)
    take(database, "ann")
    assert why(database, "bob") == "waiting"
    assert why(database, "bob", minutes=61) == "task"


def test_a_lease_is_lengthened_by_every_answer(database: Database) -> None:
    load(database, queries=1)
    held = take(database, "ann")
    choose(database, held.id, 1, LEFT, now=after(minutes=50))
    assert expire_leases(database, now=after(minutes=100)) == 0
    resume(database, held.id, now=after(minutes=100))
    assert expire_leases(database, now=after(minutes=159)) == 0
    assert expire_leases(database, now=after(minutes=161)) == 1


def test_who_is_late_goes_on_where_nobody_else_was_given_the_task(database: Database) -> None:
    load(database, queries=1)
    held = take(database, "ann")
    choose(database, held.id, 1, LEFT)
    expire_leases(database, now=after(minutes=90))
    late = get_assignment(database, held.id)
    assert (late.state, late.open, late.answered) == ("expired", True, 1)
    assert choose(database, held.id, 2, LEFT, now=after(minutes=95)).outcome == "recorded"
    assert get_assignment(database, held.id).state == "consented"
    assert why(database, "bob", minutes=100) == "waiting"


def test_who_is_too_late_keeps_the_answers_and_is_owed_for_them(database: Database) -> None:
    load(database, queries=1)
    held = take(database, "ann")
    before = shown_task(database, held.id)
    choose(database, held.id, 1, LEFT)
    other = take(database, "bob", now=after(minutes=61))
    late = choose(database, held.id, 2, LEFT, now=after(minutes=62))
    assert (late.outcome, late.shown.given) == ("ended", None)
    late_sitting = submit(database, held.id, now=after(minutes=62))
    assert (late_sitting.state, late_sitting.open, late_sitting.answered) == ("expired", False, 1)
    assert late_sitting.owed == 50
    assert not late_sitting.barred
    copy = shown_task(database, other.id)
    assert {one.pair for one in copy.items} == {one.pair for one in before.items}
    assert copy.task == f"{before.task}~2"
    assert why(database, "ann", minutes=62) == "seen"


def test_finished_work_never_expires(database: Database) -> None:
    load(database, queries=1)
    done = finish(database, "ann")
    assert expire_leases(database, now=after(minutes=10_000)) == 0
    assert get_assignment(database, done.id).state == "submitted"
    assert why(database, "bob", minutes=10_000) == "done"


def test_an_exit_gives_the_task_to_another_worker(database: Database) -> None:
    load(database, queries=1)
    held = take(database, "ann")
    choose(database, held.id, 1, Choice(side=None, reason="neither"))
    ended = exit_assignment(database, held.id, now=NOW)
    assert (ended.state, ended.owed) == ("exited", 50)
    assert exit_assignment(database, held.id, now=after(minutes=1)) == ended
    assert submit(database, held.id, now=after(minutes=1)) == ended
    assert why(database, "ann") == "seen"
    assert why(database, "bob") == "task"


def test_failed_tests_bar_the_worker_and_the_task_is_given_again(database: Database) -> None:
    load(database, queries=2)
    ended = finish(database, "ann", fail=True)
    assert (ended.state, ended.barred, ended.owed) == ("submitted", True, 200)
    assert why(database, "ann") == "barred"
    assert offer(database, Worker(platform_id="ann", signed=True), now=NOW) == NoTask(
        why="barred", settings=SETTINGS
    )
    assert not finish(database, "bob").barred
    assert not finish(database, "cid").barred
    assert why(database, "dan") == "done"


@pytest.mark.parametrize("lapse", [False, True])
def test_neither_an_exit_nor_a_lapse_saves_who_failed_tests(
    database: Database, *, lapse: bool
) -> None:
    load(database, queries=2)
    held = take(database, "ann")
    answer_all(database, held, fail=True)
    if lapse:
        expire_leases(database, now=after(minutes=61))
    else:
        exit_assignment(database, held.id, now=NOW)
    assert not get_assignment(database, held.id).open
    assert why(database, "ann", minutes=61) == "barred"


def test_a_failed_test_can_be_mended_until_the_end(database: Database) -> None:
    load(database, queries=1)
    held = take(database, "ann")
    answer_all(database, held, fail=True)
    answer_all(database, held)
    assert not submit(database, held.id, now=NOW).barred


def test_pay_may_be_refused_for_failed_tests_however_the_task_ends(database: Database) -> None:
    load(database, settings=msgspec.structs.replace(SETTINGS, pay_failed=False))
    assert finish(database, "ann", fail=True).owed == 0
    held = take(database, "bob")
    answer_all(database, held, fail=True)
    assert exit_assignment(database, held.id, now=NOW).owed == 0


def test_where_all_of_a_worker_is_excluded_earlier_tasks_are_given_again(
    database: Database,
) -> None:
    load(database, queries=2, settings=msgspec.structs.replace(SETTINGS, exclusion="worker"))
    finish(database, "ann")
    finish(database, "ann", fail=True)
    finish(database, "bob")
    finish(database, "bob")
    assert why(database, "cid") == "done"


def test_more_failed_tests_may_be_allowed(database: Database) -> None:
    load(database, tests=3, settings=msgspec.structs.replace(SETTINGS, failures=4))
    assert not finish(database, "ann", fail=True).barred


def test_what_was_agreed_to_is_what_is_given(database: Database) -> None:
    load(database, queries=1)
    dearer = msgspec.structs.replace(SETTINGS, reward=300)
    both = make_tasks(1) + make_tasks(1, batch=2)
    load_campaign(database, dearer, make_pools(1), both, now=NOW)
    assert why(database, "ann", batch=2) == "task"
    assert why(database, "bob", batch=2) == "changed"
    first = offer(database, Worker(platform_id="bob", signed=True), now=NOW)
    assert isinstance(first, Offer)
    assert (first.batch, first.settings.reward) == (1, 200)
    assert finish(database, "bob").owed == 200


@pytest.mark.parametrize("batch", [-1, 0, 2, 10**30])
def test_terms_that_were_never_offered_are_agreed_to_in_vain(
    database: Database, batch: int
) -> None:
    load(database)
    assert why(database, "ann", batch=batch) == "changed"
    assert assignments(database) == ()


def test_where_sides_are_balanced_a_copy_keeps_them(database: Database) -> None:
    load(database, queries=4, judges=2, settings=msgspec.structs.replace(SETTINGS, judges=2))
    for number in range(8):
        exit_assignment(database, take(database, f"w{number}").id, now=NOW)
        take(database, f"v{number}")
    found = {one.task: one for one in tasks(database)}
    copies = [task for name, task in found.items() if name.endswith("~2")]
    assert len(copies) == 8
    for task in copies:
        kept = {(one.left, one.right) for one in found[task.task.removesuffix("~2")].items[:3]}
        assert {(one.left, one.right) for one in task.items if one.answer is None} == kept


@pytest.mark.parametrize(
    "name", ["", "x" * 256, "a\0b", "a\nb", "\ud800"], ids=["empty", "long", "nul", "lines", "half"]
)
def test_a_worker_without_a_usable_id_is_refused(database: Database, name: str) -> None:
    load(database)
    with pytest.raises(InputError, match="worker-id"):
        claim(database, Worker(platform_id=name, signed=True), batch=1, now=NOW)
    assert isinstance(offer(database, Worker(platform_id=name, signed=True), now=NOW), Offer)


def test_hostile_ids_are_text(database: Database) -> None:
    load(database)
    name = "'; DROP TABLE judgments; -- %s {} <script>"
    worker = Worker(
        platform_id=name, session_id="\0" * 9 + "p" * 5_000, study="%(x)s\ud800", submit_to="?"
    )
    found = claim(database, worker, batch=1, now=NOW)
    assert isinstance(found, Assignment)
    assert found.worker == Worker(
        platform_id=name, session_id="p" * 1_000, study="%(x)s?", submit_to="?"
    )


def test_an_assignment_of_another_database_is_unknown(database: Database) -> None:
    load(database)
    for call in (
        lambda: get_assignment(database, 7),
        lambda: item(database, 7, 1),
        lambda: submit(database, 7, now=NOW),
        lambda: exit_assignment(database, 7, now=NOW),
        lambda: resume(database, 7, now=NOW),
        lambda: answer(database, 7, 1, LEFT, replaces=0, shown_at=NOW, now=NOW),
    ):
        with pytest.raises(DatabaseError, match="unknown-assignment"):
            call()


def test_a_database_without_tasks_says_so(database: Database) -> None:
    with pytest.raises(DatabaseError, match="database-empty"):
        offer(database, None, now=NOW)
