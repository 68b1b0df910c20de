"""Server and worker are killed in turn: what was acknowledged is there, and handed over once."""

import multiprocessing
import random
import signal
import time
from collections.abc import Callable
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any

import busy_intake
import intake_stage
import pytest
from intake_stage import Stage, files_of, make_stage

from heldout.database.database import open_database
from heldout.intake.tables import INTAKE
from heldout.intake.uploads import list_uploads

pytestmark = pytest.mark.night

url = intake_stage.url
NAMES = [f"s{number}" for number in range(10)]
KILLS = 3


class Killed:
    """The processes, and what was acknowledged by those that are dead."""

    def __init__(self, url: str, folder: Path) -> None:
        self._given = (url, folder)
        self._context = multiprocessing.get_context("forkserver")
        self._context.set_forkserver_preload(["busy_intake"])
        self.parts: dict[str, int] = {}
        self.complete: dict[str, str] = {}

    def start(self, work: Callable[..., None], *more: Any) -> ForkServerProcess:
        process = self._context.Process(target=work, args=(*self._given, *more))
        process.start()
        return process

    def receive_and_be_killed(self, acknowledged: int | None) -> None:
        """Let the server work until it has acknowledged so much, or everything."""
        ours, theirs = self._context.Pipe(duplex=False)
        process = self.start(busy_intake.receive, theirs, NAMES)
        theirs.close()
        try:
            while acknowledged is None or acknowledged > 0:
                kind, name, what = ours.recv()
                if kind == "part":
                    self.parts[name] = max(what, self.parts.get(name, 0))
                    acknowledged = None if acknowledged is None else acknowledged - 1
                else:
                    self.complete[name] = what
        except EOFError:
            assert acknowledged is None, "the server ended by itself"
        kill(process)
        ours.close()


def kill(process: ForkServerProcess) -> None:
    process.kill()
    process.join()
    assert process.exitcode == -signal.SIGKILL


def check(stage: Stage, killed: Killed) -> None:
    """What was acknowledged, is there."""
    found = {upload.id: upload for upload in list_uploads(stage.store, 1)}
    received = {
        f"{upload.id}/{file.name}": file.received
        for upload in found.values()
        for file in upload.files
    }
    assert all(received[name] >= offset for name, offset in killed.parts.items())
    assert {found[name].owner for name in killed.complete} == set(killed.complete.values())
    assert {found[name].state for name in killed.complete} <= {"complete", "accepted"}


def test_every_acknowledged_upload_is_there_and_handed_over_once(url: str, tmp_path: Path) -> None:
    database = open_database(url, INTAKE)
    stage = make_stage(database, tmp_path)
    stage.team("Harbor")
    killed, draw = Killed(url, tmp_path), random.Random(1)  # noqa: S311 - not a secret
    for _ in range(KILLS):
        worker = killed.start(busy_intake.work, 0)
        killed.receive_and_be_killed(draw.randrange(5, 35))
        check(stage, killed)
        time.sleep(draw.uniform(0, 0.05))
        kill(worker)
        check(stage, killed)
    killed.receive_and_be_killed(None)
    last = killed.start(busy_intake.work, len(NAMES))
    last.join(60)
    assert last.exitcode == 0
    check(stage, killed)
    names = sorted(f"20261123-{name}" for name in NAMES)
    assert sorted(killed.complete.values()) == names
    assert stage.delivered() == names
    assert {upload.state for upload in list_uploads(stage.store, 1)} == {"accepted"}
    for delivery in stage.store.folder.path.glob("delivery-*"):
        files = {path.name: path.read_bytes() for path in delivery.iterdir()}
        name = min(files).split("-metadata")[0].removeprefix("20261123-")
        assert files == files_of(name, size=busy_intake.SIZE)
    database.close()
