"""The page in Chromium, from a file: address: with and without its script, wide and narrow."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from certain import sure
from playwright.sync_api import Browser, Page, expect

import chromium
from chromium import AXE, SCREENS

pytestmark = pytest.mark.browser
browser = chromium.browser

SAMPLES = Path(__file__).with_name("sample_boards.py")
PAPER = {"light": "rgb(252, 252, 250)", "dark": "rgb(21, 24, 27)"}
PAGES = ("busy", "empty", "one", "hostile", "crowded", "trusted", "announced")


@pytest.fixture(scope="module")
def boards(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("boards")
    subprocess.run([sys.executable, str(SAMPLES), str(out)], check=True)
    return out


@pytest.fixture
def visit(browser: Browser, boards: Path) -> Iterator[Callable[..., Page]]:
    """Opens pages; at the end of the test none may have complained, called out, popped up."""
    complaints: list[str] = []
    contexts = []

    def watch(page: Page) -> None:
        page.on("console", lambda m: complaints.append(f"console {m.type}: {m.text}"))
        page.on("pageerror", lambda error: complaints.append(f"error: {error}"))
        page.on("dialog", lambda dialog: complaints.append(f"dialog: {dialog.message}"))
        page.on("requestfailed", lambda r: complaints.append(f"failed: {r.url}"))
        page.on("request", lambda r: _note_foreign(r.url, boards, complaints))

    def open_page(path: str = "busy/leaderboard/index.html", **options: Any) -> Page:
        width = options.pop("width", 1280)
        context = browser.new_context(viewport={"width": width, "height": 900}, **options)
        contexts.append(context)
        page = context.new_page()
        watch(page)
        page.goto(boards.as_uri() + "/" + path)
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert complaints == []


def _note_foreign(url: str, boards: Path, complaints: list[str]) -> None:
    if not url.startswith((boards.as_uri(), "data:image/svg+xml,")):
        complaints.append(f"request: {url}")


def entries_of(boards: Path, name: str) -> list[str]:
    pages = sorted((boards / name / "leaderboard" / "entries").glob("*.html"))
    return [str(page.relative_to(boards)) for page in pages]


def column(page: Page, css: str) -> list[str]:
    cells = page.locator(f"#board tbody tr:visible {css}")
    return [str(value) for value in cells.evaluate_all("all => all.map(c => c.dataset.value)")]


def head(page: Page, words: str) -> Any:
    return page.locator("#board thead th", has_text=words)


def test_styles_and_script_work_from_a_file(visit: Callable[..., Page]) -> None:
    for theme, colour in PAPER.items():
        page = visit(color_scheme=theme)
        assert page.locator("body").evaluate("e => getComputedStyle(e).backgroundColor") == colour
        expect(page.locator("#controls")).to_be_visible()


@pytest.fixture
def page(visit: Callable[..., Page]) -> Page:
    return visit()


def test_sorting_keeps_ranks_and_puts_missing_last(page: Page) -> None:
    official = column(page, ".rank")
    dev = "td[data-label='dev RR@10']"
    ranks = dict(zip(column(page, ".system"), official, strict=True))
    for order, sign in (("descending", -1), ("ascending", 1)):
        head(page, "dev").get_by_role("button").click()
        *values, last = column(page, dev)
        assert last == ""
        numbers = [sign * float(value) for value in values]
        assert numbers == sorted(numbers)
        assert head(page, "dev").get_attribute("aria-sort") == order
        expect(page.locator("#note")).to_contain_text("ranks follow eval RR@10")
        shown = zip(column(page, ".system"), column(page, ".rank"), strict=True)
        assert sum(ranks[system] == rank for system, rank in shown) > 40
    head(page, "dev").get_by_role("button").click()
    assert column(page, ".rank") == official
    expect(page.locator("#note")).to_have_text("")
    assert page.locator("th[aria-sort]").count() == 0


@pytest.mark.slow
def test_costs_take_the_place_of_the_other_columns(visit: Callable[..., Page]) -> None:
    """By the style sheet alone: with or without the script."""
    for scripted in (True, False):
        page = visit(java_script_enabled=scripted)
        latency = head(page, "Latency")
        expect(latency).to_be_hidden()
        expect(head(page, "Date")).to_be_visible()
        page.get_by_label("Costs").check()
        expect(latency).to_be_visible()
        expect(head(page, "Date")).to_be_hidden()
        expect(head(page, "Rank")).to_be_visible()


@pytest.mark.slow
def test_a_cost_sorts_and_what_is_not_stated_comes_last(page: Page) -> None:
    page.get_by_label("Costs").check()
    for order in (False, True):
        head(page, "Parameters").get_by_role("button").click()
        cells = column(page, ".cost.number:nth-child(7)")
        values = [value for value in cells if value]
        assert values == sorted(values, key=float, reverse=order)
        assert "0" in values
        assert cells[len(values) :] == [""] * (len(cells) - len(values)) != []
    assert "columns=costs" in page.evaluate("location.hash")


@pytest.mark.slow
def test_the_address_keeps_the_state(page: Page) -> None:
    head(page, "Date").get_by_role("button").click()
    page.locator("#filter").fill("lantern")
    page.locator("#type").select_option("full ranking")
    before = column(page, ".system")
    address = page.evaluate("location.hash")
    assert address == "#q=lantern&type=full+ranking&sort=date&order=descending"
    page.reload()
    assert column(page, ".system") == before
    assert page.locator("#filter").input_value() == "lantern"
    assert page.locator("#type").input_value() == "full ranking"


@pytest.mark.slow
@pytest.mark.parametrize(
    "address", ["#sort=nothing&order=up", "#type=nothing", "#=&&=", "#rules", "#q=%E0%A4", "#sort="]
)
def test_a_strange_address_shows_everything(visit: Callable[..., Page], address: str) -> None:
    page = visit(f"busy/leaderboard/index.html{address}")
    if "q=" not in address:
        assert page.locator("#board tbody tr:visible").count() == 46
    assert page.locator("th[aria-sort]").count() == 0


def test_an_address_is_text_and_never_markup(visit: Callable[..., Page]) -> None:
    attack = "%3Cimg%20src%3Dx%20onerror%3Dalert(1)%3E"
    page = visit(f"busy/leaderboard/index.html#q={attack}")
    expect(page.locator("#note")).to_contain_text("No row matches “<img src=x onerror=alert(1)>”")
    assert page.locator("img").count() == 0


@pytest.mark.slow
def test_no_match_names_the_filter_and_clears(page: Page) -> None:
    page.locator("#filter").fill("zebra")
    page.locator("#type").select_option("reranking")
    expect(page.locator("#note")).to_contain_text("No row matches “zebra” and type reranking.")
    page.get_by_role("button", name="Clear the filter").click()
    assert page.locator("#board tbody tr:visible").count() == 46
    assert page.locator("#filter").input_value() == ""
    assert page.evaluate("location.hash") == ""


@pytest.mark.slow
def test_the_filter_ignores_case_and_accents(page: Page) -> None:
    page.locator("#filter").fill("GRUPO recuperacion")
    assert page.locator("#board tbody tr:visible").count() > 0
    expect(page.locator("#note")).to_contain_text("ranks are those of the whole board")


@pytest.mark.slow
def test_the_filter_marks_its_entries_in_the_charts(visit: Callable[..., Page]) -> None:
    page = visit("busy/leaderboard/index.html#q=sparse")
    rows = page.locator("#board tbody tr:visible").evaluate_all("all => all.map(e => e.dataset.id)")
    marks = page.locator(".progress .wide .match")
    assert sorted(marks.evaluate_all("all => all.map(e => e.dataset.entry)")) == sorted(rows)
    expect(page.locator(".progress .match-key")).to_have_text("matches “sparse”")
    page.locator("#filter").fill("")
    assert page.locator(".match, .no-match, .match-key:visible").count() == 0


@pytest.mark.slow
def test_a_filter_finds_the_entries_of_every_page(visit: Callable[..., Page]) -> None:
    page = visit("many/leaderboard/index.html")
    assert page.locator("#board tbody tr").count() == 100
    page.locator("#filter").fill("tf-idf")
    expect(page.locator("#board tbody tr:visible .name")).to_have_text("TF-IDF, cosine")
    expect(page.locator("#note")).to_contain_text("1 of 202 rows match")
    expect(page.locator("#pages")).to_be_hidden()
    page.get_by_role("button", name="Clear the filter").click()
    assert page.locator("#board tbody tr").count() == 100
    expect(page.locator("#pages")).to_be_visible()


@pytest.mark.slow
def test_a_column_sorts_the_rows_of_every_page(visit: Callable[..., Page]) -> None:
    page = visit("many/leaderboard/index.html#sort=date&order=ascending")
    expect(page.locator("#board tbody tr")).to_have_count(202)
    dates = column(page, ".date")
    assert dates == sorted(dates)


@pytest.mark.slow
def test_a_link_to_a_row_of_another_page_finds_it(visit: Callable[..., Page]) -> None:
    page = visit("many/leaderboard/index.html#entry-tf-idf")
    expect(page.locator("#board tbody tr:visible .name")).to_have_text("TF-IDF, cosine")


SCREENS_OF_READERS = {(390, 844): 844 - 160, (768, 1024): 500, (1440, 900): 300}
"""Width and height of a screen -> how far down the table's first row, or the table, may begin."""


