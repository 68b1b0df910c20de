"""How the organiser's commands grow with the entries of a board.

    python benchmarks/growth.py 100 1000 10000
    python benchmarks/growth.py 100 1000 --events-each 10 --keep /tmp/boards

Makes a board of each size (`growth_board.py`; 10,000 entries take a quarter of an hour and 6 GB),
then runs each command as a process and prints what it took: seconds of processor and peak memory,
children included, files and bytes written to board and vault, git processes, bytes written by git.
Then the exponents: 0 means that nothing grows, 1 that a command takes ten times as long at ten
times the size. The code is that of the Python that runs it, so the same command on two commits
gives before and after; `--keep DIR` keeps the boards, and takes those that lie there.
"""

import argparse
import json
import math
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from process import run_process

__all__ = ["main"]

_HERE = Path(__file__).parent
_MEBI = 1 << 20
_NOT_OURS = ("lock",)
_ALL = ("inbox", "review", "publish", "rebuild", "status", "audit", "audit-vault")
_WRAPPER = '#!/bin/sh\nprintf . >> "$HELDOUT_GIT_COUNT"\nexec {git} "$@"\n'
_SKETCHES = """
import sys
from datetime import datetime
from pathlib import Path
from heldout.board.scores.compared import compare_runs, list_others
from heldout.board.scores.session import begin_session
from heldout.board.store.repository import Repository
from heldout.board.store.vault import Vault

board, vault, now = sys.argv[1:]
moment = datetime.fromisoformat(now)
session = begin_session(Repository(Path(board)), Vault(Path(vault)), now=moment)
with session.vault.locked():
    history = session.history()
    *_, last = (one for one in history.submissions.values() if one.status == "published")
    for step in (list_others, compare_runs):
        step(session.vault, history, last, repair=lambda _: False)
"""
_State = dict[str, tuple[int, int, int]]  # path -> inode, time of change, bytes


@dataclass(frozen=True, kw_only=True)
class Cost:
    """What one call took."""

    cpu: float
    peak: int
    files: int
    written: int
    git: int
    objects: int
    status: int


