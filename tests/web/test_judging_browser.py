"""The judging pages in Chromium: by keyboard alone, without JavaScript, on a phone, with axe."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from judging_stage import QUERY, A, Stage, Stages
from playwright.sync_api import (
    Browser,
    BrowserContext,
    FrameLocator,
    Page,
    Route,
    expect,
    sync_playwright,
)

from heldout.web.pages import MISSING

pytestmark = pytest.mark.browser

FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync"),
    "--disable-features=LocalNetworkAccessChecks",  # a platform's page frames one of this machine
)
AXE = {"rules": {"target-size": {"enabled": True}}, "preload": False}
"""WCAG 2.2's target size too; without fetching the style sheets again, which the page forbids."""
WIDE = {"width": 1280, "height": 900}
PHONE = {"width": 390, "height": 844}
PAPER = {"light": "rgb(252, 252, 250)", "dark": "rgb(21, 24, 27)"}


@pytest.fixture(scope="module")
def browser(program: Callable[[str], str]) -> Iterator[Browser]:
    path = program("chromium")
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=path, args=list(FLAGS))
        yield started
        started.close()


class Visit:
    """A served campaign and a window on it; whatever the window complains of is kept."""

    def __init__(self, stage: Stage, root: str, browser: Browser) -> None:
        self.stage = stage
        self.root = root
        self.browser = browser
        self.complaints: list[str] = []
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
        assert [one for one in self.complaints if not any(e in one for e in expected)] == []

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


def test_a_task_is_judged_by_keyboard_with_the_keys_switched_off(
    visit: Callable[..., Visit],
) -> None:
    one = visit()
    page = one.begin()
    tab_to(page, "#use-keys")
    page.keyboard.press("Space")
    for position in range(1, 5):
        page.wait_for_url(f"**/item/{position}")
        expect(page.get_by_label("Keys:")).not_to_be_checked()
        for key in ("1", "2", "Enter"):
            page.keyboard.press(key)
        expect(page.get_by_role("radio", checked=True)).to_have_count(0)
        if position > 1:
            tab_to(page, "#choice-a")
        else:
            page.locator("#choice-a").focus()
        page.keyboard.press("Space")
        if position == 2:
            for _ in range(2):
                page.keyboard.press("ArrowDown")
            tab_to(page, "select")
            page.keyboard.press("n")  # "neither answers it": letters belong to the list
        tab_to(page, "button[type=submit]")
        page.keyboard.press("Enter")
    page.wait_for_url("**/done")
    answers = [(row.preferred == row.left, row.reason) for row in one.stage.judgments()]
    assert answers == [(True, None), (False, "neither"), (True, None), (True, None)]
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


def test_stopping_without_javascript_names_the_amount_first(visit: Callable[..., Visit]) -> None:
    one = visit()
    page = one.begin(java_script_enabled=False)
    page.get_by_role("radio", name="Passage A").check()
    page.get_by_role("button", name="Next").click()
    page.get_by_role("link", name="Stop and be paid…").click()
    expect(page.get_by_text("1 of 4 answered: $0.50 is yours.")).to_be_visible()
    page.get_by_role("link", name="Go on with question 2").click()
    page.get_by_role("link", name="Stop and be paid…").click()
    page.get_by_role("button", name="Stop and be paid").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("You have stopped")
    one.end()


# On a phone


def test_on_a_phone_a_stands_above_b_and_the_choices_once_more_below(
    visit: Callable[..., Visit],
) -> None:
    one = visit()
    page = one.begin(viewport=PHONE, has_touch=True, is_mobile=True)
    a, b = (page.locator(f"article:has(#choice-{side})").bounding_box() for side in "ab")
    assert a
    assert b
    assert a["x"] == b["x"]
    assert a["y"] + a["height"] <= b["y"]
    again = page.locator(".again label", has_text="Passage B")
    box = again.bounding_box()
    assert box
    assert box["y"] >= b["y"] + b["height"]
    assert box["height"] >= 44
    again.tap()
    expect(page.get_by_role("radio", name="Passage B")).to_be_checked()
    page.get_by_role("button", name="Next").tap()
    page.wait_for_url("**/item/2")
    (row,) = one.stage.judgments()
    assert (row.preferred, row.by) == (row.right, "pointer")
    one.end()


def test_on_a_wide_window_passages_start_level_and_lines_are_short(
    visit: Callable[..., Visit],
) -> None:
    one = visit(texts=(A * 30, "short"))
    page = one.begin()
    a, b = (page.locator(f"article:has(#choice-{side}) .passage") for side in "ab")
    for choice in ("Passage A", "Passage B"):
        tops = [element.evaluate("e => e.getBoundingClientRect().top") for element in (a, b)]
        assert tops[0] == tops[1]
        page.get_by_role("radio", name=choice).check()
    characters = a.evaluate(
        """e => { const probe = document.createElement("span"); probe.textContent = "0".repeat(65);
        e.append(probe); const width = probe.getBoundingClientRect().width; probe.remove();
        return e.getBoundingClientRect().width / width * 65; }"""
    )
    assert characters < 66  # the digits that are set are a little narrower than one alone
    assert a.evaluate("e => e.scrollHeight <= e.clientHeight")
    expect(page.locator(".again")).to_be_hidden()
    one.end()


