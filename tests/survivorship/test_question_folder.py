"""A campaign of questions on disk: what is added, and what it refuses."""

from pathlib import Path

import pytest
from question_samples import answer, question

from heldout.errors import InputError, StoreError
from heldout.judging.campaign.files import CampaignFolder
from heldout.judging.campaign.judgments import Judgment
from heldout.judging.campaign.questions import ANSWERABLE, TRIAGE, find_answer_fault
from heldout.survivorship.discarded.folder import QuestionFolder


@pytest.fixture
def folder(tmp_path: Path) -> QuestionFolder:
    made = QuestionFolder(tmp_path / "new", TRIAGE)
    made.add([question("q1", "d1", "d2", split="dev")])
    return made


def test_questions_are_added_behind_those_that_are_there(folder: QuestionFolder) -> None:
    folder.write_judgments([answer("q1", "no_ans")])
    both = folder.add([question("q2", "d1", split="train")])
    assert [one.query for one in both] == ["q1", "q2"]
    assert folder.questions() == both
    assert len(folder.answers()) == 1
    with pytest.raises(InputError, match="repeated-query"):
        folder.add([question("q2", "d1")])
    assert folder.questions() == both


def test_a_campaign_asks_one_kind_of_question(folder: QuestionFolder) -> None:
    assert folder.settings(kind=None).kind == "triage"
    with pytest.raises(StoreError, match="kind = 'triage'"):
        CampaignFolder(folder.path).settings()
    with pytest.raises(StoreError, match="kind = 'triage'"):
        QuestionFolder(folder.path, ANSWERABLE).questions()


def test_a_broken_record_of_a_pool_is_named(tmp_path: Path) -> None:
    folder = QuestionFolder(tmp_path, ANSWERABLE)
    with pytest.raises(StoreError, match=r"pool\.json is missing"):
        folder.pool()
    (tmp_path / "pool.json").write_text("{}")
    with pytest.raises(StoreError, match="no record of a pool"):
        folder.pool()
    with pytest.raises(StoreError, match=r"systems\.jsonl is missing"):
        folder.tops()


def test_questions_that_could_not_be_read_again_are_not_written(folder: QuestionFolder) -> None:
    before = folder.questions()
    for bad in (question("q2", "d1", split="a\nb"), question("q2"), question("q\x1b", "d1")):
        with pytest.raises(InputError):
            folder.add([bad])
    assert folder.questions() == before


@pytest.mark.parametrize(
    ("broken", "words"),
    [
        (answer("q9", "no_ans"), "no question of this campaign"),
        (Judgment(query="q1", left="d1", right="d2", preferred="d1"), "no question of this"),
        (answer("q1", "answered", "d1"), "Please choose"),
        (answer("q1", "wrong_lab", "d9"), "not shown with"),
        (answer("q1", "wrong_lab"), "please tick"),
        (answer("q1", "no_ans", "d1"), "take away"),
    ],
)
def test_an_answer_that_the_pages_cannot_have_written_is_named(
    folder: QuestionFolder, broken: Judgment, words: str
) -> None:
    folder.write_judgments([answer("q1", "no_ans"), broken])
    with pytest.raises(InputError) as caught:
        folder.answers()
    (problem,) = caught.value.problems
    assert (problem.code, problem.line) == ("bad-answer", 2)
    assert words in problem.found


@pytest.mark.parametrize(
    "row",
    [
        '{"query":"q1","left":"","right":"","preferred":null}',
        '{"query":"q1","left":"","right":"","preferred":null,"choice":"a","reason":"other"}',
        '{"query":"q1","left":"","right":"","preferred":null,"reason":"other","ticked":["d1"]}',
        '{"query":"q1","left":"d1","right":"d2","preferred":"d1","choice":"no_ans"}',
    ],
)
def test_a_row_that_contradicts_itself_is_named(folder: QuestionFolder, row: str) -> None:
    (folder.path / "judgments.jsonl").write_text(f"{row}\n")
    with pytest.raises(InputError, match="bad-preference"):
        folder.judgments()


def test_an_answer_of_the_other_form_is_none() -> None:
    assert find_answer_fault(ANSWERABLE, "ill_form", ())
    assert not find_answer_fault(ANSWERABLE, "unanswered", ())
    assert find_answer_fault(ANSWERABLE, "unanswered", ("d1",))
