"""What each measure computes: one function and one row of `MEASURES` per measure.

A measure sees the judged hits of one ranking (`Hits`) and what its query's judgments amount to
(`Judgments`); it sees no score and no document id, so it cannot sort. Conventions, those of
trec_eval 10:

- a document is relevant at grade >= `rel`; grades below 0 mean "in the pool, not judged" and
  count as unjudged; an unjudged document is not relevant and gains nothing;
- a list shorter than the cutoff is filled up with documents that are not relevant;
- a query without a relevant document scores 0.

Sums are `math.fsum`, exactly rounded, so a score does not depend on the order of the judgments
or on how a run was scanned.

What a run says of each judged query, as plain integers; queries that look alike are one. A run of
7,000 queries with one judgment each has only some hundred different rankings, as far as measures
can see, so each is measured once.

A measure is named as in ir_measures: `Name(parameter=value,...)@cutoff`. What we write,
ir_measures reads as the same measure and writes the same way, where it has the measure.
Values are integers, decimals, True or False, quoted words, and `{grade:gain,...}`; nothing is
evaluated as code.
"""

import math
import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from operator import sub, truediv
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from heldout.errors import InputError
from heldout.scoring.families import ALIASES, FAMILIES, TREC_EVAL, Aggregate
from heldout.trec.answers import SIGNATURE_DEPTH
from heldout.trec.ranking import JudgedRanking, Rankings


class Hits(NamedTuple):  # a tuple is compared and hashed without Python code
    """The judged documents of one ranking, without grades below 0, which mean "not judged".

    Attributes:
        positions: strictly increasing, from 1.
        grades: same length, >= 0.
        retrieved: number of documents in the list, as far as a measure may look at it.
    """

    positions: tuple[int, ...]
    grades: tuple[int, ...]
    retrieved: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Patterns:
    """The queries of a run, alike ones together.

    Attributes:
        distinct: group of the judgments, and hits; `None` where the run does not answer.
        of_query: int64, shape (queries,), place in `distinct`.
        unanswered: number of queries that the run does not answer.
        answered: all queries that the run answers, judged or not.
    """

    distinct: Sequence[tuple[int, Hits | None]]
    of_query: NDArray[np.int64]
    unanswered: int
    answered: Sequence[str]


def find_patterns(
    rankings: Mapping[str, JudgedRanking],
    queries: Sequence[str],
    groups: Sequence[int],
    *,
    depth: int,
) -> Patterns:
    """Look up the queries in a run.

    Args:
        rankings: by query. An empty list is no answer.
        queries: what to look up.
        groups: same length; queries of one group have equal judgments.
        depth: deepest position at which it matters whether the list has a document at all.
    """
    packed = rankings if isinstance(rankings, Rankings) else _pack(rankings)
    judged = packed.grades >= 0
    positions = tuple(packed.positions[judged].tolist())
    grades = tuple(packed.grades[judged].tolist())
    bounds = np.concatenate(([0], np.cumsum(judged)))[packed.starts].tolist()
    retrieved = np.minimum(packed.retrieved, depth).tolist()
    answers = (packed.retrieved > 0).tolist()
    rows = {query: row for row, query in enumerate(packed.queries) if answers[row]}
    indices: dict[tuple[int, Hits | None], int] = {}
    found = []
    for query, group in zip(queries, groups, strict=True):
        row = rows.get(query)
        hits = None
        if row is not None:
            start, end = bounds[row], bounds[row + 1]
            hits = Hits(positions[start:end], grades[start:end], retrieved[row])
        found.append(indices.setdefault((group, hits), len(indices)))
    return Patterns(
        distinct=tuple(indices),
        of_query=np.array(found, np.int64),
        unanswered=len(queries) - sum(query in rows for query in queries),
        answered=tuple(rows),
    )


