"""Runs and judgments that are in memory already: data frames, and mappings as pytrec_eval has them.

They are checked as files are, and seen through judgments by the same orders. A row's number stands
where a file has its line.
"""

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from decimal import Decimal
from hashlib import sha256
from itertools import chain, islice
from math import isfinite, isnan
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from heldout.errors import InputError, Problem
from heldout.files.frames import check_texts, code_texts, find_column, open_frame, read_numbers
from heldout.ids import Digest
from heldout.trec.orders import Order
from heldout.trec.qrels import HIGHEST_GRADE, Grades, Judgments, Qrels, scale_grades
from heldout.trec.ranking import Rankings, equal_as_float32, sort_keys
from heldout.trec.reading.streams import Limits
from heldout.trec.scans import Coverage, Expected, Facts, Scan, Signature, report_rising
from heldout.trec.text import ProblemLog, show

if TYPE_CHECKING:
    from heldout.files.frames import Frame, Texts

QUERY = ("qid", "query_id")
"""Names that a column of query ids may have: those of PyTerrier and ir_measures."""
DOCUMENT = ("docno", "doc_id")
GRADE = ("label", "relevance")
_HEAD = 200
_TOP = 10

Mask = NDArray[np.bool_]
Integers = NDArray[np.int64]
Floats = NDArray[np.float64]


class Documents(Protocol):
    """The ids of a run's documents, a row after the other."""

    def take(self, rows: Integers) -> list[str]:
        """Those of some rows."""

    def among(self, wanted: AbstractSet[str]) -> Integers:
        """The rows, ascending, whose document is one of these."""


@dataclass(frozen=True, slots=True)
class _Listed:
    """Ids in a list."""

    ids: Sequence[str]

    def take(self, rows: Integers) -> list[str]:
        return [self.ids[row] for row in rows.tolist()]

    def among(self, wanted: AbstractSet[str]) -> Integers:
        return np.flatnonzero(np.fromiter(map(wanted.__contains__, self.ids), bool, len(self.ids)))


@dataclass(frozen=True, slots=True)
class _Column:
    """Ids in a column of a frame."""

    ids: "Texts"

    def take(self, rows: Integers) -> list[str]:
        found: list[str] = self.ids[rows.tolist()].to_list()
        return found

    def among(self, wanted: AbstractSet[str]) -> Integers:
        return np.flatnonzero(self.ids.is_in(list(wanted)).to_numpy())


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MemoryRun:
    """The rows of a run, those of a query together; from `run_from_frame` or `run_from_mapping`.

    Attributes:
        name: the run's.
        queries: answered queries, each once.
        starts: int64, shape (queries + 1,); rows `starts[i]` to `starts[i + 1]` are of query i.
        documents: of each row; each once in a query.
        scores: float64, shape (rows,), finite; `None` where there are ranks alone.
        ranks: int64, same shape; `None` where there are scores alone.
    """

    name: str
    queries: tuple[str, ...]
    starts: Integers
    documents: Documents
    scores: Floats | None
    ranks: Integers | None

    def __str__(self) -> str:
        return self.name

    @property
    def rows(self) -> int:
        """How many."""
        return int(self.starts[-1])

    def columns(self) -> dict[str, list[Any]]:
        """All rows as columns, named as in ir_measures and PyTerrier."""
        every = np.arange(self.rows)
        lengths = np.diff(self.starts).tolist()
        queries = zip(self.queries, lengths, strict=True)
        columns: dict[str, list[Any]] = {
            "qid": [query for query, length in queries for _ in range(length)],
            "docno": self.documents.take(every),
        }
        if self.scores is not None:
            columns["score"] = self.scores.tolist()
        if self.ranks is not None:
            columns["rank"] = self.ranks.tolist()
        return columns


def run_from_mapping(run: Mapping[str, Mapping[str, float]], *, name: str) -> MemoryRun:
    """A run as pytrec_eval has it: query -> document -> score.

    Raises:
        InputError: codes `empty-file`, `frame-type`, `score-nan`, `score-infinite`.
    """
    listed = {query: scores for query, scores in run.items() if scores}
    _refuse_odd_ids(listed, name)
    values = chain.from_iterable(scores.values() for scores in listed.values())
    try:
        scores = np.fromiter(values, np.float64)
    except (TypeError, ValueError) as error:
        raise InputError.of("frame-type", name, str(error), "numbers as scores") from None
    found = MemoryRun(
        name=name,
        queries=tuple(listed),
        starts=np.cumsum([0, *map(len, listed.values())], dtype=np.int64),
        documents=_Listed(list(chain.from_iterable(listed.values()))),
        scores=scores,
        ranks=None,
    )
    _check_scores(found)
    return found


