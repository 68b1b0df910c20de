"""A chart as values, marks and names; laid out at the width of whoever looks.

A caller says what is shown, in values of the axes. Where that lies, how many ticks there are,
which names have room and how the key wraps follows from the width alone, so equal charts of equal
width are equal bytes. All texts have one size, so a chart is drawn for its width, never scaled.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Literal, Protocol

from heldout.charts.axes import Axis, Tick
from heldout.charts.svg import (
    DARK,
    HAIR,
    INK,
    LIGHT,
    LINE,
    MARKS,
    MUTED,
    PAPER,
    RULE,
    SIZE,
    SOFT,
    Box,
    LevelLine,
    Point,
    Spot,
    Style,
    clean,
    draw_box,
    draw_line,
    draw_marks,
    draw_text,
    fit,
    fit_labels,
    number,
    text_width,
    wrap,
)
from heldout.errors import InputError, SetupError

SHADES = (INK, MUTED, RULE, SOFT)
"""Greys of a heat map, from much to little; they turn round in the dark."""


def shade(value: float, least: Sequence[float]) -> str:
    """The first of `SHADES` whose least value this reaches; "" below the last."""
    return next((grey for grey, low in zip(SHADES, least, strict=True) if value >= low), "")


SUFFIXES = (".svg", ".png")
"""How the name of a chart's file may end."""

FILE_WIDTH = 460
"""Width of a chart in a file: its texts are 11 pixels high where a phone of 390 shows it whole."""

Mark = Style | Literal["line", "dashed", "thin", "box", "upright"]
"""What stands before a text of the key; any other short text stands for itself."""

NARROW = 400
"""Below this width charts stand below each other."""

_ROW, _HEAD = 24, 26
_CELL, _LEAST, _MOST_NAMED = 30.0, 15.0, 60
_NAMES = 0.4
_SLOPE = 56.0
_BETWEEN = 22
_THIN, _THICK = 1.2, 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class PlotRow:
    """A line of a chart whose vertical axis has names.

    Attributes:
        name: what stands beside it.
        note: what stands at its right end.
        head: a heading above it, "" for none.
        lead: whether its name is shown where rows are too low for all names.
    """

    name: str
    note: str = ""
    head: str = ""
    lead: bool = False


@dataclass(frozen=True, slots=True)
class _Stroke:
    points: tuple[Point, ...]
    colour: str
    width: float
    dash: str


@dataclass(frozen=True, slots=True)
class _Filled:
    across: tuple[float, float]
    up: tuple[float, float]
    colour: str
    tip: str


@dataclass(frozen=True, slots=True)
class _Marks:
    spots: tuple[tuple[float, float, str], ...]
    style: Style
    keys: tuple[str, ...] = ()


