"""The judge's way over HTTP: every page, and every wrong way."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from httpx import Response
from judging_stage import QUERY, A, B, Stage, Stages, fields_of, words_of

from heldout.store.judging import claims
from heldout.store.judging.faults import DatabaseError

Make = Callable[..., Stage]


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Make]:
    with Stages(tmp_path) as stages:
        yield stages.make


def shown_choice(page: Response) -> list[str]:
    """Which radio buttons are on."""
    rows = [row for row in page.text.split("<input") if " checked" in row and 'type="radio"' in row]
    return [row.partition('value="')[2].partition('"')[0] for row in rows]


# The way as it should go


def test_consent_stands_before_any_pair_and_records_nothing(stage: Make) -> None:
    one = stage()
    page = one.client.get(one.link, params={"worker": "ada"})
    words = words_of(page)
    assert page.status_code == 200
    for told in (
        *("Best answers", "4 questions", "$2.00", "60 minutes", "Approval 2026-17"),
        *("stop at any point", "judging@example.org", "published without your name", "18 years"),
    ):
        assert told in words
    assert QUERY not in words
    assert A not in words
    assert one.client.get(one.link, params={"worker": "bob"}).status_code == 200


def test_a_whole_task_is_judged_and_ends_with_the_code(stage: Make) -> None:
    one = stage()
    root = one.begin()
    for position, choice in enumerate("abba", 1):
        page = one.client.get(f"{root}/item/{position}")
        assert f"Question {position} of 4" in words_of(page)
        assert QUERY in page.text
        answer = one.answer(root, position, choice)
        assert answer.status_code == 303
        after = f"/item/{position + 1}" if position < 4 else "/done"
        assert answer.headers["location"] == root + after
    end = one.client.get(f"{root}/done")
    assert "Done: all 4 questions" in words_of(end)
    assert "$2.00 is yours" in words_of(end)
    assert "C0FFEE" in end.text
    rows = one.judgments()
    sides = ["left", "right", "right", "left"]
    assert [getattr(row, side) for row, side in zip(rows, sides, strict=True)] == [
        row.preferred for row in rows
    ]
    assert {(row.by, row.active_ms, row.submitted) for row in rows} == {("form", None, True)}


def test_a_refresh_shows_the_same_pair_on_the_same_sides(stage: Make) -> None:
    one = stage()
    root = one.begin()
    texts = {words_of(one.client.get(f"{root}/item/1")) for _ in range(5)}
    assert len(texts) == 1
    assert one.judgments() == ()


def test_who_comes_back_goes_on_where_they_were(stage: Make) -> None:
    one = stage()
    root = one.begin()
    one.answer(root, 1)
    one.clock.pass_by(minutes=30)
    page = one.client.get(one.link, params={"worker": "ada"})
    assert "Go on with your task" in words_of(page)
    answer = one.client.post(f"{one.link}/consent", data=fields_of(page))
    assert answer.headers["location"].endswith("/item/2")
    again = one.client.get(answer.headers["location"])
    assert words_of(again) == words_of(one.client.get(f"{root}/item/2"))


def test_going_back_shows_the_answer_and_a_change_replaces_it(stage: Make) -> None:
    one = stage()
    root = one.begin()
    one.answer(root, 1, "a")
    page = one.client.get(f"{root}/item/2")
    assert f'href="{root}/item/1"' in page.text
    back = one.client.get(f"{root}/item/1")
    assert shown_choice(back) == ["a"]
    assert one.answer(root, 1, "b").status_code == 303
    assert shown_choice(one.client.get(f"{root}/item/1")) == ["b"]
    first, second = one.judgments()
    assert (first.preferred, second.preferred) == (first.left, first.right)


def test_the_first_question_has_nothing_to_go_back_to(stage: Make) -> None:
    one = stage()
    assert ">Back<" not in one.client.get(f"{one.begin()}/item/1").text


def test_cannot_judge_is_an_answer_with_a_reason(stage: Make) -> None:
    one = stage()
    root = one.begin()
    assert one.answer(root, 1, "none", reason="neither").status_code == 303
    (row,) = one.judgments()
    assert (row.preferred, row.reason) == (None, "neither")
    page = one.client.get(f"{root}/item/1")
    assert shown_choice(page) == ["none"]
    assert '<option value="neither" selected>' in page.text


def test_a_reason_beside_a_choice_is_left_out(stage: Make) -> None:
    one = stage()
    one.answer(one.begin(), 1, "b", reason="other")
    (row,) = one.judgments()
    assert (row.preferred, row.reason) == (row.right, None)


def test_stopping_first_names_the_amount(stage: Make) -> None:
    one = stage(items=13, tasks=1)
    root = one.begin()
    for position in range(1, 6):
        one.answer(root, position)
    page = one.client.get(f"{root}/exit")
    assert "5 of 13 answered: $0.77 is yours." in words_of(page)
    assert "Go on with question 6" in words_of(page)
    assert len(one.judgments()) == 5
    answer = one.post(f"{root}/exit", fields_of(page))
    assert answer.headers["location"] == f"{root}/done"
    end = words_of(one.client.get(f"{root}/done"))
    assert "You have stopped" in end
    assert "$0.77 is yours" in end
    assert one.client.get(f"{root}/item/6").headers["location"] == f"{root}/done"


def test_stopping_before_the_first_answer_owes_nothing(stage: Make) -> None:
    one = stage()
    root = one.begin()
    one.post(f"{root}/exit", fields_of(one.client.get(f"{root}/exit")))
    assert "None of 4 answered yet" in words_of(one.client.get(f"{root}/done"))


@pytest.mark.parametrize("choice", ["a", "b"])
def test_stopping_is_no_way_to_be_paid_for_failed_tests(stage: Make, choice: str) -> None:
    """With `pay_failed = false`: all but the last answered, one test failed, then Stop."""
    one = stage(items=13, tasks=1, pay_failed=False)
    assert "unless some of it plainly doesn't fit" in words_of(one.client.get(one.link))
    root = one.begin()
    for position in range(1, 13):
        one.answer(root, position, choice if position == 12 else "a")
    page = one.client.get(f"{root}/exit")
    one.post(f"{root}/exit", fields_of(page))
    for told in (page, one.client.get(f"{root}/done")):
        words = words_of(told)
        if choice == "a":
            assert "12 of 13 answered: $1.85 is yours" in words
        else:
            assert "12 of 13 answered: $0.00. As agreed at the beginning" in words
            assert "$1.85" not in words
            assert "C0FFEE" not in words
    assert ("Stop and be paid" in words_of(page)) == (choice == "a")


def test_who_lapses_with_failed_tests_is_told_what_is_owed(stage: Make) -> None:
    one = stage(pay_failed=False, tasks=1)
    root = one.begin("ada")
    for position in (1, 2, 3):
        one.answer(root, position, "b")
    one.clock.pass_by(hours=2)
    one.begin("bob")
    assert "3 of 4 answered: $0.00. As agreed" in words_of(one.client.get(f"{root}/done"))


def test_who_closed_the_last_page_sees_amount_and_code_again(stage: Make) -> None:
    one = stage(tasks=2)
    one.finish(one.begin("ada"), 4)
    words = words_of(one.client.get(one.link, params={"worker": "ada"}))
    assert "Your last task: 4 of 4 answered: $2.00 is yours." in words
    assert "C0FFEE" in words
    assert "I agree, begin" in words
    assert "C0FFEE" not in one.client.get(one.link, params={"worker": "bob"}).text
    root = one.begin("ada")
    assert "Your last task" not in words_of(one.client.get(one.link, params={"worker": "ada"}))
    one.finish(root, 4)
    words = words_of(one.client.get(one.link, params={"worker": "ada"}))
    assert "There are no tasks left" in words
    assert "Your last task: 4 of 4 answered: $2.00 is yours." in words
    assert "C0FFEE" in words


@pytest.mark.parametrize(("platform", "given"), [("link", True), ("prolific", False)])
def test_who_stops_is_given_the_code_where_there_is_only_a_link(
    stage: Make, platform: str, *, given: bool
) -> None:
    one = stage(platform=platform)
    who = {"worker": "ada"} if platform == "link" else PROLIFIC
    fields = fields_of(one.client.get(one.link, params=who))
    place = one.post(f"{one.link}/consent", fields).headers["location"]
    root = place.rpartition("/item/")[0]
    one.answer(root, 1)
    one.post(f"{root}/exit", fields_of(one.client.get(f"{root}/exit")))
    assert ("C0FFEE" in one.client.get(f"{root}/done").text) == given
    if given:
        landing = words_of(one.client.get(one.link, params=who))
        assert "1 of 4 answered: $0.50 is yours." in landing
        assert "C0FFEE" in landing


def test_lines_of_a_consent_are_joined_within_a_paragraph(stage: Make) -> None:
    one = stage(consent="One line\nand its rest.\n \n  Another\r\n one.\n")
    page = one.client.get(one.link)
    assert ">One line and its rest.</p>" in page.text
    assert ">Another one.</p>" in page.text


def test_an_id_may_be_typed_as_long_as_one_may_be(stage: Make) -> None:
    one = stage()
    page = one.client.get(one.link)
    (length,) = re.findall(r'name="worker"[^>]* maxlength="(\d+)"', page.text)
    fields = {**fields_of(page), "worker": "w" * int(length)}
    assert one.post(f"{one.link}/consent", fields).status_code == 303
    fields["worker"] += "w"
    assert one.post(f"{one.link}/consent", fields).status_code == 422


def test_head_is_answered_as_get_without_a_body(stage: Make) -> None:
    one = stage()
    root = one.begin()
    for place in (one.link, f"{root}/item/1", "/alive", "/static/judging.css", "/nowhere"):
        head, page = one.client.call("HEAD", place), one.client.get(place)
        assert head.status_code == page.status_code
        assert head.content == b""
        assert head.headers["content-length"] == str(len(page.content))
    assert one.client.call("HEAD", f"{one.link}/consent").status_code == 405


def test_keeping_the_place_lengthens_the_lease(stage: Make) -> None:
    one = stage(tasks=1)
    root = one.begin()
    one.clock.pass_by(minutes=50)
    page = one.client.get(f"{root}/item/1")
    answer = one.post(f"{root}/item/1/keep", {"token": fields_of(page)["token"]})
    assert answer.headers["location"] == f"{root}/item/1"
    one.clock.pass_by(minutes=50)
    assert "Nothing is free" in words_of(one.client.get(one.link, params={"worker": "bob"}))
    assert one.answer(root, 1).status_code == 303


def test_what_the_script_counts_is_taken_within_the_time_that_passed(stage: Make) -> None:
    one = stage()
    root = one.begin()
    for position, (active, by) in enumerate(
        (("2500", "key"), ("999999999", "pointer"), ("-5", "robot"), ("1e3", "")), 1
    ):
        page = one.client.get(f"{root}/item/{position}")
        one.clock.pass_by(seconds=10)
        fields = {**fields_of(page), "choice": "a", "active_ms": active, "by": by}
        assert one.post(f"{root}/item/{position}", fields).status_code == 303
    assert [(row.active_ms, row.by) for row in one.judgments()] == [
        *((2500, "key"), (10_000, "pointer"), (None, "form"), (None, "form")),
    ]


# Wrong ways


def test_a_double_post_is_one_answer(stage: Make) -> None:
    one = stage()
    root = one.begin()
    fields = {**fields_of(one.client.get(f"{root}/item/1")), "choice": "a"}
    answers = [one.post(f"{root}/item/1", fields) for _ in range(3)]
    assert {answer.headers["location"] for answer in answers} == {f"{root}/item/2"}
    assert len(one.judgments()) == 1


def test_a_stale_form_shows_the_present_answer_and_asks_again(stage: Make) -> None:
    one = stage()
    root = one.begin()
    old = fields_of(one.client.get(f"{root}/item/1"))
    one.answer(root, 1, "b")
    answer = one.post(f"{root}/item/1", {**old, "choice": "a"})
    assert answer.status_code == 409
    assert "another window" in words_of(answer)
    assert 'role="alert"' in answer.text
    assert shown_choice(answer) == ["b"]
    assert [row.preferred == row.right for row in one.judgments()] == [True]
    again = one.post(f"{root}/item/1", {**fields_of(answer), "choice": "a"})
    assert again.status_code == 303
    assert [row.preferred == row.right for row in one.judgments()] == [True, False]


def test_a_form_without_a_choice_comes_back_with_an_alert(stage: Make) -> None:
    one = stage()
    root = one.begin()
    answer = one.answer(root, 1, "")
    assert answer.status_code == 422
    assert "Please choose Passage A" in words_of(answer)
    assert 'role="alert"' in answer.text
    assert one.judgments() == ()


def test_no_reason_comes_back_with_an_alert_and_keeps_the_choice(stage: Make) -> None:
    one = stage()
    root = one.begin()
    for reason in ("", "because", "same\0"):
        answer = one.answer(root, 1, "none", reason=reason)
        assert answer.status_code == 422
        assert "the reason why" in words_of(answer)
        assert shown_choice(answer) == ["none"]
    answer = one.answer(root, 1, "", reason="same")
    assert '<option value="same" selected>' in answer.text
    assert one.judgments() == ()


def test_a_later_question_has_to_wait(stage: Make) -> None:
    one = stage()
    root = one.begin()
    page = one.client.get(f"{root}/item/3")
    assert page.status_code == 409
    assert "Question 3 comes later" in words_of(page)
    assert f'href="{root}/item/1"' in page.text
    assert QUERY not in page.text


@pytest.mark.parametrize("position", [5, 14, 100_000])
def test_a_position_past_the_end_is_told(stage: Make, position: int) -> None:
    one = stage()
    root = one.begin()
    page = one.client.get(f"{root}/item/{position}")
    assert page.status_code == 404
    assert "There is no such question" in words_of(page)


@pytest.mark.parametrize("position", ["0", "-1", "x", "1.5", "9" * 40, "%00", "1%2f2", "%D9%A1"])
def test_a_position_that_is_none_is_told(stage: Make, position: str) -> None:
    one = stage()
    page = one.client.get(f"{one.begin()}/item/{position}")
    assert page.status_code == 404
    assert "no such" in words_of(page)


def test_a_forged_token_opens_nothing(stage: Make) -> None:
    one = stage()
    root = one.begin()
    token = root.removeprefix("/a/")
    body, _, signature = token.rpartition(".")
    for forged in (
        *("x", "a.b", body, f"{body}.{signature[::-1]}", f"{body[:-2]}AA.{signature}", token * 40),
        *("%00", "%F0%9F%94%91", "..%2F..", "%ED%A0%80"),
    ):
        for page in ("item/1", "exit", "done"):
            answer = one.client.get(f"/a/{forged}/{page}")
            assert answer.status_code in (403, 404), forged
            assert QUERY not in answer.text


def test_a_token_of_another_campaign_opens_nothing(stage: Make) -> None:
    one, two = stage(), stage()
    assert two.client.get(f"{one.begin()}/item/1").status_code == 403


def test_a_token_ends_and_says_so(stage: Make) -> None:
    one = stage()
    root = one.begin()
    one.clock.pass_by(days=30)
    page = one.client.get(f"{root}/item/1")
    assert page.status_code == 410
    assert "too old" in words_of(page)
    assert one.client.get(f"{one.begin()}/item/1").status_code == 200


def test_a_form_under_another_workers_token_changes_nothing(stage: Make) -> None:
    """Ada's form sent to Bob's address, with either token in it; Bob's with parts left out."""
    one = stage()
    ada, bob = one.begin("ada"), one.begin("bob")
    hers, his = (fields_of(one.client.get(f"{root}/item/1")) for root in (ada, bob))
    attempts: list[dict[str, Any]] = [
        hers,
        {**hers, "token": his["token"]},
        {**his, "token": hers["token"]},
        {**his, "stamp": ""},
        {"stamp": his["stamp"]},
        {},
    ]
    for fields in attempts:
        answer = one.post(f"{bob}/item/1", {**fields, "choice": "a"})
        assert answer.status_code == 403, fields
    for fields in ({}, {"token": hers["token"]}):
        assert one.post(f"{bob}/exit", fields).status_code == 403
        assert one.post(f"{bob}/item/1/keep", fields).status_code == 403
    assert one.judgments() == ()
    assert one.client.get(f"{bob}/item/1").status_code == 200


