"""The seasons that a new board begins with: how many, when, and a board.toml that has them."""

from datetime import date, timedelta
from itertools import pairwise
from typing import Any

import pytest
from scored_board import make_plan

from heldout.board.organiser.creation import add_seasons
from heldout.board.rules.spec import BoardSpec
from heldout.board.rules.spec_file import parse_spec
from heldout.board.rules.template import Stake, new_board_files

OPENS, YEAR = date(2026, 11, 30), date(2027, 11, 29)


def new_rules(judged: int, *, stake: Stake = "open", closes: date | None = None) -> BoardSpec:
    told: dict[str, Any] = {"recipients": ["age1example"], "measure": "RR@10"}
    plan = make_plan(**told, opens=OPENS, closes=closes, stake=stake, judged=judged)
    return parse_spec(new_board_files(add_seasons(plan))["board.toml"])


@pytest.mark.parametrize("stake", ["open", "prize"])
@pytest.mark.parametrize("closes", [None, YEAR])
@pytest.mark.parametrize(
    ("judged", "seasons"),
    [(499, 1), (500, 2), (999, 3), (1000, 4), (1001, 3), (1334, 4), (5793, 4)],
)
def test_seasons_of_250_each(judged: int, seasons: int, closes: date | None, stake: Stake) -> None:
    spec = new_rules(judged, stake=stake, closes=closes)
    decide = judged - round(judged / 4) if judged > 1000 else judged
    assert decide // seasons >= 250 or seasons == 1
    ranks = ["eval"] if seasons == 1 else [f"eval-{n}" for n in range(1, seasons + 1)]
    checks = ["check"] if seasons == 1 else [f"check-{n}" for n in range(1, seasons + 1)]
    informing = ["feedback"] if judged > 1000 else checks
    assert [view.name for view in spec.views] == ["dev", *ranks, *informing]
    assert (spec.primary, spec.release.seasons) == (ranks[0], seasons)
    assert [season.view for season in spec.seasons] == (ranks if seasons > 1 else [])
    for number, season in enumerate(spec.seasons, 1):
        rules = spec.in_season(season)
        shown = ["feedback"] if judged > 1000 else [f"check-{number}"]
        assert [view.name for view in rules.views] == ["dev", season.view, *shown]
        assert rules.view(season.view).part == number


@pytest.mark.parametrize(
    ("closes", "days"),
    [
        (None, ["2026-11-30", "2027-02-28", "2027-05-30", "2027-08-30"]),
        (YEAR, ["2026-11-30", "2027-03-01", "2027-05-31", "2027-08-30"]),
        (date(2027, 5, 31), ["2026-11-30", "2027-03-01"]),
        (date(2027, 1, 31), []),
    ],
)
def test_quarters_or_equal_pieces(closes: date | None, days: list[str]) -> None:
    found = new_rules(5793, closes=closes).seasons
    assert [str(one.opens) for one in found] == days
    for one, after in pairwise(found):
        assert one.closes == after.opens - timedelta(1)
    if found:
        assert (found[0].opens, found[-1].closes) == (OPENS, closes)


def test_a_board_of_known_teams_has_no_seasons() -> None:
    spec = new_rules(5793, stake="known")
    assert (spec.primary, spec.seasons, spec.release.seasons) == ("eval", (), 1)
