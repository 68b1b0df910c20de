"""Scores by the depth of the annotation that was trained on: a panel for each measure.

Source: Gupta and MacAvaney, SIGIR 2022 (survivorship-bias), figure 1.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

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
from heldout.survivorship.training.conditions import ALL, Condition
from heldout.survivorship.training.training_results import ConditionScores, TestOutcome

__all__ = ["spec"]

_COLUMNS = 2
_WIDTH, _HEIGHT = 260, 180
_ABOVE, _BELOW, _LEFT, _RIGHT = 52, 40, 64, 24
_LINE = 19
_BESIDE = 0.22
_ALPHA = 0.05
_STAR: Final = "*"
_DAGGER: Final = "†"
_DASH = (6, 4)

_Mark = Literal["circle", "diamond", "square", "dashes", "*", "†"]


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
    """A panel for each measure of each test set, below a key of all marks.

    The line joins the means over seeds of r = 1, …, all; squares are the controls, beside the
    depth whose size they have; the dashed line is the run that was re-ranked. A star says that the
    difference from all is significant across seeds and queries, corrected, a dagger that from the
    next deeper annotation is; with one seed, across queries.

    Args:
        result: with at least one outcome.
    """
    rows = -(-len(result.outcomes) // _COLUMNS)
    columns = min(_COLUMNS, len(result.outcomes))
    keys = _keys(result)
    width = columns * (_LEFT + _WIDTH + _RIGHT)
    height = len(keys) * _LINE + rows * (_ABOVE + _HEIGHT + _BELOW)
    canvas = Canvas(width=width, height=height, left=8, right=8, top=8, bottom=8)
    frame = Frame(
        canvas=canvas, x=(0.0, float(width)), y=(0.0, float(height)), x_ticks=(), y_ticks=()
    )
    layers: list[Layer] = _draw_keys(keys, frame)
    for place, outcome in enumerate(result.outcomes):
        row, column = divmod(place, _COLUMNS)
        panel = _Panel(
            frame=frame,
            left=column * (_LEFT + _WIDTH + _RIGHT) + _LEFT,
            bottom=(rows - 1 - row) * (_ABOVE + _HEIGHT + _BELOW) + _BELOW,
            names=tuple(
                one.condition.name for one in outcome.conditions if one.condition.like is None
            ),
            span=score_span(
                [
                    outcome.first_stage,
                    *(score for one in outcome.conditions for score in one.by_seed),
                ]
            ),
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
    head = panel.label(-_LEFT + 8, -28, f"{outcome.measure} on {outcome.test}")
    return [*layers, *draw_texts(labels, MUTED), *draw_texts([head], INK)]


def _keys(result: TrainingResult) -> list[tuple[_Mark, str]]:
    """What each mark of the picture is; a mark that is nowhere in it has no key."""
    controlled = any(
        one.condition.like is not None for found in result.outcomes for one in found.conditions
    )
    signs = {sign for found in result.outcomes for sign in "".join(_signs(found).values())}
    keys: list[tuple[_Mark, str]] = [
        ("circle", "a model: one seed"),
        ("diamond", "mean of the seeds"),
    ]
    if controlled:
        keys.append(("square", "mean, on as few labels drawn at random"))
    keys.append(("dashes", "the first stage, which is re-ranked"))
    if _STAR in signs:
        keys.append((_STAR, "differs from all, corrected"))
    if _DAGGER in signs:
        keys.append((_DAGGER, "differs from the next deeper one, corrected"))
    return keys


def _draw_keys(keys: Sequence[tuple[_Mark, str]], frame: Frame) -> list[Layer]:
    layers: list[Layer] = []
    for place, (mark, text) in enumerate(keys):
        down = place * _LINE + _LINE / 2
        up = frame.canvas.height - down
        match mark:
            case "dashes":
                layers.append(draw_line([(4.0, up), (28.0, up)], frame, INK, dash=_DASH))
            case "*" | "†":
                # A star hangs at the top of its line
                middle = down + 3 if mark == _STAR else down
                layers += draw_texts([Label(x=13, y=middle, text=mark, align="left")], INK)
            case _:
                layers.append(draw_dots([(16.0, up, text)], frame, mark))
        layers += draw_texts([Label(x=36, y=down, text=text, align="left")], MUTED)
    return layers


def _marks(panel: _Panel, outcome: TestOutcome) -> list[Layer]:
    line = [one for one in outcome.conditions if one.condition.like is None]
    controls = [one for one in outcome.conditions if one.condition.like is not None]
    places = {one.condition.depth: float(place) for place, one in enumerate(line)}
    depths = [(one, places[one.condition.depth]) for one in line]
    beside = [(one, places.get(one.condition.like, len(line) - 1.0) + _BESIDE) for one in controls]
    joined = [panel.at(x, one.mean) for one, x in depths]
    first = [panel.at(x, outcome.first_stage) for x in (-0.5, len(line) - 0.5)]
    return [
        draw_line(first, panel.frame, INK, dash=_DASH),
        draw_line(joined, panel.frame, RECORD),
        draw_dots(_seeds(panel, [*depths, *beside]), panel.frame, "circle"),
        _means(panel, depths, "diamond"),
        _means(panel, beside, "square"),
        *_draw_signs(panel, _signs(outcome), [*depths, *beside]),
    ]


def _seeds(
    panel: _Panel, at: Sequence[tuple[ConditionScores, float]]
) -> list[tuple[float, float, str]]:
    return [
        (*panel.at(x, score), f"{one.condition.name}, seed {seed}: {score:.4f}")
        for one, x in at
        for seed, score in enumerate(one.by_seed)
    ]


def _means(panel: _Panel, at: Sequence[tuple[ConditionScores, float]], style: Style) -> Layer:
    dots = [(*panel.at(x, one.mean), f"{one.condition.name}: {one.mean:.4f}") for one, x in at]
    return draw_dots(dots, panel.frame, style)


def _signs(outcome: TestOutcome) -> Mapping[Condition, str]:
    """What stands above a condition: which differences from it are significant."""
    found: dict[Condition, str] = {}
    for one in outcome.comparisons:
        p = one.across_corrected if len(one.within) > 1 else one.averaged_corrected
        if p is not None and p < _ALPHA and not one.controlled:
            found[one.b] = found.get(one.b, "") + (_STAR if one.a == ALL else _DAGGER)
    return found


def _draw_signs(
    panel: _Panel,
    signs: Mapping[Condition, str],
    at: Sequence[tuple[ConditionScores, float]],
) -> list[Layer]:
    height = panel.frame.canvas.height
    labels = []
    for one, x in at:
        if sign := signs.get(one.condition):
            left, up = panel.at(x, max(one.by_seed))
            labels.append(Label(x=left - 3, y=height - up - 14, text=sign, align="left"))
    return draw_texts(labels, INK)