@pytest.mark.slow
@pytest.mark.parametrize("board", ["trusted", "many"])
def test_the_table_is_on_the_first_screen(visit: Callable[..., Page], board: str) -> None:
    for (width, height), most in SCREENS_OF_READERS.items():
        page = visit(f"{board}/leaderboard/index.html", width=width)
        page.set_viewport_size({"width": width, "height": height})
        second = page.locator("#board tbody tr").nth(1)
        box = sure(second.bounding_box())
        assert box["y"] + box["height"] <= height
        assert box_of(page, "#board")["top"] <= most
    assert box_of(page, "#board tbody tr")["height"] <= 34


def test_without_script_the_page_says_the_same(visit: Callable[..., Page]) -> None:
    plain = visit(java_script_enabled=False)
    scripted = visit()
    expect(plain.locator("#controls")).to_be_hidden()
    assert plain.locator("thead button").count() == 0
    texts = [p.locator("#board tbody").inner_text() for p in (plain, scripted)]
    assert texts[0] == texts[1]
    expect(plain.locator(".figures .wide svg").first).to_be_visible()


def test_hostile_boards_run_nothing(visit: Callable[..., Page], boards: Path) -> None:
    page = visit("hostile/leaderboard/index.html")
    assert page.title() == "Stdlib Docs"
    for path in entries_of(boards, "hostile"):
        page.goto(boards.as_uri() + "/" + path)
        assert page.title().endswith("\u2013 Stdlib Docs")
        assert page.locator("script").count() == page.locator("main > h1").count() == 1


