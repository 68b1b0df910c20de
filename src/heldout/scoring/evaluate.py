"""Scores of a run: per query, and the mean with everything it needs to be understood.

The rule: a mean is over the queries that have at least one judgment and are not excluded.
A query that the run does not answer counts 0; a judged query without a relevant document counts
0, as in trec_eval. Queries of the run without judgments are ignored. All are counted.
(`FirstRel` alone has no value where nothing is found, and is averaged over the other queries.)

Means over each query subset, from the scores of all queries.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from heldout.errors import InputError, plural
from heldout.scoring.measures import Judgments, Measure, Patterns, find_patterns, summarise
from heldout.trec import ranking, text

if TYPE_CHECKING:
    from heldout.scoring.fairness import Exposures

Query = TypeVar("Query", bound=str)
Document = TypeVar("Document", bound=str)
Other = TypeVar("Other", bound=Measure)


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasureScores:
    """One measure of one run.

    Attributes:
        measure: what was measured.
        mean: over `n` queries, or what else stands for them (`Kind.aggregate`); `None` where `n` is
            0.
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


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedJudgments:
    """Judgments made ready to score many runs; from `prepare`.

    Attributes:
        queries: the queries to evaluate: judged and not excluded, sorted.
        groups: same length; queries of one group have equal judgments.
        measures: what to compute, and what the judgments of each group amount to for it.
        without_relevant: how many of `queries` have no relevant document, by measure.
        judged: all judged queries, also the excluded ones.
    """

    queries: tuple[str, ...]
    groups: tuple[int, ...]
    measures: Mapping[Measure, tuple[Judgments, ...]]
    without_relevant: Mapping[Measure, int]
    judged: AbstractSet[str]


def prepare(
    qrels: Mapping[Query, Mapping[Document, int]],
    measures: Iterable[Measure],
    *,
    excluded: AbstractSet[str] = frozenset(),
) -> PreparedJudgments:
    """Compute what depends on the judgments alone, once for any number of runs.

    Args:
        qrels: grade by query and document.
        measures: what to compute.
        excluded: queries to leave out of everything.

    Raises:
        InputError: code `grade-above-maximum` where a judgment lies above a measure's scale.
    """
    judged = frozenset(query for query, grades in qrels.items() if grades)
    queries = tuple(sorted(judged.difference(excluded)))
    numbers: dict[tuple[int, ...], int] = {}
    groups = tuple(
        numbers.setdefault(tuple(sorted(qrels[query].values())), len(numbers)) for query in queries
    )
    sizes = Counter(groups)
    prepared: dict[Measure, tuple[Judgments, ...]] = {}
    for measure in measures:
        _check_scale(measure, queries, groups, tuple(numbers))
        prepared[measure] = tuple(
            summarise(grades, measure.kind, measure.params) for grades in numbers
        )
    return PreparedJudgments(
        queries=queries,
        groups=groups,
        measures=prepared,
        without_relevant={
            measure: sum(sizes[group] for group, j in enumerate(judgments) if not j.relevant)
            for measure, judgments in prepared.items()
        },
        judged=judged,
    )


def score(
    rankings: Mapping[str, ranking.JudgedRanking],
    judged: PreparedJudgments,
    *,
    exposures: "Exposures | None" = None,
) -> Evaluation:
    """Score a run on judgments made ready.

    Args:
        rankings: the run's judged hits by query; only queries that it answers.
        judged: from `prepare`, of the qrels that the run was scanned with.
        exposures: the run's tops seen through groups of documents, for AWRF and nDCG_AWRF.

    Raises:
        InputError: code `needs-groups` where a measure asks for groups and none are given.
    """
    for measure in judged.measures if exposures is None else ():
        if measure.kind.exposure:
            raise InputError.of("needs-groups", "measure", f"{measure} without groups of documents")
    depths = [measure.cutoff or 0 for measure in judged.measures if measure.kind.sees_length]
    patterns = find_patterns(rankings, judged.queries, judged.groups, depth=max(depths, default=0))
    return Evaluation(
        queries=judged.queries,
        scores={
            measure: _score(measure, judged, patterns, exposures) for measure in judged.measures
        },
        unanswered=patterns.unanswered,
        ignored=sum(query not in judged.judged for query in patterns.answered),
        excluded=len(judged.judged) - len(judged.queries),
    )


def evaluate(
    rankings: Mapping[str, ranking.JudgedRanking],
    qrels: Mapping[Query, Mapping[Document, int]],
    measures: Sequence[Measure],
    *,
    excluded: AbstractSet[str] = frozenset(),
    exposures: "Exposures | None" = None,
) -> Evaluation:
    """Score one run; for several runs on the same judgments `prepare` once, then `score` each.

    Args:
        rankings: the run's judged hits by query; only queries that it answers.
        qrels: grade by query and document. Must be what the run was scanned with.
        measures: what to compute.
        excluded: queries to leave out of everything.
        exposures: the run's tops seen through groups of documents, for AWRF and nDCG_AWRF.

    Raises:
        InputError: code `grade-above-maximum` where a judgment lies above a measure's scale;
            `needs-groups` where a measure asks for groups and none are given.
    """
    return score(rankings, prepare(qrels, measures, excluded=excluded), exposures=exposures)


