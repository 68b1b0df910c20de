"""Views side by side as tables and JSON: ranks of named runs, and how alike views rank."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heldout.analyses.views.views import NamedRanks, Transfer, ViewAgreement, Views
from heldout.answers.table import Cell, Column, Table
from heldout.charts.axes import Tick
from heldout.charts.labels import Label, cut, text_width
from heldout.charts.svg import (
    INK,
    MUTED,
    RECORD,
    RULE,
    SIZE,
    Canvas,
    Frame,
    Layer,
    draw_box,
    draw_line,
    draw_texts,
    join_layers,
)
from heldout.errors import plural

# How alike collections rank, as a picture: numbers above the diagonal, shades below.

_NAME = 24
_CELL, _LETTER = 40, 7.5
_HAIR = "#000004"
_SHADES = ((0.8, INK), (0.6, MUTED), (0.4, RULE), (-1.0, _HAIR))
"""From which tau a cell has which grey."""


def transfer_title(transfer: Transfer) -> str:
    """What the picture shows."""
    return f"Kendall's tau-b between every two of {len(transfer.views)} collections"


def transfer_spec(transfer: Transfer) -> dict[str, Any]:
    """A row and a column for each collection, the one most like all others first.

    Args:
        transfer: at least one pair.
    """
    order = _order(transfer)
    names = [cut(transfer.views[at], _NAME) for at in order]
    size = _CELL * len(names)
    left = 40 + round(max(map(len, names)) * _LETTER)
    canvas = Canvas(width=size, height=size, left=left, right=24, top=68, bottom=16)
    frame = Frame(
        canvas=canvas,
        x=(0.0, float(len(names))),
        y=(0.0, float(len(names))),
        x_ticks=(),
        y_ticks=(),
    )
    taus = _matrix(transfer)[np.ix_(order, order)]
    boxes, numbers = [], []
    for row in range(len(names)):
        for column in range(len(names)):
            tau = taus[row, column]
            told = f"{names[row]}, {names[column]}: {_say(tau)}"
            if row > column and not np.isnan(tau):
                boxes.append(_box(row, column, tau, told, frame))
            elif row < column:
                numbers.append(_middle((column + 0.5) * _CELL, (row + 0.5) * _CELL, _say(tau)))
    rows = [
        Label(x=-10, y=(place + 0.5) * _CELL, text=f"{name} · {place + 1}", align="right")
        for place, name in enumerate(names)
    ]
    heads = [_middle((place + 0.5) * _CELL, -14, f"{place + 1}") for place in range(len(names))]
    layers = [*boxes, *draw_texts([*numbers, *rows], INK), *draw_texts(heads, MUTED)]
    return join_layers(frame, [*layers, *_key(frame)])


def _matrix(transfer: Transfer) -> NDArray[np.float64]:
    """Kendall's tau by view and view; NaN where it is undefined."""
    places = {view: at for at, view in enumerate(transfer.views)}
    taus = np.full((len(places), len(places)), np.nan)
    for pair in transfer.pairs:
        if pair.tau is not None:
            first, second = places[pair.first], places[pair.second]
            taus[first, second] = taus[second, first] = pair.tau
    return taus


def _order(transfer: Transfer) -> list[int]:
    """Collections by their mean tau with the others, the highest first; those without one last."""
    taus = _matrix(transfer)
    means = [float(np.mean(row[~np.isnan(row)])) if (~np.isnan(row)).any() else -2 for row in taus]
    return sorted(range(len(means)), key=lambda at: (-means[at], at))


def _say(tau: float) -> str:
    """Two digits; nothing before the point, since a tau is at most 1."""
    return "-" if np.isnan(tau) else f"{tau:.2f}".replace("0.", ".", 1)


def _box(row: int, column: int, tau: float, told: str, frame: Frame) -> Layer:
    colour = next(colour for least, colour in _SHADES if tau >= least)
    top = frame.y[1] - row
    edge = 0.04
    corners = (column + edge, top - 1 + edge, column + 1 - edge, top - edge)
    return draw_box(corners, frame, colour, told)


def _middle(x: float, y: float, text: str) -> Label:
    """A text with its middle at a place."""
    return Label(x=x + text_width(text, SIZE) / 2, y=y, text=text, align="right")


