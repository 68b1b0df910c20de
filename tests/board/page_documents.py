"""Pages as a parser reads them.

A test module takes the fixture: `shown = page_documents.shown`.
"""

from collections.abc import Callable
from html.parser import HTMLParser
from importlib.resources import files

import pytest
from sample_boards import BOARDS, RULES, facts, spec, standings

from heldout.board.site.entries import EntryPage, list_entry_sources
from heldout.board.site.pages import BoardPage, _render, render_board
from heldout.board.standings.standings import Row


class Document(HTMLParser):
    """What a parser finds in a page: elements with attributes, and text outside of scripts."""

    def __init__(self, data: bytes) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(data.decode())
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data

    @property
    def skeleton(self) -> list[tuple[str, tuple[str, ...]]]:
        return [(tag, tuple(attributes)) for tag, attributes in self.elements]

    @property
    def links(self) -> list[str]:
        return [a["href"] or "" for tag, a in self.elements if tag == "a" and "href" in a]


@pytest.fixture(scope="module")
def shown() -> Callable[[str], Document]:
    names = ("busy", "hostile", "empty", "crowded")
    rendered = {name: render_board(BOARDS[name], RULES[name], facts()) for name in names}

    def find(path: str) -> Document:
        name, _, rest = path.partition("/")
        return Document(rendered[name][f"leaderboard/{rest}"])

    return find


def render_page(page: BoardPage | EntryPage) -> Document:
    return Document(_render(page))


def entry_page(one: Row) -> EntryPage:
    return next(list_entry_sources(standings([one]), spec=spec(), facts=facts())).make()


def sources() -> dict[str, str]:
    names = (
        "base.html",
        "board.html",
        "entry.html",
        "final.html",
        "macros.html",
        "ranking_trust.html",
        "rows.html",
        "seasons.html",
        "table.html",
    )
    folder = files("heldout.board.site") / "templates"
    return {name: (folder / name).read_text("utf-8") for name in names}
