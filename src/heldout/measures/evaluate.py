"""Scores of a run: per query, and the mean with everything it needs to be understood.

The rule: a mean is over the queries that have at least one judgment and are not excluded.
A query that the run does not answer counts 0; a judged query without a relevant document counts
0, as in trec_eval. Queries of the run without judgments are ignored. All are counted.
(`FirstRel` alone has no value where nothing is found, and is averaged over the other queries.)
"""

import math
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from heldout.errors import InputError, Problem
from heldout.measures.ranked import Judgments, has_relevant, summarise
from heldout.measures.spec import Measure
from heldout.trec.problems import show
from heldout.trec.ranking import JudgedRanking

__all__ = ["Evaluation", "MeasureScores", "evaluate"]

Query = TypeVar("Query", bound=str)
Document = TypeVar("Document", bound=str)


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasureScores:
    """One measure of one run.

    Attributes:
        measure: what was measured.
        mean: over `n` queries; `None` where `n` is 0.
        why: the reason where the mean is `None`, else empty.
        n: number of queries averaged over.
        without_relevant: how many of the evaluation's queries have no relevant document.
        values: float64, one per query of the evaluation; NaN where `defined` is false.
        defined: bool, same shape.
    """

    measure: Measure
    mean: float | None
    why: str
    n: int
    without_relevant: int
    values: NDArray[np.float64]
    defined: NDArray[np.bool_]

    def value(self, index: int) -> float | None:
        """Score of the query at this index, `None` where it is undefined."""
        return float(self.values[index]) if self.defined[index] else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """All measures of one run on one set of judgments.

    Attributes:
        queries: the queries evaluated: judged and not excluded, sorted.
        scores: by measure, in the order asked for.
        unanswered: how many of `queries` the run does not answer.
        ignored: how many queries of the run have no judgment.
        excluded: how many judged queries were left out on request.
    """

    queries: tuple[str, ...]
    scores: Mapping[Measure, MeasureScores]
    unanswered: int
    ignored: int
    excluded: int

    def per_query(self) -> dict[str, dict[Measure, float | None]]:
        """Scores by query and measure, undefined ones as `None`."""
        return {
            query: {measure: scores.value(index) for measure, scores in self.scores.items()}
            for index, query in enumerate(self.queries)
        }


def evaluate(
    rankings: Mapping[str, JudgedRanking],
    qrels: Mapping[Query, Mapping[Document, int]],
    measures: Sequence[Measure],
    *,
    excluded: AbstractSet[str] = frozenset(),
) -> Evaluation:
    """Score a run.

    Args:
        rankings: the run's judged hits by query; only queries that it answers.
        qrels: grade by query and document. Must be what the run was scanned with.
        measures: what to compute.
        excluded: queries to leave out of everything.

    Raises:
        InputError: code `grade-above-maximum` where a judgment lies above a measure's scale.
    """
    judged: dict[str, Judgments] = {
        query: summarise(grades.values()) for query, grades in qrels.items() if grades
    }
    queries = tuple(sorted(judged.keys() - excluded))
    judgments = {query: judged[query] for query in queries}
    for measure in measures:
        _check_scale(measure, judgments)
    answered = {query: ranking for query, ranking in rankings.items() if ranking.retrieved}
    return Evaluation(
        queries=queries,
        scores={measure: _score(measure, queries, answered, judgments) for measure in measures},
        unanswered=sum(query not in answered for query in queries),
        ignored=sum(query not in judged for query in answered),
        excluded=len(judged.keys() & excluded),
    )


def _score(
    measure: Measure,
    queries: tuple[str, ...],
    rankings: Mapping[str, JudgedRanking],
    judgments: Mapping[str, Judgments],
) -> MeasureScores:
    kind, params = measure.kind, measure.params
    found = [
        kind.function(rankings[query], judgments[query], params)
        if query in rankings
        else kind.unanswered
        for query in queries
    ]
    values = [value for value in found if value is not None]
    return MeasureScores(
        measure=measure,
        mean=math.fsum(values) / len(values) if values else None,
        why="" if values else _reason(queries),
        n=len(values),
        without_relevant=sum(not has_relevant(judgments[query], params) for query in queries),
        values=np.array([math.nan if value is None else value for value in found], np.float64),
        defined=np.array([value is not None for value in found], np.bool_),
    )


def _reason(queries: tuple[str, ...]) -> str:
    if queries:
        return "no relevant document was found for any query"
    return "there is no judged query"


def _check_scale(measure: Measure, judgments: Mapping[str, Judgments]) -> None:
    """Refuse grades for which the measure would leave its range or overflow."""
    highest = _highest_grade(measure)
    if highest is None:
        return
    for query, summary in judgments.items():
        if summary.grades[0] > highest:
            raise InputError(
                Problem(
                    code="grade-above-maximum",
                    path="qrels",
                    found=f"grade {summary.grades[0]} for query {show(query)}",
                    expected=f"grades up to {highest} under {measure}",
                    hint="name the highest grade of the scale, as in "
                    f"{measure.name}(max_rel={summary.grades[0]})"
                    if measure.params.max_rel
                    else "",
                )
            )


def _highest_grade(measure: Measure) -> int | None:
    if measure.params.dcg == "exp-log2":
        return 1000  # 2^1000 is still a finite float64
    return measure.params.max_rel
