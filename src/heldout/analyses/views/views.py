"""Does a ranking hold on other views: other measures, queries, or labels?

Every view is bootstrapped as `analyses.stability` does it, over the systems that all views share;
beside it stands how alike the views rank them (Craswell et al. 2021, §3.2, figure 4).
"""

from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.random import PCG64, Generator
from numpy.typing import NDArray

from heldout.analyses.entries import BoardEntry, BoardScores, ViewScores
from heldout.analyses.stability import Stability, bootstrap_stability
from heldout.errors import InputError, quote
from heldout.ids import Digest
from heldout.scoring.table import Better, ScoreTable, table_of
from heldout.stats.rank_correlation import kendall, tau_ap_b
from heldout.stats.resampling import DIGITS, TieRule, bootstrap_means

# Do two views, or two collections, rank the same systems alike?
#
# Kendall's tau and AP correlation between every two columns of a table of means. A low tau between
# views of few queries may be noise and no difference between them: `bootstrap_views` shows how far
# ranks move within each.

_LEAST = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewAgreement:
    """How alike two views rank the systems that have a score on both.

    Attributes:
        first, second: the views.
        systems: how many have both scores.
        tau: Kendall's tau-b over all of them; `None` with fewer than two, or where a view ties all.
        tau_ap: AP correlation, tau_AP,b: the top counts most; `None` likewise.
        tau_first_top: tau-b over the top systems of the first view; `None` likewise.
        tau_second_top: over those of the second view.
        shared_top: how many systems are among the top ones of both.
        first_top, second_top: how many the tops have: more than asked for where the last ones
            tie, fewer where there are no more.
        why: why `tau` is undefined, else `None`.
    """

    first: str
    second: str
    systems: int
    tau: float | None
    tau_ap: float | None
    tau_first_top: float | None
    tau_second_top: float | None
    shared_top: int
    first_top: int
    second_top: int
    why: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Transfer:
    """Agreement between all views.

    Attributes:
        views: names.
        scored: how many systems each has a score of.
        systems: how many have a score on any.
        top: how many systems the tops are asked to have.
        pairs: every two views, in the order of `views`.
        digest: of the table of means.
    """

    views: tuple[str, ...]
    scored: tuple[int, ...]
    systems: int
    top: int
    pairs: tuple[ViewAgreement, ...]
    digest: Digest


def compare_rankings(means: ScoreTable, *, top: int = 10) -> Transfer:
    """Agreement between every two columns of a table of means.

    Args:
        means: of systems (rows) by views (its queries), higher is better; one that is missing
            leaves its system out of the pairs with that view. Means are rounded to 12 digits, so
            that ties are ties.
        top: how many of the best systems of a view the tau of the top is taken over, >= 2.

    Source: Craswell et al. 2021, §3.2, for the views; the coefficients are a choice of ours.
    """
    values = np.round(means.values, DIGITS)
    pairs = tuple(
        _compare((means.queries[i], means.queries[j]), values[both][:, [i, j]], top)
        for i, j in combinations(range(len(means.queries)), 2)
        for both in (means.known[:, i] & means.known[:, j],)
    )
    return Transfer(
        views=means.queries,
        scored=tuple(means.known.sum(axis=0).tolist()),
        systems=len(means.systems),
        top=top,
        pairs=pairs,
        digest=means.digest,
    )


def _compare(names: tuple[str, str], scores: NDArray[np.float64], top: int) -> ViewAgreement:
    first, second = scores[:, 0], scores[:, 1]
    best_first, best_second = _find_top(first, top), _find_top(second, top)
    return ViewAgreement(
        first=names[0],
        second=names[1],
        systems=len(scores),
        tau=kendall(first, second),
        tau_ap=tau_ap_b(first, second),
        tau_first_top=kendall(first[best_first], second[best_first]),
        tau_second_top=kendall(first[best_second], second[best_second]),
        shared_top=int(np.sum(best_first & best_second)),
        first_top=int(best_first.sum()),
        second_top=int(best_second.sum()),
        why=_say_why(names, scores),
    )


def _find_top(scores: NDArray[np.float64], top: int) -> NDArray[np.bool_]:
    """The best systems and all that tie with the last of them."""
    if len(scores) <= top:
        return np.ones(len(scores), np.bool_)
    return np.asarray(scores >= np.sort(scores)[-top], np.bool_)


def _say_why(names: tuple[str, str], scores: NDArray[np.float64]) -> str | None:
    if len(scores) < _LEAST:
        return "fewer than two systems have both scores"
    tied = [name for name, view in zip(names, scores.T, strict=True) if not np.ptp(view)]
    return f"all systems have the same score on {' and '.join(tied)}" if tied else None


