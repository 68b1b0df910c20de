"""From text to terms: words, the parts of identifiers, stems, and character n-grams."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from heldout.errors import SetupError

__all__ = ["TextSettings", "Tokeniser", "character_ngrams", "make_tokeniser", "split_identifier"]

Tokeniser = Callable[[str], list[str]]

_WORD = re.compile(r"\w+")
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
# English words of grammar rather than of content.
_GRAMMAR_WORDS = """
    a an and are as at be been but by can do does for from had has have he her his how i if
    in into is it its me my no nor not of on or our she should so such than that the their
    them then there these they this those to was we were what when where which who will with
    would you your
"""
_STOPWORDS = frozenset(_GRAMMAR_WORDS.split())


@dataclass(frozen=True, slots=True, kw_only=True)
class TextSettings:
    """How text becomes terms; every ranker on words takes these.

    Attributes:
        identifiers: `whole` keeps `readInto_buffer` one term, `parts` makes it `read`,
            `into`, `buffer`, and `both` gives all four.
        stem: reduce words to their stems with the Snowball stemmer for English; needs the
            extra `rankers`.
        stopwords: leave out English function words.
    """

    identifiers: Literal["whole", "parts", "both"] = "parts"
    stem: bool = False
    stopwords: bool = False


def make_tokeniser(settings: TextSettings) -> Tokeniser:
    """A function from text to its terms, in the order of the text, repeats kept.

    Raises:
        SetupError: stems are wanted and PyStemmer is not installed.
    """
    stem = _stemmer() if settings.stem else None
    known: dict[str, list[str]] = {}

    def terms_of(word: str) -> list[str]:
        terms = [term for term in _forms(word, settings.identifiers) if term]
        if settings.stopwords:
            terms = [term for term in terms if term not in _STOPWORDS]
        return [stem(term) for term in terms] if stem else terms

    def tokenise(text: str) -> list[str]:
        result: list[str] = []
        for word in _WORD.findall(text):
            if word not in known:
                known[word] = terms_of(word)
            result.extend(known[word])
        return result

    return tokenise


def split_identifier(word: str) -> list[str]:
    """Parts of an identifier: at underscores and where lower case meets upper case.

    Args:
        word: letters, digits and underscores.

    Returns:
        Parts as written; joined they are the word without its underscores.
    """
    return [part for piece in word.split("_") if piece for part in _HUMP.split(piece)]


def character_ngrams(text: str, *, shortest: int, longest: int) -> list[str]:
    """Character n-grams of each word, the word framed by blanks, in lower case.

    Args:
        text: any text.
        shortest: smallest n, >= 1.
        longest: largest n, >= `shortest`.

    Returns:
        The n-grams of all lengths, repeats kept; a framed word shorter than n gives none
        of that length.

    Source: McNamee and Mayfield, Information Retrieval 7, 2004 (n-grams for retrieval).
    """
    framed = [f" {word} " for word in _WORD.findall(text.lower())]
    return [
        word[start : start + length]
        for word in framed
        for length in range(shortest, longest + 1)
        for start in range(len(word) - length + 1)
    ]


def _forms(word: str, identifiers: str) -> list[str]:
    whole = word.strip("_").lower()
    if identifiers == "whole":
        return [whole]
    parts = [part.lower() for part in split_identifier(word)]
    return [whole, *parts] if identifiers == "both" and len(parts) > 1 else parts


def _stemmer() -> Callable[[str], str]:
    try:
        import Stemmer  # noqa: PLC0415 - of the extra `rankers`
    except ImportError as error:
        raise SetupError("stems need PyStemmer: pip install 'heldout[rankers]'") from error
    stem: Callable[[str], str] = Stemmer.Stemmer("english").stemWord
    return stem
