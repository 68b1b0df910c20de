"""What an organiser should know of query sets, views and published scores.

The columns are those of Tables 1 and 2 of Lin et al. 2022; lengths are counted in tokens
between white space, as there.

What two query sets share: ids, texts, and texts that are nearly the same.

How small a difference between two systems a query set can show.

Of the files that views name: what is in them, before a score depends on them.

How large u is on a board, the standard error of the difference of two systems.
"""

import math
import re
import statistics
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from heldout.board.rules.release import standard_error
from heldout.board.rules.spec import BoardSpec, View
from heldout.board.scores.sets import SetData
from heldout.board.standings.standings import FEWEST_DIFFERENT
from heldout.stats.power import detectable_difference
from heldout.trec.qrels import Qrels
from heldout.trec.queries import Queries

NEAR = 0.8
"""Least cosine of two texts that are called nearly the same. Of the 6,980 MS MARCO passage dev
queries 29 have another so near, by eye mostly rewordings of one question."""

_GRAM = 3
_ROUNDING = 1e-9
_CELLS = 1 << 22


@dataclass(frozen=True, slots=True, kw_only=True)
class Overlap:
    """What two query sets share; queries are counted in `second`.

    Attributes:
        first, second: names of the sets.
        same_id: ids in both.
        same_id_other_text: of these, those whose texts differ even when normalised.
        same_text: queries whose normalised text `first` has under another id.
        near: queries whose nearest text in `first`, under another id and not equal, reaches the
            threshold.
        threshold: least cosine that counts as near.
    """

    first: str
    second: str
    same_id: int
    same_id_other_text: int
    same_text: int
    near: int
    threshold: float


def normalise(text: str) -> str:
    """A text as texts are compared: width, case, punctuation and spacing folded."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    return " ".join(re.findall(r"[^\W_]+", folded)) or " ".join(folded.split())


def find_overlap(
    first: tuple[str, Mapping[str, str]],
    second: tuple[str, Mapping[str, str]],
    *,
    threshold: float = NEAR,
) -> Overlap:
    """Compare two query sets, every query with every other.

    Nearness is the cosine of character trigrams of the normalised texts, a blank at each end,
    counted and weighted by 1 + ln(texts / texts with the trigram) over both sets.

    Args:
        first: name of a set, and its queries: id -> text.
        second: likewise.
        threshold: least cosine, above 0 and at most 1.
    """
    if not 0 < threshold <= 1:
        raise ValueError(threshold)
    ours = {query: normalise(text) for query, text in first[1].items()}
    theirs = {query: normalise(text) for query, text in second[1].items()}
    shared = ours.keys() & theirs.keys()
    return Overlap(
        first=first[0],
        second=second[0],
        same_id=len(shared),
        same_id_other_text=sum(ours[query] != theirs[query] for query in shared),
        same_text=_count_equal(ours, theirs),
        near=len(find_near(ours, theirs, threshold)),
        threshold=threshold,
    )


def _count_equal(ours: Mapping[str, str], theirs: Mapping[str, str]) -> int:
    """Count the queries of theirs whose text one of ours has under another id."""
    by_text: dict[str, list[str]] = defaultdict(list)
    for query, text in ours.items():
        by_text[text].append(query)
    return sum(any(other != query for other in by_text[text][:2]) for query, text in theirs.items())


def find_near(
    ours: Mapping[str, str], theirs: Mapping[str, str], threshold: float
) -> dict[str, float]:
    """Query of theirs -> cosine with the nearest of ours that has another id and text."""
    left, right = list(ours), list(theirs)
    if not left or not right:
        return {}
    matrix = _weigh_trigrams([*ours.values(), *theirs.values()])
    near: dict[str, float] = {}
    block = max(1, _CELLS // len(left))
    for start in range(len(left), matrix.shape[0], block):
        cosines = (matrix[start : start + block] @ matrix[: len(left)].T).tocoo()
        close = np.flatnonzero(cosines.data >= threshold - _ROUNDING)
        for index in close:
            query = right[start - len(left) + cosines.row[index]]
            other = left[cosines.col[index]]
            cosine = min(1.0, float(cosines.data[index]))
            if other != query and ours[other] != theirs[query]:
                near[query] = max(cosine, near.get(query, 0.0))
    return near


def _weigh_trigrams(texts: Sequence[str]) -> "sparse.csr_matrix":
    """Unit rows: weighted trigram counts, shape (texts, trigrams)."""
    columns: dict[str, int] = {}
    rows: list[int] = []
    cells: list[int] = []
    counts: list[int] = []
    for row, text in enumerate(texts):
        padded = f" {text} "
        grams = Counter(padded[i : i + _GRAM] for i in range(len(padded) - _GRAM + 1))
        rows += [row] * len(grams)
        cells += [columns.setdefault(gram, len(columns)) for gram in grams]
        counts += grams.values()
    shape = (len(texts), len(columns))
    weights = 1 + np.log(len(texts) / np.bincount(cells, minlength=len(columns)))
    values = np.array(counts, np.float64) * weights[cells]
    norms = np.sqrt(np.bincount(rows, values**2, minlength=len(texts)))
    return sparse.csr_matrix((values / norms[rows], (rows, cells)), shape=shape)


_FEWEST = 2


_ALPHA, _POWER = 0.05, 0.8
_DEVIATION, _CORRELATION = 0.40, 0.67

ASSUMED = _DEVIATION * math.sqrt(2 * (1 - _CORRELATION))
"""Standard deviation of the paired difference of two systems: what reciprocal ranks with one known
relevant document are like; said wherever it is used."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolution:
    """The smallest true difference that a query set finds.

    Attributes:
        queries: number averaged over.
        difference: smallest true mean difference that a paired two-sided t test at `alpha` finds
            with `power`, in the measure's unit; `None` for fewer than two queries.
        why: why there is no difference; empty where there is one.
        alpha: level of the test.
        power: share of the tests that find it.
        deviation: standard deviation of the paired difference that is assumed.
        assumed: what it follows from, in words.
    """

    queries: int
    difference: float | None
    why: str = ""
    alpha: float = _ALPHA
    power: float = _POWER
    deviation: float = ASSUMED
    assumed: str = (
        f"per query, scores have a standard deviation of {_DEVIATION:.2f}, and those of two "
        f"systems a correlation of {_CORRELATION:.2f}"
    )


