"""The annotators' pages over HTTP: who gets in, what is saved, and every wrong way."""

import errno
import os
from collections.abc import Iterator
from datetime import timedelta
from html import escape
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from annotating_stage import TOKEN, Session, asked, hidden, make_desk
from judging_stage import Stages, words_of

from heldout.errors import InputError
from heldout.survivorship.discarded.folder import QuestionFolder
from heldout.survivorship.discarded.questions import ANSWERABLE, TRIAGE
from heldout.web.signing import PageSigner


@pytest.fixture
def stages(tmp_path: Path) -> Iterator[Stages]:
    with Stages(tmp_path) as made:
        yield made


@pytest.fixture
def session(stages: Stages) -> Session:
    return make_desk(stages)


def test_an_answer_is_on_disk_before_the_next_page(session: Session) -> None:
    root = session.begin()
    saved = session.answer(root, 1, "wrong_lab", 1, 3, note=" the first\r\nand the last ")
    assert (saved.status_code, saved.headers["location"]) == (303, f"{root}/question/2")
    (one,) = session.answers()
    assert (one.query, one.annotator, one.choice) == ("q1", "ada", "wrong_lab")
    assert one.passages == ("q1-d0", "q1-d2")
    assert one.note == "the first\nand the last"
    assert (one.shown_at, one.answered_at) == ("2026-11-21T12:00:00.000Z",) * 2


def test_the_last_question_leads_to_the_list(session: Session) -> None:
    root = session.begin()
    for position in (1, 2, 3):
        last = session.answer(root, position, "no_ans")
    assert last.headers["location"] == root
    words = words_of(session.client.get(root))
    assert "3 of 3 answered. You have answered every question. Thank you." in words
    assert words.count("No answer here") == 3


def test_a_question_is_the_same_at_every_refresh(session: Session) -> None:
    root = session.begin()
    pages = {words_of(session.client.get(f"{root}/question/1")) for _ in range(3)}
    assert len(pages) == 1


def test_an_answer_can_be_changed_and_both_are_kept(session: Session) -> None:
    root = session.begin()
    session.answer(root, 1, "no_ans")
    page = session.client.get(f"{root}/question/1")
    assert 'value="no_ans" aria-describedby="means-no_ans" checked' in page.text
    session.answer(root, 1, "partial_ans", 2)
    assert [(one.choice, one.replaces) for one in session.answers()] == [
        ("no_ans", 0),
        ("partial_ans", 1),
    ]


def test_a_form_that_is_sent_twice_is_saved_once(session: Session) -> None:
    root = session.begin()
    sent = {**session.fields(root, 1), "choice": "no_ans"}
    codes = [session.post(root, 1, sent).status_code for _ in range(3)]
    assert codes == [303, 303, 303]
    assert len(session.answers()) == 1


def test_a_form_from_before_another_answer_changes_nothing(session: Session) -> None:
    root = session.begin()
    old = {**session.fields(root, 1), "choice": "ill_form"}
    session.answer(root, 1, "no_ans")
    late = session.post(root, 1, old)
    assert late.status_code == 409
    assert "in another window" in late.text
    assert 'value="no_ans" aria-describedby="means-no_ans" checked' in late.text
    assert [one.choice for one in session.answers()] == ["no_ans"]
    again = session.post(root, 1, {**hidden(late), "choice": "ill_form"})
    assert again.status_code == 303


@pytest.mark.parametrize(
    ("choice", "ticked", "words"),
    [
        ("", (), "Please choose an answer"),
        ("answered", (1,), "Please choose an answer"),
        ("wrong_lab", (), "please tick the passages"),
        ("no_ans", (2,), "a passage is ticked"),
    ],
)
def test_what_is_missing_is_said_and_what_was_chosen_stays(
    session: Session, choice: str, ticked: tuple[int, ...], words: str
) -> None:
    root = session.begin()
    page = session.answer(root, 1, choice, *ticked, note="of some use")
    assert page.status_code == 422
    assert words in words_of(page)
    assert "of some use" in page.text
    for number in ticked:
        assert f'value="{number}" checked' in page.text
    assert session.answers() == ()


