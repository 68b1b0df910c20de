"""Means over each query subset, from the scores of all queries."""

import math
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

import numpy as np

from heldout.errors import plural
from heldout.measures.evaluate import Evaluation


@dataclass(frozen=True, slots=True, kw_only=True)
class KindScores:
    """Means of one run over one kind of query.

    Attributes:
        queries: how many judged queries are of this kind.
        least: fewest that anything is said of.
        means: by measure; `None` where undefined.
        why: by measure, the reason where it is.
    """

    queries: int
    least: int
    means: Mapping[str, float | None]
    why: Mapping[str, str]


def score_kinds(
    evaluation: Evaluation, kinds: Mapping[str, AbstractSet[str]], *, least: int
) -> Mapping[str, KindScores]:
    """Means over each kind of query.

    Args:
        evaluation: of all queries.
        kinds: queries by kind.
        least: fewest queries of a kind, below which nothing is said of it.
    """
    return {kind: _score(evaluation, queries, least) for kind, queries in kinds.items()}


def _score(evaluation: Evaluation, queries: AbstractSet[str], least: int) -> KindScores:
    kept = np.array([query in queries for query in evaluation.queries], np.bool_)
    size = int(kept.sum())
    means: dict[str, float | None] = {}
    why = {}
    for measure, scores in evaluation.scores.items():
        values = scores.values[kept & scores.defined].tolist()
        enough = size >= least and bool(values)
        means[str(measure)] = math.fsum(values) / len(values) if enough else None
        if not enough:
            few = f"{plural(size, 'query', 'queries')}; this needs {least}"
            why[str(measure)] = few if size < least else "undefined for each of them"
    return KindScores(queries=size, least=least, means=means, why=why)
