"""`heldout analyse views`: does the ranking hold on other measures, queries, labels?"""

import re
from pathlib import Path

import click
from numpy.random import PCG64, Generator

from heldout.analyses.views import words as report
from heldout.analyses.views import words as transfer_charts
from heldout.analyses.views import words as view_charts
from heldout.analyses.views.views import bootstrap_views, compare_rankings
from heldout.answers.answer import Answer
from heldout.cli.analyses.answers import print_each
from heldout.cli.analyses.facet_source import facet_options
from heldout.cli.analyses.sources import LoadedViews, ViewSource, load_views, view_options
from heldout.cli.options import dask_option, ties_option, trials_option
from heldout.cli.printing import Output, output_options, print_answer, reports_errors, seed_option
from heldout.files.executors import open_executor
from heldout.scoring.query_facets import FacetSource
from heldout.scoring.run_files import read_table_text
from heldout.scoring.table import ScoreTable, parse_scores
from heldout.stats.resampling import TieRule


@click.command
@view_options
@facet_options
@click.option(
    "--transfer",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="TABLE.csv",
    help="Means instead: a header `collection` and system names, then a row per collection; "
    "empty where there is no score.",
)
@click.option(
    "--run",
    "named",
    multiple=True,
    metavar="NAME",
    help="A run to look at closely; many times [the best of each view].",
)
@click.option(
    "--top",
    type=click.IntRange(min=2),
    default=10,
    show_default=True,
    help="Systems over which the agreement at the top is taken.",
)
@trials_option(1000, "Resamplings of each view's queries.")
@ties_option
@seed_option
@dask_option
@output_options
@reports_errors
def views(
    source: ViewSource,
    facets: FacetSource,
    output: Output,
    *,
    transfer: Path | None,
    named: tuple[str, ...],
    top: int,
    trials: int,
    ties: TieRule,
    seed: int,
    dask: str | None,
) -> None:
    """Does the ranking hold on other measures, other queries, other labels, other collections?

    Each measure with each file of judgments, each table of scores, or each view of a board is a
    view. The ranks of named runs are resampled on each; tau says how alike two views rank.

    \b
    Example:
      heldout analyse views --runs 'runs/*.gz' --qrels dev.qrels -m RR@10 -m nDCG@10 --chart v.svg
    """
    if transfer is not None:
        if source.named or named or facets.facet or facets.only:
            raise click.UsageError("--transfer has means of everything: leave the others away")
        print_answer(_compare(transfer, top), output)
        return

    def analyse(loaded: LoadedViews) -> Answer:
        result = bootstrap_views(
            loaded.views,
            Generator(PCG64(seed)),
            named=named,
            trials=trials,
            ties=ties,
            top=top,
            executor=executor,
        )
        return Answer(
            facts=(*report.facts(result), *loaded.facts),
            tables=report.tables(result),
            value=report.value(result) | {"orders": list(loaded.orders), "seed": seed},
            chart=(lambda: view_charts.spec_of_view_charts(result)) if result.ranks else None,
            title=view_charts.title_of_view_charts(result),
        )

    found = load_views(source)
    with open_executor(jobs=source.jobs, dask=dask) as executor:
        print_each(facets, output, found, analyse)


def _compare(path: Path, top: int) -> Answer:
    found = compare_rankings(_read_means(path), top=top)
    return Answer(
        facts=(
            *report.transfer_facts(found),
            ("systems", f"{found.systems:,} on {len(found.views):,} collections, in {path}"),
        ),
        tables=report.transfer_tables(found),
        value=report.transfer_value(found),
        chart=(lambda: transfer_charts.spec(found)) if found.pairs else None,
        title=transfer_charts.title(found),
    )


def _read_means(path: Path) -> ScoreTable:
    """A table of means: one of scores whose queries are collections."""
    text = re.sub(r"^collection(?=\s*,)", "query", read_table_text(path), flags=re.IGNORECASE)
    return parse_scores(text, path=str(path))
