"""The judge's way over HTTP, as it should go."""

import re

import judging_stage
import pytest
from judging_stage import QUERY, A, Make, Stage, fields_of, shown_choice, words_of

stage = judging_stage.stage
one = judging_stage.one
root = judging_stage.root


def test_consent_stands_before_any_pair_and_records_nothing(one: Stage) -> None:
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


def test_a_whole_task_is_judged_and_ends_with_the_code(one: Stage, root: str) -> None:
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


def test_who_comes_back_by_a_signed_link_goes_on_where_they_were(stage: Make) -> None:
    one = stage(links="personal")
    root = one.begin()
    one.answer(root, 1)
    one.clock.pass_by(minutes=30)
    page = one.client.get(one.link, params=one.who("ada"))
    assert "Continue your task" in words_of(page)
    answer = one.client.post(f"{one.link}/consent", data=fields_of(page))
    assert answer.headers["location"].endswith("/item/2")
    again = one.client.get(answer.headers["location"])
    assert words_of(again) == words_of(one.client.get(f"{root}/item/2"))


def test_going_back_shows_the_answer_and_a_change_replaces_it(one: Stage, root: str) -> None:
    one.answer(root, 1, "a")
    assert f'href="{root}/item/1"' in one.client.get(f"{root}/item/2").text
    back = one.client.get(f"{root}/item/1")
    assert shown_choice(back) == ["a"]
    assert one.answer(root, 1, "b").status_code == 303
    assert shown_choice(one.client.get(f"{root}/item/1")) == ["b"]
    first, second = one.judgments()
    assert (first.preferred, second.preferred) == (first.left, first.right)


def test_the_first_question_has_nothing_to_go_back_to(one: Stage) -> None:
    assert ">Back<" not in one.client.get(f"{one.begin()}/item/1").text


def test_keeping_the_place_lengthens_the_lease(stage: Make) -> None:
    one = stage(tasks=1)
    root = one.begin()
    one.clock.pass_by(minutes=50)
    page = one.client.get(f"{root}/item/1")
    answer = one.post(f"{root}/item/1/keep", {"token": fields_of(page)["token"]})
    assert answer.headers["location"] == f"{root}/item/1"
    one.clock.pass_by(minutes=50)
    assert "No task is free" in words_of(one.client.get(one.link, params={"worker": "bob"}))
    assert one.answer(root, 1).status_code == 303


def test_what_the_script_counts_is_taken_within_the_time_that_passed(one: Stage, root: str) -> None:
    for position, (active, by) in enumerate(
        (("2500", "key"), ("999999999", "pointer"), ("-5", "robot"), ("1e3", "")), 1
    ):
        page = one.client.get(f"{root}/item/{position}")
        one.clock.pass_by(seconds=10)
        fields = {**fields_of(page), "choice": "a", "active_ms": active, "by": by}
        assert one.post(f"{root}/item/{position}", fields).status_code == 303
    assert [(row.active_ms, row.by) for row in one.judgments()] == [
        *((2500, "key"), (10_000, "pointer"), (None, "form"), (None, "form"))
    ]


# Nothing to do


# What a page shows and what it doesn't


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


def test_nothing_tells_where_a_passage_comes_from(one: Stage, root: str) -> None:
    for position in range(1, 5):
        page = one.client.get(f"{root}/item/{position}").text
        assert "q1-" not in page
        assert "q2-" not in page
        one.answer(root, position)


def test_a_test_looks_like_the_rest(one: Stage, root: str) -> None:
    """The third of four is one: its page differs from the second's by numbers and signatures."""
    shapes = set()
    for position in (1, 2, 3):
        page = one.client.get(f"{root}/item/{position}")
        text = page.text.replace(fields_of(page)["stamp"], "STAMP")
        for number in (position + 1, position, position - 1):
            text = re.sub(rf"(/item/|Question |data-place=.\S+ 1 ){number}\b", r"\g<1>N", text)
        shapes |= {text} if position > 1 else set()
        one.answer(root, position)
    assert len(shapes) == 1


@pytest.mark.parametrize(
    ("minutes", "said"), [(0, "Time You have 60"), (1, "About 1 minute."), (15, "About 15 minutes")]
)
def test_a_judge_reads_how_long_it_takes_where_that_is_known(
    stage: Make, minutes: int, said: str
) -> None:
    one = stage(minutes=minutes)
    assert said in words_of(one.client.get(one.link, params={"worker": "ada"}))
