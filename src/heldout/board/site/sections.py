"""The sections below the table: further views, views that list some entries, and a final.

Nobody reads a table of ten columns, so fairness, other labels and parts of the queries have tables
of their own. What other labels change is said in sentences, out of published scores alone.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import pairwise
from urllib.parse import quote

import msgspec

from heldout.answers.text import clean
from heldout.board.log.final import OpenedFinal
from heldout.board.rules.spec import BoardSpec, View
from heldout.board.site.rows import (
    TableRow,
    ViewColumn,
    make_columns,
    make_row,
    name_entry,
    public_row,
    public_rows,
)
from heldout.board.site.words import Part, Phrase, count, phrase
from heldout.board.standings.seasons import listing_views, rank_listed
from heldout.board.standings.standings import Row, Standings
from heldout.charts.axes import day_words

_FEWEST = 2
_MOST_MOVES = 12


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
    return tuple(
        _make_listing(rank_listed(standings, view), spec, view) for view in listing_views(spec)
    )


def rules_of(spec: BoardSpec, view: View) -> BoardSpec:
    """The rules under which a view ranks."""
    return msgspec.structs.replace(spec, primary=view.name)


def listing_files(view: View) -> tuple[str, str]:
    """CSV and JSON of a view's standings, below `leaderboard/`."""
    return f"views/{view.name}.csv", f"views/{view.name}.json"


def _make_listing(standings: Standings, spec: BoardSpec, view: View) -> Listing:
    columns = make_columns(rules_of(spec, view))
    rows = tuple(make_row(row, columns) for row in public_rows(standings))
    csv, json = listing_files(view)
    return Listing(
        anchor=f"view-{view.name}",
        title=f"Trained on at most {view.training_at_most:,} pairs ({clean(view.name)})",
        column=columns[0],
        rows=tuple(row for row in rows if not row.unranked),
        unranked=tuple(row for row in rows if row.unranked and not row.baseline),
        csv=quote(csv),
        json=quote(json),
    )


