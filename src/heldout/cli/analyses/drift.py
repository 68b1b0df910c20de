"""`heldout analyse drift`."""

from pathlib import Path
from typing import TYPE_CHECKING

import click
from numpy.random import PCG64, Generator

from heldout.answers.answer import Answer
from heldout.cli.board_source import tell_view
from heldout.cli.computing import dask_option
from heldout.cli.dated_source import DatedSource, DatedViews, dated_options, load_dated
from heldout.cli.facet_answers import print_each
from heldout.cli.facet_source import FacetSource, facet_options
from heldout.cli.options import trials_option
from heldout.cli.printing import reports_errors
from heldout.cli.reporting import Output, output_options, seed_option
from heldout.report import drift as report
from heldout.store.compute import open_executor
from heldout.validity.drift import find_drift

if TYPE_CHECKING:
    from heldout.report.drift import Plot

__all__ = ["drift"]


@click.command()
@dated_options
@facet_options
@click.option("--dev", metavar="VIEW", help="The dev view [public labels, the same measure].")
@click.option(
    "--dev-scores",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="TABLE.csv",
    help="With --runs or --scores: the scores on dev, by query.",
)
@click.option(
    "--plot",
    type=click.Choice(["time", "dev"]),
    default="time",
    show_default=True,
    help="What --chart shows: the difference over time, or official against dev.",
)
@trials_option(1000, "Resamplings of the queries.")
@seed_option
@dask_option
@output_options
@reports_errors
def drift(
    *,
    dated: DatedSource,
    facets: FacetSource,
    dev: str | None,
    dev_scores: Path | None,
    plot: "Plot",
    trials: int,
    seed: int,
    dask: str | None,
    output: Output,
) -> None:
    """Do official scores fall behind dev scores, and does a constant factor explain it?

    \b
    Example:
      heldout analyse drift --csv msmarco-doc-leaderboard.csv --plot dev --chart drift.svg
    """

    def analyse(looked_at: DatedViews) -> Answer:
        first, second = looked_at.views
        rng = Generator(PCG64(seed))
        result = find_drift(known, first, second, rng=rng, trials=trials, executor=executor)
        return Answer(
            facts=[*report.facts(result), *tell_view(known, first), *loaded.facts],
            tables=report.tables(result),
            value=report.value(result) | loaded.value,
            chart=(lambda: report.spec(result, plot)) if result.points else None,
            title=report.title(result, plot),
        )

    loaded = load_dated(dated, second=dev_scores, name="dev", held_out=False)
    known = loaded.board
    official = known.view(dated.view)
    other = known.dev_view(official) if dev is None else known.view(dev)
    with open_executor(jobs=dated.source.jobs, dask=dask) as executor:
        print_each(facets, output, DatedViews(views=(official, other)), analyse)
