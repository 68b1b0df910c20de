"""Parts of the one sentence that an answer begins with."""

from collections.abc import Sequence

from heldout.answers.table import format_p
from heldout.answers.text import clean

_NAMED = 3
_NAME = 28
_START = 13


def name_one(name: str) -> str:
    """Somebody's name in a sentence: on one line, and cut where it is long.

    Of a path the end is left, of other names both ends: names of one family differ there.
    """
    name = clean(name)
    if len(name) <= _NAME:
        return name
    start = 0 if "/" in name else _START
    return f"{name[:start].rstrip()}…{name[len(name) - _NAME + start + 1 :].lstrip()}"


def name_some(names: Sequence[str]) -> str:
    """Names in a sentence: `a`, `a and b`, `a, b and c`, or `a, b, c and 5 more`."""
    shown = [name_one(name) for name in names[:_NAMED]]
    if len(names) > _NAMED:
        return f"{', '.join(shown)} and {len(names) - _NAMED:,} more"
    return " and ".join(filter(None, (", ".join(shown[:-1]), shown[-1])))


def say_p(p: float) -> str:
    """A p-value in a sentence: `p = .042`, `p < .0001`."""
    text = format_p(p)
    return f"p {text[0]} {text[1:]}" if text.startswith("<") else f"p = {text}"
