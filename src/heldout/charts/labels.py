"""Where names go in a chart: beside their marks or along their lines, and on nothing else.

Widths are estimated, for a wide font; measuring would need the reader's.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import hypot
from typing import Literal

_EMS = dict.fromkeys("mwMW@%…—", 1.0) | dict.fromkeys("ABCDEFGHIJKLNOPQRSTUVXYZ", 0.76)
_EMS |= dict.fromkeys("fijlrtI.,:;|'()[]/\\ ", 0.41)
_EM, _WIDE, _FIRST_WIDE = 0.65, 1.05, "\u1100"
_HALF_LINE = 8.0
_GAP = 7.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    """A rectangle in the plot, pixels from its top left corner."""

    left: float
    top: float
    right: float
    bottom: float

    def overlaps(self, other: "Box") -> bool:
        """Whether the two share more than an edge."""
        across = self.left < other.right and other.left < self.right
        return across and self.top < other.bottom and other.top < self.bottom


@dataclass(frozen=True, slots=True, kw_only=True)
class Spot:
    """A mark that wants a name beside it, or none where the text is empty."""

    x: float
    y: float
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A level line across the area that wants a name on it."""

    y: float
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Label:
    """A name with its place: the middle of the line's height, and the end that x means."""

    x: float
    y: float
    text: str
    align: Literal["left", "right"]


def cut(text: str, most: int) -> str:
    """At most so many characters, the last an ellipsis where some are gone."""
    return text if len(text) <= most else text[: most - 1].rstrip() + "…"


def text_width(text: str, size: int) -> float:
    """About how wide a text is in pixels; rather too much than too little."""
    return size * sum(_EMS.get(c, _WIDE if c >= _FIRST_WIDE else _EM) for c in text)


def box_of(label: Label, size: int) -> Box:
    """What a label covers."""
    width = text_width(label.text, size)
    left = label.x if label.align == "left" else label.x - width
    return Box(left=left, top=label.y - _HALF_LINE, right=left + width, bottom=label.y + _HALF_LINE)


def place_labels(
    wanted: Sequence[Spot | Line], taken: Iterable[Box], *, size: int, area: Box
) -> tuple[Label, ...]:
    """Names for as many marks and lines as there is room, the first ones first.

    No name covers another, a mark, a line or what is taken, and none stands as near to another
    mark as to its own.

    Args:
        wanted: in order of importance; each also takes the place of its own mark or line.
        taken: what is already drawn.
        size: font size in pixels.
        area: where names may be; lines go from its left end to its right end.
    """
    spots = [one for one in wanted if isinstance(one, Spot)]
    boxes = [*taken, *(_mark(one, area) for one in wanted)]
    placed = []
    for one in wanted:
        ways = _beside(one, spots) if isinstance(one, Spot) else _along(one, size, area)
        for label in ways:
            box = box_of(label, size)
            if _inside(box, area) and not any(box.overlaps(other) for other in boxes):
                placed.append(label)
                boxes.append(box)
                break
    return tuple(placed)


def _beside(spot: Spot, spots: Sequence[Spot]) -> Iterator[Label]:
    """Where a rising line leaves room, and close enough that nobody takes it for another's."""
    for right, down, align in _WAYS if spot.text else ():
        label = Label(x=spot.x + right, y=spot.y + down, text=spot.text, align=align)
        if all(other is spot or _is_nearest(label, spot, other) for other in spots):
            yield label


_WAYS: tuple[tuple[float, float, Literal["left", "right"]], ...] = (
    (-_GAP, -9, "right"),
    (_GAP, -11, "left"),
    (_GAP + 3, 0, "left"),
    (_GAP, 14, "left"),
    (-_GAP - 3, 0, "right"),
    (_GAP, -15, "left"),
)


def _is_nearest(label: Label, spot: Spot, other: Spot) -> bool:
    """Whether a label is nearer to its spot, clearly so where it stands between the two."""
    beyond = label.y != spot.y and (spot.y - label.y) * (other.y - spot.y) >= 0
    own, others = (hypot(label.x - s.x, label.y - s.y) for s in (spot, other))
    return others > own + (0 if beyond else 6)


def _along(line: Line, size: int, area: Box) -> Iterator[Label]:
    """Above or below the line, from its right end to the left."""
    step = 12
    last = area.left + text_width(line.text, size)
    x = area.right
    while x >= last:
        for down in (-9, 10):
            yield Label(x=x, y=line.y + down, text=line.text, align="right")
        x -= step


def _mark(one: Spot | Line, area: Box) -> Box:
    if isinstance(one, Line):
        return Box(left=area.left, top=one.y - 1, right=area.right, bottom=one.y + 1)
    half = 6.0
    return Box(left=one.x - half, top=one.y - half, right=one.x + half, bottom=one.y + half)


def _inside(box: Box, area: Box) -> bool:
    across = area.left <= box.left and box.right <= area.right
    return across and area.top <= box.top and box.bottom <= area.bottom
