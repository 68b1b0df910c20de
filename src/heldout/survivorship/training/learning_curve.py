"""A learning curve: how well a re-ranker does with more and more of the labels.

Each trial draws its own labels and its own seed; within a trial a larger share holds the smaller
ones. The interval is Student's over the trials: what another trial would bring, on these queries.

Source: Nogueira et al., as figure 2 of Craswell et al. 2021.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from heldout.answers.answer import Answer, to_document
from heldout.answers.sentence import name_one
from heldout.answers.table import Column, Table, columns
from heldout.charts.axes import log_axis, score_axis
from heldout.charts.plot import Plot
from heldout.charts.svg import RECORD
from heldout.errors import plural
from heldout.stats.tests import run_test
from heldout.survivorship.training.results import CellRecord, Floats, TestScores
from heldout.survivorship.training.triples import Condition


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareScores:
    """A share of the labels, and how well those trained on it do.

    Attributes:
        condition: the share.
        labels: how many different pairs of a query and its positive, on average over trials.
        triples: how many different triples, likewise.
        by_trial: mean score of each trial.
        mean: of the trials.
        low, high: the interval of the mean; `None` where undefined.
        why: the reason, else "".
    """

    condition: Condition
    labels: float
    triples: float
    by_trial: tuple[float, ...]
    mean: float
    low: float | None
    high: float | None
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """A learning curve on one measure of one test set.

    Attributes:
        test: name of the test set.
        measure: as it is written.
        queries: how many were averaged over.
        first_stage: mean of the run that was re-ranked.
        first_name: what that run is called.
        level: of the intervals.
        points: by rising share.
    """

    test: str
    measure: str
    queries: int
    first_stage: float
    first_name: str
    level: float
    points: tuple[ShareScores, ...]


def draw_curve(
    scored: TestScores, records: Mapping[Condition, Sequence[CellRecord]], *, level: float = 0.95
) -> Curve:
    """The curve of some shares.

    Args:
        scored: scores of each share; its seeds are the trials.
        records: of each share, one for each trial.
        level: of intervals, in (0, 1).
    """
    return Curve(
        test=scored.test,
        measure=scored.measure,
        queries=len(scored.first_stage),
        first_stage=float(scored.first_stage.mean()),
        first_name=scored.first_name,
        level=level,
        points=tuple(
            _point(condition, values.mean(axis=1), records[condition], level)
            for condition, values in scored.scores.items()
        ),
    )


def _point(
    condition: Condition, by_trial: Floats, records: Sequence[CellRecord], level: float
) -> ShareScores:
    # The paired test against zeros is the test of one sample, with its interval.
    found = run_test("t", np.zeros_like(by_trial), by_trial, level=level)
    return ShareScores(
        condition=condition,
        labels=sum(record.labels for record in records) / len(records),
        triples=sum(record.triples for record in records) / len(records),
        by_trial=tuple(by_trial.tolist()),
        mean=float(by_trial.mean()),
        low=found.low,
        high=found.high,
        why=found.why or "",
    )


def answer_curves(curves: Sequence[Curve]) -> Answer:
    """Say what a learning curve shows of each measure of each test set."""
    first = curves[0]
    return Answer(
        answer=_headline(first),
        summary=(),
        tables=[_table(curve) for curve in curves],
        document={"curves": [to_document(curve) for curve in curves]},
        chart=lambda: _draw(first),
        title=f"{first.measure} on {first.test} by how many labels were trained on",
    )


def _headline(curve: Curve) -> str:
    """Return what all labels bring, against the fewest and against the first stage."""
    least, most = curve.points[0], curve.points[-1]
    said = f"With {plural(round(most.labels), 'label')} {curve.measure} on {name_one(curve.test)}"
    said += f" is {most.mean:.4f}"
    if len(curve.points) > 1:
        said += f", against {least.mean:.4f} with {round(least.labels):,}"
    return f"{said}; {name_one(curve.first_name)}, which is re-ranked, has {curve.first_stage:.4f}."


def _draw(curve: Curve) -> Plot:
    """Mean and interval over the logarithm of the number of labels.

    The level of the run that is re-ranked is a dashed line.

    Source: Craswell et al. 2021, figure 2.
    """
    ends = [end for point in curve.points for end in (point.low, point.high) if end is not None]
    trials = [score for point in curve.points for score in point.by_trial]
    plot = Plot(
        x=log_axis([point.labels for point in curve.points]),
        y=score_axis([*ends, *trials, curve.first_stage]),
        head=curve.measure,
        foot="labels trained on",
    )
    plot.level(curve.first_stage, curve.first_name)
    plot.line([(point.labels, point.mean) for point in curve.points], RECORD)
    for point in curve.points:
        if point.low is not None and point.high is not None:
            plot.line([(point.labels, point.low), (point.labels, point.high)], RECORD)
        plot.dots(
            [
                (point.labels, score, f"{point.condition.name}, trial {trial}: {score:.4f}")
                for trial, score in enumerate(point.by_trial)
            ],
            "circle",
        )
        tip = f"{point.condition.name}: {point.mean:.4f}"
        plot.dots([(point.labels, point.mean, tip)], "diamond")
    plot.key("circle", "a trial")
    plot.key("diamond", f"mean, with its {curve.level:.0%} interval")
    return plot


def _table(curve: Curve) -> Table:
    trials = len(curve.points[0].by_trial)
    why = next((point.why for point in curve.points if point.why), "")
    notes = [
        (
            f"{curve.level:.0%} t-interval over {plural(trials, 'trial')}: each draws its labels "
            "and its seed; the queries stay"
        ),
        f"{curve.first_name}, which is re-ranked: {curve.first_stage:.4f}",
    ]
    if why:
        notes.append(f"no interval: {why}")
    return Table(
        title=f"{curve.measure} on {curve.test}, {plural(curve.queries, 'query', 'queries')}",
        columns=(
            Column(name="trained on"),
            *columns("count", "labels", "triples"),
            *columns("score", "mean", "low", "high"),
        ),
        rows=tuple(
            (one.condition.name, round(one.labels), round(one.triples), one.mean, one.low, one.high)
            for one in curve.points
        ),
        notes=tuple(notes),
    )
