"""The sections below the table: what other labels change, views that list some entries, a final.

What other labels change is said in sentences, out of published scores alone.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from itertools import pairwise
from urllib.parse import quote

import msgspec

from heldout.answers.text import clean
from heldout.board.log.final import Final, OpenedFinal, SeasonEnd
from heldout.board.rules.spec import BoardSpec, View
from heldout.board.site.confidence import RankingTrust
from heldout.board.site.rows import (
    TableRow,
    ViewColumn,
    make_columns,
    make_rows,
    public_row,
)
from heldout.board.site.words import count
from heldout.board.standings.overdue import Ending, find_ending
from heldout.board.standings.standings import Row, Standings, listing_views, rank_listed

_FEWEST = 2
_MOST_MOVES = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class SeasonEndSection:
    """The end of a season, to come or past.

    Attributes:
        end: as the log has it, `None` before.
        ending: how the season ends by the rules, `None` afterwards.
        over: whether its last day is over.
        measure: of the view that ranks.
    """

    end: SeasonEnd | None
    ending: Ending | None
    over: bool
    measure: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """Standings below each other: of a view that lists some entries, or of a season.

    Attributes:
        anchor: id of its part of the page.
        title: what it lists.
        column: the view that ranks.
        rows: ranked entries and baselines, best first.
        unranked: the other entries, with the reason.
        path: of its CSV and JSON, as it stands in a link, without `.csv` and `.json`.
        days: of a season: its days and the number of its entries, in words.
        trust: what is published of a season's ranking beside the scores, `None` where nothing is.
        ends: of a season: what comes at its end, or came; `None` for nothing.
    """

    anchor: str
    title: str
    column: ViewColumn
    rows: tuple[TableRow, ...]
    unranked: tuple[TableRow, ...]
    path: str
    days: str = ""
    trust: RankingTrust | None = None
    ends: SeasonEndSection | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FinalistRow:
    """A finalist.

    Attributes:
        row: its line of the leaderboard.
        score: its score on the final view, "" before the opening.
        mark: "winner", "clearly below the best", or "".
    """

    row: TableRow
    score: str
    mark: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FinalSection:
    """The final of a board.

    Attributes:
        final: as the log has it.
        lines: id -> line of each finalist.
        measure: of the final view.
        closes: last day of the board.
        rows: finalists by score, the best first; before the opening in the order of receipt.
    """

    final: Final
    lines: Mapping[str, TableRow]
    measure: str
    closes: date
    rows: tuple[FinalistRow, ...]


def make_listings(standings: Standings, spec: BoardSpec) -> tuple[Listing, ...]:
    """The standings of every view that has some of its own.

    Args:
        standings: of the board.
        spec: its rules.
    """
    return tuple(
        make_listing(
            rank_listed(standings, view),
            rules_of(spec, view),
            anchor=f"view-{view.name}",
            title=f"Trained on at most {view.training_at_most:,} pairs ({clean(view.name)})",
            path=listing_path(view),
        )
        for view in listing_views(spec)
    )


def make_listing(
    standings: Standings, spec: BoardSpec, *, anchor: str, title: str, path: str
) -> Listing:
    """Standings of their own.

    Args:
        standings: the entries.
        spec: the rules they are ranked by.
        anchor: id of its part of the page.
        title: what it lists.
        path: of its CSV and JSON, below `leaderboard/`, without `.csv` and `.json`.
    """
    columns = make_columns(spec)
    rows = make_rows(standings, columns)
    return Listing(
        anchor=anchor,
        title=title,
        column=columns[0],
        rows=tuple(row for row in rows if not row.unranked),
        unranked=tuple(row for row in rows if row.unranked and not row.baseline),
        path=quote(path),
    )


def rules_of(spec: BoardSpec, view: View) -> BoardSpec:
    """The rules under which a view ranks."""
    return msgspec.structs.replace(spec, primary=view.name)


def listing_path(view: View) -> str:
    """Of a view's standings, below `leaderboard/`, without `.csv` and `.json`."""
    return f"views/{view.name}"


