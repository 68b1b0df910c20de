"""SVG: shapes and texts as elements, how wide texts are, which names have room.

Widths of texts are those of DejaVu Sans, one of the widest fonts that readers have: measuring would
need the reader's own. Colours are CSS variables, which a page or the file itself sets for light and
dark.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from math import hypot
from operator import attrgetter
from typing import Final, Literal

INK: Final = "var(--ink)"
MUTED: Final = "var(--muted)"
RULE: Final = "var(--rule)"
SOFT: Final = "var(--soft)"
HAIR: Final = "var(--hair)"
LINK: Final = "var(--link)"
RECORD: Final = "var(--record)"
PAPER: Final = "var(--paper)"

LIGHT: Mapping[str, str] = {
    "--ink": "#1b1d1f",
    "--muted": "#585d63",
    "--rule": "#7f858c",
    "--soft": "#c3c9cf",
    "--hair": "#dfe2e5",
    "--link": "#0b57a4",
    "--record": "#a8400a",
    "--paper": "#fcfcfa",
}
DARK: Mapping[str, str] = {
    "--ink": "#e8eaec",
    "--muted": "#a6adb4",
    "--rule": "#767d85",
    "--soft": "#454c53",
    "--hair": "#2d3338",
    "--link": "#8cbef5",
    "--record": "#f2a071",
    "--paper": "#15181b",
}

SIZE = 13
"""Font size of all texts of a chart, in CSS pixels."""

LINE = 17
"""Height of a line of text."""

_WIDTHS = (
    (0.28, "ijl'|"),
    (0.34, " .,:;!I/\\"),
    (0.4, 'frt()[]{}-"'),
    (0.55, "cszxvyk?J_*\u2020\u00b7"),
    (0.66, "ABEFKLPRSTVXYZ"),
    (0.78, "CDGHNOQU+=<>#&~\u2212\u00d7\u03c4\u25b8\u25c2\u2013"),
    (1.0, "mMWw%@\u2014\u2026\u2605\u2606"),
)
_EMS = {char: width for width, chars in _WIDTHS for char in chars}
_EM, _WIDE, _FIRST_WIDE = 0.64, 1.05, "\u1100"
_HALF_LINE = 8.0
_GAP = 7.0
_SHORTER = (20, 14, 10)


Point = tuple[float, float]

Style = Literal[
    "circle", "disc", "match", "square", "diamond", "match diamond", "stroke", "below", "above"
]
"""How a mark looks: a disc is a filled circle, a match one in blue; a stroke is upright. What lies
below or above the axis has an arrow at its edge."""

MARKS: Mapping[str, tuple[str, str]] = {
    "circle": (PAPER, MUTED),
    "disc": (RECORD, RECORD),
    "match": (LINK, LINK),
    "square": (INK, PAPER),
    "diamond": (RECORD, RECORD),
    "match diamond": (LINK, LINK),
    "stroke": ("none", MUTED),
    "below": (MUTED, MUTED),
    "above": (MUTED, MUTED),
}
"""Style -> fill and edge."""

_NOT_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")
_BIDI = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")


@dataclass(frozen=True, slots=True)
class Box:
    """A rectangle in the plot, pixels from its top left corner."""

    left: float
    top: float
    right: float
    bottom: float

    def overlaps(self, other: "Box") -> bool:
        """Check whether the two share more than an edge."""
        across = self.left < other.right and other.left < self.right
        return across and self.top < other.bottom and other.top < self.bottom


@dataclass(frozen=True, slots=True)
class Spot:
    """A mark that wants a name beside it, or none where the text is empty.

    One that must have it takes a shorter one too, or one far above with a line to the mark.
    """

    x: float
    y: float
    text: str
    must: bool = False


@dataclass(frozen=True, slots=True)
class LevelLine:
    """A level line across the area that wants a name on it."""

    y: float
    text: str


@dataclass(frozen=True, slots=True)
class Label:
    """A name with its position: the middle of the line's height, and the end that x means.

    One that stands far above its mark is joined to it, at the height `to`.
    """

    x: float
    y: float
    text: str
    align: Literal["left", "right"]
    to: float | None = None


def cut(text: str, most: int) -> str:
    """At most so many characters, the last an ellipsis where some are gone."""
    return text if len(text) <= most else text[: most - 1].rstrip() + "…"


def fit(text: str, width: float) -> str:
    """As much of a text as a width has room for, with an ellipsis where some is gone."""
    most = len(text)
    while most > 1 and text_width(cut(text, most)) > width:
        most -= 1
    return cut(text, most)


def wrap(text: str, width: float) -> list[str]:
    """Lines of whole words that are no wider; a longer word is cut."""
    lines: list[str] = []
    for word in text.split():
        if lines and text_width(f"{lines[-1]} {word}") <= width:
            lines[-1] += f" {word}"
        else:
            lines.append(fit(word, width))
    return lines


def text_width(text: str) -> float:
    """Return how wide a text is in CSS pixels; rather too much than too little."""
    return SIZE * sum(_EMS.get(c, _WIDE if c >= _FIRST_WIDE else _EM) for c in text)


def box_of(label: Label) -> Box:
    """Return what a label covers."""
    width = text_width(label.text)
    left = label.x if label.align == "left" else label.x - width
    return Box(left, label.y - _HALF_LINE, left + width, label.y + _HALF_LINE)


def fit_labels(
    wanted: Sequence[Spot | LevelLine], taken: Iterable[Box], area: Box
) -> tuple[Label, ...]:
    """Names for as many marks and lines as there is room, the first ones first.

    No name covers another, a mark, a line or what is taken, and none stands as near to another
    mark as to its own. The name of a line covers marks, as few as may be, where there is no room.

    Args:
        wanted: in order of importance; each also takes the place of its own mark or line.
        taken: what is already drawn.
        area: where names may be; lines go from its left end to its right end.
    """
    spots = _Spots([one for one in wanted if isinstance(one, Spot)])
    lines = (one for one in wanted if isinstance(one, LevelLine))
    boxes = [*taken, *(Box(area.left, one.y - 1, area.right, one.y + 1) for one in lines)]
    placed = []
    for one in wanted:
        found: tuple[int, Label] | None = None
        for label in _along(one, area) if isinstance(one, LevelLine) else _near(one, spots):
            own = _boxes_of(label)
            if not _inside(own[0], area) or any(a.overlaps(b) for a in own for b in boxes):
                continue
            covered = spots.covered(own[0])
            if not covered or (
                isinstance(one, LevelLine) and (found is None or covered < found[0])
            ):
                found = covered, label
            if not covered:
                break
        if found is not None:
            placed.append(found[1])
            boxes += _boxes_of(found[1])
    return tuple(placed)


def _boxes_of(label: Label) -> list[Box]:
    """Return what a label covers, and the line that joins it to its mark."""
    if label.to is None:
        return [box_of(label)]
    return [box_of(label), Box(label.x + 3, label.y, label.x + 5, label.to - _HALF_LINE)]


class _Spots:
    """The marks of a chart from left to right: a name is compared with those near it alone."""

    def __init__(self, spots: Iterable[Spot]) -> None:
        self._spots = sorted(spots, key=attrgetter("x"))
        self._across = [one.x for one in self._spots]

    def between(self, left: float, right: float) -> Sequence[Spot]:
        return self._spots[bisect_left(self._across, left) : bisect_right(self._across, right)]

    def covered(self, box: Box) -> int:
        """Return how many marks lie on a box."""
        half = 6.0
        return sum(
            box.left < one.x + half
            and one.x - half < box.right
            and box.top < one.y + half
            and one.y - half < box.bottom
            for one in self.between(box.left - 2 * half, box.right + 2 * half)
        )


def _near(spot: Spot, spots: _Spots) -> Iterator[Label]:
    """Beside a mark; a name that must be there also shorter, or above with a line to its mark."""
    texts = [spot.text, *(cut(spot.text, most) for most in _SHORTER if spot.must)]
    for text in texts if spot.text else ():
        yield from _beside(spot, text, spots)
    for text in texts if spot.must else ():
        for up in range(24, 120, 6):
            yield Label(spot.x - 4, spot.y - up, text, "left", to=spot.y)


def _beside(spot: Spot, text: str, spots: _Spots) -> Iterator[Label]:
    """Find where a rising line leaves room, near enough to be taken for its own."""
    near = [
        other
        for other in spots.between(spot.x - _NEAR - 1, spot.x + _NEAR + 1)
        if abs(other.x - spot.x) <= _NEAR and abs(other.y - spot.y) <= _NEAR and other is not spot
    ]
    for right, down, align in _WAYS:
        label = Label(spot.x + right, spot.y + down, text, align)
        if all(_is_nearest(label, spot, other) for other in near):
            yield label


_WAYS: tuple[tuple[float, float, Literal["left", "right"]], ...] = (
    (-_GAP, -9, "right"),
    (_GAP, -11, "left"),
    (_GAP + 3, 0, "left"),
    (_GAP, 14, "left"),
    (-_GAP - 3, 0, "right"),
    (_GAP, -15, "left"),
)

_NEAR = 6 + 2 * max(hypot(right, down) for right, down, _ in _WAYS)
"""No label of a spot is nearer to another one that is so far away, or in doubt."""


def _is_nearest(label: Label, spot: Spot, other: Spot) -> bool:
    """Check whether a label is nearer to its spot, clearly so where it stands between the two."""
    beyond = label.y != spot.y and (spot.y - label.y) * (other.y - spot.y) >= 0
    own, others = (hypot(label.x - s.x, label.y - s.y) for s in (spot, other))
    return others > own + (0 if beyond else 6)


def _along(line: LevelLine, area: Box) -> Iterator[Label]:
    """Above or below the line, from its right end to the left."""
    step = 12
    last = area.left + text_width(line.text)
    x = area.right
    while x >= last:
        for down in (-9, 10):
            yield Label(x, line.y + down, line.text, "right")
        x -= step


def _inside(box: Box, area: Box) -> bool:
    across = area.left <= box.left and box.right <= area.right
    return across and area.top <= box.top and box.bottom <= area.bottom


_CROWD = 300
"""Most circles that have a tooltip each. More are dots, whose shade shows how many there are."""


def draw_marks(
    spots: Sequence[tuple[float, float, str]],
    style: str,
    *,
    high: float,
    keys: Sequence[str] = (),
) -> str:
    """Marks of one of `MARKS`.

    Args:
        spots: (x, y, tooltip).
        style: how they look.
        high: height of strokes.
        keys: by which a page's script finds each of them; none for no script.
    """
    fill, edge = MARKS[style]
    if style == "circle" and len(spots) > _CROWD:
        dots = "".join(f"M{number(x)} {number(y)}h0" for x, y, _ in spots)
        paint = 'stroke-width="5" stroke-linecap="round" stroke-opacity="0.4"'
        return f'<path d="{dots}" fill="none" stroke="{edge}" {paint}/>'
    named = [f' data-entry="{clean(key, quote=True)}"' for key in keys] or [""] * len(spots)
    drawn = "".join(
        _with_tip(_outline(style, x, y, high) + name, tip)
        for (x, y, tip), name in zip(spots, named, strict=True)
    )
    return f'<g fill="{fill}" stroke="{edge}" stroke-width="1.5">{drawn}</g>' if drawn else ""


def _outline(style: str, x: float, y: float, high: float) -> str:
    match style:
        case "circle" | "disc" | "match":
            return f'circle cx="{number(x)}" cy="{number(y)}" r="3.2"'
        case "square":
            return f'rect x="{number(x - 3.5)}" y="{number(y - 3.5)}" width="7" height="7"'
        case "stroke":
            return f'path d="M{number(x)} {number(y - high / 2)}v{number(high)}"'
        case "below" | "above":
            down = 8 if style == "below" else -8
            return f'path d="M{number(x - 4)} {number(y - down / 2)}h8l-4 {down}z"'
    return f'path d="M{number(x)} {number(y - 6.5)}l5 6.5l-5 6.5l-5 -6.5z"'


def draw_line(points: Sequence[Point], colour: str, width: float, dash: str = "") -> str:
    """A line through points."""
    path = "L".join(f"{number(x)} {number(y)}" for x, y in points)
    more = f' stroke-dasharray="{dash}"' if dash else ' stroke-linejoin="round"'
    paint = f'fill="none" stroke="{colour}" stroke-width="{width:g}"{more}'
    return f'<path d="M{path}" {paint}/>' if points else ""


def draw_box(box: tuple[float, float, float, float], colour: str, tip: str = "") -> str:
    """A filled box with its tooltip: left, top, width and height."""
    left, top, width, height = map(number, box)
    size = f'x="{left}" y="{top}" width="{width}" height="{height}"'
    return _with_tip(f'rect {size} fill="{colour}"', tip)


def draw_text(x: float, y: float, text: str, colour: str, anchor: str = "start") -> str:
    """A text; y is the middle of its height."""
    aligned = "" if anchor == "start" else f' text-anchor="{anchor}"'
    position = f'x="{number(x)}" y="{number(y + SIZE * 0.35)}"'
    return f'<text {position} fill="{colour}"{aligned}>{clean(text)}</text>' if text else ""


def _with_tip(element: str, tip: str) -> str:
    if not tip:
        return f"<{element}/>"
    return f"<{element}><title>{clean(tip)}</title></{element.partition(' ')[0]}>"


def clean(text: str, *, quote: bool = False) -> str:
    """A text as it may stand in SVG: escaped, without controls that XML or a reader cannot have.

    Args:
        text: somebody's words.
        quote: whether it stands in an attribute.
    """
    return escape(_BIDI.sub("", _NOT_XML.sub("\ufffd", text)), quote=quote)


def number(value: float) -> str:
    """Two digits behind the point at most."""
    text = f"{value:.2f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text
