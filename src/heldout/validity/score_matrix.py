"""A table of scores made ready for an analysis that draws queries: complete, and in one order.

Queries are put in the order of their names, so that a table whose rows somebody shuffled gives the
same draws. Scores of which lower ones are better change their sign.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from heldout.errors import InputError, Problem, plural, quote
from heldout.ids import Digest
from heldout.scores import Better, ScoreTable
from heldout.stats.exact import mean_of_sums, whole_numbers

__all__ = ["ScoreMatrix", "score_matrix"]

"""Which scores are better."""

_SHOWN = 3


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ScoreMatrix:
    """Scores of systems, the best mean first; means that differ by rounding keep the table's order.

    Attributes:
        systems: names.
        queries: names, sorted.
        means: of the scores as they are in the table.
        values: float64, shape (systems, queries), higher is better: negated where lower is.
        better: which scores of the table are better.
        digest: of the table.
    """

    systems: tuple[str, ...]
    queries: tuple[str, ...]
    means: tuple[float, ...]
    values: NDArray[np.float64]
    better: Better
    digest: Digest


def score_matrix(table: ScoreTable, *, better: Better = "higher") -> ScoreMatrix:
    """Check a table of scores and put it in order.

    Args:
        table: at least two systems on at least two queries, none missing.
        better: which scores are better.

    Raises:
        InputError: codes `too-few-systems`, `too-few-queries`, `missing-scores`.
    """
    problems = [*_too_few(table), *_missing(table)]
    if problems:
        raise InputError(problems)
    columns = sorted(range(len(table.queries)), key=table.queries.__getitem__)
    values = table.values[:, columns]
    if better == "lower":
        values = -values
    whole = whole_numbers(values, summed=len(columns))
    means = mean_of_sums(whole.values.sum(axis=1, dtype=np.float64), whole, len(columns))
    order = np.argsort(-means, kind="stable").tolist()
    systems = tuple(table.systems[row] for row in order)
    return ScoreMatrix(
        systems=systems,
        queries=tuple(table.queries[column] for column in columns),
        means=tuple(float(table.mean(system) or 0.0) for system in systems),
        values=np.ascontiguousarray(values[order]),
        better=better,
        digest=table.digest,
    )


def _too_few(table: ScoreTable) -> list[Problem]:
    return [
        Problem(code=code, path="scores", found=found, expected=expected, hint=hint)
        for code, count, found, expected, hint in (
            (
                "too-few-systems",
                len(table.systems),
                plural(len(table.systems), "system"),
                "at least two",
                "a ranking has something to rank",
            ),
            (
                "too-few-queries",
                len(table.queries),
                plural(len(table.queries), "query", "queries"),
                "at least two",
                "one query says nothing of how far scores vary",
            ),
        )
        if count < 2  # noqa: PLR2004 - as `expected` says
    ]


def _missing(table: ScoreTable) -> list[Problem]:
    if table.complete:
        return []
    places = np.argwhere(~table.known).tolist()
    named = ", ".join(
        f"{quote(table.systems[row])} on {quote(table.queries[column])}"
        for row, column in places[:_SHOWN]
    )
    more = f", and {len(places) - _SHOWN:,} more" if len(places) > _SHOWN else ""
    return [
        Problem(
            code="missing-scores",
            path="scores",
            found=f"no score of {named}{more}",
            expected="a score of every system on every query",
            hint="leave out those systems or queries: missing is not zero",
        )
    ]