def _pack(rankings: Mapping[str, JudgedRanking]) -> Rankings:
    none = np.empty(0, np.int64)
    found = rankings.values()
    return Rankings(
        queries=tuple(rankings),
        starts=np.cumsum([0, *(len(ranking.positions) for ranking in found)], dtype=np.int64),
        positions=np.concatenate([none, *(ranking.positions for ranking in found)]),
        grades=np.concatenate([none, *(ranking.grades for ranking in found)]),
        retrieved=np.array([ranking.retrieved for ranking in found], np.int64),
    )


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
        weight: attention of a position under AWRF: 1 / log2(max(position, 2)), or
            p^(position - 1).
    """

    cutoff: int | None = None
    rel: int | None = None
    judged_only: bool = False
    dcg: Literal["log2", "exp-log2"] = "log2"
    gains: tuple[tuple[int, int], ...] | None = None
    p: float = 0.8
    max_rel: int | None = None
    weight: Literal["log2", "geometric"] = "log2"

    @property
    def level(self) -> int:
        """The lowest relevant grade: `rel`, or 1 for a graded measure."""
        return 1 if self.rel is None else self.rel


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgments:
    """What a query's judgments amount to for one measure, whatever the run.

    Attributes:
        relevant: number of documents that the measure can find.
        others: number of documents judged and not relevant; grades below 0 are not judged.
        ideal: sum over the best possible list, by which the measure divides; 0 where it does not.
    """

    relevant: int
    others: int
    ideal: float = 0.0


def summarise(grades: Sequence[int], kind: "Kind", params: Params) -> Judgments:
    """Return what the grades of a query's judgments, lowest first, amount to for a measure."""
    judged = grades[bisect_left(grades, 0) :]
    relevant = len(judged) - bisect_left(judged, params.level)
    if params.gains is not None:
        relevant = sum(gain > 0 for gain in _gains(judged, params))
    return Judgments(
        relevant=relevant,
        others=len(judged) - relevant,
        ideal=0.0 if kind.ideal is None else kind.ideal(judged, params),
    )


def _within(hits: Hits, params: Params) -> tuple[Sequence[int], Sequence[int]]:
    """Positions and grades of the judged documents that the measure looks at."""
    positions: Sequence[int] = hits.positions
    if params.judged_only:
        positions = range(1, len(positions) + 1)
    if params.cutoff is None:
        return positions, hits.grades
    depth = bisect_right(positions, params.cutoff)
    return positions[:depth], hits.grades[:depth]


def _relevant_positions(hits: Hits, params: Params) -> list[int]:
    level = params.level
    pairs = zip(*_within(hits, params), strict=True)
    return [position for position, grade in pairs if grade >= level]


def _divisor(params: Params) -> int:
    if params.cutoff is None:
        raise ValueError("this measure needs a cutoff")
    return params.cutoff


def _first_relevant(hits: Hits, _judgments: Judgments, params: Params) -> float | None:
    positions = _relevant_positions(hits, params)
    return float(positions[0]) if positions else None


def _reciprocal_rank(hits: Hits, _judgments: Judgments, params: Params) -> float:
    positions = _relevant_positions(hits, params)
    return 1 / positions[0] if positions else 0.0


def _precision(hits: Hits, _judgments: Judgments, params: Params) -> float:
    return len(_relevant_positions(hits, params)) / _divisor(params)


def _recall(hits: Hits, judgments: Judgments, params: Params) -> float:
    found = len(_relevant_positions(hits, params))
    return found / judgments.relevant if found else 0.0


def _success(hits: Hits, _judgments: Judgments, params: Params) -> float:
    return float(bool(_relevant_positions(hits, params)))


def _average_precision(hits: Hits, judgments: Judgments, params: Params) -> float:
    positions = _relevant_positions(hits, params)
    if not positions:
        return 0.0
    return math.fsum(map(truediv, count(1), positions)) / judgments.relevant


def _gains(grades: Sequence[int], params: Params) -> list[float]:
    """The gain of each grade, computed once for equal ones."""
    replaced = dict(params.gains or ())
    gains = {grade: _gain(replaced.get(grade, grade), params) for grade in set(grades)}
    return list(map(gains.__getitem__, grades))


def _gain(grade: int, params: Params) -> float:
    if grade <= 0:
        return 0.0
    return 2.0**grade - 1 if params.dcg == "exp-log2" else float(grade)


def _discounted(positions: Iterable[int], gains: Iterable[float]) -> float:
    pairs = zip(positions, gains, strict=False)  # positions may be endless
    return math.fsum([gain / math.log2(position + 1) for position, gain in pairs if gain])


def _ideal_gain(judged: Sequence[int], params: Params) -> float:
    return _discounted(count(1), sorted(_gains(judged, params), reverse=True)[: params.cutoff])


