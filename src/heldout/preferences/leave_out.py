"""Leave one run out: is a run good on preference labels only because its own passages were judged?

The passages that a run alone brought to the pools are taken out, with the pairs they were in, and
everything is done again (shallow-pooling, section 5.2, for run L).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import msgspec
import numpy as np
from numpy.typing import NDArray

from heldout.preferences.contests import PERFECT
from heldout.preferences.label_scores import Labels, ScoredLabels, grade, score_labels
from heldout.preferences.labels import Find, make_labels
from heldout.preferences.pools import Pool
from heldout.preferences.rescoring import means_of, rank_means
from heldout.preferences.tournament import play
from heldout.preferences.votes import Votes
from heldout.stats.rank_correlation import kendall
from heldout.trec.places import Places

__all__ = ["LeftOut", "Remaining", "leave_each_out", "remove_run"]


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


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Scored:
    """Runs on the labels of all.

    Attributes:
        runs: by name.
        queries: those with labels, sorted.
        values: scores, shape (runs, queries).
    """

    runs: Mapping[str, Places]
    queries: Sequence[str]
    values: NDArray[np.float64]


def remove_run(run: str, pools: Sequence[Pool], votes: Votes) -> Remaining:
    """Pools and votes without the passages that a run alone contributed; known answers stay."""
    left, remaining, passages, pairs = [], {}, 0, 0
    touched = set()
    for pool in pools:
        own = {one.doc for one in pool.candidates if one.runs == (run,) and not one.known}
        passages += len(own)
        if own:
            touched.add(pool.query)
        kept = tuple(one for one in pool.candidates if one.doc not in own)
        if kept:
            left.append(msgspec.structs.replace(pool, candidates=kept))
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
    runs: Mapping[str, Places],
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
    scored = {run: places for run, places in runs.items() if run != PERFECT}
    pooled = sorted({run for pool in pools for one in pool.candidates for run in one.runs})
    queries = sorted(query for query, grades in after.labels.items() if grades)
    whole = _Scored(
        runs=scored, queries=queries, values=score_labels(scored, after, queries=queries)
    )
    found = []
    for run in pooled:
        if run in scored:
            found.append(_compare(run, whole, remove_run(run, pools, votes), after, find))
        done()
    return tuple(one for one in found if one is not None)


def _compare(
    run: str, scored: _Scored, remaining: Remaining, after: ScoredLabels, find: Find
) -> LeftOut | None:
    """`None` where no query has a label any more."""
    touched = [pool for pool in remaining.pools if pool.query in remaining.touched]
    again = grade(make_labels(touched, remaining.votes, find=find).labels)
    kept = {query: one for query, one in after.labels.items() if query not in remaining.touched}
    labels = {**kept, **again}
    columns = [place for place, query in enumerate(scored.queries) if query in labels]
    if not columns:
        return None
    values = _score_again(
        scored, ScoredLabels(name=after.name, labels=labels, measure=after.measure), after.labels
    )
    sign = 1.0 if after.measure.kind.better == "higher" else -1.0
    whole, without = (means_of(one[:, columns]) for one in (scored.values, values))
    place = list(scored.runs).index(run)
    return LeftOut(
        run=run,
        passages=remaining.passages,
        pairs=remaining.pairs,
        changed=sum(labels.get(query) != one for query, one in after.labels.items()),
        value=float(whole[place]),
        without=float(without[place]),
        rank=rank_means((sign * whole).tolist())[place],
        rank_without=rank_means((sign * without).tolist())[place],
        tau=kendall(whole, without),
    )


def _score_again(scored: _Scored, now: ScoredLabels, before: Labels) -> NDArray[np.float64]:
    """Scores on changed labels; those of all other queries are as they were."""
    changed = {
        query: place
        for place, query in enumerate(scored.queries)
        if now.labels.get(query, before[query]) != before[query]
    }
    values = scored.values.copy()
    if changed:
        values[:, [*changed.values()]] = score_labels(scored.runs, now, queries=[*changed])
    return values
