"""What the benchmark of the validity analyses measures: one explicit table.

A row does one piece of work three ways: ours; a peer's, the loop that one would write, of which a
part is timed; and a floor, the least that anybody has to compute.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from resampling import (
    FLIPS,
    LOOPED_TRIALS,
    loop_over_trials,
    multiply_counts,
    multiply_signs,
    range_all_pairs,
    rank_resampled,
)
from scipy import stats
from validity_scores import Simulated

from heldout.analyses.outcomes.options import DeclaredRules
from heldout.analyses.outcomes.outcomes import all_pairs, analyse_outcomes
from heldout.analyses.reliability import ReliabilityOptions, measure_reliability
from heldout.files.executors import open_executor
from heldout.scoring.first_ranks import first_ranks
from heldout.scoring.table import ScoreTable

__all__ = ["ROWS", "Row"]

_SPLITS = 100
_SAMPLE = 60
_DEPTH = 100

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One piece of work, done by us, by a peer and by the floor.

    Attributes:
        what: its name.
        ours: does all of it.
        peer: does a part of it as one would write it, and says what share of the whole that was.
        peer_name: who that is, and on what sample.
        floor: what nobody can do without.
        at_most_ratio: target, our seconds over the peer's.
        at_most_seconds: target, our seconds on the machine that the targets were set on.
    """

    what: str
    ours: Callable[[Simulated], object]
    peer: Callable[[Simulated], float] | None = None
    peer_name: str = ""
    floor: Callable[[Simulated], object] | None = None
    at_most_ratio: float | None = None
    at_most_seconds: float | None = None


def _reliability(scores: ScoreTable) -> object:
    with open_executor() as executor:
        return measure_reliability(
            scores,
            np.random.default_rng(0),
            ReliabilityOptions(splits=_SPLITS),
            executor=executor,
        )


def _outcomes(scores: ScoreTable) -> object:
    ranks = first_ranks(scores, k=_DEPTH)
    with open_executor() as executor:
        return analyse_outcomes(ranks, all_pairs(ranks), DeclaredRules(), executor=executor)


def _scipy_outcomes(ranks: NDArray[np.int64]) -> float:
    """The five tests of one pair after the other, without signed-rank's intervals."""
    random = np.random.default_rng(0)
    for _ in range(_SAMPLE):
        x, y = ranks[random.choice(len(ranks), 2, replace=False)]
        both = (x > 0) & (y > 0)
        only = int(((x > 0) & ~both).sum()), int(((y > 0) & ~both).sum())
        stats.binomtest(only[0], sum(only)).proportion_ci()
        for a, b in ((x[both], y[both]), (1 / x[both], 1 / y[both])):
            stats.wilcoxon(b - a, method="asymptotic")
            stats.ttest_rel(b, a).confidence_interval()
    return _SAMPLE / (len(ranks) * (len(ranks) - 1) / 2)


def _scipy_table_4(values: Floats) -> float:
    """Both halves of a split, four tests, mean and median, one pair after the other."""
    random = np.random.default_rng(0)
    systems, queries = len(values), values.shape[1]
    for _ in range(_SAMPLE):
        a, b = random.choice(systems, 2, replace=False)
        order = random.permutation(queries)
        for half in (order[: queries // 2], order[queries // 2 :]):
            x, y = values[a, half], values[b, half]
            _scipy_tests(x, y)
            np.mean(x), np.mean(y), np.median(x), np.median(y)
    return _SAMPLE / (_SPLITS * (systems * (systems - 1) // 2))


def _scipy_tests(x: Floats, y: Floats) -> None:
    wins, losses = int((y > x).sum()), int((y < x).sum())
    stats.binomtest(wins, wins + losses)
    stats.mannwhitneyu(x, y, method="asymptotic")
    stats.wilcoxon(y - x, method="asymptotic")
    stats.ttest_rel(x, y)


def _count_wins(values: Floats) -> None:
    """Wins of every pair in every split: one product, which the sign test cannot do without."""
    member = np.zeros((values.shape[1], _SPLITS))
    member[: len(member) // 2] = 1
    for a in range(len(values) - 1):
        _ = (values[a + 1 :] > values[a]).astype(np.float64) @ member


ROWS: tuple[Row, ...] = (
    Row(
        what="bootstrap ranks, 1,000 trials",
        ours=lambda scores: rank_resampled(scores.rr, 1000),
        peer=lambda scores: loop_over_trials(scores.rr, 1000),
        peer_name=f"numpy index loop, {LOOPED_TRIALS} trials",
        floor=lambda scores: multiply_counts(scores.rr, 1000),
        at_most_ratio=1 / 10,
    ),
    Row(
        what="bootstrap ranks, 10,000 trials",
        ours=lambda scores: rank_resampled(scores.rr, 10_000),
        peer=lambda scores: loop_over_trials(scores.rr, 10_000),
        peer_name=f"numpy index loop, {LOOPED_TRIALS} trials",
        floor=lambda scores: multiply_counts(scores.rr, 10_000),
        at_most_seconds=0.7,
    ),
    Row(
        what=f"max-t with step-down, {FLIPS:,}",
        ours=lambda scores: range_all_pairs(scores.rr),
        floor=lambda scores: multiply_signs(scores.rr),
    ),
    Row(
        what="Table 4, RR",
        ours=lambda scores: _reliability(scores.rr_table),
        peer=lambda scores: _scipy_table_4(scores.rr),
        peer_name=f"scipy loop, {_SAMPLE} pairs",
        floor=lambda scores: _count_wins(scores.rr),
        at_most_seconds=40,
    ),
    Row(
        what="Table 4, nDCG@10",
        ours=lambda scores: _reliability(scores.ndcg_table),
        peer=lambda scores: _scipy_table_4(scores.ndcg),
        peer_name=f"scipy loop, {_SAMPLE} pairs",
        floor=lambda scores: _count_wins(scores.ndcg),
        at_most_seconds=60,
    ),
    Row(
        what="outcomes tested, with intervals and verdicts",
        ours=lambda scores: _outcomes(scores.rr_table),
        peer=lambda scores: _scipy_outcomes(scores.ranks),
        peer_name=f"scipy loop, {_SAMPLE} pairs, no pseudomedians",
        at_most_seconds=10,
    ),
)
"""Every row, in the order of the issue's table."""
