"""ScoreTable: one measure of many systems on the same queries. Missing is not zero.

The queries of a table are in the order of their names, whatever order they came in, so that every
sum and every draw over them is the same. `score_matrix` makes a table ready for an analysis that
draws queries: complete, the best system first, scores of which lower ones are better negated.
"""

import csv
import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from hashlib import sha256
from itertools import pairwise
from operator import itemgetter
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from heldout.errors import InputError, Problem, plural, quote
from heldout.files.csv import restore
from heldout.ids import Digest
from heldout.stats.exact import mean_of_sums, whole_numbers
from heldout.trec.text import ProblemLog

_SHOWN = 10
_COUNT = re.compile(r"[0-9]{1,15}")
_LINE = re.compile(r"[^\r\n]*(?:\r\n?|\n)|[^\r\n]+\Z")
_NAME_THEM = "head the first column `query` if it names the queries"
_QUERY = frozenset(("query", "queryid", "qid", "topic", "topicid", "topicnumber", "qno"))
"""What heads a column of query ids; letters and digits alone, in lower case."""
_SUMMARY = frozenset(("all", "amean", "gmean", "mean", "average", "avg", "overall"))
"""What a row of means is called, as in the outputs of other tools: no query."""


Better = Literal["higher", "lower"]
"""Which scores are better."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ScoreTable:
    """Scores of systems on queries.

    Attributes:
        systems: names, unique.
        queries: names, unique, sorted.
        values: float64, shape (systems, queries), read-only; 0 where not `known`.
        known: bool, same shape, read-only; false where a system has no score for a query.
        digest: SHA-256 over all of the above, equal for equal tables.
    """

    systems: tuple[str, ...]
    queries: tuple[str, ...]
    values: NDArray[np.float64]
    known: NDArray[np.bool_]
    digest: Digest

    @property
    def complete(self) -> bool:
        """Whether every system has a score for every query."""
        return bool(self.known.all())

    def mean(self, system: str) -> float | None:
        """Mean over the queries where the system has a score; `None` where it has none."""
        row = self.systems.index(system)
        values = self.values[row][self.known[row]].tolist()
        return math.fsum(values) / len(values) if values else None


def table_of(
    scores: Mapping[str, Mapping[str, float | None]], *, queries: Sequence[str] | None = None
) -> ScoreTable:
    """A table from scores by system and query.

    Args:
        scores: finite score by system and query; `None` or absent is missing.
        queries: which ones; by default all that have a score.

    Raises:
        ValueError: a score is NaN or infinite, or a query is named twice.
    """
    named = dict.fromkeys(query for row in scores.values() for query in row)
    order = tuple(named if queries is None else queries)
    if len(set(order)) < len(order):
        raise ValueError("a query is named twice")
    rows = [[row.get(query) for query in order] for row in scores.values()]
    shape = (len(scores), len(order))
    known = np.array([value is not None for row in rows for value in row], np.bool_).reshape(shape)
    values = np.array([value or 0.0 for row in rows for value in row], np.float64).reshape(shape)
    return _table(tuple(scores), order, values, known)


def table_of_values(
    systems: Sequence[str],
    queries: Sequence[str],
    values: NDArray[np.float64],
    known: NDArray[np.bool_],
) -> ScoreTable:
    """A table from an array.

    Args:
        systems: names, unique.
        queries: names, unique.
        values: shape (systems, queries), finite; 0 where not `known`.
        known: same shape: whether there is a score.

    Raises:
        ValueError: a score is NaN or infinite.
    """
    return _table(tuple(systems), tuple(queries), values, known)


def cut_table(table: ScoreTable, queries: AbstractSet[str]) -> ScoreTable:
    """The same systems on some of the queries."""
    columns = [position for position, query in enumerate(table.queries) if query in queries]
    names = tuple(table.queries[position] for position in columns)
    return _table(table.systems, names, table.values[:, columns], table.known[:, columns])


def replace_scores(table: ScoreTable, values: NDArray[np.float64]) -> ScoreTable:
    """The same systems and queries with other scores; missing ones stay missing.

    Args:
        table: whose they are.
        values: shape (systems, queries), finite where a score is known.
    """
    return _table(table.systems, table.queries, np.where(table.known, values, 0.0), table.known)


def _table(
    systems: tuple[str, ...],
    queries: tuple[str, ...],
    values: NDArray[np.float64],
    known: NDArray[np.bool_],
) -> ScoreTable:
    if not np.isfinite(values).all():
        raise ValueError("a score is not finite")
    rising = all(before < after for before, after in pairwise(queries))
    order = slice(None) if rising else sorted(range(len(queries)), key=queries.__getitem__)
    queries = queries if rising else tuple(sorted(queries))
    # -0.0 becomes 0.0, which is the same score
    values = np.ascontiguousarray(values[:, order] + 0.0)
    known = np.array(known[:, order], order="C")
    known.setflags(write=False)
    values.setflags(write=False)
    content = sha256(repr((systems, queries)).encode())
    content.update(values.astype("<f8", copy=False).data.cast("B") if values.size else b"")
    content.update(known.data.cast("B") if known.size else b"")
    digest = Digest(content.hexdigest())
    return ScoreTable(systems=systems, queries=queries, values=values, known=known, digest=digest)


def names_queries(head: str) -> bool:
    """Check whether a column with this heading has the ids of queries."""
    return "".join(filter(str.isalnum, head.casefold())) in _QUERY


def is_summary(query: str) -> bool:
    """Check whether a row of this name has means, as in the outputs of other tools."""
    return query.casefold() in _SUMMARY


def parse_scores(text: str, *, path: str) -> ScoreTable:
    """Read a CSV table: a header of system names, then one row per query.

    A first column headed `query`, `qid` or `topic` names the queries; else they are numbered from
    1. An empty cell is a missing score.

    Args:
        text: the file's text.
        path: its name, for errors.

    Raises:
        InputError: the first problems of each code, with their lines, and how many there are.
            Codes `scores-syntax`, `scores-empty`, `scores-header`, `scores-columns`,
            `scores-number`, `scores-repeated-query`, `scores-summary`.
    """
    reader = csv.reader(map(itemgetter(0), _LINE.finditer(text)), strict=True)
    problems = ProblemLog(_SHOWN)
    rows: _Rows | None = None
    try:
        for cells in reader:
            if rows is None and cells:
                rows = _Rows(cells, problems, path=path, line=reader.line_num)
            elif rows is not None and cells:
                rows.add(cells, reader.line_num)
    except csv.Error as error:
        raise InputError.of(
            "scores-syntax", path, str(error), "a CSV table", line=reader.line_num
        ) from error
    if rows is None or not rows.count:
        found = "0 rows" if rows is None else "1 rows"
        raise InputError.of("scores-empty", path, found, "a header and a row per query")
    rows.check()
    problems.raise_errors()
    del reader, text  # the text of nine million scores takes more than twice their memory
    return rows.table()


class _Rows:
    """The rows of a CSV table, each turned into numbers as it comes."""

    def __init__(self, header: list[str], problems: ProblemLog, *, path: str, line: int) -> None:
        self._header, self._problems, self._path, self._line = header, problems, path, line
        self._named = names_queries(header[0])
        self._systems = [restore(name.strip()) for name in header[self._named :]]
        self._check_systems()
        self._lines: dict[str, int] = {}
        self._first: list[str] = []
        self._whole = True
        self._scores: list[NDArray[np.float64]] = []
        self.count = 0

    def add(self, cells: list[str], line: int) -> None:
        """A row below the header."""
        self.count += 1
        if len(cells) != len(self._header):
            expected = f"{len(self._header)}, as in the header"
            self._report("scores-columns", f"{len(cells)} columns", expected, line=line)
            return
        if self._named:
            self._add_query(restore(cells[0].strip()), line)
        else:
            self._first.append(cells[0].strip())
            others = (cell for cell in map(str.strip, cells[1:]) if cell)
            self._whole = self._whole and all(map(_COUNT.fullmatch, others))
        scores = self._read(cells[self._named :], line)
        if not self._problems.counts:
            self._scores.append(scores)

    def check(self) -> None:
        """Check what the rows together show.

        Raises:
            InputError: code `scores-syntax`: there is one column, with other separators in it.
        """
        head = self._header[0]
        if len(self._header) == 1 and (other := next((one for one in ";\t|" if one in head), "")):
            found = f"columns separated by {other!r} in {head[:60]!r}"
            path = self._path
            raise InputError.of(
                "scores-syntax", path, found, "commas between columns", line=self._line
            )
        if not self._named and not self._problems.counts:
            self._check_ids()

    def table(self) -> ScoreTable:
        """All of them; NaN is a missing score."""
        values = np.array(self._scores).T
        self._scores.clear()
        known = ~np.isnan(values)
        queries = tuple(self._lines) or tuple(map(str, range(1, self.count + 1)))
        return table_of_values(self._systems, queries, np.where(known, values, 0.0), known)

    def _report(self, code: str, found: str, expected: str, hint: str = "", *, line: int) -> None:
        self._problems.add(Problem(code, self._path, found, expected, hint, line))

    def _check_systems(self) -> None:
        names = self._systems
        repeated = sorted(name for name, count in Counter(names).items() if count > 1)
        if not names or "" in names or repeated:
            found = f"{', '.join(repeated)} twice" if repeated else repr(",".join(names)[:100])
            expected = "a different name for each system"
            self._report("scores-header", found, expected, line=self._line)

    def _add_query(self, query: str, line: int) -> None:
        first = self._lines.setdefault(query, line)
        if first != line:
            found = f"{query[:100]!r} again, first on line {first}"
            self._report("scores-repeated-query", found, "each query once", line=line)
        if is_summary(query):
            found = f"a row called {query!r}, which would count as one more query"
            expected = "a row for each query, no means"
            self._report("scores-summary", found, expected, line=line)

    def _read(self, cells: list[str], line: int) -> NDArray[np.float64]:
        """The numbers of a row, NaN where there is none."""
        try:
            scores = np.array(list(map(float, cells)))
        except ValueError:
            scores = np.array([np.nan])
        # Python reads 1_0 as ten; a table that says so more likely has lost a comma
        if np.isfinite(scores).all() and "_" not in "".join(cells):
            return scores
        for column, cell in enumerate(cells):
            if not _is_score(cell):
                self._report(
                    "scores-number",
                    repr(cell[:100]),
                    "a finite number, or nothing where a score is missing",
                    "" if self._named or column else _NAME_THEM,
                    line=line,
                )
        if self._problems.counts:
            return scores
        return np.array([float(cell) if cell.strip() else np.nan for cell in cells])

    def _check_ids(self) -> None:
        """Refuse a first column that counts up in whole numbers, where others hold no such ones."""
        if self._whole or not all(map(_COUNT.fullmatch, self._first)):
            return
        numbers = list(map(int, self._first))
        if len(numbers) > 1 and all(one < other for one, other in pairwise(numbers)):
            self._report(
                "scores-header",
                f"{self._header[0][:80]!r} over {numbers[0]}, {numbers[1]}, …, which count up like "
                "ids",
                "scores in each column but one of queries",
                _NAME_THEM,
                line=self._line,
            )


def _is_score(cell: str) -> bool:
    try:
        number = float(cell) if cell.strip() else 0.0
    except ValueError:
        return False
    return math.isfinite(number) and "_" not in cell


_NAMED = 3


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ScoreMatrix:
    """Scores of systems, the best mean first; means that differ by rounding keep the table's order.

    Attributes:
        systems: names.
        queries: names, sorted.
        means: of the scores as they are in the table; those that differ by rounding are equal.
        values: float64, shape (systems, queries), higher is better: negated where lower is.
        better: which scores of the table are better.
        digest: of the table.
    """

    systems: tuple[str, ...]
    queries: tuple[str, ...]
    means: tuple[float, ...]
    values: NDArray[np.float64]
    better: Better
    digest: Digest


def score_matrix(table: ScoreTable, *, better: Better = "higher") -> ScoreMatrix:
    """Check a table of scores and put it in order.

    Args:
        table: at least two systems on at least two queries, none missing.
        better: which scores are better.

    Raises:
        InputError: codes `too-few-systems`, `too-few-queries`, `missing-scores`.
    """
    problems = [*_too_few(table), *_missing(table)]
    if problems:
        raise InputError(problems)
    values = -table.values if better == "lower" else table.values
    whole = whole_numbers(values, summed=len(table.queries))
    means = mean_of_sums(whole.values.sum(axis=1, dtype=np.float64), whole, len(table.queries))
    order = np.argsort(-means, kind="stable").tolist()
    systems = tuple(table.systems[row] for row in order)
    return ScoreMatrix(
        systems=systems,
        queries=table.queries,
        means=tuple((0.0 - means if better == "lower" else means)[order].tolist()),
        values=np.ascontiguousarray(values[order]),
        better=better,
        digest=table.digest,
    )


def _too_few(table: ScoreTable) -> Iterator[Problem]:
    if len(table.systems) < 2:  # noqa: PLR2004 - as is expected
        found, hint = plural(len(table.systems), "system"), "a ranking has something to rank"
        yield Problem("too-few-systems", "scores", found, "at least two", hint)
    if len(table.queries) < 2:  # noqa: PLR2004 - as is expected
        found = plural(len(table.queries), "query", "queries")
        hint = "one query says nothing of how far scores vary"
        yield Problem("too-few-queries", "scores", found, "at least two", hint)


def _missing(table: ScoreTable) -> Iterator[Problem]:
    if table.complete:
        return
    positions = np.argwhere(~table.known).tolist()
    named = ", ".join(
        f"{quote(table.systems[row])} on {quote(table.queries[column])}"
        for row, column in positions[:_NAMED]
    )
    more = f", and {len(positions) - _NAMED:,} more" if len(positions) > _NAMED else ""
    yield Problem.of("missing-scores", "scores", f"no score of {named}{more}")
