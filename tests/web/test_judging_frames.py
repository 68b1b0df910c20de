"""The judging pages in the frame of a platform, and of nobody else."""

from collections.abc import Callable

import browser_visit
import pytest
from browser_visit import Visit
from playwright.sync_api import FrameLocator, Page, Route, expect

import chromium

pytestmark = [pytest.mark.browser, pytest.mark.slow]
browser = chromium.browser
visit = browser_visit.visit


def framed(one: Visit, page: Page, host: str, query: str) -> FrameLocator:
    """The landing page in a frame of a page of somebody else."""
    source = f"{one.root}{one.stage.link}?{query}"
    body = f'<!doctype html><iframe src="{source}" width="1000" height="900"></iframe>'
    page.route(f"https://{host}/", lambda r: r.fulfill(content_type="text/html", body=body))
    page.goto(f"https://{host}/")
    return page.frame_locator("iframe")


def test_a_task_is_judged_in_mechanical_turks_frame_and_handed_in(
    visit: Callable[..., Visit],
) -> None:
    one = visit(platform="mturk")
    page = one.window()
    handed_in: list[str | None] = []

    def take(route: Route) -> None:
        handed_in.append(route.request.post_data)
        route.fulfill(content_type="text/html", body="<p>Thank you</p>")

    page.route("https://workersandbox.mturk.com/mturk/externalSubmit", take)
    query = "assignmentId=3ASG&amp;hitId=3HIT&amp;workerId=A1&amp;turkSubmitTo="
    frame = framed(one, page, "worker.mturk.com", f"{query}https://workersandbox.mturk.com")
    frame.get_by_role("button", name="I agree, begin").click()
    for position in range(1, 5):
        expect(frame.get_by_text(f"Question {position} of 4")).to_be_visible()
        frame.get_by_role("radio", name="Passage A").check()
        frame.get_by_role("button", name="Next" if position < 4 else "Finish").click()
    frame.get_by_role("button", name="Hand in on Mechanical Turk").click()
    expect(frame.get_by_text("Thank you")).to_be_visible()
    assert handed_in == ["assignmentId=3ASG&answered=4"]
    assert len(one.stage.judgments()) == 4
    one.end("mturk.com", "autofocusing")
