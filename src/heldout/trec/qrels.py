"""Judgments: query, iteration, document, grade; one format for TREC and MS MARCO.

The second column is ignored (`0`, `Q0`, or a judging round as in TREC-COVID), but for `pseudo`:
such a label was made by a system, and whoever reads it is warned. Grades are whole numbers and stay
as they are: 0 is a judgment and not relevance, negative grades remain. Where decimals are asked for
and are there, all grades are multiplied by one power of ten. A file whose grades are
all 0 beside numbers in the second column has the two swapped, and is refused.

A scan sees a run through one set of judgments. To see it through many in one pass (`JointGrades`),
each judged document gets a code that stands for its grades in all of them; afterwards codes become
the grades of one again.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from io import BytesIO
from typing import BinaryIO, cast

import numpy as np
from numpy.typing import NDArray

from heldout.errors import InputError, Problem, plural
from heldout.ids import Digest
from heldout.trec.ranking import Rankings
from heldout.trec.reading.streams import Block, Limits, TextReader
from heldout.trec.text import (
    LEFT_OUT,
    ProblemLog,
    check_line,
    classify_score,
    is_clean,
    is_regular,
    names_query,
    parse_grade,
    parse_integer,
    show,
)

_UNJUDGED = np.iinfo(np.int64).min

Judgments = Mapping[str, Mapping[str, int]]
Grades = dict[str, dict[str, int | Decimal]]
"""Query -> document -> grade as it was written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GradeBook:
    """Labels under one code.

    Attributes:
        codes: query -> document -> code, for every document that any of the labels judges.
        grades: name of labels -> int64, the grade that each code stands for.
    """

    codes: Judgments
    grades: Mapping[str, NDArray[np.int64]]


def combine(labels: Mapping[str, Judgments]) -> GradeBook:
    """Bring labels together.

    Args:
        labels: by name, at least one.
    """
    numbers: dict[tuple[int | None, ...], int] = {}
    codes: dict[str, dict[str, int]] = {}
    every = tuple(labels.values())
    for query in dict.fromkeys(query for one in every for query in one):
        parts = [one.get(query, {}) for one in every]
        codes[query] = {
            document: numbers.setdefault(tuple(p.get(document) for p in parts), len(numbers))
            for document in dict.fromkeys(document for part in parts for document in part)
        }
    columns = zip(*numbers, strict=True) if numbers else ((),) * len(every)
    return GradeBook(
        codes=codes,
        grades={
            name: np.array([_UNJUDGED if g is None else g for g in column], dtype=np.int64)
            for name, column in zip(labels, columns, strict=True)
        },
    )


def regrade(rankings: Rankings, grades: NDArray[np.int64]) -> Rankings:
    """A run that was scanned with `GradeBook.codes`, as one of the labels sees it.

    Args:
        rankings: with codes for grades.
        grades: of one of the labels, from `GradeBook.grades`.
    """
    found = grades[rankings.grades] if len(grades) else rankings.grades
    judged = found != _UNJUDGED
    before = np.concatenate(([0], np.cumsum(judged)))
    return replace(
        rankings,
        starts=before[rankings.starts],
        positions=rankings.positions[judged],
        grades=found[judged],
    )


_COLUMNS = 4
_LAYOUT = "4 columns: query, 0, document, grade"
_BEIR = 3
_RUN = 6
_ROUND = frozenset(("0", "Q0"))
_PSEUDO = b"pseudo"
HIGHEST_GRADE = 1_000_000
"""No scale of grades goes so far: such a number is an id, a date or a count."""
_DECIMALS = 12
"""Decimals of a grade that are kept: 10^6 times 10^12 is still an int64."""
_FAR = 10
"""Times the next highest grade from which on one is more likely a slip than a step of the scale."""
_SHOWN = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Qrels:
    """A qrels file.

    Attributes:
        judgments: query -> document -> grade, both in the order of the file; every query has
            at least one.
        digest: SHA-256 of the received bytes.
        scale: what the file's grades were multiplied by: a power of ten, 1 for whole numbers.
        notes: what was read in a way worth a note, the first of each code.
        subtopics: query -> subtopic -> document -> grade, where they were asked for.
    """

    judgments: Mapping[str, Mapping[str, int]]
    digest: Digest
    scale: int = 1
    notes: tuple[Problem, ...] = ()
    subtopics: Mapping[str, Judgments] = field(default_factory=dict)

    def __repr__(self) -> str:
        judgments = sum(map(len, self.judgments.values()))
        return f"<Qrels: {plural(len(self.judgments), 'query', 'queries')}, {judgments:,} judged>"


