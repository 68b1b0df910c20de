"""Does a ranking hold on other views: other measures, queries, labels or collections?

Every view is bootstrapped as `analyses.stability` does it, over the systems that all views share;
beside it stands how alike the views rank them (Craswell et al. 2021, §3.2, figure 4).
"""

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Annotated, Self

import numpy as np
from numpy.random import PCG64, Generator
from numpy.typing import NDArray

from heldout.analyses.analysis import Analysis, Draws
from heldout.analyses.entries import BoardEntry, BoardScores, ViewScores, cut_known
from heldout.analyses.stability import Stability, Ties, bootstrap_stability
from heldout.answers.answer import Answer, to_document
from heldout.answers.table import Cell, Table, ends_first
from heldout.answers.texts import write, write_facts, write_table
from heldout.charts import axes, svg
from heldout.charts.plot import Plot, PlotRow, shade
from heldout.errors import InputError, OptionError, quote
from heldout.ids import Digest
from heldout.options import Opt
from heldout.scoring import run_files, sources
from heldout.scoring.table import Better, ScoreTable, table_of
from heldout.stats import rank_correlation, resampling
from heldout.trec.orders import Order

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
    values = np.round(means.values, resampling.DIGITS)
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
        tau=rank_correlation.kendall(first, second),
        tau_ap=rank_correlation.tau_ap_b(first, second),
        tau_first_top=rank_correlation.kendall(first[best_first], second[best_first]),
        tau_second_top=rank_correlation.kendall(first[best_second], second[best_second]),
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
            means = resampling.bootstrap_means(stratum, rng, trials=trials, executor=executor)
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
    return tuple(
        SystemView(name=one.title, means=one.means, table=None, better=one.better)
        if one.table is None
        else SystemView.of(one.title, one.table, better=one.better)
        for one in board.views.values()
    )


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


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewsOptions:
    """Options of `heldout analyse views`."""

    named: Annotated[
        tuple[str, ...],
        Opt(
            "Run to look at closely [the best of each view]; can be given many times.",
            names=("--run",),
            metavar="NAME",
        ),
    ] = ()
    top: Annotated[int, Opt("Systems over which the agreement at the top is taken.", least=2)] = 10
    trials: Annotated[int, Opt("Number of bootstrap samples of each view's queries.", least=1)] = (
        1000
    )
    ties: Ties = "earlier"


def bootstrap_views(
    views: Sequence[SystemView],
    rng: Generator,
    options: ViewsOptions,
    *,
    executor: Executor | None = None,
) -> Views:
    """The bootstrap on every view, and the agreement between them.

    Args:
        views: at least two, with different names; those with scores by query share at least two
            systems.
        rng: where draws come from. Views on the same queries draw the same ones, so that what
            differs between them is measure or labels.
        options: the systems to look at closely, by default the best of each view, and of the first
            view the next ones, up to three in all where views agree on the best; draws; what equal
            means get, where earlier in the first view's table is earlier in all.
        executor: where to compute; `None` for here.

    Raises:
        InputError: codes `too-few-views`, `unknown-system`, `too-few-systems`, `too-few-queries`.

    Source: Craswell et al. 2021, §3.2.
    """
    if len(views) < _LEAST:
        raise InputError.of(
            "too-few-views", "views", f"{len(views)}: {', '.join(view.name for view in views)}"
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
            trials=options.trials,
            ties=options.ties,
            executor=executor,
        )
    chosen = tuple(dict.fromkeys(options.named)) or _choose(list(stability.values()))
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
        transfer=compare_rankings(_table_means(views), top=options.top),
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


_LEAST_TAU = (0.8, 0.6, 0.4, -1.0)
"""From which tau a cell has which shade."""


def transfer_title(transfer: Transfer) -> str:
    """Return what the picture shows."""
    return f"Kendall's tau-b between every two of {len(transfer.views)} collections"


def transfer_chart(transfer: Transfer) -> Plot:
    """A row and a column for each collection, the one most like all others first.

    Args:
        transfer: at least one pair.
    """
    order = _order(transfer)
    names = [transfer.views[at] for at in order]
    plot = Plot(
        x=axes.rank_axis(len(names)),
        rows=[
            PlotRow(name=f"{name} · {position}", lead=True)
            for position, name in enumerate(names, 1)
        ],
        square=True,
    )
    taus = _matrix(transfer)[np.ix_(order, order)]
    for (row, column), tau in np.ndenumerate(taus):
        if row > column and not np.isnan(tau):
            tip = f"{names[row]}, {names[column]}: {_format(tau)}"
            colour = shade(tau, _LEAST_TAU)
            plot.box((column + 0.5, column + 1.5), (row - 0.5, row + 0.5), colour, tip)
        elif row < column:
            plot.text(column + 1, row, _format(tau))
    plot.shades(["tau-b from .8", "from .6", "from .4", "below"])
    return plot