@dataclass(slots=True, kw_only=True)
class Plot:
    """A chart that is put together mark by mark, in values of its axes.

    With rows the vertical axis counts them from 0, downwards, each from -0.5 to +0.5 about its
    middle; without them it is `y`. What is drawn first lies below.

    Attributes:
        x, y: the axes.
        rows: the names of the vertical axis.
        head: what is measured upwards, or what the rows are; above the plot.
        foot: what is measured across; below the plot.
        height: of the plot's inside where the vertical axis has numbers, in CSS pixels.
        square: whether rows are as high as the columns of `x` are wide, a matrix: higher ones where
            their names need it, and few names where there are more than 60.
        drawn, keys, names, levels, ends, texts: what the methods below have put on it.
    """

    x: Axis
    y: Axis | None = None
    rows: Sequence[PlotRow] = ()
    head: str = ""
    foot: str = ""
    height: int = 280
    square: bool = False
    drawn: list[_Stroke | _Filled | _Marks] = field(default_factory=list)
    keys: list[tuple[str, str, str]] = field(default_factory=list)
    names: list[tuple[float, float, str, bool]] = field(default_factory=list)
    levels: list[tuple[float, str]] = field(default_factory=list)
    ends: list[tuple[float, str]] = field(default_factory=list)
    texts: list[tuple[float, float, str, str, float]] = field(default_factory=list)

    def line(
        self, points: Iterable[Point], colour: str = INK, *, thin: bool = False, dash: bool = False
    ) -> None:
        """A line through points; dashed ones are thin."""
        width = _THIN if thin or dash else _THICK
        self.drawn.append(_Stroke(tuple(points), colour, width, "4 4" if dash else ""))

    def stairs(self, points: Iterable[Point], end: float, colour: str = INK) -> None:
        """A line on which each point's height holds until the next, the last one to the end."""
        corners: list[Point] = []
        for x, y in points:
            corners += [(x, corners[-1][1]), (x, y)] if corners else [(x, y)]
        if corners:
            self.line([*corners, (end, corners[-1][1])], colour)

    def level(self, y: float, name: str = "") -> None:
        """A dashed line across the whole plot, with its name where there is room."""
        self.line([(self.x.low, y), (self.x.high, y)], MUTED, dash=True)
        self.levels.append((y, name))

    def upright(self, x: float) -> None:
        """A dashed line over all rows."""
        self.line([(x, -0.5), (x, len(self.rows) - 0.5)], MUTED, dash=True)

    def box(
        self, across: tuple[float, float], up: tuple[float, float], colour: str, tip: str = ""
    ) -> None:
        """A filled box: a cell, a band, a bar that stands."""
        self.drawn.append(_Filled(across, up, colour, tip))

    def bar(self, across: tuple[float, float], row: int, colour: str, tip: str = "") -> None:
        """A box along a row."""
        self.box(across, (row - 0.32, row + 0.32), colour, tip)

    def interval(
        self, row: float, low: float | None, high: float | None, colour: str = INK, *,
        thin: bool = False,
    ) -> None:  # fmt: skip
        """A line along a row where both ends are known."""
        if low is not None and high is not None:
            self.line([(low, row), (high, row)], colour, thin=thin)

    def dots(
        self, spots: Iterable[tuple[float, float, str]], style: Style, keys: Iterable[str] = ()
    ) -> None:
        """Marks with their tooltips: (x, y, tooltip); a page's script finds them by the keys."""
        self.drawn.append(_Marks(tuple(spots), style, tuple(keys)))

    def name(self, x: float, y: float, text: str, *, must: bool = False) -> None:
        """A name beside a point where there is room; the first ones have it first.

        One that must be there may be shortened, or stand above with a line to its point.
        """
        self.names.append((x, y, text, must))

    def end(self, y: float, text: str) -> None:
        """A name at the right end of a line, moved where another stands there."""
        self.ends.append((y, text))

    def text(
        self, x: float, y: float, text: str, colour: str = INK, *, above: bool = False
    ) -> None:
        """A text with its middle at a point, or above a mark that is there."""
        self.texts.append((x, y, text, colour, 12.0 if above else 0.0))

    def key(self, mark: str, text: str, colour: str = INK) -> None:
        """An entry of the key, above the plot: what a `Mark`, or a short text, stands for."""
        self.keys.append((mark, text, colour))

    def shades(self, texts: Sequence[str]) -> None:
        """The key of a heat map: what each of `SHADES` stands for."""
        for colour, text in zip(SHADES, texts, strict=True):
            self.key("box", text, colour)

    def parts(self, width: int) -> tuple[str, float]:
        """The elements at a width, and how high they are."""
        return Sheet(plots=(self,)).parts(width)

    def description(self) -> str:
        """Return what the axes and the marks are, in words."""
        words = (
            ("Upwards" if self.y else "Rows", self.head),
            ("Across", self.foot),
            ("Marks", "; ".join(text for _, text, _ in self.keys)),
        )
        return " ".join(f"{name}: {text}." for name, text in words if text)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sheet:
    """Charts below and beside each other under one key: that of the first one.

    Attributes:
        plots: at least one.
        columns: how many stand beside each other where the width allows for it.
    """

    plots: Sequence[Plot]
    columns: int = 1

    def parts(self, width: int) -> tuple[str, float]:
        """The elements at a width, and how high they are."""
        columns = min(self.columns, len(self.plots)) if width >= NARROW else 1
        own = (width - _BETWEEN * (columns - 1)) / columns
        key, top = _draw_key(self.plots[0].keys, width)
        drawn = [key]
        for start in range(0, len(self.plots), columns):
            top += _BETWEEN if start else 0
            laid = [_Laid(plot, own) for plot in self.plots[start : start + columns]]
            for column, one in enumerate(laid):
                shift = f"translate({number(column * (own + _BETWEEN))},{number(top)})"
                drawn.append(f'<g transform="{shift}">{one.draw()}</g>')
            top += max(one.height for one in laid)
        return "".join(drawn), top

    def description(self) -> str:
        """Return what the axes and the marks are, in words."""
        return self.plots[0].description()


