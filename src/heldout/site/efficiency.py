"""What teams state of their systems' costs: lines of an entry's page, and charts of the board."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal

from heldout.board.log.efficiency import Efficiency
from heldout.board.ranking.standings import Row
from heldout.charts.layers import Canvas
from heldout.charts.plots import Names, Point, cost_spec
from heldout.charts.svg import draw
from heldout.site.figures import Figure
from heldout.site.rows import Column, TableRow, make_row
from heldout.site.sentences import name_entry
from heldout.site.wording import Phrase, count, join_names, phrase

__all__ = ["make_cost_figures", "pareto_front", "say_cost"]

_CANVASES = (Canvas(width=930, height=300), Canvas(width=292, height=250, left=42, label=24))
_FEWEST = 3
_MOST_NAMED = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class _Cost:
    """A cost that is drawn: id of its figure, field, what a sentence calls it, name of the axis.

    `measured` ends the sentence that says whose numbers they are.
    """

    key: str
    field: str
    title: str
    axis: str
    measured: str = ""

    def of(self, row: Row) -> float | None:
        return getattr(row.efficiency, self.field, None)


_COSTS = (
    _Cost(
        key="cost-latency",
        field="query_latency_ms",
        title="query latency",
        axis="ms per query",
        measured=", each measured on hardware of its own",
    ),
    _Cost(
        key="cost-parameters", field="parameters", title="number of parameters", axis="parameters"
    ),
)


def say_cost(stated: Efficiency | None) -> tuple[tuple[str, str], ...]:
    """What a team states, as (name, words); nothing for what it does not."""
    if stated is None:
        return ()
    lines = (
        ("Parameters", _number(stated.parameters, "")),
        ("Training pairs", _number(stated.training_pairs, "")),
        ("Query latency", _number(stated.query_latency_ms, " ms")),
        ("Energy of the runs", _number(stated.energy_kwh, " kWh")),
        ("Hardware", stated.hardware),
    )
    return tuple((name, words) for name, words in lines if words)


def _number(value: float | None, unit: str) -> str:
    return "" if value is None else f"{Decimal(repr(value)).normalize():,f}{unit}"


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


def make_cost_figures(rows: Sequence[Row], columns: tuple[Column, ...]) -> tuple[Figure, ...]:
    """A chart for each cost that at least three entries state.

    Args:
        rows: public rows with a rank, and baselines, which state nothing.
        columns: the public views, the one that ranks first.
    """
    figures = []
    for cost in _COSTS:
        stated = [row for row in rows if cost.of(row) is not None]
        if sum(bool(cost.of(row)) for row in stated) >= _FEWEST:
            entries = sum(not row.baseline for row in rows)
            figures.append(_cost_figure(cost, stated, columns, entries=entries))
    return tuple(figures)


def _cost_figure(
    cost: _Cost, stated: Sequence[Row], columns: tuple[Column, ...], *, entries: int
) -> Figure:
    official = columns[0]
    places = {row.id: _place(cost, row, official) for row in stated}
    best = pareto_front(places.values())
    front = [row for row in stated if places[row.id] in best]
    names = Names(y=official.title, x=cost.axis)
    points = [_point(cost, row, columns, front=row in front) for row in stated]
    wide, narrow = (draw(cost_spec(points, canvas, names=names)) for canvas in _CANVASES)
    drawn = len([point for point in points if point.other and not point.record])
    return Figure(
        key=cost.key,
        title=f"{official.title} against {cost.title}",
        says=phrase(
            f"{len(stated)} of {count(entries, 'entry', 'entries')} state their {cost.title}. ",
            _say_front([make_row(row, columns) for row in front]),
            _say_free(sum(not cost.of(row) for row in stated)),
            f" The numbers are the teams' own{cost.measured}.",
        ),
        key_words=(
            ("diamond", "on the Pareto front"),
            *((("circle", "other entry"),) if drawn else ()),
        ),
        wide=wide,
        narrow=narrow,
        records=(),
    )


def _place(cost: _Cost, row: Row, official: Column) -> tuple[Decimal, Decimal]:
    return Decimal(repr(cost.of(row))), Decimal(row.scores[official.key])


def _point(cost: _Cost, row: Row, columns: tuple[Column, ...], *, front: bool) -> Point:
    line = make_row(row, columns)
    return Point(
        label=line.system,
        day=row.received.date(),
        score=float(line.primary.text),
        other=cost.of(row),
        record=front,
    )


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
