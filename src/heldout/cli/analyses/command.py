"""The command of an analysis, made from its value."""

from dataclasses import replace
from typing import Any

import click

from heldout.analyses.analysis import Analysis, Draws
from heldout.answers.answer import Answer
from heldout.cli.analyses.answers import print_each
from heldout.cli.analyses.facets import write_subset
from heldout.cli.analyses.sources import SOURCES
from heldout.cli.options import add_options, dask_option
from heldout.cli.printing import Output, output_options, print_answer, seed_option
from heldout.files.executors import open_executor
from heldout.scoring.options import FacetSource

_ALL = FacetSource()


def make_command(analysis: Analysis[Any, Any]) -> click.Command:
    """`heldout analyse NAME`."""
    whole = analysis.source == "measure"  # it has no queries, so nothing can be cut out of it

    def run(
        *,
        source: Any,
        facets: FacetSource = _ALL,
        options: Any,
        output: Output,
        seed: int = 0,
        dask: str | None = None,
    ) -> None:
        if analysis.source == "kinds" and source.write is not None:
            print_answer(write_subset(source, facets, source.write), output)
            return
        given = source.load(analysis, facets)
        with open_executor(jobs=source.jobs, dask=dask) as executor:
            draws = Draws(seed=seed, executor=executor, short=not (output.markdown or output.latex))

            def analyse(part: Any) -> Answer:
                return analysis.answer(part, options, draws)

            if whole:
                print_answer(analyse(given), output)
            else:
                apart = None if analysis.source == "kinds" else facets.facet
                print_each(replace(facets, facet=apart), output, given, analyse)

    decorators = [
        add_options("source", SOURCES[analysis.source]),
        *(() if whole else (add_options("facets", FacetSource),)),
        add_options("options", analysis.options),
        *((seed_option,) if analysis.seeded else ()),
        *((dask_option,) if analysis.parallel else ()),
        output_options,
    ]
    for decorate in reversed(decorators):
        run = decorate(run)
    return click.command(name=analysis.name, help=analysis.help)(run)
