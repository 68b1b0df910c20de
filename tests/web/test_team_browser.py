"""A team's pages in Chromium: by keyboard, without JavaScript, on a phone, with axe."""

from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from axe_playwright_python.sync_playwright import Axe
from openid_provider import ISSUER, ORCID, OpenIdProvider
from playwright.sync_api import Browser, Page, Route, expect
from team_stage import ENDINGS, TEAM, MakePlace, Place, make_place

import chromium
from chromium import AXE
from heldout.intake import pages

__all__ = ["make_place"]
pytestmark = [pytest.mark.browser, pytest.mark.slow]
browser = chromium.browser

ONE = "20261121-" + "a-rather-long-name-of-a-system-" * 2
LIGHT: dict[str, Any] = {"viewport": {"width": 1280, "height": 900}, "color_scheme": "light"}
PHONE: dict[str, Any] = {"viewport": {"width": 390, "height": 844}, "color_scheme": "dark"}


@pytest.fixture
def place(make_place: MakePlace) -> Place:
    return make_place(providers=(ORCID,))


@pytest.fixture
def sealed(tmp_path: Path) -> list[Path]:
    """Three files as `heldout pack` names them."""
    paths = [tmp_path / f"{ONE}{ending}" for ending in ENDINGS]
    for path in paths:
        path.write_bytes(path.name.encode())
    return paths


def check(page: Page) -> None:
    """No violation of axe, and nothing scrolls sideways."""
    found = Axe().run(page, options=AXE).response["violations"]
    assert [f"{one['id']}: {one['nodes'][0]['html']}" for one in found] == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


@pytest.mark.parametrize("window", [LIGHT, PHONE], ids=["wide and light", "phone and dark"])
def test_every_page_of_a_team_has_no_violation_of_axe(
    browser: Browser, place: Place, sealed: list[Path], window: dict[str, Any]
) -> None:
    context = browser.new_context(**window)
    page = context.new_page()
    said: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.goto(place.url + place.invite())
    check(page)
    page.get_by_label("Name of the team").fill(TEAM)
    page.get_by_role("button", name="Join").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Your team's token")
    check(page)
    token = page.locator("#team-token").inner_text()
    page.get_by_role("link", name="Go to your team's page").click()
    expect(page.get_by_role("heading", level=1)).to_have_text(TEAM)
    check(page)
    page.get_by_role("link", name="Send a submission").click()
    check(page)
    page.get_by_label("Sealed files").set_input_files(sealed[:1])
    page.get_by_role("button", name="Send").click()
    expect(page.get_by_role("alert")).to_contain_text("Nothing was stored")
    expect(page.get_by_role("alert")).to_be_focused()
    check(page)
    page.get_by_label("Sealed files").set_input_files(sealed)
    page.get_by_role("button", name="Send").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Your submission is here")
    check(page)
    page.get_by_role("link", name="To your team's page").click()
    expect(page.get_by_text("waiting for the organiser")).to_be_visible()
    check(page)
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_role("button", name="Sign in with ORCID")).to_be_visible()
    check(page)
    page.get_by_label("Token of your team").fill(token)
    page.get_by_role("button", name="Sign in", exact=True).click()
    expect(page.get_by_role("heading", level=1)).to_have_text(TEAM)
    assert [one for one in said if "422" not in one] == []
    assert sorted(place.delivered()) == sorted(path.name for path in sealed)
    context.close()


def test_a_form_leads_to_the_provider_and_nowhere_else(browser: Browser, place: Place) -> None:
    """Chromium follows no form's answer to a site that the page's policy does not name."""
    context, there = browser.new_context(), OpenIdProvider()
    gone: list[str] = []

    def arrive(route: Route) -> None:
        gone.append(route.request.url)
        route.fulfill(body="<title>Consent</title>", content_type="text/html")

    context.route(f"{ISSUER}/**", arrive)
    page = context.new_page()
    with patch.object(pages, "new_client", there.client):
        page.goto(f"{place.url}/sign-in")
        page.get_by_role("button", name="Sign in with ORCID").click()
        expect(page).to_have_title("Consent")
    assert [one.partition("?")[0] for one in gone] == [f"{ISSUER}/authorize"]
    context.close()
