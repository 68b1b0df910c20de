"""Lines of text, the same for runs, qrels and queries: which characters, numbers and headings.

Numbers are read strictly: what other tools read differently is not a number here. Python's `int`
and `float` also take `1_000`, digits of other scripts and blanks, C's `atof` takes `0x10` and reads
`12abc` as 12. A file that means the same to everybody has none of these.
"""

import re
from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from heldout.errors import Problem
from heldout.trec.problems import show

LEFT_OUT = "the line names columns: take it out"
"""What to do about such a line."""

_NAMES = frozenset(
    ("qid", "queryid", "id", "topic", "topicid", "topicnumber", "number", "num", "questionid")
)


def names_query(cell: str | bytes) -> bool:
    """Whether a cell names a column of query ids, as in `qid` or `query-id`.

    Args:
        cell: the first of a line.
    """
    text = cell.decode(errors="replace") if isinstance(cell, bytes) else cell
    return "".join(filter(str.isalnum, text.casefold())) in _NAMES


BadScore = Literal["score-nan", "score-infinite", "score-not-a-number"]

_DIGITS = 18
_INTEGER = re.compile(rb"-?[0-9]{1,18}")
_SCORE = re.compile(rb"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_NAN = re.compile(rb"[+-]?nan(?:\([0-9a-z]*\))?", re.IGNORECASE)
_INFINITE = re.compile(rb"[+-]?inf(?:inity)?", re.IGNORECASE)
_SCORE_BYTES = b"0123456789.eE+-"


def parse_integer(token: bytes) -> int | None:
    """An integer of at most 18 ASCII digits, perhaps with a minus; otherwise `None`."""
    return int(token) if _INTEGER.fullmatch(token) else None


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
    """What is wrong with a score, `None` if nothing is."""
    if _SCORE.fullmatch(token):
        return None if np.isfinite(float(token)) else "score-infinite"
    if _NAN.fullmatch(token):
        return "score-nan"
    return "score-infinite" if _INFINITE.fullmatch(token) else "score-not-a-number"


_CLEAN_BYTES = bytes({*range(0x20, 0x7F), *range(0x80, 0x100)} | {0x09, 0x0A})

_SPACE = ord(" ")
_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f-\x9f]")


def check_line(line: bytes, *, path: str, number: int, prose: bool = False) -> Problem | None:
    """Why a line is no row, `None` if it may be one.

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
    """Whether lines are UTF-8 without control characters but tabs, and visible beyond ASCII.

    Blanks of other scripts and direction marks are refused: nobody sees them in an id.
    """
    if text.translate(None, _CLEAN_BYTES):
        return False
    return text.isascii() or _is_printable(text)


def is_regular(text: bytes, ends: NDArray[np.int64], tokens: int, columns: int) -> bool:
    """Whether each line has exactly so many columns and none is a comment.

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
        code=code,
        path=path,
        line=number,
        found=found,
        expected="a row in each line",
        hint="it was skipped",
        severity="note",
    )


def _unclean(line: bytes, path: str, number: int) -> Problem:
    try:
        line.decode()
    except UnicodeDecodeError as error:
        return Problem(
            code="bad-utf8",
            path=path,
            line=number,
            found=f"byte {line[error.start]:#04x} in column {error.start + 1} of {show(line)}",
            expected="text in UTF-8",
            hint="save the file as UTF-8",
        )
    return Problem(
        code="control-character",
        path=path,
        line=number,
        found=show(line),
        expected="printable characters, blanks and tabs",
        hint="remove them; ids are made of visible characters",
    )
