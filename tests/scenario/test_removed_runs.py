"""What is rejected or withdrawn leaves the vault: its key, metadata and signatures stay, no run."""

import os
from pathlib import Path

import pytest
from lab import DAY, OTHER_TEAM, Lab, Patch, commit_tree, fresh_lab, git, named
from two_organisers import LATER, copy_pair

from heldout.board.store.vault import Vault

pytestmark = pytest.mark.night
JUNK = "20261102-junk"
ENDINGS = (".tar.age", "-metadata.json.age", ".key.age")
SIZE = 4 << 20
NOTE = "1 sealed run of rejected or withdrawn submissions: removed from the vault"


lab = fresh_lab


def junk(size: int = SIZE) -> bytes:
    """Bytes that look sealed and are not."""
    return b"age-encryption.org/v1\n" + os.urandom(size)


def push(lab: Lab, *files: bytes, submission: str = JUNK) -> None:
    """A branch with these three files: run, metadata, key."""
    named = zip(ENDINGS, files, strict=True)
    changes = {f"submissions/{submission}{end}": ("100644", data) for end, data in named}
    commit = commit_tree(lab.clone, changes, parent="main")
    git(lab.clone, "push", "-q", "origin", f"+{commit}:refs/heads/submission/{submission}")


def receive(lab: Lab, *, now: str = DAY) -> list[str]:
    return [receipt["kind"] for receipt in lab.take_in(now=now)["received"]]


def reject(lab: Lab, submission: str) -> None:
    lab.organiser("reject", submission, "--why", "it does not open").done()


def sealed_bytes(vault: Path) -> int:
    return sum(file.stat().st_size for file in (vault / "sealed").iterdir())


def run_of(vault: Path, submission: str) -> Path:
    """Where the sealed run of a submission lies in a vault, or would."""
    files = Vault(vault).history().submissions[submission].files
    return vault / "sealed" / files[f"{submission}.tar.age"]


@pytest.mark.parametrize("reviewed", [True, False])
def test_what_was_rejected_does_not_stay_in_the_vault(lab: Lab, *, reviewed: bool) -> None:
    before = sealed_bytes(lab.vault)
    run = junk()
    push(lab, run, b"metadata", b"key")
    assert receive(lab) == ["received"]
    assert sealed_bytes(lab.vault) > before + SIZE
    if reviewed:
        assert lab.organiser("review", JUNK).code == 1
    reject(lab, JUNK)
    assert sealed_bytes(lab.vault) < before + 1000
    assert lab.audit()["ok"]
    assert lab.audit()["notes"] == [NOTE]
    again = lab.organiser("review", JUNK)
    assert (again.code, "backup" in again.out + again.err) == (1, False)
    # The others go on, and the same run comes in again under another id.
    push(lab, run, b"metadata", b"key", submission=f"{JUNK}2")
    good = lab.send("good", team=OTHER_TEAM)
    assert sorted(receive(lab)) == ["received", "received"]
    assert lab.publish(JUNK, good).code == 1
    assert lab.kinds()[-1] == "published"
    assert run_of(lab.vault, f"{JUNK}2").read_bytes() == run
    assert lab.audit()["notes"] == []


def test_what_a_crash_left_is_removed_by_the_next_command(lab: Lab, monkeypatch: Patch) -> None:
    push(lab, junk(), b"metadata", b"key")
    receive(lab)
    with monkeypatch.context() as crash:
        crash.setattr(Vault, "remove_unneeded", lambda _: None)
        reject(lab, JUNK)
    assert run_of(lab.vault, JUNK).exists()
    assert lab.audit()["notes"] == []
    receive(lab)
    assert not run_of(lab.vault, JUNK).exists()


def test_a_run_that_something_else_needs_stays(lab: Lab) -> None:
    """A stranger sends another team's files, or one file as run and key, under an id of theirs."""
    one = lab.send("one")
    files = [(lab.clone / f".git/heldout/sealed/{one}{end}").read_bytes() for end in ENDINGS]
    push(lab, *files)
    small = junk(2000)
    push(lab, small, b"metadata", small, submission=f"{JUNK}2")
    assert receive(lab) == ["received"] * 3
    reject(lab, JUNK)
    reject(lab, f"{JUNK}2")
    assert run_of(lab.vault, one).exists()
    assert run_of(lab.vault, f"{JUNK}2").exists()
    assert lab.publish(one).code == 0
    assert lab.audit()["ok"]


