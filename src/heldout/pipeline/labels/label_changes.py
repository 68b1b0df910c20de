"""What a version of labels changed in the ranking of everything published.

It is nowhere kept: it follows from the scores by query, which the vault keeps and the log vouches
for.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from heldout.board.rules.spec import BoardSpec, View
from heldout.measures.spec import parse_measure
from heldout.pipeline.labels.label_versions import BoardLabels
from heldout.pipeline.labels.published_tops import list_published
from heldout.pipeline.organiser.desk import Desk
from heldout.pipeline.scoring.score import ViewScore
from heldout.pipeline.scoring.score_files import read_kept
from heldout.preferences.tau_ranges import Both, TauRange, find_taus

__all__ = ["Change", "Move", "compare_version"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """An entry whose rank is another one; equal scores share the best of their ranks."""

    id: str
    before: int
    after: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What a version changed in the ranking.

    Attributes:
        version: its name.
        before: the view that it is compared with: the version before, or the set's own labels.
        entries: published entries and baselines with a score on both.
        queries: with a score of each of them on both: ranks are by the means over these.
        taus: over all, and over the best ten before; empty for fewer than two entries.
        moves: entries with another rank, in the order of their ranks now.
    """

    version: str
    before: str
    entries: int
    queries: int
    taus: tuple[TauRange, ...]
    moves: tuple[Move, ...]


def compare_version(desk: Desk, version: BoardLabels) -> Change | None:
    """What a version changed in the ranking of everything published.

    Args:
        desk: of the organiser.
        version: whose scores the vault has.

    Returns:
        `None` where the set has no view with the same measure to compare with.
    """
    before = version.record.parent or _own_view(desk.spec(), version.view)
    if before is None:
        return None
    rows = _read_rows(desk, before, version.name)
    queries = _common_queries(rows)
    if not queries:
        return Change(version=version.name, before=before, entries=0, queries=0, taus=(), moves=())
    sign = 1.0 if parse_measure(version.view.measure).kind.better == "higher" else -1.0
    means = Both(
        before=sign * np.array([_mean(first, queries) for first, _ in rows.values()]),
        after=sign * np.array([_mean(second, queries) for _, second in rows.values()]),
    )
    return Change(
        version=version.name,
        before=before,
        entries=len(rows),
        queries=len(queries),
        taus=find_taus(tuple(rows), means) if len(rows) > 1 else (),
        moves=_find_moves(tuple(rows), means),
    )


def _own_view(spec: BoardSpec, view: View) -> str | None:
    """The first view of the set on its own labels, all queries, the same measure."""
    return next(
        (
            one.name
            for one in spec.views
            if (one.set, one.measure, one.labels, one.files) == (view.set, view.measure, None, ())
            and (one.part, one.noise) == (view.part, None)
        ),
        None,
    )


def _read_rows(desk: Desk, before: str, after: str) -> Mapping[str, tuple[ViewScore, ViewScore]]:
    rows = {}
    for entry in list_published(desk):
        kept = read_kept(desk.vault, entry)
        if kept is not None and before in kept.views and after in kept.views:
            rows[entry.id] = (kept.views[before], kept.views[after])
    return rows


def _common_queries(rows: Mapping[str, tuple[ViewScore, ViewScore]]) -> tuple[str, ...]:
    known = [
        {query for query, value in score.per_query.items() if value is not None}
        for pair in rows.values()
        for score in pair
    ]
    return tuple(sorted(set.intersection(*known))) if known else ()


def _mean(score: ViewScore, queries: Sequence[str]) -> float:
    values = [value for query in queries if (value := score.per_query[query]) is not None]
    return sum(values) / len(values)


def _find_moves(ids: Sequence[str], means: Both) -> tuple[Move, ...]:
    def rank(values: NDArray[np.float64], place: int) -> int:
        return 1 + int((values > values[place]).sum())

    moves = [
        Move(id=name, before=rank(means.before, place), after=rank(means.after, place))
        for place, name in enumerate(ids)
    ]
    moved = [move for move in moves if move.before != move.after]
    return tuple(sorted(moved, key=lambda move: (move.after, move.id)))
