"""`heldout analyse teams`."""

from pathlib import Path
from typing import TYPE_CHECKING

import click
from numpy.random import PCG64, Generator

from heldout.answers.answer import Answer
from heldout.cli.board_source import load_alike, tell_view
from heldout.cli.computing import dask_option
from heldout.cli.dated_source import DatedSource, DatedViews, dated_options, load_dated
from heldout.cli.facet_answers import print_each
from heldout.cli.facet_source import FacetSource, facet_options
from heldout.cli.options import alike_option, trials_option
from heldout.cli.printing import plural, reports_errors
from heldout.cli.reporting import Output, output_options, seed_option
from heldout.report import team_charts
from heldout.report import teams as report
from heldout.store.compute import open_executor
from heldout.validity.teams import look_at_teams

if TYPE_CHECKING:
    from heldout.validity.teams import By, Teams

__all__ = ["teams"]


@click.command()
@dated_options
@facet_options
@click.option("--reserve", metavar="VIEW", help="The reserve [a view that is not public].")
@click.option(
    "--reserve-scores",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="TABLE.csv",
    help="With --runs or --scores: the scores on the reserve, by query.",
)
@click.option(
    "--by",
    type=click.Choice(["team", "institution"]),
    default="team",
    show_default=True,
    help="What groups are.",
)
@click.option(
    "--window", type=click.IntRange(min=1), default=30, show_default=True, help="In days."
)
@alike_option
@trials_option(2000, "Resamplings of the queries.")
@seed_option
@dask_option
@output_options
@reports_errors
def teams(
    *,
    dated: DatedSource,
    facets: FacetSource,
    reserve: str | None,
    reserve_scores: Path | None,
    by: "By",
    window: int,
    alike: bool,
    trials: int,
    seed: int,
    dask: str | None,
    output: Output,
) -> None:
    """Who submits often, and do they climb on the public view alone?

    Of an old table dev, whose labels everybody has, stands for the public view, and eval for the
    reserve.

    \b
    Example:
      heldout analyse teams --board kb --vault ../kb-vault --by institution
    """

    def analyse(looked_at: DatedViews) -> Answer:
        first, second = looked_at.views
        result = look_at_teams(
            known,
            first,
            second,
            rng=Generator(PCG64(seed)),
            by=by,
            alike=pairs,
            window=window,
            trials=trials,
            executor=executor,
        )
        drawn = any(group.slope is not None for group in result.groups)
        return Answer(
            facts=[("teams", _say(result)), *tell_view(known, first), *loaded.facts],
            tables=report.tables(result),
            value=report.value(result) | loaded.value,
            chart=(lambda: team_charts.spec(result)) if drawn else None,
            title=team_charts.title(result),
        )

    loaded = load_dated(dated, second=reserve_scores, name="reserve")
    known = loaded.board
    if dated.csv_file is None:
        public = known.view(dated.view)
        other = known.reserve_view(public) if reserve is None else known.view(reserve)
    else:
        public, other = known.view(dated.view or "dev"), known.view(reserve or "eval")
    pairs = load_alike(dated.board, known) if alike and dated.board is not None else None
    with open_executor(jobs=dated.source.jobs, dask=dask) as executor:
        print_each(facets, output, DatedViews(views=(public, other)), analyse)


def _say(result: "Teams") -> str:
    slopes = [group.slope for group in result.groups if group.slope is not None]
    told = f"{plural(len(result.groups), result.by)}, {len(slopes)} with a slope"
    if not result.trials:
        return told
    falling = sum(slope.high_all is not None and slope.high_all < 0 for slope in slopes)
    return f"{told}; {falling} climb on {result.public} alone, all slopes at once"
