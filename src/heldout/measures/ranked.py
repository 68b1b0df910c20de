"""What each measure computes: one function and one row of `MEASURES` per measure.

A measure sees the judged hits of one ranking (`JudgedRanking`) and the grades of all judgments
of its query (`Judgments`); it sees no score and no document id, so it cannot sort. Conventions,
those of trec_eval 10:

- a document is relevant at grade >= `rel`; grades below 0 mean "in the pool, not judged" and
  count as unjudged; an unjudged document is not relevant and gains nothing;
- a list shorter than the cutoff is filled up with documents that are not relevant;
- a query without a relevant document scores 0.

Sums are `math.fsum`, exactly rounded, so a score does not depend on the order of the judgments
or on how a run was scanned.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from heldout.trec.ranking import JudgedRanking

__all__ = ["MEASURES", "Judgments", "Kind", "Params", "has_relevant", "summarise"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Params:
    """The parameters of a measure; `None` where one was not given and has no default.

    Attributes:
        cutoff: deepest position that counts, >= 1; `None` is the whole list.
        rel: lowest relevant grade, >= 1.
        judged_only: unjudged documents are taken out of the list before it is measured.
        dcg: how a grade becomes a gain: itself, or 2^grade - 1.
        gains: (grade, gain) pairs that replace grades, sorted; other grades stay.
        p: persistence of RBP, 0 < p < 1.
        max_rel: highest grade of the scale.
    """

    cutoff: int | None = None
    rel: int | None = None
    judged_only: bool = False
    dcg: Literal["log2", "exp-log2"] = "log2"
    gains: tuple[tuple[int, int], ...] | None = None
    p: float = 0.8
    max_rel: int | None = None

    @property
    def level(self) -> int:
        """The lowest relevant grade: `rel`, or 1 for a graded measure."""
        return 1 if self.rel is None else self.rel


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgments:
    """The grades of all judged documents of a query, highest first."""

    grades: tuple[int, ...]

    def at_least(self, level: int) -> int:
        """Number of documents of this grade or a higher one."""
        return sum(grade >= level for grade in self.grades)


def summarise(grades: Iterable[int]) -> Judgments:
    """The grades of one query's judgments, whatever their order."""
    return Judgments(grades=tuple(sorted(grades, reverse=True)))


def has_relevant(judgments: Judgments, params: Params) -> bool:
    """Whether the query has a document that this measure can find."""
    if params.gains is not None:
        return any(_gain(grade, params) > 0 for grade in judgments.grades)
    return judgments.at_least(params.level) > 0


def _hits(ranking: JudgedRanking, params: Params) -> list[tuple[int, int]]:
    """(position, grade) of the judged documents within the cutoff, best position first."""
    pairs = zip(ranking.positions.tolist(), ranking.grades.tolist(), strict=True)
    hits = [(position, grade) for position, grade in pairs if grade >= 0]
    if params.judged_only:
        hits = [(position, grade) for position, (_, grade) in enumerate(hits, start=1)]
    if params.cutoff is None:
        return hits
    return [hit for hit in hits if hit[0] <= params.cutoff]


def _relevant_positions(ranking: JudgedRanking, params: Params) -> list[int]:
    return [position for position, grade in _hits(ranking, params) if grade >= params.level]


def _divisor(params: Params) -> int:
    if params.cutoff is None:
        raise ValueError("this measure needs a cutoff")
    return params.cutoff


def _first_relevant(ranking: JudgedRanking, _judgments: Judgments, params: Params) -> float | None:
    positions = _relevant_positions(ranking, params)
    return float(positions[0]) if positions else None


def _reciprocal_rank(ranking: JudgedRanking, _judgments: Judgments, params: Params) -> float:
    positions = _relevant_positions(ranking, params)
    return 1 / positions[0] if positions else 0.0


def _precision(ranking: JudgedRanking, _judgments: Judgments, params: Params) -> float:
    return len(_relevant_positions(ranking, params)) / _divisor(params)


def _recall(ranking: JudgedRanking, judgments: Judgments, params: Params) -> float:
    found = len(_relevant_positions(ranking, params))
    return found / judgments.at_least(params.level) if found else 0.0


def _success(ranking: JudgedRanking, _judgments: Judgments, params: Params) -> float:
    return float(bool(_relevant_positions(ranking, params)))


def _average_precision(ranking: JudgedRanking, judgments: Judgments, params: Params) -> float:
    positions = _relevant_positions(ranking, params)
    if not positions:
        return 0.0
    precisions = (count / position for count, position in enumerate(positions, start=1))
    return math.fsum(precisions) / judgments.at_least(params.level)


def _gain(grade: int, params: Params) -> float:
    mapped = dict(params.gains or ()).get(grade, grade)
    if mapped <= 0:
        return 0.0
    return 2.0**mapped - 1 if params.dcg == "exp-log2" else float(mapped)


def _discounted(hits: list[tuple[int, float]]) -> float:
    return math.fsum(gain / math.log2(position + 1) for position, gain in hits)


def _ndcg(ranking: JudgedRanking, judgments: Judgments, params: Params) -> float:
    found = [(position, _gain(grade, params)) for position, grade in _hits(ranking, params)]
    ideal = sorted((_gain(grade, params) for grade in judgments.grades if grade >= 0), reverse=True)
    best = _discounted(list(enumerate(ideal[: params.cutoff], start=1)))
    return _discounted(found) / best if best > 0 else 0.0


def _bpref(ranking: JudgedRanking, judgments: Judgments, params: Params) -> float:
    relevant = judgments.at_least(params.level)
    bound = min(judgments.at_least(0) - relevant, relevant)
    above = 0
    terms = []
    for _, grade in _hits(ranking, params):
        if grade < params.level:
            above += 1
        else:
            terms.append(1 - min(above, relevant) / bound if above else 1.0)
    return math.fsum(terms) / relevant if relevant else 0.0


