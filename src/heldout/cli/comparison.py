"""`heldout compare`: is B better than A? Two runs, or two groups of seeds."""

import os

import click

from heldout.analyses.outcomes.options import CompareOptions
from heldout.cli.options import add_options
from heldout.cli.printing import TERMINAL, Output, output_options, print_notes_last, seed_option


@click.command
@add_options("options", CompareOptions)
@seed_option
@output_options
def compare(options: CompareOptions, output: Output, *, seed: int) -> None:
    """Is B better than A? By a measure, and by which queries each answers and how high.

    A and B are run files. Each may be a group of runs that differ in their random seed: a pattern
    in quotes, or paths with commas between them.

    With -m the answer is the difference in the mean of that measure, with its interval and its p.
    Without -m the answer is a verdict on the first relevant document of each query: which run
    finds it, and how high. That verdict is for labels with one relevant document per query.

    --html writes a page that shows where the two runs differ, query by query, with both rankings
    side by side. --queries and --documents give it the texts.

    \b
    Examples:
      heldout compare dense.run monot5.run --qrels dev.qrels
      heldout compare dense.run monot5.run --qrels dev.qrels -m nDCG@10 -m RR@10
      heldout compare 'ours-seed*.run' 'theirs-seed*.run' --qrels dev.qrels -k 10
      heldout compare dense.run monot5.run --qrels dev.qrels --queries dev.tsv --html out.html
    """
    from heldout.analyses.outcomes.comparison import find_comparison
    from heldout.cli.analyses.command import print_each
    from heldout.scoring.score import find_reading

    comparison = find_comparison(options, seed)
    reading = find_reading(os.environ, progress=TERMINAL)
    if options.page.html is not None:
        comparison.check_page(options.page.html)
    scores = comparison.load(reading)
    print_notes_last(scores.ranks.notes)
    if options.page.html is not None:
        folder = comparison.list_failures(reading).write(options.page.html)
        TERMINAL.note("page", f"{options.page.html}; its data are in {folder}")
    print_each(options.facets, output, scores, comparison.answer)
