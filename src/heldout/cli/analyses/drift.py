"""`heldout analyse drift`."""

from pathlib import Path
from typing import TYPE_CHECKING

import click
import numpy as np

from heldout.cli.board_source import tell_view
from heldout.cli.dated_source import DatedSource, dated_options, load_dated
from heldout.cli.printing import reports_errors
from heldout.cli.reporting import Answer, Output, output_options, print_answer, seed_option
from heldout.report import drift as report
from heldout.validity.drift import find_drift

if TYPE_CHECKING:
    from heldout.report.drift import Plot
    from heldout.validity.drift import Drift

__all__ = ["drift"]


@click.command()
@dated_options
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
@click.option("--trials", type=click.IntRange(min=1), default=1000, show_default=True)
@seed_option
@output_options
@reports_errors
def drift(
    *,
    dated: DatedSource,
    dev: str | None,
    dev_scores: Path | None,
    plot: "Plot",
    trials: int,
    seed: int,
    output: Output,
) -> None:
    """Do official scores fall behind dev scores, and does a constant factor explain it?

    \b
    Example:
      heldout analyse drift --csv msmarco-doc-leaderboard.csv --plot dev --chart drift.svg
    """
    known = load_dated(dated, second=dev_scores, name="dev", held_out=False)
    official = known.view(dated.view)
    other = known.dev_view(official) if dev is None else known.view(dev)
    rng = np.random.Generator(np.random.PCG64(seed))
    result = find_drift(known, official, other, rng=rng, trials=trials)
    answer = Answer(
        facts=[*tell_view(known, official), ("drift", _say(result))],
        tables=report.tables(result),
        value=report.value(result),
        chart=(lambda: report.spec(result, plot)) if result.points else None,
        title=report.title(result, plot),
    )
    print_answer(answer, output)


def _say(result: "Drift") -> str:
    if result.ratio is None:
        return result.verdict
    return (
        f"{result.verdict}; {result.official} is {result.ratio:.3f} of {result.dev} in the median"
    )
