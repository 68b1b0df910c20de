"""Scores turned into others before they are analysed: `--transform`.

All values that a measure can take on result lists of some length. The lists are never all written
down where that is not needed: what a measure cannot tell apart is one list. A list of N documents
has 2^N patterns of relevance, but RR sees only the first relevant one (N + 1 values), P, R and
Success only their number; nDCG and RBP are sums over positions, whose values grow position by
position, equal ones merged; AP and ERR take every pattern. The values themselves always come from
`heldout.scoring.measures`.

Scores as ranks among all attainable values: `--transform interval`. A score becomes the number of
attainable values below it, over how many there are above the lowest: 0 for the worst list, 1 for
the best, equal steps between neighbours. What is attainable depends on how many relevant documents
a query has, so each query has a scale of its own, and a rank in it is not the same unit on every
query. Source: Ferrante, Ferro and Fuhr 2021; the division, which gives every query the same weight,
is ours.

Scores on the scale of what people prefer: `--transform preference`. For pairs of results that
people compared, the share that preferred the one with the higher score is fitted as a function of
the difference of scores: never falling, and a half where scores are equal (isotonic regression). A
score is then twice the share by which its result would be preferred to one of score 0, less 1: 0
where nobody could tell, 1 where everybody prefers it. Between differences that were compared it is
interpolated; beyond the largest it is unknown, and an error. What is compared may be whole lists of
two systems, or two documents: a document is then a list of its own. This takes perception as a
function of the difference alone, wherever on the scale it lies. Source: Craswell et al. 2021,
§4.1, asks for measures that are equally spaced in perceived relevance; this way to get one
is ours. Barlow et al. 1972 (isotonic regression).
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from heldout.errors import InputError, OptionError, quote
from heldout.scoring.evaluate import prepare
from heldout.scoring.measures import Hits, Judgments, Measure, summarise
from heldout.scoring.table import ScoreTable, replace_scores
from heldout.trec.judgments import Preference, read_preferences
from heldout.trec.qrels import Qrels
from heldout.trec.reading.sources import read_file

MOST_LISTS = 1 << 17
"""Patterns of relevance that are taken one by one."""

MOST_VALUES = 1 << 20
"""Distinct values that are kept of a sum over positions."""

_FIRST = frozenset({"RR", "FirstRel"})
_COUNT = frozenset({"P", "R", "Success"})
_SUM = frozenset({"nDCG", "RBP"})
_PATTERN = frozenset({"AP", "ERR"})
_DECIMALS = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Universe:
    """Result lists that a measure is asked about.

    Attributes:
        measure: what is measured.
        length: documents of each list, >= 1.
        supply: grade above 0 -> how many documents of it there are. Documents of grade 0 never
            run out.
    """

    measure: Measure
    length: int
    supply: Mapping[int, int]

    @property
    def lists(self) -> int:
        """How many lists there are, where no grade runs out."""
        return int((1 + len(self.supply)) ** self.length)


def universe_of(measure: Measure, *, length: int, judged: Mapping[int, int]) -> Universe:
    """The lists over given documents.

    Args:
        measure: whose values can be enumerated.
        length: documents of each list, >= 1.
        judged: grade -> how many documents of it there are; grades up to 0 are as good as none.

    Raises:
        InputError: code `no-scale`: the measure looks at more than grades and positions;
            `grade-above-maximum`: a grade lies above the measure's scale.
    """
    if measure.name not in _FIRST | _COUNT | _SUM | _PATTERN:
        raise _no_scale(
            str(measure),
            "a measure of grades and positions alone: "
            + ", ".join(sorted(_FIRST | _COUNT | _SUM | _PATTERN)),
        )
    prepare({"list": {str(grade): grade for grade in judged}}, [measure])  # refuses high grades
    rel = measure.params.rel
    supply: Counter[int] = Counter()
    for grade, count in judged.items():
        if rel is None and grade > 0:
            supply[grade] += count
        elif rel is not None and grade >= rel:
            supply[rel] += count  # the measure cannot tell them apart
    return Universe(measure=measure, length=length, supply=dict(sorted(supply.items())))


def list_values(universe: Universe) -> Iterator[tuple[tuple[int, ...], float]]:
    """Every list with its value, in falling order of the lists; undefined ones are left out.

    Raises:
        InputError: code `no-scale`: there are more than `MOST_LISTS`.
    """
    if universe.lists > MOST_LISTS:
        raise _no_scale(
            f"{universe.lists:.3g} lists of {universe.length} documents under {universe.measure}",
            f"at most {MOST_LISTS:,}",
        )
    judgments = _judge(universe)
    classes = sorted((0, *universe.supply), reverse=True)
    for grades in product(classes, repeat=universe.length):
        if all(grades.count(grade) <= most for grade, most in universe.supply.items()):
            value = _measure(grades, universe, judgments)
            if value is not None:
                yield grades, value


def find_values(universe: Universe) -> NDArray[np.float64]:
    """The distinct values, rising; those that differ by less than 1e-12 are one.

    Raises:
        InputError: code `no-scale`: too many lists, or values, to be enumerated.
    """
    name = universe.measure.name
    if name in _SUM:
        return _grow(universe)
    if name in _PATTERN:
        values = [value for _, value in list_values(universe)]
    else:
        judgments = _judge(universe)
        found = [_measure(grades, universe, judgments) for grades in _typical(universe)]
        values = [value for value in found if value is not None]
    return _distinct(np.array(values, np.float64))


def _typical(universe: Universe) -> Iterator[tuple[int, ...]]:
    """Lists that have all values: one relevant document anywhere, or so many at the top."""
    length = universe.length
    yield (0,) * length
    for grade, most in universe.supply.items():
        if universe.measure.name in _FIRST:
            yield from ((0,) * at + (grade,) for at in range(length if most else 0))
        else:
            yield from (
                (grade,) * count + (0,) * (length - count)
                for count in range(1, min(most, length) + 1)
            )


def _grow(universe: Universe) -> NDArray[np.float64]:
    """Sums over positions; only grades that may run out have to be counted on the way."""
    judgments = _judge(universe)
    scarce = [grade for grade, most in universe.supply.items() if most < universe.length]
    found = {(0,) * len(scarce): np.zeros(1)}
    for position in range(universe.length):
        grown: dict[tuple[int, ...], list[NDArray[np.float64]]] = {}
        for used, sums in found.items():
            for grade in (0, *universe.supply):
                after = tuple(n + (grade == one) for n, one in zip(used, scarce, strict=True))
                if all(n <= universe.supply[one] for n, one in zip(after, scarce, strict=True)):
                    alone = (0,) * position + (grade,)
                    added = _measure(alone, universe, judgments) or 0.0
                    grown.setdefault(after, []).append(sums + added)
        found = {used: _distinct(np.concatenate(sums)) for used, sums in grown.items()}
        size = sum(map(len, found.values()))
        if size > MOST_VALUES:
            raise _no_scale(
                f"{size:,} values of {universe.measure} at position {position + 1}",
                f"at most {MOST_VALUES:,}",
            )
    return _distinct(np.concatenate(list(found.values())))


def _judge(universe: Universe) -> Judgments:
    grades = sorted(Counter(universe.supply).elements())
    return summarise(grades, universe.measure.kind, universe.measure.params)


def _measure(grades: Sequence[int], universe: Universe, judgments: Judgments) -> float | None:
    hits = Hits(tuple(range(1, len(grades) + 1)), tuple(grades), universe.length)
    return universe.measure.kind.function(hits, judgments, universe.measure.params)


def _distinct(values: NDArray[np.float64]) -> NDArray[np.float64]:
    _, first = np.unique(np.round(values, _DECIMALS), return_index=True)
    return values[first]


def _no_scale(found: str, expected: str) -> InputError:
    return InputError.of(
        "no-scale", "measure", found, expected, "take a smaller cutoff, or fewer grades"
    )


_NEAR = 1e-9


def to_interval(
    table: ScoreTable, measure: Measure, judgments: Mapping[str, Mapping[str, int]]
) -> ScoreTable:
    """Turn scores into ranks among the values that the measure can take on their query.

    Args:
        table: scores by that measure; missing ones stay missing.
        measure: with a cutoff, which is the length of the lists.
        judgments: query -> document -> grade, of every query of the table.

    Returns:
        The same systems and queries; scores from 0 to 1, 0 where only one value is attainable.

    Raises:
        InputError: code `no-scale`: the measure has no cutoff, or too many values; code
            `not-attainable`: a score is none of them.
    """
    if measure.cutoff is None:
        raise InputError.of(
            "no-scale", "--transform", str(measure), f"a cutoff, as in {measure}@10"
        )
    known: dict[tuple[tuple[int, int], ...], NDArray[np.float64]] = {}
    columns = []
    for column, query in enumerate(table.queries):
        universe = universe_of(
            measure, length=measure.cutoff, judged=Counter(judgments.get(query, {}).values())
        )
        supply = tuple(universe.supply.items())
        if supply not in known:
            known[supply] = find_values(universe)
        columns.append(_rank(table, column, known[supply]))
    return replace_scores(table, np.reshape(columns, table.values.T.shape).T)


def _rank(table: ScoreTable, column: int, values: NDArray[np.float64]) -> NDArray[np.float64]:
    scores = table.values[:, column]
    above = np.searchsorted(values, scores - _NEAR).clip(max=len(values) - 1)
    strange = table.known[:, column] & (np.abs(values[above] - scores) > _NEAR)
    if strange.any():
        row = int(np.flatnonzero(strange)[0])
        system, query = quote(table.systems[row]), quote(table.queries[column])
        raise InputError.of(
            "not-attainable", "--transform", value=scores[row], system=system, query=query
        )
    return above / max(len(values) - 1, 1)


Values = Mapping[str, Mapping[str, float]]
"""Query -> item -> score."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PreferenceCalibration:
    """What people preferred, by difference of scores.

    Attributes:
        differences: distinct ones, rising from 0.
        shares: fitted share that prefers the higher score; .5 at 0, never falling.
        counts: judgments at each difference.
        used: judgments of results with scores.
        unknown: judgments left out, for want of a score.
    """

    differences: tuple[float, ...]
    shares: tuple[float, ...]
    counts: tuple[int, ...]
    used: int
    unknown: int


