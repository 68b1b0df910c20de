"""Where each run has its first relevant document: what outcomes are counted from.

Positions are read off reciprocal ranks, exactly: a score that is no 1/n is refused. With several
relevant documents the first one found counts.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from heldout.errors import InputError, quote
from heldout.ids import Digest
from heldout.scoring.table import ScoreTable


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FirstRanks:
    """Positions of the first relevant document.

    Attributes:
        systems: names.
        queries: names.
        ranks: int64, shape (systems, queries), read-only: from 1 to `k`, 0 where none is found.
        k: how deep was looked.
        digest: of the table of scores that they were read off.
    """

    systems: tuple[str, ...]
    queries: tuple[str, ...]
    ranks: NDArray[np.int64]
    k: int
    digest: Digest

    def rows(self, systems: tuple[str, ...]) -> NDArray[np.int64]:
        """The positions of some systems, in their order."""
        return self.ranks[[self.systems.index(name) for name in systems]]


@dataclass(frozen=True, slots=True, kw_only=True)
class MethodSide:
    """What stands as A or as B: a run, or the runs of one method with different seeds.

    Attributes:
        name: what it is called.
        runs: at least one, all different.
    """

    name: str
    runs: tuple[str, ...]


def first_ranks(table: ScoreTable, *, k: int) -> FirstRanks:
    """Read positions off reciprocal ranks.

    Args:
        table: RR of at least one system, none missing, to a depth of at least `k`.
        k: how deep is looked, at least 1; what stands deeper counts as not found.

    Raises:
        InputError: codes `not-reciprocal-ranks`, `missing-scores`, `too-few-queries`.
    """
    if not table.queries:
        raise _refuse("too-few-queries", "no query", "at least one")
    if not table.complete:
        row, column = np.argwhere(~table.known)[0].tolist()
        found = f"no score of {quote(table.systems[row])} on {quote(table.queries[column])}"
        raise _refuse("missing-scores", found, "a score of every system on every query")
    positive = table.values > 0
    inverse = np.divide(1.0, table.values, out=np.zeros_like(table.values), where=positive)
    ranks = np.rint(np.minimum(inverse, 2.0**31))
    back = np.divide(1.0, ranks, out=np.zeros_like(ranks), where=ranks > 0)
    wrong = np.argwhere(back != table.values)
    if len(wrong):
        row, column = wrong[0].tolist()
        value, system = table.values[row, column], quote(table.systems[row])
        raise _refuse(
            "not-reciprocal-ranks",
            f"{value:.6g} of {system} on {quote(table.queries[column])}",
            "1, 1/2, 1/3 and so on, with all their digits, or 0 where nothing is found",
            hint="outcomes are counted from RR, such as RR@100; digits cut off are no ranks",
        )
    positions = np.where(ranks <= k, ranks, 0).astype(np.int64)
    positions.setflags(write=False)
    return FirstRanks(
        systems=table.systems, queries=table.queries, ranks=positions, k=k, digest=table.digest
    )


def _refuse(code: str, found: str, expected: str, hint: str = "") -> InputError:
    return InputError.of(code, "scores", found, expected, hint)
