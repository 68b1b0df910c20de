"""Scores over the depth of annotation as a picture, with what deeper annotation might show."""

from heldout.charts.axes import name_axis, score_axis
from heldout.charts.plot import Plot
from heldout.charts.svg import MUTED, SOFT, cut
from heldout.errors import plural
from heldout.survivorship.depths.extrapolation import Extrapolation, Predicted
from heldout.survivorship.depths.study import DepthStudy

MOST_LINES = 8
"""Systems that the picture shows at most, the best ones."""


def title(study: DepthStudy) -> str:
    """What the picture shows."""
    scores = study.scores
    shown = min(MOST_LINES, len(scores.systems))
    which = plural(shown, "system")
    if shown < len(scores.systems):
        which = f"the best {shown} of {len(scores.systems):,} systems"
    return (
        f"{study.scores.measure} of {which} on the labels of each depth of annotation, from "
        f"{scores.names[0]} to {scores.names[-1]}" + (" and extrapolated" if _ahead(study) else "")
    )


_NAME = 22


def spec(study: DepthStudy) -> Plot:
    """A line for each system, named at its end; extrapolated parts are dashed, in their intervals.

    A filled mark is a depth whose queries differ from those that have a label only deeper.
    """
    order = _best(study)
    scores = study.scores
    ahead = [(one, pair) for one in order for pair in _expected(study, one)]
    seen = [row[one] for row in scores.means() for one in order]
    names = {float(at): name for at, name in zip(scores.depths, scores.names, strict=True)}
    plot = Plot(
        x=name_axis(
            names | {float(one.depth): str(one.depth) for one in _ahead(study)},
            first=float(scores.depths[-1]),
        ),
        y=score_axis(
            [
                *(score for score in seen if score is not None),
                *(end for _, (_, one) in ahead for end in (one.low, one.high)),
            ]
        ),
        head=str(study.scores.measure),
        foot="depth of annotation",
        height=320,
    )
    for system, (depth, one) in ahead:
        name = f"{scores.systems[system]}, depth {depth}"
        tip = f"{name}, extrapolated: {one.low:.4f} to {one.high:.4f}"
        plot.box((depth - 0.12, depth + 0.12), (one.low, one.high), SOFT, tip)
    for system in order:
        known = [(at, score) for at, score, _ in _seen(study, system)]
        later = [(float(depth), one.value) for depth, one in _expected(study, system)]
        plot.line(known, MUTED)
        plot.line([known[-1], *later], MUTED, dash=True)
        plot.end([*known, *later][-1][1], cut(scores.systems[system], _NAME))
    # Filled ones last, so that no other system's hollow one hides them
    for filled in (False, True):
        for system in order:
            plot.dots(_spots(study, system, filled=filled), "disc" if filled else "circle")
    plot.key("disc", "its queries differ from those with a label only deeper")
    if _ahead(study):
        plot.key("dashed", "extrapolated, with intervals", MUTED)
    if study.of_shown:
        plot.key("!", "shown: labels were chosen from this order, which favours it")
    return plot


def _spots(study: DepthStudy, system: int, *, filled: bool) -> list[tuple[float, float, str]]:
    """The depths of a system that differ from deeper ones significantly, or the others."""
    name = study.scores.systems[system]
    differ = {
        test.depth
        for test in study.survivors
        if test.system == name
        and test.p_corrected is not None
        and test.p_corrected < 1 - study.options.level
    }
    return [
        (at, score, f"{name}, depth {study.scores.names[place]}: {score:.4f}")
        for at, score, place in _seen(study, system)
        if (place in differ) == filled
    ]


def _best(study: DepthStudy) -> list[int]:
    last = study.scores.means()[-1]
    return sorted(range(len(last)), key=lambda one: -(last[one] or 0.0))[:MOST_LINES]


def _ahead(study: DepthStudy) -> tuple[Extrapolation, ...]:
    return study.outlook.predicted if study.outlook else ()


def _expected(study: DepthStudy, system: int) -> list[tuple[int, Predicted]]:
    """Depth and score of what is extrapolated; none for a system that has no prediction."""
    pairs = [(ahead.depth, ahead.scores[system]) for ahead in _ahead(study)]
    return [(depth, one) for depth, one in pairs if one is not None]


def _seen(study: DepthStudy, system: int) -> list[tuple[float, float, int]]:
    """Depth, score and place of each depth at which a query has a label."""
    rows = zip(study.scores.depths, study.scores.means(), strict=True)
    return [
        (float(depth), score, place)
        for place, (depth, row) in enumerate(rows)
        if (score := row[system]) is not None
    ]