def _matrix(transfer: Transfer) -> NDArray[np.float64]:
    """Kendall's tau by view and view; NaN where it is undefined."""
    positions = {view: at for at, view in enumerate(transfer.views)}
    taus = np.full((len(positions), len(positions)), np.nan)
    for pair in transfer.pairs:
        if pair.tau is not None:
            first, second = positions[pair.first], positions[pair.second]
            taus[first, second] = taus[second, first] = pair.tau
    return taus


def _order(transfer: Transfer) -> list[int]:
    """Collections by their mean tau with the others, the highest first; those without one last."""
    taus = _matrix(transfer)
    means = [float(np.mean(row[~np.isnan(row)])) if (~np.isnan(row)).any() else -2 for row in taus]
    return sorted(range(len(means)), key=lambda at: (-means[at], at))


def _format(tau: float) -> str:
    """Two digits; nothing before the point, since a tau is at most 1."""
    return "-" if np.isnan(tau) else f"{tau:.2f}".replace("0.", ".", 1)


_LEAST_SHARE = (0.5, 0.2, 0.05, 0.01)
"""From which share of the resamplings on a cell has which shade."""


def view_title(result: Views) -> str:
    """Return what the picture shows."""
    return (
        f"How often {', '.join(result.named)} have each rank on "
        f"{', '.join(result.stability)} when the queries of each view are resampled"
    )


def view_chart(result: Views) -> Plot:
    """Figure 4: for each named run a row for each view, a cell for each rank, dark where often.

    A mark stands at the expected rank.

    Args:
        result: with scores by query on at least one view.

    Source: Craswell et al. 2021, figure 4.
    """
    views = [*result.stability]
    last = max(
        rank
        for one in result.ranks
        for rank, share in enumerate(one.probability, start=1)
        if share >= _LEAST_SHARE[-1]
    )
    rows = [
        PlotRow(name=one.view, head=one.system if position % len(views) == 0 else "")
        for position, one in enumerate(result.ranks)
    ]
    plot = Plot(x=axes.rank_axis(last), rows=rows, foot="rank")
    for row, one in enumerate(result.ranks):
        for rank, share in enumerate(one.probability, start=1):
            if colour := shade(share, _LEAST_SHARE):
                tip = f"{one.system}, {one.view}: rank {rank} in {share:.1%}"
                plot.bar((rank - 0.5, rank + 0.5), row, colour, tip)
        plot.line([(one.expected, row - 0.45), (one.expected, row + 0.45)], svg.RECORD)
    first, *others = (f"from {least:.0%}" for least in _LEAST_SHARE)
    plot.shades([f"{first} of resamplings", *others])
    plot.key("upright", "expected rank", svg.RECORD)
    return plot


_SHOWN = 3


def transfer_headline(transfer: Transfer) -> str:
    """Return how alike views rank: the only pair, or the pair that ranks least alike."""
    return write("views.headline", transfer=transfer, **_ends(transfer))


def _ends(transfer: Transfer) -> dict[str, object]:
    """The pairs that have a tau, and of these the least and the most alike."""
    known = sorted(
        (pair for pair in transfer.pairs if pair.tau is not None), key=lambda pair: pair.tau or 0.0
    )
    return {"known": known, "least": known[0], "most": known[-1]} if known else {"known": ()}


def summary(result: Views) -> tuple[tuple[str, str], ...]:
    """Return which views rank most and least alike, and what is not known."""
    return transfer_summary(result.transfer, result.means_only)


def transfer_summary(
    transfer: Transfer, means_only: Sequence[str] = ()
) -> tuple[tuple[str, str], ...]:
    """Return which views rank most and least alike.

    Args:
        transfer: between all views.
        means_only: those of which only means are known.
    """
    return write_facts("views.summary", means_only=means_only, **_ends(transfer))


def tables(result: Views) -> tuple[Table, ...]:
    """Tabulate the ranks of the named runs on each view, then the agreement between views."""
    ranks = (_rank_table(result),) if result.ranks else ()
    return (*ranks, *transfer_tables(result.transfer))


def transfer_tables(transfer: Transfer) -> tuple[Table, ...]:
    """Tabulate the agreement of every two views; before it, with more than three, of each view."""
    by_view = (_view_table(transfer),) if len(transfer.views) > _SHOWN else ()
    return (*by_view, _pair_table(transfer))


def _rank_table(result: Views) -> Table:
    rows = tuple(
        (one.system, one.view, one.score, one.rank, one.expected, f"{one.low}–{one.high}")
        for one in result.ranks
    )
    first = next(iter(result.stability.values()))
    return write_table("views.ranks", rows, result=result, first_view=first)


def _view_table(transfer: Transfer) -> Table:
    rows = []
    for view, scored in zip(transfer.views, transfer.scored, strict=True):
        others = sorted(
            (pair.tau, pair.second if pair.first == view else pair.first)
            for pair in transfer.pairs
            if view in (pair.first, pair.second) and pair.tau is not None
        )
        rows.append(_view_row(view, scored, others))
    return write_table("views.each", tuple(rows), transfer=transfer)


def _view_row(view: str, scored: int, others: Sequence[tuple[float, str]]) -> tuple[Cell, ...]:
    if not others:
        return (view, scored, None, None, None, None, None)
    (least, apart), (most, alike) = others[0], others[-1]
    return (view, scored, sum(tau for tau, _ in others) / len(others), alike, most, apart, least)


