"""A long table: pages that need no script, and the same rows for the script of the first."""

import re
from dataclasses import replace

import pytest
from page_documents import Document
from sample_boards import BOARDS, busy, facts, row, spec, standings

from heldout.board.site import render
from heldout.board.site.pages import make_board_page, make_rows_pages
from heldout.board.site.render import render_board
from heldout.board.standings.standings import Standings

MANY = {
    path.removeprefix("leaderboard/"): data
    for path, data in render_board(BOARDS["many"], spec(), facts()).items()
}
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


def test_rows_without_a_rank_are_cut_too() -> None:
    held = tuple(
        row("", days=n, id=f"held-{n:03}", rank=None, scores={}, unranked="not above 0.4")
        for n in range(130)
    )
    board = replace(busy(40), unranked=held)
    files = render_board(board, spec(), facts())
    found = [ids(files[f"leaderboard/{one}"]) for one in PAGES[:2]]
    assert [*found[0], *found[1]] == [r.id for r in board.every]
    assert (len(found[0]), len(found[1])) == (100, 72)


@pytest.mark.parametrize("size", [150, 151, 2_000])
def test_no_page_of_the_table_is_over_300_kb_before_charts(size: int) -> None:
    files = render_table_pages(busy(size - 2))
    weights = {path: len(re.sub(rb"<svg.*?</svg>", b"", data)) for path, data in files.items()}
    assert max(weights.values()) <= MOST, weights
    assert sum(len(ids(data)) for data in files.values()) == size


def render_table_pages(board: Standings) -> dict[str, bytes]:
    """The pages of the table alone: the entries' own would take most of the time."""
    pages = make_rows_pages(board, spec(), facts())
    first = {"index.html": render._render(make_board_page(board, spec(), facts()))}
    return first | {f"{n}": render._render(page) for n, page in enumerate(pages, 2)}


def test_a_short_table_has_no_other_page() -> None:
    files = render_board(standings([row("0.4", days=1)]), spec(), facts())
    assert not [path for path in files if "rows-" in path]
    assert 'id="pages"' not in files["leaderboard/index.html"].decode()
