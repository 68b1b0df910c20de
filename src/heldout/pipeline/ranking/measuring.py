"""The figures that a board tells of its ranking beside the scores, computed from true scores.

Equal input and seed give equal figures, so that whoever has the scores can go over them.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

import msgspec
import numpy as np
from numpy.random import PCG64, Generator
from numpy.typing import NDArray

from heldout.analyses.drift import find_drift
from heldout.analyses.progress import trace_progress
from heldout.board.log.figures import Drift, Figures, Outcome, Step, find_bin
from heldout.board.log.history import Submission
from heldout.board.ranking.comparable import FEWEST_DIFFERENT, read_pairs
from heldout.board.rules.trust import PARTS, TrustPart
from heldout.errors import InputError
from heldout.measures.spec import parse_measure
from heldout.pipeline.ranking.measured_ranks import (
    Apart,
    measure_facets,
    measure_ranges,
    measure_shares,
)
from heldout.pipeline.ranking.ranked_facets import QueryFacet
from heldout.scores import Better, ScoreTable, table_of
from heldout.validity.entries import BoardScores
from heldout.validity.first_ranks import Side, first_ranks
from heldout.validity.outcomes import analyse_outcomes
from heldout.validity.verdicts import Judged, Rules

__all__ = [
    "Compared",
    "choose_compared",
    "join_near_found",
    "measure_ranking",
    "read_released",
]

_ALPHA = 0.05
_NUMBER = 4  # decimals


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """Entries that are compared, with their scores.

    Attributes:
        board: these entries and the baselines, in the order they came, on the public views.
        table: scores by query of the entries on the view that ranks, in that order.
        ranked: the same ids by released score, the best first.
        bar: whether a record has to be above the baselines.
        released: id -> score as it was told, which decides what was a record; `None` for events
            of old, in which the true ones did.
        alike: pairs that are not compared, the earlier entry first; `None` for events of old.
        facets: of the queries.
        step: how wide the bins are in which outcomes are counted; 0 for events of old, which had
            exact counts, and in which drift rests on true scores.
    """

    board: BoardScores
    table: ScoreTable
    ranked: tuple[str, ...]
    bar: bool
    released: Mapping[str, float] | None = None
    alike: tuple[tuple[str, str], ...] | None = None
    facets: Sequence[QueryFacet] = field(default=())
    step: int = 0

    @property
    def apart(self) -> Apart:
        """Id -> those that it is not compared with."""
        return read_pairs(self.alike or (), self.table.systems)


def choose_compared(
    board: BoardScores, ranked: Sequence[str], *, bar: bool = True
) -> Compared | None:
    """Some entries of a board; `None` where they are not two with scores for the same queries.

    Args:
        board: all entries.
        ranked: ids of the chosen ones by released score, the best first.
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
    kept = tuple(e for e in board.entries if e.baseline or e.id in rows)
    shown = {n: one for n, one in board.views.items() if one.public and not one.ranks_nobody}
    return Compared(
        board=replace(board, entries=kept, views=shown),
        table=table_of(rows, queries=sorted(view.table.queries)),
        ranked=tuple(name for name in ranked if name in rows),
        bar=bar,
    )


def read_released(submissions: Iterable[Submission], view: str) -> Mapping[str, float]:
    """Id -> the score that was told of it on a view, of those that have one."""
    return {one.id: float(one.scores[view]) for one in submissions if view in one.scores}


def measure_ranking(compared: Compared, show: Sequence[TrustPart], *, seed: int) -> Figures:
    """Compute what is told of a ranking.

    Args:
        compared: entries that may be compared; pairs that are nearly the same stand in `alike`.
        show: parts that are told.
        seed: of what is drawn; each part draws from a stream of its own.
    """
    streams = dict(zip(PARTS, Generator(PCG64(seed)).spawn(len(PARTS)), strict=True))
    figures = Figures(queries=len(compared.table.queries), step=compared.step, alike=compared.alike)
    for part in PARTS:
        if part in show:
            try:
                figures = _ADD[part](figures, compared, streams[part])
            except InputError as error:
                told = figures.why | {part: _say(error)}
                figures = msgspec.structs.replace(figures, why=told)
    return figures


def _say(error: InputError) -> str:
    """A reason that names no path, and nothing of scores."""
    known = {
        "not-reciprocal-ranks": "outcomes are counted from the reciprocal rank of single runs",
        "no-view": "there is no view of the same measure whose labels are public",
        "no-facet": "no public view names facets of these queries",
        "missing-scores": "some entry has no score for each query",
    }
    code = error.problems[0].code
    return known.get(code, f"undefined ({code})")


def _better(compared: Compared) -> Better:
    return compared.board.view().better


def _add_ranges(figures: Figures, compared: Compared, rng: Generator) -> Figures:
    found = measure_ranges(compared.table, compared.apart, rng, better=_better(compared))
    return msgspec.structs.replace(figures, ranges=found)


def _add_stability(figures: Figures, compared: Compared, rng: Generator) -> Figures:
    found = measure_shares(
        compared.table, compared.apart, compared.ranked, rng, better=_better(compared)
    )
    return msgspec.structs.replace(figures, stability=found)


