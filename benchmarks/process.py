"""A whole process, timed from its start to its end, and the memory it and its children took.

The process that measures must stay small: what Linux says of a child's peak memory is never less
than what its parent had when it was started. So this module and those that import it need the
standard library alone.
"""

import os
import subprocess
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

__all__ = ["LONGEST", "Ran", "run_process"]

LONGEST = 14400.0
"""Limit for programs on the largest boards, in seconds."""

_EVERY = 0.005
_LIMIT = 1200.0
_KIB = 1024
_SHOWN = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """A process that has ended.

    Attributes:
        seconds: wall time.
        cpu: seconds of cores, its own and those of the children it waited for.
        status: exit status; negative for a signal.
        output: what it printed, if that was kept.
        errors: the end of what it printed to standard error.
        peak: most bytes in memory of it or of one of its children.
        tree: most bytes in memory of it and its children together; 0 if not watched.
    """

    seconds: float
    cpu: float
    status: int
    output: str
    errors: str
    peak: int
    tree: int


def run_process(
    command: Sequence[str],
    *,
    environ: Mapping[str, str],
    keep: bool,
    watch: bool,
    limit: float = _LIMIT,
) -> Ran:
    """Run a program to its end; it is killed at the limit.

    Args:
        command: program and arguments.
        environ: all of its environment.
        keep: whether to keep what it prints; else it prints into nothing.
        watch: whether to sample the memory of its children; that takes some of its time.
        limit: most seconds, 20 minutes if not given.
    """
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        start = time.perf_counter()
        printed = output if keep else subprocess.DEVNULL
        child = subprocess.Popen(command, stdout=printed, stderr=errors, env=dict(environ))
        timer = threading.Timer(limit, child.kill)
        timer.start()
        watching = _Watch(child.pid)
        if watch:
            watching.start()
        _, status, usage = os.wait4(child.pid, 0)
        seconds = time.perf_counter() - start
        timer.cancel()
        child.returncode = os.waitstatus_to_exitcode(status)
        return Ran(
            seconds=seconds,
            cpu=usage.ru_utime + usage.ru_stime,
            status=child.returncode,
            output=_text(output, 0),
            errors=_text(errors, max(errors.seek(0, os.SEEK_END) - _SHOWN, 0)),
            peak=usage.ru_maxrss * _KIB,
            tree=watching.stop() if watch else 0,
        )


def _text(file: IO[bytes], start: int) -> str:
    file.seek(start)
    return file.read().decode(errors="replace")


class _Watch(threading.Thread):
    """Samples the memory of a process and its children."""

    def __init__(self, pid: int) -> None:
        super().__init__(daemon=True)
        self._pid = pid
        self._most = 0
        self._over = threading.Event()

    def run(self) -> None:
        while not self._over.wait(_EVERY):
            self._most = max(self._most, _tree_memory(self._pid))

    def stop(self) -> int:
        """The most that was seen, in bytes."""
        self._over.set()
        self.join()
        return self._most


def _tree_memory(pid: int) -> int:
    try:
        resident = int(Path(f"/proc/{pid}/statm").read_bytes().split()[1])
        tasks = list(Path(f"/proc/{pid}/task").iterdir())
        children = [child for task in tasks for child in (task / "children").read_text().split()]
    except (OSError, IndexError):  # it has ended meanwhile
        return 0
    return resident * os.sysconf("SC_PAGE_SIZE") + sum(map(_tree_memory, map(int, children)))
