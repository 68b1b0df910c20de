"""Scores of `heldout evaluate` on each kind of query, from the scores of all."""

import math
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

import numpy as np

from heldout.cli.printing import Console, number, plural, print_facts, print_table
from heldout.measures.evaluate import Evaluation

__all__ = ["KindScores", "kind_json", "print_kinds", "score_kinds"]


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


def print_kinds(
    console: Console, labels: Sequence[str], scored: Sequence[Mapping[str, KindScores]]
) -> None:
    """A table for each kind.

    Args:
        console: where to.
        labels: names of the runs.
        scored: their scores, at least one run's.
    """
    for kind, first in scored[0].items():
        console.print()
        head = f"{kind} ({plural(first.queries, 'query', 'queries')})"
        if first.queries < first.least:
            print_facts(console, [(head, f"undefined; this needs {first.least}")])
            continue
        rows = [
            [label, *map(number, run[kind].means.values())]
            for label, run in zip(labels, scored, strict=True)
        ]
        print_table(console, [head, *first.means], rows)
        undefined = [(label, run[kind].why) for label, run in zip(labels, scored, strict=True)]
        print_facts(
            console,
            [
                ("", f"{name} of {label}: {why}")
                for label, of in undefined
                for name, why in of.items()
            ],
        )


def kind_json(scores: KindScores) -> dict[str, object]:
    """The scores of a kind as they stand in JSON output."""
    return {"queries": scores.queries, "scores": dict(scores.means), "why": dict(scores.why)}
