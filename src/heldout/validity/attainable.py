"""All values that a measure can take on result lists of some length.

The lists are never all written down where that is not needed: what a measure cannot tell apart is
one list. A list of N documents has 2^N patterns of relevance, but RR sees only the first relevant
one (N + 1 values), P, R and Success only their number; nDCG and RBP are sums over positions, whose
values grow position by position, equal ones merged; AP and ERR take every pattern. The
values themselves always come from `heldout.measures`.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

from heldout.errors import InputError, Problem
from heldout.measures.evaluate import prepare
from heldout.measures.hits import Hits
from heldout.measures.ranked import Judgments, summarise
from heldout.measures.spec import Measure

__all__ = ["MOST_LISTS", "MOST_VALUES", "Universe", "find_values", "list_values", "universe_of"]

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
        found = [_measure(grades, universe, judgments) for grades in _telling(universe)]
        values = [value for value in found if value is not None]
    return _distinct(np.array(values, np.float64))


def _telling(universe: Universe) -> Iterator[tuple[int, ...]]:
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
    return InputError(
        Problem(
            code="no-scale",
            path="measure",
            found=found,
            expected=expected,
            hint="take a smaller cutoff, or fewer grades",
        )
    )
