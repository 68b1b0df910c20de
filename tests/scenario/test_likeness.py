"""Runs like others, through the command line: told to the organisers, answered with a reason."""

from pathlib import Path

import pytest
from town import OTHER_TEAM, Town, found_town, named
from trusting import BASELINE, add_baseline

from heldout.board.store.vault import Vault

pytestmark = [pytest.mark.slow, pytest.mark.night]
DAY = "2026-11-02T10:00:00Z"
NEXT = "2026-11-03T10:00:00Z"


@pytest.fixture
def town(tmp_path: Path) -> Town:
    town = found_town(tmp_path)
    town.enter("first", now=DAY, shared=True)
    return town


def findings(town: Town, submission: str) -> dict[str, str]:
    (review,) = town.organiser("review", submission, "--json", now=NEXT).json["reviews"]
    return {finding["rule"]: finding["evidence"] for finding in review["findings"]}


def test_the_run_of_another_team_is_told_and_needs_a_reason(town: Town) -> None:
    copy = town.send("copy", now=DAY, team=OTHER_TEAM)
    town.take_in(now=DAY)
    found = findings(town, copy)
    assert "the same first 100 documents as 20261102-first" in found["others-run"]
    shown = town.organiser("review", copy, now=NEXT).out
    assert f'next      heldout publish {copy} --why "…"\n' in shown
    assert "open runs not said, which is no\n" in shown
    refused = town.publish(copy, now=NEXT)
    assert refused.code == 1
    assert "a reason is needed (--why) for: others-run" in refused.out
    town.organiser("publish", copy, "--yes", "--why", "asked: a joint run", now=NEXT).done()
    # What is like what is for the organisers: an entry under embargo could be betrayed by it.
    assert "others-run" not in (town.board / "log.jsonl").read_text("utf-8")
    assert "others-run" not in (town.board / f"leaderboard/entries/{copy}.html").read_text("utf-8")


def test_an_earlier_one_that_does_not_open_stops_no_review(town: Town) -> None:
    broken = town.send("broken", now=DAY, seed=7, team=named("Coast"))
    later = town.send("later", now=DAY, seed=8, team=OTHER_TEAM)
    town.take_in(now=DAY)
    history = Vault.open(town.vault, board=town.board).history()
    for digest in history.submissions[broken].files.values():
        (town.vault / "sealed" / digest).unlink()
    assert town.publish(later, now=NEXT).code == 0
    assert town.organiser("review", broken, now=NEXT).code == 2


def test_the_organisers_own_baseline_run_sent_by_a_team(town: Town) -> None:
    add_baseline(town, seed=9)
    assert (town.vault / f"signatures/{BASELINE}.npz").is_file()
    copy = town.send("copy", seed=9, now=DAY, team=OTHER_TEAM)
    town.take_in(now=DAY)
    evidence = findings(town, copy)["others-run"]
    assert f"the same first 100 documents as the baseline {BASELINE} in the same order" in evidence
    assert "a reason is needed (--why) for: others-run" in town.publish(copy, now=NEXT).out
    assert town.audit()["ok"]
