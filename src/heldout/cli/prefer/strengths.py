"""`heldout prefer strengths`: how much more runs are preferred, by Bradley and Terry."""

import click
import numpy as np

from heldout.answers.answer import Answer
from heldout.cli.options import DecimalRange, add_options, level_option
from heldout.cli.prefer.judged import (
    JudgedSource,
    count_valid,
    load_judged,
    read_first,
)
from heldout.cli.printing import TERMINAL, reports_errors
from heldout.cli.reporting import Output, output_options, print_answer, seed_option
from heldout.preferences.contests import first_documents, stand_for
from heldout.preferences.judged_pools import pooled_tops
from heldout.preferences.strengths import compare_runs
from heldout.preferences.votes import count_votes
from heldout.report import strengths as report
from heldout.stats.bradley_terry import PRIOR


@click.command
@add_options("source", JudgedSource)
@click.option("--ties", is_flag=True, help="Fit ties by Davidson's model, not as half a win each.")
@click.option(
    "--prior",
    type=DecimalRange(min=0),
    default=PRIOR,
    show_default=True,
    help="Precision of the normal prior of strengths; 0 for none.",
)
@click.option(
    "--draws",
    type=click.IntRange(min=20, max=100_000),
    default=1000,
    show_default=True,
    help="Samples of queries for the second intervals.",
)
@seed_option
@level_option
@output_options
@reports_errors
def strengths(
    *,
    source: JudgedSource,
    ties: bool,
    prior: float,
    draws: int,
    seed: int,
    level: float,
    output: Output,
) -> None:
    """Strengths of runs from the preferences for their first documents, all runs at once.

    Bradley and Terry's model over queries. Intervals are for differences between runs and take a
    query as one observation, by the sandwich and by samples of queries. A run that always shows the
    known answer takes part.

    \b
    Example:
      heldout prefer strengths --judgments pairs.gz --runs 'runs/*.gz' --qrels dev.qrels
    """
    judged = load_judged(source, progress=TERMINAL)
    valid = count_valid(judged)
    same = stand_for(judged.pools)
    if not source.runs and judged.folder is None:
        raise click.UsageError("which runs? --runs 'GLOB'")
    tops = read_first(source, progress=TERMINAL) if source.runs else pooled_tops(judged.pools)
    found = compare_runs(
        first_documents(tops, judged.known or None, same=same),
        count_votes(valid, same=same),
        rng=np.random.Generator(np.random.PCG64(seed)),
        prior=prior,
        ties=ties,
        level=level,
        draws=draws,
    )
    print_answer(
        Answer(
            facts=report.facts(found),
            tables=report.tables(found),
            value=report.value(found) | {"seed": seed},
            chart=(lambda: report.spec(found)) if found.differences else None,
            title=report.title(found) if found.differences else "",
        ),
        output,
    )
