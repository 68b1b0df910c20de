"""Two organisers, two machines, one history: the vault with a private git remote between them.

Each has a clone of the board and a clone of the vault with a key of their own. Races are made
certain: git is told to let the other organiser act between a fetch and the push that follows it.

Started as a program by the test of kills, as killer.py is: python test_two_organisers.py PLAN.json
"""

import atexit
import functools
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import killer
import pytest
from registering_town import ask_for_registration, publish_board, register
from town import OTHER_TEAM, TEAM, Answer, Town, call, commit_tree, environment, found_town, git

from heldout.board.events import Draft, format_entry, link, parse_log
from heldout.cli import context
from heldout.envelope.bundle import new_identity
from heldout.ids import digest_bytes
from heldout.site import figures
from heldout.store import git as git_module
from heldout.store.sharing import find_sharing
from heldout.store.vault import Vault

pytestmark = pytest.mark.slow
SHARED = "2026-11-01T12:00:00Z"
DAY = "2026-11-02T10:00:00Z"
LATER = "2026-11-02T11:00:00Z"
HELDOUT = str(Path(sys.executable).with_name("heldout"))


@dataclass(frozen=True, slots=True)
class Office:
    """An organiser's machine: a clone of the board, a clone of the vault, an own key."""

    root: Path
    board: Path
    vault: Path

    def place(self, now: str | None = DAY) -> list[str]:
        moment = ["--now", now] if now else []
        return ["--board", str(self.board), "--vault", str(self.vault), *moment]

    def call(self, *arguments: str, now: str | None = DAY) -> Answer:
        return call(self.root, *arguments, *self.place(now))

    def log(self) -> bytes:
        return (self.vault / "events.jsonl").read_bytes()

    def kinds(self) -> list[str]:
        return [entry.event.kind for entry in parse_log(self.log(), path="the vault")]

    def state(self) -> Mapping[str, bytes]:
        """All that a refused command must leave alone: every file of vault and board."""
        return {
            str(path): path.read_bytes()
            for folder in (self.vault, self.board)
            for path in folder.rglob("*")
            if path.is_file() and ".git" not in path.parts and path.name != "lock"
        }

    def is_sound(self) -> bool:
        told: bool = self.call("audit", "--json").json["ok"]
        return told


@dataclass(frozen=True, slots=True)
class Pair:
    """Ann founded the board and shared the vault; Bob joined."""

    town: Town
    ann: Office
    bob: Office

    @property
    def remote(self) -> Path:
        return self.town.root / "private"

    def remote_log(self) -> bytes:
        return subprocess.run(
            ["git", "show", "main:events.jsonl"], cwd=self.remote, capture_output=True, check=True
        ).stdout

    def received(self, name: str = "one", **told: Any) -> str:
        """A submission that Ann has taken in and Bob has heard of."""
        submission = self.town.send(name, now=DAY, **told)
        assert self.ann.call("inbox").code == 0
        return submission

    def hostile(
        self, changes: Mapping[str, tuple[str, bytes] | None], *, parent: str | None = "main"
    ) -> str:
        """Put a commit that heldout did not make on the remote; returns it."""
        eve = self.town.root / "eve"
        if not eve.exists():
            git(self.town.root, "clone", "-q", "private", "eve")
        commit = commit_tree(eve, changes, parent=parent)
        git(eve, "push", "-q", "origin", f"+{commit}:refs/heads/main")
        return commit


def pair_of(root: Path) -> Pair:
    return Pair(
        town=Town(root),
        ann=Office(root, root / "board", root / "vault"),
        bob=Office(root, root / "board-b", root / "vault-b"),
    )


