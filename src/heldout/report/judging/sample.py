"""Runs on all queries and on the judged ones, as tables, a picture and JSON.

Shallow-pooling, table 3 and figure 5.
"""

from typing import Any

from heldout.answers.table import Cell, Column, Table
from heldout.charts.labels import Box, Label, Spot, cut, place_labels
from heldout.charts.layers import (
    INK,
    MUTED,
    SIZE,
    Canvas,
    Frame,
    Layer,
    draw_dots,
    draw_texts,
    join_layers,
)
from heldout.charts.ticks import score_span, score_ticks
from heldout.preferences.contests import PERFECT
from heldout.preferences.rescoring import Rescored
from heldout.preferences.sample_scores import SampleScores

__all__ = ["facts", "run_table", "spec", "tau_table", "title", "value"]

_NAME = 22


def facts(found: SampleScores) -> tuple[tuple[str, str], ...]:
    """The answer in a few lines."""
    return (
        ("queries", f"{found.judged:,} judged of {found.queries:,} with labels"),
        *(("tau", f"{_number(one.tau)} among {one.name}, {one.runs:,} runs") for one in found.taus),
    )


def _number(tau: float | None) -> str:
    return "undefined" if tau is None else f"{tau:.3f}"


def run_table(rescored: Rescored, sample: SampleScores | None) -> Table:
    """Every run: whether it was pooled, its scores on the labels before, and on the new ones.

    Args:
        rescored: on the judged queries with labels of both kinds.
        sample: on all labelled queries and on the judged ones; `None` where not known.
    """
    known = {} if sample is None else {one.run: one for one in sample.runs}
    ranks = {run: place for place, run in enumerate(known, 1)}
    whole: tuple[Column, ...] = ()
    if sample is not None:
        whole = (
            Column(name="rank", form="count"),
            Column(name="all queries", form="score"),
            Column(name="judged queries", form="score"),
        )
    rows: list[tuple[Cell, ...]] = []
    for one in sorted(rescored.runs, key=lambda one: ranks.get(one.run, len(ranks) + 1)):
        own = known.get(one.run)
        cells: tuple[Cell, ...] = ()
        if sample is not None:
            cells = (None,) * 3 if own is None else (ranks[one.run], own.every, own.sample)
        pooled = "" if one.run == PERFECT else "yes" if one.pooled else "no"
        rows.append((one.run, pooled, *cells, one.before.value, one.after.value, one.after.rank))
    on = "" if sample is None else f" all queries: {sample.queries:,}, with {sample.measure}."
    return Table(
        title="Runs, and their scores on several sets of labels",
        columns=(
            Column(name="run"),
            Column(name="pooled"),
            *whole,
            Column(name="labels before", form="score"),
            Column(name="preferences", form="score"),
            Column(name="rank on preferences", form="count"),
        ),
        rows=tuple(rows),
        notes=(
            (
                f"labels before: {rescored.measures[0]}; preferences: {rescored.measures[1]}; both "
                f"on the {rescored.queries:,} judged queries with labels of both kinds.{on}"
            ),
        ),
    )


def tau_table(found: SampleScores) -> Table:
    """Kendall's tau between the orders of runs."""
    return Table(
        title=f"Kendall's tau-b between all {found.queries:,} queries and {found.judged:,} of them",
        columns=(
            Column(name="among"),
            Column(name="runs", form="count"),
            Column(name="tau", form="score", decimals=3),
            Column(name="discordant", form="count"),
            Column(name="pairs", form="count"),
        ),
        rows=tuple((one.name, one.runs, one.tau, one.discordant, one.pairs) for one in found.taus),
        notes=(
            (
                "The sample is a part of the whole, so the two agree more than two samples of "
                "different queries would."
            ),
        ),
    )


def title(found: SampleScores) -> str:
    """What the picture shows."""
    return (
        f"{found.measure} on {found.labels}: {found.judged:,} judged queries over all "
        f"{found.queries:,}"
    )


def spec(found: SampleScores) -> dict[str, Any]:
    """A mark for each run; names where there is room."""
    x = score_span([one.every for one in found.runs])
    y = score_span([one.sample for one in found.runs])
    frame = Frame(
        canvas=Canvas(width=600, height=360, left=56, right=24, top=44, bottom=48),
        x=x,
        y=y,
        x_ticks=score_ticks(x, most=9),
        y_ticks=score_ticks(y, most=8),
    )
    dots = [
        (one.every, one.sample, f"{one.run}: {one.every:.4f}, {one.sample:.4f}")
        for one in found.runs
    ]
    width, height = float(frame.canvas.width), float(frame.canvas.height)
    spots = [
        Spot(x=at[0], y=at[1], text=cut(one.run, _NAME))
        for one in found.runs
        for at in [frame.place(one.every, one.sample)]
    ]
    area = Box(left=0, top=0, right=width, bottom=height)
    axes = [
        Label(x=-frame.canvas.left, y=-24, text=f"{found.measure}, judged queries", align="left"),
        Label(x=width, y=height + 36, text=f"{found.measure}, all queries", align="right"),
    ]
    layers: list[Layer] = [
        draw_dots(dots, frame, "disc"),
        *draw_texts(list(place_labels(spots, [], size=SIZE, area=area)), INK),
        *draw_texts(axes, MUTED),
    ]
    return join_layers(frame, layers)


def value(found: SampleScores) -> dict[str, Any]:
    """For JSON."""
    return {
        "measure": found.measure,
        "labels": found.labels,
        "queries": found.queries,
        "judged": found.judged,
        "runs": [{"run": one.run, "all": one.every, "judged": one.sample} for one in found.runs],
        "taus": [
            {
                "among": one.name,
                "runs": one.runs,
                "tau": one.tau,
                "discordant": one.discordant,
                "pairs": one.pairs,
                **({} if one.tau is not None else {"why": "fewer than two different scores"}),
            }
            for one in found.taus
        ],
    }
