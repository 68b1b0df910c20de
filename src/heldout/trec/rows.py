"""A run's text as rows: its form, its columns, and the bytes that no row may hold."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from heldout.errors import Problem
from heldout.trec.problems import show
from heldout.trec.streams import Block
from heldout.trec.text import check_line, is_clean

__all__ = ["COLUMNS", "Form", "Rows", "detect_form", "parse_block"]

Form = Literal["msmarco", "trec"]
COLUMNS: dict[Form, int] = {"msmarco": 3, "trec": 6}
_LAYOUT: dict[Form, str] = {
    "msmarco": "3 columns: query, document, rank",
    "trec": "6 columns: query, Q0, document, rank, score, tag",
}
_LOOKED_AT = 1000
_SPACE = ord(" ")


@dataclass(slots=True)
class Rows:
    """Rows of one query, in the order of the file; columns as they stand there.

    Attributes:
        query: id in UTF-8.
        lines: 1-based line of each row.
        documents: ids in UTF-8.
        ranks: the rank column.
        scores: the score column, empty in the MS MARCO form.
    """

    query: bytes
    lines: list[int] = field(default_factory=list)
    documents: list[bytes] = field(default_factory=list)
    ranks: list[bytes] = field(default_factory=list)
    scores: list[bytes] = field(default_factory=list)

    def extend(self, more: "Rows") -> None:
        """Append the rows of the same query that stand further down."""
        self.lines += more.lines
        self.documents += more.documents
        self.ranks += more.ranks
        self.scores += more.scores

    def cut(self, length: int) -> None:
        """Keep the first `length` rows."""
        for column in (self.lines, self.documents, self.ranks, self.scores):
            del column[length:]


def detect_form(block: Block) -> Form | None:
    """The form that most of the first lines have; `None` if none of them has 3 or 6 columns."""
    lines = block.text.split(b"\n", _LOOKED_AT)[:_LOOKED_AT]
    counts = Counter(len(line.split()) for line in lines)
    trec, msmarco = counts[COLUMNS["trec"]], counts[COLUMNS["msmarco"]]
    if not trec and not msmarco:
        return None
    return "trec" if trec >= msmarco else "msmarco"


def parse_block(
    block: Block, form: Form, *, path: str, report: Callable[[Problem], None]
) -> list[Rows]:
    """Rows of neighbouring lines with the same query, in the order of the file.

    Args:
        block: whole lines.
        form: fixes the number of columns.
        path: the file, for messages.
        report: receives `wrong-columns`, `bad-utf8`, `control-character`, and the notes
            `blank-line` and `comment-line`. Lines with a problem give no row.
    """
    tokens = block.text.split()
    columns = COLUMNS[form]
    if is_clean(block.text) and _is_regular(block, len(tokens), columns):
        lines: Sequence[int] = range(block.line, block.line + len(block.ends))
    else:
        tokens, lines = _sift(block, form, path, report)
    return _group(tokens, lines, form)


def _group(tokens: list[bytes], lines: Sequence[int], form: Form) -> list[Rows]:
    columns = COLUMNS[form]
    document = 2 if form == "trec" else 1
    queries, documents = tokens[0::columns], tokens[document::columns]
    ranks = tokens[document + 1 :: columns]
    scores = tokens[4::columns] if form == "trec" else []
    grouped, start = [], 0
    for query, members in groupby(queries):
        end = start + len(list(members))
        rows = slice(start, end)
        grouped.append(Rows(query, list(lines[rows]), documents[rows], ranks[rows], scores[rows]))
        start = end
    return grouped


def _is_regular(block: Block, tokens: int, columns: int) -> bool:
    """Whether each line has exactly so many columns and none is a comment."""
    if tokens != columns * len(block.ends) or block.text[:1] == b"#" or b"\n#" in block.text:
        return False
    starts = _token_starts(block.text)
    last, first = starts[columns - 1 :: columns], starts[columns::columns]
    return bool((last < block.ends).all() and (first > block.ends[:-1]).all())


def _token_starts(text: bytes) -> NDArray[np.int64]:
    blank = np.frombuffer(text, dtype=np.uint8) <= _SPACE
    begins = blank[:-1] & ~blank[1:]
    starts = np.flatnonzero(begins) + 1
    return starts if blank[0] else np.concatenate(([0], starts))


def _sift(
    block: Block, form: Form, path: str, report: Callable[[Problem], None]
) -> tuple[list[bytes], list[int]]:
    """Tokens and numbers of the lines that are fit to use; reports the others."""
    kept: list[bytes] = []
    numbers: list[int] = []
    for number, line in enumerate(block.text[:-1].split(b"\n"), start=block.line):
        problem = _line_problem(line, form, path, number)
        if problem is None:
            kept += line.split()
            numbers.append(number)
        else:
            report(problem)
    return kept, numbers


def _line_problem(line: bytes, form: Form, path: str, number: int) -> Problem | None:
    problem = check_line(line, path=path, number=number)
    tokens = line.split()
    if problem is not None or len(tokens) == COLUMNS[form]:
        return problem
    extra = form == "trec" and len(tokens) > COLUMNS[form]
    return Problem(
        code="wrong-columns",
        path=path,
        line=number,
        found=f"{len(tokens)} columns in {show(line)}",
        expected=_LAYOUT[form],
        hint="ids and run tags have no spaces" if extra else "",
    )
