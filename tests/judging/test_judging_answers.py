"""Answers: shown, given, changed, repeated, too late; on both engines."""

from datetime import timedelta

import judging_databases
import pytest
from small_campaign import (
    NOW,
    SETTINGS,
    after,
    answer_all,
    choose,
    expire_leases,
    load,
    make_tasks,
    take,
)

from heldout.database.database import Database
from heldout.judging.campaign.judgments import Choice, counted, format_judgments, parse_judgments
from heldout.judging.campaign.pools import Candidate, Pool
from heldout.judging.database.assignments import answer, get_assignment, item, submit
from heldout.judging.database.campaigns import load_campaign
from heldout.judging.database.organiser import assignments, judgments, tasks

database = judging_databases.database
LEFT, RIGHT = Choice(side="left"), Choice(side="right")
CANNOT = Choice(side=None, reason="unreadable")


def post(database: Database, assignment: int, choice: Choice, *, replaces: int) -> str:
    done = answer(database, assignment, 1, choice, replaces=replaces, shown_at=NOW, now=NOW)
    assert done is not None
    return done.outcome


def test_a_refresh_shows_the_same_item(database: Database) -> None:
    load(database)
    held = take(database, "ann")
    shown = item(database, held.id, 2)
    assert shown is not None
    assert item(database, held.id, 2) == shown
    assert (shown.query, shown.given) == ("question 0", None)
    task = next(one for one in tasks(database) if one.task == "b1-0-0")
    assert (shown.passages[0].doc, shown.passages[1].doc) == (
        task.items[1].left,
        task.items[1].right,
    )
    assert shown.passages[0].text == "passage b of 0"


def test_a_task_has_no_other_positions(database: Database) -> None:
    load(database)
    held = take(database, "ann")
    for position in (-1, 0, 5, 10**30):
        assert item(database, held.id, position) is None
        done = answer(database, held.id, position, LEFT, replaces=0, shown_at=NOW, now=NOW)
        assert done is None


def test_a_double_post_is_one_answer(database: Database) -> None:
    load(database)
    held = take(database, "ann")
    assert post(database, held.id, LEFT, replaces=0) == "recorded"
    assert post(database, held.id, LEFT, replaces=0) == "repeated"
    assert len(judgments(database)) == 1


def test_a_change_supersedes_and_erases_nothing(database: Database) -> None:
    load(database)
    held = take(database, "ann")
    for revision, choice in enumerate((LEFT, RIGHT, CANNOT)):
        assert post(database, held.id, choice, replaces=revision) == "recorded"
    assert [one.preferred for one in judgments(database)] == ["d0a", "d0b", None]
    shown = item(database, held.id, 1)
    assert shown is not None
    assert shown.given is not None
    assert (shown.revision, shown.given.reason) == (3, "unreadable")


def test_a_form_of_another_window_overwrites_nothing(database: Database) -> None:
    load(database)
    held = take(database, "ann")
    post(database, held.id, LEFT, replaces=0)
    assert post(database, held.id, RIGHT, replaces=0) == "stale"
    assert post(database, held.id, RIGHT, replaces=1) == "recorded"
    assert post(database, held.id, LEFT, replaces=0) == "stale"
    assert post(database, held.id, LEFT, replaces=9) == "stale"
    assert [one.preferred for one in judgments(database)] == ["d0a", "d0b"]


def test_an_item_is_not_answered_ahead_of_its_turn(database: Database) -> None:
    load(database)
    held = take(database, "ann")
    done = choose(database, held.id, 2, LEFT)
    assert (done.outcome, done.shown.given, done.shown.assignment.first_open) == ("ahead", None, 1)
    assert judgments(database) == ()


def test_a_task_is_submitted_when_all_is_answered_and_then_stays(database: Database) -> None:
    load(database)
    held = take(database, "ann")
    choose(database, held.id, 1, LEFT)
    early = submit(database, held.id, now=NOW)
    assert (early.state, early.first_open, early.answered) == ("consented", 2, 1)
    answer_all(database, held)
    done = submit(database, held.id, now=NOW)
    assert (done.state, done.open, done.first_open, done.owed) == ("submitted", False, None, 200)
    assert submit(database, held.id, now=after(minutes=9)) == done
    first = item(database, held.id, 1)
    assert first is not None
    assert first.given is not None
    other = RIGHT if first.given.side == "left" else LEFT
    assert post(database, held.id, other, replaces=1) == "ended"
    assert len(judgments(database)) == 4


