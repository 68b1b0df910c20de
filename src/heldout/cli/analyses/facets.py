"""`heldout analyse facets`: does a ranking hold for every kind of query?"""

from pathlib import Path
from typing import Literal

import click
from numpy.random import PCG64, Generator

from heldout.cli.facet_source import FacetSource, load_facets
from heldout.cli.printing import reports_errors
from heldout.cli.reporting import Answer, Output, output_options, print_answer, seed_option
from heldout.cli.score_source import Source, load_scores, source_options
from heldout.cli.subset_writing import Writing, write_subset
from heldout.report.facets import facts, spec, tables, title, value
from heldout.store.compute import open_executor
from heldout.validity.facets import compare_facets
from heldout.validity.score_matrix import Better

__all__ = ["facets"]

_PATH = click.Path(path_type=Path, dir_okay=False)


@click.command
@source_options
@click.option("--facets", "labels", type=_PATH, metavar="FILE", help="Labels: query<TAB>facet.")
@click.option("--queries", type=_PATH, metavar="FILE", help="The queries' texts, for what follows.")
@click.option("--by", type=click.Choice(["length", "question"]), help="Words, or the first word.")
@click.option("--words", type=_PATH, metavar="FILE", help="A domain: has a word of this list.")
@click.option("--against", metavar="SYSTEM", help="The reference [the best on all queries].")
@click.option("--system", metavar="SYSTEM", help="Compare this one alone, declared beforehand.")
@click.option(
    "--least",
    type=click.IntRange(min=2),
    default=20,
    show_default=True,
    help="Fewest queries of a facet.",
)
@click.option(
    "--level",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    default=0.95,
    show_default=True,
    help="Of the intervals.",
)
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
    help="Write out one facet instead: queries, qrels, training pairs, scores.",
)
@click.option("--facet", metavar="NAME", help="The facet to write [that of --words].")
@click.option(
    "--relevant",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="Lowest grade that makes a training pair.",
)
@seed_option
@output_options
@reports_errors
def facets(
    source: Source,
    output: Output,
    *,
    labels: Path | None,
    queries: Path | None,
    by: Literal["length", "question"] | None,
    words: Path | None,
    against: str | None,
    system: str | None,
    least: int,
    level: float,
    draws: int,
    write: Path | None,
    facet: str | None,
    relevant: int,
    seed: int,
) -> None:
    """Does a ranking hold for every kind of query?

    Standings and differences on each facet, and whether a system is better on a facet than
    outside it. With --write one facet becomes a collection of its own.

    \b
    Example:
      heldout analyse facets --runs 'runs/*.gz' --qrels dev.qrels -m RR@10 \
        --queries queries.tsv --by question --chart facets.svg
      heldout analyse facets --queries train.tsv --qrels train.qrels \
        --words medical.txt --write med
    """
    told = FacetSource(labels=labels, queries=queries, by=by, words=words)
    found = load_facets(told)
    if write is not None:
        asked = Writing(facet=facet, folder=write, relevant=relevant)
        print_answer(write_subset(source, told, found, asked), output)
        return
    scores = load_scores(source)
    better: Better = "lower" if scores.better == "lower" else "higher"
    with open_executor(jobs=source.jobs) as executor:
        result = compare_facets(
            scores.table,
            found,
            Generator(PCG64(seed)),
            against=against,
            system=system,
            least=least,
            level=level,
            draws=draws,
            better=better,
            executor=executor,
        )
    answer = Answer(
        facts=(*facts(result), *scores.facts),
        tables=tables(result, measure=scores.measure),
        value=value(result) | {"measure": scores.measure, "seed": seed},
        chart=lambda: spec(result),
        title=title(result),
    )
    print_answer(answer, output)
