"""Somebody at the judging pages in Chromium; a module takes it: `visit = browser_visit.visit`."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from judging_stage import Stage, Stages
from playwright.sync_api import Browser, BrowserContext, Page

WIDE = {"width": 1280, "height": 900}


PHONE = {"width": 390, "height": 844}


OWN_FOCUS = "Autofocus processing was blocked"
"""Chromium says so where a key was pressed before the page took the focus, as it should be."""


class Visit:
    """A served campaign and a window on it; whatever the window complains of is kept."""

    def __init__(self, stage: Stage, root: str, browser: Browser) -> None:
        self.stage = stage
        self.root = root
        self.browser = browser
        self.complaints: list[str] = []
        self.failures: list[str] = []
        self.contexts: list[BrowserContext] = []

    def window(self, **options: Any) -> Page:
        """A window of its own, as of another person."""
        context = self.browser.new_context(**{"viewport": WIDE, **options})
        self.contexts.append(context)
        page = context.new_page()
        page.on("console", lambda m: self.complaints.append(f"console {m.type}: {m.text}"))
        page.on("pageerror", lambda error: self.complaints.append(f"error: {error}"))
        page.on("dialog", lambda dialog: self.complaints.append(f"dialog: {dialog.message}"))
        page.on("request", lambda r: self._note_foreign(r.url))
        page.on("requestfailed", lambda r: self.failures.append(f"{r.url}: {r.failure}"))
        return page

    def begin(self, worker: str = "ada", **options: Any) -> Page:
        """A window with the first question."""
        page = self.window(**options)
        page.goto(self.root + self.stage.begin(worker) + "/item/1")
        return page

    def end(self, *expected: str) -> None:
        """Nothing else was complained of than refusals that were expected."""
        for context in self.contexts:
            context.close()
        known = (OWN_FOCUS, *expected)
        surprises = [one for one in self.complaints if not any(e in one for e in known)]
        assert surprises == [], (surprises, self.failures)

    def _note_foreign(self, url: str) -> None:
        if not url.startswith((self.root, "data:image/svg+xml,")):
            self.complaints.append(f"request: {url}")


@pytest.fixture
def visit(browser: Browser, tmp_path: Path) -> Iterator[Callable[..., Visit]]:
    with Stages(tmp_path) as stages:

        def make(**options: Any) -> Visit:
            stage = stages.make(**options)
            return Visit(stage, stages.serve(stage.app), browser)

        yield make


def tab_to(page: Page, css: str) -> None:
    """Press Tab until the element has the focus; all that is passed shows it."""
    for _ in range(12):
        page.keyboard.press("Tab")
        if page.evaluate("css => document.activeElement.matches(css)", css):
            return
        width = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
        assert width != "none"
    pytest.fail(f"{css} is not reached by the keyboard")


def heading_has_focus(page: Page) -> bool:
    return bool(page.evaluate("document.activeElement.tagName === 'H1'"))
