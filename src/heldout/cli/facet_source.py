"""Where the facets of queries come from: a file of labels, or what the queries' texts tell."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import click

from heldout.trec.groups import read_facets
from heldout.trec.queries import read_queries
from heldout.trec.reading.streams import open_input
from heldout.trec.word_lists import read_word_list
from heldout.validity.query_facets import by_length, by_question, by_words

__all__ = ["FacetSource", "load_facets", "load_texts"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FacetSource:
    """What a command was told of facets.

    Attributes:
        labels: a file of `query<TAB>facet`.
        queries: the queries' texts.
        by: what of the texts makes facets.
        words: a file with a word or phrase in each line.
    """

    labels: Path | None
    queries: Path | None
    by: Literal["length", "question"] | None
    words: Path | None


def load_facets(source: FacetSource) -> Mapping[str, frozenset[str]]:
    """Queries by facet.

    Raises:
        click.UsageError: none or several ways are named, or the queries' texts are not.
        InputError: a file has errors.
    """
    if sum(way is not None for way in (source.labels, source.by, source.words)) != 1:
        raise click.UsageError("which facets? one of --facets FILE, --by WHAT, or --words FILE")
    if source.labels is not None:
        with open_input(source.labels) as file:
            return read_facets(file, path=str(source.labels))
    texts = load_texts(source)
    if source.words is not None:
        with open_input(source.words) as file:
            listed = read_word_list(file, path=str(source.words))
        return by_words(texts, listed, name=source.words.name.split(".")[0])
    return by_length(texts) if source.by == "length" else by_question(texts)


def load_texts(source: FacetSource) -> Mapping[str, str]:
    """Text by query.

    Raises:
        click.UsageError: they are not named.
        InputError: the file has errors.
    """
    if source.queries is None:
        raise click.UsageError("which texts? --queries FILE")
    with open_input(source.queries) as file:
        return read_queries(file, path=str(source.queries)).texts
