"""Scores over the depth of annotation as a picture, with what deeper annotation might show."""

from typing import Any

import numpy as np
from scipy.optimize import isotonic_regression

from heldout.charts.axes import Tick, score_span, score_ticks
from heldout.charts.labels import Label, cut, text_width
from heldout.charts.svg import (
    INK,
    MUTED,
    RECORD,
    SIZE,
    Canvas,
    Frame,
    Layer,
    draw_box,
    draw_dots,
    draw_line,
    draw_texts,
    join_layers,
)
from heldout.errors import plural
from heldout.survivorship.depths.extrapolation import Extrapolation, Predicted
from heldout.survivorship.depths.study import DepthStudy

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
    words = _words(study)
    rows = range(-_LINE * len(words), 0, _LINE)
    texts = [
        *draw_texts(
            [Label(x=4 - frame.canvas.left, y=-14, text=str(study.question.measure), align="left")],
            MUTED,
        ),
        *draw_texts([_foot(frame)], MUTED),
        *(
            layer
            for row, (text, colour) in zip(rows, words, strict=True)
            for layer in draw_texts(
                [Label(x=4 - frame.canvas.left, y=row - 22, text=text, align="left")],
                colour,
            )
        ),
    ]
    bars = [layer for system in order for layer in _bars(study, system, frame)]
    lines = [layer for system in order for layer in _line(study, system, frame)]
    dots = [_dots(study, system, frame) for system in order]
    # Filled ones last, so that no other system's hollow one hides them
    marks = [*(hollow for hollow, _ in dots), *(filled for _, filled in dots)]
    return join_layers(
        frame, [*bars, *lines, *marks, *draw_texts(_ends(study, order, names, frame), INK), *texts]
    )


def _words(study: DepthStudy) -> list[tuple[str, str]]:
    """What is said above the picture, with its colour."""
    return [
        ("filled: its queries differ from those with a label only deeper", RECORD),
        *([("dashed: extrapolated, with intervals", MUTED)] if _ahead(study) else []),
        *(
            [("shown: labels were chosen from this order, which favours it", MUTED)]
            if study.of_shown
            else []
        ),
    ]


def _best(study: DepthStudy) -> list[int]:
    last = study.scores.means()[-1]
    return sorted(range(len(last)), key=lambda one: -(last[one] or 0.0))[:MOST_LINES]


def _ahead(study: DepthStudy) -> tuple[Extrapolation, ...]:
    return study.outlook.predicted if study.outlook else ()


def _frame(study: DepthStudy, order: list[int], names: list[str]) -> Frame:
    seen = [row[one] for row in study.scores.means() for one in order]
    ends = [
        end
        for system in order
        for _, one in _expected(study, system)
        for end in (one.low, one.high)
    ]
    y = score_span([*(score for score in seen if score is not None), *ends])
    depths = [*study.scores.depths, *(ahead.depth for ahead in _ahead(study))]
    x = (depths[0] - 0.5, depths[-1] + 0.5)
    widest = max(text_width(name, SIZE) for name in names)
    top = 40 + _LINE * len(_words(study))
    return Frame(
        canvas=Canvas(width=380, height=320, left=56, right=round(widest) + 16, top=top, bottom=48),
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


def _expected(study: DepthStudy, system: int) -> list[tuple[int, Predicted]]:
    """Depth and score of what is extrapolated; none for a system that has no prediction."""
    pairs = [(ahead.depth, ahead.scores[system]) for ahead in _ahead(study)]
    return [(depth, one) for depth, one in pairs if one is not None]


def _line(study: DepthStudy, system: int, frame: Frame) -> list[Layer]:
    known = [(at, score) for at, score, _ in _seen(study, system)]
    ahead = [(float(depth), one.value) for depth, one in _expected(study, system)]
    return [
        draw_line(known, frame, MUTED),
        draw_line([known[-1], *ahead], frame, MUTED, dash=[4, 4]),
    ]


def _dots(study: DepthStudy, system: int, frame: Frame) -> tuple[Layer, Layer]:
    """Hollow marks, and filled ones."""
    name = study.scores.systems[system]
    told = {
        test.depth
        for test in study.survivors
        if test.system == name
        and test.p_corrected is not None
        and test.p_corrected < 1 - study.question.level
    }
    spots = [
        (place, (at, score, f"{name}, depth {study.scores.names[place]}: {score:.4f}"))
        for at, score, place in _seen(study, system)
    ]
    return (
        draw_dots([spot for place, spot in spots if place not in told], frame, "circle"),
        draw_dots([spot for place, spot in spots if place in told], frame, "disc"),
    )


def _seen(study: DepthStudy, system: int) -> list[tuple[float, float, int]]:
    """Depth, score and place of each depth at which a query has a label."""
    rows = zip(study.scores.depths, study.scores.means(), strict=True)
    return [
        (float(depth), score, place)
        for place, (depth, row) in enumerate(rows)
        if (score := row[system]) is not None
    ]


def _bars(study: DepthStudy, system: int, frame: Frame) -> list[Layer]:
    """Intervals of what is extrapolated, as grey boxes."""
    bars = []
    name = study.scores.systems[system]
    half = 0.12 * (frame.x[1] - frame.x[0]) / max(len(frame.x_ticks), 1)
    for depth, one in _expected(study, system):
        told = f"{name}, depth {depth}, extrapolated: {one.low:.4f} to {one.high:.4f}"
        bars.append(draw_box((depth - half, one.low, depth + half, one.high), frame, _HAIR, told))
    return bars


def _ends(study: DepthStudy, order: list[int], names: list[str], frame: Frame) -> list[Label]:
    """A name at the right end of each line, moved where another stands there."""
    last = study.scores.means()[-1]
    ahead = {one: _expected(study, one) for one in order}
    at = {one: ahead[one][-1][1].value if ahead[one] else last[one] or 0.0 for one in order}
    downwards = sorted(zip(order, names, strict=True), key=lambda pair: -at[pair[0]])
    wanted = np.array([frame.place(0.0, at[one])[1] for one, _ in downwards])
    # As near to their lines as names of this height may stand, in their order
    apart = _LINE * np.arange(len(wanted))
    placed = isotonic_regression(wanted - apart).x + apart
    return [
        Label(x=frame.canvas.width + 4, y=y, text=name, align="left")
        for (_, name), y in zip(downwards, placed.tolist(), strict=True)
    ]