@pytest.mark.slow
@pytest.mark.parametrize("width", [320, 390, 740, 866, 1024])
def test_nothing_scrolls_sideways(visit: Callable[..., Page], boards: Path, width: int) -> None:
    page = visit(width=width)
    paths = [f"{name}/leaderboard/index.html" for name in PAGES]
    paths.append("seasons/leaderboard/seasons.html")
    for path in [*paths, *entries_of(boards, "hostile"), *entries_of(boards, "busy")[:4]]:
        page.goto(boards.as_uri() + "/" + path)
        assert page.evaluate("document.documentElement.scrollWidth") <= width, path
    for name in ("busy", "hostile"):
        page.goto(f"{boards.as_uri()}/{name}/leaderboard/index.html#columns=costs")
        assert page.evaluate("document.documentElement.scrollWidth") <= width, name


@pytest.mark.slow
@SCREENS
def test_axe_finds_nothing(
    visit: Callable[..., Page], boards: Path, width: int, theme: str, rules: dict[str, Any]
) -> None:
    page = visit(width=width, color_scheme=theme)
    entries = [entries_of(boards, "busy")[n] for n in (20, -3)]
    names = ("busy", "empty", "hostile", "trusted", "announced")
    indexes = [f"{name}/leaderboard/index.html" for name in names]
    entries.append(entries_of(boards, "trusted")[2])
    entries.append("seasons/leaderboard/seasons.html")
    ways = ("#q=lantern&sort=dev&order=ascending", "#columns=costs&sort=parameters&order=ascending")
    indexes += [f"busy/leaderboard/index.html{way}" for way in ways]
    more = ("crowded/leaderboard/index", "many/leaderboard/index", "many/leaderboard/rows-2")
    for path in [*indexes, *entries, *(f"{one}.html" for one in more)]:
        page.goto(boards.as_uri() + "/" + path)
        page.locator("details").evaluate_all("all => all.forEach(d => d.open = true)")
        results = Axe().run(page, options=rules)
        assert len(results.response["passes"]) >= (15 if rules is AXE else 1), path
        assert results.violations_count == 0, f"{path}\n{results.generate_report()}"


