"""One pass over a run file: every problem with its line, and integers for the measures.

Of the run itself nothing is kept but the places of judged documents and a signature. A query's
lines may stand apart in the file: then it is read again, all rows are gathered, and the same
answer comes out.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from itertools import chain
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from heldout.errors import InputError, Problem, Severity
from heldout.ids import Digest
from heldout.trec.answers import SIGNATURE_DEPTH, Answer, Examiner, QueryFacts
from heldout.trec.problems import ProblemLog, show
from heldout.trec.ranking import JudgedRanking, Order
from heldout.trec.rows import COLUMNS, Form, Rows, detect_form, parse_block
from heldout.trec.streams import Block, Limits, Replay, TextReader

__all__ = ["Expected", "Facts", "Scan", "Signature", "check_run", "scan_run"]

_MANY = 2  # fewer queries say nothing of a whole set


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
        displaced_top: places among the first ten where the rank column has another document.
        queries_displaced_top: queries with such a place.
        repeated_ranks: rows whose rank an earlier row of the query has.
        queries_repeated_ranks: queries with such a row.
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
    """

    path: str
    digest: Digest
    form: Form | None
    order: Order
    problems: tuple[Problem, ...]
    counts: Mapping[str, int]
    facts: Facts
    answers: tuple[Mapping[str, JudgedRanking], Signature] | None

    @property
    def ok(self) -> bool:
        """Whether the run can be scored: there are no errors, perhaps notes."""
        return self.answers is not None

    @property
    def rankings(self) -> Mapping[str, JudgedRanking]:
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

    def _sure(self) -> tuple[Mapping[str, JudgedRanking], Signature]:
        if self.answers is None:
            raise InputError(p for p in self.problems if p.severity == "error")
        return self.answers


def check_run(
    source: BinaryIO,
    *,
    path: str,
    order: Order,
    expected: Expected | None = None,
    limits: Limits | None = None,
) -> Scan:
    """As `scan_run`, without judgments: `scan.rankings` then has only depths."""
    return scan_run(source, path=path, order=order, expected=expected, limits=limits)


def scan_run(
    source: BinaryIO,
    *,
    path: str,
    order: Order,
    qrels: Mapping[str, Mapping[str, int]] | None = None,
    expected: Expected | None = None,
    limits: Limits | None = None,
) -> Scan:
    """Read a run once and see it through judgments.

    Args:
        source: bytes of a run in MS MARCO or TREC form, plain or as gzip, bzip2 or zstd, told
            by content. Read to its end. If it is neither a file nor a `BytesIO`, received
            bytes are kept in memory until the end, in case a query's lines stand apart.
        path: its name for messages.
        order: how documents are ordered. Under `trec` and `trec9` the form must have scores.
        qrels: query -> document -> grade; `None` sees nothing.
        expected: what the run must be like.
        limits: how much is read.

    Returns:
        The scan. Errors in the file are in it and not raised.

    Raises:
        Exception: whatever reading `source` raises (a decrypting pipe's `TrustError`).
    """
    replay = Replay(source)
    rules = _Rules(
        path=path,
        order=order,
        qrels=qrels or {},
        expected=expected or Expected(),
        limits=limits or Limits(),
    )
    try:
        return _Pass(rules, replay).scan(gather=False)
    except _SplitQueryError:
        replay.rewind()
        return _Pass(rules, replay).scan(gather=True)


