"""Every run scored again: its score on the labels there were, and on the preference labels.

Where the order of the best changes while the order of all stays much the same, labels may no longer
tell improvements (shallow-pooling, section 5.2). Intervals draw queries; where judgments are given,
a second one draws them anew too. The scores of a run already differ from query to query for the
noise of their labels, so an interval over queries holds it once. The second counts it twice, and is
too wide rather than too narrow: see docs/judging.md for how often each holds.
"""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from heldout.errors import InputError, Problem
from heldout.ids import find_near, say_near
from heldout.preferences.contests import PERFECT
from heldout.preferences.label_scores import ScoredLabels, score_each, score_labels
from heldout.preferences.tau_ranges import Both, Noise, TauRange, find_taus, noise_of, tails
from heldout.stats.resampling import DIGITS, bca_interval
from heldout.stats.results import Ask
from heldout.stats.student import compare_mean
from heldout.trec.places import Places

__all__ = ["Rescored", "RunMean", "RunRescored", "means_of", "rank_means", "rescore"]

Floats = NDArray[np.float64]
Interval = tuple[float, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunMean:
    """A run's mean score on labels.

    Attributes:
        value: the mean over queries.
        rank: 1 for the best; equal means share the best of their ranks.
        t: Student's t interval over queries; `None` where all scores are equal.
        bca: the bootstrap's; `None` where undefined.
    """

    value: float
    rank: int
    t: Interval | None
    bca: Interval | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRescored:
    """A run on both labels.

    Attributes:
        run: its name.
        pooled: whether its first documents were in the pools.
        before: on the labels there were.
        after: on the preference labels.
        noisy: interval of the latter that draws queries and judgments; `None` without judgments.
        label_error: standard deviation of the latter when judgments alone are drawn anew, on the
            same queries; `None` without judgments.
    """

    run: str
    pooled: bool
    before: RunMean
    after: RunMean
    noisy: Interval | None = None
    label_error: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Rescored:
    """All runs on both labels.

    Attributes:
        before, after: names of the labels.
        measures: what is computed on each of them.
        queries: with labels of both kinds; means are over these.
        left_out: queries with labels of one kind alone.
        runs: in the order of their scores before; the perfect run too, if it was given.
        taus: over all runs, the best ten, the pooled, and with the perfect run.
        noise: `None` without judgments.
        level: of the intervals, each by itself.
        trials: draws of queries.
    """

    before: str
    after: str
    measures: tuple[str, str]
    queries: int
    left_out: int
    runs: tuple[RunRescored, ...]
    taus: tuple[TauRange, ...]
    noise: Noise | None
    level: float
    trials: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Scores:
    """Both tables of scores, runs by queries; `redrawn` has a third side, of labels drawn anew."""

    runs: tuple[str, ...]
    before: Floats
    after: Floats
    redrawn: Floats | None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Draws:
    """Means of each trial, trials by runs."""

    before: Floats
    after: Floats
    noisy: Floats | None


def rescore(
    runs: Mapping[str, Places],
    before: ScoredLabels,
    after: ScoredLabels,
    rng: Generator,
    *,
    pooled: AbstractSet[str] = frozenset(),
    redrawn: Mapping[str, Sequence[tuple[str, ...]]] | None = None,
    level: float = 0.95,
    trials: int = 2000,
) -> Rescored:
    """Score runs on two sets of labels.

    Args:
        runs: by name, `PERFECT` among them or not.
        before: the labels there were.
        after: the preference labels.
        rng: where draws come from.
        pooled: runs whose first documents were in the pools.
        redrawn: query -> preference labels of judgments drawn anew, as `redraw_labels` gives them.
        level: of the intervals.
        trials: draws of queries, at least 1.

    Raises:
        InputError: code `no-common-query`: no query has labels of both kinds; and those of
            `score_labels`.
    """
    queries = sorted(
        query for query, one in after.labels.items() if one and before.labels.get(query)
    )
    if not queries:
        raise InputError(_no_query(before, after))
    scores = _Scores(
        runs=tuple(runs),
        before=_oriented(score_labels(runs, before, queries=queries), before),
        after=_oriented(score_labels(runs, after, queries=queries), after),
        redrawn=None if redrawn is None else _score_redrawn(runs, after, redrawn, queries),
    )
    draws = _draw(scores, rng, trials)
    found = _tell_runs(scores, draws, (before, after), pooled, level)
    judged = {query for one in (before, after) for query, grades in one.labels.items() if grades}
    return Rescored(
        before=before.name,
        after=after.name,
        measures=(str(before.measure), str(after.measure)),
        queries=len(queries),
        left_out=len(judged) - len(queries),
        runs=tuple(sorted(found, key=lambda one: one.before.rank)),
        taus=find_taus(
            scores.runs,
            Both(before=means_of(scores.before), after=means_of(scores.after)),
            pooled=pooled,
        ),
        noise=_find_noise(scores),
        level=level,
        trials=trials,
    )


def rank_means(means: Sequence[float]) -> tuple[int, ...]:
    """Ranks of means, 1 for the highest; equal ones share the best of their ranks."""
    return tuple(1 + sum(other > mean for other in means) for mean in means)


def means_of(values: Floats) -> Floats:
    """Means of rows, rounded so that equal scores have equal means."""
    means: Floats = values.mean(axis=1).round(DIGITS)
    return means


def _no_query(before: ScoredLabels, after: ScoredLabels) -> Problem:
    return Problem(
        code="no-common-query",
        path=before.name,
        found=f"labels of {len(before.labels):,} queries",
        expected=f"labels of some of the {len(after.labels):,} queries with {after.name}",
        hint=say_near(find_near(before.labels, after.labels))
        or "are these the qrels of another query set?",
    )


def _oriented(values: Floats, wanted: ScoredLabels) -> Floats:
    """Scores of which higher ones are better."""
    return values if wanted.measure.kind.better == "higher" else -values


def _score_redrawn(
    runs: Mapping[str, Places],
    after: ScoredLabels,
    redrawn: Mapping[str, Sequence[tuple[str, ...]]],
    queries: Sequence[str],
) -> Floats:
    count = len(next(iter(redrawn.values())))
    sets = [
        [dict.fromkeys(docs, 1) for docs in redrawn[query]]
        if query in redrawn
        else [after.labels[query]] * count
        for query in queries
    ]
    return _oriented(score_each(runs, sets, after.measure, queries=queries), after)


def _draw(scores: _Scores, rng: Generator, trials: int) -> _Draws:
    """Means on queries drawn with replacement; of redrawn labels each query takes one at random."""
    count = scores.before.shape[1]
    places = np.arange(count)
    before, after, noisy = [], [], []
    for _ in range(trials):
        drawn = rng.integers(count, size=count)
        times = np.bincount(drawn, minlength=count) / count
        before.append((scores.before @ times).round(DIGITS))
        after.append((scores.after @ times).round(DIGITS))
        if scores.redrawn is not None:
            which = rng.integers(scores.redrawn.shape[2], size=count)
            noisy.append(scores.redrawn[:, places, which] @ times)
    return _Draws(
        before=np.array(before),
        after=np.array(after),
        noisy=np.array(noisy) if noisy else None,
    )


def _tell_runs(
    scores: _Scores,
    draws: _Draws,
    labels: tuple[ScoredLabels, ScoredLabels],
    pooled: AbstractSet[str],
    level: float,
) -> list[RunRescored]:
    before = _tell_means(scores.before, draws.before, labels[0], level)
    after = _tell_means(scores.after, draws.after, labels[1], level)
    noise = None if scores.redrawn is None else scores.redrawn.mean(axis=1)
    return [
        RunRescored(
            run=run,
            pooled=run in pooled,
            before=before[place],
            after=after[place],
            noisy=_spread(scores, draws, place, labels[1], level),
            label_error=None if noise is None else float(noise[place].std()),
        )
        for place, run in enumerate(scores.runs)
    ]


def _tell_means(values: Floats, draws: Floats, labels: ScoredLabels, level: float) -> list[RunMean]:
    sign = 1.0 if labels.measure.kind.better == "higher" else -1.0
    means = means_of(values)
    ranks = rank_means(means.tolist())
    found = []
    for place, row in enumerate(values * sign):
        t = compare_mean(row, Ask(alternative="two-sided", level=level))
        without = (row.sum() - row) / max(len(row) - 1, 1)
        bca = bca_interval(draws[:, place] * sign, float(row.mean()), without, level=level)
        found.append(
            RunMean(
                value=float(row.mean()),
                rank=ranks[place],
                t=_both(t.low, t.high),
                bca=_both(bca.low, bca.high),
            )
        )
    return found


def _both(low: float | None, high: float | None) -> Interval | None:
    return None if low is None or high is None else (low, high)


def _spread(
    scores: _Scores, draws: _Draws, place: int, labels: ScoredLabels, level: float
) -> Interval | None:
    """How far draws lie from their mean, around the value itself; a mean stays among scores."""
    if draws.noisy is None or scores.redrawn is None:
        return None
    own = draws.noisy[:, place]
    ends = means_of(scores.after)[place] + np.quantile(own - own.mean(), tails(level))
    known = np.append(scores.redrawn[place], scores.after[place])
    low, high = np.clip(ends, known.min(), known.max()).tolist()
    return (low, high) if labels.measure.kind.better == "higher" else (-high, -low)


def _find_noise(scores: _Scores) -> Noise | None:
    """Of all runs but the perfect one, which no judgment makes."""
    if scores.redrawn is None:
        return None
    own = [place for place, run in enumerate(scores.runs) if run != PERFECT]
    redrawn = scores.redrawn[own].mean(axis=1).round(DIGITS).T
    return noise_of(means_of(scores.after[own]), redrawn)