def parse_qrels(
    data: bytes, *, path: str, limits: Limits | None = None, whole_for: str | None = ""
) -> Qrels:
    """As `read_qrels`, from bytes."""
    return read_qrels(BytesIO(data), path=path, limits=limits, whole_for=whole_for)


def read_qrels(
    source: BinaryIO, *, path: str, limits: Limits | None = None, whole_for: str | None = ""
) -> Qrels:
    """Read a qrels file to its end: plain, gzip, bzip2 or zstd.

    Args:
        source: its bytes.
        path: its name for messages.
        limits: how much is read.
        whole_for: what needs whole numbers, for the message; `None`: decimals are read, and all
            grades multiplied by `Qrels.scale`.

    Raises:
        InputError: all problems up to `limits.problems`: `wrong-columns`, `grade-not-a-number`,
            `grade-too-large`, `grades-swapped`, `documents-swapped`, `looks-like-a-run`,
            `conflicting-judgment`, `bad-utf8`, `control-character`, and those of `TextReader`.
            Notes are `pseudo-label`, `repeated-judgment`, `grade-far-above`, `nothing-relevant`,
            `blank-line`, `comment-line`, `byte-order-mark`.
    """
    limits = limits or Limits()
    log = ProblemLog(limits.problems)
    judgments: Grades = {}
    columns = _Columns(whole_for=whole_for)
    with TextReader(source, path=path, limits=limits) as reader:
        for block in reader.blocks():
            if block.line == 1:
                _refuse_run(block, path)
            for problem in _read_block(judgments, block, path, columns):
                log.add(problem)
    log.extend(reader.notes)
    log.extend([*columns.check(path)])
    if not judgments and not log.errors:
        log.add(Problem("empty-file", path, "no judgments", "at least one line"))
    log.extend([*_check_documents(judgments, path)])
    log.raise_errors()
    scaled, scale = scale_grades(judgments)
    return Qrels(judgments=scaled, digest=reader.digest(), scale=scale, notes=log.notes())


def unscale(qrels: Qrels) -> Mapping[str, Mapping[str, float]]:
    """The grades as they were written, decimals as the nearest floats."""
    if qrels.scale == 1:
        return qrels.judgments
    return {
        query: {document: grade / qrels.scale for document, grade in grades.items()}
        for query, grades in qrels.judgments.items()
    }


def scale_grades(judgments: Grades) -> tuple[dict[str, dict[str, int]], int]:
    """Make whole numbers of grades of which some may be decimals; what all were multiplied by."""
    every = {grade for grades in judgments.values() for grade in grades.values()}
    exponents = [g.normalize().as_tuple().exponent for g in every if isinstance(g, Decimal)]
    if not exponents:
        return cast("dict[str, dict[str, int]]", judgments), 1
    scale = 10 ** min(_DECIMALS, max(-int(one) for one in exponents))
    whole = {grade: round(grade * scale) for grade in every}
    return {q: {d: whole[g] for d, g in grades.items()} for q, grades in judgments.items()}, scale


def format_qrels(judgments: Mapping[str, Mapping[str, int]]) -> bytes:
    """A qrels file in the given order: `query 0 document grade`, separated by blanks."""
    lines = (
        f"{query} 0 {document} {grade}\n"
        for query, grades in judgments.items()
        for document, grade in grades.items()
    )
    return "".join(lines).encode()


def _refuse_run(block: Block, path: str) -> None:
    """Refuse a run that is given for judgments, once and not line by line.

    Raises:
        InputError: code `looks-like-a-run`.
    """
    lines = [line.split() for line in block.text.split(b"\n", _SHOWN)[:_SHOWN]]
    rows = [line for line in lines if line]
    if all(
        len(row) == _RUN and parse_integer(row[3]) is not None and classify_score(row[4]) is None
        for row in rows
    ):
        raise InputError.of("looks-like-a-run", path, line=block.line, row=show(b" ".join(rows[0])))


def _check_documents(judgments: Mapping[str, Mapping[str, object]], path: str) -> Iterator[Problem]:
    """Refuse a round of judging, as `0` or `Q0`, in the place of the document."""
    if judgments and all(
        len(grades) == 1 and _ROUND & grades.keys() for grades in judgments.values()
    ):
        yield Problem.of("documents-swapped", path)