def main(arguments: Sequence[str] | None = None) -> int:
    """Make the boards, run the commands, print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("entries", type=int, nargs="+", help="entries of each board, ascending")
    parser.add_argument("--events-each", type=int, default=10, help="events about each entry")
    parser.add_argument("--queries", type=int, default=200)
    parser.add_argument("--depth", type=int, default=100, help="documents for each query")
    parser.add_argument("--only", action="append", choices=_ALL, help="measure these alone")
    parser.add_argument("--keep", type=Path, help="keep boards in this folder, or take them")
    options = parser.parse_args(arguments)
    wanted = [name for name in _ALL if name in (options.only or _ALL)]
    found: dict[int, dict[str, Cost]] = {}
    with tempfile.TemporaryDirectory(prefix="heldout-growth-") as scratch:
        for entries in options.entries:
            root = (options.keep or Path(scratch)) / str(entries)
            if not (root / "clone").exists():
                numbers = (entries, entries * options.events_each, options.queries, options.depth)
                builder = [sys.executable, str(_HERE / "growth_board.py"), str(root)]
                if not (root / "plan.json").exists():  # else all but its pages is made
                    shutil.rmtree(root, ignore_errors=True)
                subprocess.run([*builder, *map(str, numbers)], check=True)
            if options.keep is not None:  # what is kept stays as it was made
                root = Path(shutil.copytree(root, Path(scratch) / str(entries), symlinks=True))
            found[entries] = _measure(root, wanted, Path(scratch))
            _print_costs(entries, found[entries])
            shutil.rmtree(root)
    _print_exponents(found)
    return 0


def _measure(root: Path, wanted: Sequence[str], scratch: Path) -> dict[str, Cost]:
    """Every command on one board, in the order in which an organiser calls them."""
    plan = json.loads((root / "plan.json").read_text())
    board, now = ["--board", str(root / "board")], ["--now", plan["now"]]
    private, waits = ["--vault", str(root / "vault")], plan["waits"]
    commands = {
        "inbox": ["inbox", *board, *private, *now],
        "review": ["review", waits, *board, *private, *now],
        "publish": ["publish", waits, "--yes", "--why", "measured", *board, *private, *now],
        "rebuild": ["rebuild", *board, *private, *now],
        "status": ["status", "--board", str(root / "clone"), *now],
        "audit": ["audit", "--board", str(root / "clone"), *now],
        "audit-vault": ["audit", *board, *private, *now],
    }
    # What every organiser has who worked yesterday: branches fetched, logs, pages and runs
    # remembered. git alone fetches many branches faster than an inbox does.
    fetch = [
        "git",
        "fetch",
        "-q",
        "origin",
        "+refs/heads/submission/*:refs/remotes/origin/submission/*",
    ]
    subprocess.run(fetch, cwd=root / "board", check=True)
    # As where git has repacked: commits lie together, and no whole pack is mapped to list branches.
    remote = subprocess.run(
        ["git", "remote", "get-url", "origin"],
        cwd=root / "board",
        check=True,
        capture_output=True,
        text=True,
    )
    for repository in (remote.stdout.strip(), root / "board"):
        subprocess.run(["git", "-c", "pack.window=0", "repack", "-adq"], cwd=repository, check=True)
    for name in ("inbox", "rebuild", "rebuild"):
        _run(commands[name], root, scratch)
    _sketch(root, plan["now"])
    return {name: _run(commands[name], root, scratch) for name in wanted}


def _sketch(root: Path, now: str) -> None:
    """Look at every earlier run, as the first review of a board does; what that took is printed."""
    command = [sys.executable, "-c", _SKETCHES, str(root / "board"), str(root / "vault"), now]
    ran = run_process(command, environ=os.environ, keep=False, watch=False)
    took = f"{ran.cpu:.1f} s of processor, {ran.peak / _MEBI:.0f} MiB"
    sys.stdout.write(
        f"\nAll runs looked at, once for each board: {took if not ran.status else '-'}\n"
    )


def _run(arguments: Sequence[str], root: Path, scratch: Path) -> Cost:
    bin_, counted, home = scratch / "bin", scratch / "count", scratch / "home"
    for folder in (bin_, home):
        folder.mkdir(exist_ok=True)
    wrapper = bin_ / "git"
    wrapper.write_text(_WRAPPER.format(git=shutil.which("git")))
    wrapper.chmod(0o755)
    counted.write_bytes(b"")
    environ = {
        **{k: v for k, v in os.environ.items() if not k.startswith(("HELDOUT_", "GIT_"))},
        "PYTHONDONTWRITEBYTECODE": "",  # modules are compiled once, as where pip installed them
        "HELDOUT_GIT_COUNT": str(counted),
        "HOME": str(home),
        "PATH": f"{bin_}{os.pathsep}{os.environ['PATH']}",
    }
    before = _look(root)
    command = [sys.executable, "-m", "heldout", *arguments]
    ran = run_process(command, environ=environ, keep=False, watch=False)
    after = _look(root)
    if ran.status not in (0, 1):
        sys.stderr.write(f"{' '.join(arguments)}: exit {ran.status}\n{ran.errors}\n")
    new = {path: one for path, one in after.items() if before.get(path) != one}
    ours = [one for path, one in new.items() if "/.git/" not in path]
    theirs = [one for path, one in new.items() if "/.git/" in path]
    return Cost(
        cpu=ran.cpu,
        peak=ran.peak,
        files=len(ours) + sum("/.git/" not in path for path in before.keys() - after.keys()),
        written=sum(size for *_, size in ours),
        git=counted.stat().st_size,
        objects=sum(size for *_, size in theirs),
        status=ran.status,
    )


def _look(root: Path) -> _State:
    """Every file of board, vault and clone."""
    found: _State = {}
    for name in ("board", "vault", "clone"):
        for folder, _, files in os.walk(root / name):
            for file in files:
                if file in _NOT_OURS:
                    continue
                seen = (Path(folder) / file).lstat()
                # git marks a pack as used by its time, and never changes one.
                changed = 0 if folder.endswith("/objects/pack") else seen.st_mtime_ns
                found[f"{folder}/{file}"] = seen.st_ino, changed, seen.st_size
    return found


def _print_costs(entries: int, costs: Mapping[str, Cost]) -> None:
    sys.stdout.write(f"\n{entries:,} entries\n\n")
    _print_row("command", "cpu s", "peak MiB", "files", "MiB", "git", "git MiB", "exit")
    _print_row("---", *["--:"] * 7)
    for name, cost in costs.items():
        sizes = f"{cost.files:,}", f"{cost.written / _MEBI:.1f}"
        objects = str(cost.git), f"{cost.objects / _MEBI:.1f}", str(cost.status)
        _print_row(name, f"{cost.cpu:.2f}", f"{cost.peak / _MEBI:.0f}", *sizes, *objects)
    sys.stdout.flush()


def _print_exponents(found: Mapping[int, Mapping[str, Cost]]) -> None:
    """How much faster than the entries each cost grows, from each size to the next."""
    sizes = list(found)
    for small, large in pairwise(sizes):
        sys.stdout.write(f"\nExponents, {small:,} to {large:,} entries\n\n")
        _print_row("command", "cpu", "memory", "files", "git")
        _print_row("---", *["--:"] * 4)
        for name, cost in found[small].items():
            other, ratio = found[large][name], math.log(large / small)
            pairs = (
                (cost.cpu, other.cpu),
                (cost.peak, other.peak),
                (cost.files, other.files),
                (cost.git, other.git),
            )
            powers = (math.log(max(b, 1e-9) / max(a, 1e-9)) / ratio if a else 0.0 for a, b in pairs)
            _print_row(name, *(f"{power:.2f}" for power in powers))


def _print_row(*cells: str) -> None:
    sys.stdout.write(f"| {' | '.join(cells)} |\n")


if __name__ == "__main__":
    sys.exit(main())
