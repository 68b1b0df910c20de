"""Standings of every season, and of all seasons together.

Scores of two seasons are means over different queries, so they are never compared as they are. What
can be compared is how far an entry is ahead of the organisers' best baseline of its season: a
baseline is the one system that is the same in all of them, if the organisers run it each time.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from heldout.board.log.events import Entry
from heldout.board.ranking.standings import Row, Standings, make_standings
from heldout.board.rules.spec import BoardSpec, Season

__all__ = ["OverallRow", "SeasonStandings", "current_standings", "list_seasons", "rank_overall"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SeasonStandings:
    """A season with its leaderboard."""

    season: Season
    standings: Standings


@dataclass(frozen=True, slots=True, kw_only=True)
class OverallRow:
    """An entry among those of all seasons.

    Attributes:
        rank: 1 for the best; entries with equal margins are ranked by time.
        margin: its score less that of the best baseline of its season, with all shown digits.
        season: the season's name.
        row: its line of the season's leaderboard.
    """

    rank: int
    margin: Decimal
    season: str
    row: Row


def list_seasons(
    entries: Iterable[Entry], spec: BoardSpec, *, now: datetime
) -> tuple[SeasonStandings, ...]:
    """The seasons that have begun, the latest first; before the first one, that one.

    Args:
        entries: a verified log, the vault's or the public one.
        spec: the rules in force; nothing comes of one without seasons.
        now: the moment (UTC).
    """
    log = tuple(entries)
    begun = [season for season in spec.seasons if season.opens <= now.date()] or spec.seasons[:1]
    return tuple(
        SeasonStandings(season=season, standings=make_standings(log, spec, now=now, season=season))
        for season in reversed(begun)
    )


def current_standings(
    entries: Iterable[Entry], spec: BoardSpec, *, now: datetime
) -> tuple[Standings, BoardSpec]:
    """The leaderboard of the board, or of its latest season, with the rules that go with it.

    Args:
        entries: a verified log, the vault's or the public one.
        spec: the rules in force.
        now: the moment (UTC).
    """
    log = tuple(entries)
    seasons = list_seasons(log, spec, now=now)
    if seasons:
        return seasons[0].standings, spec.in_season(seasons[0].season)
    return make_standings(log, spec, now=now), spec


def rank_overall(seasons: Sequence[SeasonStandings]) -> tuple[OverallRow, ...]:
    """All ranked entries by their margin over the best baseline of their season.

    Entries of a season without a baseline are not there: nothing could be said of them.
    """
    found: list[tuple[Decimal, str, Row]] = []
    for one in seasons:
        view = one.season.view
        scores = [Decimal(row.scores[view]) for row in one.standings.rows if row.baseline]
        if scores:
            bar = max(scores)
            found += [
                (Decimal(row.scores[view]) - bar, one.season.name, row)
                for row in one.standings.rows
                if not row.baseline
            ]
    found.sort(key=lambda line: (-line[0], line[2].received, line[2].id))
    return tuple(
        OverallRow(rank=rank, margin=margin, season=season, row=row)
        for rank, (margin, season, row) in enumerate(found, 1)
    )