def say_label_changes(rows: Sequence[Row], spec: BoardSpec) -> tuple[str, ...]:
    """A sentence or two for each public view that has other labels and is else the one that ranks.

    Each is compared with the one before it, the first with the view that ranks, by the rows with a
    score on both.

    Args:
        rows: public rows with a rank, and baselines.
        spec: the board's rules.
    """
    ranks = spec.view(spec.primary)
    later = (
        view
        for view in spec.public_views
        if view.labels is not None
        and view.name != ranks.name
        and not view.for_information
        and (view.set, view.measure, view.files, view.part)
        == (ranks.set, ranks.measure, ranks.files, ranks.part)
    )
    return tuple(
        _say_change(both, before, after)
        for before, after in pairwise((ranks, *later))
        if len(both := [r for r in rows if {before.name, after.name} <= r.scores.keys()]) >= _FEWEST
    )


def _say_change(rows: Sequence[Row], before: View, after: View) -> str:
    # scipy, which this needs, takes 0.3 s to load, and mostly there is no such view
    import numpy as np  # noqa: PLC0415 - said above

    from heldout.stats.rank_correlation import Both, find_taus  # noqa: PLC0415 - said above

    scores = [[float(row.scores[view.name]) for row in rows] for view in (before, after)]
    means = Both(before=np.array(scores[0]), after=np.array(scores[1]))
    taus = find_taus([row.id for row in rows], means)
    tau = "; ".join(
        f"{'undefined' if one.tau is None else f'{one.tau:.2f}'} over {one.name}" for one in taus
    )
    head = f"By the labels {clean(str(after.labels))}, of {count(len(rows), 'system')}"
    other = "the ranking above" if before.labels is None else f"that by {clean(before.labels)}"
    moves = [*_list_moves(rows, before, after)]
    more = len(moves) - _MOST_MOVES
    rest = f", and {more:,} more" if more > 0 else ""
    moved = f"other ranks: {', '.join(moves[:_MOST_MOVES])}{rest}" if moves else "no rank changes"
    return f"{head}: Kendall's tau with {other} is {tau}; {moved}."


def _list_moves(rows: Sequence[Row], before: View, after: View) -> Iterator[str]:
    for row in rows:
        was, now = (
            1 + sum(Decimal(r.scores[v.name]) > Decimal(row.scores[v.name]) for r in rows)
            for v in (before, after)
        )
        if was != now:
            yield f"{row.id} from {was} to {now}"


def make_final(standings: Standings, spec: BoardSpec) -> FinalSection | None:
    """The section of a board whose finalists are named, `None` for any other."""
    final, view = standings.final, spec.finalists_view
    if final is None or view is None:
        return None
    columns = make_columns(spec)
    lines = {row.id: TableRow(public_row(row), columns) for row in standings.finalists}
    opened = final.opened
    ids = [*final.finalists]
    if opened is not None:
        ids.sort(key=lambda name: -float(opened.scores[name]))  # equal ones as they came
    if spec.closes is None:
        raise ValueError(spec.name)
    return FinalSection(
        final=final,
        lines=lines,
        measure=clean(view.measure),
        closes=spec.closes,
        rows=tuple(_make_finalist(lines[name], opened) for name in ids),
    )


def _make_finalist(line: TableRow, opened: OpenedFinal | None) -> FinalistRow:
    if opened is None:
        return FinalistRow(row=line, score="", mark="")
    mark = "clearly below the best" if line.id in opened.below else ""
    mark = "winner" if line.id == opened.winner else mark
    return FinalistRow(row=line, score=opened.scores[line.id], mark=mark)


def make_season_end(standings: Standings, spec: BoardSpec) -> SeasonEndSection | None:
    """Return what a page says of a season's end; `None` where that publishes no exact score.

    Args:
        standings: of the board or season.
        spec: its rules.
    """
    end, ending = standings.season_end, find_ending(spec, standings.season)
    if end is None and ending is None:
        return None
    return SeasonEndSection(
        end=end,
        ending=None if end is not None else ending,
        over=ending is not None and standings.as_of.date() > ending.last,
        measure="" if end is None else clean(spec.view(end.view).measure),
    )
