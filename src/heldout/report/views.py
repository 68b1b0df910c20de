"""Views side by side as tables, a picture and JSON: ranks of named runs, agreement of rankings."""

from collections.abc import Sequence
from typing import Any

from heldout.charts.boxes import RULE, draw_box
from heldout.charts.labels import Label, cut
from heldout.charts.layers import (
    INK,
    MUTED,
    RECORD,
    Canvas,
    Frame,
    Layer,
    draw_line,
    draw_texts,
    join_layers,
)
from heldout.charts.ticks import Tick
from heldout.report.table import Cell, Column, Table
from heldout.validity.transfer import Transfer, ViewAgreement
from heldout.validity.views import NamedRanks, Views

__all__ = ["facts", "spec", "tables", "title", "transfer_tables", "transfer_value", "value"]

_SHOWN = 3
_NAME = 30
_WIDTH = 560
_ROW, _GAP, _TOP = 26, 20, 44
_LETTER = 7.0
_LEAST = 0.01
_SHADES = ((0.5, INK), (0.2, MUTED), (0.05, RULE), (_LEAST, "#000004"))
"""From which share of trials a cell has which grey."""


def facts(transfer: Transfer) -> tuple[tuple[str, str], ...]:
    """The answer in two lines: which views rank most and least alike."""
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


def title(result: Views) -> str:
    """What the picture shows."""
    return (
        f"How often {', '.join(result.named)} have each rank on "
        f"{', '.join(result.stability)} when the queries of each view are resampled"
    )


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


def spec(result: Views) -> dict[str, Any]:
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
    names = [cut(view, _NAME) for view in result.stability]
    heads = [cut(name, _NAME) for name in result.named]
    canvas = Canvas(
        width=_WIDTH,
        height=height,
        left=24 + round(max(map(len, (*names, *heads))) * _LETTER),
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
    return join_layers(frame, [*layers, *draw_texts([axis], MUTED), *_key(frame)])


def _row(one: NamedRanks, y: float, frame: Frame) -> list[Layer]:
    """The cells of a run on a view, and its expected rank."""
    top, bottom = y - 3, y - _ROW + 3
    layers = []
    for rank, share in enumerate(one.probability, start=1):
        colour = next((colour for least, colour in _SHADES if share >= least), None)
        if colour is not None:
            told = f"{one.system}, {one.view}: rank {rank} in {share:.1%}"
            layers.append(draw_box((rank - 0.5, bottom, rank + 0.5, top), frame, colour, told))
    ends = [(one.expected, bottom - 3), (one.expected, top + 3)]
    return [*layers, draw_line(ends, frame, RECORD)]


def _key(frame: Frame) -> list[Layer]:
    """What shades and marks mean, above the plot; places are pixels from its top left corner."""
    layers: list[Layer] = []
    x = 0.0
    for least, colour in _SHADES:
        text = f"from {least:.0%}" if layers else f"from {least:.0%} of trials"
        layers.append(draw_box(_at(x, -30, x + 12, -18, frame), frame, colour, text))
        layers += draw_texts([Label(x=x + 17, y=-24, text=text, align="left")], INK)
        x += 34 + len(text) * _LETTER
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
            f"{first.trials:,} resamplings of each view's queries ({queries}); ties: {first.ties}",
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
    if result.means_only:
        notes.append(f"only means are known of {', '.join(result.means_only)}: no ranks there")
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
