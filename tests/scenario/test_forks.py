"""Clones of forks: origin is the team's own copy of the board, upstream the board itself."""

import json
from pathlib import Path

import pytest
from town import Town, found_town, git

pytestmark = pytest.mark.slow
DAY = "2026-11-02T10:00:00Z"
DECIDED = "2026-11-03T10:00:00Z"
LAST = "2026-11-10T12:00:00Z"


@pytest.fixture
def town(tmp_path: Path) -> Town:
    """The clone is one of a fork, which stays as it was on the first day."""
    town = found_town(tmp_path)
    git(town.root, "clone", "-q", "--bare", "--template=", str(town.forge), "fork")
    git(town.clone, "remote", "set-url", "origin", str(town.root / "fork"))
    return town


def send_and_publish(town: Town) -> str:
    """By a pull request from the fork; the organisers publish, and the board goes to its forge."""
    one = town.send("one", now=DAY)
    git(town.forge, "fetch", "-q", str(town.root / "fork"), f"submission/{one}:refs/pull/1/head")
    assert [r["kind"] for r in town.take_in(now=DAY)["received"]] == ["received"]
    assert town.publish(one, now=DECIDED).code == 0
    town.push()
    return one


def add_upstream(town: Town) -> None:
    git(town.clone, "remote", "add", "upstream", str(town.forge))


def pull_from_the_board(town: Town) -> None:
    git(town.clone, "pull", "-q", "--ff-only", str(town.forge), "main")


def state(town: Town, submission: str) -> str:
    (row,) = town.participant("status", submission, "--json", now=LAST).json["submissions"]
    return str(row["status"])


@pytest.mark.parametrize("merged", [False, True], ids=["not merged yet", "upstream merged"])
def test_upstream_says_how_far_a_submission_has_come(town: Town, *, merged: bool) -> None:
    one = send_and_publish(town)
    add_upstream(town)
    if merged:
        pull_from_the_board(town)
    assert state(town, one) == "published"
    receipt = town.clone / f".git/heldout/receipts/{one}.json"
    assert json.loads(receipt.read_text())["received"]["at"] == DAY
    told = town.participant("audit", "--receipt", receipt, "--json", now=LAST)
    assert (told.code, told.json["faults"]) == (0, []), told
    assert told.json["receipts"][0]["received"]["at"] == DAY
    assert "origin is behind upstream: it has 1 of 4 events" in told.json["notes"]
    assert any("git pull upstream" in note for note in told.json["notes"]) != merged


def test_events_cut_off_on_the_board_are_told_in_a_fork_that_had_them(town: Town) -> None:
    one = send_and_publish(town)
    add_upstream(town)
    pull_from_the_board(town)
    assert state(town, one) == "published"
    git(town.clone, "push", "-q", "origin", "main")
    git(town.board, "push", "-q", "--force", "origin", "main~1:main")
    receipt = town.clone / f".git/heldout/receipts/{one}.json"
    told = town.participant("audit", "--receipt", receipt, "--json", now=LAST)
    assert told.code == 1
    cut = "the last 2 events of the earlier copy were cut off"
    assert told.json["faults"] == [cut, f"upstream held against origin: {cut}"]


def test_a_fork_and_a_board_that_are_two_histories_are_told(town: Town) -> None:
    one = send_and_publish(town)
    add_upstream(town)
    pull_from_the_board(town)
    other = found_town(town.root / "elsewhere")
    git(other.board, "push", "-q", "--force", str(town.root / "fork"), "main")
    town.participant("audit", "--earlier", town.clone / "log.jsonl", "--json", now=LAST).done()
    other.enter("two", now=DAY, decided=DECIDED)
    git(other.board, "push", "-q", "--force", str(town.root / "fork"), "main")
    receipt = town.clone / f".git/heldout/receipts/{one}.json"
    told = town.participant("audit", "--receipt", receipt, "--json", now=LAST)
    assert told.code == 1
    assert any(
        fault.startswith("upstream held against origin: event 1 is another one")
        for fault in told.json["faults"]
    )


@pytest.mark.parametrize("default", [True, False], ids=["default known", "default unknown"])
def test_submit_and_status_on_a_commit_without_a_branch(town: Town, *, default: bool) -> None:
    git(town.clone, "checkout", "-q", "--detach")
    if not default:
        git(town.clone, "symbolic-ref", "-d", "refs/remotes/origin/HEAD")
    one = town.send("one", now=DAY)
    assert state(town, one) == "not received yet"
    assert git(town.root / "fork", "log", "-1", "--format=%s", f"submission/{one}")
