"""The table of a board: its columns, its rows, and the pages into which a long one is cut.

A table of many rows goes on in `rows-2.html`, `rows-3.html` and so on, which need no script. The
script of the first page filters and sorts all rows: it takes the others from `rows-2.js` and so on,
because a page that is opened from a folder may read no other page.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from heldout.board.rules.spec import BoardSpec
from heldout.board.site.columns import COLUMNS, EntryColumn, cost_columns
from heldout.board.site.rows import (
    TableRow,
    ViewColumn,
    add_marks,
    filled_columns,
    make_columns,
    make_rows,
    public_rows,
)
from heldout.board.standings.standings import Row, Standings, listing_views

_ONE_PAGE = 150
"""Most rows on the only page of a table; MS MARCO's document board has 117."""

_ROWS = 100
"""Rows on each page of a longer one: at most 300 kB, whatever a board shows of an entry."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaf:
    """A page of a long table.

    Attributes:
        number: from 1.
        href: its file in `leaderboard/`.
        words: which rows it has: `101–200`.
    """

    number: int
    href: str
    words: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StandingsTable:
    """The table, or one page of it.

    Attributes:
        columns: the public views with a score, the one that ranks first, further ones last.
        costs: what teams state of costs, as columns; none where nobody states any.
        heads: key -> column, for the headings and explanations of the other columns.
        links: heading of the links to papers and code, "" where no row has one.
        ranged: whether a row has a range of ranks.
        rows: entries with a rank, and baselines.
        unranked: the entries without a rank, after all others.
        types: the submission types among the rows, for the filter; none where no row has one.
        trophies, stars, seeds: whether a row has one, so that it is said what it means.
        bar: whether there are baselines that a trophy has to be above.
        record: whether it shows an old board, whose trophies and days are that board's claims.
        leaf: the page that this is; `None` for a table on a single page.
        leaves: all pages; none for a table on a single page.
        total: how many rows all pages have, those without a rank too.
    """

    columns: tuple[ViewColumn, ...]
    costs: tuple[EntryColumn, ...]
    heads: Mapping[str, EntryColumn]
    links: str
    ranged: bool
    rows: tuple[TableRow, ...]
    unranked: tuple[TableRow, ...]
    types: tuple[str, ...]
    trophies: bool
    stars: bool
    seeds: bool
    bar: bool
    record: bool
    total: int
    leaf: Leaf | None = None
    leaves: tuple[Leaf, ...] = ()

    @property
    def further(self) -> bool:
        """Whether there are columns of fairness, of other labels or of parts of the queries."""
        return any(column.further for column in self.columns)


def make_table(standings: Standings, spec: BoardSpec) -> StandingsTable:
    """The whole table, before it is cut into pages.

    Args:
        standings: of the board or season.
        spec: its rules.
    """
    shown = public_rows(standings)
    ranked = [row for row in shown if not row.unranked]
    own = {view.name for view in listing_views(spec)}  # they have standings of their own
    filled = [c for c in filled_columns(make_columns(spec), shown) if c.key not in own]
    columns = tuple(sorted(filled, key=lambda column: column.further))
    every = make_rows(standings, columns)
    rows = add_marks([line for line in every if not line.row.unranked], standings)
    return StandingsTable(
        columns=columns,
        costs=cost_columns(ranked),
        heads={column.key: column for column in COLUMNS},
        links=_name_links(ranked),
        ranged=any(row.rank_low is not None and row.rank_high is not None for row in ranked),
        rows=rows,
        unranked=tuple(line for line in every if line.row.unranked),
        types=tuple(dict.fromkeys(row.type for row in ranked if row.type)),
        trophies=any(row.trophy and not row.star for row in rows),
        stars=any(row.star for row in rows),
        seeds=any(row.seeds > 1 for row in ranked),
        bar=spec.baselines.bar and any(row.baseline for row in shown),
        record=is_record(standings),
        total=len(every),
    )


def is_record(standings: Standings) -> bool:
    """Check whether it is the record of an old board, which takes nothing any more."""
    return bool(standings.every) and all(row.imported for row in standings.every)


def cut_table(table: StandingsTable) -> tuple[StandingsTable, ...]:
    """Its pages; a table that is short enough is its own only one."""
    leaves = _list_leaves(table.total)
    if not leaves:
        return (table,)
    every = (*table.rows, *table.unranked)
    return tuple(
        replace(
            table,
            rows=tuple(line for line in part if not line.row.unranked),
            unranked=tuple(line for line in part if line.row.unranked),
            leaf=leaf,
            leaves=leaves,
        )
        for leaf in leaves
        for part in (every[(leaf.number - 1) * _ROWS : leaf.number * _ROWS],)
    )


def file_of_row(position: int, total: int) -> str:
    """The file in `leaderboard/` that has a row.

    Args:
        position: its own, from 0, in the order of `public_rows`.
        total: how many rows there are.
    """
    return _file_of_page(position // _ROWS + 1 if is_long(total) else 1)


def is_long(total: int) -> bool:
    """Check whether a table of so many rows goes on over several pages."""
    return total > _ONE_PAGE


def say_block(rank: int) -> str:
    """The ranks, of a hundred each, that a rank is among."""
    first = (rank - 1) // _ROWS * _ROWS + 1
    return f"{first:,}–{first + _ROWS - 1:,}"


def _file_of_page(number: int) -> str:
    return "index.html" if number == 1 else f"rows-{number}.html"


def _list_leaves(total: int) -> tuple[Leaf, ...]:
    if total <= _ONE_PAGE:
        return ()
    return tuple(
        Leaf(
            number=number,
            href=_file_of_page(number),
            words=f"{start + 1:,}\u2013{min(start + _ROWS, total):,}",
        )
        for number, start in enumerate(range(0, total, _ROWS), 1)
    )


def _name_links(rows: Sequence[Row]) -> str:
    shown = [row.identity for row in rows if row.identity is not None]
    papers, code = any(who.paper for who in shown), any(who.code for who in shown)
    return ", ".join(word for word, there in (("paper", papers), ("code", code)) if there)
