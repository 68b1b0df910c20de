"""Labels beyond qrels: preferences between two items, grades with the judge's name, subtopics.

Preferences have four columns between blanks: query, item A, item B, the preferred one. Items are
documents, or systems where people judged whole result lists. Grades of several judges have the
columns of qrels, with the judge's name in the column that qrels leave empty: one line for each
label that each judge gave. In the diversity tasks of TREC that column names a subtopic (Clarke et
al., TREC 2009 Web track).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import BinaryIO

from heldout.errors import Problem, plural
from heldout.trec.qrels import Qrels
from heldout.trec.reading.streams import Limits, TextReader, open_rows, read_lines
from heldout.trec.text import ProblemLog, check_line, parse_grade, parse_integer, show

_COLUMNS = 4
_LAYOUT = "4 columns: query, judge, document, grade"


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
    found = []
    with open_rows(source, path=path, limits=limits) as (log, rows):
        for number, line in rows:
            columns = line.decode().split()
            problem = _check(columns, line, path, number)
            if problem is None:
                query, a, b, preferred = columns
                found.append(Preference(query=query, a=a, b=b, preferred=preferred))
            else:
                log.add(problem)
    return tuple(found)


def _check(columns: list[str], line: bytes, path: str, number: int) -> Problem | None:
    if len(columns) != _COLUMNS:
        code, expected = "wrong-columns", "query, item A, item B, the preferred one"
    elif columns[1] == columns[2] or columns[3] not in columns[1:3]:
        code, expected = "bad-preference", "two different items, and one of them again"
    else:
        return None
    return Problem(code, path, show(line.decode()), expected, line=number)


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
    found: Judgments = {}
    with open_rows(source, path=path, limits=limits) as (log, rows):
        for number, line in rows:
            if problem := _add_line(found, line, path, number):
                log.add(problem)
    return found


def _add_line(found: Judgments, line: bytes, path: str, number: int) -> Problem | None:
    columns = line.decode().split()
    if len(columns) != _COLUMNS:
        wrong = f"{len(columns)} columns in {show(line)}"
        return Problem("wrong-columns", path, wrong, _LAYOUT, line=number)
    query, judge, document, text = columns
    grade = parse_grade(text.encode())
    if not isinstance(grade, int):
        return Problem.of("grade-not-a-number", path, f"grade {show(text)}", line=number)
    before = found.setdefault(judge, {}).setdefault(query, {}).setdefault(document, grade)
    if before == grade:
        return None
    again = f"{show(document)} for {show(query)} by {show(judge)} again, {grade} after {before}"
    return Problem.of("conflicting-judgment", path, again, line=number)


def read_subtopics(source: BinaryIO, *, path: str, limits: Limits | None = None) -> Qrels:
    """Read judgments by subtopic to their end: plain, gzip, bzip2 or zstd.

    Args:
        source: their bytes.
        path: their name for messages.
        limits: how much is read.

    Returns:
        `subtopics` as they stand there; as `judgments` a document's highest grade of any subtopic,
        which is what measures without subtopics take.

    Raises:
        InputError: all problems up to `limits.problems`: `wrong-columns`, `grade-not-a-number`,
            `conflicting-judgment` (of one subtopic), `bad-utf8`, `control-character`, `empty-file`,
            and those of `TextReader`.
    """
    limits = limits or Limits()
    log = ProblemLog(limits.problems)
    found: dict[str, dict[str, dict[str, int]]] = {}
    with TextReader(source, path=path, limits=limits) as reader:
        for number, line in read_lines(reader):
            problem = check_line(line, path=path, number=number)
            problem = problem or _add_subtopic(found, line, path, number)
            if problem is not None:
                log.add(problem)
    if not found and not log.errors:
        log.add(Problem("empty-file", path, "no judgments", "at least one line"))
    log.raise_errors()
    judgments: dict[str, dict[str, int]] = {}
    for query, parts in found.items():
        highest = judgments.setdefault(query, {})
        for grades in parts.values():
            for document, grade in grades.items():
                highest[document] = max(grade, highest.get(document, grade))
    return Qrels(judgments=judgments, digest=reader.digest(), notes=log.notes(), subtopics=found)


def _add_subtopic(
    found: dict[str, dict[str, dict[str, int]]], line: bytes, path: str, number: int
) -> Problem | None:
    columns = line.split()
    if len(columns) != _COLUMNS:
        what = f"{plural(len(columns), 'column')} in {show(line)}"
        expected = "4 columns: query, subtopic, document, grade"
        return Problem("wrong-columns", path, what, expected, line=number)
    grade = parse_integer(columns[3])
    if grade is None:
        what = f"grade {show(columns[3])}"
        return Problem("grade-not-a-number", path, what, "a whole number", line=number)
    query, subtopic, document = (column.decode() for column in columns[:3])
    before = found.setdefault(query, {}).setdefault(subtopic, {}).setdefault(document, grade)
    if before == grade:
        return None
    what = f"{show(document)} for {show(query)}, subtopic {show(subtopic)}: {grade} after {before}"
    expected = "one judgment per query, subtopic and document"
    return Problem("conflicting-judgment", path, what, expected, line=number)
