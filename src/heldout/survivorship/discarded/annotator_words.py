"""What annotators type: their names and their notes, as they are stored."""

import unicodedata

__all__ = [
    "LONGEST_NAME",
    "LONGEST_NOTE",
    "annotator_fault",
    "annotator_name",
    "note_fault",
    "visible_note",
]

LONGEST_NAME = 60
"""Characters of an annotator's name."""

LONGEST_NOTE = 2000
"""Characters of a note."""

_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
_KEPT = frozenset("\n\t\u200c\u200d")  # joiners are a part of words and of pictograms


def annotator_name(typed: str) -> str:
    """The name that is stored: one for all ways in which somebody types it.

    Case, compatibility forms, accents' forms and blanks make no difference: whoever comes back as
    `Bob` or `bob` is one annotator and not two who agree.
    """
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", typed).casefold())
    return " ".join(folded.split())


def annotator_fault(name: str) -> str:
    """What is wrong with a name, in a sentence; empty where nothing is."""
    if not name:
        return "Please give your name, or any word by which your answers are known."
    if len(name) > LONGEST_NAME or not name.isprintable():
        return f"Please give a name of at most {LONGEST_NAME} visible characters."
    return ""


def visible_note(typed: str) -> str:
    """A note without what nobody sees: control characters, marks of direction, odd line ends."""
    lines = typed.replace("\r\n", "\n")
    return "".join(one for one in lines if not _is_hidden(one)).strip()


def note_fault(note: str) -> str:
    """What is wrong with a note, in a sentence; empty where nothing is."""
    if len(note) > LONGEST_NOTE:
        return f"Please keep the note below {LONGEST_NOTE:,} characters; it has {len(note):,}."
    if any(map(_is_hidden, note)):
        return "Please take characters that nobody sees out of the note."
    return ""


def _is_hidden(character: str) -> bool:
    return unicodedata.category(character) in _HIDDEN and character not in _KEPT