def calibrate(
    table: ScoreTable,
    measure: Measure,
    judgments: Mapping[str, Mapping[str, int]],
    preferences: Iterable[Preference],
) -> PreferenceCalibration:
    """Fit what people preferred to differences of a measure.

    Args:
        table: scores of systems; where both items of a judgment are its systems, lists were
            compared.
        measure: of the scores, higher is better; other items are documents, each a list of one.
        judgments: query -> document -> grade.
        preferences: what was preferred to what.

    Raises:
        InputError: code `no-preference`: no judgment is of results with different scores.
    """
    values = _values(table, measure, judgments)
    found, unknown = [], 0
    for one in preferences:
        known = values.get(one.query, {})
        if one.preferred in known and one.other in known:
            found.append(known[one.preferred] - known[one.other])
        else:
            unknown += 1
    return fit_shares(np.array(found, np.float64), unknown=unknown)


def fit_shares(differences: NDArray[np.float64], *, unknown: int = 0) -> PreferenceCalibration:
    """The never falling share that prefers the higher score.

    Args:
        differences: score of the preferred result less that of the other, one by judgment.
        unknown: judgments that were left out before.

    Raises:
        InputError: code `no-preference`: there is no difference other than 0.
    """
    rounded = np.round(differences, _DECIMALS) + 0.0
    sizes, owner, counts = np.unique(np.abs(rounded), return_inverse=True, return_counts=True)
    if not (sizes > 0).any():
        raise InputError.of(
            "no-preference",
            "--preferences",
            f"{len(rounded)} judgments of results with scores, and no two scores differ",
        )
    agreed = np.bincount(owner, rounded > 0, len(sizes))
    apart = sizes > 0
    from scipy.optimize import isotonic_regression  # noqa: PLC0415 - slow to load

    fitted = isotonic_regression(agreed[apart] / counts[apart], weights=counts[apart]).x
    equal = int(counts[~apart].sum())
    return PreferenceCalibration(
        differences=(0.0, *sizes[apart].tolist()),
        # The fit within bounds is the free one, cut off at them.
        shares=(0.5, *np.maximum(fitted, 0.5).tolist()),
        counts=(equal, *counts[apart].tolist()),
        used=len(rounded),
        unknown=unknown,
    )


