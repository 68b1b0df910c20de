"""Which queries are looked at: all of them, some, or each kind apart.

A facet is an attribute of queries: how many words they have, the word they begin with, whether
they have a word of a list, or the labels in a file.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import Annotated

from heldout.errors import InputError, OptionError, Problem, plural, quote
from heldout.options import Opt
from heldout.trec.groups import read_facets
from heldout.trec.queries import read_queries
from heldout.trec.reading.streams import open_input
from heldout.trec.word_lists import read_word_list
from heldout.validity.query_facets import by_length, by_question, by_words

_WORDS = "words:"


@dataclass(frozen=True, slots=True, kw_only=True)
class FacetSource:
    """The queries to look at."""

    facet: Annotated[
        str | None,
        Opt(
            "Query subsets, each analysed apart: length, question, words:FILE, or a file of "
            "query<TAB>subset.",
            metavar="FACET",
        ),
    ] = None
    only: Annotated[
        tuple[str, ...],
        Opt(
            "Query subset to analyse alone, as in question=what; given many times, all must hold.",
            metavar="FACET=SUBSET",
        ),
    ] = ()
    texts: Annotated[
        tuple[Path, ...],
        Opt(
            "Query texts, for length, question and words:FILE.",
            names=("--queries",),
            metavar="FILE",
            path="file",
        ),
    ] = ()
    least: Annotated[int, Opt("Fewest queries of a subset that is used.", least=2)] = 20


def check_size(size: int, least: int, *, path: str) -> None:
    """Refuse a part of the queries that is too small to be looked at.

    Raises:
        InputError: code `too-few-queries`.
    """
    if size < least:
        raise InputError(
            Problem(
                code="too-few-queries",
                path=path,
                found=f"{plural(size, 'query', 'queries')} with scores",
                expected=f"at least {least}",
                hint="a smaller part says little; --least says how small it may be",
            )
        )


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
        with open_input(path) as file:
            return read_facets(file, path=str(path))
    texts = load_texts(source)
    with open_input(path) as file:
        listed = read_word_list(file, path=str(path))
    return by_words(texts, listed, name=path.name.split(".")[0])


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
        with open_input(path) as file:
            found = read_queries(file, path=str(path)).texts
        _check_texts(texts, found, str(path))
        texts |= found
    return texts


def _check_texts(before: Mapping[str, str], found: Mapping[str, str], path: str) -> None:
    """Refuse two texts of one query: the later file would silently take the other's place."""
    for query, text in found.items():
        if before.get(query, text) != text:
            raise InputError(
                Problem(
                    code="changed-text",
                    path=path,
                    found=f"another text of query {quote(query)} than in the files before",
                    expected="one text of each query",
                    hint="name the file of the queries that the runs answer, and no other",
                )
            )


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
    return InputError(
        Problem(
            code="no-facet",
            path="--only",
            found=f"no query is of {quote(only)}",
            expected=f"one of {', '.join(map(quote, values[:shown]))}{more}",
        )
    )