def test_a_stamp_of_another_question_is_refused(stage: Make) -> None:
    one = stage()
    root = one.begin()
    fields = fields_of(one.client.get(f"{root}/item/1"))
    one.answer(root, 1)
    assert one.post(f"{root}/item/2", {**fields, "choice": "b"}).status_code == 403
    assert len(one.judgments()) == 1


def test_a_replay_after_the_end_changes_nothing(stage: Make) -> None:
    one = stage()
    root = one.begin()
    fields = {**fields_of(one.client.get(f"{root}/item/1")), "choice": "b"}
    exit_fields = fields_of(one.client.get(f"{root}/exit"))
    one.finish(root, 4)
    answer = one.post(f"{root}/item/1", fields)
    assert answer.status_code == 409
    assert "too late" in words_of(answer)
    assert one.post(f"{root}/exit", exit_fields).headers["location"] == f"{root}/done"
    assert "Done: all 4" in words_of(one.client.get(f"{root}/done"))
    assert len(one.judgments()) == 4


def test_an_ended_lease_is_told_with_what_is_owed(stage: Make) -> None:
    one = stage(tasks=1)
    root = one.begin("ada")
    one.answer(root, 1)
    fields = {**fields_of(one.client.get(f"{root}/item/2")), "choice": "b"}
    one.clock.pass_by(minutes=61)
    one.begin("bob")
    late = one.post(f"{root}/item/2", fields)
    assert late.status_code == 409
    assert "too late" in words_of(late)
    assert "$0.50" in words_of(late)
    end = words_of(one.client.get(f"{root}/done"))
    assert "1 of 4 answered: $0.50 is yours." in end
    assert "no answer for 60 minutes" in end
    assert one.client.get(f"{root}/item/2").headers["location"] == f"{root}/done"
    assert len(one.judgments()) == 1


