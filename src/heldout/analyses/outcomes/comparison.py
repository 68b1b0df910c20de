"""Is B better than A? Two runs, or two groups of seeds: `heldout compare`.

Means are compared by any measure, over all queries, one measure or several. Two runs are compared
by the paired t test, and by flipping signs; groups of seeds across seeds and queries at once
(`stats.student.crossed_t`). The verdicts of `outcomes.outcomes` rest on outcomes, and on none of
this.
"""

import math
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.random import PCG64, Generator
from numpy.typing import NDArray

from heldout.analyses.outcomes.curves import curves_chart, curves_title, success_curves
from heldout.analyses.outcomes.failures import Failures, check_page
from heldout.analyses.outcomes.failures_of_runs import check_single, list_failures
from heldout.analyses.outcomes.options import CompareOptions, Correction, DeclaredRules
from heldout.analyses.outcomes.outcomes import Side as Winner
from heldout.analyses.outcomes.outcomes import analyse_outcomes, correct, describe_outcomes
from heldout.analyses.outcomes.words import (
    compared_summary,
    fit_summary,
    misfit_headline,
    tables,
    verdict_headline,
    verdict_summary,
)
from heldout.answers.answer import Answer, to_document
from heldout.answers.sentence import name_one, name_some, say_p
from heldout.answers.table import Cell, Table
from heldout.answers.texts import write, write_table
from heldout.collections.named import load_qrels
from heldout.scoring import other_measures, query_facets, run_files, score, sources
from heldout.scoring.first_ranks import MethodSide, first_ranks
from heldout.scoring.names import read_measure
from heldout.scoring.table import Better, ScoreTable
from heldout.stats import results, sign_flips, student, tests
from heldout.stats.exact import DECIMALS, differences
from heldout.trec.qrels import Qrels

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class MeanDifference:
    """A and B by one measure.

    Attributes:
        measure: its name.
        better: which scores are better.
        queries: how many the means are over: all of them.
        a: mean of A; of a group of seeds the mean over its runs.
        b: that of B.
        wins: queries on which B is the better; of groups by the mean over pairs of seeds.
        ties: those on which neither is, to 1e-12.
        losses: those on which A is.
        test: of the mean difference B - A: `t`, or `crossed-t` where there is a group.
        flips_p: two-sided, by flipping signs; `None` where undefined.
        flips_why: the reason where it is, else "".
        corrected: the p of `test`, corrected over the measures; `None` where undefined.
        winner: which of the two is significantly better, by `corrected`; `None` for neither.
    """

    measure: str
    better: Better
    queries: int
    a: float
    b: float
    wins: int
    ties: int
    losses: int
    test: results.TestResult
    flips_p: float | None
    flips_why: str
    corrected: float | None = None
    winner: Winner | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MeanDifferences:
    """A and B by all measures that were asked for.

    Attributes:
        a: a run or a group of seeds.
        b: the other; differences are B - A.
        differences: one for each measure; they are the family of the correction.
        correction: of the p of the t tests.
        level: of the intervals, which are not corrected.
        flips: sign flips drawn.
    """

    a: MethodSide
    b: MethodSide
    differences: tuple[MeanDifference, ...]
    correction: Correction
    level: float
    flips: int

    @property
    def grouped(self) -> bool:
        """Whether A or B is a group of seeds."""
        return len(self.a.runs) + len(self.b.runs) > 2  # noqa: PLR2004 - one and one


def compare_means(
    measured: Sequence[sources.Scores],
    a: MethodSide,
    b: MethodSide,
    rng: Generator,
    rules: DeclaredRules,
    *,
    level: float = 0.95,
    flips: int = 10_000,
) -> MeanDifferences:
    """Compare A and B by the mean of each measure.

    Args:
        measured: scores of the runs of both sides by each measure.
        a: a run or a group of seeds.
        b: another; no run is in both.
        rng: where signs come from; every measure gets the same, so that its p does not depend on
            which others are asked for.
        rules: significance level, and the correction over the measures.
        level: of the intervals, in (0, 1).
        flips: how many, at least 1.

    Raises:
        ValueError: a table has no query, or lacks a score.
    """
    found = [_compare(one, a, b, deepcopy(rng), level=level, flips=flips) for one in measured]
    corrected = correct([one.test.p for one in found], rules.correction)
    return MeanDifferences(
        a=a,
        b=b,
        differences=tuple(
            replace(one, corrected=p, winner=_winner(one, p, rules.alpha))
            for one, p in zip(found, corrected, strict=True)
        ),
        correction=rules.correction,
        level=level,
        flips=flips,
    )


