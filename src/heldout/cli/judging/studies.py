"""`heldout prefer contests`: whose first document people prefer."""

import click
import numpy as np

from heldout.answers.answer import Answer
from heldout.cli.judging.campaign import Judged, JudgedSource, count_valid, load_judged, read_first
from heldout.cli.options import DecimalRange, add_options, level_option
from heldout.cli.printing import (
    TERMINAL,
    Output,
    output_options,
    print_answer,
    progress,
    reports_errors,
    seed_option,
)
from heldout.errors import InputError, Problem
from heldout.judging.campaign.judgments import Votes, count_votes, counted, pooled_tops
from heldout.judging.labels.contests import first_documents, hold_contests, stand_for
from heldout.judging.labels.strengths import compare_runs
from heldout.judging.studies import bias as report
from heldout.judging.studies import categories as category_chart
from heldout.judging.studies import categories as category_report
from heldout.judging.studies import contests as contest_report
from heldout.judging.studies import simulation as simulation_report
from heldout.judging.studies import strengths as strengths_report
from heldout.judging.studies.bias import measure_bias, text_lengths
from heldout.judging.studies.categories import count_preferences, split_queries
from heldout.judging.studies.judges import measure_care
from heldout.judging.studies.simulation import DESIGNS, SPREAD, simulate_design
from heldout.stats.bradley_terry import PRIOR

# `heldout prefer bias`: what judges do beside judging.


@click.command
@add_options("source", JudgedSource)
@level_option
@output_options
@reports_errors
def bias(*, source: JudgedSource, level: float, output: Output) -> None:
    """Do judges prefer the left passage, or the longer one? How careful is each of them?

    Of judgments whose sides are known: those of the judging pages and of Mechanical Turk, and not
    four columns. Lengths are of the texts in the campaign's pools.

    \b
    Example:
      heldout prefer bias campaign
    """
    judged = load_judged(source, progress=TERMINAL)
    until = judged.rules.until
    valid = counted(
        judged.judgments,
        exclusion=judged.rules.exclusion,
        failures=judged.rules.failures,
        until=until,
    )
    found = measure_bias(valid, lengths=text_lengths(judged.pools), level=level)
    care = measure_care(
        one
        for one in judged.judgments
        if (until is None or one.answered_at <= until) and (one.position or one.shown_at)
    )
    print_answer(
        Answer(
            facts=report.facts(found, care),
            tables=report.tables(found, care),
            value=report.value(found, care),
        ),
        output,
    )


_TWO = 2


@click.command
@add_options("source", JudgedSource)
@click.option(
    "--split",
    is_flag=True,
    help="One run against the labels: where it shows the known answer first, and where not.",
)
@level_option
@output_options
@reports_errors
def contests(*, source: JudgedSource, split: bool, level: float, output: Output) -> None:
    """Compare runs by their first documents: on how many queries do people prefer each?

    Of a campaign, or of judgments with run files and labels. A run that always shows the known
    answer takes part: runs that beat it are better than the labels can tell. Exact binomial tests,
    corrected over all contests; queries are counted, never votes.

    \b
    Examples:
      heldout prefer contests campaign
      heldout prefer contests --judgments pairs.gz --runs 'runs/*.gz' --qrels dev.qrels
      heldout prefer contests campaign --split --runs bert.gz --qrels dev.qrels
    """
    judged = load_judged(source, progress=TERMINAL)
    votes = count_votes(count_valid(judged), same=stand_for(judged.pools))
    if split:
        print_answer(_split(source, judged, votes, level), output)
        return
    tops = read_first(source, progress=TERMINAL) if source.runs else _pooled(judged)
    first = first_documents(tops, judged.known or None, same=stand_for(judged.pools))
    found = hold_contests(first, votes, level=level)
    print_answer(
        Answer(
            facts=contest_report.facts(found),
            tables=contest_report.tables(found),
            value=contest_report.value(found),
            chart=(lambda: contest_report.spec(found)) if found.contests else None,
            title=contest_report.title(found) if found.contests else "",
        ),
        output,
    )


