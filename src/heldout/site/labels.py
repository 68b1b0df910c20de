"""Where the names of the records go in a chart: beside their points, and on nothing else.

Widths are estimated from the number of characters; measuring would need the reader's fonts.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

__all__ = ["Box", "Label", "Spot", "cut", "place_labels"]

_EM = 0.55
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
    """A point that wants a name."""

    x: float
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


def place_labels(
    spots: Sequence[Spot], taken: Iterable[Box], *, size: int, area: Box
) -> tuple[Label, ...]:
    """Names for as many spots as there is room, the first spots first.

    Args:
        spots: in order of importance; each also takes the place of its own mark.
        taken: what is already drawn.
        size: font size in pixels.
        area: where names may be.
    """
    boxes = [*taken, *(_around(spot) for spot in spots)]
    placed = []
    for spot in spots:
        for label in _candidates(spot):
            box = _box(label, size)
            if _inside(box, area) and not any(box.overlaps(other) for other in boxes):
                placed.append(label)
                boxes.append(box)
                break
    return tuple(placed)


def _candidates(spot: Spot) -> Iterable[Label]:
    """Where a rising line leaves room, and close enough that nobody takes it for another's."""
    yield Label(x=spot.x - _GAP, y=spot.y - 9, text=spot.text, align="right")
    yield Label(x=spot.x + _GAP, y=spot.y + 14, text=spot.text, align="left")


def _box(label: Label, size: int) -> Box:
    width = len(label.text) * size * _EM
    left = label.x if label.align == "left" else label.x - width
    return Box(left=left, top=label.y - _HALF_LINE, right=left + width, bottom=label.y + _HALF_LINE)


def _around(spot: Spot) -> Box:
    half = 5.0
    return Box(left=spot.x - half, top=spot.y - half, right=spot.x + half, bottom=spot.y + half)


def _inside(box: Box, area: Box) -> bool:
    across = area.left <= box.left and box.right <= area.right
    return across and area.top <= box.top and box.bottom <= area.bottom
