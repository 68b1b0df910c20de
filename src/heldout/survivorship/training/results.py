"""Re-rankers trained on deeper and shallower annotation: compared, in tables, JSON and a picture.

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
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from operator import attrgetter
from typing import Any, Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from heldout.answers.answer import Answer, to_document
from heldout.answers.table import Cell, Table, shorten
from heldout.answers.texts import write, write_table
from heldout.charts import axes, svg
from heldout.charts.plot import Plot, Sheet
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
        low, high: interval of the mean over seeds; `None` where undefined.
        why: the reason, else "".
        labels: different pairs of a query and its positive, on average over seeds.
        triples: different triples, likewise.
    """

    condition: Condition
    by_seed: tuple[float, ...]
    mean: float
    spread: float | None
    low: float | None
    high: float | None
    why: str
    labels: float
    triples: float


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
        first_name: what that run is called.
        conditions: what was trained on, with its scores.
        comparisons: as `pairs_of`; none of shares.
    """

    __test__ = False  # pytest looks for classes of this name

    test: str
    measure: str
    queries: int
    first_stage: float
    first_name: str
    conditions: tuple[ConditionScores, ...]
    comparisons: tuple[ConditionPair, ...] = ()


def pairs_of(conditions: Sequence[Condition]) -> tuple[tuple[Condition, Condition], ...]:
    """Return which conditions are compared.

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


def describe_conditions(
    scored: TestScores, records: Mapping[Condition, Sequence[CellRecord]], *, level: float = 0.95
) -> TestOutcome:
    """Return how well the models of each condition do, with an interval over their seeds.

    Args:
        scored: the scores.
        records: of each condition, in the order of the seeds: how much was trained on.
        level: of intervals, in (0, 1).
    """
    return TestOutcome(
        test=scored.test,
        measure=scored.measure,
        queries=len(scored.first_stage),
        first_stage=float(scored.first_stage.mean()),
        first_name=scored.first_name,
        conditions=tuple(
            _score(condition, values.mean(axis=1), records[condition], level)
            for condition, values in scored.scores.items()
        ),
    )


def _score(
    condition: Condition, by_seed: Floats, records: Sequence[CellRecord], level: float
) -> ConditionScores:
    # The paired test against zeros is the test of one sample, with its interval.
    found = run_test("t", np.zeros_like(by_seed), by_seed, level=level)
    return ConditionScores(
        condition=condition,
        by_seed=tuple(by_seed.tolist()),
        mean=float(by_seed.mean()),
        spread=float(by_seed.std(ddof=1)) if len(by_seed) > 1 else None,
        low=found.low,
        high=found.high,
        why=found.why or "",
        labels=sum(record.labels for record in records) / len(records),
        triples=sum(record.triples for record in records) / len(records),
    )


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
    shapes = {values.shape for values in scored.scores.values()}
    if len(shapes) != 1 or next(iter(shapes))[1:] != scored.first_stage.shape:
        raise ValueError(shapes)
    described = describe_conditions(scored, records, level=level)
    return replace(described, comparisons=_compare_pairs(scored.scores, records, level))


def _compare_pairs(
    scores: Mapping[Condition, Floats],
    records: Mapping[Condition, Sequence[CellRecord]],
    level: float,
) -> tuple[ConditionPair, ...]:
    pairs = pairs_of(tuple(scores))
    amounts = {
        condition: [(one.queries, one.labels, one.triples) for one in found]
        for condition, found in records.items()
    }
    means = {condition: values.mean(axis=0) for condition, values in scores.items()}
    # Each seed has the family once
    seeds = range(len(next(iter(scores.values()))))
    within = [
        [run_test("t", scores[a][n], scores[b][n], level=level) for a, b in pairs] for n in seeds
    ]
    averaged = [run_test("t", means[a], means[b], level=level) for a, b in pairs]
    across = [_test_across(scores[a], scores[b], level) for a, b in pairs]
    corrected = [bonferroni([one.p for one in tests]) for tests in (averaged, across, *within)]
    return tuple(
        ConditionPair(
            a=a,
            b=b,
            within=tuple(tests[index] for tests in within),
            averaged=averaged[index],
            across=across[index],
            averaged_corrected=corrected[0][index],
            across_corrected=corrected[1][index],
            within_corrected=tuple(ps[index] for ps in corrected[2:]),
            family=len(pairs),
            deviation=float(np.std(means[b] - means[a], ddof=1)) if len(means[a]) > 1 else 0.0,
            same_size=amounts[a] == amounts[b],
        )
        for index, (a, b) in enumerate(pairs)
    )


