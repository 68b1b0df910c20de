"""Entries with their days, on the views that an analysis over time looks at."""

from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from typing import Any, Self

from heldout.analyses.entries import AlikeRuns, BoardScores, ViewScores
from heldout.analyses.subsets import cut_view
from heldout.errors import plural
from heldout.trec.orders import Order


@dataclass(frozen=True, slots=True, kw_only=True)
class Dated:
    """What an analysis over time is given.

    Attributes:
        board: entries with their days and scores.
        views: those that are looked at, the official one first.
        alike: pairs of nearly identical runs of different teams; `None` where no runs are known.
        orders: of the documents of runs, each once; none where scores are no runs'.
        source: how documents are ordered, in lines of `name      what there is to say`.
    """

    board: BoardScores
    views: tuple[ViewScores, ...]
    alike: tuple[AlikeRuns, ...] | None = None
    orders: tuple[Order, ...] = ()
    source: tuple[tuple[str, str], ...] = ()

    @property
    def facts(self) -> tuple[tuple[str, str], ...]:
        """Which entries and queries the scores are of, in lines of `name      words`."""
        return (*tell_view(self.board, self.views[0]), *self.source)

    @property
    def document(self) -> dict[str, Any]:
        """What JSON says of it."""
        return {"orders": list(self.orders)}

    @property
    def size(self) -> int:
        """Fewest queries of a view; 0 where only means are known."""
        return min(0 if view.table is None else len(view.table.queries) for view in self.views)

    def cut(self, queries: AbstractSet[str]) -> Self:
        """The same on some of the queries.

        Raises:
            InputError: code `no-query-scores`.
        """
        return replace(self, views=tuple(cut_view(view, queries) for view in self.views))


def tell_view(board: BoardScores, view: ViewScores) -> tuple[tuple[str, str], ...]:
    """Which entries and queries a view's scores are of, in lines of `name      words`."""
    entries = board.scored(view)
    baselines = sum(entry.baseline for entry in entries)
    unpublished = sum(not entry.published for entry in entries)
    counts = plural(len(entries) - baselines, "entry", "entries")
    counts += f" and {plural(baselines, 'baseline')}" if baselines else ""
    counts += f", {unpublished:,} of them unpublished" if unpublished else ""
    queries = (
        "" if view.table is None else f", {plural(len(view.table.queries), 'query', 'queries')}"
    )
    lines = [("board", f"{board.board}: {counts}"), ("view", f"{view.title}{queries}")]
    if view.table is None:
        lines.append(("", "means alone are known, so nothing is tested"))
    return tuple(lines)
