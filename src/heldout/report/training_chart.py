"""Scores by the depth of the annotation that was trained on: a panel for each measure.

Source: Gupta and MacAvaney, SIGIR 2022 (survivorship-bias), figure 1.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from heldout.charts.boxes import RULE
from heldout.charts.labels import Label
from heldout.charts.layers import (
    INK,
    MUTED,
    RECORD,
    Canvas,
    Frame,
    Layer,
    Style,
    draw_dots,
    draw_line,
    draw_texts,
    join_layers,
)
from heldout.charts.ticks import score_span, score_ticks
from heldout.report.training import TrainingResult
from heldout.survivorship.training.training_results import Level, TestOutcome

__all__ = ["spec"]

_COLUMNS = 2
_WIDTH, _HEIGHT = 260, 180
_ABOVE, _BELOW, _LEFT, _RIGHT = 72, 40, 64, 24
_BESIDE = 0.22
_ALPHA = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class _Panel:
    """A place in the picture; its axes are drawn by hand, since a picture has one frame.

    Attributes:
        frame: of the whole picture, in pixels, upwards.
        left, bottom: its lower left corner there.
        names: of the depths, from left to right.
        span: ends of its scores.
    """

    frame: Frame
    left: float
    bottom: float
    names: tuple[str, ...]
    span: tuple[float, float]

    def at(self, x: float, score: float) -> tuple[float, float]:
        """Where a score at a depth, counted from 0, stands in the frame."""
        low, high = self.span
        across = (x + 0.5) / len(self.names)
        return self.left + across * _WIDTH, self.bottom + (score - low) / (high - low) * _HEIGHT

    def label(self, x: float, y: float, text: str) -> Label:
        """Text at pixels from the panel's upper left corner."""
        top = self.frame.canvas.height - self.bottom - _HEIGHT
        return Label(x=self.left + x, y=top + y, text=text, align="left")


def spec(result: TrainingResult) -> dict[str, Any]:
    """A panel for each measure of each test set.

    The line joins the means over seeds of r = 1, …, all; squares are the controls, beside the
    depth whose size they have; small circles are seeds. A star says that the difference from all
    is significant across seeds and queries, corrected; with one seed, across queries.

    Args:
        result: with at least one outcome.
    """
    rows = -(-len(result.outcomes) // _COLUMNS)
    columns = min(_COLUMNS, len(result.outcomes))
    width = columns * (_LEFT + _WIDTH + _RIGHT)
    height = rows * (_ABOVE + _HEIGHT + _BELOW)
    canvas = Canvas(width=width, height=height, left=8, right=8, top=0, bottom=8)
    frame = Frame(
        canvas=canvas, x=(0.0, float(width)), y=(0.0, float(height)), x_ticks=(), y_ticks=()
    )
    layers: list[Layer] = []
    for place, outcome in enumerate(result.outcomes):
        row, column = divmod(place, _COLUMNS)
        panel = _Panel(
            frame=frame,
            left=column * (_LEFT + _WIDTH + _RIGHT) + _LEFT,
            bottom=height - row * (_ABOVE + _HEIGHT + _BELOW) - _ABOVE - _HEIGHT,
            names=tuple(
                level.condition.name for level in outcome.conditions if level.condition.like is None
            ),
            span=score_span([score for level in outcome.conditions for score in level.by_seed]),
        )
        layers += [*_axes(panel, outcome), *_marks(panel, outcome)]
    for layer in layers:
        if "x" in layer["encoding"]:
            layer["encoding"]["x"]["axis"] = None
    return join_layers(frame, layers)


def _axes(panel: _Panel, outcome: TestOutcome) -> list[Layer]:
    low, high = panel.span
    last = len(panel.names) - 0.5
    layers = [draw_line([panel.at(-0.5, low), panel.at(last, low)], panel.frame, RULE)]
    labels = []
    for tick in score_ticks(panel.span, most=6):
        ends = [panel.at(-0.5, tick.at), panel.at(last, tick.at)]
        layers.append(draw_line(ends, panel.frame, RULE, dash=[1, 4]))
        down = (high - tick.at) / (high - low) * _HEIGHT
        labels.append(panel.label(-_LEFT + 8, down, tick.label))
    for place, name in enumerate(panel.names):
        middle = (place + 0.5) / len(panel.names) * _WIDTH
        labels.append(panel.label(middle - 4 * len(name), _HEIGHT + 16, name))
    head = panel.label(-_LEFT + 8, -44, f"{outcome.measure} on {outcome.test}")
    key = panel.label(-_LEFT + 8, -24, "circle: a seed; square: as few labels, at random")
    return [*layers, *draw_texts([*labels, key], MUTED), *draw_texts([head], INK)]


def _marks(panel: _Panel, outcome: TestOutcome) -> list[Layer]:
    line = [level for level in outcome.conditions if level.condition.like is None]
    controls = [level for level in outcome.conditions if level.condition.like is not None]
    places = {level.condition.depth: float(place) for place, level in enumerate(line)}
    depths = [(level, places[level.condition.depth]) for level in line]
    beside = [
        (level, places.get(level.condition.like, len(line) - 1.0) + _BESIDE) for level in controls
    ]
    joined = [panel.at(x, level.mean) for level, x in depths]
    return [
        draw_line(joined, panel.frame, RECORD),
        draw_dots(_seeds(panel, [*depths, *beside]), panel.frame, "circle"),
        _means(panel, depths, "diamond"),
        _means(panel, beside, "square"),
        *_stars(panel, outcome, [*depths, *beside]),
    ]


def _seeds(panel: _Panel, at: Sequence[tuple[Level, float]]) -> list[tuple[float, float, str]]:
    return [
        (*panel.at(x, score), f"{level.condition.name}, seed {seed}: {score:.4f}")
        for level, x in at
        for seed, score in enumerate(level.by_seed)
    ]


def _means(panel: _Panel, at: Sequence[tuple[Level, float]], style: Style) -> Layer:
    dots = [
        (*panel.at(x, level.mean), f"{level.condition.name}: {level.mean:.4f}") for level, x in at
    ]
    return draw_dots(dots, panel.frame, style)


def _stars(panel: _Panel, outcome: TestOutcome, at: Sequence[tuple[Level, float]]) -> list[Layer]:
    """A star above what is significantly different from all."""
    ps = {
        one.b: one.across_corrected if len(one.within) > 1 else one.averaged_corrected
        for one in outcome.comparisons
        if not one.controlled
    }
    height = panel.frame.canvas.height
    labels = []
    for level, x in at:
        p = ps.get(level.condition)
        if p is not None and p < _ALPHA:
            left, up = panel.at(x, max(level.by_seed))
            labels.append(Label(x=left - 3, y=height - up - 14, text="*", align="left"))
    return draw_texts(labels, INK)