@functools.cache
def template() -> Path:
    """The documented steps of docs/organisers.md, once per session."""
    folder = Path(tempfile.mkdtemp(prefix="heldout-pair-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    town = found_town(folder)
    root = town.root
    for place in (town.board, town.clone):
        git(place, "remote", "set-url", "origin", "../forge")
    git(root, "init", "-q", "--bare", "-b", "main", "private")
    git(town.vault, "init", "-q", "-b", "main")
    git(town.vault, "remote", "add", "origin", "../private")
    key = new_identity("age")
    rules = town.board / "board.toml"
    add = r'\g<0>, "' + key.recipient + '"'
    rules.write_text(re.sub(r'(?<=recipients = \[)"\w+"', add, rules.read_text()))
    assert town.organiser("rebuild", now=SHARED).code == 0
    town.push()
    git(root, "clone", "-q", "private", "vault-b")
    git(root, "clone", "-q", "forge", "board-b")
    git(root / "vault-b", "remote", "set-url", "origin", "../private")
    git(root / "board-b", "remote", "set-url", "origin", "../forge")
    (root / "vault-b").chmod(0o700)
    (root / "vault-b/identities").mkdir(mode=0o700)
    (root / "vault-b/identities/bob.txt").write_text(key.private)
    town.pull()
    return root


@pytest.fixture
def pair(tmp_path: Path) -> Pair:
    shutil.copytree(template(), tmp_path / "town", symlinks=True)
    return pair_of(tmp_path / "town")


@pytest.fixture(autouse=True)
def _blank_charts(monkeypatch: pytest.MonkeyPatch) -> None:
    """A chart costs as much as all else together."""
    monkeypatch.setattr(figures, "draw", lambda _spec: "<svg/>")


def before_push(office: Office, script: str) -> None:
    """Let git run a script before the remote takes a push of this office, once."""
    flag = office.root / "acted"
    intruder = office.root / "receive"
    text = (
        f'#!/bin/sh\n[ -e {flag} ] || {{ touch {flag}; {script}; }}\nexec git-receive-pack "$@"\n'
    )
    intruder.write_text(text)
    intruder.chmod(0o700)
    git(office.vault, "config", "remote.origin.receivepack", str(intruder))


def shell(office: Office, *arguments: str, now: str | None = DAY) -> str:
    """A command of an organiser as a line of shell that leaves what it said in a file."""
    words = " ".join(f"'{word}'" for word in [HELDOUT, *arguments, *office.place(now)])
    return f"(unset GIT_DIR GIT_QUARANTINE_PATH; {words}) >{office.root}/rival.txt 2>&1"


# sharing


def test_all_of_the_vault_is_shared_but_private_keys_and_what_is_this_machine_s(pair: Pair) -> None:
    one = pair.received()
    (pair.town.root / "uploads").mkdir()
    (pair.town.root / "uploads/20261102-half.tar.age").write_bytes(b"refused")
    pair.ann.call("inbox", "--from", f"{pair.town.root}/uploads")
    assert (pair.ann.vault / "refused").exists()
    assert pair.ann.call("review", one).code == 0
    there = set(git(pair.remote, "ls-tree", "-r", "--name-only", "main").splitlines())
    sealed = {f"sealed/{path.name}" for path in (pair.ann.vault / "sealed").iterdir()}
    assert len(sealed) == 4
    assert there == {
        *(".gitignore", "events.jsonl", "labels/eval.qrels"),
        *(f"scores/{one}.json", f"signatures/{one}.npz"),
        *sealed,
    }
    git(pair.ann.vault, "add", "-A")
    assert git(pair.ann.vault, "status", "--porcelain") == ""
    every = git(pair.remote, "log", "--all", "-p", "--format=%H")
    assert "AGE-SECRET-KEY" not in every


def test_what_one_did_the_other_goes_on_with(pair: Pair) -> None:
    one = pair.received()
    published = pair.bob.call("publish", one, "--yes", now=LATER)
    assert published.code == 0, published
    assert "taken over from origin: event 2, received" in published.err
    again = pair.ann.call("publish", one, "--yes", now=LATER)
    assert "done before" in again.out
    assert pair.ann.log() == pair.bob.log() == pair.remote_log()
    assert pair.ann.is_sound()
    assert pair.bob.is_sound()
    by = [entry.event.by for entry in parse_log(pair.ann.log(), path="")]
    assert len(set(by)) == 2
    for name in ("sealed", "scores", "signatures", "labels"):
        ours, theirs = pair.ann.vault / name, pair.bob.vault / name
        assert {p.name: p.read_bytes() for p in ours.iterdir()} == {
            p.name: p.read_bytes() for p in theirs.iterdir()
        }


def test_a_vault_without_git_never_asks_git(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    town = found_town(tmp_path)
    monkeypatch.setattr(git_module, "subprocess", None)
    assert find_sharing(town.vault) is None
    with Vault(town.vault).locked() as news:
        assert news == ()


def test_a_vault_in_git_without_a_remote_is_not_shared(tmp_path: Path) -> None:
    town = found_town(tmp_path)
    git(town.vault, "init", "-q", "-b", "main")
    assert town.organiser("rebuild", now=DAY).code == 0
    assert not Vault(town.vault).is_shared()
    assert git(town.vault, "for-each-ref") == ""


def test_events_from_before_a_vault_was_shared_are_sent(pair: Pair) -> None:
    """Bob copied the folder, and both went on in turn with the remote taken away."""
    git(pair.ann.vault, "remote", "remove", "origin")
    one = pair.received()
    assert pair.ann.call("review", one).code == 0
    git(pair.ann.vault, "remote", "add", "origin", "../private")
    told = pair.ann.call("inbox")
    assert "sent to origin, which lacked it: 2 events" in told.err
    assert pair.remote_log() == pair.ann.log()
    assert pair.bob.call("publish", one, "--yes").code == 0


def test_bytes_come_over_as_they_are(pair: Pair) -> None:
    """No attribute of a repository, a user or a system turns line ends or starts a filter."""
    attributes = pair.town.root / ".config/git"
    attributes.mkdir(parents=True)
    (attributes / "attributes").write_text("* text=auto eol=crlf ident\n")
    labels = pair.ann.vault / "labels/eval.qrels"
    labels.write_bytes(labels.read_bytes().replace(b"deval3 1\n", b"n3-0 1\r\n"))
    one = pair.received()
    for now, command in enumerate((("review", one), ("publish", one, "--yes"))):
        assert pair.ann.call(*command, now=f"2026-11-02T1{now}:00:00Z").code == 0
    assert pair.ann.call("correct", one, "--why", "a wrong label", now=LATER).code == 0
    assert pair.bob.call("rebuild", now=LATER).code == 0
    assert (pair.bob.vault / "labels/eval.qrels").read_bytes() == labels.read_bytes()
    assert pair.bob.is_sound()


def test_edited_labels_reach_the_other_with_their_event_and_not_before(pair: Pair) -> None:
    one = pair.received()
    assert pair.ann.call("publish", one, "--yes").code == 0
    labels, theirs = (o.vault / "labels/eval.qrels" for o in (pair.ann, pair.bob))
    before = theirs.read_bytes()
    labels.write_bytes(before.replace(b"deval3 1", b"n3-0 1"))
    pair.received("two", seed=2, team=OTHER_TEAM)
    assert pair.bob.call("rebuild").code == 0
    assert theirs.read_bytes() == before
    theirs.write_bytes(before.replace(b"deval4 1", b"n4-0 1"))
    assert pair.ann.call("correct", one, "--why", "a wrong label", now=LATER).code == 0
    kept = pair.bob.state()
    refused = pair.bob.call("rebuild", now=LATER)
    assert refused.code == 2
    assert "eval.qrels was edited here, and another organiser's labels came first" in refused.err
    assert pair.bob.state() == kept
    theirs.unlink()
    assert pair.bob.call("rebuild", now=LATER).code == 0
    assert theirs.read_bytes() == labels.read_bytes()
    assert pair.bob.is_sound()


# both at once


def test_two_machines_at_once_cannot_overshoot_a_quota(pair: Pair) -> None:
    """One is published, two wait, the quota is two: whose push comes first gets it."""
    first = pair.received("first", seed=1)
    assert pair.ann.call("publish", first, "--yes").code == 0
    rivals = []
    for seed, name in enumerate(("second", "third"), 2):
        rivals.append(pair.town.draft(name, now=DAY, seed=seed))
        pair.town.send_unchecked(rivals[-1], now=DAY)
    pair.ann.call("inbox")
    running = [
        subprocess.Popen(
            [HELDOUT, "publish", rival, "--yes", *office.place(DAY)],
            env=environment(pair.town.root),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        for office, rival in zip((pair.ann, pair.bob), rivals, strict=True)
    ]
    told = [(process.communicate()[1], process.returncode) for process in running]
    assert sorted(code for _, code in told) == [0, 1], told
    for office in (pair.ann, pair.bob):
        assert office.call("rebuild").code == 0
        assert office.kinds().count("published") == 2
        assert office.is_sound()


def test_who_was_second_is_judged_by_the_new_history(pair: Pair) -> None:
    """Bob rejects what Ann publishes, between her fetch and her push."""
    one = pair.received()
    assert pair.ann.call("review", one).code == 0
    before_push(pair.ann, shell(pair.bob, "reject", one, "--why", "no"))
    told = pair.ann.call("publish", one, "--yes")
    assert f"another organiser was first: event 4, rejected {one}, by age1" in told.err
    assert "event 4 did not happen" in told.err
    assert told.code == 1, told
    assert "it is rejected" in told.out
    assert pair.ann.kinds()[-2:] == ["reviewed", "rejected"]
    assert pair.ann.log() == pair.bob.log() == pair.remote_log()


def test_who_was_second_goes_on_where_nothing_stands_against_it(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the other's event is later than the moment at which the command began."""
    mine = pair.received("mine", seed=1)
    other = pair.received("other", seed=2, team=OTHER_TEAM)
    before_push(pair.ann, shell(pair.bob, "publish", other, "--yes", now=LATER))
    acted = pair.town.root / "acted"
    began, after = datetime.fromisoformat(DAY), datetime.fromisoformat(LATER)
    monkeypatch.setattr(context, "_clock", lambda: after if acted.exists() else began)
    told = pair.ann.call("publish", mine, "--yes", "--json", now=None)
    assert told.code == 0, told
    assert [row["done"] for row in told.json["decisions"]] == [True]
    assert pair.ann.kinds().count("published") == 2
    assert pair.bob.call("rebuild", now=LATER).code == 0
    assert pair.bob.log() == pair.ann.log()


ASK = """
import sys, os
from datetime import datetime
from pathlib import Path
from heldout.board.events import Draft
from heldout.store.vault import Vault
vault = Vault(Path(sys.argv[1]))
told = {"public": {"why": f"Who are you, says process {os.getpid()}"}, "sealed": {}}
with vault.locked():
    draft = Draft(kind="asked", by="bob", submission=sys.argv[2], **told)
    vault.append(draft, now=datetime.fromisoformat(sys.argv[3]))
"""


def test_who_is_always_second_is_told_in_the_end(pair: Pair) -> None:
    mine = pair.received("mine", seed=1)
    other = pair.received("other", seed=2, team=OTHER_TEAM)
    (pair.town.root / "ask.py").write_text(ASK)
    words = [sys.executable, str(pair.town.root / "ask.py"), str(pair.bob.vault), other, DAY]
    acts = f"(unset GIT_DIR GIT_QUARANTINE_PATH; {' '.join(words)}) >&2"
    before_push(pair.ann, f"rm {pair.town.root}/acted; {acts}")
    told = pair.ann.call("reject", mine, "--why", "no")
    assert told.code == 2
    assert "error  3 times another organiser was first: event 6, asked" in told.err
    assert pair.ann.kinds().count("rejected") == 0
    assert pair.bob.kinds().count("asked") == 3


# no remote


COMMANDS = {
    "inbox": ("inbox",),
    "review": ("review", "ID"),
    "publish": ("publish", "ID", "--yes"),
    "reject": ("reject", "ID", "--why", "no"),
    "ask": ("ask", "ID", "Who are you?"),
    "rebuild": ("rebuild",),
}


def named(command: str, submission: str) -> list[str]:
    return [submission if word == "ID" else word for word in COMMANDS[command]]


def test_offline_nothing_happens(pair: Pair) -> None:
    one = pair.received()
    pair.remote.rename(pair.town.root / "away")
    before = pair.ann.state()
    for command in COMMANDS:
        told = pair.ann.call(*named(command, one))
        assert told.code == 2
        assert "its remote origin does not answer" in told.err
        assert "nothing was done" in told.err
        assert pair.ann.state() == before


def test_a_remote_that_takes_nothing_leaves_nothing_half_done(pair: Pair) -> None:
    one = pair.received()
    hook = pair.remote / "hooks/pre-receive"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\necho the disk is full >&2\nexit 1\n")
    hook.chmod(0o700)
    log, board = pair.ann.log(), git(pair.ann.board, "rev-parse", "HEAD")
    told = pair.ann.call("publish", one, "--yes")
    assert told.code == 2
    assert "origin did not take event 3, so it did not happen" in told.err
    assert (pair.ann.log(), git(pair.ann.board, "rev-parse", "HEAD")) == (log, board)
    for folder in (pair.ann.board, pair.ann.vault):
        assert not {line[0] for line in git(folder, "status", "--porcelain").splitlines()} - {"?"}
    hook.unlink()
    assert pair.ann.call("publish", one, "--yes").code == 0
    assert pair.ann.kinds()[-2:] == ["reviewed", "published"]


LOST = 'git-receive-pack "$@"; {then}; exit 1\n'


@pytest.mark.parametrize("silent", [False, True])
def test_a_push_whose_answer_is_lost_is_found_out(pair: Pair, *, silent: bool) -> None:
    """The remote took it and the line broke: the event counts, once."""
    one = pair.received()
    away = pair.town.root / "away"
    receive = pair.town.root / "receive"
    then = f"mv {pair.remote} {away}" if silent else "true"
    receive.write_text("#!/bin/sh\n" + LOST.format(then=then))
    receive.chmod(0o700)
    git(pair.ann.vault, "config", "remote.origin.receivepack", str(receive))
    told = pair.ann.call("reject", one, "--why", "no")
    git(pair.ann.vault, "config", "--unset", "remote.origin.receivepack")
    if silent:
        assert told.code == 2
        assert "did not say whether it took event 3" in told.err
        assert "rejected" not in pair.ann.kinds()
        away.rename(pair.remote)
        told = pair.ann.call("reject", one, "--why", "no")
        assert "taken over from origin: event 3, rejected" in told.err
        assert "done before" in told.out
    assert told.code == 0, told
    assert "was first" not in told.err
    assert pair.ann.kinds().count("rejected") == 1
    assert pair.ann.log() == pair.remote_log()
    assert pair.ann.is_sound()


# clocks and rules


def test_a_clock_that_is_behind_the_other_s_is_told(pair: Pair) -> None:
    one = pair.town.send("one", now=DAY)
    assert pair.ann.call("inbox", now=LATER).code == 0
    assert pair.bob.call("rebuild", now=LATER).code == 0
    before = pair.bob.state()
    told = pair.bob.call("ask", one, "Who are you?", now=DAY)
    assert told.code == 2
    assert "the clock here says 2026-11-02T10:00:00Z, but the last event, by age1" in told.err
    assert "is of 2026-11-02T11:00:00Z; events are never dated before others" in told.err
    assert pair.bob.state() == before
    assert pair.bob.call("ask", one, "Who are you?", now=LATER).code == 0


def test_the_clock_is_read_after_what_others_did(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bob's event came after Ann's command had begun and before it asked the remote."""
    one = pair.received()
    assert pair.bob.call("ask", one, "Who are you?", now=LATER).code == 0
    began = iter([datetime.fromisoformat(DAY)] * 2)
    monkeypatch.setattr(context, "_clock", lambda: next(began, datetime.fromisoformat(LATER)))
    told = pair.ann.call("reject", one, "--why", "no", now=None)
    assert told.code == 0, told
    assert "taken over from origin: event 3, asked" in told.err
    assert list(began) == []


def change_rules(office: Office, old: str, new: str) -> None:
    rules = office.board / "board.toml"
    assert old in rules.read_text()
    rules.write_text(rules.read_text().replace(old, new))


def test_rules_of_the_other_are_no_edit_that_takes_them_back(pair: Pair) -> None:
    change_rules(pair.ann, "quota = 2", "quota = 3")
    assert pair.ann.call("rebuild").code == 0
    count = pair.ann.kinds().count("changed-rules")
    told = pair.bob.call("rebuild")
    assert told.code == 0
    assert "board.toml taken over" in told.err
    assert pair.bob.kinds().count("changed-rules") == count
    assert (pair.bob.board / "board.toml").read_text() == (
        pair.ann.board / "board.toml"
    ).read_text()
    change_rules(pair.bob, "quota = 3", "quota = 2")
    assert pair.bob.call("rebuild").code == 0
    assert pair.bob.kinds().count("changed-rules") == count + 1


def test_rules_that_both_edited_are_not_lost(pair: Pair) -> None:
    change_rules(pair.ann, "quota = 2", "quota = 3")
    assert pair.ann.call("rebuild").code == 0
    change_rules(pair.bob, "quota = 2", "quota = 1")
    log = pair.bob.log()
    told = pair.bob.call("rebuild")
    assert told.code == 2
    assert "another organiser's rules came first (event 2)" in told.err
    assert "quota = 1" in (pair.bob.board / "board.toml").read_text()
    git(pair.bob.board, "stash", "-q")
    assert pair.bob.call("rebuild").code == 0
    change_rules(pair.bob, "quota = 3", "quota = 1")
    assert pair.bob.call("rebuild").code == 0
    assert pair.bob.kinds()[-1] == "changed-rules"
    assert pair.bob.log().startswith(log)


def test_a_board_that_lacks_what_the_other_made_public_is_pulled_first(pair: Pair) -> None:
    one = pair.received()
    assert pair.ann.call("publish", one, "--yes").code == 0
    pair.town.push()
    before = pair.bob.log(), git(pair.bob.board, "rev-parse", "HEAD")
    told = pair.bob.call("rebuild")
    assert told.code == 2
    assert "the board here lacks 2 commits of origin: git pull --ff-only" in told.err
    assert git(pair.bob.board, "rev-parse", "HEAD") == before[1]
    git(pair.bob.board, "pull", "-q", "--ff-only")
    assert "everything was up to date" in pair.bob.call("rebuild").out
    assert pair.bob.is_sound()


def test_boards_that_both_made_anew_become_one_again(pair: Pair) -> None:
    """The way that docs/organisers.md tells: everything public follows from the log."""
    one = pair.received()
    assert pair.ann.call("publish", one, "--yes").code == 0
    assert pair.bob.call("rebuild", now=LATER).code == 0
    pair.town.push()
    assert pair.bob.call("rebuild", now=LATER).code == 2
    git(pair.bob.board, "reset", "-q", "--hard", "origin/main")
    assert pair.bob.call("rebuild", now=LATER).code == 0
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
    told = pair.ann.call("reject", one, "--why", "no")
    assert told.code == 2
    assert "identities/organiser.txt" in told.err
    assert "a private key never belongs there" in told.err
    assert pair.ann.log() == pair.remote_log() == log


def test_a_commit_made_by_hand_goes_with_the_next_event(pair: Pair) -> None:
    (pair.ann.vault / "labels/eval.exclude").write_text("eval7\n")
    git(pair.ann.vault, "add", "labels")
    git(pair.ann.vault, "commit", "-q", "-m", "eval7 does not count")
    pair.received()
    assert pair.bob.call("rebuild").code == 0
    assert (pair.bob.vault / "labels/eval.exclude").read_text() == "eval7\n"


def test_a_clone_without_a_key_says_what_is_missing(pair: Pair) -> None:
    shutil.rmtree(pair.bob.vault / "identities")
    told = pair.bob.call("rebuild")
    assert told.code == 2
    assert "put your own key there if others share this vault" in told.err


def test_a_key_that_opens_nothing_reviews_nothing(pair: Pair) -> None:
    """Its review would say for all that the submission is broken."""
    one = pair.received()
    (pair.bob.vault / "identities/bob.txt").write_text(new_identity("age").private)
    told = pair.bob.call("review", one)
    assert told.code == 2
    assert "is none of the board's recipients" in told.err
    assert pair.remote_log() == pair.ann.log()
    assert pair.ann.kinds()[-1] == "received"


# a remote that lies; every case is named after the attack


CONTENTS: Mapping[str, tuple[dict[str, tuple[str, bytes] | None], str]] = {
    "a link in place of a folder": ({"signatures": ("120000", b"/tmp")}, "no plain file"),
    "a private key slipped in": ({"identities/eve.txt": ("100644", b"x")}, "private key"),
    "attributes with a filter": ({".gitattributes": ("100644", b"* filter=x")}, "no plain file"),
    "a hidden file in a folder": ({"scores/.x": ("100644", b"x")}, "no plain file"),
    "a submodule": ({"scores/x": ("160000", b"1" * 40)}, "no plain file"),
    "a program": ({"scores/x.json": ("100755", b"x")}, "no plain file"),
    "a stray file": ({"founding": ("100644", b"x")}, "no plain file"),
    "a name that a terminal obeys": ({"scores/\x1b[2J": ("100644", b"x")}, r"scores/\x1b[2J"),
    "a file under another's digest": ({"sealed/" + "0" * 64: ("100644", b"x")}, "has the digest"),
    "poisoned labels": ({"labels/eval.qrels": ("100644", b"eval0 0 x 1\n")}, "has the digest"),
    "labels taken away": ({"labels/eval.qrels": None}, "has lost"),
    "the log taken away": ({"events.jsonl": None}, "no whole events.jsonl"),
    "a torn log": ({"events.jsonl": ("100644", b"{")}, "no whole events.jsonl"),
    "a log of nonsense": ({"events.jsonl": ("100644", b"{}\n")}, "origin:events.jsonl:1: not an"),
}


def assert_kept(pair: Pair, expected: str) -> None:
    """Bob's command is refused for this reason, and all that he has is as it was."""
    before, head = pair.bob.state(), git(pair.bob.vault, "rev-parse", "HEAD")
    told = pair.bob.call("rebuild")
    assert told.code == 2
    assert expected in told.err
    assert "nothing was done, the vault here is as it was" in told.err
    assert "\x1b" not in told.err
    assert pair.bob.state() == before
    assert git(pair.bob.vault, "rev-parse", "HEAD") == head


def test_hostile_contents_are_refused(pair: Pair) -> None:
    honest = git(pair.remote, "rev-parse", "main")
    for changes, expected in CONTENTS.values():
        pair.hostile(changes, parent=honest)
        assert_kept(pair, expected)
    git(pair.remote, "update-ref", "refs/heads/main", honest)
    assert pair.bob.call("rebuild").code == 0


def test_a_path_out_of_the_vault_is_refused(pair: Pair) -> None:
    blob = git(pair.remote, "hash-object", "-w", "--stdin", data=b"evil")
    listing = git(pair.remote, "ls-tree", "main") + f"\n100644 blob {blob}\t..\n"
    tree = git(pair.remote, "mktree", data=listing.encode())
    commit = git(pair.remote, "commit-tree", tree, "-p", "main", "-m", "x")
    git(pair.remote, "update-ref", "refs/heads/main", commit)
    assert_kept(pair, 'has "..", no plain file')


def rewritten(log: bytes) -> bytes:
    """A sound chain of as many events and one more, of which the first alone is the same."""
    entries = list(parse_log(log, path=""))[:1]
    for number in range(2):
        draft = Draft(kind="asked", by="eve", submission="x", public={"why": "x"}, sealed={})
        moment = entries[0].time.astimezone(UTC) + timedelta(hours=number)
        entries.append(link(draft, entries[-1], at=moment, new_salt=lambda: "00" * 16))
    return b"".join(map(format_entry, entries))


@pytest.mark.parametrize("parent", ["main", None])
def test_a_rewritten_history_is_refused(pair: Pair, parent: str | None) -> None:
    pair.hostile({"events.jsonl": ("100644", rewritten(pair.bob.log()))}, parent=parent)
    assert_kept(pair, "another history: its event 1 is not the one in the vault here")


def test_a_history_of_the_same_events_that_is_not_ours_is_refused(pair: Pair) -> None:
    pair.hostile({"events.jsonl": ("100644", pair.bob.log())}, parent=None)
    assert_kept(pair, "have the same events, but commits of their own")


def test_a_remote_of_something_else_is_refused(pair: Pair) -> None:
    pair.hostile({"README.md": ("100644", b"# Welcome")}, parent=None)
    assert_kept(pair, "it must be empty at first")


def test_a_second_branch_is_refused(pair: Pair) -> None:
    git(pair.remote, "branch", "-m", "main", "trunk")
    assert_kept(pair, "two branches would be two histories")


def _rewind(pair: Pair) -> None:
    git(pair.remote, "update-ref", "refs/heads/main", "main~1")


def _shorten(pair: Pair) -> None:
    first = pair.bob.log().splitlines(keepends=True)[0]
    pair.hostile({"events.jsonl": ("100644", first)})


def _empty(pair: Pair) -> None:
    git(pair.remote, "update-ref", "-d", "refs/heads/main")


@pytest.mark.parametrize("forget", [_rewind, _shorten, _empty])
def test_events_that_a_remote_forgot_are_sent_again(
    pair: Pair, forget: Callable[[Pair], None]
) -> None:
    log = pair.bob.log()
    forget(pair)
    told = pair.bob.call("rebuild")
    assert told.code == 0
    assert "sent to origin, which lacked it" in told.err
    assert pair.bob.log() == pair.remote_log() == log
    assert pair.ann.call("rebuild").code == 0
    assert pair.ann.log() == log


# what is no event of anybody

LIKE_ANOTHER = ("others-run", "near-others")
"""The rules that hold a run against the earlier ones."""


def scores_of(office: Office, submission: str) -> dict[str, float]:
    kept = json.loads((office.vault / f"scores/{submission}.json").read_bytes())
    return {name: view["mean"] for name, view in kept["views"].items()}


def perfect_scores(office: Office, submission: str) -> bytes:
    """The scores of a submission, with every query answered perfectly."""
    kept = json.loads((office.vault / f"scores/{submission}.json").read_bytes())
    for view in kept["views"].values():
        view["per_query"] = dict.fromkeys(view["per_query"], 1.0)
        view["mean"] = 1.0
    return json.dumps(kept, separators=(",", ":")).encode()


@pytest.mark.parametrize("whose", ["the reviewer's", "another organiser's"])
def test_true_scores_rewritten_at_the_remote_are_not_published(pair: Pair, whose: str) -> None:
    one = pair.received()
    assert pair.ann.call("review", one).code == 0
    true = scores_of(pair.ann, one)
    forged = perfect_scores(pair.ann, one)
    pair.hostile({f"scores/{one}.json": ("100644", forged)})
    office = pair.ann if whose == "the reviewer's" else pair.bob
    told = office.call("publish", one, "--yes")
    assert told.code == 0, told
    assert (
        "not taken over from origin, for no event has their digests: "
        f'"scores/{one}.json"' in told.err
    )
    assert scores_of(office, one) == true != dict.fromkeys(true, 1.0)
    table = json.loads((office.board / "leaderboard/leaderboard.json").read_bytes())
    assert float(table["rows"][0]["scores"]["eval"]) == pytest.approx(true["eval"], abs=5e-4)
    other = pair.bob if office is pair.ann else pair.ann
    assert other.call("rebuild").code == 0
    assert scores_of(other, one) == true
    assert pair.ann.is_sound()
    assert pair.bob.is_sound()
    there = git(pair.remote, "show", f"main:scores/{one}.json")
    assert json.loads(there)["views"]["eval"]["mean"] == true["eval"]


def test_scores_logged_in_another_s_name_are_scored_anew(pair: Pair) -> None:
    """Who can write to the remote can also log the digest of what they forged."""
    one = pair.received()
    assert pair.ann.call("review", one).code == 0
    true = scores_of(pair.ann, one)
    forged = perfect_scores(pair.ann, one)
    log = pair.ann.log()
    last = parse_log(log, path="")[-1]
    draft = Draft(
        kind="reviewed",
        by=last.event.by,
        submission=one,
        public={},
        sealed={"kept": {"scores": str(digest_bytes(forged))}},
    )
    entry = link(draft, last, at=last.time, new_salt=lambda: "00" * 16)
    pair.hostile(
        {
            f"scores/{one}.json": ("100644", forged),
            "events.jsonl": ("100644", log + format_entry(entry)),
        }
    )
    assert pair.ann.call("publish", one, "--yes").code == 0
    assert scores_of(pair.ann, one) == true
    assert pair.ann.is_sound()


def test_a_mask_that_nobody_logged_hides_no_query(pair: Pair) -> None:
    mask = "".join(f"eval{number}\n" for number in range(8)).encode()
    pair.hostile({"labels/eval.exclude": ("100644", mask)})
    one = pair.received()
    told = pair.bob.call("publish", one, "--yes")
    assert told.code == 0, told
    for office in (pair.ann, pair.bob):
        assert not (office.vault / "labels/eval.exclude").exists()
        assert office.call("rebuild").code == 0
        assert office.is_sound()


def test_labels_of_a_new_set_that_nobody_logged_are_not_taken(pair: Pair) -> None:
    pair.hostile({"labels/reserve.qrels": ("100644", b"eval0 0 x 1\n")})
    told = pair.ann.call("rebuild")
    assert told.code == 0
    assert 'no event has their digests: "labels/reserve.qrels"' in told.err
    assert not (pair.ann.vault / "labels/reserve.qrels").exists()


def test_a_file_taken_without_an_event_is_named(pair: Pair) -> None:
    pair.hostile({f"sealed/{digest_bytes(b'x')}": ("100644", b"x")})
    told = pair.ann.call("rebuild")
    assert told.code == 0
    assert f'taken over from origin without an event: "sealed/{digest_bytes(b"x")}"' in told.err


def test_a_signature_of_junk_stops_no_later_publication(pair: Pair) -> None:
    one = pair.received()
    assert pair.ann.call("review", one).code == 0
    pair.hostile({f"signatures/{one}.npz": ("100644", b"junk")})
    two = pair.received("two", seed=3, team=OTHER_TEAM)
    for office in (pair.ann, pair.bob):
        assert office.call("review", two).code == 0
        assert office.is_sound()
    assert pair.bob.call("publish", two, "--yes").code == 0


@pytest.mark.parametrize("damage", ["junk", "half a file", "nothing", "taken away"])
def test_damaged_scores_and_signatures_are_made_anew(pair: Pair, damage: str) -> None:
    """By the next publication of another submission, out of what is sealed."""
    one = pair.received("one", seed=1)
    assert pair.ann.call("review", one).code == 0
    two = pair.received("two", seed=1, team=OTHER_TEAM)
    files = [pair.ann.vault / f"scores/{one}.json", pair.ann.vault / f"signatures/{one}.npz"]
    whole = [file.read_bytes() for file in files]
    for file, data in zip(files, whole, strict=True):
        if damage == "taken away":
            file.unlink()
        else:
            made = {"junk": b"junk", "half a file": data[: len(data) // 2], "nothing": b""}
            file.write_bytes(made[damage])
    assert not pair.ann.is_sound()
    told = pair.ann.call("review", two, "--json")
    assert any(f["rule"] in LIKE_ANOTHER for f in told.json["reviews"][0]["findings"]), told
    assert [file.read_bytes() for file in files] == whole
    assert pair.ann.is_sound()


def test_what_cannot_be_made_anew_is_named_and_stops_nothing(pair: Pair) -> None:
    one = pair.received()
    assert pair.ann.call("review", one).code == 0
    for name in [f"scores/{one}.json", f"signatures/{one}.npz"]:
        (pair.ann.vault / name).write_bytes(b"junk")
    received = parse_log(pair.ann.log(), path="")[2]
    for digest in received.event.public["files"].values():
        (pair.ann.vault / f"sealed/{digest}").write_bytes(b"junk")
    two = pair.town.send("two", now=DAY, seed=3, team=OTHER_TEAM)
    assert pair.ann.call("inbox").code == 0
    told = pair.ann.call("review", two)
    assert told.code == 0, told
    assert f"not compared with {one}" in " ".join(told.out.split())
    assert pair.ann.call("review", two, "--json").json["reviews"][0]["lost"] == [one]


# kills


def _first_sharing(pair: Pair) -> tuple[Office, list[str]]:
    git(pair.remote, "update-ref", "-d", "refs/heads/main")
    shutil.rmtree(pair.ann.vault / ".git")
    git(pair.ann.vault, "init", "-q", "-b", "main")
    git(pair.ann.vault, "remote", "add", "origin", "../private")
    shutil.rmtree(pair.bob.vault / ".git")
    git(pair.bob.vault, "init", "-q", "-b", "main")
    git(pair.bob.vault, "remote", "add", "origin", "../private")
    return pair.ann, ["rebuild"]


def _takes_over_and_decides(pair: Pair) -> tuple[Office, list[str]]:
    one = pair.received()
    return pair.bob, ["reject", one, "--why", "no"]


CASES: Mapping[str, tuple[Callable[[Pair], tuple[Office, list[str]]], int]] = {
    "first sharing": (_first_sharing, 12),
    "take over and decide": (_takes_over_and_decides, 45),
}


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Path]:
    """A folder in memory where there is one: every point restores hundreds of files."""
    if not os.access("/dev/shm", os.W_OK):  # noqa: S108 - a folder of its own is made below it
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(dir="/dev/shm", prefix="heldout-pair-") as folder:
        yield Path(folder)


@pytest.mark.parametrize("name", CASES)
def test_killed_at_any_step_the_next_call_goes_on(
    name: str, memory: Path, record_property: Callable[[str, object], None]
) -> None:
    """Also between the push and all that follows it here; then both have the same history."""
    prepare, least = CASES[name]
    shutil.copytree(template(), memory / "town", symlinks=True)
    pair = pair_of(memory / "town")
    office, command = prepare(pair)
    shutil.copytree(memory / "town", memory / "start", symlinks=True)
    other = pair.bob if office is pair.ann else pair.ann
    plan = {
        "root": str(memory / "town"),
        "start": str(memory / "start"),
        "arguments": [*command, *office.place()],
        "after": [["rebuild", *other.place()]],
    }
    (memory / "plan.json").write_text(json.dumps(plan))
    done = subprocess.run(
        [sys.executable, __file__, memory / "plan.json"],
        capture_output=True,
        env=environment(memory),
        check=False,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    record_property("kill points", found["points"])
    assert found["faults"] == {}, done.stderr
    assert found["points"] >= least


def state_of(root: Path) -> dict[str, Any]:
    """As killer.py has it, and what is the remote's and the other organiser's."""
    pair = pair_of(root)
    return {
        **_killer_state(root),
        "one history": pair.ann.log() == pair.bob.log() == pair.remote_log(),
        "vault": git(pair.ann.vault, "status", "--porcelain"),
        "other vault": git(pair.bob.vault, "status", "--porcelain"),
        "shared": git(pair.remote, "log", "--format=%s", "main"),
        "kinds": pair.bob.kinds(),
    }


_killer_state = killer.state_of

if __name__ == "__main__":
    vars(killer)["state_of"] = state_of
    vars(killer)["WRITING"] |= {"read-tree", "update-index", "write-tree", "commit-tree"}
    killer.main()


# registration


def test_a_team_that_one_took_in_is_known_to_the_other(pair: Pair) -> None:
    ask_for_registration(pair.town)
    handle = register(pair.town)
    assert pair.ann.call("inbox").code == 0
    publish_board(pair.town)
    git(pair.bob.board, "pull", "-q", "--ff-only", "origin", "main")
    submission = pair.town.send("one", now=DAY)
    received = pair.bob.call("inbox", "--json").json["received"]
    assert [(r["id"], r["kind"]) for r in received] == [(submission, "received")]
    (listed,) = pair.bob.call("board", "teams", "--json").json["teams"]
    assert (listed["team"], listed["name"]) == (handle, TEAM["team"])
    (review,) = pair.bob.call("review", submission, "--json").json["reviews"]
    assert "team-registered" not in [finding["rule"] for finding in review["findings"]]
    assert pair.bob.call("publish", submission, "--yes").code == 0
    assert pair.bob.is_sound()
    git(pair.bob.board, "push", "-q", "origin", "main")
    git(pair.ann.board, "pull", "-q", "--ff-only", "origin", "main")
    assert pair.ann.call("rebuild").code == 0
    assert pair.ann.is_sound()
    assert pair.ann.log() == pair.bob.log()
    assert pair.ann.kinds().count("registered") == 1
