"""`heldout analyse teams`."""

from pathlib import Path
from typing import TYPE_CHECKING

import click
import numpy as np

from heldout.cli.board_source import load_alike, tell_view
from heldout.cli.dated_source import DatedSource, dated_options, load_dated
from heldout.cli.printing import plural, reports_errors
from heldout.cli.reporting import Answer, Output, output_options, print_answer, seed_option
from heldout.report import teams as report
from heldout.validity.teams import look_at_teams

if TYPE_CHECKING:
    from heldout.validity.teams import By, Teams

__all__ = ["teams"]


@click.command()
@dated_options
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
@click.option(
    "--alike/--no-alike",
    default=True,
    show_default=True,
    help="Whether to compare the runs of different teams; half a minute for a hundred entries.",
)
@click.option("--trials", type=click.IntRange(min=1), default=2000, show_default=True)
@seed_option
@output_options
@reports_errors
def teams(
    *,
    dated: DatedSource,
    reserve: str | None,
    reserve_scores: Path | None,
    by: "By",
    window: int,
    alike: bool,
    trials: int,
    seed: int,
    output: Output,
) -> None:
    """Who submits often, and do they climb on the public view alone?

    Of an old table dev, whose labels everybody has, stands for the public view, and eval for the
    reserve.

    \b
    Example:
      heldout analyse teams --board kb --vault ../kb-vault --by institution
    """
    known = load_dated(dated, second=reserve_scores, name="reserve")
    if dated.csv_file is None:
        public = known.view(dated.view)
        other = known.reserve_view(public) if reserve is None else known.view(reserve)
    else:
        public, other = known.view(dated.view or "dev"), known.view(reserve or "eval")
    result = look_at_teams(
        known,
        public,
        other,
        rng=np.random.Generator(np.random.PCG64(seed)),
        by=by,
        alike=load_alike(dated.board, known) if alike and dated.board is not None else None,
        window=window,
        trials=trials,
    )
    answer = Answer(
        facts=[*tell_view(known, public), ("teams", _say(result))],
        tables=report.tables(result),
        value=report.value(result),
    )
    print_answer(answer, output)


def _say(result: "Teams") -> str:
    slopes = [group.slope for group in result.groups if group.slope is not None]
    told = f"{plural(len(result.groups), result.by)}, {len(slopes)} with a slope"
    if not result.trials:
        return told
    falling = sum(slope.high_all is not None and slope.high_all < 0 for slope in slopes)
    return f"{told}; {falling} climb on {result.public} alone, all slopes at once"
