"""What the judging pages say of pay: at the end, on stopping, when a lease ends."""

import judging_stage
import pytest
from judging_stage import Make, fields_of, words_of

stage = judging_stage.stage


def test_stopping_first_names_the_amount(stage: Make) -> None:
    one = stage(items=13, tasks=1)
    root = one.begin()
    for position in range(1, 6):
        one.answer(root, position)
    page = one.client.get(f"{root}/exit")
    assert "5 of 13 answered: $0.77 is yours." in words_of(page)
    assert "Continue with question 6" in words_of(page)
    assert len(one.judgments()) == 5
    assert one.post(f"{root}/exit", fields_of(page)).headers["location"] == f"{root}/done"
    end = words_of(one.client.get(f"{root}/done"))
    assert "You have stopped" in end
    assert "$0.77 is yours" in end
    assert one.client.get(f"{root}/item/6").headers["location"] == f"{root}/done"


def test_stopping_before_the_first_answer_owes_nothing(stage: Make) -> None:
    one = stage()
    root = one.begin()
    one.post(f"{root}/exit", fields_of(one.client.get(f"{root}/exit")))
    assert "None of 4 answered" in words_of(one.client.get(f"{root}/done"))


@pytest.mark.parametrize("choice", ["a", "b"])
def test_stopping_is_no_way_to_be_paid_for_failed_tests(stage: Make, choice: str) -> None:
    """With `pay_failed = false`: all but the last answered, one test failed, then Stop."""
    one = stage(items=13, tasks=1, pay_failed=False)
    assert "unless some of them clearly don't fit" in words_of(one.client.get(one.link))
    root = one.begin()
    for position in range(1, 13):
        one.answer(root, position, choice if position == 12 else "a")
    one.post(f"{root}/exit", fields_of(one.client.get(f"{root}/exit")))
    words = words_of(one.client.get(f"{root}/done"))
    if choice == "a":
        assert "12 of 13 answered: $1.85 is yours" in words
    else:
        assert "12 of 13 answered: $0.00. As agreed at the beginning" in words
        assert "$1.85" not in words
        assert "C0FFEE" not in words


def test_the_amount_before_the_end_does_not_tell_which_answers_are_tests(stage: Make) -> None:
    """With `pay_failed = false`, somebody looks at Stop after each answer and each change."""
    one = stage(items=5, tasks=1, pay_failed=False)
    root = one.begin()
    for position in range(1, 6 - 1):
        told = []
        for choice in "aba":
            one.answer(root, position, choice)
            told.append(words_of(one.client.get(f"{root}/exit")))
        assert len(set(told)) == 1
        assert f"{position} of 5 answered: ${0.4 * position:.2f} is yours, unless" in told[0]
        assert "Stop and be paid" in told[0]
    assert len(one.judgments()) == 12


def test_who_lapses_with_failed_tests_is_told_what_is_owed(stage: Make) -> None:
    one = stage(pay_failed=False, tasks=1)
    root = one.begin("ada")
    for position in (1, 2, 3):
        one.answer(root, position, "b")
    one.clock.pass_by(hours=2)
    one.begin("bob")
    assert "3 of 4 answered: $0.00. As agreed" in words_of(one.client.get(f"{root}/done"))


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


@pytest.mark.parametrize("pay_failed", [True, False])
def test_a_failed_test_bars_kindly_and_states_the_pay(stage: Make, *, pay_failed: bool) -> None:
    one = stage(pay_failed=pay_failed)
    root = one.begin()
    end = words_of(one.finish(root, 4, q3="b"))
    for page in (end, words_of(one.client.get(one.link, params={"worker": "ada"}))):
        assert "were answered incorrectly" in page
        assert "test" not in page.lower()
    paid = "is paid too: $2.00 is yours" if pay_failed else "this task is not paid"
    assert paid in end
    landing = one.client.get(one.link, params={"worker": "ada"})
    assert landing.status_code == 403
    assert ("paid too" in words_of(landing)) == pay_failed
    terms = words_of(one.client.get(one.link, params={"worker": "bob"}))
    assert ("clearly don't fit" in terms) != pay_failed


def test_who_is_not_paid_is_asked_for_a_name(stage: Make) -> None:
    one = stage(reward=0, fee=0)
    assert "Your name (or any word" in words_of(one.client.get(one.link))
    answer = one.post(f"{one.link}/consent", {"worker": " ", "batch": "1"})
    assert "Please enter your name" in words_of(answer)
