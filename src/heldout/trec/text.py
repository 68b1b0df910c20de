"""Lines of text, the same for runs, qrels and queries: which characters, numbers and headings.

Numbers are read strictly: what other tools read differently is not a number here. Python's `int`
and `float` also take `1_000`, digits of other scripts and blanks, C's `atof` takes `0x10` and reads
`12abc` as 12. A file that means the same to everybody has none of these.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from decimal import Decimal
from operator import attrgetter
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from heldout.errors import InputError, Problem, printable

_PLAIN = re.compile(r"[\w.:/+-]{1,60}", re.ASCII)
_SHOWN = 60


def show(raw: bytes | str) -> str:
    r"""Somebody's text, safe for a terminal: cut at 60 characters, nothing unprintable.

    Plain ids stay as they are; anything else is quoted, with `\x1b`-like escapes for control
    characters, bad UTF-8 and invisible or direction-changing characters.
    """
    text = raw.decode(errors="backslashreplace") if isinstance(raw, bytes) else raw
    if _PLAIN.fullmatch(text):
        return text
    safe = printable(text[:_SHOWN])
    return f'"{safe}…"' if len(text) > _SHOWN else f'"{safe}"'


class ProblemLog:
    """Collects problems; keeps those with the lowest lines, counts all.

    Which problems are kept depends on their lines alone, not on the order of arrival.
    """

    def __init__(self, limit: int) -> None:
        self.counts: Counter[str] = Counter()
        self.errors = 0
        self._limit = max(limit, 1)
        self._stored: dict[str, list[Problem]] = {}

    def add(self, problem: Problem) -> None:
        """Count the problem, and keep it if it is among the first of its code."""
        self.counts[problem.code] += 1
        self.errors += problem.severity == "error"
        selected = self._stored.setdefault(problem.code, [])
        selected.append(problem)
        if len(selected) >= 4 * self._limit:
            self._stored[problem.code] = self._first(selected)

    def extend(self, problems: Iterable[Problem]) -> None:
        """Add each."""
        for problem in problems:
            self.add(problem)

    def drop(self, code: str) -> None:
        """Forget the problems of this code, for one that says them all."""
        errors = any(problem.severity == "error" for problem in self._stored.pop(code, []))
        self.errors -= self.counts.pop(code, 0) if errors else 0

    def _first(self, problems: Iterable[Problem]) -> list[Problem]:
        return sorted(problems, key=_order)[: self._limit]

    def problems(self) -> tuple[Problem, ...]:
        """At most `limit` errors, fairly from all codes, and the first note of each code."""
        errors, notes = [], []
        for selected in self._stored.values():
            first = self._first(selected)
            notes += [problem for problem in first if problem.severity == "note"][:1]
            errors += [(i, p) for i, p in enumerate(first) if p.severity == "error"]
        errors.sort(key=lambda error: (error[0], _order(error[1])))
        chosen = [problem for _, problem in errors[: self._limit]]
        return (*sorted(chosen, key=_order), *sorted(notes, key=_order))

    def raise_errors(self) -> None:
        """Raise what was collected if any of it is an error.

        Raises:
            InputError: with the errors, without the notes.
        """
        if self.errors:
            errors = [p for p in self.problems() if p.severity == "error"]
            notes = {p.code for p in self.notes()}
            counts = {code: n for code, n in self.counts.items() if code not in notes}
            raise InputError(errors, counts=counts)

    def notes(self) -> tuple[Problem, ...]:
        """The first note of each code."""
        return tuple(p for p in self.problems() if p.severity == "note")


def _order(problem: Problem) -> tuple[bool, int, str, str]:
    line = problem.line
    return (line is None, line or 0, *attrgetter("code", "found")(problem))


LEFT_OUT = "the line names columns: take it out"
"""What to do about such a line."""

_NAMES = frozenset(
    ("qid", "queryid", "id", "topic", "topicid", "topicnumber", "number", "num", "questionid")
)


def names_query(cell: str | bytes) -> bool:
    """Check whether a cell names a column of query ids, as in `qid` or `query-id`.

    Args:
        cell: the first of a line.
    """
    text = cell.decode(errors="replace") if isinstance(cell, bytes) else cell
    return "".join(filter(str.isalnum, text.casefold())) in _NAMES


BadScore = Literal["score-nan", "score-infinite", "score-not-a-number"]

_DIGITS = 18
_INTEGER = re.compile(rb"-?[0-9]{1,18}")
_DECIMAL = re.compile(rb"-?(?:[0-9]{1,18}(?:\.[0-9]{0,40})?|\.[0-9]{1,40})(?:[eE][+-]?[0-9]{1,2})?")
_SCORE = re.compile(rb"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_NAN = re.compile(rb"[+-]?nan(?:\([0-9a-z]*\))?", re.IGNORECASE)
_INFINITE = re.compile(rb"[+-]?inf(?:inity)?", re.IGNORECASE)
_SCORE_BYTES = b"0123456789.eE+-"


def parse_integer(token: bytes) -> int | None:
    """An integer of at most 18 ASCII digits, perhaps with a minus; otherwise `None`."""
    return int(token) if _INTEGER.fullmatch(token) else None


def parse_grade(token: bytes) -> int | Decimal | None:
    """A grade: a whole number, however it is written (`50.0`), or a decimal; otherwise `None`."""
    whole = parse_integer(token)
    if whole is not None or not _DECIMAL.fullmatch(token):
        return whole
    value = Decimal(token.decode())
    return int(value) if value == int(value) else value


def parse_integers(tokens: Sequence[bytes]) -> NDArray[np.int64] | None:
    """Non-negative integers as int64, or `None` if any token is something else."""
    if not b"".join(tokens).isdigit() or max(map(len, tokens)) > _DIGITS:
        return None
    return np.array(list(map(int, tokens)), dtype=np.int64)


def parse_scores(tokens: Sequence[bytes]) -> NDArray[np.float64] | None:
    """Finite decimal numbers as float64, or `None` if any token is something else.

    Decimal point and exponent are allowed (`12`, `-1.5`, `+.5e-3`, `7.`); digit separators,
    hexadecimal, NaN, infinities and numbers beyond float64 are not.
    """
    if b"".join(tokens).translate(None, _SCORE_BYTES):
        return None
    try:
        scores = np.array(list(map(float, tokens)), dtype=np.float64)
    except ValueError:
        return None
    return scores if bool(np.isfinite(scores).all()) else None


def classify_score(token: bytes) -> BadScore | None:
    """Return what is wrong with a score, `None` if nothing is."""
    if _SCORE.fullmatch(token):
        return None if np.isfinite(float(token)) else "score-infinite"
    if _NAN.fullmatch(token):
        return "score-nan"
    return "score-infinite" if _INFINITE.fullmatch(token) else "score-not-a-number"


_CLEAN_BYTES = bytes({*range(0x20, 0x7F), *range(0x80, 0x100)} | {0x09, 0x0A})

_SPACE = ord(" ")
_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f-\x9f]")


def check_line(line: bytes, *, path: str, number: int, prose: bool = False) -> Problem | None:
    """Return why a line is no row, `None` if it may be one.

    Args:
        line: without its end.
        path: the file, for messages.
        number: 1-based.
        prose: whether people wrote it: then only control characters are refused.

    Returns:
        The notes `blank-line` and `comment-line` (`#` first, as in trec_eval 10), or the errors
        `bad-utf8` and `control-character`.
    """
    if _is_clean_prose(line) if prose else is_clean(line):
        if not line.strip(b" \t"):
            return _skipped("blank-line", "an empty line", path, number)
        if line.startswith(b"#"):
            return _skipped("comment-line", f"a comment, {show(line)}", path, number)
        return None
    return _unclean(line, path, number)


def is_clean(text: bytes) -> bool:
    """Check whether lines are UTF-8 without control characters but tabs, and visible beyond ASCII.

    Blanks of other scripts and direction marks are refused: nobody sees them in an id.
    """
    if text.translate(None, _CLEAN_BYTES):
        return False
    return text.isascii() or _is_printable(text)


def is_regular(text: bytes, ends: NDArray[np.int64], tokens: int, columns: int) -> bool:
    """Check whether each line has exactly so many columns and none is a comment.

    Args:
        text: whole lines.
        ends: int64, offsets of their newlines.
        tokens: how many there are in the text.
        columns: of each line.
    """
    if tokens != columns * len(ends) or not tokens or text[:1] == b"#" or b"\n#" in text:
        return False
    starts = _token_starts(text)
    last, first = starts[columns - 1 :: columns], starts[columns::columns]
    return bool((last < ends).all() and (first > ends[:-1]).all())


def _token_starts(text: bytes) -> NDArray[np.int64]:
    blank = np.frombuffer(text, dtype=np.uint8) <= _SPACE
    begins = blank[:-1] & ~blank[1:]
    starts = np.flatnonzero(begins) + 1
    return starts if blank[0] else np.concatenate(([0], starts))


def _is_clean_prose(text: bytes) -> bool:
    try:
        return _CONTROL.search(text.decode()) is None
    except UnicodeDecodeError:
        return False


def _is_printable(text: bytes) -> bool:
    try:
        decoded = text.decode()
    except UnicodeDecodeError:
        return False
    return decoded.replace("\n", "").replace("\t", "").isprintable()


def _skipped(code: str, found: str, path: str, number: int) -> Problem:
    return Problem(
        code, path, found, "a row in each line", "it was skipped", line=number, severity="note"
    )


def _unclean(line: bytes, path: str, number: int) -> Problem:
    try:
        line.decode()
    except UnicodeDecodeError as error:
        found = f"byte {line[error.start]:#04x} in column {error.start + 1} of {show(line)}"
        return Problem.of("bad-utf8", path, found, line=number)
    return Problem.of("control-character", path, show(line), line=number)
