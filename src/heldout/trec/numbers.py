"""Numbers in text, read strictly: what other tools read differently is not a number here.

Python's `int` and `float` also take `1_000`, digits of other scripts and blanks, C's `atof`
takes `0x10` and reads `12abc` as 12. A file that means the same to everybody has none of these.
"""

import re
from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

__all__ = ["BadScore", "classify_score", "parse_integer", "parse_integers", "parse_scores"]

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
