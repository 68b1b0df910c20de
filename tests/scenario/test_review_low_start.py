"""A team that begins low on purpose: the run is complete, and a person is told of it."""

from pathlib import Path

import pytest
from town import found_town
from trusting import DAY, add_baseline

pytestmark = pytest.mark.slow


def test_a_spoilt_first_run_needs_a_reason_and_a_fair_one_does_not(tmp_path: Path) -> None:
    town = found_town(tmp_path)
    add_baseline(town)
    found = {}
    for name, spoilt in (("low", True), ("fair", False)):
        submission = town.draft(name, now=DAY, seed=9)
        run = town.clone / "drafts" / submission / "eval.run"
        if spoilt:
            run.write_text(run.read_text().replace("\td", "\tbeside-"))
        assert town.participant("submit", submission, now=DAY).code == 0
        town.take_in(now=DAY)
        answer = town.organiser("review", submission, "--json", now=DAY)
        (shown,) = answer.json["reviews"]
        found[name] = {one["rule"]: one for one in shown["findings"]}
    assert "paired standard errors below 20261101-bm25" in found["low"]["far-below"]["evidence"]
    assert found["low"]["far-below"]["severity"] == "review"
    assert "far-below" not in found["fair"]
