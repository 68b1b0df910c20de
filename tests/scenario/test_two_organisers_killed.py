"""Two organisers, one of whom is killed at any step: the next call goes on.

Started as a program by its own test, as killer.py is:

    python test_two_organisers_killed.py PLAN.json
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import killer
import pytest
from lab import environment, git
from two_organisers import Office, Pair, copy_pair, pair_of

pytestmark = pytest.mark.night


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
    "take over and decide": (_takes_over_and_decides, 40),
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
    pair = copy_pair(memory)
    office, command = prepare(pair)
    shutil.copytree(memory / "lab", memory / "start", symlinks=True)
    other = pair.bob if office is pair.ann else pair.ann
    plan = {
        "root": str(memory / "lab"),
        "start": str(memory / "start"),
        "arguments": [*command, *office.options()],
        "after": [["rebuild", *other.options()]],
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
    record_property("kill points", f"{found['points']}, of which {found['tried']} tried")
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