def test_an_ended_lease_that_nobody_took_goes_on(stage: Make) -> None:
    one = stage()
    root = one.begin()
    fields = {**fields_of(one.client.get(f"{root}/item/1")), "choice": "b"}
    one.clock.pass_by(hours=5)
    assert one.post(f"{root}/item/1", fields).status_code == 303
    assert "Done" in words_of(one.finish(root, 4))


# Nothing to do


def test_nothing_free_says_that_something_may_come_free(stage: Make) -> None:
    one = stage(tasks=1)
    one.begin("ada")
    page = one.client.get(one.link, params={"worker": "bob"})
    assert "Nothing is free at the moment" in words_of(page)
    assert f'href="{one.link}?worker=bob"' in page.text


def test_all_judged_says_so(stage: Make) -> None:
    one = stage(tasks=1)
    one.finish(one.begin("ada"), 4)
    for worker in ("ada", "bob"):
        page = words_of(one.client.get(one.link, params={"worker": worker}))
        assert "There are no tasks left" in page or "all there is for you" in page


@pytest.mark.parametrize("pay_failed", [True, False])
def test_a_failed_test_bars_kindly_and_states_the_pay(stage: Make, *, pay_failed: bool) -> None:
    one = stage(pay_failed=pay_failed)
    root = one.begin()
    end = words_of(one.finish(root, 4, q3="b"))
    for page in (end, words_of(one.client.get(one.link, params={"worker": "ada"}))):
        assert "did not fit what the passages say" in page
        assert "test" not in page.lower()
    paid = "is paid all the same: $2.00 is yours" if pay_failed else "this task is not paid"
    assert paid in end
    landing = one.client.get(one.link, params={"worker": "ada"})
    assert landing.status_code == 403
    assert ("paid all the same" in words_of(landing)) == pay_failed
    terms = words_of(one.client.get(one.link, params={"worker": "bob"}))
    assert ("plainly don't fit" in terms) != pay_failed


