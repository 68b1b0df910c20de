"""What an organiser should know of query sets before a board opens on them.

The columns are those of Tables 1 and 2 of fostering-coopetition; lengths are counted in tokens
between white space, as there.
"""

import statistics
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import msgspec

from heldout.board.query_sets.overlap import NEAR, Overlap, find_overlap, normalise
from heldout.board.query_sets.resolution import ASSUMED, Resolution, Spread, resolve
from heldout.errors import plural
from heldout.trec.qrels import Qrels
from heldout.trec.queries import Queries

__all__ = [
    "CollectionFacts",
    "Description",
    "LabelFacts",
    "QueryFacts",
    "as_document",
    "describe_collection",
    "describe_sets",
    "list_columns",
    "list_notes",
    "say_collection",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelFacts:
    """What the judgments of a query set hold; those of queries outside it are left out.

    Attributes:
        judgments: |J|.
        judgments_per_query: |J|/q, over all queries of the set.
        relevant_per_query: |Rel|/q, likewise; a grade from 1 up is relevant.
        grades: grade -> judgments, from the lowest.
        judged: queries with at least one judgment that are not excluded: the n of every mean.
        unjudged: queries without a judgment, left out of every mean.
        excluded: queries with a judgment that the organiser leaves out.
        without_relevant: of the `judged`, those without a relevant document: any run gets 0.
        outside: judgments whose query is not in the set.
        outside_queries: how many queries those are.
    """

    judgments: int
    judgments_per_query: float
    relevant_per_query: float
    grades: Mapping[int, int]
    judged: int
    unjudged: int
    excluded: int
    without_relevant: int
    outside: int
    outside_queries: int


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryFacts:
    """A query set.

    Attributes:
        name: of the set.
        queries: |q|.
        mean_length: mean tokens of a query.
        repeated: queries whose normalised text an earlier query of the set has.
        labels: what its judgments hold, `None` where none were given.
        why: why there are no labels; empty where there are.
        resolution: the smallest difference that it tells apart.
    """

    name: str
    queries: int
    mean_length: float
    repeated: int
    labels: LabelFacts | None
    why: str
    resolution: Resolution


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectionFacts:
    """The documents.

    Attributes:
        documents: |C|.
        mean_length, median_length: tokens of a document.
    """

    documents: int
    mean_length: float
    median_length: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Description:
    """Everything `heldout board describe` tells.

    Attributes:
        sets: in the order given.
        overlaps: each pair of sets, in the order given.
        collection: the documents, `None` where they were not given.
        schema: version of the JSON that `as_document` makes.
    """

    sets: tuple[QueryFacts, ...]
    overlaps: tuple[Overlap, ...] = ()
    collection: CollectionFacts | None = None
    schema: int = 1


def describe_sets(
    sets: Mapping[str, tuple[Queries, Qrels | None]],
    *,
    excluded: Mapping[str, Collection[str]] | None = None,
    spread: Spread = ASSUMED,
    collection: CollectionFacts | None = None,
    threshold: float = NEAR,
    examples: int = 5,
) -> Description:
    """Describe query sets.

    Args:
        sets: name -> queries, and labels where they are at hand.
        excluded: name -> queries that do not count.
        spread: of paired differences; `measure_spread` takes it from earlier runs.
        collection: facts about the documents, to be carried along.
        threshold: least cosine of near-duplicate queries.
        examples: most examples of each kind.
    """
    left_out = excluded or {}
    facts = tuple(
        _describe_set(name, queries, qrels, frozenset(left_out.get(name, ())), spread)
        for name, (queries, qrels) in sets.items()
    )
    texts = {name: dict(queries.texts) for name, (queries, _) in sets.items()}
    overlaps = tuple(
        find_overlap(a, b, threshold=threshold, examples=examples)
        for a, b in combinations(texts.items(), 2)
    )
    return Description(sets=facts, overlaps=overlaps, collection=collection)


def describe_collection(texts: Iterable[str]) -> CollectionFacts:
    """Count documents and their tokens.

    Raises:
        ValueError: there is no document.
    """
    lengths = [len(text.split()) for text in texts]
    if not lengths:
        raise ValueError("no document")
    return CollectionFacts(
        documents=len(lengths),
        mean_length=statistics.fmean(lengths),
        median_length=statistics.median(lengths),
    )


def say_collection(facts: CollectionFacts) -> str:
    """What Table 1 says of the documents, in a line."""
    return (
        f"{plural(facts.documents, 'document')} of {facts.mean_length:,.2f} tokens on average, "
        f"median {facts.median_length:,g}"
    )


def as_document(description: Description) -> dict[str, Any]:
    """The description as JSON-ready values: the fields' names are the keys."""
    document: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(description))
    return document


