"""Pages to bytes: the same standings, rules and facts give the same files, byte for byte.

The page of all seasons is made here: a table for each season, and all entries together.
"""

import hashlib
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from importlib import resources

import msgspec

from heldout.answers.text import clean
from heldout.board.rules.spec import BoardSpec, Season
from heldout.board.site.entries import EntryPage, digest_code, list_entry_sources
from heldout.board.site.exports import FEED, format_csv, format_feed, format_json
from heldout.board.site.pages import (
    BoardPage,
    Frame,
    RowsPage,
    make_board_page,
    make_frame,
    make_rows_pages,
)
from heldout.board.site.rows import (
    StandingsTable,
    TableRow,
    add_marks,
    digest_rows,
    make_columns,
    make_table,
    public_row,
    public_rows,
)
from heldout.board.site.rules import BoardFacts
from heldout.board.site.sections import (
    Listing,
    figures_file,
    format_figures,
    listing_path,
    make_listing,
    make_ranking_trust,
    make_season_end,
    rules_of,
)
from heldout.board.site.words import count, file_stem, read_template
from heldout.board.standings.standings import (
    OverallRow,
    SeasonStandings,
    Standings,
    listing_views,
    rank_listed,
    rank_overall,
)
from heldout.charts.axes import day_words


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
    seasons: tuple[Listing, ...]
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
    return SeasonsPage(
        frame=make_frame(f"Seasons – {clean(spec.title)}", said, standings, spec, facts),
        seasons=tuple(_table(one, spec, facts) for one in seasons),
        overall=tuple(_line(line, spec) for line in rank_overall(seasons)),
    )


def _season_path(season: Season) -> str:
    """Of a season's CSV and JSON, below `leaderboard/`, without `.csv` and `.json`."""
    return f"seasons/{season.name}"


def _table(one: SeasonStandings, spec: BoardSpec, facts: BoardFacts) -> Listing:
    here = spec.in_season(one.season)
    made = make_listing(
        one.standings,
        here,
        anchor=f"season-{one.season.name}",
        title=clean(one.season.name),
        path=_season_path(one.season),
    )
    rows = add_marks(made.rows, one.standings)
    entries = sum(not row.baseline for row in (*rows, *made.unranked))
    return replace(
        made,
        rows=rows,
        days=f"{_say_days(one.season)}; {count(entries, 'entry', 'entries')}",
        trust=make_ranking_trust(one.standings, rows, here, closed=facts.closed),
        ends=make_season_end(one.standings, here),
    )


def _say_days(season: Season) -> str:
    if season.closes is None:
        return f"Since {day_words(season.opens)}"
    return f"{day_words(season.opens)} to {day_words(season.closes)}"


def _line(line: OverallRow, spec: BoardSpec) -> OverallLine:
    season = next(season for season in spec.seasons if season.name == line.season)
    columns = make_columns(spec.in_season(season))
    return OverallLine(
        rank=line.rank,
        margin=f"{line.margin:+f}".replace("-", "−"),
        season=clean(line.season),
        row=TableRow(public_row(line.row), columns),
    )


TEMPLATES: Mapping[type, str] = {
    BoardPage: "board.html",
    EntryPage: "entry.html",
    RowsPage: "rows.html",
    SeasonsPage: "seasons.html",
}

Same = Callable[[str, bytes], bool]
"""Whether a file at a path of the board is still what something with this digest made of it."""

STATIC = ("heldout.css", "heldout.js")
"""Files that every page links to."""


def render_board(
    standings: Standings,
    spec: BoardSpec,
    facts: BoardFacts,
    *,
    seasons: Sequence[SeasonStandings] = (),
    same: Same = lambda _path, _made_of: False,
) -> dict[str, bytes]:
    """Every file of `leaderboard/`.

    Args:
        standings: the rows of the day, of the latest season if there are any; what an embargo
            hides is withheld whatever they hold.
        spec: the board's rules.
        facts: its sizes and addresses.
        seasons: those that have begun, the latest first.
        same: gets the path of a page of an entry, or of rows, and a digest of all that it depends
            on; whether that page lies there, and is made from just that. It is left out then.

    Returns:
        path from the board's root -> bytes; files of `leaderboard/` that are not in it, and were
        not left out, are old.

    Raises:
        ImportError: Jinja2 is not installed.
    """
    here = spec.in_season(seasons[0].season) if seasons else spec
    table = make_table(standings, here)
    files = {
        **_render_standings("leaderboard", standings, here),
        "index.html": _render(make_board_page(standings, here, facts, table=table)),
        **_render_rows(table, standings, here, facts, same),
        **_figures_file(standings),
    }
    for view in listing_views(here):
        own = rank_listed(standings, view)
        files |= _render_standings(listing_path(view), own, rules_of(here, view))
    if seasons:
        page = make_seasons_page(seasons, spec, facts, standings=standings)
        files["seasons.html"] = _render(page)
    boards = [(one.standings, spec.in_season(one.season)) for one in seasons]
    boards = boards or [(standings, here)]
    files[FEED] = format_feed(boards, spec, facts)
    shown: set[str] = set()  # a baseline may be in several seasons: its page is of the latest
    for own, rules in boards:
        files |= _render_entries(own, rules, facts, same, shown=shown)
        shown.update(row.id for row in own.every)
    for one, (_, rules) in zip(seasons, boards, strict=False):
        files |= _figures_file(one.standings)
        files |= _render_standings(_season_path(one.season), one.standings, rules)
    for name in STATIC:
        files[f"static/{name}"] = _read(name)
    files[".nojekyll"] = b""  # else GitHub, for a branch with these files, would run Jekyll on it
    return {f"leaderboard/{path}": data for path, data in files.items()}


