"""`heldout analyse power`: how many queries a difference takes, from pilot runs."""

from typing import get_args

import click
from numpy.random import PCG64, Generator

from heldout.answers.answer import Answer
from heldout.cli.computing import dask_option
from heldout.cli.facet_answers import print_each
from heldout.cli.facet_source import FacetSource, facet_options
from heldout.cli.options import SHARE, level_option, trials_option
from heldout.cli.printing import reports_errors
from heldout.cli.reporting import Output, output_options, seed_option
from heldout.cli.score_source import Source, load_scores, source_options
from heldout.measures.spec import parse_measure
from heldout.report.power import facts, spec, tables, title, value
from heldout.scoring.scores import Scores
from heldout.store.compute import open_executor
from heldout.validity.power import plan_power
from heldout.validity.power_simulation import SimulatedTest

__all__ = ["power"]


@click.command
@source_options
@facet_options
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
@click.option("--alpha", type=SHARE, default=0.05, show_default=True, help="Level of the test.")
@click.option("--power", "goal", type=SHARE, default=0.8, show_default=True, help="To be reached.")
@level_option
@trials_option(1000, "Resamplings of the pilot, and simulated query sets.")
@seed_option
@dask_option
@output_options
@reports_errors
def power(
    source: Source,
    facets: FacetSource,
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
    dask: str | None,
) -> None:
    """How many queries does a difference take, and what does a number of queries find?

    \b
    Example:
      heldout analyse power --runs 'pilot/*.gz' --qrels dev.qrels -m RR@10 --difference 0.02
    """

    def analyse(scores: Scores) -> Answer:
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
            largest=_largest(scores, source),
            executor=executor,
        )
        return Answer(
            facts=(*facts(result), *scores.facts),
            tables=tables(result, measure=scores.measure),
            value=value(result) | scores.value | {"seed": seed},
            chart=lambda: spec(result),
            title=title(result),
        )

    scores = load_scores(source)
    with open_executor(jobs=source.jobs, dask=dask) as executor:
        print_each(facets, output, scores, analyse)


def _largest(scores: Scores, source: Source) -> float | None:
    """How far two scores can differ; `None` where no measure is known, or they are transformed."""
    if not scores.measure or source.transform is not None:
        return None
    return parse_measure(scores.measure, path="-m").largest
