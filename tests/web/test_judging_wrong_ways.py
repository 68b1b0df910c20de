"""The judge's wrong ways over HTTP: twice, too late, out of order, forged."""

from typing import Any

import judging_stage
import pytest
from judging_stage import QUERY, Make, Stage, fields_of, shown_choice, words_of

stage = judging_stage.stage
one = judging_stage.one
root = judging_stage.root


def test_a_stale_form_shows_the_present_answer_and_asks_again(one: Stage, root: str) -> None:
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


def test_a_form_without_a_choice_comes_back_with_an_alert(one: Stage, root: str) -> None:
    answer = one.answer(root, 1, "")
    assert answer.status_code == 422
    assert "Please choose Passage A" in words_of(answer)
    assert 'role="alert"' in answer.text
    assert one.judgments() == ()


def test_a_later_question_has_to_wait(one: Stage, root: str) -> None:
    page = one.client.get(f"{root}/item/3")
    assert page.status_code == 409
    assert "Question 3 comes later" in words_of(page)
    assert f'href="{root}/item/1"' in page.text
    assert QUERY not in page.text


@pytest.mark.parametrize(
    "position", ["5", "14", "100000", "0", "-1", "x", "1.5", "9" * 40, "%00", "1%2f2", "%D9%A1"]
)
def test_a_position_that_is_none_is_reported(one: Stage, position: str) -> None:
    page = one.client.get(f"{one.begin()}/item/{position}")
    assert page.status_code == 404
    assert "no such" in words_of(page)


@pytest.mark.parametrize("batch", ["", "x", "0", "7", "9" * 30, "1;drop"])
def test_terms_that_are_not_those_offered_are_shown_again(one: Stage, batch: str) -> None:
    answer = one.post(f"{one.link}/consent", {"worker": "ada", "batch": batch})
    assert answer.status_code in (200, 422)
    assert "I agree, begin" in words_of(answer)
    assert one.judgments() == ()


def test_a_replay_after_the_end_changes_nothing(one: Stage, root: str) -> None:
    fields = {**fields_of(one.client.get(f"{root}/item/1")), "choice": "b"}
    exit_fields = fields_of(one.client.get(f"{root}/exit"))
    one.finish(root, 4)
    answer = one.post(f"{root}/item/1", fields)
    assert answer.status_code == 409
    assert "too late" in words_of(answer)
    assert one.post(f"{root}/exit", exit_fields).headers["location"] == f"{root}/done"
    assert "Done: all 4" in words_of(one.client.get(f"{root}/done"))
    assert len(one.judgments()) == 4


def test_the_last_form_sent_twice_ends_the_same_way(one: Stage, root: str) -> None:
    for position in (1, 2, 3):
        one.answer(root, position)
    fields = {**fields_of(one.client.get(f"{root}/item/4")), "choice": "b"}
    for _ in range(2):
        sent = one.post(f"{root}/item/4", fields)
        assert (sent.status_code, sent.headers["location"]) == (303, f"{root}/done")
    assert len(one.judgments()) == 4


# Forged


def test_a_forged_token_opens_nothing(one: Stage, root: str) -> None:
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


def test_a_token_ends_and_says_so(one: Stage, root: str) -> None:
    one.clock.pass_by(days=30)
    page = one.client.get(f"{root}/item/1")
    assert page.status_code == 410
    assert "too old" in words_of(page)
    assert one.client.get(f"{one.begin()}/item/1").status_code == 200


def test_a_form_under_another_workers_token_changes_nothing(one: Stage) -> None:
    """Ada's form sent to Bob's address, with either token in it; Bob's with parts left out."""
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


def test_a_stamp_of_another_question_is_refused(one: Stage, root: str) -> None:
    fields = fields_of(one.client.get(f"{root}/item/1"))
    one.answer(root, 1)
    assert one.post(f"{root}/item/2", {**fields, "choice": "b"}).status_code == 403
    assert len(one.judgments()) == 1
