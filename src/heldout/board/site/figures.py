"""The charts of a page with what is said of them, from standings."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal
from statistics import median
from typing import TYPE_CHECKING, Any

from heldout.board.site.columns import COLUMNS, EntryColumn
from heldout.board.site.rows import TableRow, ViewColumn, read_template, short_name, stars_of
from heldout.board.standings.standings import Row, Standings, best_so_far
from heldout.charts.plot import Chart, inline
from heldout.charts.scores import ChartEntry, cost_chart, gap_chart, progress_chart, scatter_chart

if TYPE_CHECKING:
    from markupsafe import Markup

_WIDE, _HALF, _NARROW = 990, 460, 350  # of a screen, of a column of it, of a phone


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A chart.

    Attributes:
        key: its id in the page.
        title: its heading.
        says: what it shows, in a sentence.
        marks: what its marks mean, as (shape, words).
        chart: what is drawn.
        width: on a screen.
        records: the entries on the line of records, for a table; empty for other charts.
    """

    key: str
    title: str
    says: str
    marks: tuple[tuple[str, str], ...]
    chart: Chart
    width: int = _WIDE
    records: Sequence[TableRow] = ()

    @property
    def wide(self) -> str:
        """The chart as SVG for a screen."""
        return inline(self.chart, self.width)

    @property
    def narrow(self) -> str:
        """The same for a phone."""
        return inline(self.chart, _NARROW)


def _say(kind: str, **values: Any) -> "Markup":
    """Say what a chart shows: a macro of `figures.html`."""
    said: Markup = getattr(read_template("figures.html").module, kind)(**values)
    return said


def make_figures(
    standings: Standings,
    rows: Sequence[Row],
    columns: tuple[ViewColumn, ...],
    *,
    bar: bool = True,
    one_by_one: bool = True,
) -> tuple[Figure, ...]:
    """The charts that the rows can fill: none on an empty board.

    Args:
        standings: for its day.
        rows: its public rows.
        columns: the public views, the one that ranks first.
        bar: whether records have to be above the baselines, where there are any.
        one_by_one: whether scores are published as they come: else there are no records over time.
    """
    if all(row.baseline for row in rows):
        return ()
    today = standings.as_of.date()
    record = all(row.imported for row in rows)
    if record:
        today = max(row.received.date() for row in rows)
    bar = bar and any(row.baseline for row in rows)
    dev = _dev_column(columns)
    records = best_so_far(rows, columns[0].key, bar=bar) if one_by_one else ()
    points = _points(rows, columns, dev, records)
    figures = []
    if one_by_one:
        steps = [TableRow(row, columns) for row in records]
        stars = stars_of(standings.measured)
        signs = [_STARS.get(stars.get(row.id, ""), "") for row in rows]
        starred = [
            replace(point, label=sign + point.label) if sign else point
            for point, sign in zip(points, signs, strict=True)
        ]
        on = f"on {columns[0].title}"
        figures = [
            Figure(
                key="progress",
                title="Scores over time",
                says=_say("progress", records=steps, on=on, bar=bar, starred=any(signs)),
                marks=_key(points, baseline="dash"),
                chart=progress_chart(starred, until=today, head=columns[0].title),
                records=steps,
            )
        ]
    if dev is not None:
        figures += _scatter(points, columns[0], dev)
    if record and dev is not None:
        figures += _gap(points, columns[0], dev, today)
    if record:
        figures += _reranking(rows, columns, today)
    return tuple(figures)


def _dev_column(columns: tuple[ViewColumn, ...]) -> ViewColumn | None:
    """The public counterpart of the official view: the same measure where there is one."""
    official, *others = columns
    dev = [c for c in others if not c.held_out]
    same = [c for c in dev if c.measure == official.measure]
    return next(iter(same or dev), None)


def _points(
    rows: Sequence[Row],
    columns: tuple[ViewColumn, ...],
    dev: ViewColumn | None,
    records: Sequence[Row],
) -> list[ChartEntry]:
    official = columns[0].key
    ids = {row.id for row in records}
    return [
        ChartEntry(
            label=short_name(row),
            day=row.received.date(),
            score=float(row.scores[official]),
            other=float(row.scores[dev.key]) if dev and dev.key in row.scores else None,
            record=row.id in ids,
            baseline=row.baseline,
            key=row.id,
        )
        for row in rows
    ]


_STARS = {"significant": "★ ", "noise": "☆ "}


def _key(points: Sequence[ChartEntry], *, baseline: str) -> tuple[tuple[str, str], ...]:
    """The marks that a chart has, with their words."""
    marks = (
        ("diamond", "record", any(p.record for p in points)),
        (
            "circle",
            "other entry" if any(p.record for p in points) else "entry",
            any(not p.record and not p.baseline for p in points),
        ),
        (baseline, "baseline", any(p.baseline for p in points)),
    )
    return tuple((shape, words) for shape, words, there in marks if there)


