"""Pages to bytes: the same standings, rules and facts give the same files, byte for byte."""

from collections.abc import Mapping
from dataclasses import fields
from importlib import resources
from typing import Any

from heldout.board.spec import BoardSpec
from heldout.board.standings import Standings
from heldout.site.entries import EntryPage, make_entry_page
from heldout.site.exports import format_csv, format_json
from heldout.site.extras import need
from heldout.site.facts import BoardFacts
from heldout.site.pages import BoardPage, make_board_page
from heldout.site.rows import make_columns, public_rows
from heldout.site.wording import file_stem, tie

__all__ = ["STATIC", "TEMPLATES", "render_board"]

TEMPLATES: Mapping[type, str] = {BoardPage: "board.html", EntryPage: "entry.html"}
"""The template of each page; it receives the page's fields by their names."""

STATIC = ("heldout.css", "heldout.js")
"""Files that every page links to."""


def render_board(standings: Standings, spec: BoardSpec, facts: BoardFacts) -> dict[str, bytes]:
    """Every file of `leaderboard/`.

    Args:
        standings: the rows of the day; what an embargo hides is withheld whatever they hold.
        spec: the board's rules.
        facts: its sizes and addresses.

    Returns:
        path from the board's root -> bytes; files of `leaderboard/` that are not in it are old.

    Raises:
        SetupError: the `site` extra is not installed.
    """
    environment = _environment()
    rows, columns = public_rows(standings), make_columns(spec)
    files = {
        "index.html": _render(environment, make_board_page(standings, spec, facts)),
        "leaderboard.csv": format_csv(standings, spec),
        "leaderboard.json": format_json(standings, spec),
    }
    for row in rows:
        page = make_entry_page(row, rows, columns, standings=standings, spec=spec, facts=facts)
        files[f"entries/{file_stem(row.id)}.html"] = _render(environment, page)
    for name in STATIC:
        files[f"static/{name}"] = _read("static", name)
    return {f"leaderboard/{path}": data for path, data in files.items()}


def _environment() -> Any:
    jinja2 = need("jinja2")
    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(lambda name: _read("templates", name).decode()),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["tie"] = tie
    return environment


def _render(environment: Any, page: BoardPage | EntryPage) -> bytes:
    template = environment.get_template(TEMPLATES[type(page)])
    text: str = template.render({field.name: getattr(page, field.name) for field in fields(page)})
    return text.encode()


def _read(folder: str, name: str) -> bytes:
    return resources.files("heldout.site").joinpath(folder, name).read_bytes()
