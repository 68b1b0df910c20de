"""Names of teams and institutions: those that name nobody, and those that resemble another.

A name is compared with others by what it looks like, never by who may be behind it: spelling
folded, confusable characters merged, scripts compared (`skeleton`). Thresholds were set on the team
names of the MS MARCO boards, TREC-COVID and TREC Deep Learning; tests/board/test_names.py lists
every pair of them that is reported. Sources: Unicode Technical Standard #39, section 4 (confusable
detection) and section 5 (mixed scripts). `characters.txt` names its version of Unicode and the
digests of the two files it was made from, by tools/confusables.py; Python has neither table.
"""

import unicodedata
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import cache, lru_cache
from importlib.resources import files
from typing import Literal

from heldout.board.log.manifest import team_key
from heldout.board.rules.spec import read_table

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
    at = bisect_right(firsts, ord(character)) - 1
    return scripts[at] if at >= 0 and ord(character) <= lasts[at] else None


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
    """Read what stands above both tables, and the tables; an empty line parts them."""
    return files(__package__).joinpath(_TABLE).read_text(encoding="utf-8").split("\n\n")


# The marks of Latin, Greek and Cyrillic. Vowel signs of other scripts are no accents.
_ACCENTS = {
    code: None
    for block in (
        range(0x0300, 0x0370),
        range(0x1AB0, 0x1B00),
        range(0x1DC0, 0x1E00),
        range(0x20D0, 0x2100),
        range(0xFE20, 0xFE30),
    )
    for code in block
}
_MOST_MARKS = 30
_MEMORY = 1 << 15
"""Names remembered: each submission is compared with all teams and their words."""
_ASCII_WORDS = {code: " " for code in range(128) if not chr(code).isalnum()}
_TOGETHER = (
    {"Latin", "Han", "Hiragana", "Katakana"},
    {"Latin", "Han", "Bopomofo"},
    {"Latin", "Han", "Hangul"},
)


@lru_cache(maxsize=_MEMORY)
def spelling_words(name: str) -> tuple[str, ...]:
    """The words of a name with case, width, accents, punctuation and invisible marks folded.

    Args:
        name: as somebody wrote it.

    Returns:
        Words of letters, digits and vowel signs, in order; none where the name has no such.
    """
    return _words(_fold(_fold_width(name)))


@lru_cache(maxsize=_MEMORY)
def skeleton_words(name: str) -> tuple[str, ...]:
    """The words of a name with every character replaced by what it looks like.

    Characters are mapped to their prototypes before and after case is folded: a Cyrillic capital
    may look Latin where the small letter does not. Small and capital i are then one with l and
    1, since a capital I is. "rn" is written as the m that it resembles, so that lengths hold.

    Args:
        name: as somebody wrote it.

    Returns:
        Words for comparison, not for display. Time is linear in the length of the name.

    Source: UTS #39, section 4, with case, width and accents folded besides.
    """
    shown = _fold_width(name).translate(prototypes())
    alike = _fold(_fold(shown).translate(prototypes()))
    return _words(alike.replace("i", "l").replace("rn", "m"))


def skeleton(name: str) -> str:
    """One text for all names that look alike: `skeleton_words` without the blanks."""
    return "".join(skeleton_words(name))


def mixed_words(name: str) -> tuple[str, ...]:
    """The words that mix scripts as no honest word does, such as Latin with Cyrillic.

    Latin beside Han and kana, bopomofo or hangul is allowed. A name may have words of several
    scripts: only within a word is mixing strange.

    Args:
        name: as somebody wrote it.

    Source: UTS #39, section 5.2, the level "highly restrictive", word by word.
    """
    return tuple(word for word in _words(name) if not word.isascii() and _is_mixed(word))


def _fold_width(name: str) -> str:
    """Width and ligatures folded, and of a heap of marks on one letter only the first.

    Putting n marks in order takes n squared time: the Stream-Safe Text Format of UAX #15 ends a
    run of them at the same number.
    """
    if name.isascii():
        return name
    limited, run = [], 0
    for character in name:
        run = run + 1 if unicodedata.combining(character) else 0
        if run <= _MOST_MARKS:
            limited.append(character)
    return unicodedata.normalize("NFKC", "".join(limited))


def _fold(text: str) -> str:
    """Case, width and accents folded, characters that show nothing removed."""
    if text.isascii():
        return text.lower()
    folded = unicodedata.normalize("NFKC", text.casefold())
    bare = unicodedata.normalize("NFD", folded).translate(_ACCENTS)
    return "".join(c for c in unicodedata.normalize("NFC", bare) if unicodedata.category(c) != "Cf")


def _words(text: str) -> tuple[str, ...]:
    if text.isascii():
        return tuple(text.translate(_ASCII_WORDS).split())
    shown = (c if unicodedata.category(c)[0] in "LNM" else " " for c in text)
    return tuple("".join(shown).split())


