"""The judging pages in Chromium: by keyboard alone, and without JavaScript."""

from collections.abc import Callable

import browser_visit
import pytest
from browser_visit import Visit, heading_has_focus, tab_to
from judging_stage import A
from playwright.sync_api import expect

import chromium

pytestmark = [pytest.mark.browser, pytest.mark.slow]
browser = chromium.browser
visit = browser_visit.visit


# By keyboard alone


def test_a_task_is_judged_with_the_keys_alone(visit: Callable[..., Visit]) -> None:
    one = visit()
    page = one.window()
    page.goto(f"{one.root}{one.stage.link}?worker=ada")
    assert heading_has_focus(page)
    tab_to(page, "button")
    page.keyboard.press("Enter")
    for position, key in enumerate("1211", 1):
        page.wait_for_url(f"**/item/{position}")
        assert heading_has_focus(page)
        expect(page).to_have_title(f"Question {position} of 4 – Best answers")
        page.keyboard.press(key)
        name = {"1": "Passage A", "2": "Passage B"}[key]
        expect(page.get_by_role("radio", name=name)).to_be_checked()
        expect(page).to_have_url(f"{page.url}")
        page.keyboard.press("Enter")
    page.wait_for_url("**/done")
    assert heading_has_focus(page)
    expect(page.get_by_text("C0FFEE")).to_be_visible()
    rows = one.stage.judgments()
    assert [row.preferred == row.left for row in rows] == [True, False, True, True]
    assert {row.by for row in rows} == {"key"}
    assert all(row.active_ms is not None for row in rows)
    one.end()


def test_keys_are_left_alone_where_they_mean_something_else(visit: Callable[..., Visit]) -> None:
    one = visit()
    page = one.begin()
    page.keyboard.press("Control+1")
    page.locator("#reason").focus()
    page.keyboard.press("1")
    expect(page.get_by_role("radio", checked=True)).to_have_count(0)
    page.get_by_role("link", name="Stop and be paid…").focus()
    page.keyboard.press("Enter")
    page.wait_for_url("**/exit")
    one.end()


def test_nothing_moves_before_next_is_pressed(visit: Callable[..., Visit]) -> None:
    one = visit()
    page = one.begin()
    for choice in ("Passage A", "Passage B", "I can't judge this,"):
        page.get_by_role("radio", name=choice).check()
    page.get_by_label("because").select_option("same")
    page.wait_for_timeout(200)
    assert page.url.endswith("/item/1")
    assert one.stage.judgments() == ()
    one.end()


# Without JavaScript


def test_a_task_is_judged_without_javascript(visit: Callable[..., Visit]) -> None:
    one = visit()
    page = one.window(java_script_enabled=False)
    page.goto(f"{one.root}{one.stage.link}")
    page.get_by_label("Your worker id").fill("ada")
    page.get_by_role("button").click()
    assert page.url.endswith("/item/1")
    expect(page.get_by_text("Keys:")).to_be_hidden()
    page.get_by_role("button", name="Next").click()
    expect(page.get_by_role("alert")).to_contain_text("Please choose Passage A")
    page.get_by_role("radio", name="Passage B").check()
    page.get_by_role("button", name="Next").click()
    page.get_by_role("link", name="Back").click()
    expect(page.get_by_role("radio", name="Passage B")).to_be_checked()
    page.reload()
    page.get_by_text(A).click()
    expect(page.get_by_role("radio", name="Passage A")).to_be_checked()
    page.get_by_role("button", name="Next").click()
    page.get_by_role("radio", name="I can't judge this,").check()
    page.get_by_role("button", name="Next").click()
    expect(page.get_by_role("alert")).to_contain_text("reason")
    page.get_by_label("because").select_option(label="both say the same")
    page.get_by_role("button", name="Next").click()
    for button in ("Next", "Finish"):
        page.get_by_role("radio", name="Passage A").check()
        page.get_by_role("button", name=button).click()
    assert page.url.endswith("/done")
    expect(page.get_by_text("C0FFEE")).to_be_visible()
    assert [row.by for row in one.stage.judgments()] == ["form"] * 5
    one.end("422")
