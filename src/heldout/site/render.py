"""Pages to bytes: the same standings, rules and facts give the same files, byte for byte."""

from collections.abc import Mapping, Sequence
from dataclasses import fields
from functools import cache
from importlib import resources
from types import ModuleType
from typing import Any

from heldout.board.ranking.seasons import SeasonStandings
from heldout.board.ranking.standings import Standings
from heldout.board.rules.spec import BoardSpec
from heldout.charts.extras import need
from heldout.site.entries import EntryPage, make_entry_pages
from heldout.site.exports import format_csv, format_json
from heldout.site.facts import BoardFacts
from heldout.site.feed import FEED, format_feed
from heldout.site.listings import render_listings
from heldout.site.pages import BoardPage, make_board_page
from heldout.site.ranking_trust import figures_file, format_figures
from heldout.site.season_pages import SeasonsPage, make_seasons_page, season_files
from heldout.site.wording import file_stem, tie

__all__ = ["STATIC", "TEMPLATES", "render_board"]

TEMPLATES: Mapping[type, str] = {
    BoardPage: "board.html",
    EntryPage: "entry.html",
    SeasonsPage: "seasons.html",
}
"""The template of each page; it receives the page's fields by their names."""

STATIC = ("heldout.css", "heldout.js")
"""Files that every page links to."""


def render_board(
    standings: Standings,
    spec: BoardSpec,
    facts: BoardFacts,
    *,
    seasons: Sequence[SeasonStandings] = (),
) -> dict[str, bytes]:
    """Every file of `leaderboard/`.

    Args:
        standings: the rows of the day, of the latest season if there are any; what an embargo
            hides is withheld whatever they hold.
        spec: the board's rules.
        facts: its sizes and addresses.
        seasons: those that have begun, the latest first.

    Returns:
        path from the board's root -> bytes; files of `leaderboard/` that are not in it are old.

    Raises:
        SetupError: the `site` extra is not installed.
    """
    environment = _environment(need("jinja2"))
    here = spec.in_season(seasons[0].season) if seasons else spec
    files = {
        "index.html": _render(environment, make_board_page(standings, here, facts)),
        "leaderboard.csv": format_csv(standings, here),
        "leaderboard.json": format_json(standings, here),
        **render_listings(standings, here),
        **_figures_file(standings),
        **_render_entries(environment, standings, here, facts),
    }
    if seasons:
        page = make_seasons_page(seasons, spec, facts, standings=standings)
        files["seasons.html"] = _render(environment, page)
    boards = [(one.standings, spec.in_season(one.season)) for one in seasons]
    files[FEED] = format_feed(boards or [(standings, here)], spec, facts)
    for one in seasons:
        rules = spec.in_season(one.season)
        table, document = season_files(one.season)
        files |= _render_entries(environment, one.standings, rules, facts)
        files |= _figures_file(one.standings)
        files[table] = format_csv(one.standings, rules)
        files[document] = format_json(one.standings, rules)
    for name in STATIC:
        files[f"static/{name}"] = _read("static", name)
    return {f"leaderboard/{path}": data for path, data in files.items()}


def _figures_file(standings: Standings) -> dict[str, bytes]:
    data = format_figures(standings)
    return {} if data is None else {figures_file(standings): data}


def _render_entries(
    environment: Any, standings: Standings, spec: BoardSpec, facts: BoardFacts
) -> dict[str, bytes]:
    """A page for each row."""
    pages = make_entry_pages(standings, spec=spec, facts=facts)
    return {f"entries/{file_stem(name)}.html": _render(environment, page) for name, page in pages}


@cache
def _environment(jinja2: ModuleType) -> Any:
    """The templates, each compiled once for as long as the process lives."""
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


def _render(environment: Any, page: BoardPage | EntryPage | SeasonsPage) -> bytes:
    template = environment.get_template(TEMPLATES[type(page)])
    text: str = template.render({field.name: getattr(page, field.name) for field in fields(page)})
    return text.encode()


def _read(folder: str, name: str) -> bytes:
    return resources.files("heldout.site").joinpath(folder, name).read_bytes()