def _refuse_odd_ids(rows: Mapping[Any, Mapping[Any, Any]], name: str) -> None:
    """Refuse ids of queries and documents that are no text."""
    if set(map(type, chain(rows, *rows.values()))) == {str}:
        return  # nearly always, and much faster than one by one
    odd = next((one for one in chain(rows, *rows.values()) if not isinstance(one, str)), None)
    if odd is not None:
        found = f"{odd!r:.60} of type {type(odd).__name__}"
        raise InputError.of("frame-type", name, found, "ids as text", "007 is not 7: use strings")


def run_from_frame(frame: Any, *, name: str) -> MemoryRun:
    """A run in the columns of PyTerrier or ir_measures.

    Args:
        frame: a column `qid` or `query_id`, one `docno` or `doc_id`, and `score`, `rank` or both;
            others are ignored. A query's rows may stand apart.
        name: the run's, for messages.

    Raises:
        InputError: codes `frame-columns`, `frame-type`, `frame-missing`, `frame-number`,
            `looks-like-qrels`, `empty-file`, `score-nan`, `score-infinite`, `repeated-document`.
    """
    table = open_frame(frame, path=name)
    _refuse_swapped(table, name, run=True)
    ids = _column(table, QUERY, name)
    documents = _column(table, DOCUMENT, name)
    score = find_column(table, ("score",), path=name, required=False)
    rank = find_column(table, ("rank",), path=name, required=score is None)
    scores = None if score is None else read_numbers(score, path=name)
    ranks = None if rank is None else read_numbers(rank, path=name, whole=True).astype(np.int64)
    queries, starts, rows = _group(ids)
    codes = code_texts(documents)
    if rows is not None:
        documents, codes = documents[rows.tolist()], codes[rows]
        scores = None if scores is None else scores[rows]
        ranks = None if ranks is None else ranks[rows]
    found = MemoryRun(
        name=name,
        queries=queries,
        starts=starts,
        documents=_Column(documents),
        scores=scores,
        ranks=ranks,
    )
    _check_scores(found)
    _check_distinct(found, codes, rows)
    return found


def _column(table: "Frame", names: Sequence[str], path: str) -> "Texts":
    column = find_column(table, names, path=path)
    if column is None:
        raise AssertionError(names)
    return check_texts(column, path=path)


def _refuse_swapped(table: "Frame", path: str, *, run: bool) -> None:
    """Say so where judgments are given as a run, or a run as judgments."""
    graded = any(name in table.columns for name in GRADE)
    listed = any(name in table.columns for name in ("score", "rank"))
    if graded == listed or graded != run:
        return
    code, found, expected = (
        ("looks-like-qrels", "grades and neither scores nor ranks", "a run: score or rank")
        if run
        else ("looks-like-a-run", "scores or ranks and no grades", f"a column {' or '.join(GRADE)}")
    )
    raise InputError.of(code, path, found, expected, "were the run and the judgments swapped?")


def _group(ids: "Texts") -> tuple[tuple[str, ...], Integers, Integers | None]:
    """Queries, where their rows begin, and the rows in that order; `None` if they stand so."""
    count = len(ids)
    if not count:
        return (), np.zeros(1, np.int64), None
    changes = (ids != ids.shift(1)).fill_null(value=True).to_numpy()
    firsts = np.flatnonzero(changes).astype(np.int64)
    names: list[str] = ids[firsts.tolist()].to_list()
    starts = np.append(firsts, count)
    positions: dict[str, int] = {}
    parts = np.array([positions.setdefault(name, len(positions)) for name in names], np.int64)
    if len(positions) == len(names):
        return tuple(names), starts, None
    of_row = np.repeat(parts, np.diff(starts))
    lengths = np.bincount(of_row, minlength=len(positions))
    starts = np.concatenate(([0], np.cumsum(lengths, dtype=np.int64)))
    return tuple(positions), starts, np.argsort(of_row, kind="stable").astype(np.int64)