LONG = {
    "letters": ("x" * 5_000, "x" * 100_000),
    "markup": ("<b>" * 300, "<script>document.title = 'gone'</script>" * 200),
    "right to left": ("\u202e" * 40 + "abc", "\u2067abc\u202e " * 300),
    "lines": ("one\ntwo", "line\n" * 2_000),
    "address": ("https://example.org/" + "a/" * 400, "word " * 20_000),
}


@pytest.mark.parametrize("kind", LONG)
def test_nothing_scrolls_sideways_whatever_the_text(visit: Callable[..., Visit], kind: str) -> None:
    one = visit(query=LONG[kind][0], texts=(LONG[kind][1], "short"))
    page = one.begin()
    for width in (320, 390, 1280):
        page.set_viewport_size({"width": width, "height": 800})
        assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.title().startswith("Question 1 of 4")
    assert page.locator("b, article script").count() == 0
    one.end()


def test_a_text_that_turns_the_direction_leaves_the_page_alone(
    visit: Callable[..., Visit],
) -> None:
    turned = "\u202e\u2067abc"
    one, plain = visit(query=turned, texts=(turned, turned)), visit()
    places = []
    for visited in (one, plain):
        page = visited.begin()
        words = page.get_by_text("I can't judge this,")
        box = words.bounding_box()
        assert box
        places.append(box["x"])
        direction = "e => getComputedStyle(e).unicodeBidi"
        for text in page.locator(".text").all():
            assert text.evaluate(direction) == "isolate"
        visited.end()
    assert places[0] == places[1]


def test_hebrew_is_set_from_the_right_and_named_in_its_language(
    visit: Callable[..., Visit],
) -> None:
    one = visit(query="איך מסירים פריט", texts=("קרא לשיטה", "רשימה"), language="he")
    page = one.begin()
    for text in page.locator(".text").all():
        assert text.get_attribute("lang") == "he"
        assert text.evaluate("e => getComputedStyle(e).direction") == "rtl"
    assert page.locator("html").get_attribute("lang") == "en"
    one.end()


# A connection that is lost


def test_a_lost_connection_keeps_the_choice_and_sends_it_when_it_is_back(
    visit: Callable[..., Visit],
) -> None:
    one = visit()
    page = one.begin()
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


def test_a_choice_that_was_not_sent_outlives_the_window(visit: Callable[..., Visit]) -> None:
    one = visit()
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


def test_a_choice_from_before_another_windows_answer_is_dropped(
    visit: Callable[..., Visit],
) -> None:
    one = visit()
    page = one.begin()
    page.keyboard.press("1")
    one.stage.answer(page.url.removeprefix(one.root).rpartition("/item/")[0], 1, "b")
    page.reload()
    expect(page.get_by_role("radio", name="Passage B")).to_be_checked()
    expect(page.get_by_role("status")).to_have_text("")
    one.end()


def test_another_windows_answer_is_shown_and_asked_again(visit: Callable[..., Visit]) -> None:
    one = visit()
    page = one.begin()
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
    visit: Callable[..., Visit],
) -> None:
    """A page that refused would stand in the history, with a form to send again."""
    one = visit()
    page = one.begin()
    posted: list[str] = []
    page.on("request", lambda r: posted.append(r.url) if r.method == "POST" else None)
    alert = page.get_by_role("alert")
    page.get_by_role("button", name="Next").click()
    expect(alert).to_have_text(MISSING["choice"])
    expect(alert).to_be_focused()
    page.get_by_role("radio", name="I can't judge this").check()
    page.get_by_role("button", name="Next").click()
    expect(alert).to_have_text(MISSING["reason"])
    assert posted == []
    page.get_by_role("radio", name="Passage A").check()
    page.get_by_role("button", name="Next").click()
    page.wait_for_url("**/item/2")
    page.go_back()
    expect(page.get_by_role("radio", name="Passage A")).to_be_checked()
    expect(alert).to_have_count(0)
    assert len(one.stage.judgments()) == 1
    one.end()


def test_a_phone_without_a_keyboard_is_told_of_no_keys(visit: Callable[..., Visit]) -> None:
    one = visit()
    phone = one.begin("bob", viewport=PHONE, has_touch=True, is_mobile=True)
    expect(phone.locator("#use-keys")).to_be_hidden()
    expect(one.begin("ada").locator("#use-keys")).to_be_visible()
    one.end()


def test_two_presses_are_one_answer(visit: Callable[..., Visit]) -> None:
    one = visit()
    page = one.begin()
    page.keyboard.press("1")
    page.evaluate("for (let n = 0; n < 3; n++) document.getElementById('item').requestSubmit()")
    page.wait_for_url("**/item/2")
    assert len(one.stage.judgments()) == 1
    one.end()


