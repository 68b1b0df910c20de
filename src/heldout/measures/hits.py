"""What a run says of each judged query, as plain integers; queries that look alike are one.

A run of 7,000 queries with one judgment each has only some hundred different rankings, as far
as measures can see, so each is measured once.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from heldout.trec.ranking import JudgedRanking, Rankings

__all__ = ["Hits", "Patterns", "find_patterns"]


class Hits(NamedTuple):  # a tuple is compared and hashed without Python code
    """The judged documents of one ranking, without grades below 0, which mean "not judged".

    Attributes:
        positions: strictly increasing, from 1.
        grades: same length, >= 0.
        retrieved: number of documents in the list, as far as a measure may look at it.
    """

    positions: tuple[int, ...]
    grades: tuple[int, ...]
    retrieved: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Patterns:
    """The queries of a run, alike ones together.

    Attributes:
        distinct: group of the judgments, and hits; `None` where the run does not answer.
        of_query: int64, shape (queries,), place in `distinct`.
        unanswered: number of queries that the run does not answer.
        answered: all queries that the run answers, judged or not.
    """

    distinct: Sequence[tuple[int, Hits | None]]
    of_query: NDArray[np.int64]
    unanswered: int
    answered: Sequence[str]


def find_patterns(
    rankings: Mapping[str, JudgedRanking],
    queries: Sequence[str],
    groups: Sequence[int],
    *,
    depth: int,
) -> Patterns:
    """Look up the queries in a run.

    Args:
        rankings: by query. An empty list is no answer.
        queries: what to look up.
        groups: same length; queries of one group have equal judgments.
        depth: deepest position at which it matters whether the list has a document at all.
    """
    packed = rankings if isinstance(rankings, Rankings) else _pack(rankings)
    judged = packed.grades >= 0
    positions = tuple(packed.positions[judged].tolist())
    grades = tuple(packed.grades[judged].tolist())
    bounds = np.concatenate(([0], np.cumsum(judged)))[packed.starts].tolist()
    retrieved = np.minimum(packed.retrieved, depth).tolist()
    answers = (packed.retrieved > 0).tolist()
    rows = {query: row for row, query in enumerate(packed.queries) if answers[row]}
    places: dict[tuple[int, Hits | None], int] = {}
    found = []
    for query, group in zip(queries, groups, strict=True):
        row = rows.get(query)
        hits = None
        if row is not None:
            start, end = bounds[row], bounds[row + 1]
            hits = Hits(positions[start:end], grades[start:end], retrieved[row])
        found.append(places.setdefault((group, hits), len(places)))
    return Patterns(
        distinct=tuple(places),
        of_query=np.array(found, np.int64),
        unanswered=len(queries) - sum(query in rows for query in queries),
        answered=tuple(rows),
    )


def _pack(rankings: Mapping[str, JudgedRanking]) -> Rankings:
    none = np.empty(0, np.int64)
    found = rankings.values()
    return Rankings(
        queries=tuple(rankings),
        starts=np.cumsum([0, *(len(ranking.positions) for ranking in found)], dtype=np.int64),
        positions=np.concatenate([none, *(ranking.positions for ranking in found)]),
        grades=np.concatenate([none, *(ranking.grades for ranking in found)]),
        retrieved=np.array([ranking.retrieved for ranking in found], np.int64),
    )