class _SplitQueryError(Exception):
    """A query's rows go on after those of another."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rules:
    path: str
    order: Order
    qrels: Mapping[str, Mapping[str, int]]
    expected: Expected
    limits: Limits


@dataclass(slots=True)
class _Tally:
    """What accumulates over queries."""

    documents: int = 0
    depths: list[int] = field(default_factory=list)
    facts: list[QueryFacts] = field(default_factory=list)


class _Pass:
    """One reading of a run."""

    def __init__(self, rules: _Rules, source: Replay) -> None:
        self.rules = rules
        self.log = ProblemLog(rules.limits.problems)
        self.reader = TextReader(source, path=rules.path, limits=rules.limits)
        self.form: Form | None = None
        self.answers: dict[bytes, Answer] = {}
        self.depths: dict[bytes, int] = {}
        self.examiner = Examiner(path=rules.path, order=rules.order, report=self.log.add)
        queries = rules.expected.queries
        self.known = None if queries is None else frozenset(queries)

    def scan(self, *, gather: bool) -> Scan:
        """The whole scan; a query's rows may stand apart if `gather`."""
        try:
            groups = self._groups()
            for rows in _gathered(groups) if gather else _joined(groups, self.rules.limits):
                self._take(rows)
            self._check_answered()
        except InputError as error:
            self.log.extend(error.problems)
        self.log.extend(self.reader.notes)
        return self._result()

    def _groups(self) -> Iterator[Rows]:
        blocks = self.reader.blocks()
        first = next(blocks)
        self.form = self._choose_form(first)
        for block in chain((first,), blocks):
            yield from parse_block(block, self.form, path=self.rules.path, report=self.log.add)

    def _choose_form(self, block: Block) -> Form:
        wanted: Form = "msmarco" if self.rules.order == "msmarco" else "trec"
        form = detect_form(block) or wanted
        if wanted == "trec" and form == "msmarco":
            raise InputError(
                Problem(
                    code="no-scores",
                    path=self.rules.path,
                    line=1,
                    found=f"{COLUMNS[form]} columns: query, document, rank",
                    expected=f"scores, which the order {self.rules.order} compares",
                    hint="order by rank with the order msmarco, or write 6 columns",
                )
            )
        return form

    def _take(self, rows: Rows) -> None:
        if rows.query in self.depths:
            raise _SplitQueryError
        query = rows.query.decode()
        self.depths[rows.query] = len(rows.lines)
        self._check_number(rows.lines[0])
        if self.known is not None and query not in self.known:
            self._unknown(rows)
            return
        if not self._check_depth(rows):
            return
        candidates = self.rules.expected.candidates
        answer = self.examiner.examine(
            rows,
            judged=self.rules.qrels.get(query),
            candidates=None if candidates is None else candidates.get(query),
        )
        if answer is not None:
            self.answers[rows.query] = answer

    def _check_number(self, line: int) -> None:
        most = self.rules.limits.queries
        if len(self.depths) > most:
            raise InputError(
                self._problem(
                    "too-many-queries", line, f"more than {most} queries", f"at most {most}"
                )
            )

    def _problem(
        self,
        code: str,
        line: int | None,
        found: str,
        expected: str,
        *,
        hint: str = "",
        severity: Severity = "error",
    ) -> Problem:
        return Problem(
            code=code,
            path=self.rules.path,
            line=line,
            found=found,
            expected=expected,
            hint=hint,
            severity=severity,
        )

    def _unknown(self, rows: Rows) -> None:
        self.log.add(
            self._problem(
                "unknown-query",
                rows.lines[0],
                f"query {show(rows.query)}, {len(rows.lines)} documents",
                "only queries of the query set",
                hint="ids are text: 007 is not 7; is this the run of another query set?",
            )
        )

    def _check_depth(self, rows: Rows) -> bool:
        """Report a wrong depth; whether the rows are there to be examined all the same."""
        expected, limit = self.rules.expected, self.rules.limits.documents
        most = limit if expected.max_depth is None else min(limit, expected.max_depth)
        fewest = expected.min_depth or 0
        depth = len(rows.lines)
        if fewest <= depth <= most:
            return True
        many = depth > most
        more = "more than " if depth > limit else ""
        self.log.add(
            self._problem(
                "too-many-documents" if many else "too-few-documents",
                rows.lines[most] if many else rows.lines[-1],
                f"{more}{min(depth, limit)} documents for {show(rows.query)}",
                f"at most {most} per query" if many else f"at least {fewest} per query",
                hint=f"cut each query to its best {most}" if many else "",
            )
        )
        return depth <= limit

    def _check_answered(self) -> None:
        path = self.rules.path
        if not self.depths and not self.log.errors:
            raise InputError(self._problem("empty-file", None, "no rows", "at least one row"))
        if self._strange():
            return
        complete = self.rules.expected.complete
        missing = [q for q in self.rules.expected.queries or () if q.encode() not in self.depths]
        for query in missing:
            self.log.add(
                Problem(
                    code="missing-query",
                    path=path,
                    found=f"no line for query {show(query)}",
                    expected="every query of the query set",
                    hint="" if complete else "it counts 0",
                    severity="error" if complete else "note",
                )
            )

    def _strange(self) -> bool:
        """Whether the run answers another query set: told once, and not query by query."""
        known = self.known or frozenset()
        if (
            len(self.depths) < _MANY
            or len(known) < _MANY
            or self.log.counts["unknown-query"] < len(self.depths)
        ):
            return False
        own, asked = (show(min(queries)) for queries in (self.depths, known))
        self.log.drop("unknown-query")
        self.log.add(
            self._problem(
                "wrong-query-set",
                None,
                f"0 of its {len(self.depths):,} queries, {own} for example, in the query set",
                f"answers to the {len(known):,} queries of the set, {asked} for example",
                hint="is this the run of another query set? ids are text: 007 is not 7",
            )
        )
        return True

    def _result(self) -> Scan:
        digest = self.reader.digest()
        return Scan(
            path=self.rules.path,
            digest=digest,
            form=self.form,
            order=self.rules.order,
            problems=self.log.problems(),
            counts=dict(sorted(self.log.counts.items())),
            facts=self._facts(),
            answers=None if self.log.errors else self._answers(),
        )

    def _answers(self) -> tuple[dict[str, JudgedRanking], Signature]:
        queries = sorted(self.answers)
        documents = np.zeros((len(queries), SIGNATURE_DEPTH), dtype=np.uint64)
        for row, query in enumerate(queries):
            top = self.answers[query].top
            documents[row, : len(top)] = top
        names = tuple(query.decode() for query in queries)
        rankings = [self.answers[query].ranking for query in queries]
        return (
            dict(zip(names, rankings, strict=True)),
            Signature(queries=names, documents=documents),
        )

    def _facts(self) -> Facts:
        facts = [answer.facts for answer in self.answers.values()]
        depths = self.depths.values()
        firsts = Counter(fact.first_rank for fact in facts)
        return Facts(
            lines=self.reader.lines,
            queries=len(depths),
            documents=sum(depths),
            min_depth=min(depths, default=None),
            max_depth=max(depths, default=None),
            first_ranks=dict(sorted(firsts.items(), key=lambda item: (item[0] is None, item[0]))),
            tied=sum(fact.tied for fact in facts),
            tied_top=sum(fact.tied_top for fact in facts),
            queries_tied=sum(fact.tied > 0 for fact in facts),
            queries_tied_top=sum(fact.tied_top > 0 for fact in facts),
            displaced_top=sum(fact.displaced_top for fact in facts),
            queries_displaced_top=sum(fact.displaced_top > 0 for fact in facts),
            repeated_ranks=sum(fact.repeated_ranks for fact in facts),
            queries_repeated_ranks=sum(fact.repeated_ranks > 0 for fact in facts),
        )


