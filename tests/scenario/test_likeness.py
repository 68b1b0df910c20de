"""Runs like others, through the command line: told to the organisers, answered with a reason."""

from pathlib import Path

import pytest
from lab import NEXT, OTHER_TEAM, Lab, findings, found_lab, named
from trusting import BASELINE, add_baseline

from heldout.board.store.vault import Vault

pytestmark = pytest.mark.night


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    lab = found_lab(tmp_path)
    lab.enter("first", shared=True)
    return lab


def test_the_run_of_another_team_is_told_and_needs_a_reason(lab: Lab) -> None:
    copy = lab.receive("copy", team=OTHER_TEAM)
    found = findings(lab, copy)
    assert "the same first 100 documents as 20261102-first" in found["others-run"]
    shown = lab.organiser("review", copy, now=NEXT).out
    assert f'next      heldout publish {copy} --why "…"\n' in shown
    assert "open runs not said, which is no\n" in shown
    lab.publish(copy, now=NEXT).declined("a reason is needed (--why) for: others-run")
    lab.organiser("publish", copy, "--yes", "--why", "asked: a joint run", now=NEXT).done()
    # What is like what is for the organisers: an entry under embargo could be betrayed by it.
    assert "others-run" not in (lab.board / "log.jsonl").read_text("utf-8")
    assert "others-run" not in (lab.board / f"leaderboard/entries/{copy}.html").read_text("utf-8")


def test_an_earlier_one_that_does_not_open_stops_no_review(lab: Lab) -> None:
    broken = lab.send("broken", seed=7, team=named("Coast"))
    later = lab.receive("later", seed=8, team=OTHER_TEAM)
    history = Vault.open(lab.vault, board=lab.board).history()
    for digest in history.submissions[broken].files.values():
        (lab.vault / "sealed" / digest).unlink()
    assert lab.publish(later, now=NEXT).code == 0
    assert lab.organiser("review", broken, now=NEXT).code == 2


def test_the_organisers_own_baseline_run_sent_by_a_team(lab: Lab) -> None:
    add_baseline(lab, seed=9)
    assert (lab.vault / f"signatures/{BASELINE}.npz").is_file()
    copy = lab.receive("copy", seed=9, team=OTHER_TEAM)
    evidence = findings(lab, copy)["others-run"]
    assert f"the same first 100 documents as the baseline {BASELINE} in the same order" in evidence
    assert "a reason is needed (--why) for: others-run" in lab.publish(copy, now=NEXT).out
    assert lab.audit()["ok"]