def _test_across(first: Floats, second: Floats, level: float) -> TestResult:
    totals = second[np.newaxis, :, :] - first[:, np.newaxis, :]
    found = crossed_t(totals, np.ones_like(totals), level=level)
    return found if len(first) > 1 else replace(found, low=None, high=None, p=None, why=_ONE_SEED)


_MOST = 12


def answer_training(
    outcomes: Sequence[TestOutcome], records: Sequence[CellRecord], *, level: float
) -> Answer:
    """Say what a training study shows: whether depth matters, beyond the amount.

    The tables are what was trained on; then for each measure the scores and the comparisons.

    Args:
        outcomes: of each measure of each test set, corrected.
        records: of each cell that is done, by condition and seed.
        level: of intervals.
    """
    tables = [_cells_table(records)]
    for outcome in outcomes:
        tables += [_scores_table(outcome), _comparisons_table(outcome, level)]
    first = outcomes[0]
    cells = [to_document(one) for one in records]
    for cell in cells:
        del cell["digest"], cell["runs"]
    results = [outcome_document(outcome) for outcome in outcomes]
    return Answer(
        answer=_headline(outcomes),
        summary=(),
        tables=tables,
        short=[shorten(table, _MOST) for table in tables],
        document={"level": level, "cells": cells, "results": results},
        chart=lambda: _draw(outcomes),
        title=f"{first.measure} on {first.test} by how deep the annotation was that was trained on",
    )


def _headline(outcomes: Sequence[TestOutcome]) -> str:
    """Say how many comparisons of depths are significant, on the first measure."""
    first = outcomes[0]
    sure = [one for one in first.comparisons if _is_significant(one)]
    return write(
        "trainings.headline",
        first=first,
        controlled=sum(one.controlled for one in first.comparisons),
        sure=len(sure),
        plain=sum(not one.controlled for one in sure),
    )


def _is_significant(one: ConditionPair) -> bool:
    """Return whether the test that decides is: across seeds where there are several."""
    p = one.averaged_corrected if len(one.within) == 1 else one.across_corrected
    return p is not None and p < _ALPHA


def outcome_document(outcome: TestOutcome) -> dict[str, Any]:
    """One measure of one test set for JSON."""
    return to_document(outcome) | {
        "conditions": [
            asdict(one.condition) | to_document(one) | {"condition": one.condition.name}
            for one in outcome.conditions
        ],
        "comparisons": [
            to_document(one, "detectable") | {"a": one.a.name, "b": one.b.name}
            for one in outcome.comparisons
        ],
    }


_CELL = ("condition", "seed", "queries", "labels", "triples", "steps", "passes")
_LOSSES = ("first_loss", "last_loss")


def _cells_table(records: Sequence[CellRecord]) -> Table:
    shown = attrgetter(*_CELL, *_LOSSES)
    rows = tuple((*shown(one), round(one.seconds), _hardware(one)) for one in records)
    return write_table(
        "trainings.cells",
        rows,
        names=_CELL,
        mixed=len({_hardware(one) for one in records}) > 1,
        short=sum(one.missing for one in records),
    )


def _hardware(record: CellRecord) -> str:
    """Return where it was computed, and in which precision."""
    return f"{record.device} {record.precision}"


def _scores_table(outcome: TestOutcome) -> Table:
    seeds = len(outcome.conditions[0].by_seed)
    rows: list[tuple[Cell, ...]] = [
        (one.condition.name, *one.by_seed, one.mean, one.spread) for one in outcome.conditions
    ]
    rows.append(("nothing: the first stage", *[None] * seeds, outcome.first_stage, None))
    return write_table("trainings.scores", tuple(rows), outcome=outcome, seeds=seeds)


