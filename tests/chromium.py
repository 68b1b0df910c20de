"""Chromium for the tests of pages; a test module takes it: `browser = chromium.browser`."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, expect, sync_playwright

__all__ = ["AXE", "SCREENS", "browser"]

expect.set_options(timeout=30_000)  # a page of a loaded machine is late, not wrong

_FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync"),
    "--disable-features=LocalNetworkAccessChecks",  # a platform's page frames one of this machine
)
AXE: dict[str, Any] = {"rules": {"target-size": {"enabled": True}}, "preload": False}
"""WCAG 2.2's target size too; without fetching the style sheets again, which the page forbids."""

_COLOURS = {**AXE, "runOnly": ["color-contrast", "link-in-text-block"]}
SCREENS = pytest.mark.parametrize(
    ("width", "theme", "rules"),
    [
        pytest.param(390, "dark", AXE, id="390-dark"),
        pytest.param(1280, "light", AXE, id="1280-light"),
        pytest.param(390, "light", _COLOURS, id="390-light"),
        pytest.param(1280, "dark", _COLOURS, id="1280-dark"),
    ],
)
"""Phone and session, light and dark: all rules at either width and in either theme once, and the
colours, which alone depend on both, in all four."""


@pytest.fixture(scope="module")
def browser(program: Callable[[str], str]) -> Iterator[Browser]:
    """One for all tests of a module: playwright's loop may not outlive it, others run their own."""
    path = program("chromium")
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=path, args=list(_FLAGS))
        yield started
        started.close()
