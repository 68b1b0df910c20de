"""The annotators' pages in Chromium: with axe, by keyboard, without JavaScript, on a phone."""

import errno
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from annotating_stage import TEXTS, TOKEN, Session, asked, make_desk
from axe_playwright_python.sync_playwright import Axe
from judging_stage import Stages
from playwright.sync_api import Browser, Page, expect

import chromium
from chromium import AXE
from heldout.survivorship.discarded.questions import ANSWERABLE, TRIAGE, Form, Question

pytestmark = [pytest.mark.browser, pytest.mark.slow]

browser = chromium.browser
LONG = " ".join(["An egg that boils for six minutes has a soft yolk."] * 20)


@pytest.fixture
def stages(tmp_path: Path) -> Iterator[Stages]:
    with Stages(tmp_path) as made:
        yield made


class Window:
    """A window on a folder's pages; whatever it complains of is kept."""

    def __init__(
        self,
        browser: Browser,
        stages: Stages,
        form: Form = TRIAGE,
        questions: tuple[Question, ...] = (),
    ) -> None:
        two = tuple(asked(n, *TEXTS, LONG, "x" * 5_000) for n in (1, 2))
        self.session: Session = make_desk(stages, form=form, questions=questions or two)
        self.root = stages.serve(self.session.app)
        self.browser = browser
        self.complaints: list[str] = []

    def sign_in(self, **options: Any) -> Page:
        page = self.browser.new_context(**options).new_page()
        page.on("console", lambda m: self.complaints.append(f"console {m.type}: {m.text}"))
        page.on("pageerror", lambda error: self.complaints.append(f"error: {error}"))
        page.goto(self.root)
        page.get_by_label("Your name").fill("ada")
        page.get_by_label("Token").fill(TOKEN)
        page.get_by_role("button", name="Begin").click()
        expect(page.get_by_role("heading", level=1)).to_be_focused()
        return page

    def question(self, **options: Any) -> Page:
        page = self.sign_in(**options)
        page.get_by_role("link", name="Begin").click()
        come(page, "Question 1")
        return page

    def said(self) -> list[tuple[str, str, tuple[str, ...]]]:
        return [(one.query, one.choice, one.passages) for one in self.session.answers()]


def come(page: Page, title: str) -> None:
    """Wait for a page and its script: its heading has the focus before the script runs."""
    expect(page.get_by_text(title)).to_be_visible()
    page.wait_for_load_state("load")
    expect(page.get_by_role("heading", level=1)).to_be_focused()


@pytest.mark.parametrize(
    ("form", "theme", "width"),
    [(TRIAGE, "light", 1280), (ANSWERABLE, "dark", 390)],
    ids=["triage-light-wide", "answerable-dark-phone"],
)
def test_axe_finds_nothing_on_any_page(
    browser: Browser, stages: Stages, form: Form, theme: str, width: int
) -> None:
    window = Window(browser, stages, form)
    options: dict[str, Any] = {
        "viewport": {"width": width, "height": 900},
        "color_scheme": theme,
        "bypass_csp": True,
    }
    page = window.sign_in(**options)
    for address in (window.root, page.url, f"{page.url}/question/1", f"{window.root}/t/x"):
        page.goto(address)
        found = Axe().run(page, options=AXE).response["violations"]
        assert found == [], (address, [one["id"] for one in found])
        assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.go_back()
    page.get_by_role("checkbox", name="Passage 1").check()
    page.get_by_role("button", name="Save, next").click()
    expect(page.get_by_role("alert")).to_be_focused()
    assert Axe().run(page, options=AXE).response["violations"] == []


def test_a_question_is_answered_by_keys_alone(browser: Browser, stages: Stages) -> None:
    window = Window(browser, stages)
    page = window.question()
    page.keyboard.press("Tab")
    expect(page.get_by_role("checkbox", name="Passage 1")).to_be_focused()
    page.keyboard.press("Space")
    page.keyboard.press("3")
    page.keyboard.press("Enter")
    come(page, "Question 2 of 2")
    page.keyboard.press("1")
    page.get_by_label("Note").press_sequentially("5 of 5, as said")
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    expect(page.get_by_role("button", name="Save")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_text("2 of 2 answered.")).to_be_visible()
    assert window.said() == [("q1", "wrong_lab", ("q1-d0",)), ("q2", "no_ans", ())]
    assert window.session.answers()[1].note == "5 of 5, as said"
    assert window.complaints == []


def test_keys_can_be_switched_off(browser: Browser, stages: Stages) -> None:
    window = Window(browser, stages)
    page = window.question()
    page.get_by_label("Keys:").uncheck()
    page.reload()
    expect(page.get_by_label("Keys:")).not_to_be_checked()
    page.keyboard.press("1")
    page.keyboard.press("Enter")
    expect(page.get_by_text("Question 1 of 2")).to_be_visible()
    expect(page.get_by_label("No answer here")).not_to_be_checked()
    assert window.said() == []


