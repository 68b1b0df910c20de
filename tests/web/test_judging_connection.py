"""The judging pages where the connection is lost, another window answers, or a place ends."""

from collections.abc import Callable

import browser_visit
import pytest
from browser_visit import Visit
from playwright.sync_api import Page, expect

import chromium
from heldout.judging.pages.questions import TEXTS

pytestmark = pytest.mark.browser
browser = chromium.browser
visit = browser_visit.visit


@pytest.fixture
def one(visit: Callable[..., Visit]) -> Visit:
    return visit()


@pytest.fixture
def page(one: Visit) -> Page:
    return one.begin()


def test_a_lost_connection_keeps_the_choice_and_sends_it_when_it_is_back(
    one: Visit, page: Page
) -> None:
    page.keyboard.press("2")
    page.context.set_offline(True)
    page.keyboard.press("Enter")
    expect(page.get_by_role("status")).to_contain_text("Not saved yet: the connection is lost")
    expect(page.get_by_role("radio", name="Passage B")).to_be_checked()
    assert one.stage.judgments() == ()
    page.context.set_offline(False)
    page.wait_for_url("**/item/2")
    (row,) = one.stage.judgments()
    assert (row.preferred, row.by) == (row.right, "key")
    one.end("ERR_INTERNET_DISCONNECTED")


def test_a_choice_that_was_not_sent_outlives_the_window(one: Visit) -> None:
    page = one.begin()
    page.get_by_label("because").select_option("language")
    expect(page.get_by_role("radio", name="I can't judge this,")).to_be_checked()
    address = page.url
    page.close()
    page = one.contexts[0].new_page()
    page.goto(address)
    expect(page.get_by_role("radio", name="I can't judge this,")).to_be_checked()
    expect(page.get_by_label("because")).to_have_value("language")
    expect(page.get_by_role("status")).to_contain_text("not saved yet")
    page.get_by_role("button", name="Next").click()
    page.wait_for_url("**/item/2")
    page.get_by_role("link", name="Back").click()
    expect(page.get_by_role("status")).to_have_text("")
    assert [row.reason for row in one.stage.judgments()] == ["language"]
    one.end()


def test_a_choice_from_before_another_windows_answer_is_dropped(one: Visit, page: Page) -> None:
    page.keyboard.press("1")
    one.stage.answer(page.url.removeprefix(one.root).rpartition("/item/")[0], 1, "b")
    page.reload()
    expect(page.get_by_role("radio", name="Passage B")).to_be_checked()
    expect(page.get_by_role("status")).to_have_text("")
    one.end()


def test_another_windows_answer_is_shown_and_asked_again(one: Visit, page: Page) -> None:
    one.stage.answer(page.url.removeprefix(one.root).rpartition("/item/")[0], 1, "b")
    page.keyboard.press("1")
    page.keyboard.press("Enter")
    alert = page.get_by_role("alert")
    expect(alert).to_contain_text("another window")
    expect(alert).to_be_focused()
    expect(page.get_by_role("radio", name="Passage B")).to_be_checked()
    assert len(one.stage.judgments()) == 1
    one.end("409")


def test_an_empty_next_is_asked_about_here_and_leaves_back_as_it_was(
    one: Visit, page: Page
) -> None:
    """A page that refused would stand in the history, with a form to send again."""
    posted: list[str] = []
    page.on("request", lambda r: posted.append(r.url) if r.method == "POST" else None)
    alert = page.get_by_role("alert")
    page.get_by_role("button", name="Next").click()
    expect(alert).to_have_text(TEXTS.missing["choice"])
    expect(alert).to_be_focused()
    page.get_by_role("radio", name="I can't judge this").check()
    page.get_by_role("button", name="Next").click()
    expect(alert).to_have_text(TEXTS.missing["reason"])
    assert posted == []
    page.get_by_role("radio", name="Passage A").check()
    page.get_by_role("button", name="Next").click()
    page.wait_for_url("**/item/2")
    page.go_back()
    expect(page.get_by_role("radio", name="Passage A")).to_be_checked()
    expect(alert).to_have_count(0)
    assert len(one.stage.judgments()) == 1
    one.end()


def test_a_server_that_cannot_save_is_told_in_place(one: Visit, page: Page) -> None:
    page.route("**/item/1", lambda route: route.fulfill(status=503, body="busy"), times=1)
    page.keyboard.press("1")
    page.keyboard.press("Enter")
    expect(page.get_by_role("status")).to_contain_text("Not saved yet: the server can't save")
    page.keyboard.press("Enter")
    page.wait_for_url("**/item/2")
    one.end("503")


def test_a_place_that_ends_soon_is_announced_and_can_be_kept(one: Visit) -> None:
    page = one.window()
    page.clock.install()
    page.goto(one.root + one.stage.begin() + "/item/1")
    page.clock.fast_forward("54:59")
    expect(page.get_by_role("status")).to_have_text("")
    page.keyboard.press("2")
    one.stage.clock.pass_by(minutes=55)
    page.clock.fast_forward("00:02")
    expect(page.get_by_role("status")).to_contain_text("I need more time")
    page.get_by_role("button", name="I need more time").click()
    expect(page.get_by_role("status")).to_contain_text("not saved yet")
    expect(page.get_by_role("radio", name="Passage B")).to_be_checked()
    assert int(page.locator("#item").get_attribute("data-left") or 0) == 3600
    one.end()
