"""The page of a board in every state."""

from collections.abc import Callable

import page_documents
import pytest
from page_documents import Document, render_page
from sample_boards import baseline, busy, facts, row, spec, standings

from heldout.board.site.pages import make_board_page, render_board

shown = page_documents.shown


def test_the_empty_board_shows_baseline_day_and_commands(shown: Callable[[str], Document]) -> None:
    document = shown("empty/index.html")
    assert "No entries yet" in document.text
    assert document.text.count("heldout submit ID") == 2
    assert not [tag for tag, _ in document.elements if tag == "figure"]


def test_a_baseline_has_no_rank_and_no_trophy() -> None:
    page = make_board_page(busy(), spec(), facts())
    base = next(r for r in page.table.rows if r.row.baseline)
    assert base.rank is None
    assert not base.row.trophy
    document = render_page(page)
    assert document.text.count("\u2013no rank") == 2
    trophies = sum(r.row.trophy for r in page.table.rows)
    assert document.text.count(" best when submitted") == trophies + 2  # and two keys


def test_ranks_and_order_are_those_of_the_standings() -> None:
    page = make_board_page(busy(), spec(), facts())
    assert [r.id for r in page.table.rows] == [r.id for r in busy().rows]
    assert [r.rank for r in page.table.rows if r.rank] == list(range(1, 45))


def test_a_rank_range_is_shown_only_where_it_is_given() -> None:
    with_range = standings([row("0.4", days=1, rank_low=1, rank_high=3), baseline()])
    text = "".join(render_page(make_board_page(with_range, spec(), facts())).text.split())
    assert "range1\u20133" in text
    assert "range1\u2013" not in render_page(make_board_page(busy(), spec(), facts())).text


@pytest.mark.parametrize("path", ["busy/index.html", "empty/index.html", "hostile/index.html"])
def test_ids_are_unique_and_fragments_exist(shown: Callable[[str], Document], path: str) -> None:
    document = shown(path)
    ids = [a["id"] for _, a in document.elements if "id" in a]
    assert len(ids) == len(set(ids))
    assert {link[1:] for link in document.links if link.startswith("#")} <= set(ids)


def test_every_page_that_is_linked_is_made() -> None:
    files = render_board(busy(148), spec(), facts())
    document = Document(files["leaderboard/index.html"])
    linked = {link for link in document.links if link.startswith(("entries/", "leaderboard."))}
    assert {f"leaderboard/{link}" for link in linked} <= set(files)
    assert len([link for link in linked if link.startswith("entries/")]) == 150
