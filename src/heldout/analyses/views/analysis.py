"""Does the ranking hold on other measures, queries, labels, collections?"""

from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from typing import Annotated, Self

import numpy as np
from numpy.typing import NDArray

from heldout.analyses.analysis import Analysis, Draws
from heldout.analyses.stability import Ties
from heldout.analyses.subsets import cut_known
from heldout.analyses.views.views import (
    SystemView,
    Transfer,
    ViewAgreement,
    Views,
    bootstrap_views,
    compare_rankings,
)
from heldout.answers.answer import Answer, to_document
from heldout.answers.sentence import name_one
from heldout.answers.table import Cell, Column, Table, columns, ends_first
from heldout.charts.axes import place_axis
from heldout.charts.plot import Plot, PlotRow, shade
from heldout.charts.svg import RECORD
from heldout.errors import InputError, OptionError, plural
from heldout.options import Opt
from heldout.scoring.run_files import describe_orders
from heldout.scoring.sources import Scores
from heldout.scoring.table import ScoreTable
from heldout.trec.orders import Order

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
        x=place_axis(len(names)),
        rows=[PlotRow(name=f"{name} · {place}", lead=True) for place, name in enumerate(names, 1)],
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
    places = {view: at for at, view in enumerate(transfer.views)}
    taus = np.full((len(places), len(places)), np.nan)
    for pair in transfer.pairs:
        if pair.tau is not None:
            first, second = places[pair.first], places[pair.second]
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
        PlotRow(name=one.view, head=one.system if place % len(views) == 0 else "")
        for place, one in enumerate(result.ranks)
    ]
    plot = Plot(x=place_axis(last), rows=rows, foot="rank")
    for row, one in enumerate(result.ranks):
        for rank, share in enumerate(one.probability, start=1):
            if colour := shade(share, _LEAST_SHARE):
                tip = f"{one.system}, {one.view}: rank {rank} in {share:.1%}"
                plot.bar((rank - 0.5, rank + 0.5), row, colour, tip)
        plot.line([(one.expected, row - 0.45), (one.expected, row + 0.45)], RECORD)
    first, *others = (f"from {least:.0%}" for least in _LEAST_SHARE)
    plot.shades([f"{first} of resamplings", *others])
    plot.key("upright", "expected rank", RECORD)
    return plot


_SHOWN = 3


def transfer_headline(transfer: Transfer) -> str:
    """Return how alike views rank: the only pair, or the pair that ranks least alike."""
    known = sorted(
        ((pair.tau, pair) for pair in transfer.pairs if pair.tau is not None),
        key=lambda one: one[0],
    )
    if not known:
        return "No two views rank systems that both have, so nothing can be compared."
    (low, least), (high, most) = known[0], known[-1]
    if len(known) == 1:
        return f"{_name(least)} rank {least.systems:,} systems with Kendall's tau {low:.3f}."
    return (
        f"Of {len(transfer.views):,} views {_name(most)} rank most alike (Kendall's tau "
        f"{high:.3f}), {_name(least)} least (tau {low:.3f})."
    )


def _name(pair: ViewAgreement) -> str:
    return f"{name_one(pair.first)} and {name_one(pair.second)}"


def summary(result: Views) -> tuple[tuple[str, str], ...]:
    """Return which views rank most and least alike, and what is not known."""
    lines = transfer_summary(result.transfer)
    if not result.means_only:
        return lines
    return (*lines, ("", f"means alone are known of {', '.join(result.means_only)}: no ranks"))


def transfer_summary(transfer: Transfer) -> tuple[tuple[str, str], ...]:
    """Return which views rank most and least alike."""
    known = sorted(
        ((pair.tau, pair) for pair in transfer.pairs if pair.tau is not None),
        key=lambda one: one[0],
    )
    if not known:
        return (("views", "no two views share systems that both rank differently"),)
    lines = [("alike", _say(known[-1][1]))]
    if len(known) > 1:
        lines.append(("unlike", _say(known[0][1])))
    return tuple(lines)


def tables(result: Views) -> tuple[Table, ...]:
    """Tabulate the ranks of the named runs on each view, then the agreement between views."""
    ranks = (_rank_table(result),) if result.ranks else ()
    return (*ranks, *transfer_tables(result.transfer))


def transfer_tables(transfer: Transfer) -> tuple[Table, ...]:
    """Tabulate the agreement of every two views; before it, with more than three, of each view."""
    by_view = (_view_table(transfer),) if len(transfer.views) > _SHOWN else ()
    return (*by_view, _pair_table(transfer))


