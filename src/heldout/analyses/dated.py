"""Entries with their days, on the views that an analysis over time looks at."""

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from typing import Any, Self

from heldout.analyses.entries import AlikeRuns, BoardEntry, BoardScores, ViewScores
from heldout.analyses.subsets import cut_view
from heldout.errors import plural
from heldout.scoring.run_files import describe_orders
from heldout.scoring.sources import Scores
from heldout.scoring.table import ScoreTable
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
    """Return which entries and queries a view's scores are of, in lines of `name      words`."""
    entries = board.scored(view)
    baselines = sum(entry.baseline for entry in entries)
    unpublished = sum(not entry.published for entry in entries)
    counts = plural(len(entries) - baselines, "entry", "entries")
    counts += f" and {plural(baselines, 'baseline')}" if baselines else ""
    counts += f", {unpublished:,} of them unpublished" if unpublished else ""
    lacking = sum(not entry.baseline for entry in board.entries) - (len(entries) - baselines)
    has = "has" if lacking == 1 else "have"
    counts += f"; {lacking:,} more {has} no score here" if lacking else ""
    queries = (
        "" if view.table is None else f", {plural(len(view.table.queries), 'query', 'queries')}"
    )
    lines = [("board", f"{board.board}: {counts}"), ("view", f"{view.title}{queries}")]
    if view.table is None:
        lines.append(("", "means alone are known, so nothing is tested"))
    return tuple(lines)


def date_scores(
    first: Scores,
    entries: Sequence[BoardEntry],
    *,
    name: str,
    second: Scores | None = None,
    second_name: str = "",
    held_out: bool = True,
    order: Order | None = None,
) -> Dated:
    """Scores with the days on which their systems came, on no view yet.

    Args:
        first: official scores; the view is called `scores`.
        entries: a row for each system.
        name: what stands for the board's name.
        second: scores of the same systems on a second view; its queries are taken for others than
            those of the first.
        second_name: of the second view: `dev` or `reserve`.
        held_out: whether nobody but the organisers has the second view's labels.
        order: of documents, as asked for.
    """
    views = [_as_view("scores", first, first.table, held_out=True)]
    if second is not None:
        views.append(_as_view(second_name, first, second.table, held_out=held_out))
    board = BoardScores(
        board=name,
        entries=tuple(entries),
        views={view.view: view for view in views},
        primary="scores",
    )
    source = tuple(describe_orders(first.orders, given=order))
    return Dated(board=board, views=(), orders=first.orders, source=source)


def _as_view(name: str, scores: Scores, table: ScoreTable, *, held_out: bool) -> ViewScores:
    means = {system: table.mean(system) for system in table.systems}
    return ViewScores(
        view=name,
        queries=name,
        measure=scores.measure,
        public=name != "reserve",
        held_out=held_out,
        means={system: mean for system, mean in means.items() if mean is not None},
        table=table,
        better=scores.better,
    )


def on_view(dated: Dated, view: str | None) -> Dated:
    """On one view; without a name on the one that ranks.

    Raises:
        InputError: code `no-view`.
    """
    return replace(dated, views=(dated.board.view(view),))


def beside_dev(dated: Dated, view: str | None, dev: str | None) -> Dated:
    """On the official view, and on dev: the view of that name, or the one with public labels.

    Raises:
        InputError: code `no-view`.
    """
    official = dated.board.view(view)
    second = dated.board.dev_view(official) if dev is None else dated.board.view(dev)
    return replace(dated, views=(official, second))


def beside_reserve(dated: Dated, view: str | None, reserve: str | None) -> Dated:
    """On a public view, and on the reserve: the view of that name, or the one that is not public.

    Raises:
        InputError: code `no-view`.
    """
    first = dated.board.view(view)
    second = dated.board.reserve_view(first) if reserve is None else dated.board.view(reserve)
    return replace(dated, views=(first, second))
