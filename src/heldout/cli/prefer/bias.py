"""`heldout prefer bias`: what judges do beside judging."""

import click

from heldout.answers.answer import Answer
from heldout.cli.options import add_options, level_option
from heldout.cli.prefer.judged import JudgedSource, load_judged
from heldout.cli.printing import TERMINAL, reports_errors
from heldout.cli.reporting import Output, output_options, print_answer
from heldout.preferences.bias import measure_bias, text_lengths
from heldout.preferences.judge_care import measure_care
from heldout.preferences.judgments import counted
from heldout.report import side_bias as report


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