def _check_scores(run: MemoryRun) -> None:
    if not run.rows:
        raise InputError.of("empty-file", run.name, "no rows", "at least one row")
    if run.scores is None or bool(np.isfinite(run.scores).all()):
        return
    row = int(np.argmax(~np.isfinite(run.scores)))
    value = float(run.scores[row])
    code = "score-nan" if isnan(value) else "score-infinite"
    (document,) = run.documents.take(np.array([row]))
    found = f"score {value} for {show(document)}"
    raise InputError.of(code, run.name, found, "a finite number", line=row + 1)


def _check_distinct(run: MemoryRun, codes: NDArray[Any], rows: Integers | None) -> None:
    """Refuse a document that a query has twice."""
    lengths = np.diff(run.starts)
    width = int(lengths[0])
    if bool((lengths == width).all()):  # one sort of a block is three times as fast
        block = np.sort(codes.reshape(-1, width), axis=1)
        if not bool((block[:, 1:] == block[:, :-1]).any()):
            return
    of_row = np.repeat(np.arange(len(lengths)), lengths)
    order = np.lexsort((codes, of_row))
    same = (codes[order][1:] == codes[order][:-1]) & (of_row[order][1:] == of_row[order][:-1])
    positions = np.flatnonzero(same)
    firsts, seconds = (run.documents.take(order[positions + step]) for step in (0, 1))
    problems = [
        _repeated(run, int(order[position + 1]), first, rows)
        for position, first, second in zip(positions.tolist(), firsts, seconds, strict=True)
        if first == second
    ]
    if problems:
        problems.sort(key=lambda problem: problem.line or 0)
        raise InputError(problems[:_TOP], counts={"repeated-document": len(problems)})


def _repeated(run: MemoryRun, row: int, document: str, rows: Integers | None) -> Problem:
    query = run.queries[int(np.searchsorted(run.starts, row, side="right")) - 1]
    line = int(row if rows is None else rows[row]) + 1
    again = f"{show(document)} again for {show(query)}"
    return Problem.of("repeated-document", run.name, again, line=line)


def scan_memory(
    run: MemoryRun,
    *,
    order: Order | None,
    qrels: Judgments | None = None,
    expected: Expected | None = None,
    limits: Limits | None = None,
) -> Scan:
    """See a run through judgments, as `scan_run` sees a file.

    Args:
        run: its rows.
        order: how documents are ordered; `None` for `trec` where there are scores, else `msmarco`.
        qrels: query -> document -> grade; `None` sees nothing.
        expected: what the run must be like.
        limits: how many problems are listed.

    Returns:
        The scan, without a digest and without a signature. What `expected` refuses is in it and not
        raised.

    Raises:
        InputError: codes `no-scores`, `rank-repeated`: the order cannot be applied.
    """
    chosen: Order = order or ("msmarco" if run.scores is None else "trec")
    limits = limits or Limits()
    log = ProblemLog(limits.problems)
    coverage = Coverage(expected or Expected(), path=run.name, limits=limits, log=log)
    for position, query in enumerate(run.queries):
        coverage.admit(
            query.encode(), range(int(run.starts[position]) + 1, int(run.starts[position + 1]) + 1)
        )
    coverage.check_answered()
    positions, facts = _order_rows(run, chosen)
    if 2 * facts.queries_rising > facts.queries:
        log.add(report_rising(facts, run.name))
    rankings = _see(run, positions, qrels or {})
    none = Signature(queries=rankings.queries, documents=np.zeros((len(run.queries), 0), np.uint64))
    return Scan(
        path=run.name,
        digest=Digest(""),
        form=None,
        order=chosen,
        problems=log.problems(),
        counts=dict(sorted(log.counts.items())),
        facts=facts,
        answers=None if log.errors else (rankings, none),
        head=_head(run),
    )