def test_an_unknown_link_says_nothing_of_the_study(stage: Make) -> None:
    one = stage()
    for code in ("x", one.campaign.code[:-1], one.campaign.code + "x", "%E2%82%AC"):
        page = one.client.get(f"/j/{code}", params={"worker": "ada"})
        assert page.status_code == 404
        assert "Approval" not in page.text


# Platforms


def test_a_link_without_a_worker_asks_for_the_id(stage: Make) -> None:
    one = stage()
    page = one.client.get(one.link)
    assert "Your worker id" in words_of(page)
    fields = fields_of(page)
    for worker in ("", "  ", "w" * 300, "a\0b", "a\x1b[2J", "\u202eada"):
        answer = one.post(f"{one.link}/consent", {**fields, "worker": worker})
        assert answer.status_code == 422
        assert "at most 255 characters" in words_of(answer)
        assert "Your worker id" in words_of(answer)
    answer = one.post(f"{one.link}/consent", {**fields, "worker": "ada"})
    assert answer.headers["location"].endswith("/item/1")


def test_consenting_twice_begins_one_task(stage: Make) -> None:
    one = stage()
    roots = {one.begin("ada").rpartition(".")[0] for _ in range(3)}
    assert len(roots) == 1
    assert one.begin("bob").rpartition(".")[0] not in roots


