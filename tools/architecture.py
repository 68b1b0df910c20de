"""Draw the house: the rooms of the import contract, and which room uses which.

    python tools/architecture.py [OUT.svg]

Layers come from the first contract of import-linter in pyproject.toml, arrows from the imports in
src/heldout. The program (the topmost rooms) uses any room and every room uses the basement (the
lowest layers), so neither has arrows. Without OUT.svg, docs/images/architecture.svg is written.
"""

import ast
import re
import sys
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from heldout.charts.plot import stand_alone
from heldout.charts.svg import (
    INK,
    LINE,
    MUTED,
    RECORD,
    RULE,
    SOFT,
    draw_box,
    draw_line,
    draw_text,
    text_width,
    wrap,
)

ROOT = Path(__file__).parents[1]
DRAWING = ROOT / "docs" / "images" / "architecture.svg"
WINGS = ("board", "analyses", "judging", "survivorship", "rankers", "redteam")
_PROGRAM = ("cli", "demo", "installation")
_BASEMENT = ("files", "options", "progress", "errors", "ids")
_HIGH, _APART = 34, 34
_TITLE = "The rooms of heldout; a room uses those below it"

Arrows = frozenset[tuple[str, str]]


def main() -> int:
    """Draw what the code says."""
    out = Path(sys.argv[1]) if len(sys.argv) > 1 else DRAWING
    out.write_text(draw(), "utf-8")
    return 0


def draw() -> str:
    """The drawing as an SVG file."""
    layers = read_layers()
    return stand_alone(House(layers=layers, arrows=read_arrows(layers)), title=_TITLE)


def read_layers() -> list[list[str]]:
    """The rooms of each layer, the topmost layer first."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    contract = settings["tool"]["importlinter"]["contracts"][0]
    return [
        [room.removeprefix("heldout.") for room in re.split(r"\s*[|:]\s*", layer)]
        for layer in contract["layers"]
    ]


def read_arrows(layers: Sequence[Sequence[str]]) -> Arrows:
    """Which room imports from which one below it."""
    rooms = {room for layer in layers for room in layer}
    package = ROOT / "src" / "heldout"
    found = set()
    for path in package.rglob("*.py"):
        own = path.relative_to(package).parts[0].removesuffix(".py")
        found |= {(own, other) for other in _imported(path) if own in rooms and other in rooms}
    level = {room: n for n, layer in enumerate(layers) for room in layer}
    return frozenset((one, other) for one, other in found if level[one] < level[other])


def _imported(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("heldout"):
            names = [f"{node.module}.{one.name}" for one in node.names]
        elif isinstance(node, ast.Import):
            names = [one.name for one in node.names]
        else:
            continue
        yield from (name.split(".")[1] for name in names if name.startswith("heldout."))


@dataclass(frozen=True, kw_only=True)
class House:
    """The rooms in their layers, and the arrows between them.

    Attributes:
        layers: the rooms of each layer, the topmost layer first.
        arrows: which room uses which.
    """

    layers: Sequence[Sequence[str]]
    arrows: Arrows

    def parts(self, width: int) -> tuple[str, float]:
        """The elements at a width, and how high they are."""
        words = wrap(
            "Each room may use rooms of lower layers only. Red: the arrows from wing to wing, a "
            "wing being the home of one subject. The program above uses every room, and every "
            "room uses the layers below the line.",
            width,
        )
        boxes = {
            room: box
            for level, layer in enumerate(self.layers)
            for room, box in _place(layer, level, width)
        }
        lines = [
            self._arrow(boxes[one], boxes[other], between={one, other} <= {*WINGS})
            for one, other in sorted(self.arrows, key=lambda pair: ({*pair} <= {*WINGS}, pair))
            if one not in _PROGRAM and other not in _BASEMENT and one in boxes and other in boxes
        ]
        rooms = [_room(name, box) for name, box in boxes.items()]
        bottom = len(self.layers) * (_HIGH + _APART) - _APART
        first = next(n for n, layer in enumerate(self.layers) if {*layer} <= {*_BASEMENT})
        y = first * (_HIGH + _APART) - _APART / 2
        lines.append(draw_line([(0, y), (width, y)], RULE, 1, "4 4"))
        below = [draw_text(0, bottom + 26 + LINE * n, line, MUTED) for n, line in enumerate(words)]
        return "".join([*lines, *rooms, *below]), bottom + 26 + LINE * len(words)

    def description(self) -> str:
        """The layers in words."""
        layers = "; ".join(", ".join(layer) for layer in self.layers)
        between = sorted(f"{a} to {b}" for a, b in self.arrows if {a, b} <= {*WINGS})
        return f"Layers from the top: {layers}. From wing to wing: {', '.join(between)}."

    def _arrow(
        self,
        one: tuple[float, float, float, float],
        other: tuple[float, float, float, float],
        *,
        between: bool,
    ) -> str:
        """A line from the lower edge of a room to the upper edge of another."""
        start = (one[0] + one[2] / 2, one[1] + one[3])
        end = (other[0] + other[2] / 2, other[1])
        drawn = draw_line([start, end], RECORD if between else SOFT, 2 if between else 1)
        head = [(end[0] - 4, end[1] - 7), end, (end[0] + 4, end[1] - 7)]
        return drawn + (draw_line(head, RECORD, 2) if between else "")


def _place(
    layer: Sequence[str], level: int, width: int
) -> Iterator[tuple[str, tuple[float, float, float, float]]]:
    """The boxes of a layer beside each other, as wide as their names ask for."""
    gap = 12.0
    wanted = [text_width(room) + 18 for room in layer]
    spare = (width - sum(wanted) - gap * (len(layer) - 1)) / len(layer)
    left = 0.0
    for room, own in zip(layer, wanted, strict=True):
        yield room, (left, level * (_HIGH + _APART), own + spare, _HIGH)
        left += own + spare + gap


def _room(name: str, box: tuple[float, float, float, float]) -> str:
    left, top, width, height = box
    edge = draw_box((left - 1.5, top - 1.5, width + 3, height + 3), INK if name in WINGS else RULE)
    inside = draw_box(box, "var(--paper)")
    return edge + inside + draw_text(left + width / 2, top + height / 2, name, INK, "middle")


if __name__ == "__main__":
    sys.exit(main())
