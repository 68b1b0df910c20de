"""The tables below that of the board: further views of all entries, and views that list some.

Nobody reads a table of ten columns, so fairness, other labels and parts of the queries have one of
their own.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import quote

import msgspec

from heldout.board.ranking.standings import Row, Standings
from heldout.board.ranking.view_standings import listing_views, rank_listed
from heldout.board.rules.spec import BoardSpec, View
from heldout.site.exports import format_csv, format_json
from heldout.site.label_rankings import say_label_changes
from heldout.site.rows import TableRow, ViewColumn, make_columns, make_row, public_rows
from heldout.site.wording import clean

__all__ = [
    "FurtherViews",
    "Listing",
    "further_views",
    "make_further",
    "make_listings",
    "render_listings",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class FurtherViews:
    """Fairness, and parts of the queries, for every ranked entry and baseline.

    Attributes:
        columns: the view that ranks, then the further ones.
        rows: in the order of the board.
        changes: what other labels change in the ranking, in sentences.
    """

    columns: tuple[ViewColumn, ...]
    rows: tuple[TableRow, ...]
    changes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """The standings of one view.

    Attributes:
        anchor: id of its part of the page.
        title: what it lists.
        column: the view.
        rows: ranked entries, best first.
        unranked: the others, with the reason.
        csv, json: its files, as they stand in a link.
    """

    anchor: str
    title: str
    column: ViewColumn
    rows: tuple[TableRow, ...]
    unranked: tuple[TableRow, ...]
    csv: str
    json: str


def further_views(spec: BoardSpec) -> frozenset[str]:
    """The views that stand below the board's table: fairness, other labels, parts of queries."""
    return frozenset(
        view.name
        for view in spec.views
        if view.name != spec.primary
        and (view.files or view.labels is not None or view.training_at_most is not None)
    )


def make_further(
    rows: Sequence[Row], columns: Sequence[ViewColumn], spec: BoardSpec
) -> FurtherViews | None:
    """The table of further views; `None` where there is no score in one.

    Args:
        rows: public rows with a rank, and baselines.
        columns: all public views, the one that ranks first.
        spec: the board's rules.
    """
    keys = further_views(spec) - {view.name for view in listing_views(spec)}
    shown = [column for column in columns if column.key in keys]
    if not rows or not any(column.key in row.scores for column in shown for row in rows):
        return None
    every = (columns[0], *shown)
    return FurtherViews(
        columns=every,
        rows=tuple(make_row(row, every) for row in rows),
        changes=say_label_changes(rows, spec),
    )


def make_listings(standings: Standings, spec: BoardSpec) -> tuple[Listing, ...]:
    """The standings of every view that has some of its own.

    Args:
        standings: of the board.
        spec: its rules.
    """
    return tuple(_make(rank_listed(standings, view), spec, view) for view in listing_views(spec))


def render_listings(standings: Standings, spec: BoardSpec) -> dict[str, bytes]:
    """CSV and JSON of each, below `leaderboard/`."""
    files = {}
    for view in listing_views(spec):
        own, rules = rank_listed(standings, view), _rules(spec, view)
        table, document = _files(view)
        files[table] = format_csv(own, rules)
        files[document] = format_json(own, rules)
    return files


def _rules(spec: BoardSpec, view: View) -> BoardSpec:
    return msgspec.structs.replace(spec, primary=view.name)


def _files(view: View) -> tuple[str, str]:
    return f"views/{view.name}.csv", f"views/{view.name}.json"


def _make(standings: Standings, spec: BoardSpec, view: View) -> Listing:
    columns = make_columns(_rules(spec, view))
    rows = tuple(make_row(row, columns) for row in public_rows(standings))
    csv, json = _files(view)
    return Listing(
        anchor=f"view-{view.name}",
        title=f"Trained on at most {view.training_at_most:,} pairs ({clean(view.name)})",
        column=columns[0],
        rows=tuple(row for row in rows if not row.unranked),
        unranked=tuple(row for row in rows if row.unranked and not row.baseline),
        csv=quote(csv),
        json=quote(json),
    )
