"""Sealed files are public: what a stranger can do with copies of them, and with ids like them."""

import pytest
from town import OTHER_TEAM, Town, commit_tree, fresh_town, git

pytestmark = pytest.mark.slow
DAY = "2026-11-02T10:00:00Z"
NEXT = "2026-11-03T10:00:00Z"


town = fresh_town


def copy(town: Town, submission: str, *, number: int) -> None:
    """A stranger's request: the open files of a submission, beside metadata of nonsense."""
    eve = town.new_clone("eve")
    branch = f"submission/{submission}"
    git(eve, "fetch", "-q", "origin", f"{branch}:{branch}")
    name = f"submissions/{submission}-metadata.json.age"
    spoiled = {name: ("100644", b"age-encryption.org/v1\nnonsense")}
    commit = commit_tree(eve, spoiled, parent=git(eve, "rev-parse", branch))
    git(eve, "push", "-q", "origin", f"{commit}:refs/pull/{number}/head")


def hide_branch(town: Town, submission: str) -> str:
    """Take a branch off the forge, so that only what was copied of it is there."""
    branch = f"submission/{submission}"
    tip = git(town.forge, "rev-parse", branch)
    git(town.forge, "update-ref", "-d", f"refs/heads/{branch}")
    return tip


def test_a_copy_with_spoiled_metadata_does_not_shut_its_owner_out(town: Town) -> None:
    submission = town.send("one", now=DAY)
    copy(town, submission, number=1)
    tip = hide_branch(town, submission)
    assert [r["kind"] for r in town.take_in(now=DAY)["received"]] == ["received"]
    assert town.organiser("review", submission, now=DAY).code == 1
    git(town.forge, "update-ref", f"refs/heads/submission/{submission}", tip)
    assert [r["kind"] for r in town.take_in(now=DAY)["received"]] == ["updated"]
    assert town.publish(submission, now=DAY).code == 0
    assert town.take_in(now=NEXT)["received"] == []


def test_a_copy_with_spoiled_metadata_is_no_rival_for_the_id(town: Town) -> None:
    submission = town.send("one", now=DAY)
    copy(town, submission, number=1)
    receipts = town.take_in(now=DAY)["received"]
    assert [r["kind"] for r in receipts] in (["received", "refused"], ["received", "updated"])
    assert town.publish(submission, now=DAY).code == 0


def test_a_copy_that_was_rejected_does_not_shut_its_owner_out(town: Town) -> None:
    submission = town.send("one", now=DAY)
    copy(town, submission, number=1)
    tip = hide_branch(town, submission)
    town.take_in(now=DAY)
    assert town.organiser("review", submission, now=DAY).code == 1
    assert town.organiser("reject", submission, "--why", "it does not open", now=DAY).code == 0
    git(town.forge, "update-ref", f"refs/heads/submission/{submission}", tip)
    assert [r["kind"] for r in town.take_in(now=DAY)["received"]] == ["received"]
    assert town.publish(submission, now=DAY).code == 0
    # The stranger's again: it was read before, and metadata of nonsense changes nothing.
    assert town.take_in(now=NEXT)["received"] == []


def test_an_id_that_differs_in_case_from_a_submission_or_a_baseline_is_taken(town: Town) -> None:
    first = town.send("one", now=DAY)
    town.take_in(now=DAY)
    second = town.draft("One", now=DAY, seed=2, team=OTHER_TEAM)
    assert town.participant("submit", second, now=DAY).code == 0
    (receipt,) = town.take_in(now=DAY)["received"]
    assert (receipt["kind"], receipt["problems"][0]["code"]) == ("refused", "id-taken")
    assert first in receipt["problems"][0]["found"]
    runs = ("--dev", town.root / "dev.run", "--eval", town.root / "eval.run")
    told = ("--description", "BM25")
    answer = town.organiser("board", "baseline", first.upper(), *runs, *told, now=DAY)
    assert answer.code == 2
    assert "id-taken" in answer.err
    assert town.kinds().count("received") == 1
