"""A full disk below a PostgreSQL server: the choice is kept, and taken when there is room again.

Two ways lead there. A table's own small disk that really is full, which takes the right to mount
one; and, for everybody, a server that answers as it does then (SQLSTATE 53100).
"""

import os
import pwd
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Protocol

import psycopg
import pytest
from judging_stage import Stage, Stages, fields_of, words_of

from postgres import start_postgres

pytestmark = pytest.mark.night

_DISK = 512 << 10
_REFUSE = """
CREATE FUNCTION no_room() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN RAISE EXCEPTION 'could not extend file: No space left' USING ERRCODE = '53100'; END $$;
CREATE TRIGGER full_disk BEFORE INSERT ON judgments EXECUTE FUNCTION no_room();
"""


class Disk(Protocol):
    """A disk that can be filled and emptied."""

    def fill(self) -> None: ...
    def empty(self) -> None: ...


class ToldFull:
    """The server says that its disk is full."""

    def __init__(self, address: str) -> None:
        self.address = address

    def fill(self) -> None:
        _run(self.address, _REFUSE)

    def empty(self) -> None:
        _run(self.address, "DROP TRIGGER full_disk ON judgments")


class SmallDisk:
    """A disk of half a megabyte that holds the table of judgments and nothing else."""

    def __init__(self, address: str, place: Path) -> None:
        self.rest = place / "rest"
        space = place / "space"
        space.mkdir()
        user = pwd.getpwnam("pgserver")
        os.chown(space, user.pw_uid, user.pw_gid)
        _run(address, f"CREATE TABLESPACE small LOCATION '{space}'")
        _run(address, "ALTER TABLE judgments SET TABLESPACE small")

    def fill(self) -> None:
        page = bytes(4096)
        with self.rest.open("wb", buffering=0) as file, pytest.raises(OSError, match="No space"):
            file.writelines([page] * (2 * _DISK // len(page)))

    def empty(self) -> None:
        self.rest.unlink()


def _run(address: str, command: str) -> None:
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute(command.encode())


@pytest.fixture
def server() -> Iterator[Any]:
    with TemporaryDirectory(prefix="heldout-pg-") as folder:
        started = start_postgres(Path(folder))
        yield started
        started.cleanup()


@pytest.fixture
def mounted() -> Iterator[Path]:
    """An empty disk of half a megabyte."""
    mount = shutil.which("mount")
    if os.geteuid() != 0 or mount is None:
        pytest.skip("to mount a small disk takes root")
    with TemporaryDirectory(prefix="heldout-disk-") as folder:
        asked = [mount, "-t", "tmpfs", "-o", f"size={_DISK},mode=755", "tmpfs", folder]
        if subprocess.run(asked, check=False, capture_output=True).returncode:
            pytest.skip("root may not mount here")
        try:
            yield Path(folder)
        finally:
            subprocess.run(["umount", "--lazy", folder], check=True)


@pytest.fixture
def stage(server: Any, tmp_path: Path) -> Iterator[Stage]:
    with Stages(tmp_path) as stages:
        yield stages.make(url=server.get_uri())


def fill_and_go_on(one: Stage, disk: Disk) -> None:
    """Answers until nothing more fits; what was acknowledged is there, and the rest comes later."""
    root = one.begin()
    assert one.answer(root, 1).status_code == 303
    disk.fill()
    taken, answer = _answer_until_full(one, lambda n: one.answer(root, 2, "ab"[n % 2]))
    assert answer.status_code == 503
    assert answer.headers["retry-after"]
    assert "Not saved yet" in words_of(answer)
    kept = fields_of(answer)
    assert kept["choice"] == "ab"[taken % 2]
    assert len(one.judgments()) == 1 + taken
    assert one.post(f"{root}/item/2", kept).status_code == 503
    disk.empty()
    assert one.post(f"{root}/item/2", kept).headers["location"] == f"{root}/item/3"
    assert len(one.judgments()) == 2 + taken
    assert "Done" in words_of(one.finish(root, 4))


def _answer_until_full(one: Stage, answer: Callable[[int], Any]) -> tuple[int, Any]:
    """How many were taken, and the first that was not."""
    for taken in range(1_000):
        last = answer(taken)
        if last.status_code != 303:
            return taken, last
    raise AssertionError(one)


def test_a_server_that_says_its_disk_is_full_keeps_the_choice(server: Any, stage: Stage) -> None:
    fill_and_go_on(stage, ToldFull(server.get_uri()))


def test_a_disk_that_is_full_keeps_the_choice(server: Any, stage: Stage, mounted: Path) -> None:
    fill_and_go_on(stage, SmallDisk(server.get_uri(), mounted))
