"""Every run scored again: its score on the labels there were, and on the preference labels.

Where the order of the best changes while the order of all stays much the same, labels may no longer
tell improvements (Arabzadeh et al. 2021, §5.2). Intervals draw queries; where judgments are given,
a second one draws them again too. The scores of a run already differ from query to query for the
noise of their labels, so an interval over queries holds it once. The second counts it twice, and is
too wide rather than too narrow: see docs/explanation/preferences.md for how often each holds.
"""

from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace

import msgspec
import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from heldout.errors import InputError
from heldout.ids import find_near, say_near
from heldout.judging.campaign.judgments import PairVotes, Votes
from heldout.judging.campaign.pools import Pool
from heldout.judging.labels.contests import PERFECT
from heldout.judging.labels.labels import Find, label_pool, make_labels, play
from heldout.scoring.evaluate import prepare, score
from heldout.scoring.measures import Measure
from heldout.stats import rank_correlation as ranks
from heldout.stats import results, student
from heldout.stats.resampling import DIGITS, bca_interval
from heldout.trec.tops import RunPositions, see_through

# What labels would be had the judges judged again: judgments drawn again, and labels made of them.
#
# Each query's judgments are drawn with replacement from those it has, as many as it has; a pair
# that is not drawn is not judged. With one vote on each pair nothing else shows how sure a label
# is: the votes of one pair cannot differ. Drawn labels are noisier than the labels themselves, so
# what they say is how far numbers spread and not where they lie.


def redraw_labels(
    pools: Sequence[Pool],
    votes: Votes,
    *,
    draws: int,
    rng: Generator,
    find: Find = play,
    done: Callable[[], None] = lambda: None,
) -> Mapping[str, Sequence[tuple[str, ...]]]:
    """Labels of judgments that are drawn again.

    Args:
        pools: the passages of each query.
        votes: those that count.
        draws: labels for each query, at least 1.
        rng: where draws come from.
        find: how the best of a pool is found.
        done: called after each query.

    Returns:
        Query -> its labels of each draw; the same each time for a query without a vote. Queries
        that have no label are left out.
    """
    redrawn = {}
    for pool in pools:
        drawn: list[tuple[str, ...]] = []
        if counts := votes.get(pool.query):
            cast = np.array([[found.first, found.second] for found in counts.values()])
            total = int(cast.sum())
            tables = rng.multinomial(total, cast.ravel() / total, size=draws)
            for table in tables.reshape(draws, -1, 2).tolist():
                again = {
                    pair: PairVotes(first=first, second=second)
                    for pair, (first, second) in zip(counts, table, strict=True)
                    if first or second
                }
                drawn.append(label_pool(pool, again, find))
        elif known := label_pool(pool, None, find):
            drawn = [known] * draws
        if drawn:
            redrawn[pool.query] = drawn
        done()
    return redrawn


def differs(redrawn: Mapping[str, Sequence[tuple[str, ...]]]) -> bool:
    """Check whether any query has another label in some draw; else draws say nothing of noise."""
    return any(labels != drawn[0] for drawn in redrawn.values() for labels in drawn)


# Scores of runs on labels: on one set of them, and on many sets of the same queries at once.

Labels = Mapping[str, Mapping[str, int]]
"""Query -> document -> grade."""

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoredLabels:
    """Labels, and how runs are measured on them.

    Attributes:
        name: for tables.
        labels: query -> document -> grade.
        measure: what is computed.
    """

    name: str
    labels: Labels
    measure: Measure

    @property
    def sign(self) -> float:
        """What scores are multiplied by, so that higher ones are better: 1 or -1."""
        return 1.0 if self.measure.kind.better == "higher" else -1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class SpreadLabels:
    """Labels under every id that has a labelled passage's text.

    Attributes:
        labels: query -> document -> grade; ids of one text have the best grade of them.
        queries: how many of them have another label than before.
        copies: documents whose grade is new or higher.
    """

    labels: Labels
    queries: int
    copies: int


def spread_labels(labels: Labels, pools: Sequence[Pool]) -> SpreadLabels:
    """Label every id of a pool that says the same, as preference labels are.

    Args:
        labels: query -> document -> grade.
        pools: which ids have one text.
    """
    spread = {query: dict(grades) for query, grades in labels.items()}
    queries = copies = 0
    for pool in pools:
        grades = spread.get(pool.query, {})
        raised = 0
        for one in pool.candidates:
            ids = one.ids
            best = max((grades[doc] for doc in ids if doc in grades), default=0)
            wanted = [doc for doc in ids if best > grades.get(doc, 0)]
            grades |= dict.fromkeys(wanted, best)
            raised += len(wanted)
        queries += raised > 0
        copies += raised
    return SpreadLabels(labels=spread, queries=queries, copies=copies)