def _say(pair: ViewAgreement) -> str:
    return f"{pair.first} and {pair.second}, tau {pair.tau:.3f} over {pair.systems:,} systems"


def _rank_table(result: Views) -> Table:
    queries = ", ".join(f"{name} {s.queries:,}" for name, s in result.stability.items())
    first = next(iter(result.stability.values()))
    return Table(
        title=f"Ranks among the {len(result.systems):,} systems that all views have",
        columns=(
            *columns("text", "system", "view"),
            Column(name="score", form="score"),
            Column(name="rank", form="count"),
            Column(name="expected rank", form="score", decimals=1),
            Column(name="middle 95%"),
        ),
        rows=tuple(
            (one.system, one.view, one.score, one.rank, one.expected, f"{one.low}–{one.high}")
            for one in result.ranks
        ),
        notes=(
            "the middle of the trials' ranks describes and is no confidence interval",
            *_say_left_out(result),
        ),
        method=(
            (
                f"{plural(first.trials, 'resampling')} of each view's queries "
                f"({queries}); ties: {first.ties}"
            ),
            "views on the same queries draw the same ones; nothing is tested here",
        ),
    )


def _say_left_out(result: Views) -> list[str]:
    if not result.left_out:
        return []
    named = ", ".join(result.left_out[:_SHOWN])
    return [f"left out, since a view lacks them: {len(result.left_out):,} ({named}…)"]


def _view_table(transfer: Transfer) -> Table:
    rows = []
    for view, scored in zip(transfer.views, transfer.scored, strict=True):
        others = sorted(
            (pair.tau, pair.second if pair.first == view else pair.first)
            for pair in transfer.pairs
            if view in (pair.first, pair.second) and pair.tau is not None
        )
        rows.append(_view_row(view, scored, others))
    return Table(
        title=f"Each of {len(rows)} views against the others, {transfer.systems:,} systems",
        columns=(
            Column(name="view"),
            Column(name="systems", form="count"),
            Column(name="mean tau", form="score", decimals=3),
            Column(name="most alike"),
            Column(name="tau", form="score", decimals=3),
            Column(name="least alike"),
            Column(name="tau", form="score", decimals=3),
        ),
        rows=tuple(rows),
    )


def _view_row(view: str, scored: int, others: Sequence[tuple[float, str]]) -> tuple[Cell, ...]:
    if not others:
        return (view, scored, None, None, None, None, None)
    (least, apart), (most, alike) = others[0], others[-1]
    return (view, scored, sum(tau for tau, _ in others) / len(others), alike, most, apart, least)


def _pair_table(transfer: Transfer) -> Table:
    pairs = transfer.pairs
    undefined = {pair.why for pair in pairs if pair.why}
    return Table(
        title="How alike two views rank the systems that both have",
        columns=(
            *columns("text", "view", "other view"),
            Column(name="systems", form="count"),
            *columns("score", "tau", "tau AP", "top of view", "top of other", decimals=3),
            Column(name="in both tops", form="count"),
        ),
        rows=tuple(
            (
                *(pair.first, pair.second, pair.systems, pair.tau, pair.tau_ap),
                *(pair.tau_first_top, pair.tau_second_top, pair.shared_top),
            )
            for pair in pairs
        ),
        notes=(
            "no test, no interval: views of few queries differ by chance alone",
            *(f"undefined: {why}" for why in sorted(undefined)),
        ),
        method=(
            "tau: Kendall's tau-b; tau AP: AP correlation tau_AP,b, where the top counts most",
            (
                f"top: tau-b over the {transfer.top} best of the one view and of the other, with "
                "all that tie with the last; few systems, so it moves much by chance"
            ),
        ),
        first=ends_first([pair.tau for pair in pairs]),
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
    return replace(loaded, facts=(*facts, *describe_orders(loaded.orders, given=order)))


def views_of_scores(scores: Iterable[tuple[str, Scores]]) -> LoadedViews:
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
        raise InputError.of(
            "no-query-scores",
            self.path,
            "means of everything",
            "a score for each query, so that some of them can be looked at",
        )


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


def _analyse(given: LoadedViews | Means, options: ViewsOptions, draws: Draws) -> Answer:
    if isinstance(given, Means):
        return _compare(given, options)
    result = bootstrap_views(
        given.views,
        draws.rng(),
        named=options.named,
        trials=options.trials,
        ties=options.ties,
        top=options.top,
        executor=draws.executor,
    )
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


def _compare(given: Means, options: ViewsOptions) -> Answer:
    if options.named:
        raise InputError.of(
            "no-query-scores",
            "--run",
            "means alone, so that no ranks can be resampled",
            "a view with a score for each query",
        )
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