def list_columns(description: Description) -> tuple[tuple[str, ...], ...]:
    """Tables 1 and 2 as cells: a header, then a row per set; `-` where labels are not at hand."""
    header = ("set", "|q|", "L(q)", "|J|", "|J|/q", "|Rel|/q")
    return (header, *(_list_cells(one) for one in description.sets))


def list_notes(description: Description) -> tuple[str, ...]:
    """What an organiser should know, a sentence each; nothing where there is nothing to say."""
    notes = [note for one in description.sets for note in _note_labels(one)]
    notes += [note for overlap in description.overlaps for note in _note_overlap(overlap)]
    notes += [_note_resolution(one) for one in description.sets]
    return tuple(notes)


def _list_cells(one: QueryFacts) -> tuple[str, ...]:
    cells = (one.name, f"{one.queries:,}", f"{one.mean_length:.2f}")
    labels = one.labels
    if labels is None:
        return (*cells, "-", "-", "-")
    per_query = (labels.judgments_per_query, labels.relevant_per_query)
    return (*cells, f"{labels.judgments:,}", *(f"{value:.2f}" for value in per_query))


def _describe_set(
    name: str, queries: Queries, qrels: Qrels | None, excluded: frozenset[str], spread: Spread
) -> QueryFacts:
    texts = queries.texts
    if not texts:
        raise ValueError(f"{name} has no query")
    labels = None if qrels is None else _describe_labels(queries, qrels, excluded)
    judged = len(texts.keys() - excluded) if labels is None else labels.judged
    return QueryFacts(
        name=name,
        queries=len(texts),
        mean_length=statistics.fmean(len(text.split()) for text in texts.values()),
        repeated=len(texts) - len({normalise(text) for text in texts.values()}),
        labels=labels,
        why="no labels given" if labels is None else "",
        resolution=resolve(judged, spread),
    )


def _describe_labels(queries: Queries, qrels: Qrels, excluded: frozenset[str]) -> LabelFacts:
    inside = {q: grades for q, grades in qrels.judgments.items() if q in queries.texts}
    outside = [grades for q, grades in qrels.judgments.items() if q not in queries.texts]
    grades = Counter(grade for judged in inside.values() for grade in judged.values())
    counted = {q: grades for q, grades in inside.items() if q not in excluded}
    total = len(queries.texts)
    return LabelFacts(
        judgments=grades.total(),
        judgments_per_query=grades.total() / total,
        relevant_per_query=sum(n for grade, n in grades.items() if grade >= 1) / total,
        grades=dict(sorted(grades.items())),
        judged=len(counted),
        unjudged=total - len(inside),
        excluded=len(inside) - len(counted),
        without_relevant=sum(max(judged.values()) < 1 for judged in counted.values()),
        outside=sum(len(grades) for grades in outside),
        outside_queries=len(outside),
    )


def _note_labels(one: QueryFacts) -> Iterator[str]:
    if one.repeated:
        yield f"{one.repeated:,} {one.name} queries repeat the text of an earlier one"
    labels = one.labels
    if labels is None:
        return
    if labels.unjudged:
        yield f"{labels.unjudged:,} {one.name} queries have no judgment and are left out"
    if labels.excluded:
        yield f"{labels.excluded:,} {one.name} queries are excluded and left out"
    if labels.without_relevant:
        yield (
            f"{labels.without_relevant:,} {one.name} queries are judged and have no relevant "
            "document: they count 0 for every run"
        )
    if labels.outside:
        yield (
            f"{labels.outside:,} {one.name} judgments are for {labels.outside_queries:,} queries "
            "that the query file does not have, and are ignored"
        )


def _note_overlap(overlap: Overlap) -> Iterator[str]:
    sets = f"{overlap.first} and {overlap.second}"
    if overlap.same_id:
        other = overlap.same_id_other_text
        yield f"{overlap.same_id:,} queries are in both {sets}" + (
            f", {other:,} of them with another text" if other else ""
        )
    if overlap.same_text:
        yield (
            f"{overlap.same_text:,} {overlap.second} queries have the text of a query in "
            f"{overlap.first} under another id"
        )
    if overlap.near:
        yield (
            f"{overlap.near:,} {overlap.second} queries are near-duplicates of one in "
            f"{overlap.first} (trigram cosine {overlap.threshold:g} or more)"
        )


def _note_resolution(one: QueryFacts) -> str:
    found = one.resolution
    if found.difference is None:
        return f"{one.name}: {found.why}"
    return (
        f"{found.queries:,} {one.name} queries tell systems apart from about "
        f"{found.difference:.2g} upwards (paired t test, alpha {found.alpha:g}, power "
        f"{found.power:g}; {found.spread.why})"
    )
