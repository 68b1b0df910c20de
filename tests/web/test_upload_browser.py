"""The upload in Chromium: by keyboard, without JavaScript, on a phone, with axe."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from judging_stage import Stages
from playwright.sync_api import Browser, Page, expect

import chromium
from chromium import AXE
from heldout.board.site.intake import ADDRESS, Intake, make_upload_app
from heldout.board.store.arrivals import is_team
from heldout.board.store.uploads import Limits, UploadFolder
from heldout.web.pages import Study

pytestmark = pytest.mark.browser
browser = chromium.browser

ENDINGS = (".tar.age", "-metadata.json.age", ".key.age")
ONE = "20261121-" + "a-rather-long-name-of-a-team-" * 2
LIGHT: dict[str, Any] = {"viewport": {"width": 1280, "height": 900}, "color_scheme": "light"}
PHONE: dict[str, Any] = {"viewport": {"width": 390, "height": 844}, "color_scheme": "dark"}


@pytest.fixture
def uploads(tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """The page's address, and the folder behind it."""
    folder = tmp_path / "uploads"
    folder.mkdir()
    limits = Limits(free_bytes=0)
    place = UploadFolder(path=folder, endings=ENDINGS, is_team=is_team, limits=limits)
    study = Study(name="A board", contact="board@example.org")
    intake = Intake(folder=place, clock=lambda: datetime(2026, 11, 21, tzinfo=UTC), study=study)
    with Stages(tmp_path) as stages:
        yield stages.serve(make_upload_app(intake)) + ADDRESS, folder


@pytest.fixture
def sealed(tmp_path: Path) -> list[Path]:
    """Three files as `heldout pack` names them."""
    paths = [tmp_path / f"{ONE}{ending}" for ending in ENDINGS]
    for path in paths:
        path.write_bytes(path.name.encode())
    return paths


def violations(page: Page) -> list[str]:
    found = Axe().run(page, options=AXE).response["violations"]
    return [f"{one['id']}: {one['nodes'][0]['html']}" for one in found]


def fits(page: Page) -> bool:
    return bool(page.evaluate("document.documentElement.scrollWidth <= innerWidth"))


@pytest.mark.parametrize("window", [LIGHT, PHONE], ids=["wide and light", "phone and dark"])
def test_form_reason_and_receipt_have_no_violation_of_axe(
    browser: Browser,
    uploads: tuple[str, Path],
    sealed: list[Path],
    window: dict[str, Any],
) -> None:
    url, folder = uploads
    context = browser.new_context(**window)
    page = context.new_page()
    said: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.goto(url)
    assert violations(page) == []
    assert fits(page)
    page.get_by_label("Sealed files").set_input_files(sealed[:1])
    page.get_by_role("button", name="Send").click()
    expect(page.get_by_role("alert")).to_contain_text("Nothing was stored")
    expect(page.get_by_role("alert")).to_be_focused()
    assert violations(page) == []
    assert fits(page)
    assert [one for one in said if "422" not in one] == []
    page.get_by_label("Sealed files").set_input_files(sealed)
    page.get_by_role("button", name="Send").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Your submission is here")
    expect(page.get_by_role("heading", level=1)).to_be_focused()
    assert violations(page) == []
    assert fits(page)
    sent = [path.name for path in folder.glob("delivery-*/*.age")]
    assert sorted(sent) == sorted(path.name for path in sealed)
    context.close()


def test_it_works_without_javascript_and_by_keyboard(
    browser: Browser, uploads: tuple[str, Path], sealed: list[Path]
) -> None:
    url, folder = uploads
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(url)
    page.get_by_label("Sealed files").set_input_files(sealed)
    page.get_by_label("Sealed files").focus()
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("Your submission is here")
    page.get_by_role("link", name="Send another").press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("Send a sealed submission")
    assert len(list(folder.glob("delivery-*/*.age"))) == 3
    context.close()
