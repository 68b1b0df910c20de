"""One query's rows checked, ordered and seen through the judgments."""

from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from heldout.errors import Problem, Severity
from heldout.trec.numbers import classify_score, parse_integer, parse_integers, parse_scores
from heldout.trec.problems import show
from heldout.trec.ranking import (
    JudgedRanking,
    Order,
    order_by_rank,
    order_by_score,
    sort_keys,
)
from heldout.trec.rows import Rows
from heldout.trec.scanning.hashing import hash_documents

__all__ = ["SIGNATURE_DEPTH", "Answer", "Examiner", "Parsed", "QueryFacts"]

SIGNATURE_DEPTH: Final = 100
_TOP = 10
_NONE = np.empty(0, dtype=np.int64)


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryFacts:
    """What is odd about one query's rows without being wrong.

    Attributes:
        first_rank: lowest rank of the query, `None` if the rank column has no such numbers.
        tied: neighbouring pairs with equal scores in the order.
        tied_top: those that begin among the first ten, so that a cut at 10 depends on ids.
        displaced_top: places among the first ten where the rank column has another document.
        repeated_ranks: rows whose rank an earlier row has.
    """

    first_rank: int | None
    tied: int
    tied_top: int
    displaced_top: int
    repeated_ranks: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A query's rows in the order, as integers.

    Attributes:
        ranking: places and grades of the judged documents.
        top: uint64, `hash_document` of the first 100 documents, best first.
        facts: what is odd.
    """

    ranking: JudgedRanking
    top: NDArray[np.uint64]
    facts: QueryFacts


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
        report: receives every problem.
    """

    path: str
    order: Order
    depth: int
    report: Callable[[Problem], None]

    def examine(
        self,
        rows: Rows,
        *,
        parsed: Parsed | None = None,
        judged: Mapping[str, int] | None,
        candidates: AbstractSet[str] | None,
    ) -> Answer | None:
        """The query's answer, or `None` after an error was reported.

        Args:
            rows: all rows of the query, at least one.
            parsed: what is known of them already.
            judged: grades of its judged documents.
            candidates: the only documents it may have; `None` for any.
        """
        good = parsed is not None or self._distinct(rows)
        if candidates is not None:
            good = self._foreign_documents(rows, candidates) and good
        ranks = self._ranks(rows, parsed)
        scores = self._scores(rows) if parsed is None else parsed.keys
        if self.order == "msmarco":
            if ranks is None or not good:
                return None
            best = order_by_rank(ranks)
            facts = self._facts(rows, ranks, None, best)
        else:
            if scores is None or not good:
                return None
            best = order_by_score(scores, rows.documents)
            facts = self._facts(rows, ranks, scores, best)
        hits = _hits(rows.documents, judged or {}) if parsed is None else parsed.hits
        top = best[: self.depth].tolist()
        return Answer(
            ranking=_see(hits, best),
            top=hash_documents([rows.documents[row] for row in top]),
            facts=facts,
        )

    def _problem(
        self,
        code: str,
        line: int,
        found: str,
        expected: str,
        *,
        hint: str = "",
        severity: Severity = "error",
    ) -> None:
        self.report(
            Problem(
                code=code,
                path=self.path,
                line=line,
                found=found,
                expected=expected,
                hint=hint,
                severity=severity,
            )
        )

    def _distinct(self, rows: Rows) -> bool:
        """Whether no document is there twice; reports those that are."""
        if len(set(rows.documents)) == len(rows.documents):
            return True
        first: dict[bytes, int] = {}
        for document, line in zip(rows.documents, rows.lines, strict=True):
            earlier = first.setdefault(document, line)
            if earlier != line:
                self._problem(
                    "repeated-document",
                    line,
                    f"{show(document)} again for {show(rows.query)}, first on line {earlier}",
                    "each document once per query",
                    hint="remove repeats before cutting to the depth",
                )
        return False

    def _foreign_documents(self, rows: Rows, candidates: AbstractSet[str]) -> bool:
        clean = True
        for document, line in zip(rows.documents, rows.lines, strict=True):
            if document.decode() not in candidates:
                clean = False
                self._problem(
                    "not-a-candidate",
                    line,
                    f"{show(document)} for {show(rows.query)}",
                    "one of the query's official candidates",
                    hint="a re-ranking run only reorders them; else submit it as full ranking",
                )
        return clean

    def _ranks(self, rows: Rows, parsed: Parsed | None) -> NDArray[np.int64] | None:
        """The rank column if every rank is there once or the order ignores it."""
        ranks = parse_integers(rows.ranks) if parsed is None else parsed.ranks
        count = len(rows.ranks)
        if ranks is None:
            self._odd_numbers(rows)
            return None
        follow = int(ranks[0]) <= 1 and bool((ranks == np.arange(ranks[0], ranks[0] + count)).all())
        usable = self._zero_ranks(rows, ranks)
        if follow:
            return ranks if usable or self._ignored else None
        if len(np.unique(ranks)) < count:
            usable = False
            self._repeated_ranks(rows, ranks)
        return ranks if (not self._gaps(rows, ranks) and usable) or self._ignored else None

    @property
    def _ignored(self) -> bool:
        """Whether the order ignores the rank column."""
        return self.order != "msmarco"

    def _rank_problem(self, code: str, line: int, found: str, expected: str, hint: str) -> None:
        if self._ignored:
            hint = "the rank column is not used: scores decide"
        severity: Severity = "note" if self._ignored else "error"
        self._problem(code, line, found, expected, hint=hint, severity=severity)

    def _odd_numbers(self, rows: Rows) -> None:
        for token, line in zip(rows.ranks, rows.lines, strict=True):
            rank = parse_integer(token)
            if rank is None or rank <= 0:
                code = "rank-not-a-number" if rank is None else "rank-negative"
                code = "rank-zero" if rank == 0 else code
                self._rank_problem(
                    code,
                    line,
                    f"rank {show(token)} for {show(rows.query)}",
                    "a whole number from 1 on",
                    "write ranks as 1, 2, 3, …",
                )

    def _zero_ranks(self, rows: Rows, ranks: NDArray[np.int64]) -> bool:
        zeros = np.flatnonzero(ranks == 0).tolist()
        for row in zeros:
            self._rank_problem(
                "rank-zero",
                rows.lines[row],
                f"rank 0 for {show(rows.query)}",
                "ranks from 1 on",
                "add 1 to every rank",
            )
        return not zeros

    def _repeated_ranks(self, rows: Rows, ranks: NDArray[np.int64]) -> None:
        first: dict[int, int] = {}
        for rank, line in zip(ranks.tolist(), rows.lines, strict=True):
            earlier = first.setdefault(rank, line)
            if earlier != line:
                self._rank_problem(
                    "rank-repeated",
                    line,
                    f"rank {rank} again for {show(rows.query)}, first on line {earlier}",
                    "each rank once per query",
                    "break ties before you number the documents",
                )

    def _gaps(self, rows: Rows, ranks: NDArray[np.int64]) -> bool:
        """Whether a rank between 1 and the greatest is missing; reports where first."""
        present = np.unique(ranks[ranks > 0])
        missing = int(present[-1]) - len(present) if len(present) else 0
        if not missing:
            return False
        lowest = int(np.argmax(present != np.arange(1, len(present) + 1)))
        above = int(present[lowest])
        more = f" and {missing - 1} more" if missing > 1 else ""
        self._rank_problem(
            "rank-missing",
            rows.lines[int(np.argmax(ranks == above))],
            f"rank {above} for {show(rows.query)}, but no rank {lowest + 1}{more}",
            f"every rank from 1 to {int(present[-1])}",
            "number the documents of each query 1, 2, 3, …",
        )
        return True

    def _scores(self, rows: Rows) -> NDArray[np.float64] | None:
        """The scores as the order compares them, `None` if one is no number or unused."""
        if not rows.scores:
            return None
        scores = parse_scores(rows.scores)
        if scores is None:
            for token, line in zip(rows.scores, rows.lines, strict=True):
                if code := classify_score(token):
                    self._score_problem(code, line, token, rows.query)
            return None
        keys = sort_keys(scores, self.order)
        beyond = np.flatnonzero(np.isinf(keys)).tolist()
        for row in beyond:
            self._score_problem("score-infinite", rows.lines[row], rows.scores[row], rows.query)
        return None if beyond else keys

    def _score_problem(self, code: str, line: int, token: bytes, query: bytes) -> None:
        unused = self.order == "msmarco"
        beyond = code == "score-infinite" and self.order == "trec9"
        self._problem(
            code,
            line,
            f"score {show(token)} for {show(query)}",
            "a finite decimal number" + (" that fits float32" if beyond else ""),
            hint="the score column is not used: ranks decide"
            if unused
            else "write scores like 12.5 or 1.25e1",
            severity="note" if unused else "error",
        )

    def _facts(
        self,
        rows: Rows,
        ranks: NDArray[np.int64] | None,
        keys: NDArray[np.float64] | None,
        best: NDArray[np.int64],
    ) -> QueryFacts:
        ties = np.empty(0, dtype=np.bool_)
        if keys is not None:
            ordered = keys[best]
            ties = ordered[1:] == ordered[:-1]
        displaced = 0
        repeated = 0
        if ranks is not None:
            sequence = order_by_rank(ranks)
            by_rank = sequence[:_TOP]
            displaced = int((by_rank != best[:_TOP]).sum())
            repeated = int((np.diff(ranks[sequence]) == 0).sum())
        if displaced:
            self._displaced(rows, best, by_rank)
        return QueryFacts(
            first_rank=None if ranks is None else int(ranks.min()),
            tied=int(ties.sum()),
            tied_top=int(ties[:_TOP].sum()),
            displaced_top=displaced,
            repeated_ranks=repeated,
        )

    def _displaced(self, rows: Rows, best: NDArray[np.int64], by_rank: NDArray[np.int64]) -> None:
        place = int(np.argmax(by_rank != best[:_TOP]))
        row = int(by_rank[place])
        self._problem(
            "rank-disagrees",
            rows.lines[row],
            f"{show(rows.documents[row])} at rank {show(rows.ranks[row])} for "
            f"{show(rows.query)}, but place {_place(best, row)} by score",
            "ranks in the order of the scores",
            hint="the rank column is not used: scores decide",
            severity="note",
        )


