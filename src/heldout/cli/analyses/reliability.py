"""`heldout analyse reliability`."""

from typing import TYPE_CHECKING

import click
import numpy as np

from heldout.answers.answer import Answer
from heldout.cli.computing import dask_option
from heldout.cli.facet_answers import print_each
from heldout.cli.facet_source import FacetSource, facet_options
from heldout.cli.options import SHARE, DecimalRange
from heldout.cli.printing import reports_errors
from heldout.cli.reporting import Output, output_options, seed_option
from heldout.cli.score_source import Source, load_scores, source_options
from heldout.report import reliability as report
from heldout.scoring.scores import Scores
from heldout.stats.all_pairs import PairOptions
from heldout.store.compute import open_executor
from heldout.validity.reliability import measure_reliability

if TYPE_CHECKING:
    from heldout.stats.rank_tests import Corrections, Zeros
    from heldout.validity.reliability import Equal

__all__ = ["reliability"]


@click.command()
@source_options
@facet_options
@click.option(
    "--splits",
    type=click.IntRange(min=1),
    default=100,
    show_default=True,
    help="How often the queries are split.",
)
@click.option(
    "--alpha",
    type=SHARE,
    default=0.05,
    show_default=True,
    help="Significant is a p of at most this.",
)
@click.option(
    "--equal",
    type=click.Choice(["own", "either"]),
    default="own",
    show_default=True,
    help="Neither system is better: a verdict of its own, or one that matches either.",
)
@click.option(
    "--rank-sum",
    type=click.Choice(["mann-whitney", "ranksums"]),
    default="mann-whitney",
    show_default=True,
    help="Corrected for ties and continuity, or for neither.",
)
@click.option(
    "--zeros",
    type=click.Choice(["wilcox", "pratt", "zsplit"]),
    default="wilcox",
    show_default=True,
    help="What the signed-rank test does with differences of 0.",
)
@click.option(
    "--continuity/--no-continuity",
    default=PairOptions().continuity,
    show_default=True,
    help="Of the signed-rank test.",
)
@click.option(
    "--sign-tolerance",
    type=DecimalRange(min=0),
    default=0.0,
    show_default=True,
    help="Differences up to this are ties for the sign test.",
)
@seed_option
@dask_option
@output_options
@reports_errors
def reliability(
    *,
    source: Source,
    facets: FacetSource,
    splits: int,
    alpha: float,
    equal: "Equal",
    rank_sum: "Corrections",
    zeros: "Zeros",
    continuity: bool,
    sign_tolerance: float,
    seed: int,
    dask: str | None,
    output: Output,
) -> None:
    """How often do two halves of the queries agree on which system is better?

    \b
    Example:
      heldout analyse reliability --runs 'runs/*.gz' --qrels dev.qrels -m RR@10 --chart halves.svg
    """
    options = PairOptions(
        rank_sum=rank_sum, zeros=zeros, continuity=continuity, sign_tolerance=sign_tolerance
    )

    def analyse(scores: Scores) -> Answer:
        result = measure_reliability(
            scores.table,
            np.random.Generator(np.random.PCG64(seed)),
            splits=splits,
            alpha=alpha,
            equal=equal,
            options=options,
            executor=executor,
        )
        return Answer(
            facts=(*report.facts(result), *scores.facts),
            tables=report.tables(result, measure=scores.measure),
            value=report.value(result) | scores.value | {"seed": seed},
            chart=lambda: report.spec(result),
            title=report.title(result),
        )

    scores = load_scores(source)
    with open_executor(jobs=source.jobs, dask=dask) as executor:
        print_each(facets, output, scores, analyse)
