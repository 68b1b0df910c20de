"""Scores as ranks among all attainable values: `--transform interval`.

A score becomes the number of attainable values below it, over how many there are above the lowest:
0 for the worst list, 1 for the best, equal steps between neighbours. What is attainable depends on
how many relevant documents a query has, so each query has a scale of its own, and a rank in it is
not the same unit on every query. Source: Ferrante, Ferro and Fuhr 2021; the division, which gives
every query the same weight, is ours.
"""

from collections import Counter
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from heldout.errors import InputError, Problem, quote
from heldout.measures.spec import Measure
from heldout.scores import ScoreTable, table_of
from heldout.validity.attainable import find_values, universe_of

__all__ = ["to_interval"]

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
        raise _problem("no-scale", str(measure), f"a cutoff, as in {measure}@10")
    known: dict[tuple[tuple[int, int], ...], NDArray[np.float64]] = {}
    columns = []
    for place, query in enumerate(table.queries):
        universe = universe_of(
            measure, length=measure.cutoff, judged=Counter(judgments.get(query, {}).values())
        )
        supply = tuple(universe.supply.items())
        if supply not in known:
            known[supply] = find_values(universe)
        columns.append(_rank(table, place, known[supply]))
    rows = np.array(columns).T.tolist()
    return table_of(
        {
            system: {
                query: value if there else None
                for query, value, there in zip(table.queries, row, known_here, strict=True)
            }
            for system, row, known_here in zip(
                table.systems, rows, table.known.tolist(), strict=True
            )
        },
        queries=table.queries,
    )


def _rank(table: ScoreTable, place: int, values: NDArray[np.float64]) -> NDArray[np.float64]:
    scores = table.values[:, place]
    above = np.searchsorted(values, scores - _NEAR).clip(max=len(values) - 1)
    strange = table.known[:, place] & (np.abs(values[above] - scores) > _NEAR)
    if strange.any():
        row = int(np.flatnonzero(strange)[0])
        raise _problem(
            "not-attainable",
            f"{scores[row]:.12g} of {quote(table.systems[row])} on query "
            f"{quote(table.queries[place])}",
            "a value that the measure can take with this query's judgments",
        )
    return above / max(len(values) - 1, 1)


def _problem(code: str, found: str, expected: str) -> InputError:
    return InputError(Problem(code=code, path="--transform", found=found, expected=expected))
