"""Re-rankers trained on deeper and shallower annotation, compared on one measure of one test set.

Three questions, and three tests:

- *within a seed*: do these two trained models differ on other queries? Paired t over queries,
  one for each seed, corrected. This is the paper's test; it takes the luck of the seed for the
  effect of the labels.
- *averaged*: do these very models, averaged over their seeds, differ on other queries? Paired t
  of the means over seeds.
- *across seeds*: would other seeds and other queries show it too? A t test in which seeds and
  queries are both drawn (`stats.crossed`). This is the question that is meant.

Source: Gupta and MacAvaney 2022, §5.2; docs/reference/analyses.md, Outcomes, for seeds.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import msgspec
import numpy as np
from numpy.typing import NDArray

from heldout.ids import Digest
from heldout.stats.power import detectable_difference
from heldout.stats.results import TestResult, bonferroni
from heldout.stats.student import crossed_t
from heldout.stats.tests import run_test
from heldout.survivorship.training.triples import ALL, Condition

Floats = NDArray[np.float64]

_ALPHA = 0.05
_POWER = 0.8
_ONE_SEED = "one seed says nothing of others"


class CellRecord(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What became of a cell, as it is stored.

    Attributes:
        digest: of what was trained on and how.
        condition: its name.
        seed: its seed.
        triples: different triples that it could train on.
        labels: different pairs of a query and its positive among them.
        queries: different queries among them.
        missing: for a control: how many triples fewer than the condition it follows.
        steps: how often its weights were changed.
        passes: how often it saw each triple on average.
        first_loss: mean loss of the first tenth of the steps.
        last_loss: of the last tenth.
        seconds: that training took.
        device: where it ran.
        precision: of its matrix products.
        runs: test set -> digest of what its run was made of, as far as they are written.
    """

    digest: Digest
    condition: str
    seed: int
    triples: int
    labels: int
    queries: int
    missing: int
    steps: int
    passes: float
    first_loss: float
    last_loss: float
    seconds: float
    device: str
    precision: str
    runs: dict[str, Digest] = {}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TestScores:
    """Scores of one measure on one test set.

    Attributes:
        test: name of the test set.
        measure: as it is written.
        scores: of each condition, shape (seeds, queries); the same seeds and queries for all.
        first_stage: of the run that was re-ranked, shape (queries,).
        first_name: what that run is called.
    """

    __test__ = False  # pytest looks for classes of this name

    test: str
    measure: str
    scores: Mapping[Condition, Floats]
    first_stage: Floats
    first_name: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConditionScores:
    """How well the models of one condition do.

    Attributes:
        condition: what they were trained on.
        by_seed: mean over queries of each, in the order of the seeds.
        mean: of them.
        spread: their standard deviation; `None` with one seed.
    """

    condition: Condition
    by_seed: tuple[float, ...]
    mean: float
    spread: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ConditionPair:
    """Two conditions.

    Attributes:
        a, b: the conditions; differences are B - A.
        within: paired t of each seed over queries.
        averaged: paired t of the means over seeds.
        across: t with seeds and queries drawn; with one seed neither p nor interval.
        within_corrected, averaged_corrected, across_corrected: their p-values times the size of
            the family, at most 1; `None` where undefined.
        family: how many comparisons are corrected for, within one seed as across seeds.
        deviation: standard deviation over queries of the differences averaged over seeds.
        same_size: whether both trained on as many queries, labels and triples in each seed, so
            that of a depth and its control depth alone is the difference.
    """

    a: Condition
    b: Condition
    within: tuple[TestResult, ...]
    averaged: TestResult
    across: TestResult
    within_corrected: tuple[float | None, ...]
    averaged_corrected: float | None
    across_corrected: float | None
    family: int
    deviation: float
    same_size: bool

    @property
    def detectable(self) -> float | None:
        """The true difference of the averaged models that is found four times out of five.

        On as many queries, at .05 over the size of the family; `None` where no query differs.
        """
        if not self.deviation:
            return None
        alpha = _ALPHA / self.family
        return detectable_difference(self.averaged.n, self.deviation, alpha=alpha, power=_POWER)

    @property
    def controlled(self) -> bool:
        """Whether A is a random sample that is to be as small as B."""
        return self.a.like is not None and self.a.like == self.b.depth


@dataclass(frozen=True, slots=True, kw_only=True)
class TestOutcome:
    """All there is to say of one measure on one test set.

    Attributes:
        test: name of the test set.
        measure: as it is written.
        queries: how many were averaged over.
        first_stage: mean of the run that was re-ranked.
        conditions: what was trained on, with its scores.
        comparisons: as `pairs_of`.
    """

    __test__ = False  # pytest looks for classes of this name

    test: str
    measure: str
    queries: int
    first_stage: float
    conditions: tuple[ConditionScores, ...]
    comparisons: tuple[ConditionPair, ...]


