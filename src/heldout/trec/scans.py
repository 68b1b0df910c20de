"""What a run must be like, and what one pass over it found."""

from collections.abc import Collection, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from heldout.errors import InputError, Problem
from heldout.ids import Digest
from heldout.trec.ranking import Order, Rankings
from heldout.trec.rows import Form

__all__ = ["Expected", "Facts", "Scan", "Signature"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """What a run must be like.

    Attributes:
        queries: the only ids it may answer; `None` for any.
        min_depth: fewest documents of an answered query; `None` for any number.
        max_depth: most documents of a query; `None` for any number.
        candidates: per query the only documents it may have, for re-ranking runs; a query
            that is not listed may have any. `None` for any.
        complete: whether a query of `queries` without an answer is an error or a note.
    """

    queries: Collection[str] | None = None
    min_depth: int | None = None
    max_depth: int | None = None
    candidates: Mapping[str, AbstractSet[str]] | None = None
    complete: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """Counts over a whole run; those about ties and ranks leave out queries with errors.

    Attributes:
        lines: lines of text.
        queries: answered queries.
        documents: rows in them.
        min_depth: fewest documents of a query, `None` if no query is answered.
        max_depth: most documents of a query, `None` if no query is answered.
        first_ranks: lowest rank of a query -> number of queries; `None`: not all are numbers.
        tied: neighbouring pairs with equal scores, as the order compares them.
        tied_top: those that begin among a query's first ten.
        queries_tied: queries with such a pair.
        queries_tied_top: queries with such a pair that begins among the first ten.
        displaced_top: places among the first ten where the scores have another document than
            the rank column; where ranks decide, equal scores have none.
        queries_displaced_top: queries with such a place.
        repeated_ranks: rows whose rank an earlier row of the query has.
        queries_repeated_ranks: queries with such a row.
        queries_rising: queries of three documents or more whose scores decide, and rise with the
            rank or count the lines.
        queries_swapped: queries that `trec` orders in another way than `trec9` would, since some
            of their scores are equal as float32.
    """

    lines: int
    queries: int
    documents: int
    min_depth: int | None
    max_depth: int | None
    first_ranks: Mapping[int | None, int]
    tied: int
    tied_top: int
    queries_tied: int
    queries_tied_top: int
    displaced_top: int
    queries_displaced_top: int
    repeated_ranks: int
    queries_repeated_ranks: int
    queries_rising: int = 0
    queries_swapped: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Signature:
    """The tops of a run, to find runs like it, without the run.

    Attributes:
        queries: answered queries, sorted.
        documents: uint64, shape (queries, 100): `hash_document` of the first documents in
            the order; 0 where a query has fewer.
    """

    queries: tuple[str, ...]
    documents: NDArray[np.uint64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scan:
    """What one pass over a run file found.

    Attributes:
        path: the file as its owner knows it.
        digest: SHA-256 of the received bytes.
        form: how the lines are laid out; `None` if nothing could be read.
        order: the order asked for.
        problems: the first errors, fairly from all codes, and the first note of each code.
        counts: code -> how many there are in the whole file, or as far as it was read.
        facts: what is odd without being wrong.
        answers: rankings by query, sorted by id, and their signature; `None` after an error.
        head: query -> documents on the first lines of the file, a few hundred: what its ids
            look like.
    """

    path: str
    digest: Digest
    form: Form | None
    order: Order
    problems: tuple[Problem, ...]
    counts: Mapping[str, int]
    facts: Facts
    answers: tuple[Rankings, Signature] | None
    # A sample for hints: where blocks are tiny, it ends with the first one.
    head: Mapping[str, tuple[str, ...]] = field(default_factory=dict, compare=False)

    @property
    def ok(self) -> bool:
        """Whether the run can be scored: there are no errors, perhaps notes."""
        return self.answers is not None

    @property
    def rankings(self) -> Rankings:
        """Query -> ranking, for each answered query; empty arrays where no hit is judged.

        Raises:
            InputError: the run has errors, so nothing can be said about it.
        """
        return self._sure()[0]

    @property
    def signature(self) -> Signature:
        """The tops of all answered queries.

        Raises:
            InputError: the run has errors.
        """
        return self._sure()[1]

    def _sure(self) -> tuple[Rankings, Signature]:
        if self.answers is None:
            raise InputError(p for p in self.problems if p.severity == "error")
        return self.answers
