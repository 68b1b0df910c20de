"""Facets of queries that their text tells: length, kind of question, words of a list.

A facet is a set of queries with a name. Labels of a classifier come as a file instead
(`heldout.trec.groups.read_facets`). A list of words is how domain subsets of MS MARCO were cut
(msmarco-benchmarking, section 5): a query belongs to the domain where it has a word of the list.
"""

import re
from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet

__all__ = ["REST", "by_length", "by_question", "by_words"]

REST = "other"
"""The facet of the queries that a list or a question word does not claim."""

_WORD = re.compile(r"\w+")
_BANDS = ((1, 3), (4, 6), (7, 9))
_QUESTIONS = (
    *("what", "how", "who", "when", "where", "why", "which", "whose", "whom"),
    *("is", "are", "was", "were", "do", "does", "did", "can", "could", "will", "would", "should"),
)
_OPEN = frozenset(_QUESTIONS[:9])


def by_length(texts: Mapping[str, str]) -> Mapping[str, frozenset[str]]:
    """Queries by their number of words: 1-3, 4-6, 7-9, 10 and more.

    Args:
        texts: text by query.
    """
    return _group((query, _band(len(_words(text)))) for query, text in texts.items())


def by_question(texts: Mapping[str, str]) -> Mapping[str, frozenset[str]]:
    """Queries by the word they begin with: a question word, `yes or no` (is, can, …), `other`.

    Args:
        texts: text by query, in English.
    """
    return _group((query, _question(_words(text)[:1])) for query, text in texts.items())


def by_words(
    texts: Mapping[str, str], listed: Iterable[str], *, name: str
) -> Mapping[str, frozenset[str]]:
    """Queries that have a word or phrase of a list, and the others.

    Case does not matter, and a word is matched as a whole: `art` is not in `heart`.

    Args:
        texts: text by query.
        listed: words, or phrases whose words follow each other in a query.
        name: of the facet.
    """
    phrases = {tuple(words) for words in map(_words, listed) if words}
    longest = max(map(len, phrases), default=0)
    return _group(
        (query, name if _has(_words(text), phrases, longest) else REST)
        for query, text in texts.items()
    )


def _words(text: str) -> list[str]:
    return _WORD.findall(text.casefold())


def _band(length: int) -> str:
    for low, high in _BANDS:
        if length <= high:
            return f"{low}-{high} words"
    return f"{_BANDS[-1][1] + 1} words or more"


def _question(first: list[str]) -> str:
    if not first or first[0] not in _QUESTIONS:
        return REST
    return first[0] if first[0] in _OPEN else "yes or no"


def _has(words: list[str], phrases: AbstractSet[tuple[str, ...]], longest: int) -> bool:
    return any(
        tuple(words[start : start + length]) in phrases
        for start in range(len(words))
        for length in range(1, longest + 1)
    )


def _group(pairs: Iterable[tuple[str, str]]) -> Mapping[str, frozenset[str]]:
    found: dict[str, set[str]] = {}
    for query, facet in pairs:
        found.setdefault(facet, set()).add(query)
    return {facet: frozenset(found[facet]) for facet in sorted(found)}
