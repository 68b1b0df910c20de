"""Sealed files are public: what a stranger can do with copies of them, and with ids like them."""

from lab import NEXT, OTHER_TEAM, Lab, commit_tree, fresh_lab, git

lab = fresh_lab


def copy(lab: Lab, submission: str, *, number: int) -> None:
    """A stranger's request: the open files of a submission, beside metadata of nonsense."""
    eve = lab.new_clone("eve")
    branch = f"submission/{submission}"
    git(eve, "fetch", "-q", "origin", f"{branch}:{branch}")
    name = f"submissions/{submission}-metadata.json.age"
    spoiled = {name: ("100644", b"age-encryption.org/v1\nnonsense")}
    commit = commit_tree(eve, spoiled, parent=git(eve, "rev-parse", branch))
    git(eve, "push", "-q", "origin", f"{commit}:refs/pull/{number}/head")


def hide_branch(lab: Lab, submission: str) -> str:
    """Take a branch off the forge, so that only what was copied of it is there."""
    branch = f"submission/{submission}"
    tip = git(lab.forge, "rev-parse", branch)
    git(lab.forge, "update-ref", "-d", f"refs/heads/{branch}")
    return tip


def test_a_copy_with_spoiled_metadata_does_not_shut_its_owner_out(lab: Lab) -> None:
    submission = lab.send("one")
    copy(lab, submission, number=1)
    tip = hide_branch(lab, submission)
    assert [r["kind"] for r in lab.take_in()["received"]] == ["received"]
    assert lab.organiser("review", submission).code == 1
    git(lab.forge, "update-ref", f"refs/heads/submission/{submission}", tip)
    assert [r["kind"] for r in lab.take_in()["received"]] == ["updated"]
    assert lab.publish(submission).code == 0
    assert lab.take_in(now=NEXT)["received"] == []


def test_a_copy_with_spoiled_metadata_is_no_rival_for_the_id(lab: Lab) -> None:
    submission = lab.send("one")
    copy(lab, submission, number=1)
    receipts = lab.take_in()["received"]
    assert [r["kind"] for r in receipts] in (["received", "refused"], ["received", "updated"])
    assert lab.publish(submission).code == 0


def test_a_copy_that_was_rejected_does_not_shut_its_owner_out(lab: Lab) -> None:
    submission = lab.send("one")
    copy(lab, submission, number=1)
    tip = hide_branch(lab, submission)
    lab.take_in()
    assert lab.organiser("review", submission).code == 1
    assert lab.organiser("reject", submission, "--why", "it does not open").code == 0
    git(lab.forge, "update-ref", f"refs/heads/submission/{submission}", tip)
    assert [r["kind"] for r in lab.take_in()["received"]] == ["received"]
    assert lab.publish(submission).code == 0
    # The stranger's again: it was read before, and metadata of nonsense changes nothing.
    assert lab.take_in(now=NEXT)["received"] == []


def test_an_id_that_differs_in_case_from_a_submission_or_a_baseline_is_taken(lab: Lab) -> None:
    first = lab.receive("one")
    assert lab.participant("submit", lab.draft("One", seed=2, team=OTHER_TEAM)).code == 0
    (receipt,) = lab.take_in()["received"]
    assert (receipt["kind"], receipt["problems"][0]["code"]) == ("refused", "id-taken")
    assert first in receipt["problems"][0]["found"]
    runs = ("--dev", lab.root / "dev.run", "--eval", lab.root / "eval.run")
    args = ("--description", "BM25")
    lab.organiser("board", "baseline", first.upper(), *runs, *args).refused("id-taken")
    assert lab.kinds().count("received") == 1
