"""The page of all seasons: a table for each, and all entries together."""

from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import quote

from heldout.board.ranking.seasons import OverallRow, SeasonStandings, rank_overall
from heldout.board.ranking.standings import Standings
from heldout.board.rules.spec import BoardSpec, Season
from heldout.charts.days import day_words
from heldout.site.facts import BoardFacts
from heldout.site.pages import Frame, make_frame
from heldout.site.ranking_marks import add_marks
from heldout.site.ranking_trust import RankingTrust, make_ranking_trust
from heldout.site.rows import TableRow, ViewColumn, make_columns, make_row, public_row, public_rows
from heldout.site.wording import clean, count

__all__ = ["OverallLine", "SeasonTable", "SeasonsPage", "make_seasons_page", "season_files"]


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