def resolve(queries: int) -> Resolution:
    """The smallest difference that a number of queries, those averaged over, tells apart."""
    if queries < _FEWEST:
        why = f"{queries} judged queries; a paired test needs two"
        return Resolution(queries=queries, difference=None, why=why)
    difference = detectable_difference(queries, ASSUMED, alpha=_ALPHA, power=_POWER)
    return Resolution(queries=queries, difference=difference)


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
        schema: version of the JSON.
    """

    sets: tuple[QueryFacts, ...]
    overlaps: tuple[Overlap, ...] = ()
    collection: CollectionFacts | None = None
    schema: int = 1


def describe_sets(
    sets: Mapping[str, tuple[Queries, Qrels | None]],
    *,
    excluded: Mapping[str, Collection[str]] | None = None,
    collection: CollectionFacts | None = None,
) -> Description:
    """Describe query sets.

    Args:
        sets: name -> queries, and labels where they are at hand.
        excluded: name -> queries that do not count.
        collection: facts about the documents, to be carried along.
    """
    left_out = excluded or {}
    facts = tuple(
        _describe_set(name, queries, qrels, frozenset(left_out.get(name, ())))
        for name, (queries, qrels) in sets.items()
    )
    texts = {name: dict(queries.texts) for name, (queries, _) in sets.items()}
    overlaps = tuple(find_overlap(a, b) for a, b in combinations(texts.items(), 2))
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


def list_columns(description: Description) -> tuple[tuple[str, ...], ...]:
    """Tables 1 and 2 as cells: a header, then a row per set; `-` where labels are not at hand."""
    header = ("set", "|q|", "L(q)", "|J|", "|J|/q", "|Rel|/q")
    return (header, *(_list_cells(one) for one in description.sets))


def _list_cells(one: QueryFacts) -> tuple[str, ...]:
    cells = (one.name, f"{one.queries:,}", f"{one.mean_length:.2f}")
    labels = one.labels
    if labels is None:
        return (*cells, "-", "-", "-")
    per_query = (labels.judgments_per_query, labels.relevant_per_query)
    return (*cells, f"{labels.judgments:,}", *(f"{value:.2f}" for value in per_query))


def _describe_set(
    name: str, queries: Queries, qrels: Qrels | None, excluded: frozenset[str]
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
        resolution=resolve(judged),
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


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewFacts:
    """A view of fairness or of small data.

    Attributes:
        name: of the view.
        set: its query set.
        queries: how many queries it is scored on: judged, not excluded, and of its part.
        unknown: ids in its files of queries that the set does not have.
        facets: group of queries -> how many of them count.
        too_small: those with fewer than `min_group`, which are left out.
        documents: how many documents have a group.
        shares: group of documents -> share of these documents.
        target: group of documents -> exposure that is fair.
    """

    name: str
    set: str
    queries: int
    unknown: int
    facets: Mapping[str, int] = field(default_factory=dict)
    too_small: tuple[str, ...] = ()
    documents: int = 0
    shares: Mapping[str, float] = field(default_factory=dict)
    target: Mapping[str, float] = field(default_factory=dict)


def describe_views(spec: BoardSpec, sets: Mapping[str, SetData]) -> tuple[ViewFacts, ...]:
    """The views that name files or a part, as far as these, labels and key are at hand."""
    return tuple(
        _describe(view, sets[view.set])
        for view in spec.views
        if (view.files or view.part is not None) and sets[view.set].can_score(view)
    )


def list_counted(view: View, data: SetData) -> set[str]:
    """The queries that a view's scores are over: judged, not excluded, and of its part."""
    judged = {query for query, grades in data.judgments_of(view).items() if grades}
    return judged - data.excluded


