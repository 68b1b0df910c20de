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
from heldout.board.log.final import ExactScores, Final, OpenedFinal
from heldout.board.rules.final_view import INDEPENDENT
from heldout.board.rules.spec import BoardSpec, View
from heldout.board.site.confidence import RankingTrust
from heldout.board.site.rows import (
    TableRow,
    ViewColumn,
    capital,
    make_columns,
    make_rows,
    name_entry,
    public_row,
)
from heldout.board.site.words import Part, Phrase, count, phrase
from heldout.board.standings.season_ends import Ending, find_ending, say_season
from heldout.board.standings.seasons import listing_views, rank_listed
from heldout.board.standings.standings import Row, Standings
from heldout.charts.axes import day_words

_FEWEST = 2
_MOST_MOVES = 12


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
        ends: of a season: what comes at its end, or came, in sentences.
    """

    anchor: str
    title: str
    column: ViewColumn
    rows: tuple[TableRow, ...]
    unranked: tuple[TableRow, ...]
    path: str
    days: str = ""
    trust: RankingTrust | None = None
    ends: tuple[Phrase, ...] = ()


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
        says: who wins and why; before the opening, what is to come.
        measure: of the final view.
        rows: finalists by score, the best first; before the opening in the order of receipt.
        opened: whether their scores are published.
        changes: finalists that were named again, and openings that were corrected, with the reason.
    """

    says: tuple[Phrase, ...]
    measure: str
    rows: tuple[FinalistRow, ...]
    opened: bool
    changes: tuple[Phrase, ...]


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
    measure = clean(view.measure)
    if opened is None:
        says: tuple[Phrase, ...] = (_say_coming(final, spec),)
    else:
        came = _say_when(final.openings, opened.queries)
        says = _say_opened(opened, lines, came, measure=measure)
    return FinalSection(
        says=says,
        measure=measure,
        rows=tuple(_make_finalist(lines[name], opened) for name in ids),
        opened=opened is not None,
        changes=_list_final_changes(final, lines),
    )


def _make_finalist(line: TableRow, opened: OpenedFinal | None) -> FinalistRow:
    if opened is None:
        return FinalistRow(row=line, score="", mark="")
    mark = "clearly below the best" if line.id in opened.below else ""
    mark = "winner" if line.id == opened.winner else mark
    return FinalistRow(row=line, score=opened.scores[line.id], mark=mark)


def _say_coming(final: Final, spec: BoardSpec) -> Phrase:
    if spec.closes is None:
        raise ValueError(spec.name)
    many = count(len(final.finalists), "finalist")
    verb = "is" if len(final.finalists) == 1 else "are"
    return phrase(
        f"{many} {verb} named. After {day_words(spec.closes)} their scores on queries that were "
        "never used before are published, once. The earliest finalist that is not clearly below "
        "the best wins."
    )


def say_season_end(standings: Standings, spec: BoardSpec) -> tuple[Phrase, ...]:
    """Say when the season ends, and what comes then; after its end how much luck is in its scores.

    Args:
        standings: of the board or season.
        spec: its rules.

    Returns:
        Sentences; none where a season's end publishes no exact score.
    """
    end, ending = standings.season_end, find_ending(spec, standings.season)
    if end is None:
        return () if ending is None else (phrase(_say_ending(ending, standings.as_of.date())),)
    view = next(view for view in spec.views if view.name == end.view)
    opened, early = end.opened, len(end.opened.scores) - len(end.named)
    more = f", and {count(early, 'other')} that had a number at once" if early else ""
    first, last = day_words(end.openings[0].at), day_words(opened.at)
    again = f", and again on {last}" if len(end.openings) > 1 else ""
    came = f"The season's end on {first}{again} gave exact scores"
    came += f" to {count(len(end.named), 'named entry', 'named entries')}{more}."
    changes = [
        phrase(f"Scored again on {day_words(one.at)}: ", _quote(one.why))
        for one in end.openings[1:]
    ]
    return (phrase(came), *_say_luck(opened, "entries", measure=clean(view.measure)), *changes)


def _say_ending(ending: Ending, today: date) -> str:
    season, last = say_season(ending.season), day_words(ending.last)
    if today > ending.last:
        return (
            f"The last day of {season}, {last}, is over. The exact scores of the named entries "
            "come when the organisers have decided on every submission and rebuild the page."
        )
    return (
        f"The last day of {season} is {last}. On the day after it each team's named entry gets its "
        "exact score: the latest with season_entry: true in its metadata. Where there is none, it "
        "is the entry with the highest number for information, or else the latest."
    )


def _say_opened(
    opened: OpenedFinal,
    lines: Mapping[str, TableRow],
    came: str,
    *,
    measure: str,
) -> tuple[Phrase, ...]:
    many, score = len(opened.scores), opened.scores[opened.winner]
    won = phrase(
        capital(name_entry(lines[opened.winner])), " wins with ", Part(text=score, strong=True)
    )
    if many == 1:
        why = phrase(f" {measure}, as the only finalist.")
    elif opened.winner == opened.best:
        earlier = "; every earlier finalist is clearly below it" * (bool(opened.below))
        why = phrase(f" {measure}, the highest score of {many} finalists{earlier}.")
    else:
        best = phrase(name_entry(lines[opened.best]), f" with {opened.scores[opened.best]}.")
        why = phrase(
            f" {measure}: it is the earliest finalist that is not clearly below the best, ", best
        )
    return (phrase(won, why, came), *_say_luck(opened, "finalists", measure=measure))


def _say_luck(opened: ExactScores, nouns: str, *, measure: str) -> Iterator[Phrase]:
    if opened.luck:
        yield phrase(
            f"Luck of the best: of {len(opened.scores)} equally good {nouns} the highest score "
            "lies ",
            Part(text=f"{opened.luck} {measure}", strong=True),
            f" above its worth on average. {INDEPENDENT}",
        )


def _say_when(openings: Sequence[OpenedFinal], queries: int) -> str:
    of = f"from {count(queries, 'query', 'queries')} never used before"
    first, last = day_words(openings[0].at), day_words(openings[-1].at)
    if len(openings) == 1:
        return f" The scores came once, on {first}, {of}."
    return f" The scores came first on {first}, {of}, and again on {last}, for the reason below."


def _list_final_changes(final: Final, lines: Mapping[str, TableRow]) -> tuple[Phrase, ...]:
    namings = [
        phrase(f"Finalists named again on {day_words(one.at)}: ", _quote(one.why))
        for one in final.namings[1:]
    ]
    openings = [
        phrase(
            f"On {day_words(before.at)} ",
            name_entry(lines[before.winner]),
            f" won with {before.scores[before.winner]}. Scored again on {day_words(after.at)}: ",
            _quote(after.why),
        )
        for before, after in pairwise(final.openings)
    ]
    return (*namings, *openings)


def _quote(why: str) -> Part:
    """The organisers' words; their direction does not reach its neighbours."""
    return Part(text=clean(why), name=True)