def _key(frame: Frame) -> list[Layer]:
    """What shades mean, above the plot, from its left edge on."""
    layers: list[Layer] = []
    x = 10.0 - frame.canvas.left
    texts = ["tau-b from .8", "from .6", "from .4", "below"]
    for (_, colour), text in zip(_SHADES, texts, strict=True):
        scale = frame.y[1] / frame.canvas.height
        top = frame.y[1] + 50 * scale
        corners = (x * scale, top - 12 * scale, (x + 12) * scale, top)
        layers.append(draw_box(corners, frame, colour, text))
        layers += draw_texts([Label(x=x + 17, y=-44, text=text, align="left")], INK)
        x += 34 + len(text) * _LETTER
    return layers


# Views side by side as a picture: which ranks named runs have on each.

_VIEW_CHARTS_NAME = 30
_WIDTH = 560
_ROW, _GAP, _TOP = 26, 20, 44
_VIEW_CHARTS_LETTER = 7.0
_LEAST = 0.01
_VIEW_CHARTS_SHADES = ((0.5, INK), (0.2, MUTED), (0.05, RULE), (_LEAST, "#000004"))
"""From which share of trials a cell has which grey."""


def view_title(result: Views) -> str:
    """What the picture shows."""
    return (
        f"How often {', '.join(result.named)} have each rank on "
        f"{', '.join(result.stability)} when the queries of each view are resampled"
    )