def _place(best: NDArray[np.int64], row: int) -> int:
    return int(np.argmax(best == row)) + 1


def _see(hits: NDArray[np.int64], best: NDArray[np.int64]) -> JudgedRanking:
    """Places and grades of the judged documents.

    Args:
        hits: int64, shape (hits, 2): row and grade.
        best: rows from best to worst.
    """
    retrieved = len(best)
    if not len(hits):
        return JudgedRanking(positions=_NONE, grades=_NONE, retrieved=retrieved)
    place_of = np.empty(retrieved, dtype=np.int64)
    place_of[best] = np.arange(1, retrieved + 1)
    positions = place_of[hits[:, 0]]
    ascending = np.argsort(positions)
    return JudgedRanking(
        positions=positions[ascending], grades=hits[:, 1][ascending], retrieved=retrieved
    )


def _hits(documents: Sequence[bytes], judged: Mapping[str, int]) -> NDArray[np.int64]:
    """Row and grade of each judged document; looks up the shorter list in the longer one."""
    if len(judged) < len(documents):
        rows = dict(zip(documents, range(len(documents)), strict=True))
        found = ((rows.get(document.encode()), grade) for document, grade in judged.items())
        pairs = [(row, grade) for row, grade in found if row is not None]
    else:
        seen = ((row, judged.get(d.decode())) for row, d in enumerate(documents))
        pairs = [(row, grade) for row, grade in seen if grade is not None]
    return np.array(pairs, dtype=np.int64).reshape(-1, 2)
