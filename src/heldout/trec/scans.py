"""What a run must be like, what one pass collects, and how deep it answers which queries."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heldout.errors import InputError, Problem, plural
from heldout.ids import Digest, Spellings, find_near, say_near
from heldout.trec.answers import Listed, QueryAnswer, QueryOddities
from heldout.trec.orders import Order
from heldout.trec.ranking import Rankings
from heldout.trec.reading.streams import Limits
from heldout.trec.rows import Form
from heldout.trec.text import ProblemLog, show


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
        displaced_top: places among the first ten where the scores have another document than
            the rank column; where ranks decide, equal scores have none.
        queries_displaced_top: queries with such a place.
        repeated_ranks: rows whose rank an earlier row of the query has.
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
    tied: int = 0
    tied_top: int = 0
    queries_tied: int = 0
    displaced_top: int = 0
    queries_displaced_top: int = 0
    repeated_ranks: int = 0
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
        lists: query -> its first documents by their ids, where they were asked for.
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
    lists: Mapping[str, Listed] = field(default_factory=dict, compare=False)

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

    def raise_errors(self) -> None:
        """Refuse a run that cannot be scored.

        Raises:
            InputError: the run has errors.
        """
        self._sure()

    def document(self) -> dict[str, Any]:
        """Return what was read and what is wrong, for JSON."""
        return {
            "path": self.path,
            "ok": self.ok,
            "order": self.order,
            "form": self.form,
            "queries": self.facts.queries,
            "documents": self.facts.documents,
            "problems": [asdict(problem) for problem in self.problems],
            "counts": dict(self.counts),
        }

    def _sure(self) -> tuple[Rankings, Signature]:
        if self.answers is None:
            raise InputError(p for p in self.problems if p.severity == "error")
        return self.answers


_MANY = 2  # fewer queries say nothing of a whole set


class Coverage:
    """The answered queries of one reading of a run.

    Attributes:
        depths: query -> number of its rows, right or wrong.
    """

    def __init__(self, expected: Expected, *, path: str, limits: Limits, log: ProblemLog) -> None:
        self.depths: dict[bytes, int] = {}
        self._expected = expected
        self._path = path
        self._limits = limits
        self._log = log
        queries = expected.queries
        self._known = None if queries is None else frozenset(queries)
        self._spellings: Spellings | None = None

    def admit(self, query: bytes, lines: Sequence[int]) -> str | None:
        """Count an answered query.

        Args:
            query: its id, not seen before.
            lines: the line of each of its rows.

        Returns:
            The id as text if its rows are to be examined; `None` if it must not be answered, or
            has too many rows.

        Raises:
            InputError: code `too-many-queries`.
        """
        name = query.decode()
        self.depths[query] = len(lines)
        self.check_number(len(self.depths), lines[0])
        if self._known is not None and name not in self._known:
            found, hint = f"query {show(name)}, {len(lines)} documents", self._other_spelling(name)
            expected = "only queries of the query set"
            self._log.add(
                Problem("unknown-query", self._path, found, expected, hint, line=lines[0])
            )
            return None
        return name if self._check_depth(name, lines) else None

    def check_number(self, queries: int, line: int) -> None:
        """Refuse more queries than the limit.

        Raises:
            InputError: code `too-many-queries`.
        """
        most = self._limits.queries
        if queries > most:
            found, hint = f"more than {most} queries", "is this the run of another query set?"
            raise InputError.of(
                "too-many-queries", self._path, found, f"at most {most}", hint, line=line
            )

    def _other_spelling(self, query: str) -> str:
        """Return what to do about a query that the set lacks."""
        if self._spellings is None:
            self._spellings = Spellings(self._known or ())
        near = self._spellings.find(query)
        if near is None:
            return "ids are text: 007 is not 7; is this the run of another query set?"
        return f"the set has {show(near.other)}: write it so"

    def _check_depth(self, query: str, lines: Sequence[int]) -> bool:
        """Report a wrong depth; whether the rows are there to be examined all the same."""
        expected, limit = self._expected, self._limits.documents
        most = limit if expected.max_depth is None else min(limit, expected.max_depth)
        fewest = expected.min_depth or 0
        depth = len(lines)
        if fewest <= depth <= most:
            return True
        found, hint = f"{depth} documents for {show(query)}", ""
        if depth > most:
            code, wanted, line = "too-many-documents", f"at most {most} per query", lines[most]
            hint = f"cut each query to its best {most}"
        else:
            code, wanted, line = "too-few-documents", f"at least {fewest} per query", lines[-1]
        self._log.add(Problem(code, self._path, found, wanted, hint, line=line))
        return depth <= limit

    def check_answered(self) -> None:
        """Report what the run should answer and does not.

        Raises:
            InputError: code `empty-file`.
        """
        if not self.depths and not self._log.errors:
            raise InputError.of("empty-file", self._path, "no rows", "at least one row")
        if self._strange():
            return
        complete = self._expected.complete
        missing = [q for q in self._expected.queries or () if q.encode() not in self.depths]
        for query in missing:
            problem = Problem.of("missing-query", self._path, query=show(query))
            note = replace(problem, hint="it counts 0", severity="note")
            self._log.add(problem if complete else note)

    def _strange(self) -> bool:
        """Report once that the run answers another query set."""
        known = self._known or frozenset()
        if (
            len(self.depths) < _MANY
            or len(known) < _MANY
            or self._log.counts["unknown-query"] < len(self.depths)
        ):
            return False
        own, asked = (show(min(queries)) for queries in (self.depths, known))
        self._log.drop("unknown-query")
        self._log.add(
            Problem.of(
                "wrong-query-set",
                self._path,
                hint=say_near(find_near(map(bytes.decode, self.depths), known)),
                answered=len(self.depths),
                own=own,
                known=len(known),
                asked=asked,
            )
        )
        return True


_NONE = np.empty(0, dtype=np.int64)
_USUAL = QueryOddities(first_rank=1, tied=0, tied_top=0, displaced_top=0, repeated_ranks=0)


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
        self.lists: dict[str, Listed] = {}
        self._usual = 0
        self._swapped = 0
        self._facts: list[QueryOddities] = []

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
            swapped: as in `QueryOddities`.
        """
        self._usual += 1
        self._swapped += swapped
        self._add(query, rows, hits[:, 0] + 1 if len(hits) else _NONE, hits[:, 1], top)

    def add(self, query: str, answer: QueryAnswer) -> None:
        """Any other."""
        self._facts.append(answer.facts)
        ranking = answer.ranking
        if answer.listed is not None:
            self.lists[query] = answer.listed
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
        indices = sorted(range(len(self._queries)), key=self._queries.__getitem__)
        queries = tuple(self._queries[position] for position in indices)
        positions = [self._positions[position] for position in indices]
        starts = np.cumsum([0, *map(len, positions)], dtype=np.int64)
        tops = np.zeros((len(queries), self._depth), dtype=np.uint64)
        for row, position in enumerate(indices if self._depth else ()):
            top = self._tops[position]
            tops[row, : len(top)] = top
        rankings = Rankings(
            queries=queries,
            starts=starts,
            positions=np.concatenate([_NONE, *positions]),
            grades=np.concatenate([_NONE, *(self._grades[position] for position in indices)]),
            retrieved=np.array([self._retrieved[position] for position in indices], dtype=np.int64),
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
            displaced_top=sum(fact.displaced_top for fact in facts),
            queries_displaced_top=sum(fact.displaced_top > 0 for fact in facts),
            repeated_ranks=sum(fact.repeated_ranks for fact in facts),
            queries_rising=sum(fact.rises for fact in facts),
            queries_swapped=self._swapped + sum(fact.swapped for fact in facts),
        )


def _sorted_ranks(firsts: Iterable[tuple[int | None, int]]) -> dict[int | None, int]:
    """Ranks that occur, ascending, `None` last."""
    some = [(rank, count) for rank, count in firsts if count]
    return dict(sorted(some, key=lambda item: (item[0] is None, item[0])))


def report_rising(facts: Facts, path: str) -> Problem:
    """A note that scores look like ranks or distances, of which the lowest is the best."""
    return Problem.of(
        "scores-rise",
        path,
        rising=facts.queries_rising,
        queries=plural(facts.queries, "query", "queries"),
    )
