"""Ids for passages that have none: a digest of the text, however badly it was decoded.

MS MARCO QnA names no passages, and its passage collection spells some texts wrongly: UTF-8 that
was once read as Latin-1 or Windows-1252 (`Ã©` for `é`). survivorship-bias, section 2, found a
unique match for every passage once that was mended.
"""

import hashlib
import re

from heldout.ids import DocId

__all__ = ["mend_encoding", "passage_id"]

_DIGITS = 16
_ROUNDS = 3


def _read_as_windows(byte: int) -> str:
    """The character that a byte becomes, Latin-1 where Windows-1252 has none."""
    try:
        return bytes([byte]).decode("cp1252")
    except UnicodeDecodeError:
        return chr(byte)


_WINDOWS = {_read_as_windows(byte): byte for byte in range(0x80, 0xA0)}
_NEXT = "[\x80-\xbf" + "".join(re.escape(char) for char in _WINDOWS) + "]"
_WRONG = re.compile(f"[\xc2-\xdf]{_NEXT}|[\xe0-\xef]{_NEXT}{{2}}|[\xf0-\xf4]{_NEXT}{{3}}")


def passage_id(text: str) -> DocId:
    """The id of a passage: the first 16 hexadecimal digits of the SHA-256 of its text.

    Spellings of one text have one id: wrong encodings are mended, and runs of blanks count as one.
    """
    mended = " ".join(mend_encoding(text).split())
    return DocId(hashlib.sha256(mended.encode(errors="surrogatepass")).hexdigest()[:_DIGITS])


def mend_encoding(text: str) -> str:
    """The text with what is UTF-8 read as Latin-1 or Windows-1252 read as UTF-8.

    Each character is mended by itself, so that right and wrong ones may stand side by side, and
    what was read wrongly twice is mended twice. A text may be meant as it is written: this is for
    comparing texts, never for showing them.
    """
    for _ in range(_ROUNDS):
        if text.isascii():
            return text
        mended = _WRONG.sub(_mend, text)
        if mended == text:
            return text
        text = mended
    return text


def _mend(match: re.Match[str]) -> str:
    wrong = match[0]
    raw = bytes(_WINDOWS.get(char, ord(char)) for char in wrong)
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return wrong