def list_documents(
    run: MemoryRun, order: Order, queries: AbstractSet[str]
) -> Mapping[str, tuple[str, ...]]:
    """Return whole lists, as a scan lists them of a file.

    Args:
        run: its rows, which were scanned without errors.
        order: how documents are ordered, as the scan says.
        queries: whose lists are wanted.

    Returns:
        Query -> documents, best first; only queries that it answers.
    """
    positions, _ = _order_rows(run, order)
    found: dict[str, tuple[str, ...]] = {}
    for at, query in enumerate(run.queries):
        if query in queries:
            start, end = int(run.starts[at]), int(run.starts[at + 1])
            rows = np.arange(start, end)
            if positions is not None:
                rows = rows[np.argsort(positions[start:end])]
            found[query] = tuple(run.documents.take(rows))
    return found


def _head(run: MemoryRun) -> dict[str, tuple[str, ...]]:
    rows = np.arange(min(run.rows, _HEAD))
    documents = iter(run.documents.take(rows))
    lengths = zip(run.queries, np.diff(run.starts).tolist(), strict=True)
    head = ((query, tuple(islice(documents, length))) for query, length in lengths)
    return {query: listed for query, listed in islice(head, _HEAD) if listed}


def _keys(run: MemoryRun, order: Order) -> Floats:
    """Return what is compared: higher is better."""
    if order == "msmarco":
        if run.ranks is None:
            raise InputError.of("no-ranks", run.name)
        return -run.ranks.astype(np.float64)
    if run.scores is None:
        raise InputError.of("no-scores", run.name, "ranks alone", order=order)
    return sort_keys(run.scores, order)


def _order_rows(run: MemoryRun, order: Order) -> tuple[Integers | None, Facts]:
    """The place of each row in its query, from 1; `None` if rows stand in order. What is odd."""
    keys = _keys(run, order)
    falls = keys[1:] < keys[:-1]
    falls[run.starts[1:-1] - 1] = True  # from one query to the next
    rising = 0 if order == "msmarco" else _count_rising(run, straight=bool(falls.all()))
    facts = replace(_facts(run), queries_rising=rising)
    if falls.all() and order != "trec":
        return None, facts
    lengths = np.diff(run.starts)
    if falls.all():
        alike = equal_as_float32(keys)
        alike[run.starts[1:-1] - 1] = False
        close = np.flatnonzero(alike)
        rows: NDArray[np.intp] = np.arange(run.rows)
        of_row = np.repeat(np.arange(len(lengths)), lengths) if len(close) else rows
        return None, replace(facts, queries_swapped=_count_swapped(run, close, rows, of_row))
    of_row = np.repeat(np.arange(len(lengths)), lengths)
    rows = np.lexsort((-keys, of_row))
    ordered = keys[rows]
    joined = of_row[1:] == of_row[:-1]  # neighbours of one query
    tied = (ordered[1:] == ordered[:-1]) & joined
    if order == "msmarco" and tied.any():
        row = int(rows[int(np.argmax(tied)) + 1])
        found, expected = f"rank {-keys[row]:g} again", "each rank once per query"
        raise InputError.of("rank-repeated", run.name, found, expected, line=row + 1)
    _break_ties(run, rows, tied)
    position = np.arange(run.rows, dtype=np.int64) - np.repeat(run.starts[:-1], lengths) + 1
    positions = np.empty(run.rows, np.int64)
    positions[rows] = position
    facts = _add_ties(facts, tied, tied & (position[:-1] <= _TOP), of_row[:-1])
    if order == "trec":
        close = np.flatnonzero(equal_as_float32(ordered) & (ordered[1:] != ordered[:-1]) & joined)
        facts = replace(facts, queries_swapped=_count_swapped(run, close, rows, of_row))
    return positions, facts


def _break_ties(run: MemoryRun, rows: NDArray[np.intp], tied: Mask) -> None:
    """Order documents of equal scores by id, descending bytewise; changes `rows`."""
    if not tied.any():
        return
    bounds = np.flatnonzero(np.diff(np.concatenate(([False], tied, [False])).astype(np.int8)))
    groups = [(start, end + 1) for start, end in bounds.reshape(-1, 2).tolist()]
    members = np.concatenate([np.arange(start, end) for start, end in groups])
    ids = dict(zip(members.tolist(), run.documents.take(rows[members]), strict=True))
    for start, end in groups:
        before = rows[start:end].copy()
        best = sorted(range(start, end), key=lambda position: ids[position].encode(), reverse=True)
        rows[start:end] = before[np.array(best) - start]


