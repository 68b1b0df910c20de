"""`heldout prefer contests`, `strengths` and `bias`: what judgments say."""

from collections.abc import Mapping
from typing import Annotated

import click

from heldout.cli.options import with_options
from heldout.cli.printing import TERMINAL, Output, print_answer
from heldout.errors import InputError, OptionError
from heldout.judging.campaign.judgments import count_votes
from heldout.judging.campaign.pools import stand_for
from heldout.judging.labels.source import (
    Judged,
    JudgedSource,
    count_valid,
    load_judged,
    read_first,
)
from heldout.judging.studies.categories import split_answer
from heldout.judging.studies.contests import compare_by_contests, compare_strengths
from heldout.judging.studies.judges import bias_answer
from heldout.options import Level, Opt, Seed
from heldout.stats.bradley_terry import PRIOR
from heldout.trec.tops import Tops


@click.command
@with_options
def contests(
    *,
    source: JudgedSource,
    split: Annotated[
        bool,
        Opt(
            "Comparison of one run with the labels, split by whether it shows the known "
            "answer first."
        ),
    ] = False,
    level: Level = 0.95,
    output: Output,
) -> None:
    """Compare runs by their first documents: on how many queries do people prefer each?

    Of a campaign, or of judgments with run files and labels. A run that always shows the known
    answer takes part: runs that beat it are better than the labels can show. Exact binomial tests,
    corrected over all contests; queries are counted, never votes.

    \b
    Examples:
      heldout prefer contests campaign
      heldout prefer contests --judgments pairs.gz --runs 'runs/*.gz' --qrels dev.qrels
      heldout prefer contests campaign --split --runs bert.gz --qrels dev.qrels
    """
    judged = load_judged(source, progress=TERMINAL)
    if not split:
        tops = _read_tops(source, judged)
        print_answer(compare_by_contests(judged, tops, level=level), output)
        return
    votes = count_votes(count_valid(judged), same=stand_for(judged.pools))
    found = read_first(source, depth=2, progress=TERMINAL)
    if len(found) != 1:
        raise InputError.of(
            code="one-run",
            path="--split",
            found=f"{len(found):,} runs",
            expected="one run, whose first documents are compared with the labels",
            hint="--runs FILE",
        )
    ((run, top),) = found.items()
    print_answer(split_answer(run, top, judged, votes, level=level), output)


@click.command
@with_options
def strengths(
    *,
    source: JudgedSource,
    ties: Annotated[bool, Opt("Davidson's model of ties, instead of half a win each.")] = False,
    prior: Annotated[
        float, Opt("Precision of the prior on strengths; 0 for none.", least=0)
    ] = PRIOR,
    draws: Annotated[
        int, Opt("Number of bootstrap samples of the queries.", least=20, most=100_000)
    ] = 1000,
    level: Level = 0.95,
    seed: Seed = 0,
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
    answer = compare_strengths(
        judged,
        _read_tops(source, judged),
        ties=ties,
        prior=prior,
        draws=draws,
        level=level,
        seed=seed,
    )
    print_answer(answer, output)


def _read_tops(source: JudgedSource, judged: Judged) -> Mapping[str, Tops] | None:
    """The first documents of each run named; `None` for those that the campaign's pools have."""
    if not source.runs and judged.folder is None:
        raise OptionError("which runs? --runs 'GLOB'")
    return read_first(source, progress=TERMINAL) if source.runs else None


@click.command
@with_options
def bias(*, source: JudgedSource, level: Level = 0.95, output: Output) -> None:
    """Do judges prefer the left passage, or the longer one? How attentive is each of them?

    Of judgments whose sides are known: those of the judging pages and of Mechanical Turk, and not
    four columns. Lengths are of the texts in the campaign's pools.

    \b
    Example:
      heldout prefer bias campaign
    """
    print_answer(bias_answer(load_judged(source, progress=TERMINAL), level=level), output)