def _add_facets(figures: Figures, compared: Compared, rng: Generator) -> Figures:
    found = measure_facets(
        compared.table,
        compared.facets,
        compared.apart,
        compared.ranked,
        rng,
        better=_better(compared),
    )
    return msgspec.structs.replace(figures, facets=found)


def _add_progress(figures: Figures, compared: Compared, _: Generator) -> Figures:
    board, view, apart = compared.board, compared.board.view(), compared.apart
    if compared.released is not None:
        told = {name: compared.released[name] for name in view.means if name in compared.released}
        view = replace(view, means=told)
    found = trace_progress(board, view, bar=compared.bar)
    steps = tuple(
        Step(
            entry=step.entry.id,
            significant=None
            if step.p_then is None or step.displaced in apart[step.entry.id]
            else step.p_then <= _ALPHA,
            family=step.family_then,
        )
        for step in found.line
    )
    return msgspec.structs.replace(figures, progress=steps)


def _add_drift(figures: Figures, compared: Compared, rng: Generator) -> Figures:
    board = compared.board
    official = board.view()
    dev = board.dev_view(official)
    if compared.step:
        # True means give away what a release rounds: a trend between two days has them times 365.
        told = {e.id: (compared.released or {})[e.id] for e in board.entries if not e.baseline}
        official = replace(official, means=told)
    found = find_drift(board, official, dev, rng=rng)
    trend = found.difference
    limit = _round_limit if compared.step else _round
    drift = Drift(
        dev=dev.view,
        ratio=_round(found.ratio),
        gap=_round(found.gap),
        per_year=None if trend is None else _round(trend.per_year),
        low=None if trend is None else limit(trend.low),
        high=None if trend is None else limit(trend.high),
        verdict=found.verdict,
        why=found.why,
    )
    return msgspec.structs.replace(figures, drift=drift)


def _round(number: float | None) -> float | None:
    return None if number is None else round(number, _NUMBER)


def _round_limit(number: float | None) -> float | None:
    """Two significant digits: the limit of an interval is made of true scores."""
    return None if number is None else float(f"{number:.1e}")


def _add_outcomes(figures: Figures, compared: Compared, _: Generator) -> Figures:
    cutoff = parse_measure(compared.board.view().measure).cutoff
    ranks = first_ranks(compared.table, k=cutoff or 1 << 20)
    pairs = [
        (Side(name=one, runs=(one,)), Side(name=other, runs=(other,)))
        for one, other in pairwise(compared.ranked)
        if other not in compared.apart[one]
    ]
    if not pairs:
        return msgspec.structs.replace(figures, outcomes=(), k=cutoff or 0)
    if compared.step:
        ranks = replace(ranks, ranks=join_near_found(ranks.ranks))
    found = analyse_outcomes(ranks, pairs, Rules()).pairs
    outcomes = tuple(_tell_outcome(one, len(ranks.queries), compared.step) for one in found)
    return msgspec.structs.replace(figures, outcomes=outcomes, k=cutoff or 0)


def _tell_outcome(one: Judged, queries: int, step: int) -> Outcome:
    """Counts in bins, and no verdict of two that find the same queries; all counts without bins."""
    pair = one.pair
    a_alone, b_alone = int(pair.a_only), int(pair.b_only)
    told = Outcome(
        a=pair.a.name,
        b=pair.b.name,
        a_alone=a_alone,
        b_alone=b_alone,
        neither=int(pair.neither),
        both=int(pair.both),
        better=one.verdict.better or "",
        verdict=one.verdict.word,
    )
    if not step:
        return told
    if a_alone + b_alone < FEWEST_DIFFERENT:
        told = msgspec.structs.replace(told, better="", verdict="no verdict")
    return msgspec.structs.replace(
        told,
        a_alone=find_bin(a_alone, queries, step),
        b_alone=find_bin(b_alone, queries, step),
        neither=None,
        both=None,
    )


def join_near_found(ranks: NDArray[np.int64]) -> NDArray[np.int64]:
    """Let entries that find nearly the same queries find the same ones.

    Where two entries differ in a single query, their counts beside a third entry would differ by
    that query's label. So an entry that differs from an earlier one in fewer than ten found queries
    finds what the earlier one does: at its own ranks, or where it finds nothing at the other's.

    Args:
        ranks: of the first relevant document, 0 where none is found, shape (entries, queries), in
            the order that the entries came.
    """
    joined = ranks.copy()
    own: list[int] = []
    for row, mine in enumerate(ranks):
        near = [one for one in own if ((ranks[one] > 0) != (mine > 0)).sum() < FEWEST_DIFFERENT]
        if near:
            like = ranks[near[0]]
            joined[row] = np.where((like > 0) & (mine > 0), mine, like)
        else:
            own.append(row)
    joined.setflags(write=False)
    return joined


_ADD: Mapping[TrustPart, Callable[[Figures, Compared, Generator], Figures]] = {
    "ranges": _add_ranges,
    "stability": _add_stability,
    "progress": _add_progress,
    "drift": _add_drift,
    "outcomes": _add_outcomes,
    "facets": _add_facets,
}
