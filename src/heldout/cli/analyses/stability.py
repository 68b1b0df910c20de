"""`heldout analyse stability`: would the ranking look the same on other queries?"""

import click
from numpy.random import PCG64, Generator

from heldout.answers.answer import Answer
from heldout.cli.computing import dask_option
from heldout.cli.facet_answers import print_each
from heldout.cli.facet_source import FacetSource, facet_options
from heldout.cli.options import SHARE, ties_option, trials_option
from heldout.cli.printing import reports_errors
from heldout.cli.reporting import Output, output_options, seed_option
from heldout.cli.score_source import Source, load_scores, source_options
from heldout.report.stability import facts, tables, value
from heldout.report.stability_charts import spec, title
from heldout.scoring.scores import Scores
from heldout.stats.resampling import TieRule
from heldout.store.compute import open_executor
from heldout.validity.ranges import rank_ranges
from heldout.validity.stability import bootstrap_stability

__all__ = ["stability"]

_MOST = 50


@click.command
@source_options
@facet_options
@trials_option(1000, "Resamplings of the queries.")
@click.option(
    "--size",
    type=click.IntRange(min=1),
    metavar="N",
    help="Queries in each [as many as there are].",
)
@ties_option
@click.option(
    "--flips",
    type=click.IntRange(min=1),
    default=10_000,
    show_default=True,
    help="Sign flips of the tests behind the ranges.",
)
@click.option(
    "--level", type=SHARE, default=0.95, show_default=True, help="How surely all ranges hold."
)
@click.option("--all", "every", is_flag=True, help=f"Show all systems, and not {_MOST} at most.")
@click.option("--single-step", is_flag=True, help="Max-t in one step, without step-down.")
@seed_option
@dask_option
@output_options
@reports_errors
def stability(
    source: Source,
    facets: FacetSource,
    output: Output,
    *,
    trials: int,
    size: int | None,
    ties: TieRule,
    flips: int,
    level: float,
    every: bool,
    single_step: bool,
    seed: int,
    dask: str | None,
) -> None:
    """Which ranks may each system have, and how often does it have them on resampled queries?

    The range of ranks holds for all systems at once. The shares of resamplings describe the
    ranking and are no confidence statement.

    \b
    Example:
      heldout analyse stability --runs 'runs/*.gz' --qrels dev.qrels -m RR@10 --chart ranks.svg
    """
    most = None if every or output.markdown or output.latex else _MOST

    def analyse(scores: Scores) -> Answer:
        found = bootstrap_stability(
            scores.table,
            Generator(PCG64(seed)),
            better=scores.better,
            trials=trials,
            size=size,
            ties=ties,
            executor=executor,
        )
        ranges = rank_ranges(
            scores.table,
            Generator(PCG64(seed)),
            better=scores.better,
            level=level,
            flips=flips,
            step_down=not single_step,
            executor=executor,
        )
        return Answer(
            facts=(*facts(found, ranges), *scores.facts),
            tables=tables(found, ranges, measure=scores.measure, most=most),
            value=value(found, ranges) | scores.value | {"seed": seed},
            chart=lambda: spec(found, ranges, measure=scores.measure),
            title=title(found),
        )

    scores = load_scores(source)
    with open_executor(jobs=source.jobs, dask=dask) as executor:
        print_each(facets, output, scores, analyse)
