"""`heldout analyse power`: how many queries a difference takes, from pilot runs."""

from typing import get_args

import click
from numpy.random import PCG64, Generator

from heldout.cli.printing import reports_errors
from heldout.cli.reporting import Answer, Output, output_options, print_answer, seed_option
from heldout.cli.score_source import Source, load_scores, source_options
from heldout.report.power import facts, spec, tables, title, value
from heldout.store.compute import open_executor
from heldout.validity.power import plan_power
from heldout.validity.power_simulation import SimulatedTest

__all__ = ["power"]

_SHARE = click.FloatRange(0, 1, min_open=True, max_open=True)


@click.command
@source_options
@click.option(
    "--difference",
    "differences",
    type=float,
    multiple=True,
    metavar="D",
    help="How many queries does this difference take? Can be given many times.",
)
@click.option(
    "--size",
    "queries",
    type=int,
    multiple=True,
    metavar="N",
    help="What do so many queries find? [as many as the pilot has] Can be given many times.",
)
@click.option(
    "--test",
    "tests",
    type=click.Choice(get_args(SimulatedTest)),
    multiple=True,
    help="Simulate this test [all three].",
)
@click.option("--alpha", type=_SHARE, default=0.05, show_default=True, help="Level of the test.")
@click.option("--power", "goal", type=_SHARE, default=0.8, show_default=True, help="To be reached.")
@click.option("--level", type=_SHARE, default=0.95, show_default=True, help="Of the intervals.")
@click.option(
    "--trials",
    type=click.IntRange(min=1),
    default=1000,
    show_default=True,
    help="Resamplings of the pilot, and simulated query sets.",
)
@seed_option
@output_options
@reports_errors
def power(
    source: Source,
    output: Output,
    *,
    differences: tuple[float, ...],
    queries: tuple[int, ...],
    tests: tuple[SimulatedTest, ...],
    alpha: float,
    goal: float,
    level: float,
    trials: int,
    seed: int,
) -> None:
    """How many queries does a difference take, and what does a number of queries find?

    \b
    Example:
      heldout analyse power --runs 'pilot/*.gz' --qrels dev.qrels -m RR@10 --difference 0.02
    """
    scores = load_scores(source)
    with open_executor(jobs=source.jobs) as executor:
        result = plan_power(
            scores.table,
            Generator(PCG64(seed)),
            differences=differences,
            queries=queries,
            tests=tests or get_args(SimulatedTest),
            alpha=alpha,
            power=goal,
            level=level,
            trials=trials,
            executor=executor,
        )
    answer = Answer(
        facts=(*facts(result), *scores.facts),
        tables=tables(result, measure=scores.measure),
        value=value(result) | {"measure": scores.measure, "seed": seed},
        chart=lambda: spec(result),
        title=title(result),
    )
    print_answer(answer, output)
