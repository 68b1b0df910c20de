"""Charts of what teams state of their systems' costs: each column of the table with an axis."""

from collections.abc import Iterable, Sequence
from decimal import Decimal

from heldout.board.ranking.standings import Row
from heldout.charts.layers import Canvas
from heldout.charts.plots import Names, Point, cost_spec
from heldout.charts.svg import draw
from heldout.site.columns import COLUMNS, Column
from heldout.site.figures import Figure
from heldout.site.rows import TableRow, ViewColumn, make_row
from heldout.site.sentences import name_entry
from heldout.site.wording import Phrase, count, join_names, phrase

__all__ = ["make_cost_figures", "pareto_front"]

_CANVASES = (Canvas(width=930, height=300), Canvas(width=292, height=250, left=42, label=24))
_FEWEST = 3
_MOST_NAMED = 6


def pareto_front(points: Iterable[tuple[Decimal, Decimal]]) -> frozenset[tuple[Decimal, Decimal]]:
    """The points that no other point beats: none costs no more and scores no less.

    Equal points are one point, and do not beat each other.

    Args:
        points: (cost, score).
    """
    front = set()
    best: Decimal | None = None
    for cost, score in sorted(points, key=lambda point: (point[0], -point[1])):
        if best is None or score > best:
            best = score
            front.add((cost, score))
    return frozenset(front)


def make_cost_figures(rows: Sequence[Row], columns: tuple[ViewColumn, ...]) -> tuple[Figure, ...]:
    """A chart for each cost that at least three entries state.

    Args:
        rows: public rows with a rank, and baselines, which state nothing.
        columns: the public views, the one that ranks first.
    """
    figures = []
    for cost in (column for column in COLUMNS if column.axis):
        stated = [row for row in rows if cost.of(row) is not None]
        if sum(bool(cost.of(row)) for row in stated) >= _FEWEST:
            entries = sum(not row.baseline for row in rows)
            figures.append(_cost_figure(cost, stated, columns, entries=entries))
    return tuple(figures)


def _cost_figure(
    cost: Column, stated: Sequence[Row], columns: tuple[ViewColumn, ...], *, entries: int
) -> Figure:
    official = columns[0]
    places = {row.id: _place(cost, row, official) for row in stated}
    best = pareto_front(places.values())
    front = [row for row in stated if places[row.id] in best]
    names = Names(y=official.title, x=cost.axis)
    points = [
        Point(
            label=make_row(row, columns).system,
            day=row.received.date(),
            score=float(row.scores[official.key]),
            other=float(places[row.id][0]),
            record=row in front,
        )
        for row in stated
    ]
    wide, narrow = (draw(cost_spec(points, canvas, names=names)) for canvas in _CANVASES)
    drawn = len([point for point in points if point.other and not point.record])
    return Figure(
        key=f"cost-{cost.key}",
        title=f"{official.title} against {cost.title.lower()}",
        says=phrase(
            f"{len(stated)} of {count(entries, 'entry', 'entries')} state their "
            f"{cost.title.lower()}. ",
            _say_front([make_row(row, columns) for row in front]),
            _say_free(sum(not cost.of(row) for row in stated)),
            f" The numbers are the teams' own{cost.caveat}.",
        ),
        key_words=(
            ("diamond", "on the Pareto front"),
            *((("circle", "other entry"),) if drawn else ()),
        ),
        wide=wide,
        narrow=narrow,
        records=(),
    )


def _place(cost: Column, row: Row, official: ViewColumn) -> tuple[Decimal, Decimal]:
    return Decimal(repr(cost.of(row))), Decimal(row.scores[official.key])


def _say_front(front: Sequence[TableRow]) -> Phrase:
    """Which entries are on the front, by name if they are few; the best score first."""
    beaten = "no other is at least as good at the same cost or less"
    if len(front) > _MOST_NAMED:
        return phrase(f"{len(front)} of them are on the Pareto front: {beaten}.")
    who = join_names([name_entry(row) for row in front])
    return phrase("On the Pareto front, where " + beaten, ": ", who, ".")


def _say_free(free: int) -> str:
    if not free:
        return ""
    some = "1 that states" if free == 1 else f"{free} that state"
    return f" {some} 0 cannot be drawn on an axis of logarithms."