def test_a_rejected_run_is_still_recognised(lab: Lab) -> None:
    one = lab.send("one", seed=7, team=named("Coast"))
    receive(lab)
    assert lab.organiser("review", one).code == 0
    reject(lab, one)
    assert not run_of(lab.vault, one).exists()
    copy = lab.send("copy", seed=7, team=OTHER_TEAM)
    receive(lab)
    (review,) = lab.organiser("review", copy, "--json").json["reviews"]
    (found,) = [f for f in review["findings"] if f["rule"] == "others-run"]
    assert f"the same first 100 documents as {one}" in found["evidence"]


def test_what_was_withdrawn_leaves_too(lab: Lab) -> None:
    one = lab.send("one")
    receive(lab)
    assert lab.participant("withdraw", one).code == 0
    assert receive(lab) == ["withdrawn"]
    assert not run_of(lab.vault, one).exists()
    assert lab.audit()["notes"] == [NOTE]


def test_the_owner_of_a_spoiled_copy_has_to_send_the_run_again(lab: Lab) -> None:
    one = lab.send("one")
    own = [(lab.clone / f".git/heldout/sealed/{one}{end}").read_bytes() for end in ENDINGS]
    push(lab, own[0], b"nonsense", own[2], submission=one)
    assert receive(lab) == ["received"]
    reject(lab, one)
    assert not run_of(lab.vault, one).exists()
    uploads = lab.root / "uploads"
    uploads.mkdir()
    (uploads / f"{one}-metadata.json.age").write_bytes(own[1])
    said = lab.organiser("inbox", "--from", uploads, "--json").json["received"]
    assert [p["code"] for r in said for p in r["problems"]] == ["nothing-to-update"]
    push(lab, *own, submission=one)
    assert receive(lab) == ["received"]
    assert run_of(lab.vault, one).read_bytes() == own[0]
    assert lab.publish(one).code == 0
    assert lab.audit()["notes"] == []


def test_it_leaves_every_clone_of_a_shared_vault_and_does_not_come_back(
    tmp_path: Path, monkeypatch: Patch
) -> None:
    pair = copy_pair(tmp_path)
    run = junk()
    push(pair.lab, run, b"metadata", b"key")
    assert pair.ann.call("inbox").code == 0
    assert pair.bob.call("rebuild").code == 0
    assert run_of(pair.bob.vault, JUNK).read_bytes() == run
    assert pair.ann.call("reject", JUNK, "--why", "no", now=LATER).code == 0
    assert not run_of(pair.ann.vault, JUNK).exists()
    git(pair.lab.board, "push", "-q", "origin", "main")
    git(pair.bob.board, "pull", "-q", "--ff-only")
    pair.lab.send("two", team=OTHER_TEAM)
    pair.bob.call("inbox", now=LATER).done()
    assert not run_of(pair.bob.vault, JUNK).exists()
    with monkeypatch.context() as never:  # Ann takes over what Bob logged, and not what she removed
        never.setattr(Vault, "remove_unneeded", lambda _: None)
        assert pair.ann.call("rebuild", now=LATER).code == 0
        assert not run_of(pair.ann.vault, JUNK).exists()
    # Nor does anything stop where one of them tells git of it.
    for office in (pair.ann, pair.bob, pair.ann):
        said = office.call("rebuild", now=LATER)
        assert (said.code, "without an event" in said.err) == (0, False), said
        assert not run_of(office.vault, JUNK).exists()
        assert office.is_sound()
        git(office.vault, "add", "-A")
        if git(office.vault, "status", "--porcelain"):
            git(office.vault, "-c", "user.name=x", "-c", "user.email=x@x", "commit", "-qm", "less")
            git(office.vault, "push", "-q", "origin", "HEAD")
    again = f"{JUNK}2"
    push(pair.lab, run, b"metadata", b"key", submission=again)
    assert pair.ann.call("inbox", now=LATER).code == 0
    assert pair.bob.call("rebuild", now=LATER).code == 0
    assert run_of(pair.bob.vault, again).read_bytes() == run
    assert pair.bob.is_sound()