@pytest.mark.parametrize("batch", ["", "x", "0", "7", "9" * 30, "1;drop"])
def test_terms_that_are_not_those_offered_are_shown_again(stage: Make, batch: str) -> None:
    one = stage()
    answer = one.post(f"{one.link}/consent", {"worker": "ada", "batch": batch})
    assert answer.status_code in (200, 422)
    assert "I agree, begin" in words_of(answer)
    assert one.judgments() == ()


MTURK = {
    "assignmentId": "3ASG",
    "hitId": "3HIT",
    "workerId": "A1WORKER",
    "turkSubmitTo": "https://workersandbox.mturk.com",
}
PROLIFIC = {"PROLIFIC_PID": "5f1a2b3c4d5e6f7a8b9c0d1e", "STUDY_ID": "s", "SESSION_ID": "t"}


def test_mechanical_turk_previews_without_a_way_to_begin(stage: Make) -> None:
    one = stage(platform="mturk")
    preview = {"assignmentId": "ASSIGNMENT_ID_NOT_AVAILABLE", "hitId": "3HIT"}
    page = one.client.get(one.link, params=preview)
    assert "This is a preview" in words_of(page)
    assert "<form" not in page.text
    answer = one.post(f"{one.link}/consent", {**preview, "batch": "1"})
    assert "This is a preview" in words_of(answer)