def _gap(
    every: Sequence[ChartEntry], official: ViewColumn, dev: ViewColumn, today: date
) -> list[Figure]:
    """Official less dev score over time (Lin et al. 2022, figure 3, right)."""
    gaps = [
        ChartEntry(label=p.label, day=p.day, score=p.score - p.other, key=p.key)
        for p in every
        if p.other is not None and not p.baseline
    ]
    if not gaps:
        return []
    below = sum(gap.score < 0 for gap in gaps)
    chart = gap_chart(
        gaps,
        until=today,
        head=f"{official.title} − {dev.set}",
        equal=f"{official.set} = {dev.set}",
    )
    return [
        Figure(
            key="gap",
            title="Official less dev score over time",
            says=_say(
                "gap",
                below=below,
                entries=len(gaps),
                official=official,
                dev=dev,
                middle=median(gap.score for gap in gaps),
            ),
            marks=(("circle", "entry"), ("dash", "no difference")),
            chart=chart,
        )
    ]


_RERANKING = "reranking"


def _reranking(rows: Sequence[Row], columns: tuple[ViewColumn, ...], today: date) -> list[Figure]:
    """Re-ranking alone, below the best of all others."""
    entries = [row for row in rows if not row.baseline]
    alone = [row for row in entries if row.type == _RERANKING]
    others = [row for row in entries if row.type != _RERANKING]
    if not alone or not others:
        return []
    records = best_so_far(alone, columns[0].key, bar=False)
    level = TableRow(others[0], columns)
    score = float(level.primary.text)
    best = ChartEntry(label=f"full ranking: {level.system}", day=today, score=score, baseline=True)
    points = [*_points(alone, columns, None, records), best]
    chart = progress_chart(points, until=today, head=columns[0].title)
    steps = [TableRow(row, columns) for row in records]
    return [
        Figure(
            key="reranking",
            title="Re-ranking against full ranking",
            says=_say(
                "reranking", alone=len(alone), entries=len(entries), best=steps[-1], level=level
            ),
            marks=(
                ("diamond", "best re-ranking then"),
                ("circle", "other re-ranking"),
                ("dash", "best full ranking"),
            ),
            chart=chart,
            records=steps,
        )
    ]


def _scatter(every: Sequence[ChartEntry], official: ViewColumn, dev: ViewColumn) -> list[Figure]:
    points = [point for point in every if point.other is not None]
    ratios = [p.score / p.other for p in points if p.other]
    fewest = 3
    if len(points) < fewest or len(ratios) < fewest or not all(ratios):
        return []
    ratio = median(ratios)
    far = [p for p in points if p.other and p.score < _BROKEN * ratio * p.other]
    chart = scatter_chart(points, ratio=ratio, head=official.title, foot=dev.title)
    return [
        Figure(
            key="dev-and-official",
            title="Official score against dev score",
            says=_say(
                "scatter",
                ratios=ratios,
                ratio=ratio,
                official=official,
                dev=dev,
                far=far if len(far) <= _MOST_NAMED else (),
            ),
            marks=_key(points, baseline="square"),
            chart=chart,
            width=_HALF,
        )
    ]


_BROKEN = 0.75
"""Share of the usual ratio below which a run's file is rather broken than overfitted."""
_MOST_NAMED = 6


# Charts of what teams state of their systems' costs: each column of the table with an axis.

_FEWEST = 3


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
    cost: EntryColumn, stated: Sequence[Row], columns: tuple[ViewColumn, ...], *, entries: int
) -> Figure:
    official = columns[0]
    costs = {row.id: Decimal(repr(cost.of(row))) for row in stated}
    positions = {row.id: (costs[row.id], Decimal(row.scores[official.key])) for row in stated}
    best = pareto_front(positions.values())
    front = [row for row in stated if positions[row.id] in best]
    points = [
        ChartEntry(
            label=short_name(row),
            day=row.received.date(),
            score=float(row.scores[official.key]),
            other=float(costs[row.id]),
            record=row in front,
        )
        for row in stated
    ]
    chart = cost_chart(points, head=official.title, foot=cost.axis)
    drawn = len([point for point in points if point.other and not point.record])
    return Figure(
        key=f"cost-{cost.key}",
        title=f"{official.title} against {cost.title.lower()}",
        says=_say(
            "cost",
            stated=len(stated),
            entries=entries,
            free=sum(not cost.of(row) for row in stated),
            front=[TableRow(row, columns) for row in front],
            cost=cost,
        ),
        marks=(
            ("diamond", "on the Pareto front"),
            *((("circle", "other entry"),) if drawn else ()),
        ),
        chart=chart,
    )
