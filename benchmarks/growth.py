"""How the organiser's commands, a participant's and the server grow with the entries of a board.

    python benchmarks/growth.py 100 1000 10000
    python benchmarks/growth.py 300 --check

Makes a board of each size (`growth_board.py`: registered teams, runs that overlap, `[trust]`;
10,000 entries take a quarter of an hour and 6 GB), then runs each command as a process and prints
what it took: seconds of processor and peak memory, children included, files and bytes written to
board, vault and clone. `heldout serve` runs over the clone until it answers, until it shows one
publication, and while it answers requests. Then the exponents: 0 means that nothing grows, 1 that a
command takes ten times as long at ten times the size. The code is that of the Python that runs it,
so the same command on two commits gives before and after.

Exit status 1: a command failed, or, with `--check`, took more than its budget.
"""

import argparse
import json
import math
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from http.client import HTTPConnection
from itertools import pairwise
from pathlib import Path
from typing import Self

from process import LONGEST, run_process

__all__ = ["main"]

_STANDINGS = "/api/v1/standings?limit=100"
_SUBMISSIONS, _QUOTA = "/api/v1/submissions", "/api/v1/quota"
BUDGETS: Mapping[str, float] = {
    "make the board": 50,
    "rebuild, the first": 30,
    "rebuild, the next day": 22,
    "first look at all runs": 5,
    "inbox": 3,
    "review": 4,
    "publish": 7,
    "rebuild": 3,
    "status": 5,
    "audit": 6,
    "audit with the vault": 9,
    "serve, start": 11,
    "serve, a publication": 3,
    f"serve, {_STANDINGS}": 0.005,
    f"serve, {_SUBMISSIONS}": 0.02,
    f"serve, {_QUOTA}": 0.02,
}
"""Most seconds of processor of a command on a board of 300 entries: some twice what it took."""

_HERE = Path(__file__).parent
_MEBI = 1 << 20
_NOT_OURS = ("lock",)
_EVENTS, _QUERIES, _DEPTH = 10, 200, 100
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
_TEAM = """
import sys
from datetime import UTC, datetime
from heldout.database.database import open_database
from heldout.intake.tables import INTAKE
from heldout.intake.teams import accept_invitation, create_invitation, replace_tokens

now = datetime.now(UTC).replace(microsecond=0)
database = open_database(sys.argv[1], INTAKE)
_, secret = create_invitation(database, note="", now=now)
team = accept_invitation(database, secret, name="Team Growth", mail="", now=now)
print(replace_tokens(database, team.id, now=now))
database.close()
"""
_REQUESTS, _PATIENCE, _SHORT = 50, 600, 0.1
_TICKS = os.sysconf("SC_CLK_TCK")
_State = dict[str, tuple[int, int, int]]  # path -> inode, time of change, bytes


@dataclass(frozen=True, kw_only=True)
class Cost:
    """What one call took: seconds of processor, bytes at most, files and bytes written."""

    cpu: float
    peak: int
    files: int = 0
    written: int = 0
    status: int = 0


