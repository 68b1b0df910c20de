"""Which characters look alike, and in which script a character is: Unicode's tables, reduced.

`characters.txt` names its version of Unicode and the digests of the two files it was made from, by
tools/confusables.py. Python's own `unicodedata` has neither table.
"""

from bisect import bisect_right
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files

_TABLE = "characters.txt"


@cache
def prototypes() -> Mapping[int, str]:
    """Code point -> what it looks like, for `str.translate`.

    Source: confusables.txt of Unicode Technical Standard #39, section 4.
    """
    found: dict[int, str] = {}
    for prototype, sources in _rows(_sections()[1]):
        text = "".join(chr(int(code, 16)) for code in prototype.split("+"))
        found.update((int(code, 16), text) for code in sources)
    return found


def script(character: str) -> str | None:
    """The script of a character, as Unicode names it; None if it goes with every script.

    Args:
        character: one.
    """
    firsts, lasts, scripts = _ranges()
    place = bisect_right(firsts, ord(character)) - 1
    return scripts[place] if place >= 0 and ord(character) <= lasts[place] else None


@cache
def _ranges() -> tuple[list[int], list[int], list[str]]:
    """First and last code points of all ranges, in order, and their scripts."""
    ranges = []
    for name, codes in _rows(_sections()[2]):
        for code in codes:
            first, _, last = code.partition("-")
            ranges.append((int(first, 16), int(last or first, 16), name))
    ranges.sort()
    firsts, lasts, scripts = zip(*ranges, strict=True)
    return list(firsts), list(lasts), list(scripts)


def _rows(section: str) -> Iterator[tuple[str, list[str]]]:
    for line in section.splitlines():
        if not line.startswith("#"):
            key, _, values = line.partition(";")
            yield key, values.split()


def _sections() -> list[str]:
    """What stands above both tables, and the tables; an empty line parts them."""
    return files(__package__).joinpath(_TABLE).read_text(encoding="utf-8").split("\n\n")
