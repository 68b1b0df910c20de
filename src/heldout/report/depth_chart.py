"""Scores over the depth of annotation as a picture, with what deeper annotation might show."""

from typing import Any

import numpy as np
from scipy.optimize import isotonic_regression

from heldout.charts.boxes import draw_box
from heldout.charts.labels import Label, cut, text_width
from heldout.charts.layers import (
    INK,
    MUTED,
    RECORD,
    SIZE,
    Canvas,
    Frame,
    Layer,
    draw_dots,
    draw_line,
    draw_texts,
    join_layers,
)
from heldout.charts.ticks import Tick, score_span, score_ticks
from heldout.errors import plural
from heldout.survivorship.depth_study import DepthStudy
from heldout.survivorship.extrapolation import Extrapolation

__all__ = ["MOST_LINES", "spec", "title"]

MOST_LINES = 8
"""Systems that the picture shows at most, the best ones."""

_NAME = 22
_LINE = 17
_HAIR = "#000004"
_TICKS = 9


def title(study: DepthStudy) -> str:
    """What the picture shows."""
    scores = study.scores
    shown = min(MOST_LINES, len(scores.systems))
    which = plural(shown, "system")
    if shown < len(scores.systems):
        which = f"the best {shown} of {len(scores.systems):,} systems"
    return (
        f"{study.question.measure} of {which} on the labels of each depth of annotation, from "
        f"{scores.names[0]} to {scores.names[-1]}" + (" and extrapolated" if _ahead(study) else "")
    )


def spec(study: DepthStudy) -> dict[str, Any]:
    """A line for each system, named at its end; extrapolated parts are dashed, in their intervals.

    A filled mark is a depth whose queries differ from those that have a label only deeper.
    """
    order = _best(study)
    names = [cut(study.scores.systems[one], _NAME) for one in order]
    frame = _frame(study, order, names)
    words = [
        ("filled: its queries differ from those with a label only deeper", RECORD),
        *([("dashed: extrapolated, with intervals", MUTED)] if _ahead(study) else []),
    ]
    texts = [
        *draw_texts(
            [Label(x=4 - frame.canvas.left, y=-14, text=str(study.question.measure), align="left")],
            MUTED,
        ),
        *draw_texts([_foot(frame)], MUTED),
        *(
            layer
            for row, (text, colour) in enumerate(words)
            for layer in draw_texts(
                [Label(x=4 - frame.canvas.left, y=_LINE * row - 56, text=text, align="left")],
                colour,
            )
        ),
    ]
    bars = [layer for system in order for layer in _bars(study, system, frame)]
    lines = [*bars, *(layer for system in order for layer in _line(study, system, frame))]
    return join_layers(frame, [*lines, *draw_texts(_ends(study, order, names, frame), INK), *texts])


def _best(study: DepthStudy) -> list[int]:
    last = study.scores.means()[-1]
    return sorted(range(len(last)), key=lambda one: -(last[one] or 0.0))[:MOST_LINES]


def _ahead(study: DepthStudy) -> tuple[Extrapolation, ...]:
    return study.outlook.predicted if study.outlook else ()


def _frame(study: DepthStudy, order: list[int], names: list[str]) -> Frame:
    seen = [row[one] for row in study.scores.means() for one in order]
    ends = [end for ahead in _ahead(study) for one in order for end in _interval(ahead, one)]
    y = score_span([*(score for score in seen if score is not None), *ends])
    depths = [*study.scores.depths, *(ahead.depth for ahead in _ahead(study))]
    x = (depths[0] - 0.5, depths[-1] + 0.5)
    widest = max(text_width(name, SIZE) for name in names)
    return Frame(
        canvas=Canvas(width=380, height=320, left=56, right=round(widest) + 16, top=74, bottom=48),
        x=x,
        y=y,
        x_ticks=_depth_ticks(study, depths),
        y_ticks=score_ticks(y, most=8),
    )


def _depth_ticks(study: DepthStudy, depths: list[int]) -> tuple[Tick, ...]:
    """The last depth that was observed, those ahead, and others as far as there is room."""
    names = dict(zip(study.scores.depths, study.scores.names, strict=True))
    last = study.scores.depths[-1]
    room = (depths[-1] - depths[0]) / _TICKS
    kept = [last]
    for depth in (*reversed(depths[depths.index(last) :]), *reversed(depths), depths[0]):
        if all(abs(depth - other) >= room and depth != other for other in kept):
            kept.append(depth)
    return tuple(Tick(at=float(one), label=names.get(one, str(one))) for one in sorted(kept))


def _foot(frame: Frame) -> Label:
    canvas = frame.canvas
    text = "depth of annotation"
    return Label(x=canvas.width, y=canvas.height + 38, text=text, align="right")


def _interval(ahead: Extrapolation, system: int) -> tuple[float, float]:
    return ahead.scores[system].low, ahead.scores[system].high


def _line(study: DepthStudy, system: int, frame: Frame) -> list[Layer]:
    name = study.scores.systems[system]
    told = {
        test.depth
        for test in study.survivors
        if test.system == name
        and test.p_corrected is not None
        and test.p_corrected < 1 - study.question.level
    }
    seen = [
        (float(depth), row[system], place)
        for place, (depth, row) in enumerate(
            zip(study.scores.depths, study.scores.means(), strict=True)
        )
    ]
    known = [(at, score, place) for at, score, place in seen if score is not None]
    ahead = [(float(one.depth), one.scores[system].value) for one in _ahead(study)]
    spots = [
        (at, score, f"{name}, depth {study.scores.names[place]}: {score:.4f}")
        for at, score, place in known
    ]
    return [
        draw_line([(at, score) for at, score, _ in known], frame, MUTED),
        draw_line([(known[-1][0], known[-1][1]), *ahead], frame, MUTED, dash=[4, 4]),
        draw_dots(
            [s for s, k in zip(spots, known, strict=True) if k[2] not in told], frame, "circle"
        ),
        draw_dots([s for s, k in zip(spots, known, strict=True) if k[2] in told], frame, "disc"),
    ]


def _bars(study: DepthStudy, system: int, frame: Frame) -> list[Layer]:
    """Intervals of what is extrapolated, as grey boxes."""
    bars = []
    for one in _ahead(study):
        low, high = _interval(one, system)
        name = study.scores.systems[system]
        told = f"{name}, depth {one.depth}, extrapolated: {low:.4f} to {high:.4f}"
        half = 0.12 * (frame.x[1] - frame.x[0]) / max(len(frame.x_ticks), 1)
        bars.append(draw_box((one.depth - half, low, one.depth + half, high), frame, _HAIR, told))
    return bars


def _ends(study: DepthStudy, order: list[int], names: list[str], frame: Frame) -> list[Label]:
    """A name at the right end of each line, moved where another stands there."""
    ahead = _ahead(study)
    last = study.scores.means()[-1]
    at = {one: ahead[-1].scores[one].value if ahead else last[one] or 0.0 for one in order}
    downwards = sorted(zip(order, names, strict=True), key=lambda pair: -at[pair[0]])
    wanted = np.array([frame.place(0.0, at[one])[1] for one, _ in downwards])
    # As near to their lines as names of this height may stand, in their order
    apart = _LINE * np.arange(len(wanted))
    placed = isotonic_regression(wanted - apart).x + apart
    return [
        Label(x=frame.canvas.width + 4, y=y, text=name, align="left")
        for (_, name), y in zip(downwards, placed.tolist(), strict=True)
    ]
