"""The organiser's pages in Chromium: with axe, without JavaScript, by keyboard, on a phone."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import organiser_stage
import pytest
from axe_playwright_python.sync_playwright import Axe
from judging_stage import Clock, Stage, Stages
from organiser_stage import TOKEN, copied, organised
from playwright.sync_api import Browser, Page, expect

import chromium
from chromium import SCREENS

pytestmark = [pytest.mark.browser, pytest.mark.slow]
browser = chromium.browser
under_way = organiser_stage.under_way

PAGES = (
    *("", "/quality", "/pairs", "/workers", "/payments?code=x", "/log"),
    "/pair?query=q1-1&a=q1-1-a&b=q1-1-b",
)


class Window:
    """A window on the organiser's pages; whatever it complains of is kept."""

    def __init__(self, root: str, browser: Browser, clock: Clock) -> None:
        self.root = root
        self.clock = clock
        self.browser = browser
        self.complaints: list[str] = []

    def open(self, **options: Any) -> Page:
        page = self.browser.new_context(**options).new_page()
        page.on("console", lambda m: self.complaints.append(f"console {m.type}: {m.text}"))
        page.on("pageerror", lambda error: self.complaints.append(f"error: {error}"))
        page.goto(f"{self.root}/admin")
        return page

    def sign_in(self, **options: Any) -> Page:
        page = self.open(**options)
        page.get_by_label("Token").fill(TOKEN)
        page.get_by_role("button", name="Sign in").click()
        expect(page.get_by_role("heading", level=1)).to_have_text("Overview")
        return page


@pytest.fixture
def window(browser: Browser, under_way: Stage, tmp_path: Path) -> Iterator[Window]:
    with Stages(tmp_path) as stages:
        stage = copied(under_way, stages)
        yield Window(stages.serve(organised(stage)), browser, stage.clock)
    shutil.rmtree(tmp_path)


@SCREENS
def test_axe_finds_nothing_on_any_page(
    window: Window, width: int, theme: str, rules: dict[str, Any]
) -> None:
    options: dict[str, Any] = {
        "viewport": {"width": width, "height": 900},
        "color_scheme": theme,
        "bypass_csp": True,
    }
    page = window.open(**options)
    assert Axe().run(page, options=rules).response["violations"] == []
    page.get_by_label("Token").fill("guess")
    page.get_by_role("button").click()
    expect(page.get_by_role("alert")).to_be_focused()
    assert Axe().run(page, options=rules).response["violations"] == []
    page = window.sign_in(**options)
    for place in PAGES:
        page.goto(f"{window.root}/admin{place}")
        found = Axe().run(page, options=rules).response["violations"]
        assert found == [], (place, [one["id"] for one in found])
        assert page.evaluate("document.documentElement.scrollWidth") <= width, place
        tables = page.get_by_role("table").count()  # also where they are laid out otherwise
        assert page.get_by_role("cell").count() >= 3 * tables, place


def test_a_campaign_is_launched_and_paid_by_keyboard_without_javascript(window: Window) -> None:
    page = window.open(java_script_enabled=False)
    page.get_by_label("Token").press_sequentially(TOKEN)
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("Overview")
    for button in ("Pause", "Launch: up to $14.40", "Pause"):
        page.get_by_role("button", name=button, exact=True).focus()
        page.keyboard.press("Enter")
        page.wait_for_load_state()
    expect(page.get_by_text("Paused: nobody gets a new task.")).to_be_visible()
    page.get_by_role("link", name="Payments").focus()
    page.keyboard.press("Enter")
    page.get_by_role("button", name="Mark as paid").first.focus()
    page.keyboard.press("Space")
    expect(page.get_by_role("status")).to_have_text("1 payment marked as paid.")
    window.clock.pass_by(seconds=5)
    page.get_by_role("button", name="Mark these 2 as paid").click()
    expect(page.get_by_role("status")).to_have_text("2 payments marked as paid.")
    expect(page.get_by_text("Nothing is due.")).to_be_visible()
    page.get_by_role("button", name="Sign out everywhere").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Sign in as the organiser")
    page.go_back()
    expect(page.get_by_role("heading", level=1)).to_have_text("Sign in as the organiser")
    assert window.complaints == []


def test_the_page_that_is_open_is_named_in_the_list(window: Window) -> None:
    page = window.sign_in()
    for name in ("Quality", "Pairs", "Workers", "Payments", "Log"):
        page.get_by_role("navigation").get_by_role("link", name=name).click()
        expect(page.locator("nav [aria-current=page]")).to_have_text(name)
        expect(page).to_have_title(f"{name} – Best answers")
    assert window.complaints == []
