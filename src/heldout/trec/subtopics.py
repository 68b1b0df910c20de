"""Judgments by subtopic, of the diversity tasks of TREC: query, subtopic, document, grade.

The columns are those of any qrels; here the second one counts. Source: Clarke et al., TREC 2009 Web
track.
"""

from typing import BinaryIO

from heldout.errors import Problem, plural
from heldout.trec.qrels import Qrels
from heldout.trec.reading.streams import Limits, TextReader, read_lines
from heldout.trec.text import ProblemLog, check_line, parse_integer, show

_COLUMNS = 4


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
            problem = problem or _add(found, line, path, number)
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


def _add(
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