# Two views of the same entries side by side, and both resampled together.
#
# Queries that both views average over are drawn once for both; the others are drawn for each
# alone. So a difference between the views has the spread that new queries would give it.


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ViewPair:
    """Entries with a score on both of two views, in the order they came.

    Attributes:
        entries: baselines too.
        first, second: the views.
        first_means, second_means: score of each entry.
        resampled: whether both views have scores by query, so that they can be resampled.
    """

    entries: tuple[BoardEntry, ...]
    first: ViewScores
    second: ViewScores
    first_means: NDArray[np.float64]
    second_means: NDArray[np.float64]
    resampled: bool

    def resample(
        self, rng: Generator, *, trials: int, executor: Executor | None = None
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Means over queries drawn with replacement, as many of each kind as there are.

        Args:
            rng: where draws come from.
            trials: how many, at least 1.
            executor: where to compute; `None` for here.

        Returns:
            Means on the first and on the second view, each of shape (trials, entries).

        Raises:
            ValueError: a view has no scores by query.
        """
        first, second = self.first.rows(self.entries), self.second.rows(self.entries)
        if first is None or second is None:
            raise ValueError(self.first.view, self.second.view)
        count = len(self.entries)
        totals = np.zeros((trials, 2 * count))
        for stratum in _stratify(self.first, self.second, first, second):
            means = bootstrap_means(stratum, rng, trials=trials, executor=executor)
            totals += means * stratum.shape[1]
        return totals[:, :count] / first.shape[1], totals[:, count:] / second.shape[1]


def pair_views(board: BoardScores, first: ViewScores, second: ViewScores) -> ViewPair:
    """The entries that have a score on both views.

    Args:
        board: whose entries.
        first: a view of it.
        second: another.
    """
    entries = board.scored(first, second)
    return ViewPair(
        entries=entries,
        first=first,
        second=second,
        first_means=_means(first, entries),
        second_means=_means(second, entries),
        resampled=first.table is not None and second.table is not None,
    )


def _means(view: ViewScores, entries: Sequence[BoardEntry]) -> NDArray[np.float64]:
    return np.array([view.means[entry.id] for entry in entries], np.float64)


def _stratify(
    one: ViewScores,
    other: ViewScores,
    first: NDArray[np.float64],
    second: NDArray[np.float64],
) -> list[NDArray[np.float64]]:
    """Queries of both views, of the first alone, of the second alone; 0 where one has no score."""
    names = [() if view.table is None else view.table.queries for view in (one, other)]
    left = {query: n for n, query in enumerate(names[0])}
    right = {query: n for n, query in enumerate(names[1])}
    shared = [query for query in left if query in right] if one.queries == other.queries else []
    both = np.concatenate(
        [first[:, [left[q] for q in shared]], second[:, [right[q] for q in shared]]]
    )
    alone = np.delete(first, [left[q] for q in shared], axis=1)
    rest = np.delete(second, [right[q] for q in shared], axis=1)
    strata = [
        both,
        np.concatenate([alone, np.zeros_like(alone)]),
        np.concatenate([np.zeros_like(rest), rest]),
    ]
    return [stratum for stratum in strata if stratum.shape[1]]


_NAMED = 3
_SEEDS = 1 << 63


@dataclass(frozen=True, slots=True, kw_only=True)
class SystemView:
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
    def of(cls, name: str, table: ScoreTable, *, better: Better = "higher") -> "SystemView":
        """The view of a table; a system that lacks a score for a query has no mean."""
        complete = [s for s, known in zip(table.systems, table.known, strict=True) if known.all()]
        means = {system: table.mean(system) or 0.0 for system in complete}
        return cls(name=name, means=means, table=table, better=better)


def views_of_board(board: BoardScores) -> tuple[SystemView, ...]:
    """Every view of a board, the reserve views too."""
    views = []
    for view in board.views.values():
        if view.table is None:
            one = SystemView(name=view.title, means=view.means, table=None, better=view.better)
        else:
            one = SystemView.of(view.title, view.table, better=view.better)
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
    views: Sequence[SystemView],
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

    Source: Craswell et al. 2021, §3.2.
    """
    if len(views) < _LEAST:
        raise InputError.of(
            "too-few-views",
            "views",
            f"{len(views)}: {', '.join(view.name for view in views)}",
            "at least two",
            "another measure, query set or file of judgments is another view",
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


def _find_shared(views: Sequence[SystemView]) -> tuple[str, ...]:
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
        raise InputError.of(
            "unknown-system",
            "--run",
            ", ".join(quote(name) for name in unknown[:_NAMED]),
            "a system that all views with scores by query have",
            ", ".join(quote(name) for name in systems[:_NAMED]) or "there is none",
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


def _table_means(views: Sequence[SystemView]) -> ScoreTable:
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