def main(arguments: Sequence[str] | None = None) -> int:
    """Make the boards, run the commands, print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("entries", type=int, nargs="+", help="entries of each board, ascending")
    parser.add_argument("--check", action="store_true", help="hold all to the budgets of 300")
    options = parser.parse_args(arguments)
    found: dict[int, dict[str, Cost]] = {}
    for entries in options.entries:
        with tempfile.TemporaryDirectory(prefix="heldout-growth-") as scratch:
            found[entries] = _measure(Path(scratch), entries)
            _print_costs(entries, found[entries], Path(scratch))
    _print_exponents(found)
    over = [
        f"{entries:,} entries, {name}: {cost.cpu:.1f} s of processor, exit {cost.status}\n"
        for entries, costs in found.items()
        for name, cost in costs.items()
        if cost.status not in (0, 1) or (options.check and cost.cpu > BUDGETS[name])
    ]
    sys.stderr.write("".join(over))
    return bool(over)


def _measure(root: Path, entries: int) -> dict[str, Cost]:
    """Every command on one board, in the order in which they are called."""
    numbers = map(str, (entries, entries * _EVENTS, _QUERIES, _DEPTH))
    costs = {"make the board": _run([str(_HERE / "growth_board.py"), str(root), *numbers], root)}
    plan = json.loads((root / "plan.json").read_text())
    clone, due = ["--board", str(root / "clone")], ["--now", plan["now"]]
    public, waits = ["--board", str(root / "board")], plan["waits"]
    board = [*public, "--vault", str(root / "vault")]
    # What every organiser has who worked yesterday: branches fetched, logs, pages and runs
    # remembered. git alone fetches many branches faster than an inbox does.
    refs = "+refs/heads/submission/*:refs/remotes/origin/submission/*"
    _git(root / "board", "fetch", "-q", "origin", refs)
    # As where git has repacked: commits lie together, and no whole pack is mapped to list branches.
    for repository in (root / "origin.git", root / "board"):
        _git(repository, "-c", "pack.window=0", "repack", "-adq")

    def measure(name: str, *arguments: str) -> None:
        costs[name] = _run(["-m", "heldout", *arguments], root)

    first, made = Cost(**plan["rebuild"]), costs["make the board"]
    costs["make the board"] = replace(made, cpu=made.cpu - first.cpu)
    costs["rebuild, the first"] = first
    measure("rebuild, the next day", "rebuild", *board, *due)
    _run(["-m", "heldout", "inbox", *board, *due], root)
    costs["first look at all runs"] = _run(
        ["-c", _SKETCHES, str(root / "board"), str(root / "vault"), plan["now"]], root
    )
    measure("inbox", "inbox", *board, *due)
    measure("review", "review", waits, *board, *due)
    with _Server(root) as server:
        costs["serve, start"] = server.wait(lambda total: total > 0)
        measure("publish", "publish", waits, "--yes", "--why", "measured", *board, *due)
        measure("rebuild", "rebuild", *board, *due)
        _git(root / "board", "push", "-q", "origin", "HEAD")
        before = server.total
        costs["serve, a publication"] = server.wait(lambda total: total > before)
        costs |= server.load()
    _git(root / "clone", "pull", "-q")
    measure("status", "status", *clone, *due)
    measure("audit", "audit", *clone, *due)
    measure("audit with the vault", "audit", *board, *due)
    return costs


def _git(folder: Path, *arguments: str) -> None:
    subprocess.run(["git", *arguments], cwd=folder, check=True, stdout=subprocess.DEVNULL)


def _environ(root: Path) -> dict[str, str]:
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("HELDOUT_", "GIT_"))}
    # Modules are compiled once, as where pip installed them.
    return {**kept, "PYTHONDONTWRITEBYTECODE": "", "HOME": str(root / "home")}


def _run(arguments: Sequence[str], root: Path) -> Cost:
    (root / "home").mkdir(exist_ok=True)
    before = _look(root)
    ran = run_process(
        [sys.executable, *arguments],
        environ=_environ(root),
        keep=False,
        watch=False,
        limit=LONGEST,
    )
    if ran.status not in (0, 1):
        sys.stderr.write(f"{' '.join(arguments)}: exit {ran.status}\n{ran.errors}\n")
    new = [one for path, one in _look(root).items() if before.get(path) != one]
    written = sum(size for *_, size in new)
    return Cost(cpu=ran.cpu, peak=ran.peak, files=len(new), written=written, status=ran.status)


def _look(root: Path) -> _State:
    """Every file of board, vault and clone, but git's own."""
    found: _State = {}
    for name in ("board", "vault", "clone"):
        for folder, folders, files in os.walk(root / name):
            folders[:] = [one for one in folders if one != ".git"]
            for file in files:
                if file not in _NOT_OURS:
                    seen = (Path(folder) / file).lstat()
                    found[f"{folder}/{file}"] = seen.st_ino, seen.st_mtime_ns, seen.st_size
    return found


