"""What a name looks like: spelling folded, confusable characters merged, scripts told apart.

Sources: Unicode Technical Standard #39, section 4 (confusable detection) and section 5 (mixed
scripts). The tables are those of Unicode 15.1 as confusable_homoglyphs ships them.
"""

import unicodedata
from collections.abc import Mapping
from functools import cache, lru_cache

__all__ = ["mixed_words", "skeleton", "skeleton_words", "spelling_words"]

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
_KEPT = 1 << 12
"""Names remembered: each submission is compared with all teams and their words."""
_DIRECTION_MARK = "\u200e"  # stands around right-to-left characters in the library's tables
_NEUTRAL = {"COMMON", "INHERITED", "Unknown"}
_TOGETHER = (
    {"LATIN", "HAN", "HIRAGANA", "KATAKANA"},
    {"LATIN", "HAN", "BOPOMOFO"},
    {"LATIN", "HAN", "HANGUL"},
)


@lru_cache(maxsize=_KEPT)
def spelling_words(name: str) -> tuple[str, ...]:
    """The words of a name with case, width, accents, punctuation and invisible marks folded.

    Args:
        name: as somebody wrote it.

    Returns:
        Words of letters, digits and vowel signs, in order; none where the name has no such.
    """
    return _words(_fold(_fold_width(name)))


@lru_cache(maxsize=_KEPT)
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
    shown = _fold_width(name).translate(_prototypes())
    alike = _fold(_fold(shown).translate(_prototypes()))
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
    return tuple(word for word in _words(name) if not _belong_together(_scripts(word)))


def _fold_width(name: str) -> str:
    """Width and ligatures folded, and of a heap of marks on one letter only the first.

    Putting n marks in order takes n squared time: the Stream-Safe Text Format of UAX #15 ends a
    run of them at the same number.
    """
    kept, run = [], 0
    for character in name:
        run = run + 1 if unicodedata.combining(character) else 0
        if run <= _MOST_MARKS:
            kept.append(character)
    return unicodedata.normalize("NFKC", "".join(kept))


def _fold(text: str) -> str:
    """Case, width and accents folded, characters that show nothing removed."""
    folded = unicodedata.normalize("NFKC", text.casefold())
    bare = unicodedata.normalize("NFD", folded).translate(_ACCENTS)
    return "".join(c for c in unicodedata.normalize("NFC", bare) if unicodedata.category(c) != "Cf")


def _words(text: str) -> tuple[str, ...]:
    kept = (c if unicodedata.category(c)[0] in "LNM" else " " for c in text)
    return tuple("".join(kept).split())


def _scripts(word: str) -> set[str]:
    return set() if word.isascii() else {_script(character) for character in word} - _NEUTRAL


def _script(character: str) -> str:
    # 0.1 s to load, and most names are ASCII; ships no types.
    from confusable_homoglyphs import (  # type: ignore[import-untyped]  # noqa: PLC0415
        categories,
    )

    return str(categories.alias(character))


def _belong_together(scripts: set[str]) -> bool:
    return len(scripts) <= 1 or any(scripts <= group for group in _TOGETHER)


@cache
def _prototypes() -> Mapping[int, str]:
    """Code point -> its prototype, for `str.translate`.

    The library lists each pair of UTS #39 both ways. A class is a star: every source has its
    prototype as its only neighbour, and only a prototype can be longer than one character.
    """
    # 0.1 s to load, and many commands compare no names.
    from confusable_homoglyphs import confusables  # noqa: PLC0415 - said above

    neighbours: dict[str, set[str]] = {}
    for character, others in confusables.confusables_data.items():
        near = {other["c"].replace(_DIRECTION_MARK, "") for other in others}
        neighbours.setdefault(character.replace(_DIRECTION_MARK, ""), set()).update(near)
    found = {}
    for character, near in neighbours.items():
        if len(character) == len(near) == 1:
            (other,) = near
            # Of a class of two either may stand for both: the first does.
            if len(other) > 1 or len(neighbours[other]) > 1 or other < character:
                found[ord(character)] = other
    return found
