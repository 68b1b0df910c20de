"""Two organisers, two machines, one history: a lab whose vault has a private git remote.

Each has a clone of the board and a clone of the vault with a key of their own. Races are made
certain: git is told to let the other organiser act between a fetch and the push that follows it.
"""

import functools
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lab import (
    DAY,
    Answer,
    Lab,
    accepting,
    call,
    commit_tree,
    edit_rules,
    found_lab,
    git,
    session_folder,
)

from heldout.board.log.events import parse_log
from heldout.envelope.bundle import new_identity, short_recipient
from heldout.envelope.keys import new_signing_key, public_key

LATER = "2026-11-02T11:00:00Z"
HELDOUT = str(Path(sys.executable).with_name("heldout"))


@dataclass(frozen=True, slots=True)
class Office:
    """An organiser's machine: a clone of the board, a clone of the vault, an own key."""

    root: Path
    board: Path
    vault: Path

    def options(self, now: str | None = DAY) -> list[str]:
        moment = ["--now", now] if now else []
        return ["--board", str(self.board), "--vault", str(self.vault), *moment]

    def call(self, *arguments: str, now: str | None = DAY) -> Answer:
        accept = accepting(self.vault, *arguments)
        return call(self.root, *arguments, *self.options(now), *accept)

    def edit(self, *changes: tuple[str, str]) -> None:
        """Edit board.toml here."""
        edit_rules(self.board, *changes)

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
        said: bool = self.call("audit", "--json").json["ok"]
        return said


@dataclass(frozen=True, slots=True)
class Pair:
    """Ann founded the board and shared the vault; Bob joined."""

    lab: Lab
    ann: Office
    bob: Office

    @property
    def remote(self) -> Path:
        return self.lab.root / "private"

    def remote_log(self) -> bytes:
        return subprocess.run(
            ["git", "show", "main:events.jsonl"], cwd=self.remote, capture_output=True, check=True
        ).stdout

    def received(self, name: str = "one", **draft: Any) -> str:
        """A submission that Ann has taken in and Bob has heard of."""
        submission = self.lab.send(name, **draft)
        assert self.ann.call("inbox").code == 0
        return submission

    def hostile(
        self, changes: Mapping[str, tuple[str, bytes] | None], *, parent: str | None = "main"
    ) -> str:
        """Put a commit that heldout did not make on the remote; returns it."""
        eve = self.lab.root / "eve"
        if not eve.exists():
            git(self.lab.root, "clone", "-q", "private", "eve")
        commit = commit_tree(eve, changes, parent=parent)
        git(eve, "push", "-q", "origin", f"+{commit}:refs/heads/main")
        return commit


def pair_of(root: Path) -> Pair:
    """Both of them, in a folder where they are already."""
    return Pair(
        lab=Lab(root),
        ann=Office(root, root / "board", root / "vault"),
        bob=Office(root, root / "board-b", root / "vault-b"),
    )


def copy_pair(folder: Path) -> Pair:
    """Both of them in another folder."""
    shutil.copytree(_template(), folder / "lab", symlinks=True)
    return pair_of(folder / "lab")


@functools.cache
def _template() -> Path:
    """The documented steps of docs/how-to/organisers.md, once per session."""
    lab = found_lab(session_folder("pair"))
    root = lab.root
    for clone in (lab.board, lab.clone):
        git(clone, "remote", "set-url", "origin", "../forge")
    git(root, "init", "-q", "--bare", "-b", "main", "private")
    git(lab.vault, "init", "-q", "-b", "main")
    git(lab.vault, "remote", "add", "origin", "../private")
    key, signing = new_identity("age"), new_signing_key("ORGANISER")
    name = short_recipient("age", key.recipient)
    let_in = ("--add", key.recipient, "--add-signer", f"{name}={public_key(signing)}")
    args = ("board", "rekey", "--keep-key", *let_in, "--why", "Bob joins", "--yes")
    lab.organiser(*args, now="2026-11-01T12:00:00Z").done()
    lab.push()
    git(root, "clone", "-q", "private", "vault-b")
    git(root, "clone", "-q", "forge", "board-b")
    git(root / "vault-b", "remote", "set-url", "origin", "../private")
    git(root / "board-b", "remote", "set-url", "origin", "../forge")
    (root / "vault-b").chmod(0o700)
    (root / "vault-b/identities").mkdir(mode=0o700)
    (root / "vault-b/identities/bob.txt").write_text(key.private)
    (root / "vault-b/identities/bob.signing").write_bytes(signing)
    lab.pull()
    return root


def before_push(office: Office, script: str) -> None:
    """Let the remote run a script before it takes the next push, which is this office's; once."""
    flag = office.root / "acted"
    hook = (
        office.root / "private/hooks/pre-receive"
    )  # of the remote: a clone's settings run nothing
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\n[ -e {flag} ] || {{ touch {flag}; {script}; }}\nexit 0\n")
    hook.chmod(0o700)


def shell(office: Office, *arguments: str, now: str | None = DAY) -> str:
    """A command of an organiser as a line of shell that leaves what it said in a file."""
    words = " ".join(f"'{word}'" for word in [HELDOUT, *arguments, *office.options(now)])
    return f"(unset GIT_DIR GIT_QUARANTINE_PATH; {words}) >{office.root}/rival.txt 2>&1"
