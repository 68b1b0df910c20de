"""A small intake for tests: a database of each engine, a folder, teams, and uploads in one call.

A test module takes the fixture it needs: `database = intake_stage.database`.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from databases import ENGINES, new_url, wiped
from heldout.board.store.arrivals import is_team
from heldout.board.store.uploads import DELIVERY, FileLimits, UploadFolder
from heldout.database.database import Database
from heldout.ids import digest_bytes
from heldout.intake import uploads
from heldout.intake.quota import Quota
from heldout.intake.tables import INTAKE
from heldout.intake.teams import Team, accept_invitation, create_invitation
from heldout.intake.worker import DueWorker

NOW = datetime(2026, 11, 23, 12, tzinfo=UTC)
ENDINGS = (".tar.age", "-metadata.json.age", ".key.age")


@dataclass(slots=True)
class Clock:
    """A clock that stands still until it is moved."""

    now: datetime = NOW

    def __call__(self) -> datetime:
        return self.now

    def move(self, by: timedelta) -> None:
        self.now += by


@dataclass(slots=True)
class Stage:
    """An intake over a database, with what its tests do again and again."""

    store: uploads.UploadStore
    clock: Clock = field(default_factory=Clock)
    address: str = ""

    @property
    def database(self) -> Database:
        return self.store.database

    def team(self, name: str, *, mail: str = "") -> Team:
        _, secret = create_invitation(self.database, note="", now=self.clock())
        return accept_invitation(self.database, secret, name=name, mail=mail, now=self.clock())

    def begin(
        self, team: Team, files: Mapping[str, bytes], *, quota: Quota | None = None
    ) -> uploads.Upload:
        return uploads.begin_upload(
            self.store,
            team.id,
            declared(files),
            address=self.address,
            quota=quota,
            now=self.clock(),
        )

    def send(self, upload: uploads.Upload, name: str, data: bytes, *, offset: int = 0) -> None:
        opened = uploads.open_part(
            self.store, upload.team, upload.id, name, offset=offset, clock=self.clock
        )
        with opened as part:
            part.write(data)

    def fill(self, upload: uploads.Upload, files: Mapping[str, bytes]) -> None:
        for name, data in files.items():
            self.send(upload, name, data)

    def complete(self, upload: uploads.Upload, *, quota: Quota | None = None) -> uploads.Upload:
        return uploads.complete_upload(
            self.store, upload.team, upload.id, quota=quota, now=self.clock()
        )

    def upload(
        self, team: Team, files: Mapping[str, bytes], *, quota: Quota | None = None
    ) -> uploads.Upload:
        begun = self.begin(team, files, quota=quota)
        self.fill(begun, files)
        return self.complete(begun, quota=quota)

    def worker(self) -> DueWorker:
        return DueWorker(store=self.store, clock=self.clock)

    def work(self) -> None:
        """Do all that is due."""
        self.worker().work()

    def delivered(self) -> list[str]:
        """The submissions that the inbox would find, one for each delivery."""
        folders = self.store.folder.path.glob(f"{DELIVERY}*")
        return sorted(
            next(p.name for p in one.iterdir() if p.name.endswith(ENDINGS[0])).removesuffix(
                ENDINGS[0]
            )
            for one in folders
        )


def declared(files: Mapping[str, bytes]) -> Sequence[uploads.UploadFile]:
    return [
        uploads.UploadFile(name=name, size=len(data), digest=digest_bytes(data))
        for name, data in files.items()
    ]


def files_of(name: str, *, size: int = 100) -> dict[str, bytes]:
    """The three files of a submission, each with other bytes."""
    return {
        f"20261123-{name}{ending}": hashlib.shake_256((name + ending).encode()).digest(size)
        for ending in ENDINGS
    }


def make_stage(
    database: Database,
    folder: Path,
    *,
    limits: uploads.IntakeLimits | None = None,
    of_files: FileLimits | None = None,
) -> Stage:
    received = folder / "received"
    received.mkdir(exist_ok=True)
    store = uploads.UploadStore(
        database=database,
        parts=folder / "parts",
        folder=UploadFolder(
            path=received, endings=ENDINGS, is_team=is_team, limits=of_files or FileLimits()
        ),
        limits=limits or uploads.IntakeLimits(free_bytes=0),
    )
    return Stage(store=store)


@pytest.fixture(params=ENGINES)
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of an empty database, of each engine in turn."""
    return new_url(request.param, tmp_path)


@pytest.fixture(params=ENGINES)
def database(request: pytest.FixtureRequest) -> Database:
    """An open intake without a row, of each engine in turn."""
    return wiped(request.param, INTAKE)


@pytest.fixture
def stage(database: Database, tmp_path: Path) -> Stage:
    """An intake in folders of its own, on each engine in turn."""
    return make_stage(database, tmp_path)


@pytest.fixture
def team(stage: Stage) -> Team:
    """One of its teams."""
    return stage.team("Harbor")
