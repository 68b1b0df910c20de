"""Does the ranking hold on other measures, queries, labels, collections?"""

from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from typing import Annotated, Self

from heldout.analyses.analysis import Analysis, Draws
from heldout.analyses.stability import Ties
from heldout.analyses.subsets import cut_known
from heldout.analyses.views import words
from heldout.analyses.views.views import View, bootstrap_views, compare_rankings
from heldout.answers.answer import Answer, to_document
from heldout.errors import InputError
from heldout.options import Opt
from heldout.scoring.table import ScoreTable
from heldout.trec.orders import Order


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedViews:
    """Views with their source.

    Attributes:
        views: by query.
        facts: where they come from, in lines of `name      what there is to say`.
        orders: of the runs' documents, each once.
    """

    views: tuple[View, ...]
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
        summary=(*words.summary(result), *given.facts),
        tables=words.tables(result),
        document=to_document(result)
        | {
            "stability": {
                name: to_document(one, "expected_rank") for name, one in result.stability.items()
            },
            "orders": list(given.orders),
        },
        chart=(lambda: words.view_chart(result)) if result.ranks else None,
        title=words.view_title(result),
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
        summary=(*words.transfer_summary(found), ("systems", count)),
        tables=words.transfer_tables(found),
        document=to_document(found),
        chart=(lambda: words.transfer_chart(found)) if found.pairs else None,
        title=words.transfer_title(found),
    )


def _cut(view: View, queries: AbstractSet[str]) -> View:
    table = cut_known(view.table, queries, view=view.name)
    return View.of(view.name, table, better=view.better)


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
