"""What `heldout inbox` costs with hostile branches beside one honest one, the last by name.

    python benchmarks/hostile_branches.py [--branches 100] [--remote plain partial] [--files 3 11]

Each hostile branch is a commit of its own on one pack of 311 KB, with files of 300 MiB each: 3 have
the names of one submission, 11 of several. Linux only: processor time of git processes that outlive
their parents is counted too. Half a minute for each line; a `partial` remote can leave files out
(`uploadpack.allowFilter`).
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
from itertools import product
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "tests" / "scenario"), str(ROOT / "tests")]

from hostile_packs import delta_bomb  # noqa: E402 - found by the line above
from lab import OTHER_TEAM, found_lab, git  # noqa: E402 - the same

NOW = "2026-11-02T12:00:00Z"
_BECOME_SUBREAPER = 36


def main() -> None:
    """Print a line for each kind of remote and number of files."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--branches", type=int, default=100)
    parser.add_argument(
        "--remote", choices=["plain", "partial"], nargs="*", default=["plain", "partial"]
    )
    parser.add_argument("--files", type=int, nargs="*", default=[3, 11])
    asked = parser.parse_args()
    ctypes.CDLL(None).prctl(_BECOME_SUBREAPER, 1, 0, 0, 0)
    for remote, files in product(asked.remote, asked.files):
        with tempfile.TemporaryDirectory() as folder:
            os.environ["HOME"] = folder
            found = measure(Path(folder), remote, branches=asked.branches, files=files)
            print(f"{remote}, {files} files: {found}", flush=True)


def measure(root: Path, remote: str, *, branches: int, files: int) -> str:
    """One call of `inbox` on a new board: seconds of processor, and what became of whom."""
    lab = found_lab(root)
    git(lab.forge, "config", "uploadpack.allowFilter", str(remote == "partial").lower())
    size, deltas = 300 << 20, files - 1
    bomb = delta_bomb(lab.forge, size=size, deltas=deltas, parent="main", id_="20261102-one")
    for number in range(branches):
        tip = git(lab.forge, "commit-tree", f"{bomb}^{{tree}}", "-p", "main", "-m", str(number))
        git(lab.forge, "update-ref", f"refs/heads/submission/20251102-a{number}", tip)
    good = lab.send("good", now=NOW, team=OTHER_TEAM)
    program = str(Path(sys.executable).with_name("heldout"))
    where = ["--board", str(lab.board), "--vault", str(lab.vault)]
    before, began = _used(), time.monotonic()
    done = subprocess.run(
        [program, "inbox", "--json", *where, "--now", NOW], stdout=subprocess.PIPE, check=False
    )
    elapsed = time.monotonic() - began
    answer = json.loads(done.stdout)
    kinds = {one["source"]: one["kind"] for one in answer["received"]}
    return (
        f"{_used() - before:.1f} s of processor, {elapsed:.0f} s by the clock; honest branch: "
        f"{kinds.pop(f'branch submission/{good}', 'not received')}; {len(kinds)} of {branches} "
        f"refused, {len(answer['unfetched'])} not fetched"
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
