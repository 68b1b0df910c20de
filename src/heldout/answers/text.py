"""Text that somebody else wrote, made safe for a page, a chart, a CSV or a JSON file."""

import re
import unicodedata

_BIDI_CONTROLS = re.compile("[\u202a-\u202e\u2066-\u2069]")
_NOT_TEXT = re.compile("[\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]")


def clean(text: str) -> str:
    """Somebody's text with nothing in it that is not text.

    Control characters and runs of white space become one space, code points that no encoding
    may hold become U+FFFD, and the explicit bidirectional controls go: they serve to make a line
    read as something else.
    """
    if text.isprintable():  # nothing of that, and most text is; its only white space is the blank
        return " ".join(text.split())
    text = _NOT_TEXT.sub("\ufffd", _BIDI_CONTROLS.sub("", text))
    spaced = "".join(" " if unicodedata.category(c) == "Cc" else c for c in text)
    return " ".join(spaced.split())
