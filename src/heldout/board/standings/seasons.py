"""Standings of every season, of all seasons together, and of a view that lists only some entries.

Scores of two seasons are means over different queries, so they are never compared as they are. What
can be compared is how far an entry is ahead of the organisers' best baseline of its season: a
baseline is the one system that is the same in all of them, if the organisers run it each time.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal

from heldout.board.log.events import Entry
from heldout.board.log.history import History
from heldout.board.rules.release import NOT_CLEAR
from heldout.board.rules.spec import BoardSpec, Season, View
from heldout.board.standings.standings import POST_HOC, Row, Standings, make_standings


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
    log: Iterable[Entry] | History, spec: BoardSpec, *, now: datetime
) -> tuple[SeasonStandings, ...]:
    """The seasons that have begun, the latest first; before the first one, that one.

    Args:
        log: a verified log, the vault's or the public one, or what the public one says.
        spec: the rules in force; nothing comes of one without seasons.
        now: the moment (UTC).
    """
    log = log if isinstance(log, History) else tuple(log)
    begun = [season for season in spec.seasons if season.opens <= now.date()] or spec.seasons[:1]
    return tuple(
        SeasonStandings(season=season, standings=make_standings(log, spec, now=now, season=season))
        for season in reversed(begun)
    )


def current_standings(
    log: Iterable[Entry] | History, spec: BoardSpec, *, now: datetime
) -> tuple[Standings, BoardSpec]:
    """The leaderboard of the board, or of its latest season, with the rules that go with it.

    Args:
        log: a verified log, the vault's or the public one, or what the public one says.
        spec: the rules in force.
        now: the moment (UTC).
    """
    log = log if isinstance(log, History) else tuple(log)
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


def listing_views(spec: BoardSpec) -> tuple[View, ...]:
    """The public views with standings of their own; one that ranks the board needs none."""
    return tuple(
        view
        for view in spec.public_views
        if view.training_at_most is not None and view.name != spec.primary
    )


def rank_listed(standings: Standings, view: View) -> Standings:
    """The entries that a view lists, by its score; ties to the earlier submission.

    A trophy belongs to the view that ranks the board, so there are none. Whoever is not listed
    stands without a rank, with the reason.

    Args:
        standings: of the board, or of a season.
        view: one of `listing_views`.
    """
    listed = [row for row in standings.every if _is_listed(row, view)]
    listed.sort(key=lambda row: (-Decimal(row.scores[view.name]), row.received, row.id))
    ranks: dict[str, int] = {}
    for row in listed:
        if not row.baseline:
            ranks[row.id] = len(ranks) + 1
    others = [row for row in standings.every if not _is_listed(row, view)]
    return replace(
        standings,
        primary=view.name,
        rows=tuple(_place(row, ranks.get(row.id), "") for row in listed),
        unranked=tuple(_place(row, None, _why(row, view)) for row in others),
    )


def _is_listed(row: Row, view: View) -> bool:
    return view.name in row.scores and not row.unranked.startswith(POST_HOC)


def _why(row: Row, view: View) -> str:
    return (
        row.unlisted.get(view.name)
        or (NOT_CLEAR if view.name in row.untold else "")
        or row.unranked
        or "not scored on this view"
    )


def _place(row: Row, rank: int | None, why: str) -> Row:
    return replace(
        row,
        rank=rank,
        unranked=why,
        trophy=False,
        trophy_by_rule=False,
        rank_low=None,
        rank_high=None,
        unranged="",
    )