def pairs_of(conditions: Sequence[Condition]) -> tuple[tuple[Condition, Condition], ...]:
    """Which conditions are compared.

    Each with all; each depth with the next deeper one; and each depth with its control. Of r=1, r=5
    and all these are the pairs of the paper's figure 1; with more depths not each with each, since
    every pair makes the correction stricter for the others.

    Args:
        conditions: with `ALL` among them; depths rise.

    Returns:
        Pairs (A, B), where A is what B is held against.

    Source: Gupta and MacAvaney 2022, figure 1 (r=1 and r=5 against all, r=1 against r=5).
    """
    against_all = [(ALL, one) for one in conditions if one != ALL]
    depths = [one for one in conditions if one.depth is not None]
    against_deeper = [(deeper, one) for one, deeper in pairwise(depths)]
    controls = {one.like: one for one in conditions if one.like is not None}
    at_equal_size = [(controls[one.depth], one) for one in depths if one.depth in controls]
    return (*against_all, *against_deeper, *at_equal_size)


def compare_conditions(
    scored: TestScores, records: Mapping[Condition, Sequence[CellRecord]], *, level: float = 0.95
) -> TestOutcome:
    """Compare what was trained on several conditions.

    P-values are corrected by Bonferroni over the comparisons of this measure on this test set.
    Seeds are no family: each is the same question.

    Args:
        scored: the scores.
        records: of each condition, in the order of the seeds: how much was trained on.
        level: of intervals, in (0, 1).

    Raises:
        ValueError: conditions with other seeds or queries than the others.
    """
    scores = scored.scores
    shapes = {values.shape for values in scores.values()}
    if len(shapes) != 1 or next(iter(shapes))[1:] != scored.first_stage.shape:
        raise ValueError(shapes)
    amounts = {
        condition: [(one.queries, one.labels, one.triples) for one in found]
        for condition, found in records.items()
    }
    return TestOutcome(
        test=scored.test,
        measure=scored.measure,
        queries=len(scored.first_stage),
        first_stage=float(scored.first_stage.mean()),
        conditions=tuple(_score(condition, values) for condition, values in scores.items()),
        comparisons=_compare_pairs(scores, amounts, level),
    )


def _score(condition: Condition, values: Floats) -> ConditionScores:
    by_seed = values.mean(axis=1)
    return ConditionScores(
        condition=condition,
        by_seed=tuple(by_seed.tolist()),
        mean=float(by_seed.mean()),
        spread=float(by_seed.std(ddof=1)) if len(by_seed) > 1 else None,
    )


def _compare_pairs(
    scores: Mapping[Condition, Floats],
    amounts: Mapping[Condition, Sequence[tuple[int, int, int]]],
    level: float,
) -> tuple[ConditionPair, ...]:
    pairs = pairs_of(tuple(scores))
    within = [
        tuple(
            run_test("t", first, second, level=level)
            for first, second in zip(scores[a], scores[b], strict=True)
        )
        for a, b in pairs
    ]
    averaged = [
        run_test("t", scores[a].mean(axis=0), scores[b].mean(axis=0), level=level) for a, b in pairs
    ]
    across = [_test_across(scores[a], scores[b], level) for a, b in pairs]
    # Each seed has the family once
    of_seeds = [bonferroni([one.p for one in seed]) for seed in zip(*within, strict=True)]
    corrected = [bonferroni([one.p for one in tests]) for tests in (averaged, across)]
    return tuple(
        ConditionPair(
            a=a,
            b=b,
            within=within[place],
            averaged=averaged[place],
            across=across[place],
            within_corrected=tuple(ps[place] for ps in of_seeds),
            averaged_corrected=corrected[0][place],
            across_corrected=corrected[1][place],
            family=len(pairs),
            deviation=_deviation(scores[b].mean(axis=0) - scores[a].mean(axis=0)),
            same_size=amounts[a] == amounts[b],
        )
        for place, (a, b) in enumerate(pairs)
    )


def _test_across(first: Floats, second: Floats, level: float) -> TestResult:
    totals = second[np.newaxis, :, :] - first[:, np.newaxis, :]
    found = crossed_t(totals, np.ones_like(totals), level=level)
    return found if len(first) > 1 else replace(found, low=None, high=None, p=None, why=_ONE_SEED)


def _deviation(differences: Floats) -> float:
    return float(np.std(differences, ddof=1)) if len(differences) > 1 else 0.0