def _ndcg(hits: Hits, judgments: Judgments, params: Params) -> float:
    positions, grades = _within(hits, params)
    found = _discounted(positions, _gains(grades, params))
    return found / judgments.ideal if judgments.ideal > 0 else 0.0


def _attended(positions: Iterable[int], gains: Iterable[float]) -> float:
    """As `_discounted`, with the discount of TREC Fair Ranking: none for the first two."""
    pairs = zip(positions, gains, strict=False)
    return math.fsum([gain / math.log2(max(position, 2)) for position, gain in pairs if gain])


def _ideal_attended(judged: Sequence[int], params: Params) -> float:
    return _attended(count(1), sorted(_gains(judged, params), reverse=True)[: params.cutoff])


def _fair_ndcg(hits: Hits, judgments: Judgments, params: Params) -> float:
    positions, grades = _within(hits, params)
    found = _attended(positions, _gains(grades, params))
    return found / judgments.ideal if judgments.ideal > 0 else 0.0


def _bpref(hits: Hits, judgments: Judgments, params: Params) -> float:
    relevant = judgments.relevant
    bound = max(1, min(relevant, judgments.others))
    level = params.level
    positions = [at for at, grade in enumerate(hits.grades) if grade >= level]
    others_above = map(sub, positions, count())
    terms = [1 - above / bound for above in others_above if above < bound]  # beyond, each adds 0
    return math.fsum(terms) / relevant if relevant else 0.0


def _rank_biased_precision(hits: Hits, _judgments: Judgments, params: Params) -> float:
    def gain(grade: int) -> float:
        if params.rel is not None:
            return float(grade >= params.rel)
        return grade / (params.max_rel or 1)

    positions, grades = _within(hits, params)
    gains = {grade: gain(grade) for grade in set(grades)}
    found = zip(positions, map(gains.__getitem__, grades), strict=True)
    p = params.p
    return (1 - p) * math.fsum([gained * p ** (at - 1) for at, gained in found if gained])


def _expected_reciprocal_rank(hits: Hits, _judgments: Judgments, params: Params) -> float:
    scale = 2.0 ** (params.max_rel or 0)
    unsatisfied = 1.0
    terms = []
    for position, grade in zip(*_within(hits, params), strict=True):
        satisfied = (2.0**grade - 1) / scale
        terms.append(unsatisfied * satisfied / position)
        unsatisfied *= 1 - satisfied
    return math.fsum(terms)


def _unjudged(hits: Hits, _judgments: Judgments, params: Params) -> float:
    listed = min(hits.retrieved, _divisor(params))
    return (listed - len(_within(hits, params)[0])) / _divisor(params)


def _answered(_hits: Hits, _judgments: Judgments, _params: Params) -> float:
    return 1.0


Function = Callable[[Hits, Judgments, Params], float | None]
Ideal = Callable[[Sequence[int], Params], float]


