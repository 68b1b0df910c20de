"""A folder of questions on disk: many writers at once, and what it refuses."""

import fcntl
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from question_samples import answer, question

from heldout.errors import InputError, StoreError
from heldout.survivorship.discarded.folder import QuestionFolder
from heldout.survivorship.discarded.questions import ANSWERABLE, TRIAGE


def test_many_annotators_at_once_lose_nothing(tmp_path: Path) -> None:
    QuestionFolder(tmp_path, TRIAGE).add([question(f"q{n}", "d1") for n in range(10)])

    def work(name: str) -> list[str]:
        folder = QuestionFolder(tmp_path, TRIAGE)
        return [folder.append(answer(one.query, "no_ans", by=name)) for one in folder.questions()]

    with ThreadPoolExecutor(6) as pool:
        found = list(pool.map(work, ["ada", "bob", "cy", "di", "ada", "bob"]))
    folder = QuestionFolder(tmp_path, TRIAGE)
    answers = folder.answers()
    assert len(answers) == len({(one.query, one.annotator) for one in answers}) == 40
    assert sum(one == "saved" for own in found for one in own) == 40
    assert {one for own in found for one in own} == {"saved", "known"}


def test_a_writer_waits_for_another_process(tmp_path: Path) -> None:
    folder = QuestionFolder(tmp_path, TRIAGE)
    folder.add([question("q1", "d1")])
    with ThreadPoolExecutor(1) as pool:
        with (tmp_path / "lock").open("a") as other:
            fcntl.flock(other, fcntl.LOCK_EX)
            waiting = pool.submit(folder.append, answer("q1", "no_ans"))
            with pytest.raises(TimeoutError):
                waiting.result(timeout=0.3)
            assert folder.answers() == ()
        assert waiting.result(timeout=10) == "saved"


def test_questions_are_added_behind_those_that_are_there(tmp_path: Path) -> None:
    folder = QuestionFolder(tmp_path / "new", TRIAGE)
    folder.add([question("q1", "d1", split="dev")])
    folder.append(answer("q1", "no_ans"))
    both = folder.add([question("q2", "d1", split="train")])
    assert [one.query for one in both] == ["q1", "q2"]
    assert len(folder.answers()) == 1
    with pytest.raises(InputError, match="repeated-query"):
        folder.add([question("q2", "d1")])
    assert folder.questions() == both


def test_a_folder_that_cannot_be_written_to_says_so(tmp_path: Path) -> None:
    folder = QuestionFolder(tmp_path, TRIAGE)
    folder.add([question("q1", "d1")])
    Path(str(folder.answered)).mkdir()
    with pytest.raises(StoreError, match=r"answers\.jsonl"):
        folder.append(answer("q1", "no_ans"))


def test_a_broken_record_of_a_pool_is_named(tmp_path: Path) -> None:
    folder = QuestionFolder(tmp_path, ANSWERABLE)
    with pytest.raises(StoreError, match=r"pool\.json is missing"):
        folder.pool()
    (tmp_path / "pool.json").write_text("{}")
    with pytest.raises(StoreError, match="no record of a pool"):
        folder.pool()
    with pytest.raises(StoreError, match=r"systems\.jsonl is missing"):
        folder.tops()


def test_questions_that_are_added_while_pages_are_served_are_known_there(tmp_path: Path) -> None:
    served = QuestionFolder(tmp_path, TRIAGE)
    served.add([question("q1", "d1")])
    assert len(served.questions()) == 1
    other = QuestionFolder(tmp_path, TRIAGE)
    other.add([question("q2", "d1")])
    other.append(answer("q2", "no_ans"))
    assert [one.query for one in served.answers()] == ["q2"]
    assert served.append(answer("q2", "ill_form", replaces=1)) == "saved"


@pytest.mark.parametrize(
    "left", [b"", b"\n", b"0" * 63, b"0" * 65, b"0" * 64 + b"\n", b"\x00" * 64, None]
)
def test_an_emptied_or_cut_key_signs_nothing(tmp_path: Path, left: bytes | None) -> None:
    folder = QuestionFolder(tmp_path, TRIAGE)
    if left is None:
        (tmp_path / "key").mkdir()
    else:
        (tmp_path / "key").write_bytes(left)
    with pytest.raises(StoreError, match="is no key; remove it"):
        folder.key()


def test_a_removed_key_is_made_anew(tmp_path: Path) -> None:
    folder = QuestionFolder(tmp_path, TRIAGE)
    before = folder.key()
    (tmp_path / "key").unlink()
    assert folder.key() != before
    assert len(folder.key()) == 64


def test_questions_that_could_not_be_read_again_are_not_written(tmp_path: Path) -> None:
    folder = QuestionFolder(tmp_path, TRIAGE)
    folder.add([question("q1", "d1")])
    for bad in (question("q2", "d1", split="a\nb"), question("q2"), question("q\x1b", "d1")):
        with pytest.raises(InputError):
            folder.add([bad])
    assert folder.questions() == (question("q1", "d1"),)


def test_reading_beside_writers_is_never_taken_for_a_loss(tmp_path: Path) -> None:
    folder = QuestionFolder(tmp_path, TRIAGE)
    folder.add([question(f"q{n}", "d1") for n in range(40)])

    def write(_: int) -> None:
        for one in folder.questions():
            folder.append(answer(one.query, "no_ans"))

    def read(_: int) -> None:
        for _ in range(200):
            folder.answers()

    with ThreadPoolExecutor(4) as pool:
        done = [pool.submit(work, 0) for work in (write, read, read, read)]
        for one in done:
            one.result()
    assert len(folder.answers()) == 40
