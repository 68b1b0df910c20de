"""`heldout analyse teams`."""

from pathlib import Path
from typing import TYPE_CHECKING

import click
import numpy as np

from heldout.cli.board_source import (
    BoardSource,
    board_options,
    csv_option,
    load_alike,
    load_board,
    tell_view,
)
from heldout.cli.printing import plural, reports_errors
from heldout.cli.reporting import Answer, Output, output_options, print_answer, seed_option
from heldout.report import teams as report
from heldout.validity.teams import look_at_teams

if TYPE_CHECKING:
    from heldout.validity.teams import By, Teams

__all__ = ["teams"]


@click.command()
@board_options
@csv_option
@click.option("--reserve", metavar="VIEW", help="The reserve [a view that is not public].")
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
    board: BoardSource,
    csv_file: Path | None,
    reserve: str | None,
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
    known = load_board(board, csv_file=csv_file)
    if csv_file is None:
        public = known.view(board.view)
        other = known.reserve_view(public) if reserve is None else known.view(reserve)
    else:
        public, other = known.view(board.view or "dev"), known.view(reserve or "eval")
    result = look_at_teams(
        known,
        public,
        other,
        rng=np.random.Generator(np.random.PCG64(seed)),
        by=by,
        alike=load_alike(board, known) if alike and csv_file is None else None,
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
