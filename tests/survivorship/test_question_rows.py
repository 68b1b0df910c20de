"""Questions and answers as rows: what is read back, and what contradicts itself."""

import pytest
from question_samples import answer, question

from heldout.errors import InputError
from heldout.judging.campaign.rows import format_rows
from heldout.survivorship.discarded.questions import (
    ANSWERABLE,
    TRIAGE,
    Answer,
    Form,
    Question,
    answer_fault,
    latest,
    parse_answers,
    parse_questions,
)

ASKED = [question("q1", "d1", "d2"), question("q2", "d3")]


def parse(*answers: Answer, form: Form = TRIAGE) -> tuple[Answer, ...]:
    data = format_rows(answers)
    return parse_answers(data, ASKED, form, path="answers.jsonl")


def test_questions_and_answers_are_read_back() -> None:
    assert parse_questions(format_rows(ASKED), path="triage.jsonl") == tuple(ASKED)
    answers = (answer("q1", "no_ans"), answer("q1", "wrong_lab", "d2", replaces=1))
    assert parse(*answers) == answers
    assert latest(answers) == {("q1", "ada"): answers[1]}


@pytest.mark.parametrize(
    ("broken", "words"),
    [
        (answer("q9", "no_ans"), "no question of this folder"),
        (answer("q1", "answered", "d1"), "Please choose"),
        (answer("q1", "wrong_lab", "d9"), "not shown with"),
        (answer("q1", "wrong_lab", "d1", "d1"), "one twice"),
        (answer("q1", "wrong_lab"), "please tick"),
        (answer("q1", "no_ans", "d1"), "take away"),
        (answer("q1", "no_ans", by=""), "your name"),
        (answer("q1", "no_ans", by="a\u202eb"), "visible characters"),
        (answer("q1", "no_ans", replaces=3), "follows 3 answers, and 0 are there"),
    ],
)
def test_an_answer_that_the_pages_cannot_have_written_is_named(broken: Answer, words: str) -> None:
    with pytest.raises(InputError) as caught:
        parse(answer("q2", "no_ans"), broken)
    (problem,) = caught.value.problems
    assert (problem.code, problem.line) == ("bad-answer", 2)
    assert words in problem.found


def test_a_line_that_is_cut_is_named() -> None:
    with pytest.raises(InputError, match="bad-row"):
        parse_answers(b'{"query": "q1", "anno\n', ASKED, TRIAGE, path="answers.jsonl")


def test_an_answer_of_the_other_form_is_none() -> None:
    assert answer_fault(ANSWERABLE, choice="ill_form", passages=())
    assert not answer_fault(ANSWERABLE, choice="none", passages=())
    assert answer_fault(ANSWERABLE, choice="none", passages=("d1",))
    assert answer_fault(TRIAGE, choice="no_ans", passages=(), note="x" * 2001)


@pytest.mark.parametrize(
    ("rows", "code"),
    [
        ([ASKED[0], ASKED[0]], "repeated-query"),
        ([question("q1")], "empty-pool"),
        ([question("q1", "d1", "d1")], "repeated-document"),
        ([question("q\u202e1", "d1")], "bad-row"),
    ],
)
def test_questions_that_contradict_themselves_are_named(rows: list[Question], code: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_questions(format_rows(rows), path="triage.jsonl")
    assert [one.code for one in caught.value.problems] == [code]
