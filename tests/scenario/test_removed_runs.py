"""What is rejected or withdrawn leaves the vault: its key, metadata and signatures stay, no run."""

import os
from pathlib import Path

import pytest
from town import OTHER_TEAM, Town, commit_tree, fresh_town, git, named
from two_organisers import LATER, copy_pair

from heldout.board.store.vault import Vault

pytestmark = [pytest.mark.slow, pytest.mark.night]
DAY = "2026-11-02T10:00:00Z"
JUNK = "20261102-junk"
ENDINGS = (".tar.age", "-metadata.json.age", ".key.age")
SIZE = 4 << 20
NOTE = "1 sealed run of rejected or withdrawn submissions: removed from the vault"


town = fresh_town


def junk(size: int = SIZE) -> bytes:
    """Bytes that look sealed and are not."""
    return b"age-encryption.org/v1\n" + os.urandom(size)


def push(town: Town, *files: bytes, submission: str = JUNK) -> None:
    """A branch with these three files: run, metadata, key."""
    named = zip(ENDINGS, files, strict=True)
    changes = {f"submissions/{submission}{end}": ("100644", data) for end, data in named}
    commit = commit_tree(town.clone, changes, parent="main")
    git(town.clone, "push", "-q", "origin", f"+{commit}:refs/heads/submission/{submission}")


def receive(town: Town, *, now: str = DAY) -> list[str]:
    return [receipt["kind"] for receipt in town.take_in(now=now)["received"]]


def reject(town: Town, submission: str) -> None:
    town.organiser("reject", submission, "--why", "it does not open", now=DAY).done()


def sealed_bytes(vault: Path) -> int:
    return sum(file.stat().st_size for file in (vault / "sealed").iterdir())


def run_of(vault: Path, submission: str) -> Path:
    """Where the sealed run of a submission lies in a vault, or would."""
    files = Vault(vault).history().submissions[submission].files
    return vault / "sealed" / files[f"{submission}.tar.age"]


@pytest.mark.parametrize("reviewed", [True, False])
def test_what_was_rejected_does_not_stay_in_the_vault(town: Town, *, reviewed: bool) -> None:
    before = sealed_bytes(town.vault)
    run = junk()
    push(town, run, b"metadata", b"key")
    assert receive(town) == ["received"]
    assert sealed_bytes(town.vault) > before + SIZE
    if reviewed:
        assert town.organiser("review", JUNK, now=DAY).code == 1
    reject(town, JUNK)
    assert sealed_bytes(town.vault) < before + 1000
    assert town.audit()["ok"]
    assert town.audit()["notes"] == [NOTE]
    again = town.organiser("review", JUNK, now=DAY)
    assert (again.code, "backup" in again.out + again.err) == (1, False)
    # The others go on, and the same run comes in again under another id.
    push(town, run, b"metadata", b"key", submission=f"{JUNK}2")
    good = town.send("good", now=DAY, team=OTHER_TEAM)
    assert sorted(receive(town)) == ["received", "received"]
    assert town.publish(JUNK, good, now=DAY).code == 1
    assert town.kinds()[-1] == "published"
    assert run_of(town.vault, f"{JUNK}2").read_bytes() == run
    assert town.audit()["notes"] == []


def test_what_a_crash_left_is_removed_by_the_next_command(
    town: Town, monkeypatch: pytest.MonkeyPatch
) -> None:
    push(town, junk(), b"metadata", b"key")
    receive(town)
    with monkeypatch.context() as crash:
        crash.setattr(Vault, "remove_unneeded", lambda _: None)
        reject(town, JUNK)
    assert run_of(town.vault, JUNK).exists()
    assert town.audit()["notes"] == []
    receive(town)
    assert not run_of(town.vault, JUNK).exists()


def test_a_run_that_something_else_needs_stays(town: Town) -> None:
    """A stranger sends another team's files, or one file as run and key, under an id of theirs."""
    one = town.send("one", now=DAY)
    files = [(town.clone / f".git/heldout/sealed/{one}{end}").read_bytes() for end in ENDINGS]
    push(town, *files)
    small = junk(2000)
    push(town, small, b"metadata", small, submission=f"{JUNK}2")
    assert receive(town) == ["received"] * 3
    reject(town, JUNK)
    reject(town, f"{JUNK}2")
    assert run_of(town.vault, one).exists()
    assert run_of(town.vault, f"{JUNK}2").exists()
    assert town.publish(one, now=DAY).code == 0
    assert town.audit()["ok"]


