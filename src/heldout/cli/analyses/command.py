"""The command of an analysis, made from its value."""

from typing import Any

import click

from heldout.analyses.analysis import Analysis, Draws
from heldout.answers.answer import Answer
from heldout.cli.analyses.sources import SOURCES
from heldout.cli.computing import dask_option
from heldout.cli.facet_answers import print_each
from heldout.cli.facet_source import FacetSource, facet_options
from heldout.cli.options import add_options
from heldout.cli.printing import reports_errors
from heldout.cli.reporting import Output, output_options, seed_option
from heldout.store.compute import open_executor


def make_command(analysis: Analysis[Any, Any]) -> click.Command:
    """`heldout analyse NAME`."""
    source_of = SOURCES[analysis.source]

    def run(
        *,
        source: Any,
        facets: FacetSource,
        options: Any,
        output: Output,
        seed: int = 0,
        dask: str | None = None,
    ) -> None:
        given = source_of.load(source, analysis)
        with open_executor(jobs=source_of.jobs(source), dask=dask) as executor:
            draws = Draws(seed=seed, executor=executor, short=not (output.markdown or output.latex))

            def analyse(part: Any) -> Answer:
                return analysis.answer(part, options, draws)

            print_each(facets, output, given, analyse)

    decorators = [
        source_of.options,
        facet_options,
        add_options("options", analysis.options),
        *((seed_option, dask_option) if analysis.draws else ()),
        output_options,
        reports_errors,
    ]
    for decorate in reversed(decorators):
        run = decorate(run)
    return click.command(name=analysis.name, help=analysis.help)(run)