def to_preference(table: ScoreTable, calibration: PreferenceCalibration) -> ScoreTable:
    """Turn scores into how surely their results are preferred to one of score 0.

    Args:
        table: scores from 0; missing ones stay missing.
        calibration: of the same measure.

    Returns:
        The same systems and queries, scores from 0 to 1.

    Raises:
        InputError: code `not-calibrated`: a score lies beyond every difference that was compared.
    """
    beyond = table.known & (
        (table.values > calibration.differences[-1] + _NEAR) | (table.values < -_NEAR)
    )
    if beyond.any():
        row, column = np.argwhere(beyond)[0].tolist()
        words: dict[str, Any] = {"largest": calibration.differences[-1]}
        words |= {"system": quote(table.systems[row]), "query": quote(table.queries[column])}
        value = table.values[row, column]
        raise InputError.of("not-calibrated", "--preferences", value=value, **words)
    raised = np.interp(table.values, calibration.differences, calibration.shares) * 2 - 1
    return replace_scores(table, raised)


def _values(
    table: ScoreTable, measure: Measure, judgments: Mapping[str, Mapping[str, int]]
) -> Values:
    found: dict[str, dict[str, float]] = {}
    for query, grades in judgments.items():
        known = summarise(sorted(grades.values()), measure.kind, measure.params)
        for document, grade in grades.items():
            hits = Hits((1,), (grade,), 1) if grade >= 0 else Hits((), (), 1)
            value = measure.kind.function(hits, known, measure.params)
            if value is not None:
                found.setdefault(query, {})[document] = value
    for row, system in enumerate(table.systems):
        for column, query in enumerate(table.queries):
            if table.known[row, column]:
                found.setdefault(query, {})[system] = float(table.values[row, column])
    return found


Transform = Literal["interval", "preference"]
"""`interval`: ranks among attainable scores. `preference`: how surely people prefer a result."""


def prefer_scores(
    table: ScoreTable, measure: Measure, qrels: Qrels, path: Path | None
) -> tuple[ScoreTable, str]:
    """Scores calibrated on preference judgments, and a word on these.

    Raises:
        OptionError: the measure is better where it is lower, or no file is named.
        InputError: codes `no-preference`, `not-calibrated`, or the file has errors.
    """
    if path is None or measure.kind.better == "lower":
        raise OptionError(f"--transform preference needs --preferences FILE; not {measure}")
    found = calibrate(table, measure, qrels.judgments, read_file(read_preferences, path))
    line = (
        f"preference: {found.used:,} judgments at {len(found.differences):,} differences of "
        f"scores, {found.unknown:,} of results without a score left out; the largest difference is "
        f"preferred by {found.shares[-1]:.1%}"
    )
    return to_preference(table, found), line
