"""Boards made of random scores, for the laws and the coverage of what is said of them."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta

import numpy as np
from numpy.random import PCG64, Generator
from numpy.typing import NDArray

from heldout.analyses.entries import BoardEntry, BoardScores, ViewScores
from heldout.scoring.table import ScoreTable, table_of

FIRST = datetime(2026, 1, 1, 9, tzinfo=UTC)


def rng(seed: int = 0) -> Generator:
    return Generator(PCG64(seed))


def table(rows: Mapping[str, Iterable[float]]) -> ScoreTable:
    """Scores on q0, q1 and so on."""
    return table_of(
        {name: {f"q{n}": float(x) for n, x in enumerate(row)} for name, row in rows.items()}
    )


def view_of(
    name: str,
    rows: Mapping[str, NDArray[np.float64]],
    *,
    queries: str | None = None,
    public: bool = True,
    held_out: bool = True,
) -> ViewScores:
    """A view with scores by query."""
    scores = table(rows)
    means = {one: mean for one in rows if (mean := scores.mean(one)) is not None}
    return ViewScores(
        view=name,
        queries=queries or name,
        measure="RR@10",
        public=public,
        held_out=held_out,
        means=means,
        table=scores,
    )


def means_of(view: ViewScores) -> ViewScores:
    """The same with means alone, as an old table has it."""
    return ViewScores(
        view=view.view,
        queries=view.queries,
        measure=view.measure,
        public=view.public,
        held_out=view.held_out,
        means=view.means,
    )


def entries_of(
    ids: Sequence[str],
    *,
    teams: Sequence[str] = (),
    days: Sequence[int] = (),
    baselines: Sequence[str] = (),
) -> tuple[BoardEntry, ...]:
    """Entries a day apart unless days are given."""
    return tuple(
        BoardEntry(
            id=one,
            received=FIRST + timedelta(days=days[n] if days else n),
            description=f"system {one}",
            team=teams[n] if teams else f"team {n}",
            institution="one university",
            baseline=one in baselines,
        )
        for n, one in enumerate(ids)
    )


def board_of(entries: Sequence[BoardEntry], *views: ViewScores) -> BoardScores:
    """The first view ranks."""
    return BoardScores(
        board="simulated",
        entries=tuple(entries),
        views={view.view: view for view in views},
        primary=views[0].view,
    )


def evolve(
    rng: Generator, *, systems: int, queries: int, changed: float = 0.1, drift: float = 0.0
) -> NDArray[np.float64]:
    """Reciprocal ranks of systems of which each changes some queries of the one before.

    Args:
        rng: where draws come from.
        systems: how many.
        queries: how many.
        changed: share of the queries that a system has again.
        drift: how much better a system finds what is changed than the one before did.
    """
    rows = [_reciprocal_ranks(rng, queries, 0.0)]
    for number in range(1, systems):
        again = rng.random(queries) < changed
        rows.append(np.where(again, _reciprocal_ranks(rng, queries, drift * number), rows[-1]))
    return np.array(rows)


def _reciprocal_ranks(rng: Generator, queries: int, lift: float) -> NDArray[np.float64]:
    ranks = rng.geometric(min(0.25 + lift, 0.9), queries)
    return np.where(ranks <= 10, 1 / ranks, 0.0)