def _facts(run: MemoryRun) -> Facts:
    """Counts of a run without ties."""
    lengths = np.diff(run.starts)
    return Facts(
        lines=run.rows,
        queries=len(lengths),
        documents=run.rows,
        min_depth=int(lengths.min()),
        max_depth=int(lengths.max()),
        first_ranks=_first_ranks(run),
    )


def _add_ties(facts: Facts, tied: Mask, top: Mask, of_row: Integers) -> Facts:
    """With pairs of equal scores: all of them, and those among the first ten."""
    return replace(
        facts,
        tied=int(tied.sum()),
        tied_top=int(top.sum()),
        queries_tied=len(np.unique(of_row[tied])),
    )


def _first_ranks(run: MemoryRun) -> Mapping[int | None, int]:
    if run.ranks is None:
        return {None: len(run.queries)}
    lowest, counts = np.unique(np.minimum.reduceat(run.ranks, run.starts[:-1]), return_counts=True)
    return dict(zip(lowest.tolist(), counts.tolist(), strict=True))


def _count_swapped(
    run: MemoryRun, close: NDArray[np.intp], rows: NDArray[np.intp], of_row: Integers
) -> int:
    """Queries in which neighbours that are equal as float32 alone stand by id.

    Args:
        run: its rows.
        close: places of the first of two such neighbours, in the order of `rows`.
        rows: from best to worst, query after query.
        of_row: the query of each place.
    """
    above, below = (run.documents.take(rows[close + step]) for step in (0, 1))
    pairs = zip(close.tolist(), above, below, strict=True)
    return len({int(of_row[at]) for at, one, other in pairs if other.encode() > one.encode()})


def _count_rising(run: MemoryRun, *, straight: bool) -> int:
    """Queries of three documents or more whose scores rise with the rank, or count the rows.

    Args:
        run: its rows.
        straight: whether scores fall from row to row, so that only odd ranks can rise with them.
    """
    scores, starts = run.scores, run.starts
    long = np.diff(starts) > 2  # noqa: PLR2004 - as in the docstring
    if scores is None or not long.any():
        return 0
    if straight:
        ranks = run.ranks
        if ranks is None or not (ranks[starts[:-1]] > ranks[starts[1:] - 1])[long].any():
            return 0
    lengths = np.diff(starts)
    position = np.arange(run.rows) - np.repeat(starts[:-1], lengths) + 1
    rises = np.logical_and.reduceat(scores == position, starts[:-1])
    if run.ranks is not None:
        rows = np.lexsort((run.ranks, np.repeat(np.arange(len(lengths)), lengths)))
        up = np.concatenate(([True], scores[rows][1:] > scores[rows][:-1]))
        up[starts[:-1]] = True
        rises |= np.logical_and.reduceat(up, starts[:-1])
    return int((rises & long).sum())


def _see(run: MemoryRun, positions: Integers | None, qrels: Judgments) -> Rankings:
    """The judged documents with their places and grades."""
    wanted = frozenset(chain.from_iterable(qrels.get(query, ()) for query in run.queries))
    rows = run.documents.among(wanted) if wanted else np.empty(0, np.int64)
    of_hit = np.searchsorted(run.starts, rows, side="right") - 1
    named = zip(of_hit.tolist(), run.documents.take(rows), strict=True)
    grades = [qrels.get(run.queries[hit], {}).get(document) for hit, document in named]
    judged = np.array([grade is not None for grade in grades], np.bool_)
    values = np.array([grade for grade in grades if grade is not None], np.int64)
    rows, of_hit = rows[judged], of_hit[judged]
    at = rows - run.starts[of_hit] + 1 if positions is None else positions[rows]
    order = sorted(range(len(run.queries)), key=run.queries.__getitem__)
    position = np.empty(len(order), np.int64)
    position[order] = np.arange(len(order))
    best = np.lexsort((at, position[of_hit]))
    counts = np.bincount(position[of_hit], minlength=len(order))
    return Rankings(
        queries=tuple(run.queries[at] for at in order),
        starts=np.concatenate(([0], np.cumsum(counts, dtype=np.int64))),
        positions=at[best],
        grades=values[best],
        retrieved=np.diff(run.starts)[order],
    )


