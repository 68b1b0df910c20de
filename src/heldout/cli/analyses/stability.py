"""`heldout analyse stability`: would the ranking look the same on other queries?"""

import click
from numpy.random import PCG64, Generator

from heldout.cli.computing import dask_option
from heldout.cli.printing import reports_errors
from heldout.cli.reporting import Answer, Output, output_options, print_answer, seed_option
from heldout.cli.score_source import Source, load_scores, source_options
from heldout.report.stability import facts, spec, tables, title, value
from heldout.stats.resample import TieRule
from heldout.store.compute import open_executor
from heldout.validity.ranges import rank_ranges
from heldout.validity.score_matrix import Better
from heldout.validity.stability import bootstrap_stability

__all__ = ["stability"]


@click.command
@source_options
@click.option(
    "--trials",
    type=click.IntRange(min=1),
    default=1000,
    show_default=True,
    help="Resamplings of the queries.",
)
@click.option(
    "--size",
    type=click.IntRange(min=1),
    metavar="N",
    help="Queries in each [as many as there are].",
)
@click.option(
    "--ties",
    type=click.Choice(["earlier", "shared"]),
    default="earlier",
    show_default=True,
    help="Of equal means the earlier system has the better rank, or all share the best.",
)
@click.option(
    "--flips",
    type=click.IntRange(min=1),
    default=10_000,
    show_default=True,
    help="Sign flips of the tests behind the ranges.",
)
@click.option(
    "--level",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    default=0.95,
    show_default=True,
    help="How surely all ranges hold.",
)
@click.option("--single-step", is_flag=True, help="Max-t in one step, without step-down.")
@seed_option
@dask_option
@output_options
@reports_errors
def stability(
    source: Source,
    output: Output,
    *,
    trials: int,
    size: int | None,
    ties: TieRule,
    flips: int,
    level: float,
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
    scores = load_scores(source)
    better: Better = "lower" if scores.better == "lower" else "higher"
    with open_executor(jobs=source.jobs, dask=dask) as executor:
        found = bootstrap_stability(
            scores.table,
            Generator(PCG64(seed)),
            better=better,
            trials=trials,
            size=size,
            ties=ties,
            executor=executor,
        )
        ranges = rank_ranges(
            scores.table,
            Generator(PCG64(seed)),
            better=better,
            level=level,
            flips=flips,
            step_down=not single_step,
            executor=executor,
        )
    print_answer(
        Answer(
            facts=(*facts(found, ranges), *scores.facts),
            tables=tables(found, ranges, measure=scores.measure),
            value=value(found, ranges) | {"measure": scores.measure, "seed": seed},
            chart=lambda: spec(found, ranges),
            title=title(found),
        ),
        output,
    )
