"""Labels of several judges: preferences between two items, and grades with the judge's name.

Preferences have four columns between blanks: query, item A, item B, the preferred one. Items are
documents, or systems where people judged whole result lists. Grades of several judges have the
columns of qrels, with the judge's name in the column that qrels leave empty: one line for each
label that each judge gave.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import BinaryIO

from heldout.errors import Problem
from heldout.trec.problems import ProblemLog, show
from heldout.trec.reading.streams import Limits, TextReader, read_lines
from heldout.trec.text import check_line, parse_integer

_COLUMNS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Preference:
    """One judgment.

    Attributes:
        query: its id.
        a: the item in the second column.
        b: the item in the third.
        preferred: the one of the two that was preferred.
    """

    query: str
    a: str
    b: str
    preferred: str

    @property
    def other(self) -> str:
        """The one that was not preferred."""
        return self.b if self.preferred == self.a else self.a


def read_preferences(
    source: BinaryIO, *, path: str, limits: Limits | None = None
) -> tuple[Preference, ...]:
    """Read judgments to their end: plain, gzip, bzip2 or zstd; a pair may be judged many times.

    Args:
        source: its bytes.
        path: its name for messages.
        limits: how much is read.

    Raises:
        InputError: all problems up to `limits.problems`: `wrong-columns`, `bad-preference`,
            `empty-file`, `bad-utf8`, `control-character`, and those of `TextReader`.
    """
    limits = limits or Limits()
    log = ProblemLog(limits.problems)
    found = []
    with TextReader(source, path=path, limits=limits) as reader:
        for number, line in read_lines(reader):
            problem = check_line(line, path=path, number=number)
            if problem is None:
                problem = _check(line.decode().split(), line, path, number)
            if problem is None:
                query, a, b, preferred = line.decode().split()
                found.append(Preference(query=query, a=a, b=b, preferred=preferred))
            elif problem.severity == "error":
                log.add(problem)
    if not found and not log.errors:
        log.add(Problem(code="empty-file", path=path, found="no row", expected="at least one"))
    log.raise_errors()
    return tuple(found)


def _check(columns: list[str], line: bytes, path: str, number: int) -> Problem | None:
    code = None
    if len(columns) != _COLUMNS:
        code, expected = "wrong-columns", "query, item A, item B, the preferred one"
    elif columns[1] == columns[2] or columns[3] not in columns[1:3]:
        code, expected = "bad-preference", "two different items, and one of them again"
    if code is None:
        return None
    return Problem(code=code, path=path, line=number, found=show(line.decode()), expected=expected)


Judgments = dict[str, dict[str, dict[str, int]]]


def read_ratings(
    source: BinaryIO, *, path: str, limits: Limits | None = None
) -> Mapping[str, Mapping[str, Mapping[str, int]]]:
    """Read labels to their end: plain, gzip, bzip2 or zstd.

    Args:
        source: its bytes.
        path: its name for messages.
        limits: how much is read.

    Returns:
        Judge -> query -> document -> grade, in the order of the file.

    Raises:
        InputError: all problems up to `limits.problems`: `wrong-columns`, `grade-not-a-number`,
            `conflicting-judgment`, `empty-file`, `bad-utf8`, `control-character`, and those of
            `TextReader`.
    """
    limits = limits or Limits()
    log = ProblemLog(limits.problems)
    found: Judgments = {}
    with TextReader(source, path=path, limits=limits) as reader:
        for number, line in read_lines(reader):
            problem = check_line(line, path=path, number=number)
            problem = problem or _add_line(found, line, path, number)
            if problem is not None and problem.severity == "error":
                log.add(problem)
    if not found and not log.errors:
        log.add(Problem(code="empty-file", path=path, found="no row", expected="at least one"))
    log.raise_errors()
    return found


def _add_line(found: Judgments, line: bytes, path: str, number: int) -> Problem | None:
    columns = line.decode().split()
    if len(columns) != _COLUMNS:
        return Problem(
            code="wrong-columns",
            path=path,
            line=number,
            found=f"{len(columns)} columns in {show(line)}",
            expected="4 columns: query, judge, document, grade",
        )
    query, judge, document, text = columns
    grade = parse_integer(text.encode())
    if grade is None:
        return Problem(
            code="grade-not-a-number",
            path=path,
            line=number,
            found=f"grade {show(text)}",
            expected="a whole number",
            hint="leave out what a judge did not label",
        )
    before = found.setdefault(judge, {}).setdefault(query, {}).setdefault(document, grade)
    if before == grade:
        return None
    return Problem(
        code="conflicting-judgment",
        path=path,
        line=number,
        found=f"{show(document)} for {show(query)} by {show(judge)} again, {grade} after {before}",
        expected="one label of each judge per query and document",
        hint="decide which grade holds",
    )
