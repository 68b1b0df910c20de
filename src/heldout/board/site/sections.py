"""The sections below the table: other labels, views that list some entries, a final, "Confidence".

What other labels change is said in sentences, out of published scores alone. "Confidence" is what
an event `measured` says of the ranking, and what comes when: ranges of ranks and the significance
of records. Everything follows from the public log.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from itertools import pairwise
from typing import ClassVar, NamedTuple
from urllib.parse import quote

import msgspec

from heldout.answers.text import clean
from heldout.board.log.final import (
    Final,
    Measured,
    OpenedFinal,
    SeasonEnd,
    Step,
    TrustPart,
)
from heldout.board.rules.spec import BoardSpec, View, say_after
from heldout.board.site.rows import (
    STARS,
    TableRow,
    ViewColumn,
    make_columns,
    make_rows,
    public_row,
)
from heldout.board.site.words import count, join_names
from heldout.board.standings.overdue import Ending, figures_due_since, find_ending
from heldout.board.standings.standings import (
    Row,
    Standings,
    best_so_far,
    listing_views,
    rank_listed,
    read_pairs,
)
from heldout.charts.axes import day_words

_PARTS: Mapping[TrustPart, str] = {
    "ranges": "ranges of ranks",
    "progress": "which records were significant when they came",
}

_WHY = "They are held back because they reveal something about the hidden labels."

_SCHEMA = 1
"""Of trust.json."""


class RankRow(NamedTuple):
    """A compared entry: its row, and if it was a record when it came, its star and its worth."""

    row: TableRow
    star: str
    record: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RankingTrust:
    """All of the section.

    Attributes:
        coming: what is not published yet and when it will be.
        measured: what is published; `None` before.
        known: id -> row, of the table.
        lead: who may be the first, by the ranges; empty without them.
        ahead: whether that is one entry, significantly better than every other.
        alike: whether two of these were not compared.
        of: how many ranks there are.
        ranks: compared entries by score.
        data: the file of all that is published.
    """

    parts: ClassVar[Mapping[TrustPart, str]] = _PARTS
    coming: tuple[str, ...]
    measured: Measured | None = None
    known: Mapping[str, TableRow] = field(default_factory=dict)
    lead: tuple[TableRow, ...] = ()
    ahead: bool = False
    alike: bool = False
    of: int = 0
    ranks: tuple[RankRow, ...] = ()
    data: str = ""


def make_ranking_trust(
    standings: Standings, rows: Sequence[TableRow], spec: BoardSpec, *, closed: datetime | None
) -> RankingTrust | None:
    """The section; `None` on a board that publishes nothing but scores.

    Args:
        standings: of the board or season.
        rows: of the table, best first.
        spec: its rules.
        closed: when the board was closed for good.
    """
    measured = standings.measured
    if measured is None and spec.trust is None:
        return None
    coming = _say_coming(standings, spec, closed)
    if measured is None:
        return RankingTrust(coming=coming)
    known, ranges = {row.id: row for row in rows}, measured.figures.ranges
    low, high = (
        dict(zip(measured.entries, ends, strict=False))
        for ends in ((ranges.low, ranges.high) if ranges else ((), ()))
    )
    lead = tuple(row for row in rows if low.get(row.id) == 1)
    return RankingTrust(
        coming=coming,
        measured=measured,
        known=known,
        lead=lead,
        ahead=len(lead) == 1 and high[lead[0].id] == 1,
        alike=any(read_pairs(measured.figures.alike, [row.id for row in lead]).values()),
        of=sum(row.rank is not None for row in rows),
        ranks=_rank_rows(measured, rows, _say_records(standings, spec)),
        data=figures_file(standings),
    )


def figures_file(standings: Standings) -> str:
    """Return where all that was published lies in `leaderboard/`, a file for each season."""
    return f"trust-{standings.season}.json" if standings.season else "trust.json"


def format_figures(standings: Standings) -> bytes | None:
    """Return what was published, as JSON; `None` where nothing was."""
    one = standings.measured
    if one is None:
        return None
    names = ("event", "view", "season", "due", "seed", "entries", "left_out", "figures")
    document = {"schema": _SCHEMA, **{name: getattr(one, name) for name in names}}
    data = msgspec.json.encode(document, order="deterministic")
    return msgspec.json.format(data, indent=1) + b"\n"


def _rank_rows(
    measured: Measured, rows: Sequence[TableRow], records: Mapping[str, tuple[str, str]]
) -> tuple[RankRow, ...]:
    """The compared entries with the ranges of the table; without ranges those that were records."""
    shown = measured.entries if measured.figures.ranges is not None else (*records,)
    return tuple(
        RankRow(row, *records.get(row.id, ("", "")))
        for row in rows
        if row.id in shown and row.id in measured.entries
    )


def _say_records(standings: Standings, spec: BoardSpec) -> Mapping[str, tuple[str, str]]:
    """Compared record, as the chart of progress draws them -> its star, and what it was worth.

    None on a one-shot board, whose scores are all shown at once.
    """
    measured = standings.measured
    if spec.kind == "one-shot" or measured is None or measured.figures.progress is None:
        return {}
    ranked = [row for row in standings.rows if row.baseline or row.rank is not None]
    records = best_so_far(ranked, spec.primary, bar=spec.baselines.bar)
    pairs = {frozenset(pair) for pair in measured.figures.alike}
    steps = measured.figures.progress
    alike = {b.entry for a, b in pairwise(steps) if frozenset((a.entry, b.entry)) in pairs}
    said = {
        step.entry: (STARS[step.significant], _say_step(step, alike=step.entry in alike))
        for step in steps
    }
    return {row.id: said.get(row.id, ("", "not compared")) for row in records}


def _say_step(step: Step, *, alike: bool) -> str:
    if alike:
        return "nearly the same as the best before it, so not compared with it"
    if step.significant is None:
        return "nothing before it to compare with"
    worth = "significantly better than" if step.significant else "within noise of"
    family = count(step.family, "hypothesis", "hypotheses")
    return f"{worth} the best before it, t test, Holm over {family}"


def _say_coming(standings: Standings, spec: BoardSpec, closed: datetime | None) -> tuple[str, ...]:
    """Return what is not published yet and when it will be."""
    trust, measured = spec.trust, standings.measured
    if trust is None or not trust.show:
        return ()
    covered = frozenset[str]() if measured is None else measured.covered
    wait = [r for r in standings.rows if r.rank is not None and r.id not in covered]
    last, today = spec.last_day_of(standings.season), standings.as_of.date()
    since = figures_due_since(standings, spec, None if closed is None else closed.date())
    when = say_after(trust, today, last=last)
    if measured is None:
        parts = join_names(_PARTS[part] for part in trust.show)
        said = [f"{parts[:1].upper()}{parts[1:]} appear here {when}. {_WHY}"]
    else:
        newer = count(len(wait), "newer entry is", "newer entries are")
        they = "It" if len(wait) == 1 else "They"
        said = [f"{newer} not compared yet. {they} will be {when}."] if wait else []
    if since is not None:
        said.append(
            f"Due since {day_words(since)}: they appear when the organisers rebuild the page."
        )
    return tuple(said)


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