def _rank_biased_precision(ranking: JudgedRanking, _judgments: Judgments, params: Params) -> float:
    def gain(grade: int) -> float:
        if params.rel is not None:
            return float(grade >= params.rel)
        return grade / (params.max_rel or 1)

    hits = _hits(ranking, params)
    return (1 - params.p) * math.fsum(gain(grade) * params.p ** (at - 1) for at, grade in hits)


def _expected_reciprocal_rank(
    ranking: JudgedRanking, _judgments: Judgments, params: Params
) -> float:
    scale = 2.0 ** (params.max_rel or 0)
    unsatisfied = 1.0
    terms = []
    for position, grade in _hits(ranking, params):
        satisfied = (2.0**grade - 1) / scale
        terms.append(unsatisfied * satisfied / position)
        unsatisfied *= 1 - satisfied
    return math.fsum(terms)


def _unjudged(ranking: JudgedRanking, _judgments: Judgments, params: Params) -> float:
    listed = min(ranking.retrieved, _divisor(params))
    return (listed - len(_hits(ranking, params))) / _divisor(params)


Function = Callable[[JudgedRanking, Judgments, Params], float | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A row of the table: one measure with everything there is to say about it.

    Attributes:
        function: score of one answered query; `None` where the measure is undefined for it.
        parameters: names of the allowed parameters without `cutoff`, in the order they print in.
        cutoff: whether `@k` must, may or cannot follow the name.
        help: one line.
        source: the paper, and the program whose values ours equal.
        defaults: the parameters where none are given.
        range: lowest and highest value, in words where it depends on the grades.
        better: which end of the range is the good one.
        unanswered: score of a query that the run does not answer.
        aliases: other names under which it is read; it prints under its own.
    """

    function: Function
    parameters: tuple[str, ...]
    cutoff: Literal["required", "optional", "none"]
    help: str
    source: str
    defaults: Params = Params()
    range: str = "0 to 1"
    better: Literal["higher", "lower"] = "higher"
    unanswered: float | None = 0.0
    aliases: tuple[str, ...] = ()


_BINARY = Params(rel=1)

MEASURES: Mapping[str, Kind] = {
    "RR": Kind(
        function=_reciprocal_rank,
        parameters=("rel", "judged_only"),
        cutoff="optional",
        defaults=_BINARY,
        help="one over the position of the first relevant document, 0 if none is found",
        source="Kantor and Voorhees 2000; trec_eval recip_rank",
        aliases=("MRR",),
    ),
    "nDCG": Kind(
        function=_ndcg,
        parameters=("dcg", "gains", "judged_only"),
        cutoff="optional",
        help="gain discounted by log2(position + 1), over that of the best possible list",
        source="Jarvelin and Kekalainen 2002; trec_eval ndcg, ndcg_cut; exp-log2: gdeval",
        aliases=("NDCG",),
    ),
    "AP": Kind(
        function=_average_precision,
        parameters=("rel", "judged_only"),
        cutoff="optional",
        defaults=_BINARY,
        help="precision at each relevant document, summed, over the number of relevant documents",
        source="Harman 1992; trec_eval map, map_cut",
        aliases=("MAP",),
    ),
    "P": Kind(
        function=_precision,
        parameters=("rel", "judged_only"),
        cutoff="required",
        defaults=_BINARY,
        help="share of the top k that is relevant; always over k",
        source="van Rijsbergen 1979; trec_eval P",
        aliases=("Precision",),
    ),
    "R": Kind(
        function=_recall,
        parameters=("rel", "judged_only"),
        cutoff="required",
        defaults=_BINARY,
        help="share of the relevant documents that is in the top k",
        source="van Rijsbergen 1979; trec_eval recall",
        aliases=("Recall",),
    ),
    "Success": Kind(
        function=_success,
        parameters=("rel", "judged_only"),
        cutoff="required",
        defaults=_BINARY,
        help="1 if a relevant document is in the top k, else 0",
        source="trec_eval success",
    ),
    "Bpref": Kind(
        function=_bpref,
        parameters=("rel",),
        cutoff="none",
        defaults=_BINARY,
        help="how seldom judged non-relevant documents stand above relevant ones",
        source="Buckley and Voorhees, SIGIR 2004; trec_eval bpref",
        aliases=("BPref", "bpref"),
    ),
    "RBP": Kind(
        function=_rank_biased_precision,
        parameters=("p", "rel", "max_rel"),
        cutoff="optional",
        help="gain weighted by (1 - p) p^(position - 1), a reader who goes on with probability p",
        source="Moffat and Zobel, TOIS 2008; with rel=1 trec_eval rbp",
        range="0 to 1 with rel or max_rel, else 0 to the highest grade",
    ),
    "ERR": Kind(
        function=_expected_reciprocal_rank,
        parameters=("max_rel",),
        cutoff="optional",
        defaults=Params(max_rel=4),
        help="expected 1/position where a reader stops who is satisfied with (2^grade - 1)/2^max",
        source="Chapelle et al., CIKM 2009; gdeval",
    ),
    "FirstRel": Kind(
        function=_first_relevant,
        parameters=("rel", "judged_only"),
        cutoff="optional",
        defaults=_BINARY,
        help="position of the first relevant document; averaged over the queries that have one",
        source="expected search length: Cooper 1968, counted from 1",
        range="1 upwards",
        better="lower",
        unanswered=None,
    ),
    "Unjudged": Kind(
        function=_unjudged,
        parameters=(),
        cutoff="required",
        help="share of the top k without a judgment: how far the other scores can be believed",
        source="trec_eval unj",
        better="lower",
    ),
}
"""Every measure by the name it prints under."""
