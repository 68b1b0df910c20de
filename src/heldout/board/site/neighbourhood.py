"""The picture that leads an entry's page: the entry beside those next to it in the table."""

from collections.abc import Sequence

from heldout.board.site.figures import Figure
from heldout.board.site.rows import TableRow, name_entry
from heldout.board.site.words import phrase
from heldout.charts.axes import place_axis, score_axis
from heldout.charts.plot import Plot
from heldout.charts.plot import Row as Line
from heldout.charts.svg import LINK, MUTED, Style, cut

_BESIDE = 3
"""Rows above it and below it."""

_WIDTH = 720
_NAME = 40


def list_beside(at: int, scored: Sequence[TableRow]) -> Sequence[TableRow]:
    """An entry and the rows next to it; see `make_neighbourhood`."""
    return scored[max(0, at - _BESIDE) : at + _BESIDE + 1]


def make_neighbourhood(at: int, scored: Sequence[TableRow], *, ranks: bool = True) -> Figure | None:
    """An entry and the rows next to it.

    With ranges of ranks these are drawn, for an overlap says more than a difference of scores; else
    the scores, with their spread over seeds.

    Args:
        at: its position.
        scored: the rows of the table that have a score, the best first.
        ranks: whether each has its rank beside its name.

    Returns:
        `None` where the entry stands alone.
    """
    if len(scored) == 1:
        return None
    entry = scored[at]
    shown = list_beside(at, scored)
    ranged = any(row.span is not None for row in shown)
    title = entry.primary.column.title
    says = f"{title} on the right; the line is the range of ranks, the mark the rank."
    if not ranged:
        spread = any(row.primary.spread for row in shown)
        says = f"{title}{', and a line for the standard deviation over seeds' * spread}."
    return Figure(
        key="neighbourhood",
        title="Beside its neighbours",
        says=phrase(says),
        marks=(("match", "this entry"), ("circle", "others")),
        chart=_draw_ranks(shown, entry.id)
        if ranged
        else _draw_scores(shown, entry.id, ranks=ranks),
        width=_WIDTH,
    )


def _draw_ranks(shown: Sequence[TableRow], own: str) -> Plot:
    spans = [row.span for row in shown if row.span is not None]
    ranks = [row.rank for row in shown if row.rank is not None]
    first = min([*ranks, *(low for low, _, _ in spans)])
    last = max([*ranks, *(high for _, high, _ in spans)])
    plot = Plot(x=place_axis(last, first), rows=_name_lines(shown), foot="rank")
    for line, row in enumerate(shown):
        low, high, _ = row.span or (None, None, 0)
        plot.interval(line, low, high, LINK if row.id == own else MUTED)
        if row.rank is not None:
            _mark(plot, row.rank, line, row, own)
    return plot


def _draw_scores(shown: Sequence[TableRow], own: str, *, ranks: bool) -> Plot:
    scores = [float(row.primary.text) for row in shown]
    spreads = [float(row.primary.spread or 0) for row in shown]
    ends = [
        end
        for score, more in zip(scores, spreads, strict=True)
        for end in (score - more, score + more)
    ]
    title = shown[0].primary.column.title
    plot = Plot(x=score_axis(ends), rows=_name_lines(shown, ranks=ranks), foot=title)
    for line, (row, score, spread) in enumerate(zip(shown, scores, spreads, strict=True)):
        if spread:
            plot.interval(line, score - spread, score + spread, LINK if row.id == own else MUTED)
        _mark(plot, score, line, row, own)
    return plot


def _mark(plot: Plot, x: float, line: int, row: TableRow, own: str) -> None:
    style: Style = "circle"
    if row.baseline:
        style = "square"
    plot.dots([(x, line, name_entry(row).text)], "match" if row.id == own else style)


def _name_lines(shown: Sequence[TableRow], *, ranks: bool = True) -> list[Line]:
    return [
        Line(
            name=f"{row.rank or 'baseline'} · {name}" if ranks or row.rank is None else name,
            note=row.primary.text,
        )
        for row in shown
        for name in (cut(name_entry(row).text, _NAME),)
    ]