def _winner(one: MeanDifference, corrected: float | None, alpha: float) -> Winner | None:
    if corrected is None or corrected > alpha or not one.test.difference:
        return None
    return "B" if (one.test.difference > 0) == (one.better == "higher") else "A"


def _compare(
    one: sources.Scores, a: MethodSide, b: MethodSide, rng: Generator, *, level: float, flips: int
) -> MeanDifference:
    if not (one.table.queries and one.table.complete):
        raise ValueError(one.measure)
    first, second = _rows(one.table, a), _rows(one.table, b)
    p, why = None, "groups of seeds are compared across seeds, by crossed t"
    if len(first) == len(second) == 1:
        difference = differences(first[0], second[0])
        test = tests.run_test("t", first[0], second[0], level=level)
        p, why = _flip(first, second, rng, flips)
    else:
        totals = second[None, :, :] - first[:, None, :]
        difference = np.round(totals.mean(axis=(0, 1)), DECIMALS)
        test = student.crossed_t(totals, np.ones(totals.shape), level=level)
    gain = -difference if one.better == "lower" else difference
    return MeanDifference(
        measure=one.measure,
        better=one.better,
        queries=len(one.table.queries),
        a=_mean(first),
        b=_mean(second),
        wins=int((gain > 0).sum()),
        ties=int((gain == 0).sum()),
        losses=int((gain < 0).sum()),
        test=test,
        flips_p=p,
        flips_why=why,
    )


def _rows(table: ScoreTable, side: MethodSide) -> Floats:
    return table.values[[table.systems.index(run) for run in side.runs]]


def _mean(rows: Floats) -> float:
    """The mean over runs and queries; of one run as `measures.evaluate` has it."""
    return math.fsum(rows.ravel().tolist()) / rows.size


def _flip(first: Floats, second: Floats, rng: Generator, flips: int) -> tuple[float | None, str]:
    """The p by flipping signs, or why there is none."""
    if first.shape[1] == 1:
        return None, "a single query says nothing of others"
    p = sign_flips.flip_test(first[0], second[0], rng, flips=flips)
    return p, "every difference is 0" if p is None else ""


def mean_headline(found: MeanDifferences) -> str:
    """Return which of A and B is better, on each measure that was asked for; at least one."""
    a, b = f"{name_one(found.a.name)} (A)", f"{name_one(found.b.name)} (B)"
    if len(found.differences) > 1:
        return _say_several(found, a, b)
    (one,) = found.differences
    p = "" if one.test.p is None else say_p(one.test.p)
    return write("outcomes.mean_headline", found=found, one=one, p=p)


def _say_several(found: MeanDifferences, a: str, b: str) -> str:
    """On which measures A is better, on which B, and on which neither."""
    tested = [one for one in found.differences if one.test.p is not None]
    better = {side: [one.measure for one in tested if one.winner == side] for side in "AB"}
    groups = {
        f"{b} is better than {a} on": better["B"],
        "A is better on" if better["B"] else f"{a} is better than {b} on": better["A"],
        "no significant difference on": [one.measure for one in tested if one.winner is None],
        "no test on": [one.measure for one in found.differences if one.test.p is None],
    }
    said = "; ".join(f"{words} {name_some(names)}" for words, names in groups.items() if names)
    return f"{a} and {b}: {said}." if said.startswith("no ") else f"{said}."


def mean_summary(found: MeanDifferences) -> tuple[tuple[str, str], ...]:
    """The answer for each of several measures in a line; none of one, which is the headline."""
    if len(found.differences) == 1:
        return ()
    return tuple(
        ("" if at else "means", write("outcomes.mean", one=one, found=found))
        for at, one in enumerate(found.differences)
    )


def mean_tables(found: MeanDifferences) -> tuple[Table, ...]:
    """Both means by each measure, and what can be said of their difference; none of no measure."""
    if not found.differences:
        return ()
    table = write_table(
        "outcomes.means",
        tuple(_row(one) for one in found.differences),
        found=found,
        reasons=_list_reasons(found),
        lower=[one.measure for one in found.differences if one.better == "lower"],
    )
    return (table,)


def _row(one: MeanDifference) -> tuple[Cell, ...]:
    test = one.test
    difference = round(test.difference or 0.0, DECIMALS)
    word = "lower" if difference < 0 else "higher" if difference > 0 else ""
    tested = (test.difference, test.low, test.high, test.p, one.flips_p, one.corrected)
    return (one.measure, one.a, one.b, word, *tested)


