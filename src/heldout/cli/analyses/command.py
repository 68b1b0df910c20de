"""The command of an analysis, made from its value."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import click

from heldout.analyses.analysis import Analysis, Draws
from heldout.analyses.facets import ScoresByKind
from heldout.answers.answer import Answer
from heldout.cli.analyses.answers import print_each
from heldout.cli.analyses.facets import with_writing
from heldout.cli.analyses.sources import SOURCES, UNCUT
from heldout.cli.options import add_options, dask_option
from heldout.cli.printing import Output, output_options, print_answer, seed_option
from heldout.files.executors import open_executor
from heldout.scoring.query_facets import FacetSource, load_facet

_ALL = FacetSource()


def _load_kinds(facets: FacetSource) -> Mapping[str, frozenset[str]]:
    if facets.facet is None:
        raise click.UsageError("which facet? --facet length, question, words:FILE, or FILE")
    return load_facet(facets.facet, facets)


def make_command(analysis: Analysis[Any, Any]) -> click.Command:
    """`heldout analyse NAME`."""
    source_of = SOURCES[analysis.source]

    def run(
        *,
        source: Any,
        facets: FacetSource = _ALL,
        options: Any,
        output: Output,
        seed: int = 0,
        dask: str | None = None,
    ) -> None:
        kinds = _load_kinds(facets) if analysis.source == "kinds" else None
        given = source_of.load(source, analysis)
        if kinds is not None:
            given = ScoresByKind(scores=given, kinds=kinds, least=facets.least)
            facets = replace(facets, facet=None)
        with open_executor(jobs=source_of.jobs(source), dask=dask) as executor:
            draws = Draws(seed=seed, executor=executor, short=not (output.markdown or output.latex))

            def analyse(part: Any) -> Answer:
                return analysis.answer(part, options, draws)

            if analysis.source in UNCUT:
                print_answer(analyse(given), output)
            else:
                print_each(facets, output, given, analyse)

    if analysis.source == "kinds":
        run = with_writing(run)
    decorators = [
        source_of.options,
        *(() if analysis.source in UNCUT else (add_options("facets", FacetSource),)),
        add_options("options", analysis.options),
        *((seed_option,) if analysis.seeded else ()),
        *((dask_option,) if analysis.parallel else ()),
        output_options,
    ]
    for decorate in reversed(decorators):
        run = decorate(run)
    return click.command(name=analysis.name, help=analysis.help)(run)
