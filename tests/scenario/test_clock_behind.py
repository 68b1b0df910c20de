"""A clock that is behind hides nothing again: whoever has pulled knows what was shown."""

import json
from pathlib import Path

import pytest
from lab import Lab, found_lab, git

EVE = "2026-12-09T23:59:59Z"
REVEAL = "2026-12-10T00:00:00Z"


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    lab = found_lab(tmp_path)
    lab.enter("hidden", embargo="2026-12-10")
    assert lab.organiser("rebuild", now=REVEAL).code == 0
    assert lab.rows()[0]["team"] == "Lighthouse Retrieval Group"
    return lab


def test_a_revealed_name_is_not_hidden_again(lab: Lab) -> None:
    before = {p: p.read_bytes() for p in (lab.board / "leaderboard").rglob("*.*")}
    commit = git(lab.board, "rev-parse", "HEAD")
    name = lab.rows()[0]["id"]
    lab.organiser("rebuild", now=EVE).refused(
        f"the clock here says {EVE}", f"findings, identity, why of {name}"
    )
    assert {p: p.read_bytes() for p in before} == before
    assert git(lab.board, "rev-parse", "HEAD") == commit
    assert lab.organiser("rebuild", now=REVEAL).code == 0


def test_what_no_day_opens_is_no_matter_of_the_clock(lab: Lab) -> None:
    """An earlier heldout may have shown what is sealed by the rules of today."""
    log = lab.board / "log.jsonl"
    whole = [json.loads(line) for line in (lab.vault / "events.jsonl").read_text().splitlines()]
    shown = [json.loads(line) for line in log.read_text("utf-8").splitlines()]
    shown[0]["opened"] = whole[0]["opened"]
    log.write_text("".join(json.dumps(line) + "\n" for line in shown), "utf-8")
    git(lab.board, "commit", "-q", "-m", "another log", "log.jsonl")
    lab.organiser("rebuild", now=REVEAL).done()
    assert json.loads(log.read_text("utf-8").splitlines()[0])["opened"] == {}
