"""A long table: pages that need no script, and the same rows for the script of the first."""

import re
from dataclasses import replace
from datetime import timedelta

import pytest
from page_documents import Document
from sample_boards import BOARDS, busy, facts, spec

from heldout.board.site import pages
from heldout.board.site.pages import make_board_page, render_board
from heldout.board.site.rows import make_table
from heldout.board.site.sections import BoardFacts
from heldout.board.standings.standings import Standings
from heldout.ids import Digest

MANY = {
    path.removeprefix("leaderboard/"): data
    for path, data in render_board(BOARDS["many"], spec(), facts()).items()
}
FACTS = facts()
PAGES = ("index.html", "rows-2.html", "rows-3.html")
MOST = 300_000


def ids(data: bytes) -> list[str]:
    """Of the rows, in their order."""
    return [a["data-id"] or "" for _, a in Document(data).elements if "data-id" in a]


def test_every_row_is_on_one_page_and_in_its_order() -> None:
    assert [name for one in PAGES for name in ids(MANY[one])] == [r.id for r in BOARDS["many"].rows]
    assert [len(ids(MANY[one])) for one in PAGES] == [100, 100, 2]
    assert "rows-4.html" not in MANY


def test_every_page_links_to_all_pages() -> None:
    for one in PAGES:
        links = [link for link in Document(MANY[one]).links if link in PAGES]
        assert list(dict.fromkeys(links[-3:])) == list(PAGES)


def test_the_script_gets_the_rows_of_the_page_as_they_are() -> None:
    for number in (2, 3):
        page = MANY[f"rows-{number}.html"].decode()
        rows = re.search(r"<tbody[^>]*>\n(.*)</tbody>", page, re.DOTALL)
        script = MANY[f"rows-{number}.js"].decode()
        assert rows is not None
        assert script.startswith(f"heldoutRows({number}, ")
        written = re.sub(r"\\(.)", lambda m: {"n": "\n"}.get(m[1], m[1]), script)
        assert rows[1] in written


def test_an_entry_leads_back_to_the_page_with_its_row() -> None:
    for one in PAGES:
        name = ids(MANY[one])[-1]
        assert f"../{one}#entry-{name}" in Document(MANY[f"entries/{name}.html"]).links


@pytest.mark.slow
@pytest.mark.parametrize("size", [150, 151, 2_000])
def test_no_page_of_the_table_is_over_300_kb_before_charts(size: int) -> None:
    files = render_table_pages(busy(size - 2))
    weights = {path: len(re.sub(rb"<svg.*?</svg>", b"", data)) for path, data in files.items()}
    assert max(weights.values()) <= MOST, weights
    assert sum(len(ids(data)) for data in files.values()) == size


def render_table_pages(board: Standings) -> dict[str, bytes]:
    """The pages of the table alone: the entries' own would take most of the time."""
    first = {"index.html": pages._render(make_board_page(board, spec(), facts()))}
    rows = (item for one in list_rows(board) for item in one.make().items())
    return first | {path: data for path, data in rows if path.endswith(".html")}


def list_rows(board: Standings, made_for: BoardFacts = FACTS) -> list[pages.PageSource]:
    """How its table goes on."""
    return [*pages._list_rows(make_table(board, spec()), board, spec(), made_for)]


def test_a_page_of_rows_changes_with_its_own_rows_alone() -> None:
    board = busy(400)
    last = board.rows[-1]
    more = replace(last, id="one-more", rank=(last.rank or 0) + 1)
    later = replace(board, rows=(*board.rows, more), as_of=board.as_of + timedelta(days=1))
    facts_then = replace(facts(), events=99, head=Digest("f" * 64))
    pairs = [*zip(list_rows(board), list_rows(later, facts_then), strict=True)]
    assert [one.digest for one, _ in pairs] == [one.digest for one in list_rows(board)]
    changed = [new.paths for old, new in pairs if old.digest != new.digest]
    assert changed == [("leaderboard/rows-5.html", "leaderboard/rows-5.js")]
    assert [new.paths for old, new in pairs if old.make() != new.make()] == changed
