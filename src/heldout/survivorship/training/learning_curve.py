"""A learning curve: how well a re-ranker does with more and more of the labels.

Each trial draws its own labels and its own seed; within a trial a larger share holds the smaller
ones. The interval is Student's over the trials: what another trial would bring, on these queries.

Source: Nogueira et al., as figure 2 of msmarco-benchmarking (Craswell et al., SIGIR 2021).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from heldout.stats.tests import run_test
from heldout.survivorship.training.conditions import Condition
from heldout.survivorship.training.experiment import CellRecord

__all__ = ["Curve", "ShareScores", "draw_curve"]


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
    scores: Mapping[Condition, NDArray[np.float64]],
    first_stage: NDArray[np.float64],
    records: Mapping[Condition, Sequence[CellRecord]],
    *,
    test: str,
    measure: str,
    first_name: str,
    level: float = 0.95,
) -> Curve:
    """The curve of some shares.

    Args:
        scores: of each share, shape (trials, queries).
        first_stage: of the run that was re-ranked, shape (queries,).
        records: of each share, one for each trial.
        test: name of the test set.
        measure: as it is written.
        first_name: what the run that was re-ranked is called.
        level: of intervals, in (0, 1).
    """
    return Curve(
        test=test,
        measure=measure,
        queries=len(first_stage),
        first_stage=float(first_stage.mean()),
        first_name=first_name,
        level=level,
        points=tuple(
            _point(condition, values.mean(axis=1), records[condition], level)
            for condition, values in scores.items()
        ),
    )


def _point(
    condition: Condition,
    by_trial: NDArray[np.float64],
    records: Sequence[CellRecord],
    level: float,
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
