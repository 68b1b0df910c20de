"""Two organisers out of step: no remote, clocks, rules and boards that differ, changes by hand."""

from pathlib import Path

import pytest
from lab import DAY, Patch, git
from two_organisers import LATER, Pair, copy_pair

from heldout.board.store import git as store_git
from heldout.envelope.bundle import new_identity

pytestmark = pytest.mark.night


@pytest.fixture
def pair(tmp_path: Path) -> Pair:
    return copy_pair(tmp_path)


# no remote


COMMANDS = {
    "inbox": ("inbox",),
    "review": ("review", "ID"),
    "publish": ("publish", "ID", "--yes"),
    "reject": ("reject", "ID", "--why", "no"),
    "ask": ("ask", "ID", "Who are you?"),
    "rebuild": ("rebuild",),
}


def test_offline_nothing_happens(pair: Pair) -> None:
    one = pair.received()
    pair.remote.rename(pair.lab.root / "away")
    before = pair.ann.state()
    for words in COMMANDS.values():
        pair.ann.call(*(one if word == "ID" else word for word in words)).refused(
            "its remote origin does not answer", "nothing was done"
        )
        assert pair.ann.state() == before


def test_a_remote_that_takes_nothing_leaves_nothing_half_done(pair: Pair) -> None:
    one = pair.received()
    hook = pair.remote / "hooks/pre-receive"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\necho the disk is full >&2\nexit 1\n")
    hook.chmod(0o700)
    log, board = pair.ann.log(), git(pair.ann.board, "rev-parse", "HEAD")
    pair.ann.call("publish", one, "--yes").refused(
        "origin did not take event 3, so it did not happen"
    )
    assert (pair.ann.log(), git(pair.ann.board, "rev-parse", "HEAD")) == (log, board)
    for folder in (pair.ann.board, pair.ann.vault):
        assert not {line[0] for line in git(folder, "status", "--porcelain").splitlines()} - {"?"}
    hook.unlink()
    assert pair.ann.call("publish", one, "--yes").code == 0
    assert pair.ann.kinds()[-2:] == ["reviewed", "published"]


LOST = 'git-receive-pack "$@"; {then}; exit 1\n'


@pytest.mark.parametrize("silent", [False, True])
def test_a_push_whose_answer_is_lost_is_found_out(
    pair: Pair, monkeypatch: Patch, *, silent: bool
) -> None:
    """The remote took it and the line broke: the event counts, once."""
    one = pair.received()
    away = pair.lab.root / "away"
    receive = pair.lab.root / "receive"
    then = f"mv {pair.remote} {away}" if silent else "true"
    receive.write_text("#!/bin/sh\n" + LOST.format(then=then))
    receive.chmod(0o700)
    with monkeypatch.context() as once:
        once.setattr(store_git, "_RECEIVE", f"--receive-pack={receive}")
        said = pair.ann.call("reject", one, "--why", "no")
    if silent:
        assert said.code == 2
        assert "did not say whether it took event 3" in said.err
        assert "rejected" not in pair.ann.kinds()
        away.rename(pair.remote)
        said = pair.ann.call("reject", one, "--why", "no")
        assert "taken over from origin: event 3, rejected" in said.err
        assert "done before" in said.out
    assert said.code == 0, said
    assert "was first" not in said.err
    assert pair.ann.kinds().count("rejected") == 1
    assert pair.ann.log() == pair.remote_log()
    assert pair.ann.is_sound()


# clocks and rules


def test_a_clock_that_is_behind_the_other_s_is_told(pair: Pair) -> None:
    one = pair.lab.send("one")
    assert pair.ann.call("inbox", now=LATER).code == 0
    assert pair.bob.call("rebuild", now=LATER).code == 0
    before = pair.bob.state()
    pair.bob.call("ask", one, "Who are you?", now=DAY).refused(
        "the clock here says 2026-11-02T10:00:00Z, but the last event, by age1",
        "is of 2026-11-02T11:00:00Z; events are never dated before others",
    )
    assert pair.bob.state() == before
    assert pair.bob.call("ask", one, "Who are you?", now=LATER).code == 0


def test_rules_of_the_other_are_no_edit_that_takes_them_back(pair: Pair) -> None:
    pair.ann.edit(("quota = 2", "quota = 3"))
    assert pair.ann.call("rebuild").code == 0
    count = pair.ann.kinds().count("changed-rules")
    assert "board.toml taken over" in pair.bob.call("rebuild").done().err
    assert pair.bob.kinds().count("changed-rules") == count
    assert (pair.bob.board / "board.toml").read_text() == (
        pair.ann.board / "board.toml"
    ).read_text()
    pair.bob.edit(("quota = 3", "quota = 2"))
    assert pair.bob.call("rebuild").code == 0
    assert pair.bob.kinds().count("changed-rules") == count + 1


def test_rules_that_both_edited_are_not_lost(pair: Pair) -> None:
    pair.ann.edit(("quota = 2", "quota = 3"))
    assert pair.ann.call("rebuild").code == 0
    pair.bob.edit(("quota = 2", "quota = 1"))
    log = pair.bob.log()
    pair.bob.call("rebuild").refused("other rules came first (02 Nov 2026 10:00)")
    assert "quota = 1" in (pair.bob.board / "board.toml").read_text()
    git(pair.bob.board, "stash", "-q")
    assert pair.bob.call("rebuild").code == 0
    pair.bob.edit(("quota = 3", "quota = 1"))
    assert pair.bob.call("rebuild").code == 0
    assert pair.bob.kinds()[-1] == "changed-rules"
    assert pair.bob.log().startswith(log)


def test_a_board_that_lacks_what_the_other_made_public_is_pulled_first(pair: Pair) -> None:
    assert pair.ann.call("publish", pair.received(), "--yes").code == 0
    pair.lab.push()
    before = pair.bob.log(), git(pair.bob.board, "rev-parse", "HEAD")
    pair.bob.call("rebuild").refused("the board here lacks 2 commits of origin: git pull --ff-only")
    assert git(pair.bob.board, "rev-parse", "HEAD") == before[1]
    git(pair.bob.board, "pull", "-q", "--ff-only")
    assert "everything was up to date" in pair.bob.call("rebuild").out
    assert pair.bob.is_sound()


# what is done by hand


def test_a_private_key_never_leaves(pair: Pair) -> None:
    one = pair.received()
    git(pair.ann.vault, "add", "--force", "identities")
    assert pair.ann.call("ask", one, "Who are you?").code == 0
    assert "identities" not in git(pair.remote, "ls-tree", "-r", "--name-only", "main")
    git(pair.ann.vault, "add", "--force", "identities")
    git(pair.ann.vault, "commit", "-q", "-m", "backup")
    log = pair.remote_log()
    pair.ann.call("reject", one, "--why", "no").refused(
        '"identities/organiser.', "a private key never belongs there"
    )
    assert pair.ann.log() == pair.remote_log() == log


def test_a_key_that_opens_nothing_reviews_nothing(pair: Pair) -> None:
    """Its review would say for all that the submission is broken."""
    one = pair.received()
    (pair.bob.vault / "identities/bob.txt").write_text(new_identity("age").private)
    pair.bob.call("review", one).refused("is none of the board's recipients")
    assert pair.remote_log() == pair.ann.log()
    assert pair.ann.kinds()[-1] == "received"
