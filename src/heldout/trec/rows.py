"""A run's text as rows: its format, its columns, and what may be wrong with one query's rows."""

import re
from collections.abc import Callable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from typing import Literal, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

from heldout.errors import Problem, plural
from heldout.trec import orders, ranking
from heldout.trec.scanning.scanners import Columns, Segment
from heldout.trec.text import (
    LEFT_OUT,
    check_line,
    classify_score,
    is_clean,
    is_regular,
    names_query,
    parse_integer,
    parse_integers,
    parse_scores,
    show,
)

Form = Literal["msmarco", "trec"]
COLUMNS: dict[Form, int] = {"msmarco": 3, "trec": 6}
_LAYOUT: dict[Form, str] = {
    "msmarco": "3 columns: query, document, rank",
    "trec": "6 columns: query, Q0, document, rank, score, tag",
}
_TOKEN = re.compile(rb"[^ \t\n]+")
_NEWLINE = ord("\n")


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """Rows of one query, in the order of the file; columns as they stand there.

    Attributes:
        query: id in UTF-8.
        lines: 1-based line of each row.
        documents: ids in UTF-8.
        ranks: the rank column.
        scores: the score column; empty in the MS MARCO form, or where nobody needs it.
    """

    query: bytes
    lines: Sequence[int]
    documents: Sequence[bytes]
    ranks: Sequence[bytes]
    scores: Sequence[bytes]


class Lazy(Sequence[bytes]):
    """Tokens that are cut out of their text only when somebody asks."""

    def __init__(self, cut: Callable[[int], bytes], length: int) -> None:
        self._cut = cut
        self._length = length

    @overload
    def __getitem__(self, index: int) -> bytes: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[bytes]: ...
    def __getitem__(self, index: int | slice) -> bytes | Sequence[bytes]:
        if isinstance(index, slice):
            return [self._cut(row) for row in range(*index.indices(self._length))]
        return self._cut(range(self._length)[index])

    def __len__(self) -> int:
        return self._length


def cut_rows(text: bytes, segment: Segment, columns: Columns, numbers: Sequence[int]) -> Rows:
    """The rows of a segment whose columns a scanner has kept.

    Args:
        text: what was scanned.
        segment: not broken.
        columns: its own.
        numbers: 1-based line of each row.
    """
    starts = columns.starts.tolist()
    ends = (columns.starts + columns.lengths).tolist()

    def rank(row: int) -> bytes:
        found = _TOKEN.search(text, ends[row])
        return found.group() if found else b""

    return Rows(
        query=text[segment.query : segment.query + segment.query_length],
        lines=numbers,
        documents=[text[start:end] for start, end in zip(starts, ends, strict=True)],
        ranks=Lazy(rank, segment.rows),
        scores=(),
    )


def parse_rows(
    text: bytes,
    numbers: Sequence[int],
    form: Form,
    *,
    path: str,
    report: Callable[[Problem], None],
) -> Rows | None:
    """The rows of one query; `None` if no line is one.

    Args:
        text: whole lines; those that are rows have the same query.
        numbers: 1-based line of each.
        form: fixes the number of columns.
        path: the file, for messages.
        report: receives `wrong-columns`, `bad-utf8`, `control-character`, and the notes
            `blank-line` and `comment-line`. Lines with a problem give no row.
    """
    columns = COLUMNS[form]
    tokens, lines = text.split(), numbers
    ends = np.flatnonzero(np.frombuffer(text, dtype=np.uint8) == _NEWLINE)
    if not (is_clean(text) and is_regular(text, ends, len(tokens), columns)):
        tokens, lines = _sift(text, numbers, form, path, report)
    if not lines:
        return None
    document = 2 if form == "trec" else 1
    return Rows(
        query=tokens[0],
        lines=lines,
        documents=tokens[document::columns],
        ranks=tokens[document + 1 :: columns],
        scores=tokens[4::columns] if form == "trec" else [],
    )


def _sift(
    text: bytes,
    numbers: Sequence[int],
    form: Form,
    path: str,
    report: Callable[[Problem], None],
) -> tuple[list[bytes], list[int]]:
    """Tokens and numbers of the lines that are fit to use; reports the others."""
    selected: list[bytes] = []
    lines: list[int] = []
    for number, line in zip(numbers, text[:-1].split(b"\n"), strict=True):
        problem = _line_problem(line, form, path, number)
        if problem is None:
            selected += line.split()
            lines.append(number)
        else:
            report(problem)
    return selected, lines


def _line_problem(line: bytes, form: Form, path: str, number: int) -> Problem | None:
    problem = check_line(line, path=path, number=number)
    tokens = line.split()
    if problem is not None or len(tokens) == COLUMNS[form]:
        return problem
    found = f"{plural(len(tokens), 'column')} in {show(line)}"
    hint = _columns_hint(tokens, form)
    return Problem("wrong-columns", path, found, _LAYOUT[form], hint, number)


def _columns_hint(tokens: Sequence[bytes], form: Form) -> str:
    if tokens and names_query(tokens[0]):
        return LEFT_OUT
    if form == "msmarco":
        return ""
    if len(tokens) > COLUMNS[form]:
        return "ids and run tags have no spaces"
    return f"or {_LAYOUT['msmarco']}, as for MS MARCO, in every line"


_SCORES_DECIDE = "the rank column is not used: scores decide"
_RANKS_DECIDE = "the score column is not used: ranks decide"


