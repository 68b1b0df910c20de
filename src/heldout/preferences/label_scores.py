"""Scores of runs on labels: on one set of them, and on many sets of the same queries at once."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from heldout.errors import InputError, Problem
from heldout.measures.evaluate import prepare, score
from heldout.measures.spec import Measure
from heldout.preferences.pools import Pool
from heldout.trec.places import Places, see_through

__all__ = [
    "Labels",
    "ScoredLabels",
    "SpreadLabels",
    "grade",
    "perfect_places",
    "score_each",
    "score_labels",
    "spread_labels",
]

Labels = Mapping[str, Mapping[str, int]]
"""Query -> document -> grade."""

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoredLabels:
    """Labels, and how runs are measured on them.

    Attributes:
        name: for tables.
        labels: query -> document -> grade.
        measure: what is computed.
    """

    name: str
    labels: Labels
    measure: Measure


@dataclass(frozen=True, slots=True, kw_only=True)
class SpreadLabels:
    """Labels under every id that has a labelled passage's text.

    Attributes:
        labels: query -> document -> grade; ids of one text have the best grade of them.
        queries: how many of them have another label than before.
        copies: documents whose grade is new or higher.
    """

    labels: Labels
    queries: int
    copies: int


def spread_labels(labels: Labels, pools: Sequence[Pool]) -> SpreadLabels:
    """Label every id of a pool that says the same, as preference labels are.

    Args:
        labels: query -> document -> grade.
        pools: which ids have one text.
    """
    spread = {query: dict(grades) for query, grades in labels.items()}
    queries = copies = 0
    for pool in pools:
        grades = spread.get(pool.query, {})
        raised = 0
        for one in pool.candidates:
            ids = (one.doc, *one.same)
            best = max((grades[doc] for doc in ids if doc in grades), default=0)
            wanted = [doc for doc in ids if best > grades.get(doc, 0)]
            grades |= dict.fromkeys(wanted, best)
            raised += len(wanted)
        queries += raised > 0
        copies += raised
    return SpreadLabels(labels=spread, queries=queries, copies=copies)


def grade(labels: Mapping[str, Sequence[str]]) -> Labels:
    """Labels without grades: each document of a query is as good as the other."""
    return {query: dict.fromkeys(documents, 1) for query, documents in labels.items() if documents}


def perfect_places(known: Mapping[str, Sequence[str]]) -> Places:
    """A run that shows the known answer of each query, the first of them, and nothing else."""
    found = {query: {documents[0]: 1} for query, documents in known.items() if documents}
    return Places(found=found, retrieved=dict.fromkeys(found, 1))


def score_labels(
    runs: Mapping[str, Places], wanted: ScoredLabels, *, queries: Sequence[str]
) -> Floats:
    """Scores of runs on some queries.

    Args:
        runs: by name; an unanswered query counts 0.
        wanted: labels of at least these queries, and the measure.
        queries: each once.

    Returns:
        float64, shape (runs, queries).

    Raises:
        InputError: code `missing-scores`: the measure is not defined for some query; and those
            of `prepare` and `score`.
    """
    sets = [[wanted.labels[query]] for query in queries]
    return score_each(runs, sets, wanted.measure, queries=queries)[:, :, 0]


def score_each(
    runs: Mapping[str, Places],
    sets: Sequence[Sequence[Mapping[str, int]]],
    measure: Measure,
    *,
    queries: Sequence[str],
) -> Floats:
    """Scores of runs on several sets of labels for each query; equal sets are measured once.

    Args:
        runs: by name.
        sets: for each query as many, each document -> grade, at least one.
        measure: what is computed.
        queries: same length.

    Returns:
        float64, shape (runs, queries, sets).

    Raises:
        InputError: as `score_labels`.
    """
    which, labels, owners = _distinct(sets, queries)
    judged = prepare(labels, [measure])
    order = {name: place for place, name in enumerate(judged.queries)}
    columns = np.array([order[name] for name in labels], np.int64)[which]
    rows = []
    for run, places in runs.items():
        seen = {name: owners[name] for name in labels if owners[name] in places.found}
        copied = Places(
            found={name: places.found[query] for name, query in seen.items()},
            retrieved={name: places.retrieved[query] for name, query in seen.items()},
        )
        found = score(see_through(copied, labels), judged).scores[measure]
        if not found.defined.all():
            raise InputError(_undefined(run, measure, int((~found.defined).sum())))
        rows.append(found.values[columns])
    return np.array(rows, np.float64).reshape(len(runs), *which.shape)


def _distinct(
    sets: Sequence[Sequence[Mapping[str, int]]], queries: Sequence[str]
) -> tuple[NDArray[np.int64], Labels, Mapping[str, str]]:
    """Which set each is, the different sets under names of their own, and their queries."""
    names: dict[tuple[str, frozenset[tuple[str, int]]], int] = {}
    which = [
        [names.setdefault((query, frozenset(one.items())), len(names)) for one in row]
        for query, row in zip(queries, sets, strict=True)
    ]
    labels = {str(place): dict(items) for (_, items), place in names.items()}
    owners = {str(place): query for (query, _), place in names.items()}
    return np.array(which, np.int64), labels, owners


def _undefined(run: str, measure: Measure, count: int) -> Problem:
    return Problem(
        code="missing-scores",
        path=run,
        found=f"{measure} is not defined for {count:,} of the label sets",
        expected="a score for every query",
        hint="RR@10 is 0 where nothing is found; FirstRel has no value there",
    )