def test_a_server_that_cannot_save_is_told_in_place(visit: Callable[..., Visit]) -> None:
    one = visit()
    page = one.begin()
    page.route("**/item/1", lambda route: route.fulfill(status=503, body="busy"), times=1)
    page.keyboard.press("1")
    page.keyboard.press("Enter")
    expect(page.get_by_role("status")).to_contain_text("Not saved yet: the server can't save")
    page.keyboard.press("Enter")
    page.wait_for_url("**/item/2")
    one.end("503")


def test_a_place_that_ends_soon_is_announced_and_can_be_kept(visit: Callable[..., Visit]) -> None:
    one = visit()
    page = one.window()
    page.clock.install()
    page.goto(one.root + one.stage.begin() + "/item/1")
    page.clock.fast_forward("54:59")
    expect(page.get_by_role("status")).to_have_text("")
    page.keyboard.press("2")
    one.stage.clock.pass_by(minutes=55)
    page.clock.fast_forward("00:02")
    expect(page.get_by_role("status")).to_contain_text("Keep my place")
    page.get_by_role("button", name="Keep my place").click()
    expect(page.get_by_role("status")).to_contain_text("not saved yet")
    expect(page.get_by_role("radio", name="Passage B")).to_be_checked()
    assert int(page.locator("#item").get_attribute("data-left") or 0) == 3600
    one.end()


# In a platform's frame


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


@pytest.mark.parametrize(
    ("platform", "host"),
    [("mturk", "evil.example"), ("mturk", "mturk.com.evil.example"), ("link", "worker.mturk.com")],
)
def test_nobody_else_may_frame_a_page(
    visit: Callable[..., Visit], platform: str, host: str
) -> None:
    one = visit(platform=platform)
    page = one.window()
    query = "worker=ada&amp;assignmentId=ASSIGNMENT_ID_NOT_AVAILABLE"
    frame = framed(one, page, host, query)
    expect(frame.get_by_text("Best answers")).to_have_count(0)
    assert any("frame-ancestors" in complaint for complaint in one.complaints)


# Accessibility


def every_page(one: Visit, page: Page) -> Iterator[str]:
    """Visit every kind of page in turn; yields what it is."""
    link = one.root + one.stage.link
    for name, address in (("asks", link), ("consent", f"{link}?worker=ada")):
        page.goto(address)
        yield name
    root = one.root + one.stage.begin("ada")
    page.goto(f"{root}/item/1")
    yield "item"
    page.get_by_role("button", name="Next").click()
    page.get_by_role("alert").wait_for()
    yield "nothing chosen"
    page.keyboard.press("1")
    yield "chosen"
    page.evaluate("localStorage.clear()")
    page.route("**/item/1", lambda route: route.abort(), times=1)
    page.get_by_role("button", name="Next").click()
    page.get_by_text("Not saved yet").wait_for()
    yield "not saved"
    for address in ("item/4", "item/9", "exit"):
        page.goto(f"{root}/{address}")
        yield address
    page.get_by_role("button", name="Stop", exact=True).click()
    page.wait_for_url("**/done")
    yield "stopped"
    page.goto(f"{root[:-3]}/done")
    yield "forged"
    page.goto(f"{one.root}/none")
    yield "no such page"
    other = one.stage.begin("bob")
    page.goto(f"{one.root}{other}/item/1")
    one.stage.finish(other, 4, q3="b")
    page.goto(f"{one.root}{other}/done")
    yield "done"
    page.goto(f"{link}?worker=bob")
    yield "barred"


@pytest.mark.parametrize(("theme", "viewport"), [("light", PHONE), ("dark", WIDE)])
def test_axe_finds_nothing(
    visit: Callable[..., Visit], theme: str, viewport: dict[str, int]
) -> None:
    one = visit()
    page = one.window(color_scheme=theme, viewport=viewport)
    seen = 0
    for name in every_page(one, page):
        page.wait_for_load_state()  # the style sheet too
        colour = page.locator("body").evaluate("e => getComputedStyle(e).backgroundColor")
        assert colour == PAPER[theme], name
        assert page.evaluate("document.documentElement.scrollWidth") <= viewport["width"], name
        assert page.locator("h1").count() == 1, name
        results = Axe().run(page, options=AXE)
        assert len(results.response["passes"]) > 10, name
        assert results.violations_count == 0, f"{name}\n{results.generate_report()}"
        seen += 1
    assert seen == 14
    one.end("status of 4", "ERR_FAILED")


def test_a_screen_reader_is_told_what_is_what(visit: Callable[..., Visit]) -> None:
    one = visit()
    page = one.begin()
    expect(page.get_by_role("heading", level=1)).to_have_text(QUERY)
    expect(page.get_by_role("group", name="Which passage answers it better?")).to_be_visible()
    for name in ("Passage A", "Passage B"):
        expect(page.get_by_role("radio", name=name, exact=True)).to_have_count(1)
        expect(page.get_by_role("article", name=name, exact=True)).to_have_count(1)
        expect(page.get_by_role("heading", level=2, name=name)).to_have_count(1)
    expect(page.get_by_role("status")).to_have_count(1)
    for control in page.locator("a, button, input:not([type=hidden]), select").all():
        box = control.bounding_box()
        assert box
        assert min(box["width"], box["height"]) >= 24
    one.end()
