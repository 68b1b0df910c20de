"""`heldout analyse progress`."""

from typing import TYPE_CHECKING

import click

from heldout.answers.answer import Answer
from heldout.cli.board_source import tell_view
from heldout.cli.dated_source import DatedSource, DatedViews, dated_options, load_dated
from heldout.cli.facet_answers import print_each
from heldout.cli.facet_source import FacetSource, facet_options
from heldout.cli.printing import plural, reports_errors
from heldout.cli.reporting import Output, output_options
from heldout.report import progress as report
from heldout.validity.progress import trace_progress

if TYPE_CHECKING:
    from heldout.validity.progress import Decide, Progress

__all__ = ["progress"]


@click.command()
@dated_options
@facet_options
@click.option(
    "--decide",
    type=click.Choice(["t", "signed-rank", "rank-sum"]),
    default="t",
    show_default=True,
    help="The test that corrections are over.",
)
@click.option(
    "--bar/--no-bar",
    default=True,
    show_default=True,
    help="Whether the best baseline stands before all entries.",
)
@click.option("--filter", "find", default="", metavar="TEXT", help="Show apart who says this.")
@output_options
@reports_errors
def progress(
    *,
    dated: DatedSource,
    facets: FacetSource,
    decide: "Decide",
    bar: bool,
    find: str,
    output: Output,
) -> None:
    """How did the best score rise, and which steps are more than luck?

    \b
    Example:
      heldout analyse progress --board kb --vault ../kb-vault --filter BERT --chart progress.svg
    """

    def analyse(looked_at: DatedViews) -> Answer:
        (view,) = looked_at.views
        result = trace_progress(known, view, decide=decide, bar=bar)
        facts = [("progress", _say(result)), *tell_view(known, view), *loaded.facts]
        if find:
            matching = sum(find.casefold() in e.description.casefold() for e in result.entries)
            facts.append(("filter", f"{plural(matching, 'entry', 'entries')} with “{find}”"))
        return Answer(
            facts=facts,
            tables=report.tables(result),
            value=report.value(result) | loaded.value,
            chart=lambda: report.spec(result, find=find),
            title=report.title(result),
        )

    loaded = load_dated(dated)
    known = loaded.board
    print_each(facets, output, DatedViews(views=(known.view(dated.view),)), analyse)


def _say(result: "Progress") -> str:
    if not result.line:
        return "no entry is above the best baseline yet"
    first, last = result.line[0], result.line[-1]
    told = f"{plural(len(result.line), 'step')} from {first.score:.4f} to {last.score:.4f}"
    if not result.comparisons:
        return told
    alpha = 1 - result.level
    beyond = sum(step.p_then is not None and step.p_then < alpha for step in result.line)
    return f"{told}; {beyond} of them significant when they came (corrected, below {alpha:.2f})"