def _list_reasons(found: MeanDifferences) -> dict[str, list[str]]:
    """Return why a test is undefined -> on which measures; of groups sign flips always are."""
    measures: dict[str, list[str]] = {}
    for one in found.differences:
        why = ("" if found.grouped else one.flips_why) or one.test.why
        if why:
            measures.setdefault(why, []).append(one.measure)
    return measures


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two sides that are compared, on all queries or on some.

    Attributes:
        runs: both sides.
        options: as asked for.
        seed: of all draws.
    """

    runs: sources.ComparedRuns
    options: CompareOptions
    seed: int = 0

    def load(self, reading: score.Reading, qrels: Qrels | None = None) -> sources.ComparedScores:
        """The scores of all runs, in one pass over each file.

        Args:
            reading: how runs are read.
            qrels: the judgments, where they have been read already.

        Raises:
            InputError: a file has errors, or a measure is unknown or has no value for some query.
        """
        options = self.options
        parsed = [read_measure(one) for one in options.measures]
        if qrels is None:
            qrels = load_qrels(options.qrels, subtopics=other_measures.need_subtopics(parsed))
        return sources.score_compared(
            self.runs,
            qrels,
            judgments=options.qrels,
            order=options.order,
            rel=options.rel,
            k=options.k,
            measures=tuple(dict.fromkeys(map(str, parsed))),
            reading=reading,
        )

    def check_page(self, path: Path) -> None:
        """Refuse a page that cannot be made, before anything is read.

        Raises:
            InputError: codes `one-run`, `page-name`.
            StoreError: something else is there.
        """
        check_single(self.runs)
        check_page(path)

    def list_failures(self, reading: score.Reading, qrels: Qrels | None = None) -> Failures:
        """Both runs query by query, by the first measure that was asked for.

        Args:
            reading: how runs are read.
            qrels: the judgments, where they have been read already.

        Raises:
            OptionError, InputError: as `failures.list_failures`, `query_facets.load_texts` and
                `query_facets.load_only`.
        """
        options = self.options
        if qrels is None:
            parsed = [read_measure(one) for one in options.measures[:1]]
            qrels = load_qrels(options.qrels, subtopics=other_measures.need_subtopics(parsed))
        return list_failures(
            self.runs,
            qrels,
            judgments=options.qrels,
            measure=options.measures[0] if options.measures else None,
            queries=query_facets.load_texts(options.facets) if options.facets.texts else None,
            documents=options.page.documents or None,
            only=query_facets.load_only(options.facets),
            depth=options.page.depth,
            k=options.k,
            rel=options.rel,
            order=options.order,
            reading=reading,
            progress=reading.progress,
        )

    def answer(self, scores: sources.ComparedScores) -> Answer:
        """Return which side is better: by the measures that were asked for, and by outcomes."""
        options, a, b = self.options, self.runs.a, self.runs.b
        ranks = first_ranks(scores.ranks.table, k=options.k)
        result = analyse_outcomes(ranks, [(a, b)], options.rules, level=options.level)
        rng = Generator(PCG64(self.seed))
        curves = success_curves(ranks, a, b, rng, band=options.intervals, level=options.level)
        rng = Generator(PCG64(self.seed))
        means = compare_means(scores.measures, a, b, rng, options.rules, level=options.level)
        engines = {one.measure: one.engine for one in scores.measures if one.engine}
        several = len(scores.several.intersection(ranks.queries))
        asked = bool(means.differences)
        fit = fit_summary(result, several=several) if asked else ()
        compared = (*compared_summary(result), *(("", line) for line in scores.ranks.zeros))
        outcomes, measured = tables(result, curves, several=several), mean_tables(means)
        # Outcomes that do not fit the labels, beside the measure that was asked for, say nothing
        short = measured if fit else None
        document = describe_outcomes(result, several)
        (pair,) = document.pop("pairs")
        del document["order"]
        return Answer(
            answer=mean_headline(means)
            if asked
            else misfit_headline(result, several=several) or verdict_headline(result),
            summary=(
                *mean_summary(means),
                *(("computed", f"{measure} by {engine}") for measure, engine in engines.items()),
                *compared,
                *(fit or verdict_summary(result)),
                *run_files.describe_orders(scores.ranks.orders, given=options.order),
            ),
            tables=(*measured, *outcomes),
            short=short,
            document=to_document(pair)
            | document
            | {
                "success": to_document(curves),
                "means": to_document(means),
                "seed": self.seed,
                "rel": options.rel,
                "orders": list(scores.ranks.orders),
            }
            | ({"computed_by": engines} if engines else {}),
            chart=lambda: curves_chart(curves),
            title=curves_title(curves),
        )


def find_comparison(options: CompareOptions, seed: int = 0) -> Comparison:
    """The comparison that was asked for, with the files of both sides.

    Raises:
        InputError: code `no-run`: a pattern names nothing; `same-run`: a file is named twice.
    """
    return Comparison(sources.find_compared(options.a, options.b), options, seed)
