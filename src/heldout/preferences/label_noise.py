"""What labels would be had the judges judged again: judgments drawn anew, and labels made of them.

Each query's judgments are drawn with replacement from those it has, as many as it has; a pair that
is not drawn is not judged. With one vote on each pair nothing else shows how sure a label is: the
votes of one pair cannot differ. Drawn labels are noisier than the labels themselves, so what they
say is how far numbers spread and not where they lie.
"""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.random import Generator

from heldout.preferences.labels import Find, label_pool
from heldout.preferences.pools import Pool
from heldout.preferences.tournament import play
from heldout.preferences.votes import PairVotes, Votes

__all__ = ["differs", "redraw_labels"]


def redraw_labels(
    pools: Sequence[Pool],
    votes: Votes,
    *,
    draws: int,
    rng: Generator,
    find: Find = play,
    done: Callable[[], None] = lambda: None,
) -> Mapping[str, Sequence[tuple[str, ...]]]:
    """Labels of judgments drawn anew.

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
    found = {}
    for pool in pools:
        counts = votes.get(pool.query)
        if not counts:
            kept = label_pool(pool, None, find)
            drawn = [kept] * draws if kept else []
        else:
            drawn = _redraw(pool, counts, draws, rng, find)
        if drawn:
            found[pool.query] = drawn
        done()
    return found


def differs(redrawn: Mapping[str, Sequence[tuple[str, ...]]]) -> bool:
    """Whether any query has another label in some draw: else drawing anew says nothing of noise."""
    return any(labels != drawn[0] for drawn in redrawn.values() for labels in drawn)


def _redraw(
    pool: Pool,
    counts: Mapping[tuple[str, str], PairVotes],
    draws: int,
    rng: Generator,
    find: Find,
) -> list[tuple[str, ...]]:
    pairs = list(counts)
    cast = np.array([[counts[pair].first, counts[pair].second] for pair in pairs])
    total = int(cast.sum())
    tables = rng.multinomial(total, cast.ravel() / total, size=draws).reshape(draws, -1, 2)
    return [
        label_pool(
            pool,
            {
                pair: PairVotes(first=first, second=second)
                for pair, (first, second) in zip(pairs, table, strict=True)
                if first or second
            },
            find,
        )
        for table in tables.tolist()
    ]
