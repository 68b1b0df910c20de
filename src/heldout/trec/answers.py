"""One query's rows checked, ordered and seen through the judgments."""

from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from heldout.errors import Problem
from heldout.trec.orders import Order
from heldout.trec.ranking import JudgedRanking, equal_as_float32, order_by_rank, order_by_score
from heldout.trec.rows import RowChecks, Rows
from heldout.trec.scanning.scanners import find_judged, hash_documents

SIGNATURE_DEPTH: Final = 100
_TOP = 10
_FEWEST = 3
"""Documents from which on scores that rise are no accident."""
_NONE = np.empty(0, dtype=np.int64)


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryOddities:
    """What is odd about one query's rows without being wrong.

    Attributes:
        first_rank: lowest rank of the query, `None` if the rank column has no such numbers.
        tied: neighbouring pairs with equal scores in the order.
        tied_top: those that begin among the first ten, so that a cut at 10 depends on ids.
        displaced_top: places among the first ten where the scores have another document than
            the rank column; where ranks decide, equal scores have none.
        repeated_ranks: rows whose rank an earlier row has.
        swapped: whether the order is `trec`, and `trec9` has another.
        rises: whether scores decide, and rise from rank to rank, or are 1, 2, 3, … as ranks are.
    """

    first_rank: int | None
    tied: int
    tied_top: int
    displaced_top: int
    repeated_ranks: int
    swapped: bool = False
    rises: bool = False


class Listed(NamedTuple):
    """The first documents of a query by their ids, and those that tie with the last of them.

    Attributes:
        documents: best first.
        tied: bool, shape (documents - 1,), whether neighbours have equal scores in the order.
    """

    documents: tuple[str, ...]
    tied: NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryAnswer:
    """A query's rows in the order, as integers.

    Attributes:
        ranking: places and grades of the judged documents.
        top: uint64, `hash_document` of the first 100 documents, best first.
        facts: what is odd.
        listed: its first documents; `None` where none were asked for.
    """

    ranking: JudgedRanking
    top: NDArray[np.uint64]
    facts: QueryOddities
    listed: Listed | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Parsed:
    """What a scanner knows of rows already; no document is there twice, all numbers are good.

    Attributes:
        ranks: int64, not negative.
        keys: float64, finite scores as the order compares them.
        hits: int64, shape (hits, 2): row and grade of each judged document.
    """

    ranks: NDArray[np.int64]
    keys: NDArray[np.float64]
    hits: NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Examiner:
    """Examines queries one at a time under fixed rules.

    Attributes:
        path: the file, for messages.
        order: decides which columns must be right.
        depth: how many documents `Answer.top` has at most.
        listed: how many `Answer.listed` has, and more where some tie with the last.
        report: receives every problem.
    """

    path: str
    order: Order
    depth: int
    listed: int
    report: Callable[[Problem], None]

    def examine(
        self,
        rows: Rows,
        *,
        parsed: Parsed | None = None,
        judged: Mapping[str, int] | None,
        candidates: AbstractSet[str] | None,
    ) -> QueryAnswer | None:
        """The query's answer, or `None` after an error was reported.

        Args:
            rows: all rows of the query, at least one.
            parsed: what is known of them already.
            judged: grades of its judged documents.
            candidates: the only documents it may have; `None` for any.
        """
        checks = RowChecks(path=self.path, order=self.order, report=self.report)
        good = parsed is not None or checks.distinct(rows)
        if candidates is not None:
            good = checks.only_candidates(rows, candidates) and good
        ranks = checks.ranks(rows, None if parsed is None else parsed.ranks)
        scores = checks.scores(rows) if parsed is None else parsed.keys
        if self.order == "msmarco":
            if ranks is None or not good:
                return None
            best = order_by_rank(ranks)
            by_score = None
            if scores is not None:  # where they are equal, ranks say who comes first
                by_score = best[np.argsort(-scores[best], kind="stable")]
            tied = np.zeros(len(best) - 1, np.bool_)
            facts = _facts(checks, rows, ranks, by_score, tied=tied)
        else:
            if scores is None or not good:
                return None
            best = order_by_score(scores, rows.documents)
            ordered = scores[best]
            tied = ordered[1:] == ordered[:-1]
            facts = _facts(checks, rows, ranks, best, tied=tied)
            swapped = self.order == "trec" and _swapped(ordered, best, rows.documents)
            rises = _rises(scores, ranks)
            if swapped or rises:
                facts = replace(facts, swapped=swapped, rises=rises)
        hits = (
            np.array(find_judged(rows.documents, judged or {}), np.int64).reshape(-1, 2)
            if parsed is None
            else parsed.hits
        )
        top = best[: self.depth].tolist()
        return QueryAnswer(
            ranking=_see(hits, best),
            top=hash_documents([rows.documents[row] for row in top]),
            facts=facts,
            listed=_list(rows.documents, best, tied, self.listed) if self.listed else None,
        )


