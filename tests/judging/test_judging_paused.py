"""A paused campaign gives nobody a task, and takes the answers of those who have one."""

import judging_databases
from small_campaign import NOW, answer_all, load, take

from heldout.database.database import Database
from heldout.judging.database.assignments import Assignment, Worker, submit
from heldout.judging.database.claims import NoTask, Offer, claim, offer
from heldout.judging.database.organiser import set_launch

database = judging_databases.database


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
