"""Templates and what they receive: exactly their data, all of it, escaped."""

import re
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from typing import get_origin, get_type_hints

import pytest
from jinja2 import meta
from page_documents import sources

from heldout.board.log.event_fields import EVENTS, BoardFields
from heldout.board.log.events import KINDS
from heldout.board.site.entries import HISTORY_WORDS, EntryPage
from heldout.board.site.pages import TEMPLATES, BoardPage, RowsPage
from heldout.board.site.rows import TableRow, read_template

PAGES = (BoardPage, EntryPage, RowsPage)


@pytest.mark.parametrize("page", PAGES)
def test_a_template_receives_exactly_its_page(page: type[BoardPage | EntryPage | RowsPage]) -> None:
    environment = read_template(TEMPLATES[page]).environment
    used: set[str] = set()
    ours = re.compile(r"macro (\w+)|set ([A-Z]+) ")
    macros = {a or b for text in sources().values() for a, b in ours.findall(text)}
    for name in (TEMPLATES[page], "base.html"):
        used |= meta.find_undeclared_variables(environment.parse(sources()[name]))
    assert used - macros == {field.name for field in fields(page)}


def _nested(page: type) -> Iterator[tuple[type, str]]:
    hints = get_type_hints(page).values()
    for hint in (one for one in hints if get_origin(one) is not Callable):
        for kind in (hint, *getattr(hint, "__args__", ())):
            own = getattr(kind, "__module__", "").startswith("heldout.board.site")
            if own and is_dataclass(kind) and isinstance(kind, type):  # not what the log has
                yield from ((kind, name) for name in _names(kind))
                yield from () if kind is TableRow else _nested(kind)


def _names(kind: type) -> Iterator[str]:
    """What a template may read; a line of the table says it out of a row of the standings."""
    if kind is TableRow:
        yield from (name for name, one in vars(kind).items() if isinstance(one, property))
        yield from ("star", "span", "lead_end")
    elif is_dataclass(kind):
        yield from (field.name for field in fields(kind))


@pytest.mark.parametrize("page", PAGES)
def test_no_field_of_a_page_goes_unread(page: type) -> None:
    text = "".join(sources().values())
    unread = {f"{kind.__name__}.{name}" for kind, name in _nested(page) if f".{name}" not in text}
    # `pieces`, `wide` and `narrow` read them for the template, and charts the last two.
    python = {"ViewColumn.measure", "Figure.chart", "Figure.width", "EntryColumn.heading"}
    assert unread <= python | {"EntryColumn.axis", "EntryColumn.caveat"}


def test_only_the_charts_are_not_escaped() -> None:
    text = "".join(sources().values())
    assert re.findall(r"\S+\|safe", text) == ["figure.wide|safe", "figure.narrow|safe"]
    assert "autoescape" not in text


def test_every_kind_of_event_has_words() -> None:
    about_board = {kind for kind, one in EVENTS.items() if issubclass(one.fields, BoardFields)}
    of_its_entries = {"ended-season"}  # it is in the history of each entry that it scores
    assert set(HISTORY_WORDS) == set(KINDS) - about_board | of_its_entries