def _list(
    documents: Sequence[bytes], best: NDArray[np.int64], tied: NDArray[np.bool_], depth: int
) -> Listed:
    end = min(depth, len(best))
    while end < len(best) and tied[end - 1]:
        end += 1
    found = tuple(documents[row].decode() for row in best[:end].tolist())
    return Listed(found, tied[: end - 1])


def _swapped(
    ordered: NDArray[np.float64], best: NDArray[np.int64], documents: Sequence[bytes]
) -> bool:
    """Check whether neighbours that are equal as float32 stand in the order of ids."""
    close = np.flatnonzero(equal_as_float32(ordered) & (ordered[1:] != ordered[:-1]))
    pairs = zip(best[close].tolist(), best[close + 1].tolist(), strict=True)
    return any(documents[below] > documents[above] for above, below in pairs)


def _rises(keys: NDArray[np.float64], ranks: NDArray[np.int64] | None) -> bool:
    """Check whether scores rise with the rank, as distances do, or count lines as ranks do."""
    count = len(keys)
    if count < _FEWEST:
        return False
    if keys[0] == 1 and keys[-1] == count and bool((keys == np.arange(1, count + 1)).all()):
        return True
    if ranks is None or keys[int(ranks.argmin())] >= keys[int(ranks.argmax())]:
        return False
    ranked = keys[order_by_rank(ranks)]
    return bool((ranked[1:] > ranked[:-1]).all())


def _facts(
    checks: RowChecks,
    rows: Rows,
    ranks: NDArray[np.int64] | None,
    by_score: NDArray[np.int64] | None,
    *,
    tied: NDArray[np.bool_],
) -> QueryOddities:
    """Return what is odd; reports the first row that ranks and scores place differently."""
    displaced = 0
    repeated = 0
    if ranks is not None:
        by_rank = order_by_rank(ranks)
        repeated = int((np.diff(ranks[by_rank]) == 0).sum())
        if by_score is not None:
            differ = by_rank[:_TOP] != by_score[:_TOP]
            displaced = int(differ.sum())
            if displaced:
                row = int(by_rank[int(np.argmax(differ))])
                checks.report_displaced(rows, row, position=int(np.argmax(by_score == row)) + 1)
    return QueryOddities(
        first_rank=None if ranks is None else int(ranks.min()),
        tied=int(tied.sum()),
        tied_top=int(tied[:_TOP].sum()),
        displaced_top=displaced,
        repeated_ranks=repeated,
    )


def _see(hits: NDArray[np.int64], best: NDArray[np.int64]) -> JudgedRanking:
    """Places and grades of the judged documents.

    Args:
        hits: int64, shape (hits, 2): row and grade.
        best: rows from best to worst.
    """
    retrieved = len(best)
    if not len(hits):
        return JudgedRanking(positions=_NONE, grades=_NONE, retrieved=retrieved)
    position_of = np.empty(retrieved, dtype=np.int64)
    position_of[best] = np.arange(1, retrieved + 1)
    positions = position_of[hits[:, 0]]
    ascending = np.argsort(positions)
    return JudgedRanking(
        positions=positions[ascending], grades=hits[:, 1][ascending], retrieved=retrieved
    )