def view_spec(result: Views) -> dict[str, Any]:
    """Figure 4: for each named run a row for each view, a cell for each rank, dark where often.

    A mark stands at the expected rank.

    Args:
        result: with scores by query on at least one view.

    Source: msmarco-benchmarking, figure 4.
    """
    last = max(
        rank
        for one in result.ranks
        for rank, share in enumerate(one.probability, start=1)
        if share >= _LEAST
    )
    count, groups = len(result.ranks), len(result.named)
    height = _ROW * count + _GAP * groups
    names = [cut(view, _VIEW_CHARTS_NAME) for view in result.stability]
    heads = [cut(name, _VIEW_CHARTS_NAME) for name in result.named]
    canvas = Canvas(
        width=_WIDTH,
        height=height,
        left=24 + round(max(map(len, (*names, *heads))) * _VIEW_CHARTS_LETTER),
        right=24,
        top=_TOP,
        bottom=48,
    )
    step = next((step for step in (1, 2, 5, 10, 20, 50, 100) if last / step <= _WIDTH / 40), 200)
    frame = Frame(
        canvas=canvas,
        x=(0.5, last + 0.5),
        y=(0.0, float(height)),
        x_ticks=tuple(
            Tick(at=rank, label=f"{rank}")
            for rank in range(1, last + 1)
            if rank % step == 0 or rank == 1
        ),
        y_ticks=(),
    )
    layers: list[Layer] = []
    heads_at, names_at = [], []
    y = float(height)
    for place, one in enumerate(result.ranks):
        if place % len(names) == 0:
            heads_at.append(_left(heads[place // len(names)], y - _GAP / 2, frame))
            y -= _GAP
        layers += _row(one, y, frame)
        names_at.append(_left(names[place % len(names)], y - _ROW / 2, frame))
        y -= _ROW
    layers += [*draw_texts(heads_at, INK), *draw_texts(names_at, MUTED)]
    axis = Label(x=canvas.width, y=height + 32, text="rank", align="right")
    return join_layers(frame, [*layers, *draw_texts([axis], MUTED), *_rank_key(frame)])


def _row(one: NamedRanks, y: float, frame: Frame) -> list[Layer]:
    """The cells of a run on a view, and its expected rank."""
    top, bottom = y - 3, y - _ROW + 3
    layers = []
    for rank, share in enumerate(one.probability, start=1):
        colour = next((colour for least, colour in _VIEW_CHARTS_SHADES if share >= least), None)
        if colour is not None:
            told = f"{one.system}, {one.view}: rank {rank} in {share:.1%}"
            layers.append(draw_box((rank - 0.5, bottom, rank + 0.5, top), frame, colour, told))
    ends = [(one.expected, bottom - 3), (one.expected, top + 3)]
    return [*layers, draw_line(ends, frame, RECORD)]


def _rank_key(frame: Frame) -> list[Layer]:
    """What shades and marks mean, above the plot; places are pixels from its top left corner."""
    layers: list[Layer] = []
    x = 0.0
    for least, colour in _VIEW_CHARTS_SHADES:
        text = f"from {least:.0%}" if layers else f"from {least:.0%} of trials"
        layers.append(draw_box(_at(x, -30, x + 12, -18, frame), frame, colour, text))
        layers += draw_texts([Label(x=x + 17, y=-24, text=text, align="left")], INK)
        x += 34 + len(text) * _VIEW_CHARTS_LETTER
    left, bottom, _, top = _at(x, -32, x, -16, frame)
    layers.append(draw_line([(left, bottom), (left, top)], frame, RECORD))
    return [*layers, *draw_texts([Label(x=x + 8, y=-24, text="expected", align="left")], INK)]


def _at(
    left: float, top: float, right: float, bottom: float, frame: Frame
) -> tuple[float, float, float, float]:
    """Pixels as values of the axes: left, lower, right and upper end."""
    scale = (frame.x[1] - frame.x[0]) / frame.canvas.width
    height = frame.canvas.height
    return (
        frame.x[0] + left * scale,
        height - bottom,
        frame.x[0] + right * scale,
        height - top,
    )


def _left(text: str, y: float, frame: Frame) -> Label:
    return Label(x=-10, y=frame.canvas.height - y, text=text, align="right")


_SHOWN = 3


def facts(result: Views) -> tuple[tuple[str, str], ...]:
    """The answer in a few lines: which views rank most and least alike, and what is not known."""
    lines = transfer_facts(result.transfer)
    if not result.means_only:
        return lines
    return (*lines, ("", f"means alone are known of {', '.join(result.means_only)}: no ranks"))


def transfer_facts(transfer: Transfer) -> tuple[tuple[str, str], ...]:
    """Which views rank most and least alike."""
    known = sorted(
        ((pair.tau, pair) for pair in transfer.pairs if pair.tau is not None),
        key=lambda one: one[0],
    )
    if not known:
        return (("views", "no two views share systems that both tell apart"),)
    lines = [("alike", _tell(known[-1][1]))]
    if len(known) > 1:
        lines.append(("unlike", _tell(known[0][1])))
    return tuple(lines)


def tables(result: Views) -> tuple[Table, ...]:
    """Ranks of the named runs on each view, then the agreement between views."""
    ranks = (_rank_table(result),) if result.ranks else ()
    return (*ranks, *transfer_tables(result.transfer))


def transfer_tables(transfer: Transfer) -> tuple[Table, ...]:
    """Agreement between every two views; before it, with more than three views, by view."""
    by_view = (_view_table(transfer),) if len(transfer.views) > _SHOWN else ()
    return (*by_view, _pair_table(transfer))


def value(result: Views) -> dict[str, Any]:
    """The whole result for JSON."""
    return {
        "systems": list(result.systems),
        "left_out": list(result.left_out),
        "named": list(result.named),
        "means_only": list(result.means_only),
        "views": [
            {
                "view": name,
                "queries": found.queries,
                "better": found.better,
                "systems": list(found.systems),
                "scores": list(found.means),
                "expected_rank": found.expected_rank.tolist(),
                "trials": found.trials,
                "ties": found.ties,
                "tied_trials": found.tied_trials,
                "digest": found.digest,
            }
            for name, found in result.stability.items()
        ],
        "ranks": [
            {
                "system": one.system,
                "view": one.view,
                "score": one.score,
                "rank": one.rank,
                "expected_rank": one.expected,
                "middle_low": one.low,
                "middle_high": one.high,
                "rank_probability": list(one.probability),
            }
            for one in result.ranks
        ],
        "agreement": transfer_value(result.transfer),
    }


def transfer_value(transfer: Transfer) -> dict[str, Any]:
    """Agreement between views for JSON."""
    return {
        "views": list(transfer.views),
        "scored": list(transfer.scored),
        "systems": transfer.systems,
        "top": transfer.top,
        "coefficients": {"tau": "Kendall's tau-b", "tau_ap": "tau_AP,b"},
        "pairs": [
            {
                "first": pair.first,
                "second": pair.second,
                "systems": pair.systems,
                "tau": pair.tau,
                "tau_ap": pair.tau_ap,
                "tau_first_top": pair.tau_first_top,
                "tau_second_top": pair.tau_second_top,
                "shared_top": pair.shared_top,
                "first_top": pair.first_top,
                "second_top": pair.second_top,
                "why": pair.why,
            }
            for pair in transfer.pairs
        ],
        "why": "null: fewer than two systems, or all of them have the same score on a view",
        "digest": transfer.digest,
    }


def _tell(pair: ViewAgreement) -> str:
    return f"{pair.first} and {pair.second}, tau {pair.tau:.3f} over {pair.systems:,} systems"


def _rank_table(result: Views) -> Table:
    rows: list[tuple[Cell, ...]] = [
        (one.system, one.view, one.score, one.rank, one.expected, f"{one.low}–{one.high}")
        for one in result.ranks
    ]
    queries = ", ".join(f"{name} {s.queries:,}" for name, s in result.stability.items())
    first = next(iter(result.stability.values()))
    return Table(
        title=f"Ranks among the {len(result.systems):,} systems that all views have",
        columns=(
            Column(name="system"),
            Column(name="view"),
            Column(name="score", form="score"),
            Column(name="rank", form="count"),
            Column(name="expected rank", form="score", decimals=1),
            Column(name="middle 95%"),
        ),
        rows=tuple(rows),
        notes=(
            (
                f"{plural(first.trials, 'resampling')} of each view's queries "
                f"({queries}); ties: {first.ties}"
            ),
            "views on the same queries draw the same ones; nothing is tested here",
            "the middle of the trials' ranks describes and is no confidence interval",
            *_say_left_out(result),
        ),
    )


def _say_left_out(result: Views) -> list[str]:
    notes = []
    if result.left_out:
        named = ", ".join(result.left_out[:_SHOWN])
        notes.append(f"left out, since a view lacks them: {len(result.left_out):,} ({named}…)")
    return notes


def _view_table(transfer: Transfer) -> Table:
    rows = []
    for view, scored in zip(transfer.views, transfer.scored, strict=True):
        others = sorted(
            (pair.tau, pair.second if pair.first == view else pair.first)
            for pair in transfer.pairs
            if view in (pair.first, pair.second) and pair.tau is not None
        )
        rows.append(_view_row(view, scored, others))
    return Table(
        title=f"Each of {len(rows)} views against the others, {transfer.systems:,} systems",
        columns=(
            Column(name="view"),
            Column(name="systems", form="count"),
            Column(name="mean tau", form="score", decimals=3),
            Column(name="most alike"),
            Column(name="tau", form="score", decimals=3),
            Column(name="least alike"),
            Column(name="tau", form="score", decimals=3),
        ),
        rows=tuple(rows),
    )


def _view_row(view: str, scored: int, others: Sequence[tuple[float, str]]) -> tuple[Cell, ...]:
    if not others:
        return (view, scored, None, None, None, None, None)
    (least, apart), (most, alike) = others[0], others[-1]
    return (view, scored, sum(tau for tau, _ in others) / len(others), alike, most, apart, least)


def _pair_table(transfer: Transfer) -> Table:
    rows: list[tuple[Cell, ...]] = [
        (
            pair.first,
            pair.second,
            pair.systems,
            pair.tau,
            pair.tau_ap,
            pair.tau_first_top,
            pair.tau_second_top,
            pair.shared_top,
        )
        for pair in transfer.pairs
    ]
    undefined = {pair.why for pair in transfer.pairs if pair.why}
    return Table(
        title="How alike two views rank the systems that both have",
        columns=(
            Column(name="view"),
            Column(name="other view"),
            Column(name="systems", form="count"),
            Column(name="tau", form="score", decimals=3),
            Column(name="tau AP", form="score", decimals=3),
            Column(name="top of view", form="score", decimals=3),
            Column(name="top of other", form="score", decimals=3),
            Column(name="in both tops", form="count"),
        ),
        rows=tuple(rows),
        notes=(
            "tau: Kendall's tau-b; tau AP: AP correlation tau_AP,b, where the top counts most",
            (
                f"top: tau-b over the {transfer.top} best of the one view and of the other, with "
                "all that tie with the last; few systems, so it moves much by chance"
            ),
            "no test, no interval: views of few queries differ by chance alone",
            *(f"undefined: {why}" for why in sorted(undefined)),
        ),
    )