class _Laid:
    """A plot at a width: the position of everything on it."""

    def __init__(self, plot: Plot, width: float) -> None:
        self.plot, self.width = plot, width
        self.heads, self.feet = wrap(plot.head, width), wrap(plot.foot, width)
        self.top = LINE * len(self.heads) + 8.0
        widest = max((text_width(row.name) for row in plot.rows), default=0.0)
        self.above = not plot.square and widest + 10 > _NAMES * width
        self.right, self.low = self._right(), False
        if plot.y:
            self.y_ticks = plot.y.ticks(max(2, plot.height // 36))
            self.cell, self.inside = 14.0, float(plot.height)
            self.left = max((text_width(tick.label) for tick in self.y_ticks), default=0.0) + 9
        else:
            self._lay_rows()
        self.x_ticks = self._x_ticks()
        self.bottom = self.top + self.inside
        self.height = self.bottom + (26 if self.x_ticks else 6) + LINE * len(self.feet)

    def across(self, x: float) -> float:
        """Return where a value of the horizontal axis lies."""
        return self.left + self.plot.x.share(x) * (self.width - self.left - self.right)

    def at(self, x: float, y: float) -> Point:
        """Return where values lie, in pixels from the upper left corner."""
        if self.plot.y:
            return self.across(x), self.top + (1 - self.plot.y.share(y)) * self.inside
        row = min(max(round(y), 0), len(self.plot.rows) - 1)
        return self.across(x), self.middles[row] + (y - row) * self.cell

    def draw(self) -> str:
        """Lines and marks, and all texts over them."""
        texts = [*self._frame_texts(), *self._row_texts(), *self._end_texts(), *self._name_texts()]
        halo = f'<g stroke="{PAPER}" stroke-width="3" stroke-linejoin="round" paint-order="stroke">'
        shapes = "".join(map(self._shape, self.plot.drawn))
        return f"{self._grid()}{shapes}{halo}{''.join(texts)}</g>"

    def _right(self) -> float:
        """Room for what stands at the right end of rows and lines."""
        notes = [] if self.above else [text_width(row.note) for row in self.plot.rows]
        widest = max([*notes, *(text_width(text) for _, text in self.plot.ends)], default=0.0)
        return min(widest + 10, self.width * _NAMES) if widest else 12.0

    def _lay_rows(self) -> None:
        """Rows below each other: where each has its middle, and how high the plot is."""
        plot = self.plot
        self.low = plot.square and len(plot.rows) > _MOST_NAMED
        named = [row for row in plot.rows if row.lead] if self.low else plot.rows
        widest = max((text_width(row.name) for row in named), default=0.0)
        self.left = 2.0 if self.above else min(widest + 10, self.width * _NAMES)
        self.cell = float(_ROW)
        if plot.square:
            self.left += _SLOPE if self.low and named else 0
            columns = plot.x.high - plot.x.low
            across = min((self.width - self.left - self.right) / columns, _CELL)
            self.right = self.width - self.left - across * columns
            self.cell = across if self.low else max(across, _LEAST)
        above = LINE if self.above and any(row.name or row.note for row in plot.rows) else 0
        self.middles: list[float] = []
        y = self.top
        for row in plot.rows:
            y += (_HEAD if row.head else 0) + above
            self.middles.append(y + self.cell / 2)
            y += self.cell
        self.inside = y - self.top

    def _x_ticks(self) -> Sequence[Tick]:
        """As many as do not touch; the plot gives way to a label that would leave the picture."""
        inside = self.width - self.left - self.right
        for most in range(max(2, min(10, int(inside / 50))), 1, -1):
            ticks = self.plot.x.ticks(most)
            ends = [(self.across(tick.at), text_width(tick.label) / 2) for tick in ticks]
            if all(a + half + 10 <= b - other for (a, half), (b, other) in pairwise(ends)):
                break
        over = max((x + half for x, half in ends), default=0.0) - self.width
        self.right += max(0.0, over)
        self.left -= min(0.0, min((x - half for x, half in ends), default=0.0))
        return ticks

    def _grid(self) -> str:
        """Hair lines at the ticks, and the axis."""
        right = self.width - self.right
        lines = []
        for tick in self.y_ticks if self.plot.y else ():
            y = self.at(self.plot.x.low, tick.at)[1]
            lines.append(draw_line([(self.left, y), (right, y)], HAIR, 1))
        flat = self.plot.y or self.plot.square
        for tick in self.x_ticks:
            x = self.across(tick.at)
            top, colour = (self.bottom, RULE) if flat else (self.top, HAIR)
            lines.append(draw_line([(x, top), (x, self.bottom + 4)], colour, 1))
        if self.plot.y:
            lines.append(draw_line([(self.left, self.bottom), (right, self.bottom)], RULE, 1))
        for middle, y, _ in self._leads():
            lines.append(draw_line([(self.left - _SLOPE, y), (self.left - 4, middle)], RULE, 1))
        return "".join(lines)

    def _shape(self, one: _Stroke | _Filled | _Marks) -> str:
        if isinstance(one, _Stroke):
            points = [self.at(*point) for point in one.points]
            return draw_line(points, one.colour, one.width, one.dash)
        if isinstance(one, _Filled):
            (x0, x1), (y0, y1) = zip(*map(self.at, one.across, one.up), strict=True)
            gap = min(1.0, (x1 - x0) / 8) if self.plot.square else 0.0
            high = max(abs(y1 - y0) - gap, 0.2 if self.low else 0.5)
            return draw_box((x0, min(y0, y1), max(x1 - x0 - gap, 0.5), high), one.colour, one.tip)
        spots = [(*self.at(x, y), tip) for x, y, tip in one.spots]
        return draw_marks(spots, one.style, high=self.cell - 6, keys=one.keys)

    def _frame_texts(self) -> Iterator[str]:
        """Yield what stands around the plot, and in its cells."""
        for line, text in enumerate(self.heads):
            yield draw_text(0.0, LINE * (line + 0.5), text, MUTED)
        for tick in self.x_ticks:
            yield draw_text(self.across(tick.at), self.bottom + 15, tick.label, MUTED, "middle")
        for tick in self.y_ticks if self.plot.y else ():
            y = self.at(self.plot.x.low, tick.at)[1]
            yield draw_text(self.left - 8, y, tick.label, MUTED, "end")
        for line, text in enumerate(self.feet):
            y = self.bottom + 26 + LINE * (line + 0.5)
            yield draw_text(self.width, y, text, MUTED, "end")
        for x, y, text, colour, up in self.plot.texts:
            left, top = self.at(x, y)
            if not self.plot.square or text_width(text) < self.cell:
                yield draw_text(left, top - up, text, colour, "middle")

    def _row_texts(self) -> Iterator[str]:
        if self.low:
            for _, y, text in self._leads():
                room = self.left - _SLOPE - 4
                yield draw_text(room, y, fit(text, room), INK, "end")
            return
        for row, y in zip(self.plot.rows, self.middles, strict=True) if self.plot.rows else ():
            top = y - self.cell / 2 - (LINE if self.above and row.name else 0)
            yield draw_text(0.0, top - _HEAD / 2 + 2, fit(row.head, self.width), INK)
            if self.above:
                room = self.width - text_width(row.note) - 12
                yield draw_text(2.0, y - self.cell / 2 - 6, fit(row.name, room), INK)
                yield draw_text(self.width, y - self.cell / 2 - 6, row.note, MUTED, "end")
            else:
                yield draw_text(self.left - 8, y, fit(row.name, self.left - 8), INK, "end")
                yield draw_text(
                    self.width - self.right + 10, y, fit(row.note, self.right - 8), MUTED
                )

    def _leads(self) -> Iterator[tuple[float, float, str]]:
        """Names of a matrix too low for all, one below the other: middle of the row, own middle."""
        last = 0.0
        for row, middle in zip(self.plot.rows, self.middles, strict=True) if self.low else ():
            y = max(middle, last)
            if row.lead and y <= self.bottom:
                yield middle, y, row.name
                last = y + LINE - 2

    def _end_texts(self) -> Iterator[str]:
        ends = sorted((self.at(self.plot.x.high, y)[1], text) for y, text in self.plot.ends)
        placed = _spread([y for y, _ in ends], LINE - 1)
        for y, (_, text) in zip(placed, ends, strict=True):
            yield draw_text(self.width - self.right + 6, y, fit(text, self.right - 6), INK)

    def _name_texts(self) -> Iterator[str]:
        """Names of points and levels where there is room, on no other mark or line."""
        plot = self.plot
        if not plot.names and not any(text for _, text in plot.levels):
            return
        area = Box(self.left, self.top - 8, self.width, self.bottom)
        wanted: list[Spot | LevelLine] = [
            Spot(*self.at(x, y), fit(text, self.width / 2), must) for x, y, text, must in plot.names
        ]
        named = {(one.x, one.y) for one in wanted if isinstance(one, Spot)}
        lines: list[Box] = []
        for mark in plot.drawn:
            if isinstance(mark, _Marks):
                others = {self.at(x, y) for x, y, _ in mark.spots} - named
                wanted += [Spot(x, y, "") for x, y in others]
            elif isinstance(mark, _Stroke) and mark.width >= _THICK:
                lines += _under([self.at(*point) for point in mark.points])
        levels = [LevelLine(self.at(plot.x.low, y)[1], text) for y, text in plot.levels]
        names = {text for _, text in plot.levels}
        for one in fit_labels([*wanted, *levels], lines, area):
            colour = MUTED if one.text in names else INK
            if one.to is not None:
                yield draw_line([(one.x + 4, one.y + 9), (one.x + 4, one.to - 8)], RULE, 1)
            yield draw_text(
                one.x, one.y, one.text, colour, "start" if one.align == "left" else "end"
            )


def _under(points: Sequence[Point]) -> list[Box]:
    """Return what a line covers where it is level or upright."""
    boxes = []
    for (x0, y0), (x1, y1) in pairwise(points):
        if x0 == x1 or y0 == y1:
            left, right, top, bottom = min(x0, x1), max(x0, x1), min(y0, y1), max(y0, y1)
            boxes.append(Box(left - 1, top - 1, right + 1, bottom + 1))
    return boxes


def _spread(wanted: Sequence[float], apart: float) -> list[float]:
    """Heights as near to the wanted ones as may be, in their order and so far apart."""
    blocks: list[tuple[float, int]] = []  # mean of what its members want, less their offsets; size
    for index, height in enumerate(wanted):
        mean, size = height - index * apart, 1
        while blocks and blocks[-1][0] >= mean:
            above, more = blocks.pop()
            mean, size = (above * more + mean * size) / (more + size), more + size
        blocks.append((mean, size))
    starts = [mean for mean, size in blocks for _ in range(size)]
    return [start + index * apart for index, start in enumerate(starts)]


def _draw_key(entries: Sequence[tuple[str, str, str]], width: float) -> tuple[str, float]:
    """The key in lines that are no wider, and how high it is."""
    drawn: list[str] = []
    x, y = 0.0, LINE / 2
    for mark, text, colour in entries:
        lines = wrap(text, width - 24)
        across = 24 + max(map(text_width, lines))
        if x and x + across > width:
            x, y = 0.0, y + LINE
        drawn.append(_key_mark(mark, x + 9, y, colour))
        drawn += [draw_text(x + 24, y + LINE * n, line, INK) for n, line in enumerate(lines)]
        y += LINE * (len(lines) - 1)
        x += across + 16
    return "".join(drawn), y + LINE / 2 + 10 if entries else 0.0


def _key_mark(mark: str, x: float, y: float, colour: str) -> str:
    if mark in MARKS:
        return draw_marks([(x, y, "")], mark, high=14)
    match mark:
        case "line" | "thin" | "dashed":
            dash = "4 4" if mark == "dashed" else ""
            return draw_line(
                [(x - 9, y), (x + 9, y)], colour, _THICK if mark == "line" else _THIN, dash
            )
        case "upright":
            return draw_line([(x, y - 7), (x, y + 7)], colour, 2)
        case "box":
            return draw_box((x - 6, y - 6, 12, 12), colour)
    return draw_text(x, y, mark, INK, "middle")


class Chart(Protocol):
    """What can be drawn."""

    def parts(self, width: int) -> tuple[str, float]:
        """Elements of the chart at a width, and how high it is."""

    def description(self) -> str:
        """Return what the axes and the marks are, in words."""


def inline(chart: Chart, width: int) -> str:
    """A chart as an element of a page, which says in words what it shows."""
    drawn, height = chart.parts(width)
    size = f'viewBox="0 0 {width} {number(height)}" font-size="{SIZE}"'
    return f'<svg {size} aria-hidden="true">{drawn}</svg>'


def stand_alone(chart: Chart, *, title: str) -> str:
    """A chart as an SVG file, light or dark as its reader has it.

    Args:
        chart: what is drawn.
        title: what it shows, for those who do not see it.
    """
    light, dark = ("".join(f"{n}:{v};" for n, v in c.items()) for c in (LIGHT, DARK))
    style = (
        f".heldout{{{light}background:var(--paper);font-family:system-ui,sans-serif}}"
        f"@media(prefers-color-scheme:dark){{.heldout{{{dark}}}}}"
    )
    return _file(chart, title, 'class="heldout"', f"<style>{style}</style>")


def picture(chart: Chart, path: Path, *, title: str) -> bytes:
    """A chart in the format that a file's name ends with.

    Raises:
        InputError: code `chart-form`, the name ends neither in .svg nor in .png.
        SetupError: a PNG needs the `png` extra, which is not installed.
    """
    suffix = path.suffix.lower()
    if suffix == ".svg":
        return stand_alone(chart, title=title).encode()
    if suffix == ".png":
        return _png(chart, title)
    found = f"a name that ends in {suffix!r}" if suffix else "a name without an end"
    raise InputError.of("chart-form", str(path), found, " or ".join(SUFFIXES))


_SCALE = 3
_FONTS = "Arial,Helvetica,DejaVu Sans,Liberation Sans,Noto Sans,sans-serif"
"""By name: where resvg does not find the font that it takes for sans-serif, it draws no text."""


def _png(chart: Chart, title: str) -> bytes:
    """The light chart with plain colours, for a program that knows no CSS variables."""
    try:
        from resvg_py import svg_to_bytes  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise SetupError(
            "a PNG needs resvg_py, which is not installed; pip install 'heldout[png]', or ask "
            "for .svg"
        ) from error
    drawn = _file(chart, title, f'font-family="{_FONTS}"', "")
    for name, colour in LIGHT.items():
        drawn = drawn.replace(f"var({name})", colour)
    return bytes(svg_to_bytes(svg_string=drawn, background=LIGHT["--paper"], zoom=_SCALE))


def _file(chart: Chart, title: str, attribute: str, style: str) -> str:
    margin = 10
    drawn, height = chart.parts(FILE_WIDTH - 2 * margin)
    wide, high = FILE_WIDTH, number(height + 2 * margin)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{wide}" height="{high}" '
        f'viewBox="0 0 {wide} {high}" font-size="{SIZE}" role="img" {attribute}>'
        f"<title>{clean(title)}</title><desc>{clean(chart.description())}</desc>{style}"
        f'<g transform="translate({margin},{margin})">{drawn}</g></svg>\n'
    )
