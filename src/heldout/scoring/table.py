"""ScoreTable: one measure of many systems on the same queries. Missing is not zero.

A table of scores made ready for an analysis that draws queries: complete, and in one order. Queries
are put in the order of their names, so that a table whose rows somebody shuffled gives the same
draws. Scores of which lower ones are better change their sign.
"""

import csv
import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from hashlib import sha256
from io import StringIO
from itertools import pairwise
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from heldout.errors import InputError, Problem, plural, quote
from heldout.ids import Digest
from heldout.stats.exact import mean_of_sums, whole_numbers

_SHOWN = 5
_COUNT = re.compile(r"[0-9]{1,15}")
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
        queries: names, unique.
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
        queries: their order; by default in the order of first appearance.

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


def cut_table(table: ScoreTable, queries: AbstractSet[str]) -> ScoreTable:
    """The same systems on some of the queries, in the order of the table."""
    columns = [place for place, query in enumerate(table.queries) if query in queries]
    names = tuple(table.queries[place] for place in columns)
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
    values = np.ascontiguousarray(values + 0.0)  # -0.0 becomes 0.0, which is the same score
    known = np.array(known)
    known.setflags(write=False)
    values.setflags(write=False)
    content = repr((systems, queries)).encode() + values.astype("<f8").tobytes() + known.tobytes()
    digest = Digest(sha256(content).hexdigest())
    return ScoreTable(systems=systems, queries=queries, values=values, known=known, digest=digest)


def names_queries(head: str) -> bool:
    """Whether a column with this heading has the ids of queries."""
    return "".join(filter(str.isalnum, head.casefold())) in _QUERY


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
    reader = csv.reader(StringIO(text, newline=""), strict=True)
    try:
        rows = [(reader.line_num, row) for row in reader if row]
    except csv.Error as error:
        raise InputError.of(
            "scores-syntax", path, str(error), "a CSV table", line=reader.line_num
        ) from error
    if len(rows) <= 1:
        raise InputError.of(
            "scores-empty", path, f"{len(rows)} rows", "a header and a row per query"
        )
    (line, header), body = rows[0], rows[1:]
    if len(header) == 1 and (other := next((one for one in ";\t|" if one in header[0]), "")):
        found = f"columns separated by {other!r} in {header[0][:60]!r}"
        raise InputError.of("scores-syntax", path, found, "commas between columns", line=line)
    named = names_queries(header[0])
    systems = [name.strip() for name in header[named:]]
    problems = [
        *_check_header(systems, path, line),
        *_check_rows(body, width=len(header), named=named, path=path),
    ]
    if not problems and not named:
        problems += _check_ids(header, body, path, line)
    if problems:
        raise _refuse(problems)
    queries = [
        row[0].strip() if named else str(count) for count, (_, row) in enumerate(body, start=1)
    ]
    columns = {
        system: {query: _number(row[index]) for query, (_, row) in zip(queries, body, strict=True)}
        for index, system in enumerate(systems, start=int(named))
    }
    return table_of(columns, queries=queries)


def _number(cell: str) -> float | None:
    return float(cell) if cell.strip() else None


def _refuse(problems: Sequence[Problem]) -> InputError:
    """A file that is no table of scores at all has a problem in every cell; a few say as much."""
    counts: Counter[str] = Counter()
    shown = []
    for problem in problems:
        counts[problem.code] += 1
        if counts[problem.code] <= _SHOWN:
            shown.append(problem)
    return InputError(shown, counts=counts)


def _check_header(systems: list[str], path: str, line: int) -> Iterator[Problem]:
    repeated = sorted({name for name in systems if systems.count(name) > 1})
    if not systems or "" in systems or repeated:
        found = f"{', '.join(repeated)} twice" if repeated else repr(",".join(systems)[:100])
        yield Problem("scores-header", path, found, "a different name for each system", line=line)


def _check_ids(
    header: Sequence[str], body: Sequence[tuple[int, list[str]]], path: str, line: int
) -> Iterator[Problem]:
    """Refuse a first column that counts up in whole numbers, while others hold no such numbers."""
    first = [row[0].strip() for _, row in body]
    others = [cell.strip() for _, row in body for cell in row[1:]]
    if not all(map(_COUNT.fullmatch, first)) or all(map(_COUNT.fullmatch, filter(None, others))):
        return
    numbers = list(map(int, first))
    if len(numbers) > 1 and all(one < other for one, other in pairwise(numbers)):
        yield Problem(
            "scores-header",
            path,
            f"{header[0][:80]!r} over {numbers[0]}, {numbers[1]}, …, which count up like ids",
            "scores in each column but one of queries",
            _NAME_THEM,
            line=line,
        )


def _check_rows(
    body: list[tuple[int, list[str]]], *, width: int, named: bool, path: str
) -> Iterator[Problem]:
    seen: dict[str, int] = {}
    for line, row in body:
        if len(row) != width:
            expected = f"{width}, as in the header"
            yield Problem("scores-columns", path, f"{len(row)} columns", expected, line=line)
            continue
        query = row[0].strip()
        if named and query in seen:
            found = f"{query[:100]!r} again, first on line {seen[query]}"
            yield Problem("scores-repeated-query", path, found, "each query once", line=line)
        if named and query.casefold() in _SUMMARY:
            found = f"a row called {query!r}, which would count as one more query"
            yield Problem(
                "scores-summary", path, found, "a row for each query, no means", line=line
            )
        if named:
            seen.setdefault(query, line)
        for column, cell in enumerate(row[named:]):
            if not _is_score(cell):
                yield Problem(
                    "scores-number",
                    path,
                    repr(cell[:100]),
                    "a finite number, or nothing where a score is missing",
                    hint="" if named or column else _NAME_THEM,
                    line=line,
                )


def _is_score(cell: str) -> bool:
    try:
        number = _number(cell)
    except ValueError:
        return False
    # Python reads 1_0 as ten; a table that says so more likely has lost a comma
    return number is None or (math.isfinite(number) and "_" not in cell)


_NAMED = 3


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ScoreMatrix:
    """Scores of systems, the best mean first; means that differ by rounding keep the table's order.

    Attributes:
        systems: names.
        queries: names, sorted.
        means: of the scores as they are in the table.
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
    columns = sorted(range(len(table.queries)), key=table.queries.__getitem__)
    values = table.values[:, columns]
    if better == "lower":
        values = -values
    whole = whole_numbers(values, summed=len(columns))
    means = mean_of_sums(whole.values.sum(axis=1, dtype=np.float64), whole, len(columns))
    order = np.argsort(-means, kind="stable").tolist()
    systems = tuple(table.systems[row] for row in order)
    return ScoreMatrix(
        systems=systems,
        queries=tuple(table.queries[column] for column in columns),
        means=tuple(float(table.mean(system) or 0.0) for system in systems),
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
    places = np.argwhere(~table.known).tolist()
    named = ", ".join(
        f"{quote(table.systems[row])} on {quote(table.queries[column])}"
        for row, column in places[:_NAMED]
    )
    more = f", and {len(places) - _NAMED:,} more" if len(places) > _NAMED else ""
    yield Problem(
        "missing-scores",
        "scores",
        f"no score of {named}{more}",
        "a score of every system on every query",
        "leave out those systems or queries: missing is not zero",
    )