def _joined(groups: Iterator[Rows], limits: Limits) -> Iterator[Rows]:
    """Neighbouring groups of the same query as one; at most one row over the limit is kept."""
    current: Rows | None = None
    for rows in groups:
        if current is None:
            current = rows
        elif current.query == rows.query:
            current.extend(rows)
        else:
            yield current
            current = rows
        if len(current.lines) > limits.documents:
            current.cut(limits.documents + 1)
    if current is not None:
        yield current


def _gathered(groups: Iterator[Rows]) -> Iterator[Rows]:
    """Each query once with all its rows, kept as packed text until the file has ended."""
    packed: dict[bytes, bytearray] = {}
    for rows in groups:
        columns: tuple[Sequence[bytes], ...] = (rows.documents, rows.ranks)
        columns += (rows.scores,) if rows.scores else ()
        text = packed.setdefault(rows.query, bytearray())
        for line, *row in zip(rows.lines, *columns, strict=True):
            text += b"%d %b\n" % (line, b" ".join(row))
    for query in list(packed):
        yield _unpacked(query, bytes(packed.pop(query)))


def _unpacked(query: bytes, text: bytes) -> Rows:
    width = len(text[: text.index(b"\n")].split())
    tokens = text.split()
    scores = tokens[3::width] if width > len(("line", "document", "rank")) else []
    lines = list(map(int, tokens[0::width]))
    return Rows(query, lines, tokens[1::width], tokens[2::width], scores)