class _Server:
    """`heldout serve` over the clone."""

    def __init__(self, root: Path) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self._port: int = free.getsockname()[1]
        (root / "uploads").mkdir()
        self._database = f"sqlite:///{root / 'intake.sqlite'}"
        self._root = root
        self._token = ""
        self.total = 0

    def __enter__(self) -> Self:
        places = ["--board", str(self._root / "clone"), "--uploads", str(self._root / "uploads")]
        command = ["-m", "heldout", "serve", *places, "--port", str(self._port)]
        self._process = subprocess.Popen(
            [sys.executable, *command, "--database", self._database],
            env=_environ(self._root),
            stderr=subprocess.DEVNULL,
        )
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.wait()

    def wait(self, shows: Callable[[int], bool]) -> Cost:
        """Ask for the standings until they show what is expected."""
        before, end = self._cpu(), time.monotonic() + _PATIENCE
        while not shows(self.total):
            if time.monotonic() > end or self._process.poll() is not None:
                return Cost(cpu=self._cpu() - before, peak=self._peak(), status=2)
            time.sleep(0.5)
            with suppress(OSError):
                self.total = json.loads(self._get(_STANDINGS))["total"]
        return Cost(cpu=self._cpu() - before, peak=self._peak())

    def load(self) -> dict[str, Cost]:
        """What a request takes, in the mean."""
        made = [sys.executable, "-c", _TEAM, self._database]
        token = subprocess.run(made, check=True, capture_output=True, text=True)
        self._token = token.stdout.strip()
        costs: dict[str, Cost] = {}
        for path in (_STANDINGS, _SUBMISSIONS, _QUOTA):
            before = self._cpu()
            for _ in range(_REQUESTS):
                self._get(path)
            cpu = (self._cpu() - before) / _REQUESTS
            costs[f"serve, {path}"] = Cost(cpu=cpu, peak=self._peak())
        return costs

    def _get(self, path: str) -> bytes:
        connection = HTTPConnection("127.0.0.1", self._port, timeout=_PATIENCE)
        headers = {"Authorization": f"Bearer {self._token}"} if self._token else {}
        connection.request("GET", path, headers=headers)
        data = connection.getresponse().read()
        connection.close()
        return data

    def _cpu(self) -> float:
        """Seconds of processor of the server and its processes."""
        fields = [_read(one, "stat").rpartition(")")[2].split()[11:15] for one in self._tree()]
        return sum(sum(map(int, one)) for one in fields) / _TICKS

    def _peak(self) -> int:
        """Most bytes that one of its processes had."""
        status = [_read(one, "status") for one in self._tree()]
        return max(int(one.partition("VmHWM:")[2].split()[0]) << 10 for one in status)

    def _tree(self) -> list[int]:
        found = [self._process.pid]
        for one in found:
            found += map(int, _read(one, f"task/{one}/children").split())
        return found


def _read(process: int, file: str) -> str:
    return Path(f"/proc/{process}/{file}").read_text()


def _print_costs(entries: int, costs: Mapping[str, Cost], root: Path) -> None:
    sys.stdout.write(f"\n{entries:,} entries\n\n")
    _print_row("command", "cpu s", "peak MiB", "files", "MiB", "exit")
    _print_row("---", *["--:"] * 5)
    for name, cost in costs.items():
        sizes = f"{cost.files:,}", f"{cost.written / _MEBI:.1f}", str(cost.status)
        cpu = f"{cost.cpu:.3f}" if cost.cpu < _SHORT else f"{cost.cpu:.2f}"
        _print_row(name, cpu, f"{cost.peak / _MEBI:.0f}", *sizes)
    files = sorted((size, path) for path, (*_, size) in _look(root).items() if "/board/" in path)
    sys.stdout.write("\nLargest files of the board:\n")
    for size, path in reversed(files[-5:]):
        sys.stdout.write(f"{size / _MEBI:8.2f} MiB {path.rpartition('/board/')[2]}\n")
    sys.stdout.flush()


def _print_exponents(found: Mapping[int, Mapping[str, Cost]]) -> None:
    """How much faster than the entries each cost grows, from each size to the next."""
    for small, large in pairwise(found):
        sys.stdout.write(f"\nExponents, {small:,} to {large:,} entries\n\n")
        _print_row("command", "cpu", "memory", "files")
        _print_row("---", *["--:"] * 3)
        for name, cost in found[small].items():
            other, ratio = found[large][name], math.log(large / small)
            pairs = (cost.cpu, other.cpu), (cost.peak, other.peak), (cost.files, other.files)
            powers = (math.log(max(b, 1e-9) / max(a, 1e-9)) / ratio if a else 0.0 for a, b in pairs)
            _print_row(name, *(f"{power:.2f}" for power in powers))


def _print_row(*cells: str) -> None:
    sys.stdout.write(f"| {' | '.join(cells)} |\n")


if __name__ == "__main__":
    sys.exit(main())