@pytest.mark.slow
def test_a_phone_keeps_the_table_a_table(visit: Callable[..., Page]) -> None:
    page = visit(width=390)
    table = page.get_by_role("table", name="Entries by eval RR@10")
    assert table.get_by_role("row").count() == 47
    assert table.get_by_role("rowheader").count() == 46
    assert table.get_by_role("columnheader").count() == 7
    page.get_by_label("Costs").check()
    assert table.get_by_role("columnheader").count() == 9


@pytest.mark.slow
def test_the_keyboard_is_enough(page: Page) -> None:
    page.keyboard.press("Tab")
    skip = page.get_by_role("link", name="Skip to the content")
    expect(skip).to_be_focused()
    assert sure(skip.bounding_box())["x"] >= 0
    head(page, "Date").get_by_role("button").focus()
    page.keyboard.press("Enter")
    assert head(page, "Date").get_attribute("aria-sort") == "descending"


@pytest.mark.slow
def test_an_embargo_ends_on_a_page_that_nobody_rebuilt(page: Page) -> None:
    row = page.locator("[data-embargo-until='2027-05-20']")
    for day, words in ((19, "Anonymous until 20 May 2027"), (20, "reveal due since 20 May 2027")):
        page.clock.set_fixed_time(datetime(2027, 5, day, 12, tzinfo=UTC))
        page.reload()
        expect(row).to_contain_text(words)


def box_of(page: Page, css: str) -> dict[str, float]:
    script = "e => e.getBoundingClientRect().toJSON()"
    box: dict[str, float] = page.locator(css).first.evaluate(script)
    return box


@pytest.mark.slow
@pytest.mark.parametrize("board", ["busy", "crowded"])
def test_headings_stay_in_sight_and_cover_no_focus(visit: Callable[..., Page], board: str) -> None:
    page = visit(f"{board}/leaderboard/index.html")
    page.locator("#board tbody .name").nth(30).focus()
    for _ in range(25):
        page.keyboard.press("Shift+Tab")
        assert box_of(page, ":focus")["top"] >= box_of(page, "#board thead th")["bottom"]
    assert 0 <= box_of(page, "#board thead th")["top"] < 1
    top = "e => document.elementFromPoint(300, 2).closest('th, td')?.tagName"
    assert page.locator("body").evaluate(top) == "TH"


@pytest.mark.slow
def test_a_row_that_is_linked_to_is_not_under_the_headings(visit: Callable[..., Page]) -> None:
    page = visit("busy/leaderboard/index.html")
    row = page.locator("#board tbody tr").nth(30).get_attribute("id")
    page.goto(f"{page.url}#{row}")
    assert box_of(page, "tr:target")["top"] >= box_of(page, "#board thead th")["bottom"]


@pytest.mark.slow
@pytest.mark.parametrize("board", ["busy", "crowded", "hostile", "many", "one"])
@pytest.mark.parametrize("width", [390, 1280])
def test_no_name_in_a_chart_on_another(visit: Callable[..., Page], board: str, width: int) -> None:
    page = visit(f"{board}/leaderboard/index.html", width=width)
    chart = page.locator(f".progress .{'narrow' if width < 400 else 'wide'} svg")
    found = chart.evaluate(
        """svg => {
          const boxes = css => [...svg.querySelectorAll(css)].map(e => [
            e.textContent, e.getBoundingClientRect().toJSON()]);
          const scale = svg.getBoundingClientRect().width / svg.viewBox.baseVal.width;
          return {names: boxes("text"), marks: boxes("path:has(title)"), scale};
        }"""
    )
    assert len(found["names"]) > 4
    assert found["marks"]
    names = [(text, *inner(box, found["scale"])) for text, box in found["names"]]
    marks = [(text, *inner(box, found["scale"])) for text, box in found["marks"]]
    for n, name in enumerate(names):
        for other in [*names[n + 1 :], *marks]:
            assert not overlap(name[1:], other[1:]), (name, other)


def inner(box: dict[str, float], scale: float) -> tuple[float, float, float, float]:
    """A box without the 3 pixels that fonts leave above and below, and marks' white edges."""
    edge = min(3 * scale, box["height"] / 4)
    return box["left"], box["top"] + edge, box["right"], box["bottom"] - edge


def overlap(a: tuple[float, ...], b: tuple[float, ...]) -> bool:
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]
