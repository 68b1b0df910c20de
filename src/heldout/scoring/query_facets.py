"""Facets of queries by their text: length, kind of question, words of a list.

A facet is a set of queries with a name. Labels of a classifier come as a file instead
(`heldout.trec.groups.read_facets`). A list of words is how domain subsets of MS MARCO were cut
(Craswell et al. 2021, §5): a query belongs to the domain where it has a word of the list.

Lists of words or phrases, one in each line, as they are used to cut a domain out of queries.

Which queries are looked at: all of them, some, or each kind apart. A facet is an attribute of
queries: how many words they have, the word they begin with, whether they have a word of a list, or
the labels in a file.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import reduce
from pathlib import Path
from typing import BinaryIO

from heldout.collections.named import load_queries
from heldout.errors import InputError, OptionError, plural, quote
from heldout.scoring.options import FacetSource
from heldout.trec.groups import read_facets
from heldout.trec.reading.sources import read_file
from heldout.trec.reading.streams import Limits, open_rows


def read_word_list(source: BinaryIO, *, path: str, limits: Limits | None = None) -> tuple[str, ...]:
    """Read a list to its end: plain, gzip, bzip2 or zstd; blank lines and `#` lines are skipped.

    Args:
        source: its bytes.
        path: its name for messages.
        limits: how much is read.

    Returns:
        The lines without blanks at their ends, at least one.

    Raises:
        InputError: all problems up to `limits.problems`: `empty-file`, `bad-utf8`,
            `control-character`, and those of `TextReader`.
    """
    with open_rows(source, path=path, limits=limits, prose=True) as (_, rows):
        return tuple(line.decode().strip() for _, line in rows)


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


_WORDS = "words:"


def check_size(size: int, least: int, *, path: str) -> None:
    """Refuse a part of the queries that is too small to be looked at.

    Raises:
        InputError: code `too-few-queries`.
    """
    if size < least:
        queries = plural(size, "query", "queries")
        raise InputError.of("too-few-queries", path, queries=queries, least=least)


def load_facet(name: str, source: FacetSource) -> Mapping[str, frozenset[str]]:
    """Queries by value of a facet.

    Args:
        name: `length`, `question`, `words:FILE`, or the path of a file of `query<TAB>value`.
        source: has the queries' texts.

    Raises:
        OptionError: the queries' texts are needed and not named.
        InputError: a file has errors.
    """
    if name == "length":
        return by_length(load_texts(source))
    if name == "question":
        return by_question(load_texts(source))
    path = Path(name.removeprefix(_WORDS))
    if not name.startswith(_WORDS):
        return read_file(read_facets, path)
    texts = load_texts(source)
    return by_words(texts, read_file(read_word_list, path), name=path.name.split(".")[0])


def load_only(source: FacetSource) -> frozenset[str] | None:
    """The queries that have all values of `--only`; `None` where it was not given.

    Raises:
        OptionError: it is not `FACET=KIND`, or the queries' texts are needed and not named.
        InputError: code `no-facet`: the facet has no such value; or a file has errors.
    """
    found = [_find(one, source) for one in source.only]
    return reduce(frozenset.intersection, found) if found else None


def load_texts(source: FacetSource) -> Mapping[str, str]:
    """Text by query.

    Raises:
        OptionError: they are not named.
        InputError: a file has errors.
    """
    if not source.texts:
        raise OptionError("which texts? --queries FILE")
    texts: dict[str, str] = {}
    for path in source.texts:
        found = load_queries(path).texts
        _check_texts(texts, found, str(path))
        texts |= found
    return texts


def _check_texts(before: Mapping[str, str], found: Mapping[str, str], path: str) -> None:
    """Refuse two texts of one query: the later file would silently take the other's place."""
    for query, text in found.items():
        if before.get(query, text) != text:
            raise InputError.of("changed-text", path, query=quote(query))


def _find(only: str, source: FacetSource) -> frozenset[str]:
    name, equals, value = only.partition("=")
    if not (name and equals and value):
        raise OptionError(f"--only {only}: write FACET=KIND, as in question=what")
    facet = load_facet(name, source)
    if value not in facet:
        raise _no_value(only, tuple(facet))
    return facet[value]


def _no_value(only: str, values: Sequence[str], shown: int = 12) -> InputError:
    more = f", and {len(values) - shown:,} more" if len(values) > shown else ""
    known = f"{', '.join(map(quote, values[:shown]))}{more}"
    return InputError.of("no-facet", "--only", asked=quote(only), known=known)
