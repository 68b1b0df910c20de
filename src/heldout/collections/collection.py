"""What is ranked: documents, queries, and the few relevant documents that are known.

Also the split of queries into a development set, whose labels everybody sees, and an
evaluation set, whose labels are held out.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from heldout.ids import DocId, QueryId

if TYPE_CHECKING:
    from scipy.sparse import csr_array

_NEAR = 0.7
"""Jaccard similarity of two queries' word sets from which they count as near duplicates."""

_PAIRS = 1 << 16
"""Pairs of texts that are compared at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Collection:
    """Documents, queries and judgments; whoever gets one leaves its mappings as they are.

    Attributes:
        documents: text by document id, in the order of the ids; one line each.
        queries: text by query id, in the order of the ids; one line each.
        qrels: per query the grade of each judged document, 1 or more for a relevant one.
    """

    documents: Mapping[DocId, str]
    queries: Mapping[QueryId, str]
    qrels: Mapping[QueryId, Mapping[DocId, int]]

    def restrict(self, queries: frozenset[QueryId]) -> "Collection":
        """The same documents with only these queries and their judgments."""
        return Collection(
            documents=self.documents,
            queries={query: text for query, text in self.queries.items() if query in queries},
            qrels={query: grades for query, grades in self.qrels.items() if query in queries},
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class QuerySplit:
    """Two collections over the same documents whose queries do not overlap.

    Attributes:
        dev: queries whose labels are public.
        eval: queries whose labels are held out.
    """

    dev: Collection
    eval: Collection


def split_queries(collection: Collection, *, dev: float, rng: np.random.Generator) -> QuerySplit:
    """Divide the queries at random; near duplicates stay on one side.

    Args:
        collection: what to split; its documents go to both sides.
        dev: share of the queries that go to the dev side, in (0, 1). Groups of near
            duplicates are not broken, so the share is met to within the last group.
        rng: sole source of randomness; advanced in place.

    Raises:
        ValueError: `dev` lies outside (0, 1).
    """
    if not 0 < dev < 1:
        raise ValueError("the dev share lies strictly between 0 and 1")
    queries = tuple(collection.queries)
    groups = near_duplicate_groups(tuple(collection.queries.values()))
    wanted = dev * len(queries)
    chosen: set[QueryId] = set()
    for group in rng.permutation(int(groups.max(initial=-1)) + 1):
        if len(chosen) >= wanted:
            break
        chosen.update(queries[index] for index in np.flatnonzero(groups == group))
    return QuerySplit(
        dev=collection.restrict(frozenset(chosen)),
        eval=collection.restrict(frozenset(queries) - chosen),
    )


def near_duplicate_groups(texts: tuple[str, ...]) -> NDArray[np.int64]:
    """Number the groups of texts that are near duplicates of each other, directly or by a chain.

    Two texts are near duplicates where the Jaccard similarity of their sets of lower-case
    words is at least 0.7.

    Args:
        texts: any number of short texts; only those that share a rare word are compared.

    Returns:
        int64, shape (texts,): group numbers from 0; texts without a word stand alone.
    """
    if not texts:
        return np.zeros(0, dtype=np.int64)
    words = _incidence(texts)
    sizes = words.sum(axis=1)
    first, second = _candidates(words, sizes)
    shared = np.concatenate(
        [
            np.zeros(0, dtype=np.int64),
            *(
                words[first[at : at + _PAIRS]].multiply(words[second[at : at + _PAIRS]]).sum(axis=1)
                for at in range(0, len(first), _PAIRS)
            ),
        ]
    )
    from scipy import sparse  # noqa: PLC0415 - slow to load
    from scipy.sparse import csgraph  # noqa: PLC0415 - slow to load

    near = shared >= _NEAR * (sizes[first] + sizes[second] - shared)
    links = sparse.coo_array(
        (np.ones(int(near.sum())), (first[near], second[near])), shape=(len(texts), len(texts))
    )
    return np.asarray(csgraph.connected_components(links, directed=False)[1], dtype=np.int64)


def _candidates(
    words: "csr_array", sizes: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Pairs of texts that may be near duplicates: those that share one of their rarest words.

    Two texts with so much in common cannot differ in all words of which each has more than it
    may lack. All pairs would be too many: most share a word that nearly every text has.

    Returns:
        Row numbers, the first of each pair below the second.
    """
    counts = words.sum(axis=0)
    rank = np.empty(len(counts), dtype=np.int64)
    rank[np.argsort(counts, kind="stable")] = np.arange(len(counts))
    rows = np.repeat(np.arange(len(sizes)), sizes)
    order = np.lexsort((rank[words.indices], rows))
    position = np.arange(len(rows)) - (np.cumsum(sizes) - sizes)[rows]
    rare = position < (sizes - np.ceil(_NEAR * sizes).astype(np.int64) + 1)[rows]
    cells = rows[rare], words.indices[order][rare]
    from scipy.sparse import csr_array  # noqa: PLC0415 - slow to load

    rarest = csr_array((np.ones(int(rare.sum()), dtype=np.int64), cells), shape=words.shape)
    first, second = (rarest @ rarest.T).tocoo().coords
    below = first < second
    return first[below], second[below]


def _incidence(texts: tuple[str, ...]) -> "csr_array":
    """Return which text (row) has which word (column), as 0 and 1."""
    columns: dict[str, int] = {}
    cells = [
        (row, columns.setdefault(word, len(columns)))
        for row, text in enumerate(texts)
        for word in sorted(set(text.casefold().split()))
    ]
    rows, words = np.array(cells, dtype=np.int64).reshape(-1, 2).T
    ones = np.ones(len(cells), dtype=np.int64)
    from scipy.sparse import csr_array  # noqa: PLC0415 - slow to load

    return csr_array((ones, (rows, words)), shape=(len(texts), max(len(columns), 1)))
