"""A clock that is behind hides nothing again: whoever has pulled knows what was shown."""

import json
from pathlib import Path

import pytest
from town import Town, found_town, git

pytestmark = pytest.mark.slow
DAY = "2026-11-02T10:00:00Z"
EVE = "2026-12-09T23:59:59Z"
REVEAL = "2026-12-10T00:00:00Z"


@pytest.fixture
def town(tmp_path: Path) -> Town:
    town = found_town(tmp_path)
    town.enter("hidden", now=DAY, embargo="2026-12-10")
    assert town.organiser("rebuild", now=REVEAL).code == 0
    assert town.rows()[0]["team"] == "Lighthouse Retrieval Group"
    return town


def test_a_revealed_name_is_not_hidden_again(town: Town) -> None:
    before = {p: p.read_bytes() for p in (town.board / "leaderboard").rglob("*.*")}
    commit = git(town.board, "rev-parse", "HEAD")
    name = town.rows()[0]["id"]
    answer = town.organiser("rebuild", now=EVE)
    assert (answer.code, answer.out) == (2, "")
    assert f"the clock here says {EVE}" in answer.err
    assert f"findings, identity, why of {name}" in answer.err
    assert {p: p.read_bytes() for p in before} == before
    assert git(town.board, "rev-parse", "HEAD") == commit
    assert town.organiser("rebuild", now=REVEAL).code == 0


def test_what_no_day_opens_is_no_matter_of_the_clock(town: Town) -> None:
    """An earlier heldout may have shown what is sealed by the rules of today."""
    log = town.board / "log.jsonl"
    whole = [json.loads(line) for line in (town.vault / "events.jsonl").read_text().splitlines()]
    shown = [json.loads(line) for line in log.read_text("utf-8").splitlines()]
    shown[0]["opened"] = whole[0]["opened"]
    log.write_text("".join(json.dumps(line) + "\n" for line in shown), "utf-8")
    git(town.board, "commit", "-q", "-m", "another log", "log.jsonl")
    town.organiser("rebuild", now=REVEAL).done()
    assert json.loads(log.read_text("utf-8").splitlines()[0])["opened"] == {}
