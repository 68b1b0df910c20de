"""Does a ranking hold on other views: other measures, queries, or labels?

Every view is bootstrapped as `validity.stability` does it, over the systems that all views share;
beside it stands how alike the views rank them (msmarco-benchmarking, section 3.2, figure 4).
"""

from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass

import numpy as np
from numpy.random import PCG64, Generator

from heldout.analyses.stability import Stability, bootstrap_stability
from heldout.errors import InputError, Problem, quote
from heldout.scores import Better, ScoreTable, table_of
from heldout.stats.resampling import TieRule
from heldout.validity.entries import BoardScores
from heldout.validity.transfer import Transfer, compare_rankings

__all__ = ["NamedRanks", "View", "Views", "bootstrap_views", "views_of_board"]

_LEAST = 2
_NAMED = 3
_SEEDS = 1 << 63


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """Scores of systems on one view.

    Attributes:
        name: unique among the views.
        means: score by system.
        table: the same by query; `None` where only means are known.
        better: which scores are better.
    """

    name: str
    means: Mapping[str, float]
    table: ScoreTable | None
    better: Better = "higher"

    @classmethod
    def of(cls, name: str, table: ScoreTable, *, better: Better = "higher") -> "View":
        """The view of a table; a system that lacks a score for a query has no mean."""
        complete = [s for s, known in zip(table.systems, table.known, strict=True) if known.all()]
        means = {system: table.mean(system) or 0.0 for system in complete}
        return cls(name=name, means=means, table=table, better=better)


def views_of_board(board: BoardScores) -> tuple[View, ...]:
    """Every view of a board, the reserve views too."""
    views = []
    for view in board.views.values():
        if view.table is None:
            one = View(name=view.title, means=view.means, table=None, better=view.better)
        else:
            one = View.of(view.title, view.table, better=view.better)
        views.append(one)
    return tuple(views)


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedRanks:
    """The ranks of one system on one view.

    Attributes:
        system, view: which.
        score: its mean.
        rank: by the scores as they are, from 1; of equal ones the earlier in the first view.
        expected: mean rank over the trials.
        low, high: the middle 95% of the trials' ranks. They describe and are no interval.
        probability: share of the trials at each rank from 1.
    """

    system: str
    view: str
    score: float
    rank: int
    expected: float
    low: int
    high: int
    probability: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Views:
    """Ranks under the bootstrap on several views, and how alike these rank.

    Attributes:
        systems: those that every view with scores by query has, in the order of the first one.
        left_out: systems that some of these views lack.
        stability: by view, for those with scores by query.
        means_only: views of which only means are known: no bootstrap.
        named: the systems that are looked at closely.
        ranks: of each of these on each view of `stability`, by system.
        transfer: agreement between all views, over the systems that two of them share.
    """

    systems: tuple[str, ...]
    left_out: tuple[str, ...]
    stability: Mapping[str, Stability]
    means_only: tuple[str, ...]
    named: tuple[str, ...]
    ranks: tuple[NamedRanks, ...]
    transfer: Transfer