def _comparisons_table(outcome: TestOutcome, level: float) -> Table:
    tests = attrgetter("difference", "low", "high")
    rows = tuple(
        (
            *(one.b.name, one.a.name),
            ("yes" if one.same_size else "nearly") if one.controlled else "",
            *(*tests(one.across), one.across_corrected, one.averaged_corrected),
            *(*one.within_corrected, one.detectable),
        )
        for one in outcome.comparisons
    )
    return write_table(
        "trainings.differences",
        rows,
        outcome=outcome,
        seeds=len(outcome.conditions[0].by_seed),
        whys=sorted({one.across.why for one in outcome.comparisons if one.across.why}),
        family=outcome.comparisons[0].family if outcome.comparisons else 0,
        level=level,
    )


_BESIDE = 0.22
_STAR: Final = "*"
_DAGGER: Final = "†"


def _draw(outcomes: Sequence[TestOutcome]) -> Sheet:
    """A panel for each measure of each test set, below a key of all marks.

    The line joins the means over seeds of r = 1, …, all; squares are the controls, beside the
    depth whose size they have; the dashed line is the run that was re-ranked. A star says that the
    difference from all is significant across seeds and queries, corrected, a dagger that from the
    next deeper annotation is; with one seed, across queries.
    """
    plots = [_panel(outcome) for outcome in outcomes]
    signs = {sign for found in outcomes for sign in "".join(_signs(found).values())}
    first = plots[0]
    first.key("circle", "a model: one seed")
    first.key("diamond", "mean of the seeds")
    if any(one.condition.like is not None for o in outcomes for one in o.conditions):
        first.key("square", "mean, on as few labels drawn at random")
    first.key("dashed", "the first stage, which is re-ranked")
    if _STAR in signs:
        first.key(_STAR, "differs from all, corrected")
    if _DAGGER in signs:
        first.key(_DAGGER, "differs from the next deeper one, corrected")
    return Sheet(plots=plots, columns=2)


def _panel(outcome: TestOutcome) -> Plot:
    depths = [one for one in outcome.conditions if one.condition.like is None]
    controls = [one for one in outcome.conditions if one.condition.like is not None]
    positions = {one.condition.depth: float(index) for index, one in enumerate(depths)}
    last = len(depths) - 1.0
    at = [(one, positions[one.condition.depth]) for one in depths]
    at += [(one, positions.get(one.condition.like, last) + _BESIDE) for one in controls]
    every = [score for one in outcome.conditions for score in one.by_seed]
    plot = Plot(
        x=axes.name_axis({float(index): one.condition.name for index, one in enumerate(depths)}),
        y=axes.score_axis([outcome.first_stage, *every]),
        head=f"{outcome.measure} on {outcome.test}",
        height=180,
    )
    first = outcome.first_stage
    plot.line([(plot.x.low, first), (plot.x.high, first)], svg.INK, dash=True)
    plot.line([(x, one.mean) for one, x in at[: len(depths)]], svg.RECORD)
    signs = _signs(outcome)
    for one, x in at:
        tip = f"{one.condition.name}, seed"
        scores = enumerate(one.by_seed)
        plot.dots([(x, score, f"{tip} {seed}: {score:.4f}") for seed, score in scores], "circle")
    for one, x in at:
        style: svg.Style = "diamond" if one.condition.like is None else "square"
        plot.dots([(x, one.mean, f"{one.condition.name}: {one.mean:.4f}")], style)
        plot.text(x, max(one.by_seed), signs.get(one.condition, ""), above=True)
    return plot


def _signs(outcome: TestOutcome) -> Mapping[Condition, str]:
    """Return what stands above a condition: which differences from it are significant."""
    found: dict[Condition, str] = {}
    for one in outcome.comparisons:
        if _is_significant(one) and not one.controlled:
            found[one.b] = found.get(one.b, "") + (_STAR if one.a == ALL else _DAGGER)
    return found