def _pooled(judged: Judged) -> dict[str, dict[str, tuple[str, ...]]]:
    """First documents as the campaign's pools have them."""
    if judged.folder is None:
        raise click.UsageError("which runs? --runs 'GLOB'")
    return {run: dict(found) for run, found in pooled_tops(judged.pools).items()}


def _split(source: JudgedSource, judged: Judged, votes: Votes, level: float) -> Answer:
    tops = read_first(source, depth=_TWO, progress=TERMINAL)
    if len(tops) != 1:
        raise InputError(
            Problem(
                code="one-run",
                path="--split",
                found=f"{len(tops):,} runs",
                expected="one run, whose first documents are compared with the labels",
                hint="--runs FILE",
            )
        )
    ((run, answered),) = tops.items()
    same = stand_for(judged.pools)
    stands = {
        query: tuple(same.get(query, {}).get(doc, doc) for doc in docs)
        for query, docs in answered.items()
    }
    queries = [pool.query for pool in judged.pools]
    found = count_preferences(
        split_queries(stands, judged.known, queries=queries), votes, level=level
    )
    return Answer(
        facts=category_report.facts(run, found),
        tables=category_report.tables(run, found, level=level),
        value=category_report.value(run, found, level=level),
        chart=(lambda: category_chart.spec(found)) if any(one.decided for one in found) else None,
        title=category_chart.title(run),
    )


# `heldout prefer simulate`: what each way of judging finds, and what it costs.


@click.command
@click.option(
    "--size",
    "sizes",
    multiple=True,
    type=click.IntRange(2, 200),
    default=(4, 6),
    show_default=True,
    help="Passages of a pool; can be given many times.",
)
@click.option(
    "--design",
    "designs",
    multiple=True,
    type=click.Choice(list(DESIGNS)),
    help="Ways of judging; can be given many times [all].",
)
@click.option(
    "--pools",
    type=click.IntRange(2, 1_000_000),
    default=2000,
    show_default=True,
    help="Made-up pools of each size for each design.",
)
@click.option(
    "--spread",
    type=DecimalRange(0, 10, min_open=True),
    default=SPREAD,
    show_default=True,
    help="Standard deviation of strengths, in logits; at 0.8 judges are right 69% of the time.",
)
@seed_option
@output_options
@reports_errors
def simulate(
    *,
    sizes: tuple[int, ...],
    designs: tuple[str, ...],
    pools: int,
    spread: float,
    seed: int,
    output: Output,
) -> None:
    """How often does each way of judging find the best passage, and for how many judgments?

    Judges are made up, with strengths of passages that are known; every design is played with the
    functions that campaigns use.

    \b
    Example:
      heldout prefer simulate --size 6 --design tournament-1 --design lead-3
    """
    chosen = [DESIGNS[name] for name in designs or DESIGNS]
    found = []
    with progress("playing pools", len(sizes) * len(chosen)) as done:
        for size in sizes:
            for place, design in enumerate(chosen):
                rng = np.random.Generator(np.random.PCG64([seed, size, place]))
                found.append(
                    simulate_design(design, size=size, pools=pools, rng=rng, spread=spread)
                )
                done()
    print_answer(
        Answer(
            facts=simulation_report.facts(found, spread=spread),
            tables=simulation_report.tables(found),
            value=simulation_report.value(found, spread=spread, seed=seed),
        ),
        output,
    )


# `heldout prefer strengths`: how much more runs are preferred, by Bradley and Terry.


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
            facts=strengths_report.facts(found),
            tables=strengths_report.tables(found),
            value=strengths_report.value(found) | {"seed": seed},
            chart=(lambda: strengths_report.spec(found)) if found.differences else None,
            title=strengths_report.title(found) if found.differences else "",
        ),
        output,
    )
