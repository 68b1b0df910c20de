"""`heldout prefer contests`, `strengths`, `bias` and `simulate`: what judgments say."""

import click

from heldout.cli.options import with_options
from heldout.cli.printing import TERMINAL, Output, print_answer
from heldout.judging.labels.source import JudgedSource
from heldout.judging.services import studies
from heldout.options import Level


@click.command
@with_options
def contests(*, options: studies.ContestOptions, output: Output) -> None:
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
    print_answer(studies.compare_by_contests(options, progress=TERMINAL), output)


@click.command
@with_options
def strengths(*, options: studies.StrengthOptions, output: Output) -> None:
    """Strengths of runs from the preferences for their first documents, all runs at once.

    Bradley and Terry's model over queries. Intervals are for differences between runs and take a
    query as one observation, by the sandwich and by samples of queries. A run that always shows the
    known answer takes part.

    \b
    Example:
      heldout prefer strengths --judgments pairs.gz --runs 'runs/*.gz' --qrels dev.qrels
    """
    print_answer(studies.fit_strengths(options, progress=TERMINAL), output)


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
    print_answer(studies.find_bias(source, level=level, progress=TERMINAL), output)


@click.command
@with_options
def simulate(*, options: studies.SimulationOptions, output: Output) -> None:
    """How often does each way of judging find the best passage, and for how many judgments?

    Judges are made up, with strengths of passages that are known; every design is played with the
    functions that campaigns use.

    \b
    Example:
      heldout prefer simulate --size 6 --design tournament-1 --design lead-3
    """
    print_answer(studies.simulate(options, progress=TERMINAL), output)