@dataclass(frozen=True, slots=True, kw_only=True)
class RowChecks:
    """Checks the columns of one query's rows, and words what is wrong.

    Attributes:
        path: the file, for messages.
        order: decides which columns must be right.
        report: receives every problem.
    """

    path: str
    order: orders.Order
    report: Callable[[Problem], None]

    def distinct(self, rows: Rows) -> bool:
        """Check whether no document is there twice; reports those that are."""
        if len(set(rows.documents)) == len(rows.documents):
            return True
        for document, line, first in _repeats(rows.documents, rows.lines):
            again = f"{show(document)} again for {show(rows.query)}, first on line {first}"
            self.report(Problem.of("repeated-document", self.path, again, line=line))
        return False

    def only_candidates(self, rows: Rows, candidates: AbstractSet[str]) -> bool:
        """Check whether every document is a candidate; reports those that are not."""
        clean = True
        for document, line in zip(rows.documents, rows.lines, strict=True):
            if document.decode() not in candidates:
                clean = False
                found = f"{show(document)} for {show(rows.query)}"
                self.report(Problem.of("not-a-candidate", self.path, found, line=line))
        return clean

    def ranks(self, rows: Rows, parsed: NDArray[np.int64] | None) -> NDArray[np.int64] | None:
        """The rank column if every rank is there once or the order ignores it.

        Args:
            rows: all rows of the query.
            parsed: the column's numbers where they are known already.
        """
        ranks = parse_integers(rows.ranks) if parsed is None else parsed
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

    def scores(self, rows: Rows) -> NDArray[np.float64] | None:
        """The scores as the order compares them, `None` if one is no number or unused."""
        if not rows.scores:
            return None
        scores = parse_scores(rows.scores)
        if scores is None:
            for token, line in zip(rows.scores, rows.lines, strict=True):
                if code := classify_score(token):
                    self._score_problem(code, line, token, rows.query)
            return None
        keys = ranking.sort_keys(scores, self.order)
        beyond = np.flatnonzero(np.isinf(keys)).tolist()
        for row in beyond:
            self._score_problem("score-infinite", rows.lines[row], rows.scores[row], rows.query)
        return None if beyond else keys

    def report_displaced(self, rows: Rows, row: int, *, position: int) -> None:
        """Report a row that the rank column has among the first, and the scores elsewhere.

        Args:
            rows: all rows of the query.
            row: which one.
            position: where its score would put it, from 1.
        """
        found = f"{show(rows.documents[row])} at rank {show(rows.ranks[row])} for "
        found += f"{show(rows.query)}, but place {position} by score"
        hint = _SCORES_DECIDE if self._ignored else _RANKS_DECIDE
        line = rows.lines[row]
        self.report(Problem.of("rank-disagrees", self.path, found, hint=hint, line=line))

    @property
    def _ignored(self) -> bool:
        """Whether the order ignores the rank column."""
        return self.order != "msmarco"

    def _rank_problem(self, code: str, line: int, found: str, hint: str = "") -> None:
        problem = Problem.of(code, self.path, found, hint=hint, line=line)
        if self._ignored:
            problem = replace(problem, hint=_SCORES_DECIDE, severity="note")
        self.report(problem)

    def _odd_numbers(self, rows: Rows) -> None:
        hint = LEFT_OUT if names_query(rows.query) else ""
        for token, line in zip(rows.ranks, rows.lines, strict=True):
            rank = parse_integer(token)
            if rank is None or rank <= 0:
                code = "rank-not-a-number" if rank is None else "rank-negative"
                code = "rank-zero" if rank == 0 else code
                found = f"rank {show(token)} for {show(rows.query)}"
                self._rank_problem(code, line, found, hint)

    def _zero_ranks(self, rows: Rows, ranks: NDArray[np.int64]) -> bool:
        zeros = np.flatnonzero(ranks == 0).tolist()
        for row in zeros:
            self._rank_problem("rank-zero", rows.lines[row], f"rank 0 for {show(rows.query)}")
        return not zeros

    def _repeated_ranks(self, rows: Rows, ranks: NDArray[np.int64]) -> None:
        for rank, line, first in _repeats(ranks.tolist(), rows.lines):
            found = f"rank {rank} again for {show(rows.query)}, first on line {first}"
            self._rank_problem("rank-repeated", line, found)

    def _gaps(self, rows: Rows, ranks: NDArray[np.int64]) -> bool:
        """Check whether a rank between 1 and the greatest is missing; reports where first."""
        present = np.unique(ranks[ranks > 0])
        missing = int(present[-1]) - len(present) if len(present) else 0
        if not missing:
            return False
        lowest = int(np.argmax(present != np.arange(1, len(present) + 1)))
        above = int(present[lowest])
        more = f" and {missing - 1} more" if missing > 1 else ""
        found = f"rank {above} for {show(rows.query)}, but no rank {lowest + 1}{more}"
        self._rank_problem("rank-missing", rows.lines[int(np.argmax(ranks == above))], found)
        return True

    def _score_problem(self, code: str, line: int, token: bytes, query: bytes) -> None:
        problem = Problem.of(code, self.path, f"score {show(token)} for {show(query)}", line=line)
        if self.order == "msmarco":
            problem = replace(problem, hint=_RANKS_DECIDE, severity="note")
        elif code == "score-infinite" and self.order == "trec9":
            problem = replace(problem, expected=f"{problem.expected} that fits float32")
        self.report(problem)


Value = TypeVar("Value", bytes, int)


def _repeats(values: Sequence[Value], lines: Sequence[int]) -> Iterator[tuple[Value, int, int]]:
    """Values that an earlier line has, with their line and that one."""
    first: dict[Value, int] = {}
    for value, line in zip(values, lines, strict=True):
        if (earlier := first.setdefault(value, line)) != line:
            yield value, line, earlier
