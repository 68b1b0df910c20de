"""What `heldout inbox` costs with hostile branches beside one honest one, the last by name.

    python benchmarks/hostile_branches.py [--branches 100] [--remote plain|partial]

Each hostile branch is a commit of its own on a pack of 311 KB that unpacks to 3 GB. Linux only:
processor time of git processes that outlive their parents is counted too. About a minute for each
kind of remote; `partial` is one that can leave files out (`uploadpack.allowFilter`).
"""

import argparse
import ctypes
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "tests" / "scenario"), str(ROOT / "tests")]

from hostile_packs import delta_bomb  # noqa: E402 - found by the line above
from town import OTHER_TEAM, found_town, git  # noqa: E402 - the same

NOW = "2026-11-02T12:00:00Z"
_BECOME_SUBREAPER = 36


def main() -> None:
    """Print one line for each kind of remote."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--branches", type=int, default=100)
    parser.add_argument("--remote", choices=["plain", "partial"], nargs="*", default=None)
    asked = parser.parse_args()
    ctypes.CDLL(None).prctl(_BECOME_SUBREAPER, 1, 0, 0, 0)
    for remote in asked.remote or ["plain", "partial"]:
        with tempfile.TemporaryDirectory() as folder:
            os.environ["HOME"] = folder
            print(remote, measure(Path(folder), remote, asked.branches))


def measure(root: Path, remote: str, branches: int) -> str:
    """One call of `inbox` on a new board: seconds of processor, and what became of whom."""
    town = found_town(root)
    git(town.forge, "config", "uploadpack.allowFilter", str(remote == "partial").lower())
    bomb = delta_bomb(town.forge, size=300 << 20, deltas=10, parent="main", id_="20261102-one")
    for number in range(branches):
        tip = git(town.forge, "commit-tree", f"{bomb}^{{tree}}", "-p", "main", "-m", str(number))
        git(town.forge, "update-ref", f"refs/heads/submission/20251102-a{number}", tip)
    good = town.send("good", now=NOW, team=OTHER_TEAM)
    program = str(Path(sys.executable).with_name("heldout"))
    where = ["--board", str(town.board), "--vault", str(town.vault)]
    before, began = _used(), time.monotonic()
    done = subprocess.run(
        [program, "inbox", "--json", *where, "--now", NOW], stdout=subprocess.PIPE, check=False
    )
    elapsed = time.monotonic() - began
    told = json.loads(done.stdout)
    kinds = {one["source"]: one["kind"] for one in told["received"]}
    return (
        f"{_used() - before:.1f} s of processor, {elapsed:.0f} s by the clock; honest branch: "
        f"{kinds.pop(f'branch submission/{good}', 'not received')}; {len(kinds)} of {branches} "
        f"refused, {len(told['unfetched'])} not fetched"
    )


def _used() -> float:
    """Seconds of a processor of all processes that have ended, orphans included."""
    time.sleep(1)
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


if __name__ == "__main__":
    main()