def bootstrap_views(
    views: Sequence[View],
    rng: Generator,
    *,
    named: Sequence[str] = (),
    trials: int = 1000,
    ties: TieRule = "earlier",
    top: int = 10,
    executor: Executor | None = None,
) -> Views:
    """The bootstrap on every view, and the agreement between them.

    Args:
        views: at least two, with different names; those with scores by query share at least two
            systems.
        rng: where draws come from. Views on the same queries draw the same ones, so that what
            differs between them is measure or labels.
        named: systems to look at closely; by default the best of each view, and of the first view
            the next ones, up to three in all where views agree on the best.
        trials: resamplings of each view's queries, >= 1.
        ties: what equal means get; earlier in the first view's table is earlier in all.
        top: how many systems the agreement at the top is taken over, >= 2.
        executor: where to compute; `None` for here.

    Raises:
        InputError: codes `too-few-views`, `unknown-system`, `too-few-systems`, `too-few-queries`.

    Source: msmarco-benchmarking, section 3.2.
    """
    if len(views) < _LEAST:
        raise InputError(
            Problem(
                code="too-few-views",
                path="views",
                found=f"{len(views)}: {', '.join(view.name for view in views)}",
                expected="at least two",
                hint="another measure, query set or file of judgments is another view",
            )
        )
    tables = {view.name: (view, view.table) for view in views if view.table is not None}
    systems = _find_shared([view for view, _ in tables.values()])
    # A seed for each set of queries, in the order of the views
    seeds: dict[frozenset[str], int] = {}
    stability: dict[str, Stability] = {}
    for name, (view, table) in tables.items():
        seed = seeds.setdefault(frozenset(table.queries), int(rng.integers(_SEEDS)))
        stability[name] = bootstrap_stability(
            _restrict(table, systems),
            Generator(PCG64(seed)),
            better=view.better,
            trials=trials,
            ties=ties,
            executor=executor,
        )
    chosen = tuple(dict.fromkeys(named)) or _choose(list(stability.values()))
    _check_named(chosen, systems)
    return Views(
        systems=systems,
        left_out=tuple(
            dict.fromkeys(s for _, t in tables.values() for s in t.systems if s not in systems)
        ),
        stability=stability,
        means_only=tuple(view.name for view in views if view.table is None),
        named=chosen,
        ranks=tuple(
            _look_at(system, name, found) for system in chosen for name, found in stability.items()
        ),
        transfer=compare_rankings(_table_means(views), top=top),
    )


def _find_shared(views: Sequence[View]) -> tuple[str, ...]:
    """The systems with all scores on all views, in the order of the first one's table."""
    first = views[0].means if views else {}
    return tuple(system for system in first if all(system in view.means for view in views))


def _restrict(table: ScoreTable, systems: tuple[str, ...]) -> ScoreTable:
    if table.systems == systems:
        return table
    rows = [table.values[table.systems.index(system)].tolist() for system in systems]
    return table_of(
        {
            s: dict(zip(table.queries, row, strict=True))
            for s, row in zip(systems, rows, strict=True)
        },
        queries=table.queries,
    )


def _choose(found: Sequence[Stability]) -> tuple[str, ...]:
    best = [stability.systems[0] for stability in found]
    chosen = dict.fromkeys(best)
    for system in found[0].systems if found else ():
        if len(chosen) < _NAMED:
            chosen.setdefault(system)
    return tuple(chosen)


def _check_named(named: Sequence[str], systems: Sequence[str]) -> None:
    unknown = [name for name in named if name not in systems]
    if unknown:
        raise InputError(
            Problem(
                code="unknown-system",
                path="--run",
                found=", ".join(quote(name) for name in unknown[:_NAMED]),
                expected="a system that all views with scores by query have",
                hint=", ".join(quote(name) for name in systems[:_NAMED]) or "there is none",
            )
        )


def _look_at(system: str, view: str, stability: Stability) -> NamedRanks:
    row = stability.systems.index(system)
    shares = stability.rank_probability[row]
    until = np.cumsum(stability.rank_counts[row])
    # Counted in whole trials: no rounding decides
    low, high = (int(np.argmax(40 * until >= k * stability.trials)) + 1 for k in (1, 39))
    return NamedRanks(
        system=system,
        view=view,
        score=stability.means[row],
        rank=row + 1,
        expected=float(stability.expected_rank[row]),
        low=low,
        high=high,
        probability=tuple(shares.tolist()),
    )


def _table_means(views: Sequence[View]) -> ScoreTable:
    """Means by system and view, higher is better."""
    systems = dict.fromkeys(system for view in views for system in view.means)
    signs = {view.name: 1 if view.better == "higher" else -1 for view in views}
    return table_of(
        {
            system: {
                view.name: signs[view.name] * view.means[system]
                for view in views
                if system in view.means
            }
            for system in systems
        },
        queries=[view.name for view in views],
    )