def test_mechanical_turk_gets_its_form_back(stage: Make) -> None:
    one = stage(platform="mturk")
    page = one.client.get(one.link, params=MTURK)
    answer = one.post(f"{one.link}/consent", fields_of(page))
    root = answer.headers["location"].rpartition("/item/")[0]
    end = one.finish(root, 4)
    assert 'action="https://workersandbox.mturk.com/mturk/externalSubmit"' in end.text
    assert fields_of(end) == {"assignmentId": "3ASG", "answered": "4"}
    assert "C0FFEE" not in end.text
    policy = end.headers["content-security-policy"]
    assert "frame-ancestors https://*.mturk.com" in policy
    assert "https://workersandbox.mturk.com" in policy.partition("form-action")[2]


@pytest.mark.parametrize("host", ["https://www.mturk.com", "https://workersandbox.mturk.com"])
def test_mechanical_turks_address_may_end_in_a_slash(stage: Make, host: str) -> None:
    one = stage(platform="mturk")
    page = one.client.get(one.link, params={**MTURK, "turkSubmitTo": f"{host}/"})
    place = one.post(f"{one.link}/consent", fields_of(page)).headers["location"]
    end = one.finish(place.rpartition("/item/")[0], 4)
    assert f'action="{host}/mturk/externalSubmit"' in end.text