def test_a_rejected_run_is_still_recognised(town: Town) -> None:
    one = town.send("one", now=DAY, seed=7, team=named("Coast"))
    receive(town)
    assert town.organiser("review", one, now=DAY).code == 0
    reject(town, one)
    assert not run_of(town.vault, one).exists()
    copy = town.send("copy", now=DAY, seed=7, team=OTHER_TEAM)
    receive(town)
    (review,) = town.organiser("review", copy, "--json", now=DAY).json["reviews"]
    (found,) = [f for f in review["findings"] if f["rule"] == "others-run"]
    assert f"the same first 100 documents as {one}" in found["evidence"]


def test_what_was_withdrawn_leaves_too(town: Town) -> None:
    one = town.send("one", now=DAY)
    receive(town)
    assert town.participant("withdraw", one, now=DAY).code == 0
    assert receive(town) == ["withdrawn"]
    assert not run_of(town.vault, one).exists()
    assert town.audit()["notes"] == [NOTE]


def test_the_owner_of_a_spoiled_copy_has_to_send_the_run_again(town: Town) -> None:
    one = town.send("one", now=DAY)
    own = [(town.clone / f".git/heldout/sealed/{one}{end}").read_bytes() for end in ENDINGS]
    push(town, own[0], b"nonsense", own[2], submission=one)
    assert receive(town) == ["received"]
    reject(town, one)
    assert not run_of(town.vault, one).exists()
    uploads = town.root / "uploads"
    uploads.mkdir()
    (uploads / f"{one}-metadata.json.age").write_bytes(own[1])
    told = town.organiser("inbox", "--from", uploads, "--json", now=DAY).json["received"]
    assert [p["code"] for r in told for p in r["problems"]] == ["nothing-to-update"]
    push(town, *own, submission=one)
    assert receive(town) == ["received"]
    assert run_of(town.vault, one).read_bytes() == own[0]
    assert town.publish(one, now=DAY).code == 0
    assert town.audit()["notes"] == []


def test_it_leaves_every_clone_of_a_shared_vault_and_does_not_come_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pair = copy_pair(tmp_path)
    run = junk()
    push(pair.town, run, b"metadata", b"key")
    assert pair.ann.call("inbox").code == 0
    assert pair.bob.call("rebuild").code == 0
    assert run_of(pair.bob.vault, JUNK).read_bytes() == run
    assert pair.ann.call("reject", JUNK, "--why", "no", now=LATER).code == 0
    assert not run_of(pair.ann.vault, JUNK).exists()
    git(pair.town.board, "push", "-q", "origin", "main")
    git(pair.bob.board, "pull", "-q", "--ff-only")
    pair.town.send("two", now=DAY, team=OTHER_TEAM)
    pair.bob.call("inbox", now=LATER).done()
    assert not run_of(pair.bob.vault, JUNK).exists()
    with monkeypatch.context() as never:  # Ann takes over what Bob logged, and not what she removed
        never.setattr(Vault, "remove_unneeded", lambda _: None)
        assert pair.ann.call("rebuild", now=LATER).code == 0
        assert not run_of(pair.ann.vault, JUNK).exists()
    # Nor does anything stop where one of them tells git of it.
    for office in (pair.ann, pair.bob, pair.ann):
        told = office.call("rebuild", now=LATER)
        assert (told.code, "without an event" in told.err) == (0, False), told
        assert not run_of(office.vault, JUNK).exists()
        assert office.is_sound()
        git(office.vault, "add", "-A")
        if git(office.vault, "status", "--porcelain"):
            git(office.vault, "-c", "user.name=x", "-c", "user.email=x@x", "commit", "-qm", "less")
            git(office.vault, "push", "-q", "origin", "HEAD")
    again = f"{JUNK}2"
    push(pair.town, run, b"metadata", b"key", submission=again)
    assert pair.ann.call("inbox", now=LATER).code == 0
    assert pair.bob.call("rebuild", now=LATER).code == 0
    assert run_of(pair.bob.vault, again).read_bytes() == run
    assert pair.bob.is_sound()
