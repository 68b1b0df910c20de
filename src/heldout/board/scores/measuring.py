"""Computes and logs the figures that a board publishes of its ranking beside the scores.

Equal input and seed give equal figures, so that whoever has the scores can go over them. Two
entries that are nearly the same are not compared with each other: no range tells them apart. With
all others each of the two is compared as any entry is.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import msgspec
import numpy as np
from numpy.random import PCG64, Generator
from numpy.typing import NDArray

from heldout.analyses import entries, progress, stability
from heldout.board.log.final import Figures, LeftOut, Ranges, Step, TrustPart
from heldout.board.log.submission import Submission
from heldout.board.scores.analyses_source import find_alike, read_board_scores
from heldout.board.scores.session import Session
from heldout.board.standings import overdue, standings
from heldout.errors import InputError
from heldout.scoring.table import Better, ScoreTable, table_of

_LEVEL = 0.95

Apart = Mapping[str, frozenset[str]]
"""Id -> those that it is not compared with, both ways, for all entries of a table."""


def find_near_scores(table: ScoreTable) -> Apart:
    """Id -> the others whose scores differ from its own for fewer than ten queries.

    Counts between two such entries would tell the labels of those queries.
    """
    near: dict[str, frozenset[str]] = {}
    for row, name in enumerate(table.systems):
        different = (table.values != table.values[row]).sum(axis=1)
        others = np.flatnonzero(different < standings.FEWEST_DIFFERENT).tolist()
        near[name] = frozenset(table.systems[other] for other in others if other != row)
    return near


def measure_ranges(table: ScoreTable, apart: Apart, rng: Generator, *, better: Better) -> Ranges:
    """Find ranges of ranks that hold at once; no range separates a pair that is not compared.

    All pairs are in the family, also those that are not compared: that makes no range too narrow.

    Args:
        table: scores by query, in the order that entries came.
        apart: the pairs that are not compared.
        rng: where signs come from.
        better: which scores are better.

    Raises:
        InputError: as `rank_ranges`.
    """
    found = stability.rank_ranges(table, rng, better=better, level=_LEVEL)
    n = len(found.systems)
    significant = np.triu(np.nan_to_num(found.p, nan=1.0) <= round(1 - _LEVEL, 12), 1)
    significant &= ~_mark(found.systems, apart)
    order = [found.systems.index(name) for name in table.systems]
    return Ranges(
        low=tuple((1 + significant.sum(axis=0))[order].tolist()),
        high=tuple((n - significant.sum(axis=1))[order].tolist()),
        level=found.level,
        flips=found.flips,
        pairs=n * (n - 1) // 2,
    )


def _mark(systems: Sequence[str], apart: Apart) -> NDArray[np.bool_]:
    """True for the pairs that are not compared, shape (systems, systems)."""
    return np.array([[one in apart[name] for one in systems] for name in systems], np.bool_)


_ALPHA = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """Entries that are compared, with their scores.

    Attributes:
        board: these entries and the baselines, in the order they came, on the public views.
        table: scores by query of the entries on the view that ranks, in that order.
        ranked: the same ids by released score, the best first.
        bar: whether a record has to be above the baselines.
        released: id -> score as it was published, which decides what was a record.
        alike: pairs that are not compared, the earlier entry first.
    """

    board: entries.BoardScores
    table: ScoreTable
    ranked: tuple[str, ...]
    bar: bool
    released: Mapping[str, float]
    alike: tuple[tuple[str, str], ...] = ()

    @property
    def apart(self) -> Apart:
        """Id -> those that it is not compared with."""
        return standings.read_pairs(self.alike, self.table.systems)


def choose_compared(
    board: entries.BoardScores,
    ranked: Sequence[str],
    *,
    released: Mapping[str, float],
    bar: bool = True,
) -> Compared | None:
    """Some entries of a board; `None` where they are not two with scores for the same queries.

    Args:
        board: all entries.
        ranked: ids of the chosen ones by released score, the best first.
        released: id -> score as it was published, as `read_released` gives it.
        bar: whether a record has to be above the baselines.
    """
    view = board.view()
    chosen = [e.id for e in board.entries if e.id in set(ranked)]
    if view.table is None or not set(chosen) <= set(view.table.systems):
        return None
    at = [view.table.systems.index(name) for name in chosen]
    if len(at) < 2 or not len(view.table.queries) or not view.table.known[at].all():  # noqa: PLR2004 - a pair
        return None
    rows = {
        name: dict(zip(view.table.queries, view.table.values[row].tolist(), strict=True))
        for name, row in zip(chosen, at, strict=True)
    }
    compared = tuple(e for e in board.entries if e.baseline or e.id in rows)
    shown = {n: one for n, one in board.views.items() if one.public and not one.for_information}
    return Compared(
        board=replace(board, entries=compared, views=shown),
        table=table_of(rows, queries=sorted(view.table.queries)),
        ranked=tuple(name for name in ranked if name in rows),
        bar=bar,
        released=released,
    )


def read_released(submissions: Iterable[Submission], view: str) -> Mapping[str, float]:
    """Id -> the score that was told of it on a view, of those that have one."""
    return {one.id: float(one.scores[view]) for one in submissions if view in one.scores}


def measure_ranking(compared: Compared, show: Sequence[TrustPart], *, seed: int) -> Figures:
    """Compute what is published of a ranking.

    Args:
        compared: entries that may be compared; pairs that are nearly the same stand in `alike`.
        show: parts that are published.
        seed: of what is drawn.
    """
    added: dict[str, Any] = {}
    why: dict[TrustPart, str] = {}
    if "ranges" in show:
        rng = Generator(PCG64(seed)).spawn(1)[0]
        better = compared.board.view().better
        try:
            added["ranges"] = measure_ranges(compared.table, compared.apart, rng, better=better)
        except InputError as error:
            why["ranges"] = _say(error)
    if "progress" in show:
        try:
            added["progress"] = _trace_records(compared)
        except InputError as error:
            why["progress"] = _say(error)
    queries = len(compared.table.queries)
    return Figures(queries=queries, alike=compared.alike, why=why, **added)


def _say(error: InputError) -> str:
    """A reason that names no path, and nothing of scores."""
    code = error.problems[0].code
    if code == "missing-scores":
        return "some entry has no score for each query"
    return f"undefined ({code})"


def _trace_records(compared: Compared) -> tuple[Step, ...]:
    board, view, apart = compared.board, compared.board.view(), compared.apart
    shown = {name: compared.released[name] for name in view.means if name in compared.released}
    found = progress.trace_progress(board, replace(view, means=shown), bar=compared.bar)
    return tuple(
        Step(
            entry=step.entry.id,
            significant=None
            if step.p_then is None or step.displaced in apart[step.entry.id]
            else step.p_then <= _ALPHA,
            family=step.family_then,
        )
        for step in found.line
    )


SEED = 0
"""Of everything that is drawn for a page; the event names it."""


def log_figures(session: Session, every_due: Sequence[overdue.DueFigures]) -> None:
    """Compute and log the figures of each season in which some are due.

    Args:
        session: its lock is held.
        every_due: at least one.

    Raises:
        StoreError: a run that has to be scored again is missing.
        TrustError: such a run does not open.
    """
    board = read_board_scores(session)
    for due in every_due:
        _log(session, replace(board, primary=due.spec.primary), due)


def _log(session: Session, board: entries.BoardScores, due: overdue.DueFigures) -> None:
    view = board.view()
    rows = () if view.table is None else zip(view.table.systems, view.table.known, strict=True)
    complete = [name for name, known in rows if known.all() and name in set(due.ranked)]
    alike: dict[str, set[str]] = {name: set() for name in complete}
    for name, other in find_alike(session, complete, view.queries):  # whoever sent them
        alike[name].add(other.id)
    submissions, today = session.history().submissions, session.now.date()
    released = read_released(submissions.values(), view.view)
    ranked = [name for name in due.ranked if name in complete]
    every = choose_compared(board, ranked, released=released)
    if every is None:
        return
    for name, others in find_near_scores(every.table).items():
        alike[name] |= others
    hidden = {name for name in due.ranked if submissions[name].is_hidden(today)}
    chosen = standings.choose_comparable(complete, alike, hidden)
    ranked = [name for name in due.ranked if name in chosen.entries]
    compared = choose_compared(board, ranked, released=released, bar=due.spec.baselines.bar)
    if compared is None:
        return
    compared = replace(compared, alike=chosen.pairs)
    figures = measure_ranking(compared, due.trust.show, seed=SEED)
    incomplete: dict[str, LeftOut] = {
        name: "withheld" if name in hidden else "incomplete"
        for name in due.ranked
        if name not in complete
    }
    public = {
        "view": view.view,
        "season": due.season,
        "due": due.since.isoformat(),
        "seed": SEED,
        "entries": list(compared.table.systems),
        "left_out": {**incomplete, **chosen.left_out},
        "figures": msgspec.to_builtins(figures),
    }
    session.log("measured", None, public=public, sealed={"table": str(compared.table.digest)})