def test_a_full_disk_loses_nothing(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    root = session.begin()
    session.answer(root, 1, "no_ans")
    sent = {**session.fields(root, 2), "choice": "partial_ans", "note": "half of it"}

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr("heldout.files.durable.os.fsync", full)
        page = session.post(root, 2, sent, 2)
    assert page.status_code == 503
    assert "Not saved" in words_of(page)
    assert "half of it" in page.text
    assert 'value="2" checked' in page.text
    again = session.post(
        root, 2, {**hidden(page), "choice": "partial_ans", "note": "half of it"}, 2
    )
    assert again.status_code == 303
    assert [one.choice for one in session.answers()] == ["no_ans", "partial_ans"]


def test_a_line_that_a_crash_cut_never_counted(session: Session) -> None:
    root = session.begin()
    session.answer(root, 1, "no_ans")
    with Path(str(session.folder.answered)).open("ab") as file:
        file.write(b'{"query":"q2","annot')
    assert session.answer(root, 2, "ill_form").status_code == 303
    assert [one.query for one in session.answers()] == ["q1", "q2"]


@pytest.mark.parametrize("harm", ["garbage", "emptied", "removed", "cut", "questions"])
def test_files_that_are_harmed_while_served_are_told_and_nothing_is_promised(
    session: Session, harm: str
) -> None:
    root = session.begin()
    session.answer(root, 1, "no_ans")
    session.answer(root, 2, "no_ans")
    sent = {**session.fields(root, 3), "choice": "ill_form"}
    place = Path(str(session.folder.answered))
    data = place.read_bytes()
    if harm == "questions":
        Path(str(session.folder.place)).unlink()
    elif harm == "removed":
        place.unlink()
    else:
        left = {"garbage": b"\xff garbage\n" * 99, "emptied": b"", "cut": data[:-30]}[harm]
        place.write_bytes(left)
    for page in (session.client.get(root), session.client.get(f"{root}/question/1")):
        assert page.status_code == 503
        assert "The server can't read the answers" in words_of(page)
        assert "Nothing is lost" not in page.text
    assert session.post(root, 3, sent).status_code == 503
    if harm != "questions":
        assert "ill_form" not in (place.read_text("latin-1") if place.exists() else "")
        place.write_bytes(data)
        assert "2 of 3 answered" in words_of(session.client.get(root))
        assert session.post(root, 3, sent).status_code == 303


def test_a_crash_of_another_writer_takes_no_answer_away(session: Session) -> None:
    root = session.begin()
    session.answer(root, 1, "no_ans")
    with Path(str(session.folder.answered)).open("ab") as file:
        file.write(b"x" * 5_000)
    assert "1 of 3 answered" in words_of(session.client.get(root))
    assert session.answer(root, 2, "ill_form").status_code == 303
    assert "2 of 3 answered" in words_of(session.client.get(root))


def test_annotators_do_not_see_each_other(session: Session) -> None:
    ada, bob = session.begin("ada"), session.begin("bob")
    session.answer(ada, 1, "wrong_lab", 1, note="a secret remark")
    page = session.client.get(f"{bob}/question/1")
    assert "checked" not in page.text.replace('id="use-keys" checked', "")
    assert "a secret remark" not in page.text
    assert "0 of 3 answered" in words_of(session.client.get(bob))
    session.answer(bob, 1, "no_ans")
    assert [(one.annotator, one.choice) for one in session.answers()] == [
        ("ada", "wrong_lab"),
        ("bob", "no_ans"),
    ]


def test_a_form_of_another_annotator_is_refused(session: Session) -> None:
    ada, bob = session.begin("ada"), session.begin("bob")
    sent = {**session.fields(ada, 1), "choice": "no_ans"}
    assert session.post(bob, 1, sent).status_code == 403
    mixed = {**session.fields(bob, 1), "shown": sent["shown"], "choice": "no_ans"}
    assert session.post(bob, 1, mixed).status_code == 403
    elsewhere = {**session.fields(ada, 2), "choice": "no_ans"}
    assert session.post(ada, 1, elsewhere).status_code == 403
    assert session.answers() == ()


def test_a_form_without_the_token_of_its_address_is_refused(session: Session) -> None:
    root = session.begin()
    sent = {**session.fields(root, 1), "choice": "no_ans"}
    del sent["token"]
    assert session.post(root, 1, sent).status_code == 403
    assert session.answers() == ()


def test_a_passage_that_is_not_there_is_nobodys_form(session: Session) -> None:
    root = session.begin()
    assert session.answer(root, 1, "wrong_lab", 9).status_code == 400
    assert session.answers() == ()


@pytest.mark.parametrize("token", ["", "guess", "a token of sixteen character", "é" * 20])
def test_a_wrong_token_opens_nothing(session: Session, token: str) -> None:
    came = session.client.post("/", data={"name": "ada", "token": token})
    assert came.status_code == 403
    assert "This is not the token." in came.text


def test_whoever_tries_many_tokens_waits(session: Session) -> None:
    for _ in range(5):
        session.client.post("/", data={"name": "ada", "token": "guess"})
    late = session.client.post("/", data={"name": "ada", "token": TOKEN})
    assert (late.status_code, late.headers["retry-after"]) == (429, "901")
    session.clock.pass_by(minutes=16)
    assert session.client.post("/", data={"name": "ada", "token": TOKEN}).status_code == 303


@pytest.mark.parametrize(
    "name",
    ["Bob Ray", "bob ray", " BOB  RAY ", "bob\u00a0ray", "\uff42\uff4f\uff42 ray", "bob\tray"],
)
def test_one_person_is_one_annotator_however_the_name_is_typed(session: Session, name: str) -> None:
    session.answer(session.begin("bob ray"), 1, "no_ans")
    root = session.begin(name)
    assert "1 of 3 answered" in words_of(session.client.get(root))
    session.answer(root, 1, "ill_form")
    assert [(one.annotator, one.replaces) for one in session.answers()] == [
        ("bob ray", 0),
        ("bob ray", 1),
    ]


def test_what_nobody_sees_is_not_kept_in_a_note(session: Session) -> None:
    typed = "\x00a\x1b[31m\u202e b\u2028c\ufeff\td\r\ne\u200d\u00a0\u3000f\r"
    assert session.answer(session.begin(), 1, "no_ans", note=typed).status_code == 303
    assert session.answers()[0].note == "a[31m bc\td\ne\u200d\u00a0\u3000f"


def test_a_note_with_hidden_characters_in_the_file_is_refused(session: Session) -> None:
    session.answer(session.begin(), 1, "no_ans", note="plain")
    data = session.folder.answered.read_bytes()
    Path(str(session.folder.answered)).write_bytes(data.replace(b"plain", b"\\u001b[31m"))
    with pytest.raises(InputError, match="bad-answer"):
        session.answers()


@pytest.mark.parametrize("note", [b"caf\xe9", b"caf%E9", b"%ED%A0%80"])
def test_a_form_that_is_no_utf8_is_refused_and_not_mended(session: Session, note: bytes) -> None:
    root = session.begin()
    sent = urlencode({**session.fields(root, 1), "choice": "no_ans"}).encode()
    came = session.client.post(
        f"{root}/question/1",
        content=sent + b"&note=" + note,
        headers={"content-type": "application/x-www-form-urlencoded"},
    )
    assert came.status_code == 400
    assert session.answers() == ()


@pytest.mark.parametrize("name", ["", "   ", "x" * 61, "ada\u202ebob", "a\x00b"])
def test_a_name_that_nobody_can_read_is_refused(session: Session, name: str) -> None:
    came = session.client.post("/", data={"name": name, "token": TOKEN})
    assert came.status_code == 422
    assert "Please give" in came.text


def test_an_address_ends_after_thirty_days_and_leads_back(session: Session) -> None:
    root = session.begin()
    session.clock.pass_by(days=31)
    page = session.client.get(root)
    assert page.status_code == 403
    assert 'href="/"' in page.text


@pytest.mark.parametrize(
    "address", ["/t/x", "/t/x/question/1", "/t/{token}x", "/t/{token}/question/99", "/nothing"]
)
def test_addresses_that_were_not_given_out_show_nothing(session: Session, address: str) -> None:
    root = session.begin()
    page = session.client.get(address.replace("/t/{token}", root))
    assert page.status_code in (403, 404)
    assert "egg" not in page.text


def test_a_token_of_another_folder_is_forged(session: Session) -> None:
    expires = session.clock.now + timedelta(days=1)
    forged = PageSigner(key=b"another", pages="annotating").sign_owner("ada", expires=expires)
    assert session.client.get(f"/t/{forged}").status_code == 403


HOSTILE = (
    "<script>alert(1)</script><img src=x onerror=alert(2)>",
    "</p></form><form action='https://evil.example'>",
    "\u202eright to left\u2066",
    "{{ 7 * 7 }} {% raw %}",
    "x" * 100_000,
    "",
)


def test_passages_and_queries_are_text(stages: Stages) -> None:
    questions = (asked(1, *HOSTILE, query="<h1>why</h1>"),)
    session = make_desk(stages, questions=questions)
    root = session.begin("<i>ada</i>")
    page = session.client.get(f"{root}/question/1")
    whole = page.text.replace("<wbr>", "")
    for text in HOSTILE:
        assert escape(text).replace("&#x27;", "&#39;").replace("&quot;", "&#34;") in whole
    assert "<script>alert" not in page.text
    assert "<h1>why" not in page.text
    assert "This passage is empty." in page.text
    listed = session.client.get(root)
    assert "<i>ada" not in listed.text
    assert "<h1>why" not in listed.text
    assert session.answer(root, 1, "wrong_lab", 1, note="</textarea><script>").status_code == 303
    assert "</textarea><script>" not in session.client.get(f"{root}/question/1").text


def test_no_page_may_load_or_be_framed_from_elsewhere(session: Session) -> None:
    root = session.begin()
    for address in ("/", root, f"{root}/question/1", "/t/forged", "/static/annotating.css"):
        headers = session.client.get(address).headers
        assert "default-src 'none'" in headers["content-security-policy"]
        assert "frame-ancestors 'none'" in headers["content-security-policy"]
        assert headers["referrer-policy"] == "no-referrer"
        assert "set-cookie" not in headers


def test_a_form_that_is_too_long_is_refused(session: Session) -> None:
    root = session.begin()
    sent: dict[str, Any] = {**session.fields(root, 1), "choice": "no_ans", "note": "x" * 300_000}
    assert session.post(root, 1, sent).status_code == 413


def test_a_long_note_is_sent_back_to_be_shortened(session: Session) -> None:
    page = session.answer(session.begin(), 1, "no_ans", note="x" * 2_001)
    assert page.status_code == 422
    assert "to 2,000 characters" in words_of(page)


def test_forty_passages_of_many_systems_fit_into_a_form(stages: Stages) -> None:
    many = (asked(1, *(f"passage {n}" for n in range(200))),)
    session = make_desk(stages, form=ANSWERABLE, questions=many)
    assert session.answer(session.begin(), 1, "answered", *range(1, 201)).status_code == 303
    assert len(session.answers()[0].passages) == 200


def test_nothing_of_systems_or_ids_reaches_the_pages(stages: Stages) -> None:
    session = make_desk(stages, form=ANSWERABLE)
    page = session.client.get(f"{session.begin()}/question/1")
    assert "q1-d0" not in page.text


def test_two_processes_write_into_one_folder(stages: Stages, tmp_path: Path) -> None:
    one = make_desk(stages, folder=tmp_path / "shared")
    two = make_desk(stages, folder=tmp_path / "shared")
    root = one.begin()
    one.answer(root, 1, "no_ans")
    assert two.answer(root, 2, "ill_form").status_code == 303
    assert [entry.query for entry in one.answers()] == ["q1", "q2"]


def test_the_folders_secret_is_made_once_and_is_the_owners(tmp_path: Path) -> None:
    folder = QuestionFolder(tmp_path, TRIAGE)
    assert folder.key() == QuestionFolder(tmp_path, TRIAGE).key()
    assert (tmp_path / "key").stat().st_mode & 0o777 == 0o600
