"""Re-rankers trained on deeper and shallower annotation, compared on one measure of one test set.

Three questions, and three tests:

- *within a seed*: do these two trained models differ on other queries? Paired t over queries,
  one for each seed, corrected. This is the paper's test; it takes the luck of the seed for the
  effect of the labels.
- *averaged*: do these very models, averaged over their seeds, differ on other queries? Paired t
  of the means over seeds.

A model that was trained on the queries it is tested on is not tested. Ids do not show that: two
collections number their queries alike, and one query has two ids. So `find_trained_on` compares
words, of queries and of relevant documents that are negatives in training.
- *across seeds*: would other seeds and other queries show it too? A t test in which seeds and
  queries are both drawn (`stats.crossed`). This is the question that is meant.

Source: Gupta and MacAvaney 2022, §5.2; docs/reference/analyses.md, Outcomes, for seeds.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from heldout.ids import DocId, QueryId
from heldout.stats.power import detectable_difference
from heldout.stats.results import TestResult, bonferroni
from heldout.stats.student import crossed_t
from heldout.stats.tests import run_test
from heldout.survivorship.training.experiment import CellRecord, TestSet
from heldout.survivorship.training.triples import ALL, Condition, Triple

_NEAR = (7, 10)
"""Jaccard similarity of words from which two queries are near duplicates, as a fraction."""

Words = frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainedOn:
    """What of a test set was seen in training.

    Attributes:
        queries: labelled queries of the test set that were trained on, in the same words or
            nearly so.
        labelled: its labelled queries.
        negatives: its relevant documents that were negatives in training, where they have the
            same id and text.
        relevant: its relevant documents.
    """

    queries: int
    labelled: int
    negatives: int
    relevant: int


def find_trained_on(
    test: TestSet,
    triples: Collection[Triple],
    queries: Mapping[QueryId, str],
    documents: Mapping[DocId, str],
) -> TrainedOn:
    """Compare a test set with what is trained on.

    Args:
        test: queries without a text are left aside.
        triples: that are trained on, in any order.
        queries: text of each query of the triples.
        documents: text of each document of the triples.
    """
    labelled = [query for query, grades in test.qrels.items() if _relevant(grades)]
    texts = {str(query): text for query, text in test.queries.items()}
    asked = [texts[query] for query in labelled if query in texts]
    seen = [queries[query] for query in sorted({triple.query for triple in triples})]
    wanted = {one for grades in test.qrels.values() for one in _relevant(grades)}
    negatives = {
        one
        for one in {triple.negative for triple in triples}
        if one in wanted and documents[one] == test.documents.get(one)
    }
    return TrainedOn(
        queries=len(find_near_copies(asked, seen)),
        labelled=len(labelled),
        negatives=len(negatives),
        relevant=len(wanted),
    )


def find_near_copies(texts: Sequence[str], others: Sequence[str]) -> frozenset[int]:
    """Which texts have a near duplicate among others.

    Two texts are near duplicates where the Jaccard similarity of their sets of lower-case words
    is at least 0.7, as in `collections.near_duplicate_groups`. Only texts that share one of
    their rarest words are compared: with so much in common two texts cannot differ in all of
    them. Half a million queries take seconds.

    Args:
        texts: any number of short texts; one without a word is like no other.
        others: to compare with.

    Returns:
        Places in `texts`, from 0.
    """
    ours, theirs = [_words(text) for text in texts], {_words(text) for text in others}
    common = Counter(word for words in (*ours, *theirs) for word in words)
    index: defaultdict[str, list[Words]] = defaultdict(list)
    for words in theirs:
        for word in _rarest(words, common):
            index[word].append(words)
    return frozenset(
        place
        for place, words in enumerate(ours)
        if any(_near(words, other) for word in _rarest(words, common) for other in index[word])
    )


def _relevant(grades: Mapping[str, int]) -> Collection[str]:
    return [document for document, grade in grades.items() if grade > 0]


def _words(text: str) -> Words:
    return frozenset(text.casefold().split())


def _rarest(words: Words, common: Mapping[str, int]) -> Iterable[str]:
    """So many that a near duplicate has one of them among its own."""
    least, unit = _NEAR
    shared = -(-least * len(words) // unit)
    return sorted(words, key=lambda word: (common[word], word))[: len(words) - shared + 1]


def _near(words: Words, other: Words) -> bool:
    least, unit = _NEAR
    shared = len(words & other)
    return unit * shared >= least * (len(words) + len(other) - shared)


Floats = NDArray[np.float64]

_ALPHA, _POWER = 0.05, 0.8
_ONE_SEED = "one seed says nothing of others"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Scored:
    """Scores of one measure on one test set.

    Attributes:
        test: name of the test set.
        measure: as it is written.
        scores: of each condition, shape (seeds, queries); the same seeds and queries for all.
        first_stage: of the run that was re-ranked, shape (queries,).
        first_name: what that run is called.
    """

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
class Comparison:
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
    comparisons: tuple[Comparison, ...]


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
    scored: Scored, records: Mapping[Condition, Sequence[CellRecord]], *, level: float = 0.95
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
    comparisons = [
        replace(_compare(a, b, scores[a], scores[b], level), same_size=amounts[a] == amounts[b])
        for a, b in pairs_of(tuple(scores))
    ]
    return TestOutcome(
        test=scored.test,
        measure=scored.measure,
        queries=len(scored.first_stage),
        first_stage=float(scored.first_stage.mean()),
        conditions=tuple(_score(condition, values) for condition, values in scores.items()),
        comparisons=_corrected(comparisons),
    )


def _score(condition: Condition, values: Floats) -> ConditionScores:
    by_seed = values.mean(axis=1)
    return ConditionScores(
        condition=condition,
        by_seed=tuple(by_seed.tolist()),
        mean=float(by_seed.mean()),
        spread=float(by_seed.std(ddof=1)) if len(by_seed) > 1 else None,
    )


def _compare(a: Condition, b: Condition, first: Floats, second: Floats, level: float) -> Comparison:
    within = tuple(
        run_test("t", mine, other, level=level) for mine, other in zip(first, second, strict=True)
    )
    averaged = run_test("t", first.mean(axis=0), second.mean(axis=0), level=level)
    totals = second[np.newaxis, :, :] - first[:, np.newaxis, :]
    across = crossed_t(totals, np.ones_like(totals), level=level)
    if len(first) == 1:
        across = replace(across, low=None, high=None, p=None, why=_ONE_SEED)
    return Comparison(
        a=a,
        b=b,
        within=within,
        averaged=averaged,
        across=across,
        within_corrected=tuple(one.p for one in within),
        averaged_corrected=averaged.p,
        across_corrected=across.p,
        family=1,
        deviation=float(np.std(second.mean(axis=0) - first.mean(axis=0), ddof=1))
        if first.shape[1] > 1
        else 0.0,
        same_size=False,
    )


def _corrected(comparisons: Sequence[Comparison]) -> tuple[Comparison, ...]:
    """The family's p-values corrected; each seed has the family once."""
    seeds = len(comparisons[0].within) if comparisons else 0
    within = [bonferroni([one.within[seed].p for one in comparisons]) for seed in range(seeds)]
    averaged = bonferroni([one.averaged.p for one in comparisons])
    across = bonferroni([one.across.p for one in comparisons])
    return tuple(
        replace(
            one,
            within_corrected=tuple(of_seed[place] for of_seed in within),
            averaged_corrected=averaged[place],
            across_corrected=across[place],
            family=len(comparisons),
        )
        for place, one in enumerate(comparisons)
    )
