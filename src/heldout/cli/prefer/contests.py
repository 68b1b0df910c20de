"""`heldout prefer contests`: whose first document people prefer."""

import click

from heldout.answers.answer import Answer
from heldout.cli.options import add_options, level_option
from heldout.cli.prefer.judged import (
    Judged,
    JudgedSource,
    count_valid,
    load_judged,
    read_first,
)
from heldout.cli.printing import TERMINAL, reports_errors
from heldout.cli.reporting import Output, output_options, print_answer
from heldout.errors import InputError, Problem
from heldout.preferences.categories import split_queries
from heldout.preferences.category_results import count_preferences
from heldout.preferences.contests import first_documents, hold_contests, stand_for
from heldout.preferences.judged_pools import pooled_tops
from heldout.preferences.votes import Votes, count_votes
from heldout.report import categories as category_report
from heldout.report import contests as contest_report
from heldout.report.judging import category_chart

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
