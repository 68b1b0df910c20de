"""Pages to bytes: the same standings, rules and facts give the same files, byte for byte.

The page of all seasons is made here: a table for each season, and all entries together.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from importlib import resources
from urllib.parse import quote

from heldout.answers.text import clean
from heldout.board.rules.spec import BoardSpec, Season
from heldout.board.site.confidence import (
    RankingTrust,
    figures_file,
    format_figures,
    make_ranking_trust,
)
from heldout.board.site.entries import EntryPage, make_entry_pages
from heldout.board.site.exports import FEED, format_csv, format_feed, format_json
from heldout.board.site.pages import BoardPage, Frame, make_board_page, make_frame
from heldout.board.site.rows import (
    TableRow,
    ViewColumn,
    add_marks,
    make_columns,
    make_row,
    public_row,
    public_rows,
)
from heldout.board.site.rules import BoardFacts
from heldout.board.site.sections import listing_files, rules_of
from heldout.board.site.words import count, file_stem, tie
from heldout.board.standings.seasons import (
    OverallRow,
    SeasonStandings,
    listing_views,
    rank_listed,
    rank_overall,
)
from heldout.board.standings.standings import Standings
from heldout.charts.axes import day_words
from heldout.web.jinja import load_templates


@dataclass(frozen=True, slots=True, kw_only=True)
class SeasonTable:
    """One season.

    Attributes:
        name: of the season.
        anchor: id of its part of the page.
        days: its days and the number of its entries, in words.
        column: the view that ranks.
        rows: ranked entries and baselines, best first.
        unranked: the others.
        csv, json: its files, as they stand in a link.
        trust: what is told of its ranking beside the scores, `None` where nothing ever is.
    """

    name: str
    anchor: str
    days: str
    column: ViewColumn
    rows: tuple[TableRow, ...]
    unranked: tuple[TableRow, ...]
    csv: str
    json: str
    trust: RankingTrust | None


@dataclass(frozen=True, slots=True, kw_only=True)
class OverallLine:
    """An entry among those of all seasons; the margin has its sign."""

    rank: int
    margin: str
    season: str
    row: TableRow


@dataclass(frozen=True, slots=True, kw_only=True)
class SeasonsPage:
    """`leaderboard/seasons.html`.

    Attributes:
        frame: around it.
        seasons: the latest first.
        overall: all entries whose season has a baseline.
    """

    frame: Frame
    seasons: tuple[SeasonTable, ...]
    overall: tuple[OverallLine, ...]


def make_seasons_page(
    seasons: Sequence[SeasonStandings],
    spec: BoardSpec,
    facts: BoardFacts,
    *,
    standings: Standings,
) -> SeasonsPage:
    """The page of all seasons.

    Args:
        seasons: the latest first.
        spec: the board's rules.
        facts: its sizes and addresses.
        standings: of the season that runs.
    """
    said = f"{count(len(seasons), 'season')} of {clean(spec.title)}"
    frame = make_frame(
        f"Seasons – {clean(spec.title)}",
        said,
        root="",
        standings=standings,
        spec=spec,
        facts=facts,
    )
    return SeasonsPage(
        frame=frame,
        seasons=tuple(_table(one, spec, facts) for one in seasons),
        overall=tuple(_line(line, spec) for line in rank_overall(seasons)),
    )


def season_files(season: Season) -> tuple[str, str]:
    """CSV and JSON of a season, below `leaderboard/`."""
    return f"seasons/{season.name}.csv", f"seasons/{season.name}.json"


def _table(one: SeasonStandings, spec: BoardSpec, facts: BoardFacts) -> SeasonTable:
    here = spec.in_season(one.season)
    columns = make_columns(here)
    rows = tuple(make_row(row, columns) for row in public_rows(one.standings))
    csv, json = season_files(one.season)
    ranked = add_marks([row for row in rows if not row.unranked], one.standings)
    return SeasonTable(
        name=clean(one.season.name),
        anchor=f"season-{one.season.name}",
        days=f"{_say_days(one.season)}; {_say_entries(rows)}",
        column=columns[0],
        rows=ranked,
        unranked=tuple(row for row in rows if row.unranked),
        csv=quote(csv),
        json=quote(json),
        trust=make_ranking_trust(one.standings, ranked, here, closed=facts.closed),
    )


def _say_days(season: Season) -> str:
    if season.closes is None:
        return f"Since {day_words(season.opens)}"
    return f"{day_words(season.opens)} to {day_words(season.closes)}"


def _say_entries(rows: Sequence[TableRow]) -> str:
    return count(sum(not row.baseline for row in rows), "entry", "entries")


def _line(line: OverallRow, spec: BoardSpec) -> OverallLine:
    season = next(season for season in spec.seasons if season.name == line.season)
    columns = make_columns(spec.in_season(season))
    return OverallLine(
        rank=line.rank,
        margin=f"{line.margin:+f}".replace("-", "−"),
        season=clean(line.season),
        row=make_row(public_row(line.row), columns),
    )


TEMPLATES: Mapping[type, str] = {
    BoardPage: "board.html",
    EntryPage: "entry.html",
    SeasonsPage: "seasons.html",
}

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
    here = spec.in_season(seasons[0].season) if seasons else spec
    files = {
        "index.html": _render(make_board_page(standings, here, facts)),
        "leaderboard.csv": format_csv(standings, here),
        "leaderboard.json": format_json(standings, here),
        **_render_listings(standings, here),
        **_figures_file(standings),
        **_render_entries(standings, here, facts),
    }
    if seasons:
        page = make_seasons_page(seasons, spec, facts, standings=standings)
        files["seasons.html"] = _render(page)
    boards = [(one.standings, spec.in_season(one.season)) for one in seasons]
    files[FEED] = format_feed(boards or [(standings, here)], spec, facts)
    for one in seasons:
        rules = spec.in_season(one.season)
        table, document = season_files(one.season)
        files |= _render_entries(one.standings, rules, facts)
        files |= _figures_file(one.standings)
        files[table] = format_csv(one.standings, rules)
        files[document] = format_json(one.standings, rules)
    for name in STATIC:
        files[f"static/{name}"] = _read("static", name)
    return {f"leaderboard/{path}": data for path, data in files.items()}


def _figures_file(standings: Standings) -> dict[str, bytes]:
    data = format_figures(standings)
    return {} if data is None else {figures_file(standings): data}


def _render_entries(standings: Standings, spec: BoardSpec, facts: BoardFacts) -> dict[str, bytes]:
    """A page for each row."""
    pages = make_entry_pages(standings, spec=spec, facts=facts)
    return {f"entries/{file_stem(name)}.html": _render(page) for name, page in pages}


def _render(page: BoardPage | EntryPage | SeasonsPage) -> bytes:
    """The template of the page gets the page's fields by their names."""
    template = load_templates("heldout.board.site", tie=tie).get_template(TEMPLATES[type(page)])
    text: str = template.render({field.name: getattr(page, field.name) for field in fields(page)})
    return text.encode()


def _read(folder: str, name: str) -> bytes:
    room = "heldout.answers" if name == "heldout.css" else "heldout.board.site"
    return resources.files(room).joinpath(folder, name).read_bytes()


def _render_listings(standings: Standings, spec: BoardSpec) -> dict[str, bytes]:
    """CSV and JSON of each, below `leaderboard/`."""
    files = {}
    for view in listing_views(spec):
        own, rules = rank_listed(standings, view), rules_of(spec, view)
        table, document = listing_files(view)
        files[table] = format_csv(own, rules)
        files[document] = format_json(own, rules)
    return files
