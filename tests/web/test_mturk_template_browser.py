"""Mechanical Turk's template in Chromium, filled and put into a form as the platform does it."""

from collections.abc import Iterator
from urllib.parse import parse_qs

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, Request, expect

import chromium
from heldout.judging.campaign.pools import Candidate, Pool, gather_texts
from heldout.judging.campaign.rows import Item, Task
from heldout.judging.campaign.settings import Settings
from heldout.judging.platforms.mturk import hit_cells, hit_files

pytestmark = [pytest.mark.browser, pytest.mark.slow]
browser = chromium.browser

HOSTILE = "<script>document.title='gone'</script>\n=1+1 ${left_2} \u202eabc"
SETTINGS = Settings(
    name="Best answers", consent="You are 18.", contact="judging@example.org", reward=200
)
POOL = Pool(
    query="q",
    text="how do I remove an item",
    candidates=(Candidate(doc="a", text=HOSTILE), Candidate(doc="b", text="short")),
)
TASK = Task(
    task="1-00001-1",
    items=(Item(query="q", left="a", right="b"), Item(query="q", left="b", right="a")),
)
PAGE = (
    '<!doctype html><html lang="en"><head><title>A task</title>'
    '<meta name="viewport" content="width=device-width"></head><body><main>'
    '<form name="mturk_form" method="post" id="mturk_form" action="http://mturk.invalid/submit">'
    "{}</form></main></body></html>"
)


def filled() -> str:
    """The template of the task, as the platform fills it."""
    texts = gather_texts([POOL])
    (files,) = hit_files([TASK], texts, SETTINGS)
    body = files.template.decode()
    for name, cell in hit_cells(TASK, texts).items():
        body = body.replace("${" + name + "}", cell)
    return body


@pytest.fixture(params=[1280, 390])
def page(browser: Browser, request: pytest.FixtureRequest) -> Iterator[Page]:
    window = browser.new_page(viewport={"width": request.param, "height": 900})
    window.set_content(PAGE.format(filled()))
    yield window
    window.close()


def test_axe_finds_nothing_and_nothing_scrolls_sideways(page: Page) -> None:
    assert Axe().run(page).response["violations"] == []
    width = page.viewport_size["width"] if page.viewport_size else 0
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_a_hostile_passage_is_shown_as_it_is(page: Page) -> None:
    assert page.title() == "A task"
    assert page.locator(".pair .text").first.evaluate("e => e.textContent") == HOSTILE
    assert page.locator("script").count() == 1


@pytest.fixture
def sent(page: Page) -> list[dict[str, list[str]]]:
    """What the form sends."""
    taken: list[dict[str, list[str]]] = []

    def keep(request: Request) -> None:
        taken.append(parse_qs(request.post_data or "", keep_blank_values=True))

    page.route("http://mturk.invalid/**", lambda route: route.fulfill(body="taken"))
    page.on("request", keep)
    return taken


WHOLE = {"choice_1": ["right"], "reason_1": [""], "choice_2": ["none"], "reason_2": ["same"]}


def test_one_question_is_shown_at_a_time_and_none_may_be_left_out(
    page: Page, sent: list[dict[str, list[str]]]
) -> None:
    question = page.get_by_role("group")
    expect(question).to_have_count(1)
    expect(question).to_contain_text("Question 1 of 2")
    page.get_by_role("button", name="Next").click()
    expect(page.get_by_role("alert")).to_contain_text("Choose Passage A or Passage B")
    question.get_by_label("Passage B", exact=True).check()
    page.get_by_role("button", name="Next").click()
    expect(question).to_contain_text("Question 2 of 2")
    expect(question.locator("legend")).to_be_focused()
    question.get_by_label("I can't judge this,").check()
    page.get_by_role("button", name="Hand in").click()
    expect(page.get_by_role("alert")).to_have_text("Choose a reason.")
    assert sent == []
    page.get_by_role("button", name="Back").click()
    expect(question.get_by_label("Passage B", exact=True)).to_be_checked()
    page.get_by_role("button", name="Next").click()
    question.get_by_label("because").select_option("same")
    page.get_by_role("button", name="Hand in").click()
    expect(page.get_by_text("taken")).to_be_visible()
    assert sent == [WHOLE]


def test_keys_choose_and_go_on_unless_they_are_switched_off(
    page: Page, sent: list[dict[str, list[str]]]
) -> None:
    question = page.get_by_role("group")
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert")).to_be_visible()
    page.keyboard.press("2")
    expect(question.get_by_label("Passage B", exact=True)).to_be_checked()
    page.keyboard.press("Enter")
    expect(question).to_contain_text("Question 2 of 2")
    page.get_by_label("Keys").uncheck()
    page.keyboard.press("1")
    expect(question.locator("input:checked")).to_have_count(0)
    page.get_by_label("Keys").check()
    page.keyboard.press("1")
    page.keyboard.press("Enter")
    expect(page.get_by_text("taken")).to_be_visible()
    assert sent == [WHOLE | {"choice_2": ["left"], "reason_2": [""]}]


def test_a_worker_who_stops_hands_in_what_is_answered(
    page: Page, sent: list[dict[str, list[str]]]
) -> None:
    stop = page.get_by_role("button", name="Stop here")
    part = page.get_by_role("button", name="Stop and hand in")
    stop.click()
    expect(page.get_by_text("Nothing is answered yet: return the task instead.")).to_be_visible()
    expect(part).to_be_hidden()
    page.get_by_role("button", name="Go on with the task").click()
    page.keyboard.press("1")
    stop.click()
    expect(page.get_by_text("1 of 2 answered: $1.00 is yours.")).to_be_visible()
    assert Axe().run(page).response["violations"] == []
    part.click()
    expect(page.get_by_text("taken")).to_be_visible()
    assert sent == [{"choice_1": ["left"], "reason_1": [""], "reason_2": [""]}]


def test_without_a_script_every_question_stands_there_and_is_needed(browser: Browser) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.set_content(PAGE.format(filled()))
    expect(page.get_by_role("group")).to_have_count(2)
    expect(page.get_by_role("button")).to_have_count(1)
    assert page.locator("input[type=radio][required]").count() == 6
    context.close()