def grade(labels: Mapping[str, Sequence[str]]) -> Labels:
    """Labels without grades: each document of a query is as good as the other."""
    return {query: dict.fromkeys(documents, 1) for query, documents in labels.items() if documents}


def perfect_ranks(known: Mapping[str, Sequence[str]]) -> RunPositions:
    """A run that shows the known answer of each query, the first of them, and nothing else."""
    found = {query: {documents[0]: 1} for query, documents in known.items() if documents}
    return RunPositions(found=found, retrieved=dict.fromkeys(found, 1))


def score_labels(
    runs: Mapping[str, RunPositions], wanted: ScoredLabels, *, queries: Sequence[str]
) -> Floats:
    """Scores of runs on some queries.

    Args:
        runs: by name; an unanswered query counts 0.
        wanted: labels of at least these queries, and the measure.
        queries: each once.

    Returns:
        float64, shape (runs, queries).

    Raises:
        InputError: code `missing-scores`: the measure is not defined for some query; and those
            of `prepare` and `score`.
    """
    sets = [[wanted.labels[query]] for query in queries]
    return score_each(runs, sets, wanted.measure, queries=queries)[:, :, 0]


def score_each(
    runs: Mapping[str, RunPositions],
    sets: Sequence[Sequence[Mapping[str, int]]],
    measure: Measure,
    *,
    queries: Sequence[str],
) -> Floats:
    """Scores of runs on several sets of labels for each query; equal sets are measured once.

    Args:
        runs: by name.
        sets: for each query as many, each document -> grade, at least one.
        measure: what is computed.
        queries: same length.

    Returns:
        float64, shape (runs, queries, sets).

    Raises:
        InputError: as `score_labels`.
    """
    which, labels, owners = _distinct(sets, queries)
    judged = prepare(labels, [measure])
    order = {name: index for index, name in enumerate(judged.queries)}
    columns = np.array([order[name] for name in labels], np.int64)[which]
    rows = []
    for run, listed in runs.items():
        seen = {name: owners[name] for name in labels if owners[name] in listed.found}
        copied = RunPositions(
            found={name: listed.found[query] for name, query in seen.items()},
            retrieved={name: listed.retrieved[query] for name, query in seen.items()},
        )
        found = score(see_through(copied, labels), judged).scores[measure]
        if not found.defined.all():
            wrong = (
                f"{measure} is not defined for {int((~found.defined).sum()):,} of the label sets"
            )
            hint = "RR@10 is 0 where nothing is found; FirstRel has no value there"
            raise InputError.of("missing-scores", run, wrong, "a score for every query", hint)
        rows.append(found.values[columns])
    return np.array(rows, np.float64).reshape(len(runs), *which.shape)


def _distinct(
    sets: Sequence[Sequence[Mapping[str, int]]], queries: Sequence[str]
) -> tuple[NDArray[np.int64], Labels, Mapping[str, str]]:
    """Return which set each is, the different sets under names of their own, and their queries."""
    names: dict[tuple[str, frozenset[tuple[str, int]]], int] = {}
    which = [
        [names.setdefault((query, frozenset(one.items())), len(names)) for one in row]
        for query, row in zip(queries, sets, strict=True)
    ]
    labels = {str(index): dict(items) for (_, items), index in names.items()}
    owners = {str(index): query for (query, _), index in names.items()}
    return np.array(which, np.int64), labels, owners


Interval = tuple[float, float]

_OTHER_SET = "are these the qrels of another query set?"


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
        label_error: standard deviation of the latter when judgments alone are drawn again, on the
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
    taus: tuple[ranks.TauRange, ...]
    noise: ranks.Noise | None
    level: float
    trials: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Scores:
    """Both tables of scores, runs by queries; `redrawn` has a third side, of labels drawn again."""

    runs: tuple[str, ...]
    before: Floats
    after: Floats
    redrawn: Floats | None


