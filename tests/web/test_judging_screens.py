"""The judging pages on a phone and a wide window, with any text, with axe."""

from collections.abc import Callable, Iterator

import browser_visit
import pytest
from axe_playwright_python.sync_playwright import Axe
from browser_visit import PHONE, WIDE, Visit
from judging_stage import QUERY
from playwright.sync_api import Page, expect

import chromium
from chromium import AXE

pytestmark = [pytest.mark.browser, pytest.mark.slow]
browser = chromium.browser
visit = browser_visit.visit


PAPER = {"light": "rgb(252, 252, 250)", "dark": "rgb(21, 24, 27)"}


@pytest.fixture
def one(visit: Callable[..., Visit]) -> Visit:
    return visit()


def test_on_a_phone_a_stands_above_b_and_the_choices_once_more_below(one: Visit) -> None:
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


def test_a_text_that_turns_the_direction_leaves_the_page_alone(visit: Callable[..., Visit]) -> None:
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


def test_a_phone_without_a_keyboard_is_told_of_no_keys(one: Visit) -> None:
    phone = one.begin("bob", viewport=PHONE, has_touch=True, is_mobile=True)
    expect(phone.locator("#use-keys")).to_be_hidden()
    expect(one.begin("ada").locator("#use-keys")).to_be_visible()
    one.end()


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
def test_axe_finds_nothing(one: Visit, theme: str, viewport: dict[str, int]) -> None:
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


def test_a_screen_reader_is_told_what_is_what(one: Visit) -> None:
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