def needs_whole(measures: Iterable["Measure"]) -> str | None:
    """The first measure that grades in decimals are nothing for; `None` where they are for all.

    They are a gain where the grade itself is one, whatever its unit: nDCG. What asks for a level,
    or for a scale, needs whole numbers.
    """
    for measure in measures:
        params, takes = measure.params, (_ndcg, _fair_ndcg, _unjudged, _answered)
        if measure.kind.function not in takes or params.dcg != "log2" or params.gains:
            return str(measure)
    return None


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
        sees_length: whether the score depends on how long a list is, its judged hits being equal.
        ideal: sum over the best possible list, from the judged grades, where the measure needs it.
        aliases: other names under which it is read; it prints under its own.
        exposure: whether the score is multiplied by AWRF (measures/fairness.py), which asks for
            groups of documents, and is undefined where a list has no document of a known group.
        aggregate: what stands for all queries: the mean of their scores, their sum for a count,
            or their geometric mean.
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
    sees_length: bool = False
    ideal: Ideal | None = None
    aliases: tuple[str, ...] = ()
    exposure: bool = False
    aggregate: Aggregate = "mean"


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
        ideal=_ideal_gain,
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
        sees_length=True,
        parameters=(),
        cutoff="required",
        help="share of the top k without a judgment: how far the other scores can be believed",
        source="trec_eval unj",
        better="lower",
    ),
    "AWRF": Kind(
        function=_answered,
        exposure=True,
        parameters=("weight", "p"),
        cutoff="required",
        help="1 - Jensen-Shannon divergence between the exposure of document groups and a target",
        source="TREC Fair Ranking 2021 and 2022; Sapiezynski et al., WWW 2019",
    ),
    "nDCG_AWRF": Kind(
        function=_fair_ndcg,
        ideal=_ideal_attended,
        exposure=True,
        parameters=("weight", "p", "dcg", "gains"),
        cutoff="required",
        help="nDCG times AWRF of the same query and cutoff, both with the discount of AWRF",
        source="TREC Fair Ranking 2021 and 2022",
    ),
}
"""Every measure by the name it prints under."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """A measure with its parameters; equal measures print equally.

    Attributes:
        name: a name in `MEASURES`.
        params: its parameters, defaults filled in.
    """

    name: str
    params: Params

    @property
    def cutoff(self) -> int | None:
        """Deepest position that counts, `None` for the whole list."""
        return self.params.cutoff

    @property
    def kind(self) -> Kind:
        """The measure's row in the table."""
        return MEASURES[self.name]

    @property
    def largest(self) -> float | None:
        """The largest difference of two scores; `None` where there is no end, or grades make it."""
        return 1.0 if self.kind.range == "0 to 1" else None

    def __str__(self) -> str:
        given = ",".join(f"{name}={_format(value)}" for name, value in self._given())
        text = f"{self.name}({given})" if given else self.name
        return text if self.cutoff is None else f"{text}@{self.cutoff}"

    def _given(self) -> Iterator[tuple[str, object]]:
        for name in self.kind.parameters:
            value = getattr(self.params, name)
            if value != getattr(self.kind.defaults, name):
                yield name, value


def _format(value: object) -> str:
    if isinstance(value, tuple):
        return "{" + ",".join(f"{grade}:{gain}" for grade, gain in value) + "}"
    return repr(value)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Parameter:
    """What a parameter may be, in code and in words."""

    accepts: Callable[[Any], bool]
    expected: str


_HIGHEST = 1000
"""No scale of grades goes so far, and 2^1000 is still a finite float64."""


def _is_count(value: object) -> bool:
    return type(value) is int and value >= 1


def _is_grade(value: object) -> bool:
    return _is_count(value) and isinstance(value, int) and value <= _HIGHEST


_PARAMETERS = {
    "cutoff": _Parameter(accepts=_is_count, expected="a whole number from 1"),
    "rel": _Parameter(accepts=_is_grade, expected="a grade from 1 to 1000, as in rel=2"),
    "max_rel": _Parameter(accepts=_is_grade, expected="a grade from 1 to 1000, as in max_rel=3"),
    "judged_only": _Parameter(
        accepts=lambda value: isinstance(value, bool), expected="True or False"
    ),
    "dcg": _Parameter(
        accepts=lambda value: value in ("log2", "exp-log2"), expected="'log2' or 'exp-log2'"
    ),
    "gains": _Parameter(
        accepts=lambda value: (
            isinstance(value, tuple)
            and all(0 <= number <= _HIGHEST for pair in value for number in pair)
        ),
        expected="whole numbers from 0 to 1000, as in gains={1:1,2:3}",
    ),
    "p": _Parameter(
        accepts=lambda value: isinstance(value, float) and 0 < value < 1,
        expected="a decimal between 0 and 1, as in p=0.8",
    ),
    "weight": _Parameter(
        accepts=lambda value: value in ("log2", "geometric"), expected="'log2' or 'geometric'"
    ),
}

SHAPE = re.compile(
    r"\s*(?P<name>[A-Za-z]\w*)\s*(?:\((?P<inside>.*)\))?\s*(?:@\s*(?P<cutoff>[^@]*?))?\s*",
    re.ASCII | re.DOTALL,
)
"""The parts of a measure: `name`, what is `inside` parentheses, and the `cutoff` behind `@`."""