def test_everything_works_without_javascript(browser: Browser, stages: Stages) -> None:
    window = Window(browser, stages)
    page = window.question(java_script_enabled=False)
    page.get_by_role("button", name="Save, next").click()
    expect(page.get_by_role("alert")).to_contain_text("Please choose an answer")
    page.get_by_label("Answered in part").check()
    page.get_by_role("button", name="Save, next").click()
    expect(page.get_by_role("alert")).to_contain_text("please tick the passages")
    expect(page.get_by_label("Answered in part")).to_be_checked()
    page.get_by_role("checkbox", name="Passage 2").check()
    page.get_by_role("button", name="Save, next").click()
    expect(page.get_by_text("Question 2 of 2")).to_be_visible()
    page.get_by_role("link", name="Back").click()
    expect(page.get_by_role("checkbox", name="Passage 2")).to_be_checked()
    assert window.said() == [("q1", "partial_ans", ("q1-d1",))]


def test_a_lost_connection_and_a_reload_keep_the_answer(browser: Browser, stages: Stages) -> None:
    window = Window(browser, stages)
    page = window.question()
    page.get_by_role("checkbox", name="Passage 3").check()
    page.get_by_label("Answered in part").check()
    page.get_by_label("Note").fill("a remark")
    page.context.set_offline(offline=True)
    page.get_by_role("button", name="Save, next").click()
    expect(page.get_by_role("status")).to_contain_text("Not saved yet: the connection is lost.")
    page.context.set_offline(offline=False)
    come(page, "Question 2 of 2")
    page.get_by_label("I can't judge this").check()
    page.reload()
    expect(page.get_by_label("I can't judge this")).to_be_checked()
    expect(page.get_by_role("status")).to_contain_text("not saved yet")
    assert window.said() == [("q1", "partial_ans", ("q1-d2",))]
    assert window.session.answers()[0].note == "a remark"


def test_a_full_disk_is_told_and_the_answer_stays(
    browser: Browser, stages: Stages, monkeypatch: pytest.MonkeyPatch
) -> None:
    window = Window(browser, stages)
    page = window.question()
    page.get_by_label("No answer here").check()

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr("heldout.files.durable.os.fsync", full)
        page.get_by_role("button", name="Save, next").click()
        expect(page.get_by_role("status")).to_contain_text("the server can't save just now")
    page.get_by_role("button", name="Save, next").click()
    expect(page.get_by_text("Question 2 of 2")).to_be_visible()
    assert window.said() == [("q1", "no_ans", ())]


def test_a_second_window_is_told_of_the_first(browser: Browser, stages: Stages) -> None:
    window = Window(browser, stages)
    first = window.question()
    second = first.context.new_page()
    second.goto(first.url)
    first.get_by_label("No answer here").check()
    first.get_by_role("button", name="Save, next").click()
    expect(first.get_by_text("Question 2 of 2")).to_be_visible()
    second.get_by_label("Not a sound question").check()
    second.get_by_role("button", name="Save, next").click()
    expect(second.get_by_role("alert")).to_contain_text("in another window")
    expect(second.get_by_label("No answer here")).to_be_checked()
    assert window.said() == [("q1", "no_ans", ())]


def test_the_answer_is_in_sight_beside_long_passages(browser: Browser, stages: Stages) -> None:
    window = Window(browser, stages)
    page = window.question(viewport={"width": 1280, "height": 900})
    page.mouse.wheel(0, 1500)
    page.get_by_role("checkbox", name="Passage 5").scroll_into_view_if_needed()
    expect(page.get_by_role("button", name="Save, next")).to_be_in_viewport()
    for width in (1280, 320):
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_a_passage_of_a_million_letters_without_a_blank_is_answered(
    browser: Browser, stages: Stages
) -> None:
    questions = (asked(1, "x" * 1_000_000, *TEXTS, query="y" * 1_000_000),)
    window = Window(browser, stages, questions=questions)
    page = window.question(viewport={"width": 390, "height": 900})
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    shown = page.evaluate("document.querySelector('.passage').textContent")
    assert shown == "x" * 1_000_000
    page.get_by_role("checkbox", name="Passage 2").check()
    page.get_by_label("Answered in part").check()
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("1 of 1 answered.")).to_be_visible()
    assert window.said() == [("q1", "partial_ans", ("q1-d1",))]


@pytest.mark.parametrize("phone", [True, False])
def test_keys_are_offered_where_there_are_keys(
    browser: Browser, stages: Stages, *, phone: bool
) -> None:
    window = Window(browser, stages)
    size = {"width": 390, "height": 800}
    page = window.question(viewport=size, is_mobile=phone, has_touch=phone)
    assert page.evaluate("matchMedia('(pointer: coarse)').matches") is phone
    expect(page.get_by_label("Keys:")).to_be_visible(visible=not phone)
