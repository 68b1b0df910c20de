"""What of a test set was seen in training: its queries, and its relevant documents as negatives.

A model that was trained on the queries it is tested on is not tested. Ids say nothing of that:
two collections number their queries alike, and one query has two ids. So words are compared.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from heldout.ids import DocId, QueryId
from heldout.survivorship.training.experiment import TestSet
from heldout.survivorship.training.triples import Triple

__all__ = ["TrainedOn", "find_near_copies", "find_trained_on"]

_NEAR = (7, 10)
"""Jaccard similarity of words from which two queries are near duplicates, as a fraction."""

Words = frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainedOn:
    """What of a test set was seen in training.

    Attributes:
        queries: labelled queries of the test set that were trained on, in the same words or
            nearly so.
        labelled: its labelled queries.
        negatives: its relevant documents that were negatives in training, where they have the
            same id and text.
        relevant: its relevant documents.
    """

    queries: int
    labelled: int
    negatives: int
    relevant: int


def find_trained_on(
    test: TestSet,
    triples: Collection[Triple],
    queries: Mapping[QueryId, str],
    documents: Mapping[DocId, str],
) -> TrainedOn:
    """Compare a test set with what is trained on.

    Args:
        test: queries without a text are left aside.
        triples: that are trained on, in any order.
        queries: text of each query of the triples.
        documents: text of each document of the triples.
    """
    labelled = [query for query, grades in test.qrels.items() if _relevant(grades)]
    texts = {str(query): text for query, text in test.queries.items()}
    asked = [texts[query] for query in labelled if query in texts]
    seen = [queries[query] for query in sorted({triple.query for triple in triples})]
    wanted = {one for grades in test.qrels.values() for one in _relevant(grades)}
    negatives = {
        one
        for one in {triple.negative for triple in triples}
        if one in wanted and documents[one] == test.documents.get(one)
    }
    return TrainedOn(
        queries=len(find_near_copies(asked, seen)),
        labelled=len(labelled),
        negatives=len(negatives),
        relevant=len(wanted),
    )


def find_near_copies(texts: Sequence[str], others: Sequence[str]) -> frozenset[int]:
    """Which texts have a near duplicate among others.

    Two texts are near duplicates where the Jaccard similarity of their sets of lower-case words
    is at least 0.7, as in `collections.near_duplicate_groups`. Only texts that share one of
    their rarest words are compared: with so much in common two texts cannot differ in all of
    them. Half a million queries take seconds.

    Args:
        texts: any number of short texts; one without a word is like no other.
        others: to compare with.

    Returns:
        Places in `texts`, from 0.
    """
    ours, theirs = [_words(text) for text in texts], {_words(text) for text in others}
    common = Counter(word for words in (*ours, *theirs) for word in words)
    index: defaultdict[str, list[Words]] = defaultdict(list)
    for words in theirs:
        for word in _rarest(words, common):
            index[word].append(words)
    return frozenset(
        place
        for place, words in enumerate(ours)
        if any(_near(words, other) for word in _rarest(words, common) for other in index[word])
    )


def _relevant(grades: Mapping[str, int]) -> Collection[str]:
    return [document for document, grade in grades.items() if grade > 0]


def _words(text: str) -> Words:
    return frozenset(text.casefold().split())


def _rarest(words: Words, common: Mapping[str, int]) -> Iterable[str]:
    """So many that a near duplicate has one of them among its own."""
    least, unit = _NEAR
    shared = -(-least * len(words) // unit)
    return sorted(words, key=lambda word: (common[word], word))[: len(words) - shared + 1]


def _near(words: Words, other: Words) -> bool:
    least, unit = _NEAR
    shared = len(words & other)
    return unit * shared >= least * (len(words) + len(other) - shared)
