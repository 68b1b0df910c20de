"""How many git processes `inbox` starts grows neither with what was sent nor with what is new."""

import json
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from lab import Lab, Patch, found_lab, git

from heldout.board.log.reading import Log

NOW = "2026-11-05T12:00:00Z"
LATER = "2026-11-06T12:00:00Z"
MOST_WITH_NOTHING_NEW = 14


@contextmanager
def counted(monkeypatch: Patch) -> Iterator[list[Sequence[str]]]:
    """The git processes that are started meanwhile, by this process."""
    started: list[Sequence[str]] = []
    popen = subprocess.Popen

    def start(command: Sequence[str], *rest: Any, **named: Any) -> "subprocess.Popen[Any]":
        started.append(command)
        return popen(command, *rest, **named)

    with monkeypatch.context() as patched:
        patched.setattr(subprocess, "Popen", start)
        yield started


def send(lab: Lab, first: int, last: int) -> None:
    """Push branches with small files that nobody sealed, all by one process."""
    main = git(lab.clone, "rev-parse", "main")
    stream = []
    for number in range(first, last):
        name = f"20261104-made-{number}"
        stream.append(
            f"commit refs/heads/submission/{name}\ncommitter x <x@here> 0 +0000\ndata 0\n"
        )
        stream.append(f"from {main}\n")
        for ending in (".tar.age", "-metadata.json.age", ".key.age"):
            text = f"{name}{ending}"
            stream.append(f"M 100644 inline submissions/{name}{ending}\ndata {len(text)}\n{text}\n")
    git(lab.clone, "fast-import", "--quiet", data="".join(stream).encode())
    git(lab.clone, "push", "-q", "origin", "refs/heads/submission/*:refs/heads/submission/*")


def processes(lab: Lab, monkeypatch: Patch, *, now: str) -> tuple[int, list[dict[str, Any]]]:
    with counted(monkeypatch) as started:
        received = lab.take_in(now=now)["received"]
    return len(started), received


def passes_over_log(lab: Lab, monkeypatch: Patch) -> int:
    """How often the vault's log is gone through where nothing is remembered of what arrived."""
    (lab.board / ".git" / "heldout-arrivals.json").unlink()
    began, lines = list[int](), Log.lines

    def note(log: Log, start: int = 0) -> Iterator[bytes]:
        began.append(start)
        return lines(log, start)

    with monkeypatch.context() as patched:
        patched.setattr(Log, "lines", note)
        assert lab.take_in(now=LATER)["received"] == []
    return len(began)


def test_the_number_of_processes_is_constant(tmp_path: Path, monkeypatch: Patch) -> None:
    lab = found_lab(tmp_path)
    send(lab, 0, 2)
    few, received = processes(lab, monkeypatch, now=NOW)
    assert len(received) == 2
    nothing_new, received = processes(lab, monkeypatch, now=NOW)
    assert received == []
    passes = passes_over_log(lab, monkeypatch)
    send(lab, 2, 22)
    many, received = processes(lab, monkeypatch, now=LATER)
    assert len(received) == 20
    again, received = processes(lab, monkeypatch, now=LATER)
    assert received == []
    assert again == nothing_new <= MOST_WITH_NOTHING_NEW
    assert many - few <= 20  # the files of each new submission are read by one process
    memory = json.loads((lab.board / ".git" / "heldout-arrivals.json").read_bytes())
    assert len(memory) == 22
    assert passes_over_log(lab, monkeypatch) == passes
