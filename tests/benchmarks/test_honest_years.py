"""What honest teams see of a rule: years that are played, and years made by hand."""

import sys
from pathlib import Path
from statistics import fmean

import numpy as np
import pytest

from heldout.board.rules.release import ReleaseRule
from heldout.redteam.boards import Exchange, NamedRule, exchange, parse_rule
from heldout.redteam.game import GamePlan, Weak

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))

from honest_years import CREEPING, HonestLine, Year, play_honest, play_year, summarise_years

PLAN = GamePlan(submissions=3, seed=1)


def pair_of(queries: int = 2000) -> Exchange:
    rng = np.random.default_rng(2)
    return exchange(rng.random(queries), rng.random(queries))


PAIR = pair_of()


def rule_of(name: str, seasons: int = 1) -> NamedRule:
    return parse_rule(name, ReleaseRule(seasons=seasons), decimals=4, path="")


def baseline(gap: float) -> Weak:
    return Weak(gap=gap, scores=np.zeros(PAIR.queries))


def line_of(name: str, *, years: int = 6, gap: float = 0.0) -> HonestLine:
    return play_honest(rule_of(name), PAIR, baseline(gap), PLAN, years=years)


def test_under_rounded_scores_everything_is_seen_at_once() -> None:
    line = line_of("rounded", gap=8, years=12)
    assert (line.release, line.years) == ("rounded", 12)
    assert (line.seen, line.at_once, line.in_time, line.days) == (1, 1, 1, 0)
    assert (line.unpublished, line.creeping) == (0, 0)
    assert line.false_records is not None
    assert 0.04 < line.false_records < 0.2  # one in nine is luck alone


@pytest.mark.night
def test_the_clear_rule_shows_few_runs_and_most_of_the_steps_and_misses_small_ones() -> None:
    line, rounded = line_of("clear", years=12), line_of("rounded", years=12)
    assert line.seen < 0.1
    assert line.in_time is not None
    assert line.in_time > 0.85
    assert (line.false_records or 0) <= 0.05 < (rounded.false_records or 0)
    assert line.records < rounded.records
    assert line.unpublished < 3 < line.creeping


@pytest.mark.night
def test_with_seasons_every_leap_has_a_score_when_its_season_ends() -> None:
    named = rule_of("clear+feedback", seasons=4)
    years = [play_year(named, PAIR, baseline(8), PLAN, number=number) for number in range(12)]
    steps = sum(len(year.waits) + year.never for year in years)
    assert sum(year.never for year in years) <= 0.05 * steps  # a team that named another entry
    assert all(0 <= wait <= 365 / 4 for year in years for wait in year.waits)
    assert all(len(year.short) == 4 and min(year.short) >= 0 for year in years)
    assert fmean(year.unpublished for year in years) < 0.5
    creeping = [
        play_year(named, PAIR, baseline(8), PLAN, number=number, steps=CREEPING)
        for number in range(6)
    ]
    assert fmean(year.unpublished for year in creeping) < 1  # 9 or more without seasons


def test_the_same_seed_plays_the_same_years_and_more_leave_the_first_as_they_were() -> None:
    named = rule_of("clear")
    one, again, other = (
        play_year(named, PAIR, baseline(4), PLAN, number=number) for number in (0, 0, 1)
    )
    assert one == again != other
    small = play_year(named, PAIR, baseline(4), PLAN, number=0, steps=CREEPING)
    assert small != one
    assert play_honest(named, PAIR, baseline(4), PLAN, years=1) == summarise_years(
        [one], [small], release="clear"
    )


@pytest.mark.parametrize("name", ["rounded", "clear", "clear+feedback"])
def test_a_year_adds_up(name: str) -> None:
    for number in range(4):
        year = play_year(rule_of(name), PAIR, baseline(8), PLAN, number=number)
        assert 0 <= year.false_records <= year.records <= year.seen <= 240
        assert len(year.waits) + year.never <= 6  # steps, of which some are below 3 u
        assert all(0 <= wait <= 365 for wait in year.waits)
        assert year.unpublished >= 0


def year(
    *,
    seen: int = 0,
    records: int = 0,
    false_records: int = 0,
    waits: tuple[float, ...] = (),
    never: int = 0,
    unpublished: float = 0.0,
) -> Year:
    return Year(
        seen=seen,
        records=records,
        false_records=false_records,
        waits=waits,
        never=never,
        unpublished=unpublished,
    )


def test_a_line_is_what_its_years_are() -> None:
    years = [
        year(seen=60, records=3, false_records=1, waits=(0.0, 10.0, 0.0), never=1, unpublished=2),
        year(seen=12, records=5, waits=(40.0, 20.0), never=2, unpublished=1),
    ]
    creeping = [year(unpublished=unseen) for unseen in (3.0, 8.0, 4.0)]
    assert summarise_years(years, creeping, release="a rule") == HonestLine(
        release="a rule",
        years=2,
        seen=72 / 480,
        records=4,
        false_records=1 / 8,
        at_once=2 / 8,
        in_time=5 / 8,
        days=10.0,
        unpublished=1.5,
        creeping=fmean((3, 8, 4)),
    )


def test_a_year_without_steps_or_records_has_no_share_of_them() -> None:
    line = summarise_years([year()], [year()], release="a rule")
    assert (line.false_records, line.at_once, line.in_time, line.days) == (None,) * 4
    assert (line.seen, line.records) == (0, 0)


def test_steps_that_are_never_published_have_shares_and_no_wait() -> None:
    line = summarise_years([year(never=3)], [year()], release="a rule")
    assert (line.at_once, line.in_time, line.days) == (0, 0, None)
