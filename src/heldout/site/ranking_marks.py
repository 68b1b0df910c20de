"""Stars, bars of ranges and the end of the lead group, on the rows of the table."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from heldout.board.log.measured import Measured
from heldout.board.ranking.standings import Standings
from heldout.site.rows import TableRow

__all__ = ["STARS", "add_marks", "stars_of"]

STARS: Mapping[bool | None, str] = {True: "significant", False: "noise", None: ""}
"""Whether a record was significant when it came -> its star."""


def add_marks(rows: Sequence[TableRow], standings: Standings) -> tuple[TableRow, ...]:
    """The rows of the table with stars, bars of ranges and the end of the lead group.

    Args:
        rows: best first.
        standings: whose rows they are.
    """
    measured = standings.measured
    if measured is None:
        return tuple(rows)
    stars = stars_of(measured)
    of = sum(row.rank is not None for row in standings.rows)
    spans = {r.id: (r.rank_low, r.rank_high) for r in standings.rows if r.rank_low is not None}
    marked = [
        replace(
            row,
            star=stars.get(row.id, "") if row.trophy else "",
            span=(*_whole(spans[row.id]), of) if row.id in spans else None,
        )
        for row in rows
    ]
    end = _find_lead_end([row for row in marked if row.rank is not None])
    return tuple(replace(row, lead_end=row.id == end) for row in marked)


def _whole(span: tuple[int | None, int | None]) -> tuple[int, int]:
    low, high = span
    return low or 1, high or 1


def stars_of(measured: Measured | None) -> Mapping[str, str]:
    """Id -> `significant` or `noise`, of records whose significance is defined."""
    steps = () if measured is None else measured.figures.progress or ()
    return {step.entry: STARS[step.significant] for step in steps}


def _find_lead_end(ranked: Sequence[TableRow]) -> str:
    """The last entry of the lead group, where that is an unbroken block of at least two."""
    leads = [row.span is not None and row.span[0] == 1 for row in ranked]
    size = leads.index(False) if False in leads else len(leads)
    return ranked[size - 1].id if 1 < size < len(ranked) and not any(leads[size:]) else ""