def rescore(
    runs: Mapping[str, RunPositions],
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
        redrawn: query -> preference labels of judgments drawn again, as `redraw_labels` gives them.
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
        labelled = f"labels of {len(before.labels):,} queries"
        expected = f"labels of some of the {len(after.labels):,} queries with {after.name}"
        hint = say_near(find_near(before.labels, after.labels)) or _OTHER_SET
        raise InputError.of("no-common-query", before.name, labelled, expected, hint)
    scores = _Scores(
        runs=tuple(runs),
        before=before.sign * score_labels(runs, before, queries=queries),
        after=after.sign * score_labels(runs, after, queries=queries),
        redrawn=None if redrawn is None else _score_redrawn(runs, after, redrawn, queries),
    )
    found = _rescore_runs(scores, _draw(scores, rng, trials), (before, after), pooled, level)
    judged = {query for one in (before, after) for query, grades in one.labels.items() if grades}
    return Rescored(
        before=before.name,
        after=after.name,
        measures=(str(before.measure), str(after.measure)),
        queries=len(queries),
        left_out=len(judged) - len(queries),
        runs=tuple(sorted(found, key=lambda one: one.before.rank)),
        taus=ranks.find_taus(
            scores.runs,
            ranks.Both(before=means_of(scores.before), after=means_of(scores.after)),
            pooled=pooled,
            apart=PERFECT,
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


def _score_redrawn(
    runs: Mapping[str, RunPositions],
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
    return after.sign * score_each(runs, sets, after.measure, queries=queries)


def _draw(scores: _Scores, rng: Generator, trials: int) -> tuple[Floats, Floats, Floats | None]:
    """Means on queries drawn with replacement, trials by runs: before, after, on redrawn labels.

    Of redrawn labels each query takes one at random.
    """
    count = scores.before.shape[1]
    every = np.arange(count)
    before, after, noisy = [], [], []
    for _ in range(trials):
        drawn = rng.integers(count, size=count)
        times = np.bincount(drawn, minlength=count) / count
        before.append((scores.before @ times).round(DIGITS))
        after.append((scores.after @ times).round(DIGITS))
        if scores.redrawn is not None:
            which = rng.integers(scores.redrawn.shape[2], size=count)
            noisy.append(scores.redrawn[:, every, which] @ times)
    return np.array(before), np.array(after), np.array(noisy) if noisy else None


def _rescore_runs(
    scores: _Scores,
    draws: tuple[Floats, Floats, Floats | None],
    labels: tuple[ScoredLabels, ScoredLabels],
    pooled: AbstractSet[str],
    level: float,
) -> list[RunRescored]:
    drawn_before, drawn_after, noisy = draws
    before = _make_means(scores.before, drawn_before, labels[0], level)
    after = _make_means(scores.after, drawn_after, labels[1], level)
    noise = None if scores.redrawn is None else scores.redrawn.mean(axis=1)
    return [
        RunRescored(
            run=run,
            pooled=run in pooled,
            before=before[index],
            after=after[index],
            noisy=_spread(scores, noisy, index, labels[1], level),
            label_error=None if noise is None else float(noise[index].std()),
        )
        for index, run in enumerate(scores.runs)
    ]


def _make_means(values: Floats, draws: Floats, labels: ScoredLabels, level: float) -> list[RunMean]:
    sign = labels.sign
    ranks = rank_means(means_of(values).tolist())
    found = []
    for index, row in enumerate(values * sign):
        t = student.compare_mean(row, results.AskedTest(alternative="two-sided", level=level))
        without = (row.sum() - row) / max(len(row) - 1, 1)
        bca = bca_interval(draws[:, index] * sign, float(row.mean()), without, level=level)
        found.append(
            RunMean(
                value=float(row.mean()),
                rank=ranks[index],
                t=_both(t.low, t.high),
                bca=_both(bca.low, bca.high),
            )
        )
    return found


def _both(low: float | None, high: float | None) -> Interval | None:
    return None if low is None or high is None else (low, high)


def _spread(
    scores: _Scores, noisy: Floats | None, index: int, labels: ScoredLabels, level: float
) -> Interval | None:
    """Return how far draws lie from their mean, around the value itself."""
    if noisy is None or scores.redrawn is None:
        return None
    own = noisy[:, index]
    ends = means_of(scores.after)[index] + np.quantile(own - own.mean(), ranks.tails(level))
    known = np.append(scores.redrawn[index], scores.after[index])
    low, high = np.clip(ends, known.min(), known.max()).tolist()
    return (low, high) if labels.sign > 0 else (-high, -low)


def _find_noise(scores: _Scores) -> ranks.Noise | None:
    """Of all runs but the perfect one, which no judgment makes."""
    if scores.redrawn is None:
        return None
    own = [index for index, run in enumerate(scores.runs) if run != PERFECT]
    redrawn = scores.redrawn[own].mean(axis=1).round(DIGITS).T
    return ranks.noise_of(means_of(scores.after[own]), redrawn)


# Leave one run out: is a run good on preference labels only because its own passages were judged?
#
# The passages that a run alone brought to the pools are taken out, with the pairs they were in,
# and everything is done again (Arabzadeh et al. 2021, §5.2, for run L).


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """A run, on labels made without what it alone contributed.

    Attributes:
        run: its name.
        passages: that it alone contributed.
        pairs: judged pairs that go with them.
        changed: queries whose labels change.
        value: its score with them, on queries with labels either way.
        without: its score without them.
        rank, rank_without: its rank among all runs; the perfect run does not count.
        tau: Kendall's tau-b between all runs' scores with and without; `None` where undefined.
    """

    run: str
    passages: int
    pairs: int
    changed: int
    value: float
    without: float
    rank: int
    rank_without: int
    tau: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Remaining:
    """What is left without a run.

    Attributes:
        pools: those that still have a passage.
        votes: on pairs of passages that are left.
        passages: removed.
        pairs: judged pairs removed.
        touched: queries that lost a passage.
    """

    pools: tuple[Pool, ...]
    votes: Votes
    passages: int
    pairs: int
    touched: frozenset[str]


def remove_run(run: str, pools: Sequence[Pool], votes: Votes) -> Remaining:
    """Pools and votes without the passages that a run alone contributed; known answers stay."""
    left, remaining, passages, pairs = [], {}, 0, 0
    touched = set()
    for pool in pools:
        own = {one.doc for one in pool.candidates if one.runs == (run,) and not one.known}
        passages += len(own)
        if own:
            touched.add(pool.query)
        others = tuple(one for one in pool.candidates if one.doc not in own)
        if others:
            left.append(msgspec.structs.replace(pool, candidates=others))
        found = votes.get(pool.query, {})
        rest = {pair: cast for pair, cast in found.items() if not own & set(pair)}
        pairs += len(found) - len(rest)
        if rest:
            remaining[pool.query] = rest
    return Remaining(
        pools=tuple(left),
        votes=remaining,
        passages=passages,
        pairs=pairs,
        touched=frozenset(touched),
    )


def leave_each_out(
    runs: Mapping[str, RunPositions],
    pools: Sequence[Pool],
    votes: Votes,
    after: ScoredLabels,
    *,
    find: Find = play,
    done: Callable[[], None] = lambda: None,
) -> tuple[LeftOut, ...]:
    """Leave out each run that contributed to the pools, one at a time.

    A run without which no query has a label is left away. Only queries that lose a passage are
    labelled again, and only those whose labels change are scored again.

    Args:
        runs: all that are scored.
        pools: with the runs that contributed each passage.
        votes: those that count.
        after: the preference labels of all, and the measure.
        find: how the best of a pool is found.
        done: called after each run.
    """
    scored = {run: listed for run, listed in runs.items() if run != PERFECT}
    queries = sorted(query for query, grades in after.labels.items() if grades)
    values = score_labels(scored, after, queries=queries)
    found = []
    for run in sorted({run for pool in pools for one in pool.candidates for run in one.runs}):
        if run in scored:
            left = remove_run(run, pools, votes)
            found.append(_compare(run, scored, left, after, find, before=(queries, values)))
        done()
    return tuple(one for one in found if one is not None)


def _compare(
    run: str,
    runs: Mapping[str, RunPositions],
    remaining: Remaining,
    after: ScoredLabels,
    find: Find,
    *,
    before: tuple[Sequence[str], Floats],
) -> LeftOut | None:
    """`None` where no query has a label any more; `before` are the queries and scores of all."""
    queries, scores = before
    touched = [pool for pool in remaining.pools if pool.query in remaining.touched]
    labels = {query: one for query, one in after.labels.items() if query not in remaining.touched}
    labels |= grade(make_labels(touched, remaining.votes, find=find).labels)
    columns = [index for index, query in enumerate(queries) if query in labels]
    if not columns:
        return None
    changed = [index for index in columns if labels[queries[index]] != after.labels[queries[index]]]
    values = scores.copy()
    if changed:  # the scores of all other queries are as they were
        now = replace(after, labels=labels)
        values[:, changed] = score_labels(runs, now, queries=[queries[index] for index in changed])
    whole, without = (means_of(one[:, columns]) for one in (scores, values))
    index = list(runs).index(run)
    return LeftOut(
        run=run,
        passages=remaining.passages,
        pairs=remaining.pairs,
        changed=sum(labels.get(query) != one for query, one in after.labels.items()),
        value=float(whole[index]),
        without=float(without[index]),
        rank=rank_means((after.sign * whole).tolist())[index],
        rank_without=rank_means((after.sign * without).tolist())[index],
        tau=ranks.kendall(whole, without),
    )
