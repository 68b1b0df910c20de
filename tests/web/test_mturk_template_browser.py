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
SETTINGS = Settings(name="Best answers", consent="You are 18.", contact="judging@example.org")
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


@pytest.fixture(params=[1280, 390])
def page(browser: Browser, request: pytest.FixtureRequest) -> Iterator[Page]:
    texts = gather_texts([POOL])
    (files,) = hit_files([TASK], texts, SETTINGS)
    body = files.template.decode()
    for name, cell in hit_cells(TASK, texts).items():
        body = body.replace("${" + name + "}", cell)
    window = browser.new_page(viewport={"width": request.param, "height": 900})
    window.set_content(PAGE.format(body))
    yield window
    window.close()


def test_axe_finds_nothing_and_nothing_scrolls_sideways(page: Page) -> None:
    assert Axe().run(page).response["violations"] == []
    width = page.viewport_size["width"] if page.viewport_size else 0
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_a_hostile_passage_is_shown_as_it_is(page: Page) -> None:
    assert page.title() == "A task"
    shown = page.locator(".pair .text").first
    assert shown.evaluate("e => e.textContent") == HOSTILE
    assert page.locator("script").count() == 0


def test_what_is_chosen_is_what_is_sent_and_nothing_may_be_left_out(page: Page) -> None:
    sent: list[dict[str, list[str]]] = []

    def keep(request: Request) -> None:
        sent.append(parse_qs(request.post_data or "", keep_blank_values=True))

    page.route("http://mturk.invalid/**", lambda route: route.fulfill(body="taken"))
    page.on("request", keep)
    first, second = page.get_by_role("group").all()
    first.get_by_label("Passage B").check()
    page.get_by_role("button", name="Hand in").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Best answers")
    assert sent == []
    second.get_by_label("I can't judge this,").check()
    second.get_by_label("because").select_option("same")
    page.get_by_role("button", name="Hand in").click()
    expect(page.get_by_text("taken")).to_be_visible()
    assert sent == [
        {"choice_1": ["right"], "reason_1": [""], "choice_2": ["none"], "reason_2": ["same"]}
    ]