def _is_mixed(word: str) -> bool:
    scripts = {found for character in word if (found := script(character))}
    return len(scripts) > 1 and not any(scripts <= group for group in _TOGETHER)


Likeness = Literal["spelling", "confusable", "number", "near"]
"""`spelling`: equal but for accents, punctuation, spacing or the order of words. `confusable`:
equal to the eye. `number`: equal but for digits. `near`: some words are nearly the same, the
others are."""

_CHARACTERS_PER_EDIT = 5
_FEWEST_CHARACTERS = 3
_SHORTEST_PART, _LONGEST_PART = 4, 16


def compare_names(first: str, second: str) -> Likeness | None:
    """In which way two names resemble each other; `None` if they do not, or are the same.

    Near are names whose differing words, joined, are at most one edit per five letters apart (a
    swap of neighbours is one edit), so that two persons of one long institution are not near,
    and abbreviations of three or four letters never are.
    """
    if team_key(first) == team_key(second):
        return None
    one, two = spelling_words(first), spelling_words(second)
    if "".join(one) == "".join(two) or sorted(one) == sorted(two):
        return "spelling" if one else None
    one, two = skeleton_words(first), skeleton_words(second)
    if "".join(one) == "".join(two) or sorted(one) == sorted(two):
        return "confusable"
    bare, other = ("".join(map(_without_digits, spelling_words(n))) for n in (first, second))
    if bare == other and len(bare) >= _FEWEST_CHARACTERS:
        return "number"
    left = "".join((Counter(one) - Counter(two)).elements())
    right = "".join((Counter(two) - Counter(one)).elements())
    allowed = min(len(left), len(right)) // _CHARACTERS_PER_EDIT
    near = allowed > 0 and count_edits(left, right, most=allowed) <= allowed
    return "near" if near else None


def count_edits(first: str, second: str, *, most: int) -> int:
    """Fewest edits that make one text of the other; a swap of neighbours is one edit.

    Args:
        first: a text.
        second: another.
        most: beyond it nothing is counted.

    Returns:
        The number, `most` + 1 for every greater one.

    Source: the optimal string alignment distance (Damerau 1964; no part is edited twice).
    """
    # An edit adds one letter at most, and takes away one at most; a swap does neither.
    one, two = Counter(first), Counter(second)
    if max((one - two).total(), (two - one).total()) > most:
        return most + 1
    before: list[int] = []
    last = list(range(len(second) + 1))
    for row, own in enumerate(first, start=1):
        line = [row]
        for column, other in enumerate(second, start=1):
            fewest = min(last[column] + 1, line[-1] + 1, last[column - 1] + (own != other))
            if row > 1 < column and own == second[column - 2] and other == first[row - 2]:
                fewest = min(fewest, before[column - 2] + 1)
            line.append(fewest)
        if min(line) > most:
            return most + 1
        before, last = last, line
    return min(last[-1], most + 1)


def is_generic(name: str) -> bool:
    """Check whether a name names nobody: empty, a placeholder, or words that any team could use.

    Numbers and single letters add nothing: "Team 1", "user123" and "Group B" are generic.

    Args:
        name: of a team or an institution.

    Source: Lin et al. 2022, §3.3, Participant Identity; the words are ours.
    """
    return not without_fillers(name)


def claims_name(name: str, reserved: Iterable[str]) -> str | None:
    """The reserved name that a name amounts to once words such as "team" are left out.

    Args:
        name: of a team.
        reserved: the board's and the organisers' own names.
    """

    def core(text: str) -> str:
        return skeleton("".join(without_fillers(text)))

    own = core(name)
    return next((one for one in reserved if own and own == core(one)), None)


def without_fillers(name: str) -> tuple[str, ...]:
    """The words of a name that not any name could have, case and accents folded."""
    return tuple(word for word in spelling_words(name) if not _is_filler(word))


def _without_digits(word: str) -> str:
    return "".join(character for character in word if not character.isnumeric())


@lru_cache(maxsize=_MEMORY)
def _is_filler(word: str) -> bool:
    """A number, a single letter, or a word of the table that may be numbered."""
    bare = _without_digits(word)
    if not bare or (len(bare) == 1 and bare.isascii()):
        return True
    return any(_is_made_of_fillers(skeleton(text)) for text in (word, bare))


def _is_made_of_fillers(word: str) -> bool:
    """Check whether a skeleton is a filler, or several written as one."""
    fillers, parts = _fillers()
    ends = {0}
    for end in range(1, len(word) + 1):
        starts = range(max(0, end - _LONGEST_PART), end)
        if any(start in ends and word[start:end] in parts for start in starts):
            ends.add(end)
    return word in fillers or len(word) in ends


@cache
def _fillers() -> tuple[frozenset[str], frozenset[str]]:
    """Skeletons of all fillers, and of those that are long enough to be told inside a word."""
    words = read_table("words")["fillers"].split()
    parts = (word for word in words if len(word) >= _SHORTEST_PART or not word.isascii())
    return frozenset(map(skeleton, words)), frozenset(map(skeleton, parts))
