"""Each measure straight from its definition, one query at a time: slow, and easy to believe."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from heldout.scoring.measures import Measure, Params
from heldout.trec.ranking import JudgedRanking

Hit = tuple[int, int]
"""Position and grade."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plain:
    """Scores by measure: of each query, their mean, and how many have no relevant document."""

    values: dict[Measure, dict[str, float | None]]
    means: dict[Measure, float | None]
    without_relevant: dict[Measure, int]


def evaluate_plainly(
    rankings: Mapping[str, JudgedRanking],
    qrels: Mapping[str, Mapping[str, int]],
    measures: Iterable[Measure],
    *,
    excluded: AbstractSet[str] = frozenset(),
) -> Plain:
    grades = {q: list(qrels[q].values()) for q in sorted(qrels) if qrels[q] and q not in excluded}
    values = {
        measure: {query: value_of(measure, rankings.get(query), grades[query]) for query in grades}
        for measure in measures
    }
    means: dict[Measure, float | None] = {}
    for measure, by_query in values.items():
        known = [value for value in by_query.values() if value is not None]
        means[measure] = math.fsum(known) / len(known) if known else None
    return Plain(
        values=values,
        means=means,
        without_relevant={
            measure: sum(not has_relevant(row, measure.params) for row in grades.values())
            for measure in values
        },
    )


def value_of(
    measure: Measure, ranking: JudgedRanking | None, grades: Sequence[int]
) -> float | None:
    if ranking is None or not ranking.retrieved:
        return None if measure.name == "FirstRel" else 0.0
    hits = hits_of(ranking, measure.params)
    if measure.name == "Unjudged":
        k = cutoff(measure.params)
        return (min(ranking.retrieved, k) - len(hits)) / k
    return FUNCTIONS[measure.name](hits, grades, measure.params)


def hits_of(ranking: JudgedRanking, params: Params) -> list[Hit]:
    pairs = zip(ranking.positions.tolist(), ranking.grades.tolist(), strict=True)
    hits = [(position, grade) for position, grade in pairs if grade >= 0]
    if params.judged_only:
        hits = [(position, grade) for position, (_, grade) in enumerate(hits, start=1)]
    return [hit for hit in hits if params.cutoff is None or hit[0] <= params.cutoff]


def cutoff(params: Params) -> int:
    assert params.cutoff is not None
    return params.cutoff


def at_least(grades: Sequence[int], level: int) -> int:
    return sum(grade >= level for grade in grades)


def has_relevant(grades: Sequence[int], params: Params) -> bool:
    if params.gains is not None:
        return any(gain(grade, params) > 0 for grade in grades)
    return at_least(grades, params.level) > 0


def relevant(hits: list[Hit], params: Params) -> list[int]:
    return [position for position, grade in hits if grade >= params.level]


def first_relevant(hits: list[Hit], _grades: Sequence[int], params: Params) -> float | None:
    return float(relevant(hits, params)[0]) if relevant(hits, params) else None


def reciprocal_rank(hits: list[Hit], _grades: Sequence[int], params: Params) -> float:
    return 1 / relevant(hits, params)[0] if relevant(hits, params) else 0.0


def precision(hits: list[Hit], _grades: Sequence[int], params: Params) -> float:
    return len(relevant(hits, params)) / cutoff(params)


def recall(hits: list[Hit], grades: Sequence[int], params: Params) -> float:
    found = len(relevant(hits, params))
    return found / at_least(grades, params.level) if found else 0.0


def success(hits: list[Hit], _grades: Sequence[int], params: Params) -> float:
    return 1.0 if relevant(hits, params) else 0.0


def average_precision(hits: list[Hit], grades: Sequence[int], params: Params) -> float:
    positions = relevant(hits, params)
    if not positions:
        return 0.0
    precisions = [count / position for count, position in enumerate(positions, start=1)]
    return math.fsum(precisions) / at_least(grades, params.level)


def gain(grade: int, params: Params) -> float:
    mapped = dict(params.gains or ()).get(grade, grade)
    if mapped <= 0:
        return 0.0
    return 2.0**mapped - 1 if params.dcg == "exp-log2" else float(mapped)


def discounted(gains: Iterable[tuple[int, float]]) -> float:
    return math.fsum(value / math.log2(position + 1) for position, value in gains)


def ndcg(hits: list[Hit], grades: Sequence[int], params: Params) -> float:
    found = discounted([(position, gain(grade, params)) for position, grade in hits])
    ideal = sorted((gain(grade, params) for grade in grades if grade >= 0), reverse=True)
    best = discounted(enumerate(ideal[: params.cutoff], start=1))
    return found / best if best > 0 else 0.0


def bpref(hits: list[Hit], grades: Sequence[int], params: Params) -> float:
    all_relevant = at_least(grades, params.level)
    bound = min(at_least(grades, 0) - all_relevant, all_relevant)
    above = 0
    terms = []
    for _, grade in hits:
        if grade < params.level:
            above += 1
        else:
            terms.append(1 - min(above, all_relevant) / bound if above else 1.0)
    return math.fsum(terms) / all_relevant if all_relevant else 0.0


def rank_biased_precision(hits: list[Hit], _grades: Sequence[int], params: Params) -> float:
    def gain_of(grade: int) -> float:
        if params.rel is not None:
            return 1.0 if grade >= params.rel else 0.0
        return grade / (params.max_rel or 1)

    return (1 - params.p) * math.fsum(gain_of(grade) * params.p ** (at - 1) for at, grade in hits)


def expected_reciprocal_rank(hits: list[Hit], _grades: Sequence[int], params: Params) -> float:
    assert params.max_rel is not None
    unsatisfied = 1.0
    terms = []
    for position, grade in hits:
        satisfied = (2.0**grade - 1) / 2.0**params.max_rel
        terms.append(unsatisfied * satisfied / position)
        unsatisfied *= 1 - satisfied
    return math.fsum(terms)


Function = Callable[[list[Hit], Sequence[int], Params], float | None]
FUNCTIONS: dict[str, Function] = {
    "RR": reciprocal_rank,
    "nDCG": ndcg,
    "AP": average_precision,
    "P": precision,
    "R": recall,
    "Success": success,
    "Bpref": bpref,
    "RBP": rank_biased_precision,
    "ERR": expected_reciprocal_rank,
    "FirstRel": first_relevant,
}
