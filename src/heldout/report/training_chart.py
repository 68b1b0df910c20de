"""Scores by the depth of the annotation that was trained on: a panel for each measure.

Source: Gupta and MacAvaney, SIGIR 2022 (survivorship-bias), figure 1.
"""

from collections.abc import Sequence
from typing import Any

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
from heldout.charts.ticks import Tick, score_span, score_ticks
from heldout.report.training import TrainingResult
from heldout.survivorship.training_results import Level, TestOutcome

__all__ = ["spec"]

_CANVAS = Canvas(width=300, height=240, left=64, right=40, top=60, bottom=64)
_COLUMNS = 2
_BESIDE = 0.22
_ALPHA = 0.05


def spec(result: TrainingResult) -> dict[str, Any]:
    """A panel for each measure of each test set.

    The line joins the means over seeds of r = 1, …, all; squares are the controls, beside the
    depth whose size they have; small circles are seeds. A star says that the difference from all
    is significant across seeds and queries, corrected.

    Args:
        result: with at least one outcome.
    """
    panels = [_panel(outcome) for outcome in result.outcomes]
    inside = [{key: panel[key] for key in ("width", "height", "layer")} for panel in panels]
    canvas = _CANVAS
    return {
        **{
            key: panels[0][key]
            for key in ("$schema", "autosize", "padding", "background", "config")
        },
        "concat": inside,
        "columns": _COLUMNS,
        "spacing": {"row": canvas.top + canvas.bottom, "column": canvas.left + canvas.right},
        "bounds": "flush",
    }


def _panel(outcome: TestOutcome) -> dict[str, Any]:
    line = [level for level in outcome.levels if level.condition.like is None]
    controls = [level for level in outcome.levels if level.condition.like is not None]
    frame = _frame(outcome, [level.condition.name for level in line])
    places = {level.condition.depth: float(place) for place, level in enumerate(line)}
    means = [(places[level.condition.depth], level.mean) for level in line]
    beside = [
        (level, places.get(level.condition.like, len(line) - 1.0) + _BESIDE) for level in controls
    ]
    at = [*((level, places[level.condition.depth]) for level in line), *beside]
    layers: list[Layer] = [draw_line(means, frame, RECORD)]
    layers.append(draw_dots(_seeds(at), frame, "circle"))
    layers.append(_means([(level, x) for level, x in at if level in line], frame, "diamond"))
    layers.append(_means(beside, frame, "square"))
    return join_layers(frame, [*layers, *_stars(outcome, at, frame), *_names(outcome, frame)])


def _frame(outcome: TestOutcome, names: Sequence[str]) -> Frame:
    scores = [score for level in outcome.levels for score in level.by_seed]
    y = score_span(scores)
    return Frame(
        canvas=_CANVAS,
        x=(-0.4, len(names) - 0.4),
        y=y,
        x_ticks=tuple(Tick(at=float(place), label=name) for place, name in enumerate(names)),
        y_ticks=score_ticks(y, most=6),
    )


def _seeds(at: Sequence[tuple[Level, float]]) -> list[tuple[float, float, str]]:
    return [
        (x, score, f"{level.condition.name}, seed {seed}: {score:.4f}")
        for level, x in at
        for seed, score in enumerate(level.by_seed)
    ]


def _means(at: Sequence[tuple[Level, float]], frame: Frame, style: Style) -> Layer:
    dots = [(x, level.mean, f"{level.condition.name}: {level.mean:.4f}") for level, x in at]
    return draw_dots(dots, frame, style)


def _stars(outcome: TestOutcome, at: Sequence[tuple[Level, float]], frame: Frame) -> list[Layer]:
    """A star above what is significantly different from all."""
    significant = {
        one.b
        for one in outcome.comparisons
        if not one.same_size and one.across_corrected is not None and one.across_corrected < _ALPHA
    }
    labels = []
    for level, x in at:
        if level.condition in significant:
            left, top = frame.place(x, max(level.by_seed))
            labels.append(Label(x=left - 3, y=top - 14, text="*", align="left"))
    return draw_texts(labels, INK)


def _names(outcome: TestOutcome, frame: Frame) -> list[Layer]:
    canvas = frame.canvas
    up = Label(x=-canvas.left, y=-44, text=f"{outcome.measure} on {outcome.test}", align="left")
    key = Label(x=-canvas.left, y=-22, text="squares: as few, at random", align="left")
    right = Label(
        x=canvas.width, y=canvas.height + 40, text="annotation that was trained on", align="right"
    )
    return [*draw_texts([up], INK), *draw_texts([key, right], MUTED)]
