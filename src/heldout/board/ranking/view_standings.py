"""Standings by a view that lists only some entries, next to those of the board."""

from dataclasses import replace
from decimal import Decimal

from heldout.board.ranking.standings import POST_HOC, Row, Standings
from heldout.board.rules.spec import BoardSpec, View

__all__ = ["listing_views", "rank_listed"]


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
        or row.not_above.get(view.name)
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
