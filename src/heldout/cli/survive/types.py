"""`heldout survive types`: which types of queries were discarded?"""

import click

from heldout.answers.answer import Answer
from heldout.cli.context import reports_disk
from heldout.cli.options import with_options
from heldout.cli.printing import TERMINAL
from heldout.cli.reporting import Output, print_answer
from heldout.options import Level
from heldout.report.query_type_chart import spec, title
from heldout.report.query_types import facts, tables, value
from heldout.survivorship.discarded.query_types import compare_types, count_types
from heldout.survivorship.reading.source import AnnotationSource, read_source


@click.command
@with_options
@reports_disk
def types(*, source: AnnotationSource, level: Level = 0.95, output: Output) -> None:
    """Tell which types of queries annotators could not answer, and left out.

    Each type has its share with an interval and is compared with all other queries; all types
    together have a chi-squared test and Cramer's V.

    \b
    Examples:
      heldout survive types --annotations dev_v2.1.json.gz
      heldout survive types --annotations depth-qrels/ --types categories.tsv
    """
    found = compare_types(count_types(read_source(source, progress=TERMINAL)), level=level)
    print_answer(
        Answer(
            facts=facts(found),
            tables=tables(found),
            value=value(found),
            chart=lambda: spec(found),
            title=title(found),
        ),
        output,
    )
