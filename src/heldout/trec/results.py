"""What accumulates over the queries of a run."""

from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from heldout.trec.answers import Answer, QueryFacts
from heldout.trec.ranking import Rankings
from heldout.trec.scans import Facts, Signature

__all__ = ["Results"]

_NONE = np.empty(0, dtype=np.int64)
_USUAL = QueryFacts(first_rank=1, tied=0, tied_top=0, displaced_top=0, repeated_ranks=0)


class Results:
    """Answers by query, packed; facts, summed.

    Args:
        depth: hashes kept of each query's first documents.
    """

    def __init__(self, depth: int) -> None:
        self._depth = depth
        self._queries: list[str] = []
        self._retrieved: list[int] = []
        self._positions: list[NDArray[np.int64]] = []
        self._grades: list[NDArray[np.int64]] = []
        self._tops: list[NDArray[np.uint64]] = []
        self._usual = 0
        self._swapped = 0
        self._facts: list[QueryFacts] = []

    def add_usual(
        self,
        query: str,
        *,
        rows: int,
        hits: NDArray[np.int64],
        top: NDArray[np.uint64],
        swapped: bool,
    ) -> None:
        """A query whose rows are in the order, numbered 1, 2, 3, …, and without ties.

        Args:
            query: its id.
            rows: how many documents it has.
            hits: int64, shape (hits, 2): row from 0, ascending, and grade.
            top: hashes of its first documents.
            swapped: as in `QueryFacts`.
        """
        self._usual += 1
        self._swapped += swapped
        self._add(query, rows, hits[:, 0] + 1 if len(hits) else _NONE, hits[:, 1], top)

    def add(self, query: str, answer: Answer) -> None:
        """Any other."""
        self._facts.append(answer.facts)
        ranking = answer.ranking
        self._add(query, ranking.retrieved, ranking.positions, ranking.grades, answer.top)

    def _add(
        self,
        query: str,
        retrieved: int,
        positions: NDArray[np.int64],
        grades: NDArray[np.int64],
        top: NDArray[np.uint64],
    ) -> None:
        self._queries.append(query)
        self._retrieved.append(retrieved)
        self._positions.append(positions)
        self._grades.append(grades)
        if self._depth:
            self._tops.append(top)

    def pack(self) -> tuple[Rankings, Signature]:
        """All answers, sorted by query."""
        places = sorted(range(len(self._queries)), key=self._queries.__getitem__)
        queries = tuple(self._queries[place] for place in places)
        positions = [self._positions[place] for place in places]
        starts = np.cumsum([0, *map(len, positions)], dtype=np.int64)
        tops = np.zeros((len(queries), self._depth), dtype=np.uint64)
        for row, place in enumerate(places if self._depth else ()):
            top = self._tops[place]
            tops[row, : len(top)] = top
        rankings = Rankings(
            queries=queries,
            starts=starts,
            positions=np.concatenate([_NONE, *positions]),
            grades=np.concatenate([_NONE, *(self._grades[place] for place in places)]),
            retrieved=np.array([self._retrieved[place] for place in places], dtype=np.int64),
        )
        return rankings, Signature(queries=queries, documents=tops)

    def facts(self, *, lines: int, depths: Sequence[int]) -> Facts:
        """Counts over the run.

        Args:
            lines: lines of text.
            depths: documents of each answered query, right or wrong.
        """
        facts = self._facts
        firsts = Counter(fact.first_rank for fact in facts)
        firsts[_USUAL.first_rank] += self._usual
        return Facts(
            lines=lines,
            queries=len(depths),
            documents=sum(depths),
            min_depth=min(depths, default=None),
            max_depth=max(depths, default=None),
            first_ranks=_sorted_ranks(firsts.items()),
            tied=sum(fact.tied for fact in facts),
            tied_top=sum(fact.tied_top for fact in facts),
            queries_tied=sum(fact.tied > 0 for fact in facts),
            queries_tied_top=sum(fact.tied_top > 0 for fact in facts),
            displaced_top=sum(fact.displaced_top for fact in facts),
            queries_displaced_top=sum(fact.displaced_top > 0 for fact in facts),
            repeated_ranks=sum(fact.repeated_ranks for fact in facts),
            queries_repeated_ranks=sum(fact.repeated_ranks > 0 for fact in facts),
            queries_rising=sum(fact.rises for fact in facts),
            queries_swapped=self._swapped + sum(fact.swapped for fact in facts),
        )


def _sorted_ranks(firsts: Iterable[tuple[int | None, int]]) -> dict[int | None, int]:
    """Ranks that occur, ascending, `None` last."""
    some = [(rank, count) for rank, count in firsts if count]
    return dict(sorted(some, key=lambda item: (item[0] is None, item[0])))
