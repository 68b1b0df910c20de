"""What a task pays for an hour, and the warning below the stated minimum."""

from fractions import Fraction
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from heldout.cli.program import main
from heldout.errors import InputError
from heldout.judging.campaign.settings import (
    Settings,
    describe_hourly,
    hourly_pay,
    new_campaign,
    parse_campaign,
)


@given(st.integers(0, 10**5), st.integers(1, 1000), st.integers(0, 10**5))
def test_an_hour_pays_the_reward_by_the_share_of_an_hour(
    reward: int, minutes: int, least: int
) -> None:
    found: Any = hourly_pay(
        Settings(name="x", reward=reward, minutes=minutes, minimum_hourly=least)
    )
    exact = Fraction(reward * 60, minutes)
    assert found.amount <= exact < found.amount + 1
    assert found.too_low == (exact < least)


def test_pay_for_an_unknown_time_is_not_made_up() -> None:
    assert hourly_pay(Settings(name="x")) is None
    assert describe_hourly(Settings(name="x")) == "not known: campaign.toml has no minutes"


def test_pay_below_the_minimum_is_a_warning() -> None:
    """The study's $2.00 for a task: at fifteen minutes it is $8.00 an hour."""
    settings = Settings(name="x", reward=200, minutes=15, minimum_hourly=1200)
    assert describe_hourly(settings) == "$8.00, at 15 minutes a task: too low, $12.00 is the least"
    enough = msgspec.structs.replace(settings, minimum_hourly=800)
    assert describe_hourly(enough) == "$8.00, at 15 minutes a task"


def test_prices_tell_what_an_hour_pays_and_warn(tmp_path: Path) -> None:
    text = new_campaign("x").decode().replace("minutes = 0 ", "minutes = 15 ", 1)
    text = text.replace("reward = 0 ", "reward = 200 ", 1)
    assert parse_campaign(text.encode()).minutes == 15
    (tmp_path / "pool.jsonl").write_bytes(b"")
    for least, warned in (("0", False), ("1200", True)):
        rows = text.replace("minimum_hourly = 0", f"minimum_hourly = {least}")
        (tmp_path / "campaign.toml").write_text(rows)
        done = CliRunner().invoke(main, ["prefer", "price", str(tmp_path), "--pairs", "10"])
        assert done.exit_code == 0, done.output
        assert "$8.00, at 15 minutes" in done.output
        assert ("too low" in done.output) == warned


def test_a_new_campaign_has_personal_links_and_its_platform_can_be_changed() -> None:
    text = new_campaign("x").decode()
    assert parse_campaign(text.encode()).signed
    crowd = parse_campaign(text.replace('platform = "link"', 'platform = "prolific"').encode())
    assert not crowd.signed


def test_open_links_that_let_anybody_exclude_another_worker_are_refused() -> None:
    text = new_campaign("x").decode().replace('exclusion = "task"', 'exclusion = "worker"')
    assert parse_campaign(text.encode()).excludes == "worker"
    with pytest.raises(InputError) as caught:
        parse_campaign(text.replace('links = "personal"', 'links = "open"').encode())
    (problem,) = caught.value.problems
    assert problem.code == "campaign-settings"
    assert "fail tests under another's id" in problem.expected
