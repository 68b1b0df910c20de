"""Scores on the scale of what people prefer: `--transform preference`.

For pairs of results that people compared, the share that preferred the one with the higher score
is fitted as a function of the difference of scores: never falling, and a half where scores are
equal (isotonic regression). A score is then twice the share by which its result would be preferred
to one of score 0, less 1: 0 where nobody could tell, 1 where everybody prefers it. Between
differences that were compared it is interpolated; beyond the largest it is unknown, and an error.

What is compared may be whole lists of two systems, or two documents: a document is then a list of
its own. This takes perception as a function of the difference alone, wherever on the scale it lies.
Source: msmarco-benchmarking, section 4.1, asks for measures that are equally spaced in perceived
relevance; this way to get one is ours. Barlow et al. 1972 (isotonic regression).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import isotonic_regression

from heldout.errors import InputError, Problem, quote
from heldout.measures.hits import Hits
from heldout.measures.ranked import summarise
from heldout.measures.spec import Measure
from heldout.scores import ScoreTable, table_of
from heldout.trec.preferences import Preference

__all__ = ["Calibration", "calibrate", "fit_shares", "to_preference"]

_DECIMALS = 12
_NEAR = 1e-9

Values = Mapping[str, Mapping[str, float]]
"""Query -> item -> score."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
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
) -> Calibration:
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


def fit_shares(differences: NDArray[np.float64], *, unknown: int = 0) -> Calibration:
    """The never falling share that prefers the higher score.

    Args:
        differences: score of the preferred result less that of the other, one by judgment.
        unknown: judgments that were left out before.

    Raises:
        InputError: code `no-preference`: there is no difference other than 0.
    """
    rounded = np.round(differences, _DECIMALS) + 0.0
    sizes, place, counts = np.unique(np.abs(rounded), return_inverse=True, return_counts=True)
    if not (sizes > 0).any():
        raise _problem(
            "no-preference",
            f"{len(rounded)} judgments of results with scores, and no two scores differ",
            "judgments of systems or documents that the scores are about",
        )
    agreed = np.bincount(place, rounded > 0, len(sizes))
    apart = sizes > 0
    fitted = isotonic_regression(agreed[apart] / counts[apart], weights=counts[apart]).x
    equal = int(counts[~apart].sum())
    return Calibration(
        differences=(0.0, *sizes[apart].tolist()),
        # The fit within bounds is the free one, cut off at them.
        shares=(0.5, *np.maximum(fitted, 0.5).tolist()),
        counts=(equal, *counts[apart].tolist()),
        used=len(rounded),
        unknown=unknown,
    )


def to_preference(table: ScoreTable, calibration: Calibration) -> ScoreTable:
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
        raise _problem(
            "not-calibrated",
            f"{table.values[row, column]:.4g} of {quote(table.systems[row])} on query "
            f"{quote(table.queries[column])}",
            f"scores from 0 to {calibration.differences[-1]:.4g}, the largest difference compared",
        )
    raised = np.interp(table.values, calibration.differences, calibration.shares) * 2 - 1
    return table_of(
        {
            system: {
                query: value if there else None
                for query, value, there in zip(table.queries, row, known, strict=True)
            }
            for system, row, known in zip(
                table.systems, raised.tolist(), table.known.tolist(), strict=True
            )
        },
        queries=table.queries,
    )


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


def _problem(code: str, found: str, expected: str) -> InputError:
    return InputError(Problem(code=code, path="--preferences", found=found, expected=expected))
