"""Which queries a command looks at: all of them, some, or each kind apart.

A facet is an attribute of queries: how many words they have, the word they begin with, whether
they have a word of a list, or the labels in a file.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from pathlib import Path

import click

from heldout.cli.options import one_argument
from heldout.errors import InputError, Problem, quote
from heldout.trec.groups import read_facets
from heldout.trec.queries import read_queries
from heldout.trec.reading.streams import open_input
from heldout.trec.word_lists import read_word_list
from heldout.validity.query_facets import by_length, by_question, by_words

__all__ = ["FacetSource", "facet_options", "load_facet", "load_only", "load_texts"]

_WORDS = "words:"


@dataclass(frozen=True, slots=True, kw_only=True)
class FacetSource:
    """What a command was told of facets.

    Attributes:
        facet: whose values are looked at one by one: `length`, `question`, `words:FILE`, or the
            path of a file of `query<TAB>value`; `None` for all queries at once.
        only: facets with a value each, as `FACET=VALUE`; queries that do not have all of these
            values are left out.
        texts: files of the queries' texts.
        least: fewest queries that anything is said of.
    """

    facet: str | None = None
    only: tuple[str, ...] = ()
    texts: tuple[Path, ...] = ()
    least: int = 20


facet_options = one_argument(
    "facets",
    FacetSource,
    click.option(
        "--facet",
        metavar="FACET",
        help="Each kind of query apart: length, question, words:FILE, or a file of query<TAB>kind.",
    ),
    click.option(
        "--only",
        multiple=True,
        metavar="FACET=KIND",
        help="These queries alone, as in question=what; many times where all must hold.",
    ),
    click.option(
        "--queries",
        "texts",
        type=click.Path(path_type=Path, dir_okay=False),
        multiple=True,
        metavar="FILE",
        help="The queries' texts, for length, question and words:FILE.",
    ),
    click.option(
        "--least",
        type=click.IntRange(min=2),
        default=20,
        show_default=True,
        help="Fewest queries of a kind; nothing is said of fewer.",
    ),
)
"""`--facet`, `--only`, `--queries` and `--least`, as one `facets` argument."""


def load_facet(name: str, source: FacetSource) -> Mapping[str, frozenset[str]]:
    """Queries by value of a facet.

    Args:
        name: of the facet, as in `FacetSource.facet`.
        source: has the queries' texts.

    Raises:
        click.UsageError: the queries' texts are needed and not named.
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
        click.UsageError: it is not `FACET=KIND`, or the queries' texts are needed and not named.
        InputError: code `no-facet`: the facet has no such value; or a file has errors.
    """
    found = [_find(one, source) for one in source.only]
    return reduce(frozenset.intersection, found) if found else None


def load_texts(source: FacetSource) -> Mapping[str, str]:
    """Text by query.

    Raises:
        click.UsageError: they are not named.
        InputError: a file has errors.
    """
    if not source.texts:
        raise click.UsageError("which texts? --queries FILE")
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
        raise click.UsageError(f"--only {only}: write FACET=KIND, as in question=what")
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