def say_label_changes(rows: Sequence[Row], spec: BoardSpec) -> tuple[str, ...]:
    """A sentence or two for each public view that has other labels and is else the one that ranks.

    Each is compared with the one before it, the first with the view that ranks.

    Args:
        rows: public rows; those with a score on both views are compared.
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

    from heldout.stats.tau_ranges import Both, find_taus  # noqa: PLC0415 - said above

    scores = [[float(row.scores[view.name]) for row in rows] for view in (before, after)]
    means = Both(before=np.array(scores[0]), after=np.array(scores[1]))
    taus = find_taus([row.id for row in rows], means)
    told = "; ".join(
        f"{'undefined' if one.tau is None else f'{one.tau:.2f}'} over {one.name}" for one in taus
    )
    head = f"By the labels {clean(str(after.labels))}, of {count(len(rows), 'system')}"
    moves = [*_list_moves(rows, before, after)]
    moved = "no rank changes" if not moves else f"other ranks: {_join_moves(moves)}"
    return f"{head}: Kendall's tau with {_name_labels(before)} is {told}; {moved}."


def _name_labels(view: View) -> str:
    return "the ranking above" if view.labels is None else f"that by {clean(view.labels)}"


def _list_moves(rows: Sequence[Row], before: View, after: View) -> Iterator[str]:
    for row in rows:
        was, now = (
            1 + sum(Decimal(r.scores[v.name]) > Decimal(row.scores[v.name]) for r in rows)
            for v in (before, after)
        )
        if was != now:
            yield f"{row.id} from {was} to {now}"


def _join_moves(moves: Sequence[str]) -> str:
    more = len(moves) - _MOST_MOVES
    rest = f", and {more:,} more" if more > 0 else ""
    return ", ".join(moves[:_MOST_MOVES]) + rest


def make_final(standings: Standings, spec: BoardSpec) -> FinalSection | None:
    """The section of a board whose finalists are named, `None` for any other."""
    final, view = standings.final, spec.finalists_view
    if final is None or view is None:
        return None
    columns = make_columns(spec)
    lines = {row.id: make_row(public_row(row), columns) for row in standings.finalists}
    opened = final.opened
    ids = [*final.finalists]
    if opened is not None:
        ids.sort(key=lambda name: -float(opened.scores[name]))  # equal ones as they came
    measure = clean(view.measure)
    says: tuple[Phrase, ...] = (_say_coming(standings, spec),)
    if opened is not None:
        came = _say_when(final.openings, opened.queries)
        says = _say_opened(opened, lines, came, measure=measure)
    return FinalSection(
        says=says,
        measure=measure,
        rows=tuple(_make_finalist(lines[name], opened) for name in ids),
        opened=opened is not None,
        changes=_list_final_changes(standings, lines),
    )


def _make_finalist(line: TableRow, opened: OpenedFinal | None) -> FinalistRow:
    if opened is None:
        return FinalistRow(row=line, score="", mark="")
    mark = "clearly below the best" if line.id in opened.below else ""
    mark = "winner" if line.id == opened.winner else mark
    return FinalistRow(row=line, score=opened.scores[line.id], mark=mark)


def _say_coming(standings: Standings, spec: BoardSpec) -> Phrase:
    final = standings.final
    if final is None or spec.closes is None:
        raise ValueError(spec.name)
    many = count(len(final.finalists), "finalist")
    verb = "is" if len(final.finalists) == 1 else "are"
    return phrase(
        f"{many} {verb} named. After {day_words(spec.closes)} their scores on queries that were "
        "never used before are published, once. The earliest finalist that is not clearly below "
        "the best wins."
    )


def _say_opened(
    opened: OpenedFinal, lines: Mapping[str, TableRow], came: str, *, measure: str
) -> tuple[Phrase, ...]:
    many, score = len(opened.scores), opened.scores[opened.winner]
    won = phrase(_begin_with(lines[opened.winner]), " wins with ", Part(text=score, strong=True))
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
    luck = phrase(
        f"Luck of the best: of {many} equally good finalists the highest score lies ",
        Part(text=f"{opened.luck} {measure}", strong=True),
        " above its worth on average.",
    )
    return (phrase(won, why, came), *((luck,) if opened.luck else ()))


def _say_when(openings: Sequence[OpenedFinal], queries: int) -> str:
    of = f"from {count(queries, 'query', 'queries')} never used before"
    first, last = day_words(openings[0].at), day_words(openings[-1].at)
    if len(openings) == 1:
        return f" The scores came once, on {first}, {of}."
    return f" The scores came first on {first}, {of}, and again on {last}, for the reason below."


def _begin_with(row: TableRow) -> Part:
    """An entry at the beginning of a sentence."""
    named = name_entry(row)
    return named if named.name else Part(text="An anonymous entry", href=named.href)


def _list_final_changes(standings: Standings, lines: Mapping[str, TableRow]) -> tuple[Phrase, ...]:
    final = standings.final
    if final is None:
        return ()
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
        for before, after in zip(final.openings, final.openings[1:], strict=False)
    ]
    return (*namings, *openings)


def _quote(why: str) -> Part:
    """The organisers' words; their direction does not reach its neighbours."""
    return Part(text=clean(why), name=True)


def say_final(spec: BoardSpec) -> str:
    """The rule of a board with a final, "" for any other."""
    view = spec.finalists_view
    if view is None or view.finalists is None or spec.closes is None:
        return ""
    return (
        f"Every submission has a run on the {clean(view.set)} queries, which nothing else uses. At "
        f"most {count(view.finalists, 'finalist')} are named in public; after "
        f"{day_words(spec.closes)} their {clean(view.measure)} on them is published, once, and no "
        "other score ever. The earliest finalist wins that is not below the best by more than two "
        "standard errors of the difference, query by query."
    )