def test_what_goes_wrong_is_shown_in_mechanical_turks_frame_too(
    stage: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = stage(platform="mturk")
    page = one.client.get(one.link, params=MTURK)
    root = one.post(f"{one.link}/consent", fields_of(page)).headers["location"]
    root = root.rpartition("/item/")[0]
    answers = [one.client.get("/a/x/done"), one.client.get("/j/x")]
    answers.append(one.post(f"{root}/item/1", {"stamp": "x" * 70_000}))
    one.clock.pass_by(days=40)
    answers.append(one.client.get(f"{root}/done"))
    for error in (DatabaseError("database-lost", "gone"), RuntimeError("a bug")):

        def fail(*_: object, error: Exception = error, **__: object) -> None:
            raise error

        monkeypatch.setattr(claims, "offer", fail)
        answers.append(one.client.get(one.link, params={**MTURK, "assignmentId": "new"}))
    assert [answer.status_code for answer in answers] == [403, 404, 413, 410, 503, 500]
    for answer in answers:
        assert "frame-ancestors https://*.mturk.com" in answer.headers["content-security-policy"]
    elsewhere = one.client.get("/nowhere").headers["content-security-policy"]
    assert "frame-ancestors 'none'" in elsewhere


def test_mechanical_turk_gets_a_form_back_from_who_stops_with_something_owed(stage: Make) -> None:
    one = stage(platform="mturk")
    fields = fields_of(one.client.get(one.link, params=MTURK))
    place = one.post(f"{one.link}/consent", fields).headers["location"]
    root = place.rpartition("/item/")[0]
    one.answer(root, 1)
    one.post(f"{root}/exit", fields_of(one.client.get(f"{root}/exit")))
    assert fields_of(one.client.get(f"{root}/done")) == {"assignmentId": "3ASG", "answered": "1"}


@pytest.mark.parametrize(
    "submit_to",
    [
        *("", "https://evil.example", "http://www.mturk.com", "https://www.mturk.com.evil.example"),
        *("https://www.mturk.com@evil.example", "javascript:alert(1)", "//www.mturk.com"),
    ],
)
def test_a_form_is_handed_in_nowhere_else(stage: Make, submit_to: str) -> None:
    """An address in the link that would send a worker's form, and the worker, to somebody else."""
    one = stage(platform="mturk")
    page = one.client.get(one.link, params={**MTURK, "turkSubmitTo": submit_to})
    assert page.status_code == 400
    assert "through the platform" in words_of(page)
    fields = {**MTURK, "turkSubmitTo": submit_to, "batch": "1"}
    assert one.post(f"{one.link}/consent", fields).status_code == 400


def test_prolific_says_who_comes_by_its_own_names(stage: Make) -> None:
    one = stage(platform="prolific")
    who = PROLIFIC
    fields = fields_of(one.client.get(one.link, params={**who, "worker": "x"}))
    assert fields == {**who, "batch": "1"}
    root = one.post(f"{one.link}/consent", fields).headers["location"].rpartition("/item/")[0]
    assert "C0FFEE" in one.finish(root, 4).text
    assert one.client.get(one.link).status_code == 400


@pytest.mark.parametrize(
    ("platform", "who"),
    [("mturk", MTURK), ("prolific", PROLIFIC)],
)
def test_a_place_that_is_paid_once_holds_one_task(
    stage: Make, platform: str, who: dict[str, str]
) -> None:
    """Somebody closed the window before they handed in, and opens the study again."""
    one = stage(platform=platform)
    fields = fields_of(one.client.get(one.link, params=who))
    place = one.post(f"{one.link}/consent", fields).headers["location"]
    end = words_of(one.finish(place.rpartition("/item/")[0], 4))
    for answer in (one.client.get(one.link, params=who), one.post(f"{one.link}/consent", fields)):
        assert answer.status_code == 303
        assert words_of(one.client.get(answer.headers["location"])) == end
    name = "SESSION_ID" if platform == "prolific" else "assignmentId"
    for other in ({**who, name: "other"}, {**who, "workerId": "B2", "PROLIFIC_PID": "6a" * 12}):
        assert "I agree, begin" in words_of(one.client.get(one.link, params=other))


@pytest.mark.parametrize(
    "worker", ["{{%PROLIFIC_PID%}}", "5f1", "5F1A2B3C4D5E6F7A8B9C0D1E", "5f1a2b3c4d5e6f7a8b9c0d1e0"]
)
def test_who_has_no_id_of_prolifics_gets_no_task(stage: Make, worker: str) -> None:
    one = stage(platform="prolific")
    fields = {**PROLIFIC, "PROLIFIC_PID": worker}
    page = one.client.get(one.link, params=fields)
    assert page.status_code == 400
    assert "through the platform" in words_of(page)
    assert one.post(f"{one.link}/consent", {**fields, "batch": "1"}).status_code == 400


def test_only_mechanical_turk_may_frame_a_page(stage: Make) -> None:
    one = stage()
    policy = one.client.get(one.link).headers["content-security-policy"]
    assert "frame-ancestors 'none'" in policy
    assert "mturk" not in policy


# What every answer carries


def test_every_answer_carries_the_headers_and_no_cookie(stage: Make) -> None:
    one = stage()
    root = one.begin()
    pages = [one.client.get(place) for place in (one.link, f"{root}/item/1", "/", "/a/x/done")]
    pages += [one.post(f"{root}/item/1", {}), one.client.get("/static/judging.css")]
    pages += [one.client.get("/static/none.css"), one.client.call("DELETE", one.link)]
    for page in pages:
        assert page.headers["referrer-policy"] == "no-referrer"
        assert page.headers["x-content-type-options"] == "nosniff"
        assert "default-src 'none'" in page.headers["content-security-policy"]
        assert "unsafe" not in page.headers["content-security-policy"]
        assert "set-cookie" not in page.headers
    assert all("://" not in page.text.replace("http://www.w3.org/2000/svg", "") for page in pages)
    assert pages[0].headers["cache-control"] == "no-store"


@pytest.mark.parametrize(
    "path", ["/docs", "/redoc", "/openapi.json", "/static/../app.py", "/admin"]
)
def test_there_are_no_other_pages(stage: Make, path: str) -> None:
    page = stage().client.get(path)
    assert page.status_code == 404
    assert "There is no such page" in words_of(page)


def test_a_form_that_is_too_long_is_refused(stage: Make) -> None:
    one = stage()
    root = one.begin()
    fields = fields_of(one.client.get(f"{root}/item/1"))
    answer = one.post(f"{root}/item/1", {**fields, "choice": "a" * 100_000})
    assert answer.status_code == 413
    many = {f"f{number}": "" for number in range(60)}
    assert one.post(f"{root}/item/1", {**fields, **many}).status_code == 400
    for body in (b"\xff\xfe=\x00", b"%", b"&&&=", b"choice=a&choice=b"):
        answer = one.client.post(f"{root}/item/1", content=body)
        assert answer.status_code == 403
    assert one.judgments() == ()


# Texts


HOSTILE = [
    "<script>alert(1)</script><img src=x onerror=alert(1)>",
    "</label></article><h1>Choose B</h1>",
    '" autofocus onfocus="alert(1)',
    "{{ 7 * 7 }}{% include '/etc/passwd' %}",
    "\u202eleft to right\u202c \u2066isolate",
    "-->]]><!--",
    "&lt;b&gt; &amp;amp;",
]


@pytest.mark.parametrize("text", HOSTILE)
def test_a_text_is_shown_as_text(stage: Make, text: str) -> None:
    one = stage(query=f"asked {text}", texts=(f"one {text}", f"other {text}"), name=text)
    for page in (one.client.get(one.link), one.client.get(f"{one.begin()}/item/1")):
        assert page.status_code == 200
        assert "<script>alert" not in page.text
        assert "<img" not in page.text
        assert page.text.count("<h1") == 1
        assert 'onfocus="' not in page.text
        assert "49" not in words_of(page)
    assert f"one {' '.join(text.split())}" in words_of(page)
    assert f"asked {' '.join(text.split())}" in words_of(page)


def test_a_passage_of_100_kb_is_shown_whole(stage: Make) -> None:
    long = "x" * 100_000 + " end"
    one = stage(texts=(long, B))
    page = one.client.get(f"{one.begin()}/item/1")
    assert long in page.text


def test_nothing_tells_where_a_passage_comes_from(stage: Make) -> None:
    one = stage()
    root = one.begin()
    for position in range(1, 5):
        page = one.client.get(f"{root}/item/{position}").text
        assert "q1-" not in page
        assert "q2-" not in page
        one.answer(root, position)


def test_a_test_looks_like_the_rest(stage: Make) -> None:
    """The third of four is one: its page differs from the second's by numbers and signatures."""
    one = stage()
    root = one.begin()
    shapes = set()
    for position in (1, 2, 3):
        page = one.client.get(f"{root}/item/{position}")
        text = page.text.replace(fields_of(page)["stamp"], "STAMP")
        for number in (position + 1, position, position - 1):
            text = re.sub(rf"(/item/|Question |data-place=.\S+ 1 ){number}\b", r"\g<1>N", text)
        shapes |= {text} if position > 1 else set()
        one.answer(root, position)
    assert len(shapes) == 1


def test_the_last_form_sent_twice_ends_the_same_way(stage: Make) -> None:
    one = stage()
    root = one.begin()
    for position in (1, 2, 3):
        one.answer(root, position)
    fields = {**fields_of(one.client.get(f"{root}/item/4")), "choice": "b"}
    for _ in range(2):
        sent = one.post(f"{root}/item/4", fields)
        assert (sent.status_code, sent.headers["location"]) == (303, f"{root}/done")
    assert len(one.judgments()) == 4