_PAIR = re.compile(r"\s*(\w+)\s*=\s*(\{[^{}]*\}|[^,{}]*?)\s*(?:,|$)", re.ASCII)
_INTEGER = re.compile(r"-?\d{1,9}", re.ASCII)
_DECIMAL = re.compile(
    r"(?=[\d.]{2})\d{0,9}\.\d{0,20}(?:[eE]-?\d{1,3})?|\d{1,9}[eE]-\d{1,3}", re.ASCII
)
_GAIN = re.compile(r"\s*(\d{1,9})\s*:\s*(\d{1,9})\s*", re.ASCII)
LONGEST = 200
"""Most characters of a measure."""
_TREC_EVAL_SHAPE = re.compile(
    r"(?P<name>[A-Za-z]+(?:_[A-Za-z]+)*)(?:[_.]?(?P<cutoff>\d{1,9}))?", re.ASCII
)
_TREC_EVAL = {
    "recip_rank": "RR",
    "rr": "RR",
    "mrr": "RR",
    "err": "ERR",
    "ndcg": "nDCG",
    "ndcg_cut": "nDCG",
    "map": "AP",
    "map_cut": "AP",
    "p": "P",
    "recall": "R",
    "success": "Success",
    "unj": "Unjudged",
    "hit": "Success",
    "hits": "Success",
    "hitrate": "Success",
}
"""What trec_eval and others call a measure -> our name; a cutoff stands after `_` or `.` there."""

_ELSEWHERE = frozenset(
    name.lower()
    for name in (*FAMILIES, *ALIASES, *TREC_EVAL, "num_q", "num_ret", "num_rel", "num_rel_ret")
)
"""Measures that other libraries compute: nothing near of ours is what was meant."""


def parse_measure(text: str, *, path: str = "measure") -> Measure:
    """Read a measure's name.

    Args:
        text: for example `nDCG@10` or `RBP(p=0.5,rel=1)@10`.
        path: where it stands, for the error.

    Raises:
        InputError: code `measure-syntax`, `measure-name` or `measure-parameter`.
    """
    match = SHAPE.fullmatch(text) if len(text) <= LONGEST else None
    if match is None:
        own = translate_name(text.strip()) if len(text) <= LONGEST else ""
        hint = f"did you mean {own}?" if own else ""
        raise InputError.of("measure-syntax", path, repr(text[:LONGEST]), _FORM, hint)
    name = _find_name(match["name"], text, path)
    allowed = (*MEASURES[name].parameters, "cutoff")
    given = dict(read_parameters(match["inside"], name=name, allowed=allowed, text=text, path=path))
    if match["cutoff"] is not None:
        if "cutoff" in given:
            raise InputError.of(
                "measure-parameter", path, repr(text), "one cutoff", f"for example {name}@10"
            )
        given["cutoff"] = read_value(match["cutoff"])
    for parameter, value in given.items():
        rule = _PARAMETERS[parameter]
        if not rule.accepts(value):
            raise InputError.of(
                "measure-parameter", path, f"{parameter} in {text!r}", rule.expected
            )
    _check_together(name, given, text=text, path=path)
    return Measure(name=name, params=replace(MEASURES[name].defaults, **given))


_FORM = "Name, Name@cutoff or Name(parameter=value,...)@cutoff, as in RR(rel=2)@10"


def _find_name(written: str, text: str, path: str) -> str:
    """The measure's own name for a name or alias.

    Args:
        written: the name.
        text: the whole measure, so that a hint can be copied.
        path: where it stands.
    """
    names = {alias: name for name, kind in MEASURES.items() for alias in (name, *kind.aliases)}
    if written in names:
        return names[written]
    folded = {alias.lower(): name for alias, name in names.items()}
    own = folded.get(written.lower()) or translate_name(written)
    elsewhere = written.lower() in _ELSEWHERE
    near = [] if elsewhere else _alike(written.lower(), folded, most=3)
    candidates = [own] if own else list(dict.fromkeys(folded[alias] for alias in near))
    rest = text.strip().removeprefix(written)
    whole = [name if "@" in name else f"{name}{rest}" for name in candidates]
    hint = f"did you mean {' or '.join(whole)}?" if whole else ""
    if elsewhere:
        hint = "another library computes it, for heldout evaluate: no board ranks by it"
    expected = "one of " + ", ".join(MEASURES)
    raise InputError.of("measure-name", path, repr(written), expected, hint)


