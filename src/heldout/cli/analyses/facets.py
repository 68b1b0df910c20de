"""`heldout analyse facets`: does a ranking hold for every kind of query?"""

from dataclasses import replace
from pathlib import Path

import click
from numpy.random import PCG64, Generator

from heldout.answers.answer import Answer
from heldout.cli.computing import dask_option
from heldout.cli.facet_answers import print_each
from heldout.cli.facet_source import FacetSource, facet_options, load_facet
from heldout.cli.options import level_option
from heldout.cli.printing import reports_errors
from heldout.cli.reporting import Output, output_options, print_answer, seed_option
from heldout.cli.score_source import Source, load_scores, source_options
from heldout.cli.subset_writing import Writing, write_subset
from heldout.report.facets import facts, spec, tables, title, value
from heldout.scoring.scores import Scores
from heldout.store.compute import open_executor
from heldout.validity.facets import compare_facets

__all__ = ["facets"]


@click.command
@source_options
@facet_options
@click.option("--against", metavar="SYSTEM", help="The reference [the best on all queries].")
@click.option("--system", metavar="SYSTEM", help="Compare this one alone, declared beforehand.")
@level_option
@click.option(
    "--draws",
    type=click.IntRange(min=1),
    default=9999,
    show_default=True,
    help="Permutations behind the interactions.",
)
@click.option(
    "--write",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Write out the queries of --only instead: texts, qrels, training pairs, scores.",
)
@click.option(
    "--relevant",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="Lowest grade that makes a training pair.",
)
@seed_option
@dask_option
@output_options
@reports_errors
def facets(
    source: Source,
    facets: FacetSource,
    output: Output,
    *,
    against: str | None,
    system: str | None,
    level: float,
    draws: int,
    write: Path | None,
    relevant: int,
    seed: int,
    dask: str | None,
) -> None:
    """Does a ranking hold for every kind of query?

    Standings and differences on each kind, and whether a system is better on a kind than outside
    it. With --write the queries of --only become a collection of their own.

    \b
    Example:
      heldout analyse facets --runs 'runs/*.gz' --qrels dev.qrels -m RR@10 \\
        --queries queries.tsv --facet question --chart facets.svg
      heldout analyse facets --queries train.tsv --qrels train.qrels \\
        --only words:medical.txt=medical --write med
    """
    if write is not None:
        print_answer(write_subset(source, facets, Writing(folder=write, relevant=relevant)), output)
        return
    if facets.facet is None:
        raise click.UsageError("which facet? --facet length, question, words:FILE, or FILE")
    kinds = load_facet(facets.facet, facets)

    def analyse(scores: Scores) -> Answer:
        result = compare_facets(
            scores.table,
            kinds,
            Generator(PCG64(seed)),
            against=against,
            system=system,
            least=facets.least,
            level=level,
            draws=draws,
            better=scores.better,
            executor=executor,
        )
        return Answer(
            facts=(*facts(result), *scores.facts),
            tables=tables(result, measure=scores.measure),
            value=value(result) | scores.value | {"seed": seed},
            chart=lambda: spec(result),
            title=title(result),
        )

    scores = load_scores(source)
    with open_executor(jobs=source.jobs, dask=dask) as executor:
        print_each(replace(facets, facet=None), output, scores, analyse)
