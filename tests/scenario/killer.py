"""Kills a command at every durable operation, calls it again, and compares what is left.

Started by test_kills.py as a program of its own, so that nothing but it is forked:

    python killer.py PLAN.json

The plan names a folder `root`, a copy `start` of it as it is before the command, the command
`arguments`, commands `after` that are called when it is done, and that `every` n-th point is tried.
A forked child runs the command with `os.fsync`, `os.replace`, `os.unlink`, `os.mkdir` and every
writing call of git counted. For every point n that is tried the folder is restored, and a child
dies by `os._exit` before its n-th operation. Then the same command is called again, for some n
after being killed once more, and must succeed. Prints one JSON document: the number of points, how
many were tried, and what differed from an uninterrupted run.

Of the operations that one place in the code makes between two pushes (fifty pages, say) the first
is tried. A place is a line of heldout and the two that called it.
`HELDOUT_NIGHT=1` tries every operation.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from itertools import islice
from pathlib import Path
from pkgutil import walk_packages
from tempfile import TemporaryDirectory
from traceback import walk_stack
from typing import Any, NoReturn

import pytest
from lab import call, environment

import heldout.board
import heldout.cli.board
from heldout.board.store.sharing import DERIVED_FOLDERS

for package in (heldout.board, heldout.cli.board):  # loaded before forking
    for found in walk_packages(package.__path__, f"{package.__name__}."):
        import_module(found.name)

KILLED = 137
NIGHT = os.environ.get("HELDOUT_NIGHT") == "1"
"""How many lines of heldout make a place, the innermost one among them."""
_LEFT_OUT = {".git", "objects", "hooks", *DERIVED_FOLDERS}
"""Folders whose files may differ: git's, and those that a vault can make again at any time."""
WRITING = frozenset(("init", "add", "commit", "push", "fetch", "update-ref", "hash-object"))
"""Calls of git that change a repository; the others leave the state as it was."""


class Countdown:
    """Counts durable operations, and ends the process before the n-th; 0 only counts.

    Attributes:
        places: for each operation, what it was and where in the code, since which push.
    """

    def __init__(self, at: int) -> None:
        self.at = at
        self.places: list[str] = []
        self.pushes = 0

    def tick(self, operation: str, torn: Callable[[], object] = lambda: None) -> None:
        if self.at == 0:
            self.places.append(f"{self.pushes} {operation} {_calls_of_heldout()}")
            self.pushes += operation == "push"
            return
        self.at -= 1
        if self.at == 0:
            torn()
            os._exit(KILLED)

    def before(self, module: Any, name: str) -> None:
        real = getattr(module, name)

        def counted(*args: Any, **kwargs: Any) -> Any:
            self.tick(name)
            return real(*args, **kwargs)

        setattr(module, name, counted)

    def install(self) -> None:
        for name in ("replace", "unlink", "mkdir"):
            self.before(os, name)
        run = subprocess.run

        def counted_fsync(handle: int) -> None:
            file = Path(f"/proc/self/fd/{handle}").readlink()
            if file.suffix == ".jsonl":
                self.tick(
                    "torn", lambda: os.ftruncate(handle, max(0, os.fstat(handle).st_size - 40))
                )
            self.tick("fsync")  # a killed process loses nothing of the page cache: no need to wait

        def counted_run(command: Sequence[str], **kwargs: Any) -> Any:
            words = [w for i, w in enumerate(command[1:], 1) if "-c" not in (w, command[i - 1])]
            if command[0] == "git" and words[0] in WRITING:
                self.tick(words[0])
            return run(command, **kwargs)

        vars(os)["fsync"] = counted_fsync
        vars(subprocess)["run"] = counted_run


def _calls_of_heldout() -> str:
    """The innermost lines of heldout that are being executed, from the last call outwards."""
    lines = (
        f"{frame.f_globals['__name__']}:{line}"
        for frame, line in walk_stack(sys._getframe(2))
        if frame.f_globals.get("__name__", "").startswith("heldout.")
    )
    return " ".join(islice(lines, 3))


def choose_points(places: Sequence[str], every: int) -> list[int]:
    """The points to try: each `every`-th of the first of each place, counted from 1."""
    if NIGHT:
        return list(range(1, len(places) + 1))[::every]
    first = {place: point for point, place in reversed(list(enumerate(places, 1)))}
    return sorted(first.values())[::every]


def in_child(work: Callable[[], int]) -> int:
    """Run something in a forked child; its exit code."""
    child = os.fork()
    if child == 0:
        code = 70
        try:
            code = work()
        finally:
            sys.stdout.flush()
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def state_of(root: Path) -> dict[str, Any]:
    """What has to be the same whether the command was killed or not."""
    return {
        "events": [
            {k: v for k, v in json.loads(line)["event"].items() if k not in ("prev", "sealed")}
            for line in read(root / "vault/events.jsonl").splitlines()
        ],
        "rows": json.loads(read(root / "board/leaderboard/leaderboard.json") or "null"),
        "files": sorted(
            path.relative_to(root).as_posix()
            for path in root.rglob("*")
            if not _LEFT_OUT & set(path.relative_to(root).parts)
        ),
        "status": git(root / "board", "status", "--porcelain"),
        "commits": git(root / "board", "log", "--format=%s"),
        "branches": git(root / "forge", "for-each-ref", "--format=%(refname)"),
    }