def test_the_same_answer_again_after_the_end_had_arrived_before(database: Database) -> None:
    load(database)
    held = take(database, "ann")
    answer_all(database, held)
    done = submit(database, held.id, now=NOW)
    shown = item(database, held.id, 1)
    assert shown is not None
    assert shown.given is not None
    same = Choice(side=shown.given.side)
    assert post(database, held.id, same, replaces=0) == "repeated"
    assert len(judgments(database)) == 4
    assert submit(database, held.id, now=after(minutes=9)) == done


def test_cannot_judge_is_an_answer_and_no_vote(database: Database) -> None:
    load(database, tests=0)
    held = take(database, "ann")
    for position in (1, 2, 3):
        choose(database, held.id, position, CANNOT)
    assert submit(database, held.id, now=NOW).state == "submitted"
    assert counted(judgments(database)) == ()
    assert assignments(database)[0].cannot == 3


@pytest.mark.parametrize(
    "wrong",
    [
        {"side": None, "reason": None},
        {"side": "left", "reason": "same"},
        {"side": "left", "active_ms": -1},
        {"side": "left", "active_ms": 2**63},
    ],
    ids=["nothing", "both", "negative", "endless"],
)
def test_a_choice_is_one_thing(wrong: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="Choice"):
        Choice(**wrong)  # type: ignore[arg-type]  # what a forged form might hold


def test_what_was_shown_when_is_recorded(database: Database) -> None:
    load(database)
    held = take(database, "ann")
    choice = Choice(side="right", by="key", active_ms=4_321)
    seen = NOW + timedelta(milliseconds=1)
    answer(database, held.id, 1, choice, replaces=0, shown_at=seen, now=after(minutes=1))
    one = judgments(database)[0]
    assert (one.left, one.right, one.preferred) == ("d0a", "d0b", "d0b")
    assert (one.worker, one.task, one.position) == (held.pseudonym, "b1-0-0", 1)
    assert (one.shown_at, one.answered_at) == (
        "2026-11-21T12:00:00.001Z",
        "2026-11-21T12:01:00.000Z",
    )
    assert (one.by, one.active_ms, one.answer, one.submitted) == ("key", 4_321, None, False)
    assert held.pseudonym != "ann"


def test_judgments_are_written_to_a_file_and_read_again(database: Database) -> None:
    load(database)
    held = take(database, "ann")
    answer_all(database, held)
    submit(database, held.id, now=NOW)
    found = judgments(database)
    assert parse_judgments(format_judgments(found), path="judgments.jsonl") == found
    assert len(counted(found)) == 3
    assert all(one.submitted for one in found)


def test_a_clock_that_goes_back_shortens_no_lease(database: Database) -> None:
    load(database)
    held = take(database, "ann", now=after(minutes=30))
    choose(database, held.id, 1, LEFT, now=NOW)
    assert get_assignment(database, held.id).lease_until == held.lease_until
    assert expire_leases(database, now=after(minutes=89)) == 0


@pytest.mark.parametrize(
    "text",
    [
        "<script>alert(1)</script> &amp; {{ 7 * 7 }}",
        "\u202egnp.exe\u2066 \u200b",
        "w" * 100_000,
        "NUL \ufffd, \U0001f600, \u0000".replace("\0", ""),
    ],
    ids=["html", "bidi", "100-kB", "odd"],
)
def test_a_text_is_stored_as_it_is(database: Database, text: str) -> None:
    known = Candidate(doc="d0a", text=text)
    others = [Candidate(doc=f"d0{letter}", text="x") for letter in "bcx"]
    pool = Pool(query="q0", text=text, candidates=(known, *others))
    load_campaign(database, SETTINGS, [pool], make_tasks(1), now=NOW)
    shown = item(database, take(database, "ann").id, 1)
    assert shown is not None
    assert (shown.query, shown.passages[0].text) == (text, text)
