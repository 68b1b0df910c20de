"""The page of a board in every state."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import page_documents
import pytest
from hypothesis import given
from hypothesis import strategies as st
from page_documents import Document, render_page
from sample_boards import RULES, baseline, busy, facts, row, spec, standings

from heldout.board.rules.spec import Baselines
from heldout.board.site.pages import make_board_page
from heldout.board.site.render import render_board
from heldout.board.site.rows import make_columns

shown = page_documents.shown


def test_the_empty_board_shows_baseline_day_and_commands(shown: Callable[[str], Document]) -> None:
    document = shown("empty/index.html")
    assert "No entries yet" in document.text
    assert document.text.count("heldout submit ID") == 2
    assert not [tag for tag, _ in document.elements if tag == "figure"]


def test_a_board_without_any_row_has_no_table() -> None:
    document = render_page(make_board_page(standings([]), spec(), facts()))
    assert not [tag for tag, _ in document.elements if tag == "table"]


def test_a_baseline_has_no_rank_and_no_trophy() -> None:
    page = make_board_page(busy(), spec(), facts())
    base = next(r for r in page.table.rows if r.baseline)
    assert base.rank is None
    assert not base.trophy
    document = render_page(page)
    assert document.text.count("\u2013no rank") == 2
    trophies = sum(r.trophy for r in page.table.rows)
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


def heads(document: Document) -> list[str | None]:
    """Classes of the headings; those of costs are in test_site_costs."""
    names = [a.get("class") for tag, a in document.elements if a.get("role") == "columnheader"]
    return [name for name in names if not (name or "").startswith("cost")]


def score_labels(document: Document) -> set[str | None]:
    labelled = [a for _, a in document.elements if "data-label" in a]
    return {a["data-label"] for a in labelled if a["class"] == "score"}


def test_a_column_that_is_empty_in_every_row_is_not_shown(
    shown: Callable[[str], Document],
) -> None:
    score = "score official"
    assert heads(shown("busy/index.html")) == [
        *("rank", score, "system", "links", "score", "type", "date")
    ]
    assert heads(shown("crowded/index.html")) == [
        *("rank", score, "system", "score", "score", "type", "date")
    ]
    bare = standings([row("0.4", days=1, type=""), row("0.3", days=2, type="")])
    document = render_page(make_board_page(bare, spec(), facts()))
    assert heads(document) == ["rank", score, "system", "date"]
    assert "dev RR@10" not in document.text


@pytest.mark.parametrize("name", ["paper", "code"])
def test_the_column_of_links_is_named_for_what_it_holds(name: str) -> None:
    link: Any = {name: "https://papers.example.org/1"}
    page = make_board_page(standings([row("0.4", days=1, **link), baseline()]), spec(), facts())
    assert page.table.links == name
    assert f"{name.capitalize()}\n" in render_page(page).text


def test_one_query_set_is_named_once_and_not_in_every_column(
    shown: Callable[[str], Document],
) -> None:
    document = shown("crowded/index.html")
    assert score_labels(document) == {"P@5", "RBP(p=0.5,max_rel=2)"}
    assert document.text.count("(eval)") == 1
    assert "eval nDCG@10" not in document.text
    both = shown("busy/index.html")
    assert score_labels(both) == {"dev RR@10"}


def test_a_wide_measure_may_break_between_its_parts() -> None:
    pieces = [column.pieces for column in make_columns(RULES["crowded"])]
    assert pieces == [("nDCG@10",), ("P@5",), ("RBP", "(p=0.5,", "max_rel=2)")]


@given(st.text("R(p=0.5,) @", min_size=1))
def test_the_pieces_of_a_measure_are_the_measure(text: str) -> None:
    column = replace(make_columns(spec())[0], measure=text)
    assert "".join(column.pieces) == text


def test_progress_is_linked_where_there_is_any(shown: Callable[[str], Document]) -> None:
    assert "#progress" in shown("busy/index.html").links
    assert "#progress" not in shown("empty/index.html").links


def test_the_key_speaks_of_baselines_only_where_there_are_some(
    shown: Callable[[str], Document],
) -> None:
    said = "Baselines count, whatever their dates."
    assert said in shown("busy/index.html").text
    document = shown("crowded/index.html")
    assert "strictly above every earlier entry." in document.text
    assert said not in document.text
    free = spec(baselines=Baselines(bar=False))
    page = make_board_page(busy(), free, facts())
    assert said not in render_page(page).text


def test_sections_come_in_their_order(shown: Callable[[str], Document]) -> None:
    ids = [a["id"] for tag, a in shown("busy/index.html").elements if tag == "h2"]
    assert ids == [
        *("standing-title", "table-title", "progress"),
        *("task", "take-part", "rules", "trust", "downloads"),
    ]


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