def read(path: Path) -> str:
    return path.read_text() if path.exists() else ""


def git(folder: Path, *arguments: str) -> str:
    if not folder.exists():
        return ""
    env = environment(folder.parent)
    command = ["git", *arguments]
    return subprocess.run(
        command, cwd=folder, capture_output=True, env=env, check=True, text=True
    ).stdout


def plain(state: Mapping[str, Any]) -> Any:
    """The state as text without what is drawn at random: digests, commits, keys."""
    text = json.dumps(state, sort_keys=True)
    return json.loads(re.sub(r"\b[0-9a-f]{40,64}\b|\bage1[0-9a-z…]+", "*", text))


class Killer:
    """One plan."""

    def __init__(self, plan: Mapping[str, Any]) -> None:
        self.root, self.start = Path(plan["root"]), Path(plan["start"])
        self.arguments: list[str] = plan["arguments"]
        self.after: list[list[str]] = plan["after"]
        self.every: int = plan["every"]

    def restore(self) -> None:
        shutil.rmtree(self.root, ignore_errors=True)
        shutil.copytree(self.start, self.root, symlinks=True)

    def command(self, countdown: Countdown | None = None) -> int:
        def work() -> int:
            if countdown is not None:
                countdown.install()
            return call(self.root, *self.arguments).code

        return in_child(work)

    def finish(self) -> list[str]:
        """Call the command again, then what comes after it; says what went wrong."""

        def work() -> int:
            for arguments in (self.arguments, *self.after):
                answer = call(self.root, *arguments)
                if answer.code != 0:
                    sys.stderr.write(f"{arguments[:2]} {answer}\n")
                    return 1
            return 0

        code = in_child(work)
        return [] if code == 0 else [f"the next call ended with {code}"]

    def try_point(self, point: int, total: int, expected: Any) -> list[str]:
        self.restore()
        code = self.command(Countdown(point))
        if code != KILLED:
            return [f"not killed, but {code}"]
        if point % 3 == 0:
            self.command(Countdown(point * 7 % total + 1))
        faults = self.finish()
        found = plain(state_of(self.root))
        faults += [
            f"{k}: {found[k]} instead of {expected[k]}" for k in found if found[k] != expected[k]
        ]
        return faults

    def list_places(self) -> list[str]:
        """The place of every point, from an uninterrupted run."""
        self.restore()
        answer = self.root.with_name("places.json")

        def work() -> int:
            countdown = Countdown(0)
            countdown.install()
            code = call(self.root, *self.arguments).code
            answer.write_text(json.dumps(countdown.places))
            return code

        if (code := in_child(work)) != 0:
            raise SystemExit(f"the uninterrupted command ended with {code}")
        found: list[str] = json.loads(answer.read_text())
        return found

    def run(self) -> dict[str, Any]:
        self.restore()
        call(self.root, *self.arguments)  # fills the caches that every child inherits
        places = self.list_places()
        total, points = len(places), choose_points(places, self.every)
        self.restore()
        faults = self.finish()
        expected = plain(state_of(self.root))
        found = {0: faults} if faults else {}
        for point in points:
            if faults := self.try_point(point, total, expected):
                found[point] = faults
        return {"points": total, "tried": len(points), "faults": found}


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Path]:
    """A folder in memory where there is one: every point restores two hundred files."""
    if not os.access("/dev/shm", os.W_OK):  # noqa: S108 - a folder of its own is made below it
        yield tmp_path
        return
    with TemporaryDirectory(dir="/dev/shm", prefix="heldout-kills-") as folder:
        yield Path(folder)


def kill_often(
    root: Path,
    arguments: Sequence[str],
    after: Sequence[Sequence[str]],
    *,
    every: int = 1,
    program: str = __file__,
) -> Any:
    """Start this program, or one that changes it, on a command in a folder; its answer."""
    start, plan = root.with_name("start"), root.with_name("plan.json")
    shutil.copytree(root, start, symlinks=True)
    told = {"root": f"{root}", "start": f"{start}", "arguments": arguments, "after": after}
    plan.write_text(json.dumps({**told, "every": every}))
    done = subprocess.run(
        [sys.executable, program, plan],
        capture_output=True,
        env={**environment(root.parent), "HELDOUT_NIGHT": f"{NIGHT:d}"},
        check=False,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    sys.stderr.write(done.stderr)
    return json.loads(done.stdout)


def main() -> NoReturn:
    plan = json.loads(Path(sys.argv[1]).read_text())
    sys.stdout.write(json.dumps(Killer(plan).run()))
    sys.exit(0)


if __name__ == "__main__":
    main()
