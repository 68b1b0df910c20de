"""A table of scores with where it comes from: what an analysis is computed from."""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

from heldout.errors import Problem
from heldout.scoring.table import Better, ScoreTable, cut_table
from heldout.trec.orders import Order
from heldout.trec.qrels import Qrels


class Notes(NamedTuple):
    """What is odd about files that can be scored."""

    problems: Sequence[Problem]
    counts: Mapping[str, int]
    """Code -> how many there are, where not all are among the problems."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scores:
    """Scores by query, and where they come from.

    Attributes:
        table: systems by queries; every system has a score for every query.
        measure: what was measured, "" where a table does not say.
        facts: where it comes from, in lines of `name      what there is to say`.
        better: whether higher or lower scores are better.
        orders: of the runs' documents, each once; none where scores are no runs'.
        zeros: the sentences of these that say which queries count 0 for want of an answer, or of
            anything to be found.
        judgments: that runs were scored by; `None` where scores are no runs'.
        transformed: whether scores were turned into something else than the measure.
        notes: what is odd about the files that they were read from.
    """

    table: ScoreTable
    measure: str
    facts: tuple[tuple[str, str], ...] = ()
    better: Better = "higher"
    orders: tuple[Order, ...] = ()
    zeros: tuple[str, ...] = ()
    judgments: Qrels | None = None
    transformed: bool = False
    notes: tuple[Notes, ...] = ()

    @property
    def document(self) -> dict[str, Any]:
        """What JSON says of them."""
        return {"measure": self.measure, "orders": list(self.orders)}

    @property
    def size(self) -> int:
        """How many queries."""
        return len(self.table.queries)

    def cut(self, queries: AbstractSet[str]) -> Self:
        """The same on some of the queries."""
        return replace(self, table=cut_table(self.table, queries))