def _describe(view: View, data: SetData) -> ViewFacts:
    counted = list_counted(view, data)
    facets = data.files.facets[view.facets] if view.facets is not None else {}
    sizes = {name: len(queries & counted) for name, queries in facets.items()}
    named = set().union(*facets.values())
    if view.queries is not None:
        named |= data.files.queries[view.queries]
    groups = data.files.groups[view.groups] if view.groups is not None else None
    shares = {} if groups is None else groups.shares()
    return ViewFacts(
        name=view.name,
        set=view.set,
        queries=len(counted),
        unknown=len(named - data.queries.texts.keys()),
        facets=sizes,
        too_small=tuple(name for name, size in sizes.items() if size < view.min_group),
        documents=0 if groups is None else sum(groups.documents),
        shares=shares,
        target=view.target or shares,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """u = sd(A - B) / sqrt(n) of two systems on n queries, in units of the measure."""

    size: float
    a: str
    b: str


def find_unit(scored: Mapping[str, Mapping[str, float | None]]) -> Unit | None:
    """Find u of the two systems whose means differ least by their own u, without near copies.

    Args:
        scored: system -> query -> score, `None` where undefined.

    Returns:
        `None` where no two systems differ on `FEWEST_DIFFERENT` queries.
    """
    queries = sorted({query for scores in scored.values() for query in scores})
    rows = {name: _row(scores, queries) for name, scores in scored.items()}
    found: list[tuple[float, Unit]] = []
    for a, b in combinations(rows, 2):
        apart = rows[a] - rows[b]
        apart = apart[np.isfinite(apart)]
        if np.count_nonzero(apart) < FEWEST_DIFFERENT:
            continue
        size = standard_error(apart)
        if size > 0:
            found.append((abs(float(apart.mean())) / size, Unit(size=size, a=a, b=b)))
    return min(found, key=lambda one: one[0])[1] if found else None


def _row(scores: Mapping[str, float | None], queries: Iterable[str]) -> NDArray[np.float64]:
    """Scores in one order, NaN where undefined."""
    return np.array([scores.get(query) for query in queries], np.float64)
