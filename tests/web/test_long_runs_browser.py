"""A judging page whose query and passage are a million letters without a blank, in Chromium."""

from collections.abc import Callable

import browser_visit
import pytest
from browser_visit import PHONE, Visit
from playwright.sync_api import expect

import chromium

pytestmark = [pytest.mark.browser, pytest.mark.slow]

browser = chromium.browser
visit = browser_visit.visit
LETTERS = "x" * 1_000_000


def test_a_pair_of_a_million_letters_without_a_blank_is_judged(
    visit: Callable[..., Visit],
) -> None:
    one = visit(query=LETTERS, texts=(LETTERS, "short"))
    page = one.begin(viewport=PHONE)
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    texts = page.evaluate("[...document.querySelectorAll('.text')].map((e) => e.textContent)")
    assert sorted(texts) == ["short", LETTERS, LETTERS]
    page.get_by_role("radio", name="Passage B").check()
    page.get_by_role("button", name="Next").click()
    page.wait_for_url("**/item/2")
    expect(page.get_by_text("Question 2 of")).to_be_visible()
    assert len(one.stage.judgments()) == 1
    one.end()
