"""A run's text as rows: its form, its columns, and the bytes that no row may hold."""

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, overload

import numpy as np

from heldout.errors import Problem, plural
from heldout.trec.headings import LEFT_OUT, names_query
from heldout.trec.numbers import parse_integer
from heldout.trec.problems import show
from heldout.trec.reading.streams import Block
from heldout.trec.scanning.segments import Columns, Segment
from heldout.trec.text import check_line, is_clean, is_regular

__all__ = ["COLUMNS", "Form", "Rows", "cut_rows", "detect_form", "looks_like_qrels", "parse_rows"]

Form = Literal["msmarco", "trec"]
COLUMNS: dict[Form, int] = {"msmarco": 3, "trec": 6}
_LAYOUT: dict[Form, str] = {
    "msmarco": "3 columns: query, document, rank",
    "trec": "6 columns: query, Q0, document, rank, score, tag",
}
_LOOKED_AT = 1000
_QRELS = 4
_ROUND = 3
"""Bytes of `0`, `Q0` or `0.5`: a round of judging, and no document."""
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


def detect_form(block: Block) -> Form | None:
    """The form that most of the first lines have; `None` if none of them has 3 or 6 columns."""
    lines = block.text.split(b"\n", _LOOKED_AT)[:_LOOKED_AT]
    counts = Counter(map(len, map(bytes.split, lines)))
    trec, msmarco = counts[COLUMNS["trec"]], counts[COLUMNS["msmarco"]]
    if not trec and not msmarco:
        return None
    return "trec" if trec >= msmarco else "msmarco"


def looks_like_qrels(block: Block) -> bool:
    """Whether the first lines have 4 columns, a short second one and a number at the end."""
    lines = map(bytes.split, block.text.split(b"\n", _LOOKED_AT)[:_LOOKED_AT])
    rows = [line for line in lines if line]
    return bool(rows) and all(
        len(row) == _QRELS and len(row[1]) <= _ROUND and parse_integer(row[3]) is not None
        for row in rows
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
    kept: list[bytes] = []
    lines: list[int] = []
    for number, line in zip(numbers, text[:-1].split(b"\n"), strict=True):
        problem = _line_problem(line, form, path, number)
        if problem is None:
            kept += line.split()
            lines.append(number)
        else:
            report(problem)
    return kept, lines


def _line_problem(line: bytes, form: Form, path: str, number: int) -> Problem | None:
    problem = check_line(line, path=path, number=number)
    tokens = line.split()
    if problem is not None or len(tokens) == COLUMNS[form]:
        return problem
    return Problem(
        code="wrong-columns",
        path=path,
        line=number,
        found=f"{plural(len(tokens), 'column')} in {show(line)}",
        expected=_LAYOUT[form],
        hint=_columns_hint(tokens, form),
    )


def _columns_hint(tokens: Sequence[bytes], form: Form) -> str:
    if tokens and names_query(tokens[0]):
        return LEFT_OUT
    if form == "msmarco":
        return ""
    if len(tokens) > COLUMNS[form]:
        return "ids and run tags have no spaces"
    return f"or {_LAYOUT['msmarco']}, as for MS MARCO, in every line"