def translate_name(written: str) -> str:
    """Return what was probably meant by a name with its cutoff in it; "" for anything else.

    Args:
        written: such as `ndcg_cut_10`, `mrr_10` or `ndcg10`.
    """
    match = _TREC_EVAL_SHAPE.fullmatch(written)
    name = "" if match is None else _TREC_EVAL.get(match["name"].lower(), "")
    return f"{name}@{match['cutoff']}" if name and match and match["cutoff"] else name


def _alike(written: str, names: Iterable[str], *, most: int) -> list[str]:
    """The names that look like what was written, the nearest first."""
    from difflib import get_close_matches  # noqa: PLC0415 - only a refusal needs it

    return get_close_matches(written, list(names), n=most)


def read_parameters(
    inside: str | None, *, name: str, allowed: tuple[str, ...], text: str, path: str
) -> Iterator[tuple[str, Any]]:
    """Parameters and their values, `None` for what is no value.

    Args:
        inside: what stands between the parentheses, `None` where there are none.
        name: of the measure.
        allowed: names of its parameters.
        text: the whole measure, for the error.
        path: where it stands.

    Raises:
        InputError: code `measure-syntax`; `measure-parameter` for a name that is not allowed or
            stands twice.
    """
    seen: set[str] = set()
    at = 0
    while inside is not None and at < len(inside.rstrip()):
        pair = _PAIR.match(inside, at)
        if pair is None:
            raise InputError.of("measure-syntax", path, repr(text), _FORM)
        parameter, written = pair.groups()
        if parameter not in allowed or parameter in seen:
            hint = _near(parameter, allowed)
            found = f"{parameter} in {text!r}" + (" for the second time" * (parameter in seen))
            expected = f"of {name} only " + (", ".join(allowed))
            raise InputError.of("measure-parameter", path, found, expected, hint)
        seen.add(parameter)
        yield parameter, read_value(written)
        at = pair.end()


def _near(written: str, allowed: tuple[str, ...]) -> str:
    near = _alike(written, allowed, most=1)
    return f"did you mean {near[0]}?" if near and near[0] != written else ""


def read_value(written: str) -> object:
    """The value that stands there; `None` where it is none."""
    if _INTEGER.fullmatch(written):
        return int(written)
    if _DECIMAL.fullmatch(written):
        return float(written)
    if written in ("True", "False"):
        return written == "True"
    if written[:1] in ("'", '"') and written[-1:] == written[:1]:
        return written[1:-1]
    return _read_gains(written) if written.startswith("{") else None


def _read_gains(written: str) -> tuple[tuple[int, int], ...] | None:
    """`{1:1,2:3}` as sorted pairs; pairs that change nothing are left out."""
    inside = written[1:-1]
    matches = [_GAIN.fullmatch(part) for part in inside.split(",")] if inside.strip() else []
    pairs = [(int(match[1]), int(match[2])) for match in matches if match is not None]
    if len(pairs) < len(matches) or len({grade for grade, _ in pairs}) < len(pairs):
        return None
    return tuple(sorted((grade, gain) for grade, gain in pairs if grade != gain))


def _check_together(name: str, given: dict[str, Any], *, text: str, path: str) -> None:
    kind = MEASURES[name]
    if kind.cutoff == "required" and "cutoff" not in given:
        raise InputError.of(
            "measure-parameter", path, repr(text), "a cutoff", f"for example {name}@10"
        )
    if kind.cutoff == "none" and "cutoff" in given:
        raise InputError.of("measure-parameter", path, repr(text), f"{name} without a cutoff")
    if name == "RBP" and "rel" in given and "max_rel" in given:
        expected = "rel (binary gains) or max_rel (graded gains), not both"
        raise InputError.of("measure-parameter", path, repr(text), expected)
    if kind.exposure:
        _check_exposure(given, text=text, path=path)


def _check_exposure(given: dict[str, Any], *, text: str, path: str) -> None:
    if given["cutoff"] > SIGNATURE_DEPTH:
        expected = f"a cutoff up to {SIGNATURE_DEPTH}: the limit for the documents of each list"
        raise InputError.of("measure-parameter", path, repr(text), expected)
    if "p" in given and given.get("weight") != "geometric":
        expected = "p with weight='geometric' only"
        raise InputError.of("measure-parameter", path, repr(text), expected)