def qrels_from_frame(frame: Any, *, name: str, whole_for: str | None = "") -> Qrels:
    """Judgments in the columns of PyTerrier or ir_measures.

    Args:
        frame: a column `qid` or `query_id`, one `docno` or `doc_id`, one `label` or `relevance`.
        name: what they are called in messages.
        whole_for: as for `read_qrels`.

    Raises:
        InputError: codes `frame-columns`, `frame-type`, `frame-missing`, `frame-number`,
            `looks-like-a-run`, and those of `qrels_from_mapping`.
    """
    table = open_frame(frame, path=name)
    _refuse_swapped(table, name, run=False)
    queries = _column(table, QUERY, name).to_list()
    documents = _column(table, DOCUMENT, name).to_list()
    column = find_column(table, GRADE, path=name)
    if column is None:
        raise AssertionError(GRADE)
    numbers = read_numbers(column, path=name)
    if whole_for is None and np.isfinite(numbers).all():
        grades: list[Any] = [
            int(n) if n.is_integer() else Decimal(repr(n)) for n in numbers.tolist()
        ]
    else:
        grades = read_numbers(column, path=name, whole=True).astype(np.int64).tolist()
    judgments: Grades = {}
    rows = zip(queries, documents, grades, strict=True)
    for number, (query, document, grade) in enumerate(rows, start=1):
        before = judgments.setdefault(query, {}).setdefault(document, grade)
        if before != grade:
            again = f"{show(document)} for {show(query)} again, {grade} after {before}"
            raise InputError.of("conflicting-judgment", name, again, line=number)
    return qrels_from_mapping(judgments, name=name, whole_for=whole_for)


def qrels_from_mapping(
    judgments: Mapping[str, Mapping[str, int | Decimal]], *, name: str, whole_for: str | None = ""
) -> Qrels:
    """Judgments as pytrec_eval has them: query -> document -> grade.

    A float with a fraction is refused always: it may be a score of a run that was given in place of
    the judgments. Only a `Decimal` may have one.

    Args:
        judgments: the grades.
        name: what they are called in messages.
        whole_for: as for `read_qrels`.

    Raises:
        InputError: codes `empty-file`, `frame-type`, `grade-not-a-number`, `grade-too-large`.
    """
    rows: Iterable[Any] = judgments.values()
    odd = next((one for one in rows if not isinstance(one, Mapping)), None)
    if odd is not None:
        found = f"{type(odd).__name__} as the judgments of a query"
        raise InputError.of("frame-type", name, found, "document -> grade")
    checked = {query: dict(grades) for query, grades in judgments.items() if grades}
    if not checked:
        raise InputError.of("empty-file", name, "no judgments", "at least one judgment")
    _refuse_odd_ids(checked, name)
    for query, grades in checked.items():
        values: Iterable[Any] = grades.values()
        if set(map(type, values)) == {int} and max(map(abs, values)) <= HIGHEST_GRADE:
            continue
        for document, grade in grades.items():
            if problem := _check_grade(
                grade, f"{show(document)} for {show(query)}", name, whole_for=whole_for
            ):
                raise InputError(problem)
            grades[document] = int(grade) if grade == int(grade) else grade
    content = repr(sorted((query, sorted(grades.items())) for query, grades in checked.items()))
    scaled, scale = scale_grades(checked)
    digest = Digest(sha256(content.encode()).hexdigest())
    return Qrels(judgments=scaled, digest=digest, scale=scale)


def _check_grade(grade: object, where: str, name: str, *, whole_for: str | None) -> Problem | None:
    whole = isinstance(grade, int | np.integer) and not isinstance(grade, bool)
    if isinstance(grade, float | Decimal) and isfinite(grade):
        decimal = whole_for is None and isinstance(grade, Decimal)
        whole = decimal or grade == int(grade)
    if not whole:
        hint = "a run has scores: were the run and the judgments swapped?"
        found = f"{grade!r:.60} as the grade of {where}"
        expected = f"a whole number{whole_for and f', which {whole_for} needs'}"
        return Problem("grade-not-a-number", name, found, expected, hint)
    if abs(int(grade)) > HIGHEST_GRADE:  # type: ignore[call-overload]  # a number, as was checked
        return Problem.of("grade-too-large", name, f"grade {grade} of {where}", most=HIGHEST_GRADE)
    return None