def _pair_table(transfer: Transfer) -> Table:
    pairs = transfer.pairs
    return write_table(
        "views.pairs",
        tuple(
            (
                *(pair.first, pair.second, pair.systems, pair.tau, pair.tau_ap),
                *(pair.tau_first_top, pair.tau_second_top, pair.shared_top),
            )
            for pair in pairs
        ),
        first=ends_first([pair.tau for pair in pairs]),
        transfer=transfer,
        undefined=sorted({pair.why for pair in pairs if pair.why}),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedViews:
    """Views with their source.

    Attributes:
        views: by query.
        facts: where they come from, in lines of `name      what there is to say`.
        orders: of the runs' documents, each once.
    """

    views: tuple[SystemView, ...]
    facts: tuple[tuple[str, str], ...] = ()
    orders: tuple[Order, ...] = ()

    @property
    def size(self) -> int:
        """Fewest queries of a view."""
        return min(0 if view.table is None else len(view.table.queries) for view in self.views)

    def cut(self, queries: AbstractSet[str]) -> Self:
        """The same on some of the queries.

        Raises:
            InputError: code `no-query-scores`: of a view only means are known.
        """
        return replace(self, views=tuple(_cut(view, queries) for view in self.views))


_FEWEST = 2


def name_views(loaded: LoadedViews, *, order: Order | None = None) -> LoadedViews:
    """Views with what there is to say of them all.

    Args:
        loaded: two views at least.
        order: of documents, as asked for.

    Raises:
        OptionError: fewer than two, or two with one name.
    """
    names = [view.name for view in loaded.views]
    if len(set(names)) < len(names):
        raise OptionError(f"two views have one name: {', '.join(names)}")
    if len(names) < _FEWEST:
        raise OptionError(
            "two views at least: several -m or --qrels with --runs, several --scores, or a "
            "board with two views"
        )
    facts = (*loaded.facts, ("views", ", ".join(names)))
    return replace(loaded, facts=(*facts, *run_files.describe_orders(loaded.orders, given=order)))


def views_of_scores(scores: Iterable[tuple[str, sources.Scores]]) -> LoadedViews:
    """A view of each table of scores.

    Args:
        scores: by the name of the view.
    """
    named = tuple(scores)
    orders = dict.fromkeys(order for _, one in named for order in one.orders)
    views = tuple(SystemView.of(name, one.table, better=one.better) for name, one in named)
    facts = tuple(("computed", f"{name} by {one.engine}") for name, one in named if one.engine)
    return LoadedViews(views=views, facts=facts, orders=tuple(orders))


@dataclass(frozen=True, slots=True, kw_only=True)
class Means:
    """Means of systems on several collections.

    Attributes:
        table: systems by collections.
        path: of its file.
    """

    table: ScoreTable
    path: str
    size: int = 0

    def cut(self, queries: AbstractSet[str]) -> Self:
        """Raises `InputError`: there are no queries."""
        del queries
        raise InputError.of("no-query-scores", self.path)


def _analyse(given: LoadedViews | Means, options: ViewsOptions, draws: Draws) -> Answer:
    if isinstance(given, Means):
        return _compare_means(given, options)
    result = bootstrap_views(given.views, draws.rng(), options, executor=draws.executor)
    return Answer(
        answer=transfer_headline(result.transfer),
        summary=(*summary(result), *given.facts),
        tables=tables(result),
        document=to_document(result)
        | {
            "stability": {
                name: to_document(one, "expected_rank") for name, one in result.stability.items()
            },
            "orders": list(given.orders),
        },
        chart=(lambda: view_chart(result)) if result.ranks else None,
        title=view_title(result),
    )


def _compare_means(given: Means, options: ViewsOptions) -> Answer:
    if options.named:
        raise InputError.of("no-query-scores", "--run")
    found = compare_rankings(given.table, top=options.top)
    count = f"{found.systems:,} on {len(found.views):,} collections, in {given.path}"
    return Answer(
        answer=transfer_headline(found),
        summary=(*transfer_summary(found), ("systems", count)),
        tables=transfer_tables(found),
        document=to_document(found),
        chart=(lambda: transfer_chart(found)) if found.pairs else None,
        title=transfer_title(found),
    )


def _cut(view: SystemView, queries: AbstractSet[str]) -> SystemView:
    table = cut_known(view.table, queries, view=view.name)
    return SystemView.of(view.name, table, better=view.better)


ANALYSIS = Analysis(
    name="views",
    help="""Does the ranking hold on other measures, other queries, other labels, other collections?

    Each measure with each file of judgments, each table of scores, or each view of a board is a
    view. The ranks of named runs are resampled on each; tau says how alike two views rank.

    \b
    Example:
      heldout analyse views --runs 'runs/*.gz' --qrels dev.qrels -m RR@10 -m nDCG@10 --chart v.svg
    """,
    source="views",
    options=ViewsOptions,
    analyse=_analyse,
    chapter="Views side by side",
)
