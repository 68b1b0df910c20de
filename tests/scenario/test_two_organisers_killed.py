"""Two organisers, one of whom is killed at any step: the next call goes on.

Started as a program by its own test, as killer.py is:

    python test_two_organisers_killed.py PLAN.json
"""

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import killer
import pytest
from lab import git
from two_organisers import Office, Pair, copy_pair, pair_of

memory = killer.memory
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
    return pair.bob, ["reject", pair.received(), "--why", "no"]


CASES: Mapping[str, tuple[Callable[[Pair], tuple[Office, list[str]]], int]] = {
    "first sharing": (_first_sharing, 12),
    "take over and decide": (_takes_over_and_decides, 40),
}


@pytest.mark.parametrize("name", CASES)
def test_killed_at_any_step_the_next_call_goes_on(
    name: str, memory: Path, record_property: Callable[[str, object], None]
) -> None:
    """Also between the push and all that follows it here; then both have the same history."""
    prepare, least = CASES[name]
    pair = copy_pair(memory)
    office, command = prepare(pair)
    other = pair.bob if office is pair.ann else pair.ann
    after = [["rebuild", *other.options()]]
    command = [*command, *office.options()]
    found = killer.kill_often(memory / "lab", command, after, program=__file__)
    record_property("kill points", f"{found['points']}, of which {found['tried']} tried")
    assert found["faults"] == {}
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