def _render_standings(path: str, standings: Standings, spec: BoardSpec) -> dict[str, bytes]:
    return {
        f"{path}.csv": format_csv(standings, spec),
        f"{path}.json": format_json(standings, spec),
    }


def _figures_file(standings: Standings) -> dict[str, bytes]:
    data = format_figures(standings)
    return {} if data is None else {figures_file(standings): data}


def _render_entries(
    standings: Standings,
    spec: BoardSpec,
    facts: BoardFacts,
    same: Same,
    *,
    shown: Collection[str],
) -> dict[str, bytes]:
    """A page for each row, but for those that have one or are as they were."""
    pages = {}
    for one in list_entry_sources(standings, spec=spec, facts=facts):
        path = f"entries/{file_stem(one.id)}.html"
        if one.id not in shown and not same(f"leaderboard/{path}", one.digest):
            pages[path] = _render(one.make())
    return pages


def _render_rows(
    table: StandingsTable, standings: Standings, spec: BoardSpec, facts: BoardFacts, same: Same
) -> dict[str, bytes]:
    """Return how a long table goes on: pages, and the same rows for the script of the first page.

    A page opened from a folder may read no other page, but a script.
    """
    pages = make_rows_pages(table, standings, spec, facts)
    if not pages:
        return {}
    files = {}
    ids = (row.id for row in public_rows(standings))
    told = dict(zip(ids, digest_rows(standings), strict=True))
    common = _digest_table(pages[0].table)
    for page in pages:
        leaf = page.table.leaf
        if leaf is None:
            continue
        paths, digest = (leaf.href, f"rows-{leaf.number}.js"), _digest_page(page, told, common)
        known = [same(f"leaderboard/{path}", digest) for path in paths]
        if all(known):
            continue
        macros = read_template("table.html").module
        ranked, unranked = macros.rows_of(page.table), macros.unranked_of(page.table)  # type: ignore[attr-defined]  # template macros
        texts = (msgspec.json.encode(str(part)).decode() for part in (ranked, unranked))
        files[paths[0]] = _render(replace(page, ranked=ranked, unranked=unranked))
        files[paths[1]] = f"heldoutRows({leaf.number}, {', '.join(texts)});\n".encode()
    return files


def _digest_table(table: StandingsTable) -> bytes:
    """Of what all pages of a table have in common; `table` is one of them."""
    told = {field.name: getattr(table, field.name) for field in fields(table)}
    told |= {"rows": (), "unranked": (), "leaf": None}
    # What the pages do not have: which rows the last one has, and the total.
    told |= {"leaves": [leaf.href for leaf in table.leaves], "total": 0}
    data = msgspec.msgpack.encode(told, enc_hook=lambda _code: None, order="deterministic")
    return hashlib.sha256(digest_code() + data).digest()


def _digest_page(page: RowsPage, told: Mapping[str, bytes], common: bytes) -> bytes:
    """Of all that a page of rows and its script depend on.

    Args:
        page: it has neither the day nor the head of the log.
        told: id -> a digest of what the row holds, but for its rank.
        common: `_digest_table`.
    """
    table, frame = page.table, page.frame
    rows = [
        (told[row.id], row.rank, row.star, row.span, row.lead_end)
        for row in (*table.rows, *table.unranked)
    ]
    head = (table.leaf, frame.title, frame.summary, frame.board, len(table.unranked))
    data = msgspec.msgpack.encode((common, *head, rows))
    return hashlib.sha256(data).digest()


def _render(page: BoardPage | EntryPage | RowsPage | SeasonsPage) -> bytes:
    """The template of the page gets the page's fields by their names."""
    template = read_template(TEMPLATES[type(page)])
    text: str = template.render({field.name: getattr(page, field.name) for field in fields(page)})
    return text.encode()


def _read(name: str) -> bytes:
    room = "heldout.answers" if name == "heldout.css" else "heldout.board.site"
    return resources.files(room).joinpath("static", name).read_bytes()