@dataclass(slots=True)
class _Columns:
    """What stands in two columns of a file.

    Attributes:
        grades: each once.
        iterations: what stands in the second column, each once, until a grade is not 0.
        whole_for: as for `read_qrels`.
    """

    whole_for: str | None
    grades: set[int | Decimal] = field(default_factory=set)
    iterations: set[str] = field(default_factory=set)

    def add(self, grades: Iterable[int | Decimal], iterations: Iterable[str]) -> None:
        self.grades.update(grades)
        if self.grades == {0}:
            self.iterations.update(iterations)

    def check(self, path: str) -> Iterator[Problem]:
        """Yield what the whole of a column shows, and no line of it."""
        high, below = [*sorted((g for g in self.grades if g > 0), reverse=True), 0, 0][:2]
        if self.grades == {0} and any(self.iterations) and self._swapped():
            shown = ", ".join(map(show, sorted(self.iterations)[:_SHOWN]))
            yield Problem.of("grades-swapped", path, second=shown)
        elif self.grades and not high:
            yield Problem.of("nothing-relevant", path, f"no grade above {max(self.grades)}")
        if below and high > _FAR * below:
            yield Problem.of("grade-far-above", path, high=high, below=below)

    def _swapped(self) -> bool:
        numbers = [parse_integer(one.encode()) for one in self.iterations]
        return None not in numbers and any(number for number in numbers)


def _read_block(judgments: Grades, block: Block, path: str, columns: _Columns) -> Iterator[Problem]:
    """Add a block's judgments: all at once where every line has the usual form."""
    rows = _usual_rows(block, columns)
    if rows is None:
        for number, line in enumerate(block.text[:-1].split(b"\n"), start=block.line):
            problem = check_line(line, path=path, number=number)
            problem = problem or _add_line(judgments, line, path, number, columns)
            if problem is not None:
                yield problem
        return
    for number, row in enumerate(rows, start=block.line):
        query, document, grade = row
        grades = judgments.get(query)
        if grades is None:
            grades = judgments[query] = {}
        if document in grades:
            yield _repeated(row, grades[document], path=path, number=number)
        else:
            grades[document] = grade


def _usual_rows(block: Block, columns: _Columns) -> Iterator[tuple[str, str, int]] | None:
    """Query, document and grade of each line; `None` if any line may have a problem."""
    text = block.text
    if not is_clean(text) or _PSEUDO in text:
        return None
    tokens = text.decode().split()
    if not is_regular(text, block.ends, len(tokens), _COLUMNS):
        return None
    grades = tokens[3::_COLUMNS]
    digits = "".join(grades)
    if not (digits.isascii() and digits.isdigit()) or len(digits) > len(grades):
        return None
    columns.add(map(int, set(grades)), tokens[1::_COLUMNS])
    return zip(tokens[0::_COLUMNS], tokens[2::_COLUMNS], map(int, grades), strict=True)


def _columns_hint(columns: Sequence[bytes]) -> str:
    """Return what to do about another tool's form, such as BEIR's three columns below a heading."""
    if columns and names_query(columns[0]):
        return LEFT_OUT
    return (
        "of query, document, grade make query, 0, document, grade" if len(columns) == _BEIR else ""
    )


def _add_line(
    judgments: Grades, line: bytes, path: str, number: int, known: _Columns
) -> Problem | None:
    columns = line.split()
    if len(columns) != _COLUMNS:
        found = f"{plural(len(columns), 'column')} in {show(line)}"
        return Problem("wrong-columns", path, found, _LAYOUT, _columns_hint(columns), number)
    grade = parse_grade(columns[3])
    if grade is None or (isinstance(grade, Decimal) and known.whole_for is not None):
        return Problem(
            "grade-not-a-number",
            path,
            f"grade {show(columns[3])}",
            f"a whole number{known.whole_for and f', which {known.whole_for} needs'}",
            "" if grade is None else "evaluate reads decimals for nDCG, and agreement does",
            line=number,
        )
    if grade > HIGHEST_GRADE or grade < -HIGHEST_GRADE:
        return Problem.of(
            "grade-too-large", path, f"grade {grade}", line=number, most=HIGHEST_GRADE
        )
    known.add((grade,), (columns[1].decode(),))
    query, document = columns[0].decode(), columns[2].decode()
    grades = judgments.setdefault(query, {})
    if document not in grades:
        grades[document] = grade
        return _pseudo(query, path=path, number=number) if columns[1] == _PSEUDO else None
    return _repeated((query, document, grade), grades[document], path=path, number=number)


def _pseudo(query: str, *, path: str, number: int) -> Problem:
    return Problem.of("pseudo-label", path, line=number, query=show(query))


def _repeated(
    row: tuple[str, str, int | Decimal], before: int | Decimal, *, path: str, number: int
) -> Problem:
    query, document, grade = row
    code = "repeated-judgment" if before == grade else "conflicting-judgment"
    found = f"{show(document)} for {show(query)} again, grade {grade} after {before}"
    return Problem.of(code, path, found, line=number)