def _score(
    measure: Measure, judged: PreparedJudgments, patterns: Patterns, exposures: "Exposures | None"
) -> MeasureScores:
    kind, params, judgments = measure.kind, measure.params, judged.measures[measure]
    found = [
        kind.unanswered if hits is None else kind.function(hits, judgments[group], params)
        for group, hits in patterns.distinct
    ]
    values = np.array([math.nan if value is None else value for value in found], np.float64)
    defined = np.array([value is not None for value in found], np.bool_)
    values, defined = values[patterns.of_query], defined[patterns.of_query]
    if measure.kind.exposure and exposures is not None:
        answered = np.array([hits is not None for _, hits in patterns.distinct], np.bool_)
        fairness = exposures.awrf(measure.params)
        factors = np.array([fairness.get(query, math.nan) for query in judged.queries], np.float64)
        factors[~answered[patterns.of_query]] = 1.0  # an unanswered query keeps its score, 0
        values, defined = values * factors, defined & ~np.isnan(factors)
    n = int(defined.sum())
    return MeasureScores(
        measure=measure,
        mean=aggregate(values[defined].tolist(), measure),
        why="" if n else _reason(judged.queries, measure),
        n=n,
        without_relevant=judged.without_relevant[measure],
        values=values,
        defined=defined,
    )


def aggregate(values: Sequence[float], measure: Measure) -> float | None:
    """Return what stands for the scores of several queries; `None` where there are none.

    Args:
        values: scores of queries; above 0 for a geometric mean.
        measure: says whether it is their mean, their sum or their geometric mean.
    """
    if not values:
        return None
    if measure.kind.aggregate == "geometric mean":
        return math.exp(math.fsum(map(math.log, values)) / len(values))
    total = math.fsum(values)
    return total if measure.kind.aggregate == "sum" else total / len(values)


def add_scores(
    evaluation: Evaluation,
    scores: Mapping[Other, Mapping[str, float]],
    without_relevant: Mapping[Other, int],
) -> Evaluation:
    """The evaluation with the scores of further measures, that were computed elsewhere.

    Args:
        evaluation: of one run.
        scores: by measure and query; a query that is missing has none.
        without_relevant: by measure, how many queries have no relevant document.
    """
    added: dict[Measure, MeasureScores] = {
        measure: _given_scores(measure, evaluation.queries, values, without_relevant[measure])
        for measure, values in scores.items()
    }
    return replace(evaluation, scores={**evaluation.scores, **added})


def _given_scores(
    measure: Measure, queries: Sequence[str], values: Mapping[str, float], without_relevant: int
) -> MeasureScores:
    defined = [query for query in queries if query in values]
    return MeasureScores(
        measure=measure,
        mean=aggregate([values[query] for query in defined], measure),
        why="" if defined else f"no query has a score of {measure}",
        n=len(defined),
        without_relevant=without_relevant,
        values=np.array([values.get(query, math.nan) for query in queries], np.float64),
        defined=np.array([query in values for query in queries], np.bool_),
    )


def _reason(queries: tuple[str, ...], measure: Measure) -> str:
    if queries and measure.kind.exposure:
        return "no list has a document of a known group"
    if queries:
        return "no relevant document was found for any query"
    return "there is no judged query"


def _check_scale(
    measure: Measure,
    queries: Sequence[str],
    groups: Sequence[int],
    distinct: Sequence[tuple[int, ...]],
) -> None:
    """Refuse grades for which the measure would leave its range or overflow."""
    limit = _highest_grade(measure)
    if limit is None:
        return
    for group, grades in enumerate(distinct):
        if grades[-1] > limit:
            named = f"{measure.name}(max_rel={grades[-1]})" if measure.params.max_rel else ""
            hint = named and f"name the highest grade of the scale, as in {named}"
            words: dict[str, Any] = {
                "query": text.show(queries[groups.index(group)]),
                "measure": measure,
            }
            words |= {"grade": grades[-1], "most": limit}
            raise InputError.of("grade-above-maximum", "qrels", hint=hint, **words)


def _highest_grade(measure: Measure) -> int | None:
    if measure.params.dcg == "exp-log2":
        return 1000  # 2^1000 is still a finite float64
    return measure.params.max_rel


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
    return {kind: _evaluate_score(evaluation, queries, least) for kind, queries in kinds.items()}


def _evaluate_score(evaluation: Evaluation, queries: AbstractSet[str], least: int) -> KindScores:
    selected = np.array([query in queries for query in evaluation.queries], np.bool_)
    size = int(selected.sum())
    means: dict[str, float | None] = {}
    why = {}
    for measure, scores in evaluation.scores.items():
        values = scores.values[selected & scores.defined].tolist()
        enough = size >= least and bool(values)
        means[str(measure)] = aggregate(values, measure) if enough else None
        if not enough:
            few = f"{plural(size, 'query', 'queries')}; this needs {least}"
            why[str(measure)] = few if size < least else "undefined for each of them"
    return KindScores(queries=size, least=least, means=means, why=why)
