"""The page of failures in Chromium, from a file: list, filters, rankings, phone and dark, axe."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect

import chromium
from chromium import SCREENS
from heldout.analyses.outcomes.failures_of_runs import list_failures
from heldout.scoring.sources import find_compared
from heldout.trec.qrels import read_qrels
from heldout.trec.reading.sources import read_file

pytestmark = pytest.mark.browser
browser = chromium.browser

PHONE, *OTHERS = SCREENS.args[1]
QUERIES = 240
HOSTILE = "</script><img src=x onerror=alert(1)> \u202etxt"


@pytest.fixture(scope="module")
def page_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of 240 queries, A wins the first 80 and B the last 80; texts fill several chunks."""
    folder = tmp_path_factory.mktemp("failures & more")
    runs: dict[str, list[str]] = {"a": [], "b": []}
    for n in range(QUERIES):
        for name, rank in (("a", 1 + 4 * (n // 80)), ("b", 9 - 4 * (n // 80))):
            docs = [f"d{n}-{name}{place}" for place in range(1, 15)]
            docs[rank - 1] = f"d{n}-right"
            docs[11] = f"d{n}-both"
            runs[name] += [f"q{n} Q0 {doc} {i} {-i} t\n" for i, doc in enumerate(docs, 1)]
    for name, lines in runs.items():
        (folder / f"{name}.run").write_text("".join(lines))
    labels = (f"q{n} 0 d{n}-right 1\nq{n} 0 d{n}-a3 0\n" for n in range(QUERIES))
    (folder / "qrels").write_text("".join(labels))
    texts = {f"d{n}-right": f"The answer to question {n}. " + "More of it. " * 90
             for n in range(QUERIES)}  # fmt: skip
    queries = {f"q{n}": f"Quéstion number {n}?" for n in range(1, QUERIES)}
    queries["q3"] = texts["d3-right"] = HOSTILE
    found = list_failures(
        find_compared(str(folder / "a.run"), str(folder / "b.run")),
        read_file(read_qrels, folder / "qrels"),
        measure="RR@10",
        queries=queries,
        documents=texts,
        k=5,
    )
    found.write(folder / "out.html")
    return folder / "out.html"


@pytest.fixture
def visit(browser: Browser, page_file: Path) -> Iterator[Callable[..., Page]]:
    """Opens the page; at the end of the test it may not have complained or asked for others."""
    complaints: list[str] = []
    contexts = []
    own = page_file.parent.as_uri()

    def watch(page: Page) -> None:
        page.on("console", lambda m: complaints.append(f"console {m.type}: {m.text}"))
        page.on("pageerror", lambda error: complaints.append(f"error: {error}"))
        page.on("dialog", lambda dialog: complaints.append(f"dialog: {dialog.message}"))
        page.on("request", lambda r: complaints.append(r.url) if _foreign(r.url, own) else None)

    def open_page(address: str = "", **options: Any) -> Page:
        width = options.pop("width", 1280)
        context = browser.new_context(viewport={"width": width, "height": 900}, **options)
        contexts.append(context)
        page = context.new_page()
        watch(page)
        page.goto(page_file.as_uri() + address)
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert complaints == []


def _foreign(url: str, own: str) -> bool:
    return not url.startswith((own, "data:image/svg+xml,"))


def names(page: Page) -> list[str]:
    script = "all => all.map(one => one.dataset.query)"
    return [str(name) for name in page.locator("#list > li").evaluate_all(script)]


def query(page: Page, name: str) -> Any:
    return page.locator(f'#list > li[data-query="{name}"]')


def test_the_list_is_ordered_filtered_searched_and_its_state_is_in_the_address(
    visit: Callable[..., Page],
) -> None:
    page = visit()
    expect(page.locator(".lead")).to_contain_text("better on 80 queries, worse on 80 and equal on")
    expect(page.locator("#note")).to_have_text("240 queries.")
    assert len(names(page)) == 100
    assert set(names(page)[:80]) == {f"q{n}" for n in range(80)}
    page.get_by_role("button", name="Show 100 more of 140").press("Enter")
    assert len(set(names(page))) == 200
    page.get_by_label("Order").select_option("gains")
    assert set(names(page)[:80]) == {f"q{n}" for n in range(160, 240)}
    page.get_by_label("Found by").select_option("A alone")
    expect(page.locator("#note")).to_contain_text("80 of 240 queries")
    page.get_by_label("Search").fill("QUESTION 77")
    assert names(page) == ["q77"]
    page.reload()
    assert names(page) == ["q77"]
    assert page.evaluate("location.hash") == "#order=gains&outcome=A+alone&q=QUESTION+77"
    page.get_by_role("button", name="Clear the filters").click()
    assert len(names(page)) == 100


def test_a_query_opens_both_rankings_from_a_chunk_and_by_its_address(
    visit: Callable[..., Page], page_file: Path
) -> None:
    assert len([*page_file.parent.glob("out_files/*/chunk-*.js")]) > 1
    page = visit()
    query(page, "q7").get_by_role("button").press("Enter")
    opened = query(page, "q7").locator(".opened")
    expect(opened.locator(".ranking")).to_have_count(2)
    a, b = (opened.locator(".ranking").nth(side) for side in (0, 1))
    expect(a.locator(".document")).to_have_count(10)
    expect(a.locator(".document").first).to_contain_text("grade 1")
    expect(a.locator(".document").first).to_contain_text("d7-right")
    expect(a.locator(".document").first).to_contain_text("B: 9")
    expect(a.locator(".document").nth(2)).to_contain_text("grade 0")
    expect(a.locator(".document").nth(2)).to_contain_text("not in B")
    expect(b.locator(".document").nth(2)).to_contain_text("unjudged")
    text = a.locator(".passage").first
    before = text.evaluate("one => one.clientHeight")
    a.get_by_role("button", name="Whole text").click()
    assert text.evaluate("one => one.clientHeight") > before
    linked = visit(page.evaluate("location.hash") or "#none")
    expect(query(linked, "q7").locator(".document").first).to_be_visible()
    last = visit("#open=q239")
    expect(query(last, "q239").locator(".opened")).to_contain_text("d239-right")
    query(last, "q239").get_by_role("button").first.click()
    expect(query(last, "q239").locator(".opened")).to_have_count(0)
    assert last.evaluate("location.hash") == ""


def test_what_somebody_wrote_is_text(visit: Callable[..., Page]) -> None:
    page = visit("#open=q3")
    expect(query(page, "q3").locator(".passage").first).to_contain_text("<img src=x onerror=")
    expect(query(page, "q3").locator(".head-of-query")).to_contain_text("</script><img src=x")
    assert page.locator("img").count() == 0


@pytest.mark.parametrize("address", ["#order=up&outcome=x", "#open=nothing", "#=&", "#queries"])
def test_a_strange_address_shows_everything(visit: Callable[..., Page], address: str) -> None:
    assert len(names(visit(address))) == 100


def test_without_its_script_the_largest_losses_and_gains_can_be_read(
    visit: Callable[..., Page],
) -> None:
    page = visit(java_script_enabled=False)
    expect(page.locator("#still tbody tr")).to_have_count(100)
    expect(page.locator("#still")).to_contain_text("Quéstion number 17?")
    expect(page.locator("#controls")).to_be_hidden()


@pytest.mark.parametrize(
    SCREENS.args[0],
    [PHONE, *(pytest.param(*one.values, id=one.id, marks=pytest.mark.slow) for one in OTHERS)],
)
def test_axe_finds_nothing_and_nothing_leaves_the_screen(
    visit: Callable[..., Page], width: int, theme: str, rules: dict[str, Any]
) -> None:
    page = visit("#q=7%3F&open=q7", width=width, color_scheme=theme)
    assert 10 < len(names(page)) < 30  # a list of 100 says the same a hundred times
    expect(query(page, "q7").locator(".document")).to_have_count(20)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    found = Axe().run(page, options=rules)
    assert [one["id"] for one in found.response["violations"]] == []
