"""A long table: pages that need no script, and the same rows for the script of the first."""

import re
from dataclasses import replace
from datetime import timedelta

import pytest
from page_documents import Document
from sample_boards import BOARDS, busy, facts, spec

from heldout.board.site import render
from heldout.board.site.pages import make_board_page
from heldout.board.site.render import render_board
from heldout.board.site.rows import make_table
from heldout.board.site.rules import BoardFacts
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
    first = {"index.html": render._render(make_board_page(board, spec(), facts()))}
    rows = render_rows(board)
    return first | {path: data for path, data in rows.items() if path.endswith(".html")}


def render_rows(
    board: Standings,
    told: BoardFacts = FACTS,
    *,
    same: render.Same = lambda _path, _made_of: False,
) -> dict[str, bytes]:
    """How its table goes on."""
    return render._render_rows(make_table(board, spec()), board, spec(), told, same)


def test_a_page_of_rows_changes_with_its_own_rows_alone() -> None:
    board, asked = busy(400), dict[str, bytes]()

    def note(path: str, made_of: bytes) -> bool:
        return asked.setdefault(path, made_of) == made_of

    before = render_rows(board)
    assert not render_rows(board, same=note)  # asks for each, and learns it
    assert asked.keys() == {f"leaderboard/{path}" for path in before}
    last = board.rows[-1]
    more = replace(last, id="one-more", rank=(last.rank or 0) + 1)
    later = replace(board, rows=(*board.rows, more), as_of=board.as_of + timedelta(days=1))
    told = replace(facts(), events=99, head=Digest("f" * 64))
    after = render_rows(later, told, same=note)
    assert after.keys() == {path for path in before if path.startswith("rows-5")}
    whole = render_rows(later, told)
    assert {path for path, data in whole.items() if before[path] != data} == after.keys()
