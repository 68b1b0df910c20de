"""Could other systems have answered the queries that were discarded?

The first passages of several systems are pooled and shown in random order, without system or
rank; people say which of them answer the query. What no system found may still lie in the
collection, so that every share here is a lower bound. Source: survivorship-bias, section 3 and
table 2.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import msgspec
import numpy as np

from heldout.errors import InputError, Problem, plural
from heldout.preferences.pools import Pool, build_pools
from heldout.stats.rank_tests import compare_wins
from heldout.stats.results import Ask, holm
from heldout.survivorship.discarded.passage_judging import Judged
from heldout.survivorship.discarded.questions import Question, ShownPassage
from heldout.survivorship.discarded.shares import Share, share_of
from heldout.trec.tops import Tops

__all__ = [
    "Answered",
    "FirstRanks",
    "SystemPair",
    "SystemReach",
    "SystemTop",
    "compare_reach",
    "deepest_rank",
    "first_ranks",
    "pool_questions",
    "reach",
]

FirstRanks = Mapping[str, Mapping[str, int | None]]
"""System -> query -> rank of its first passage that answers; `None` where none was found."""


class SystemTop(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What one system showed for one query; kept apart from what annotators see.

    Attributes:
        system: its name.
        query: its id.
        docs: best first, as deep as was pooled.
    """

    system: str
    query: str
    docs: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SystemReach:
    """How many discarded queries one system answers.

    Attributes:
        system: its name.
        none: queries without an answer in the pooled depth.
        within: depth -> queries with an answer that deep, the pooled depth first.
    """

    system: str
    none: Share
    within: Mapping[int, Share]


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """How many discarded queries systems answer.

    Attributes:
        queries: how many were judged.
        depth: that was pooled.
        systems: in the order given.
        unanswered: queries that none of them answers.
    """

    queries: int
    depth: int
    systems: tuple[SystemReach, ...]
    unanswered: Share


@dataclass(frozen=True, slots=True, kw_only=True)
class SystemPair:
    """Two systems on the same queries, to one depth.

    Attributes:
        a, b: their names.
        depth: an answer counts that stands there or above.
        a_only, b_only: queries that one of them alone answers.
        p: exact McNemar, two-sided; `None` where no query tells them apart.
        p_corrected: by Holm over all pairs and depths.
    """

    a: str
    b: str
    depth: int
    a_only: int
    b_only: int
    p: float | None
    p_corrected: float | None


def pool_questions(
    tops: Mapping[str, Tops],
    *,
    queries: Mapping[str, str],
    documents: Mapping[str, str],
    rng: np.random.Generator,
) -> tuple[Question, ...]:
    """The pooled passages of each query, each text once, in random order.

    Args:
        tops: system -> query -> first documents, as deep as is pooled.
        queries: id -> text of the queries to be judged, in this order.
        documents: id -> text, of every document that is pooled.
        rng: of the order.

    Raises:
        InputError: codes `no-text`; `missing-query`: no system has a document for a query.
    """
    pools = build_pools(tops, {}, queries=queries, documents=documents)
    pooled = {one.query for one in pools}
    lost = [query for query in queries if query not in pooled]
    if lost:
        raise InputError(
            Problem(
                code="missing-query",
                path="runs",
                found=f"no document for {plural(len(lost), 'query', 'queries')}: {lost[0]}",
                expected="a document of some system for every query that is judged",
            )
        )
    return tuple(_shuffled(one, rng) for one in pools)


def first_ranks(judged: Mapping[str, Judged], tops: Iterable[SystemTop]) -> FirstRanks:
    """Where each system has its first passage that answers.

    Args:
        judged: as `judged_passages` gives it.
        tops: what each system showed.
    """
    shown: dict[str, dict[str, tuple[str, ...]]] = {}
    for top in tops:
        shown.setdefault(top.system, {})[top.query] = top.docs
    return {
        system: {
            query: _first(answered.get(query, ()), found.answering)
            for query, found in judged.items()
        }
        for system, answered in shown.items()
    }


def deepest_rank(ranks: FirstRanks) -> int:
    """The largest rank of a passage that answers; 0 where none does."""
    return max((rank for own in ranks.values() for rank in own.values() if rank), default=0)


def reach(
    ranks: FirstRanks, *, depth: int = 10, also: Sequence[int] = (3,), level: float = 0.95
) -> Answered:
    """How many queries each system answers within the pooled depth, and higher up: table 2.

    Args:
        ranks: of every system for the same queries.
        depth: that was pooled; an answer below it does not count.
        also: further depths, each less than `depth`.
        level: of the Wilson intervals.
    """
    size = len(next(iter(ranks.values()), {}))
    depths = (depth, *(one for one in also if one < depth))
    found = {system: [_within(own, k) for k in depths] for system, own in ranks.items()}
    anywhere = {query for sets in found.values() for query in sets[0]}
    return Answered(
        queries=size,
        depth=depth,
        systems=tuple(
            SystemReach(
                system=system,
                none=share_of(size - len(sets[0]), size, level=level),
                within={
                    k: share_of(len(hits), size, level=level)
                    for k, hits in zip(depths, sets, strict=True)
                },
            )
            for system, sets in found.items()
        ),
        unanswered=share_of(size - len(anywhere), size, level=level),
    )


def compare_reach(
    ranks: FirstRanks, *, depth: int = 10, also: Sequence[int] = (3,)
) -> tuple[SystemPair, ...]:
    """Which systems answer other queries than which: every pair at every depth.

    Args:
        ranks: of every system for the same queries.
        depth: that was pooled.
        also: further depths, each less than `depth`.

    Source: McNemar 1947, exact; Holm 1979.
    """
    ask = Ask(alternative="two-sided", level=0.95)
    counts = []
    for k in (depth, *(one for one in also if one < depth)):
        hits = {system: _within(own, k) for system, own in ranks.items()}
        for a, b in combinations(ranks, 2):
            counts.append((a, b, k, len(hits[a] - hits[b]), len(hits[b] - hits[a])))
    ps = [compare_wins(a_only, b_only, ask).p for *_, a_only, b_only in counts]
    return tuple(
        SystemPair(a=a, b=b, depth=k, a_only=a_only, b_only=b_only, p=p, p_corrected=corrected)
        for (a, b, k, a_only, b_only), p, corrected in zip(counts, ps, holm(ps), strict=True)
    )


def _shuffled(pool: Pool, rng: np.random.Generator) -> Question:
    order = rng.permutation(len(pool.candidates)).tolist()
    return Question(
        query=pool.query,
        text=pool.text,
        passages=tuple(
            ShownPassage(doc=one.doc, text=one.text, same=one.same)
            for one in (pool.candidates[place] for place in order)
        ),
    )


def _first(docs: Sequence[str], answering: Sequence[str]) -> int | None:
    wanted = set(answering)
    return next((rank for rank, doc in enumerate(docs, 1) if doc in wanted), None)


def _within(ranks: Mapping[str, int | None], depth: int) -> set[str]:
    return {query for query, rank in ranks.items() if rank is not None and rank <= depth}
