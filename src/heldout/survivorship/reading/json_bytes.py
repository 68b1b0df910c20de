"""Bytes of JSON text that a parser refuses without a place, or reads as something else."""

import re

__all__ = ["CARRIED", "find_bad_utf8", "find_half_pair"]

CARRIED = 64
"""Bytes of the text before a piece that are looked at again with it."""

_HALF = re.compile(rb"\\u[dD][89abAB][0-9a-fA-F]{2}(?!\\u[dD][c-fC-F])")
_ESCAPE = len(rb"\ud800")
_CONTINUED = bytes(range(0x80, 0xC0))


def find_half_pair(text: bytes, *, ended: bool) -> int | None:
    r"""Where the first half of a surrogate pair stands without the second, as in `"\ud800x"`.

    yajl reads it as a question mark, or together with the next escape as another character.

    Args:
        text: a piece, with `CARRIED` bytes before it.
        ended: whether it is the last; else the second half may follow.

    Returns:
        The place of its backslash; `None` where there is none.
    """
    for match in _HALF.finditer(text):
        before = text[max(match.start() - CARRIED, 0) : match.start()]
        escaped = (len(before) - len(before.rstrip(b"\\"))) % 2
        if not escaped and (ended or match.end() + _ESCAPE <= len(text)):
            return match.start()
    return None


def find_bad_utf8(text: bytes, *, ended: bool) -> int | None:
    """Where the first byte stands that is no UTF-8.

    Args:
        text: a piece, with bytes before it; it may begin and end within a character.
        ended: whether it is the last; else a character may go on.

    Returns:
        The place of the byte; `None` where all is UTF-8.
    """
    begin = len(text[:3]) - len(text[:3].lstrip(_CONTINUED))
    try:
        text[begin:].decode()
    except UnicodeDecodeError as error:
        cut = error.reason == "unexpected end of data"
        return None if cut and not ended else begin + error.start
    return None
