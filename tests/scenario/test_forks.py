"""Clones of forks: origin is the team's own copy of the board, upstream the board itself."""

import json
from pathlib import Path

import pytest
from lab import DAY, NEXT, Lab, found_lab, git

LAST = "2026-11-10T12:00:00Z"


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    """The clone is one of a fork, which stays as it was on the first day."""
    lab = found_lab(tmp_path)
    git(lab.root, "clone", "-q", "--bare", "--template=", str(lab.forge), "fork")
    git(lab.clone, "remote", "set-url", "origin", str(lab.root / "fork"))
    return lab


def send_and_publish(lab: Lab) -> str:
    """By a pull request from the fork; the organisers publish, and the board goes to its forge."""
    one = lab.send("one")
    git(lab.forge, "fetch", "-q", str(lab.root / "fork"), f"submission/{one}:refs/pull/1/head")
    assert [r["kind"] for r in lab.take_in()["received"]] == ["received"]
    assert lab.publish(one, now=NEXT).code == 0
    lab.push()
    return one


def add_upstream(lab: Lab) -> None:
    git(lab.clone, "remote", "add", "upstream", str(lab.forge))


def pull_from_the_board(lab: Lab) -> None:
    git(lab.clone, "pull", "-q", "--ff-only", str(lab.forge), "main")


def state(lab: Lab, submission: str) -> str:
    (row,) = lab.participant("status", submission, "--json", now=LAST).json["submissions"]
    return str(row["status"])


def test_upstream_says_how_far_a_submission_has_come(lab: Lab) -> None:
    one = send_and_publish(lab)
    add_upstream(lab)
    for merged in (False, True):
        if merged:
            pull_from_the_board(lab)
        assert state(lab, one) == "published"
        receipt = lab.clone / f".git/heldout/receipts/{one}.json"
        assert json.loads(receipt.read_text())["received"]["at"] == DAY
        said = lab.participant("audit", "--receipt", receipt, "--json", now=LAST)
        assert (said.code, said.json["faults"]) == (0, []), said
        assert said.json["receipts"][0]["received"]["at"] == DAY
        assert "origin is behind upstream: it has 1 of 4 events" in said.json["notes"]
        assert any("git pull upstream" in note for note in said.json["notes"]) != merged


def test_events_cut_off_on_the_board_are_told_in_a_fork_that_had_them(lab: Lab) -> None:
    one = send_and_publish(lab)
    add_upstream(lab)
    pull_from_the_board(lab)
    assert state(lab, one) == "published"
    git(lab.clone, "push", "-q", "origin", "main")
    git(lab.board, "push", "-q", "--force", "origin", "main~1:main")
    receipt = lab.clone / f".git/heldout/receipts/{one}.json"
    said = lab.participant("audit", "--receipt", receipt, "--json", now=LAST).declined()
    cut = "the last 2 events of the earlier copy were cut off"
    assert said.json["faults"] == [cut, f"upstream held against origin: {cut}"]


def test_a_fork_and_a_board_that_are_two_histories_are_told(lab: Lab) -> None:
    one = send_and_publish(lab)
    add_upstream(lab)
    pull_from_the_board(lab)
    other = found_lab(lab.root / "elsewhere")
    git(other.board, "push", "-q", "--force", str(lab.root / "fork"), "main")
    lab.participant("audit", "--earlier", lab.clone / "log.jsonl", "--json", now=LAST).done()
    other.enter("two", decided=NEXT)
    git(other.board, "push", "-q", "--force", str(lab.root / "fork"), "main")
    receipt = lab.clone / f".git/heldout/receipts/{one}.json"
    said = lab.participant("audit", "--receipt", receipt, "--json", now=LAST).declined()
    assert any(
        fault.startswith("upstream held against origin: event 1 is another one")
        for fault in said.json["faults"]
    )


@pytest.mark.parametrize("default", [True, False], ids=["default known", "default unknown"])
def test_submit_and_status_on_a_commit_without_a_branch(lab: Lab, *, default: bool) -> None:
    git(lab.clone, "checkout", "-q", "--detach")
    if not default:
        git(lab.clone, "symbolic-ref", "-d", "refs/remotes/origin/HEAD")
    one = lab.send("one")
    assert state(lab, one) == "not received yet"
    assert git(lab.root / "fork", "log", "-1", "--format=%s", f"submission/{one}")
