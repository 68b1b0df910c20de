"""A small board's pages for teams over real HTTP, with a clock that stands still."""

import atexit
import functools
import hashlib
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx2
import pytest
from click.testing import CliRunner
from judging_stage import Clock, Stages

from heldout.board.store.arrivals import is_team
from heldout.board.store.uploads import FileLimits
from heldout.cli.program import main
from heldout.envelope.bundle import file_names
from heldout.ids import SubmissionId
from heldout.intake.app import intake_database, make_intake, make_intake_app
from heldout.intake.service import Intake
from heldout.intake.teams import Team, create_invitation
from heldout.intake.uploads import IntakeLimits

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
ENDINGS = file_names("age", SubmissionId("")).all
ONE = "20261121-lighthouse"
TEAM = "Lighthouse Retrieval Group"


@functools.cache
def _template() -> Path:
    """A board of three queries that was made once: its folder, beside that of its vault."""
    root = Path(tempfile.mkdtemp(prefix="heldout-intake-"))
    atexit.register(shutil.rmtree, root, ignore_errors=True)
    told: list[str] = []
    for name in ("dev", "eval"):
        (root / f"{name}.tsv").write_text("".join(f"{name}{i}\tthing {i}\n" for i in range(3)))
        (root / f"{name}.qrels").write_text("".join(f"{name}{i} 0 d{i} 1\n" for i in range(3)))
        told += [f"--{name}", str(root / f"{name}.tsv"), str(root / f"{name}.qrels")]
    opened = ["--vault", str(root / "vault"), *told, "--now", "2026-11-01T09:00:00Z"]
    made = CliRunner().invoke(main, ["board", "new", str(root / "board"), *opened])
    assert made.exit_code == 0, made.output
    return root


def make_board(folder: Path) -> Path:
    """A copy of a small board's public folder, which is no git repository."""
    board = folder / "board"
    shutil.copytree(_template() / "board", board, ignore=shutil.ignore_patterns(".git"))
    return board


def files_of(name: str = ONE, size: int = 10) -> dict[str, bytes]:
    """Three files as `heldout pack` names them; nothing here can be opened."""
    sizes = {ENDINGS[0]: size}  # metadata and keys are small
    return {
        f"{name}{end}": end.encode() + b"x" * sizes.get(end, min(size, 1000)) for end in ENDINGS
    }


def parts(files: dict[str, bytes]) -> list[tuple[str, tuple[str, bytes]]]:
    return [("files", item) for item in files.items()]


def declared(files: dict[str, bytes]) -> dict[str, Any]:
    """What an upload of these files begins with."""
    return {
        "files": [
            {"name": name, "bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
            for name, data in files.items()
        ]
    }


@dataclass
class Place:
    """A board's pages for teams, and somebody who calls them.

    `client` has no token; `as_team` gives one that has.
    """

    intake: Intake
    url: str
    clock: Clock
    board: Path
    uploads: Path
    client: httpx2.Client
    ends: ExitStack

    def invite(self, **told: Any) -> str:
        """The address of an invitation's page."""
        told = {"note": "", "now": self.clock(), **told}
        _, secret = create_invitation(self.intake.store.database, **told)
        return f"/join/{secret}"

    def join(self, name: str = TEAM, mail: str = "") -> tuple[Team, str]:
        """A team, and its token."""
        secret = self.invite().removeprefix("/join/")
        return self.intake.join(secret, name=name, mail=mail)

    def as_team(self, token: str) -> httpx2.Client:
        """A client with a team's token."""
        headers = {"authorization": f"Bearer {token}"}
        client = httpx2.Client(base_url=self.url, headers=headers, timeout=20, trust_env=False)
        return self.ends.enter_context(client)

    def browser(self) -> httpx2.Client:
        """A client with a jar of cookies of its own."""
        client = httpx2.Client(base_url=self.url, timeout=20, trust_env=False)
        return self.ends.enter_context(client)

    def delivered(self) -> dict[str, bytes]:
        """What lies there for the inbox."""
        found = self.uploads.glob("delivery-*/*")
        return {path.name: path.read_bytes() for path in sorted(found)}


def send(team: httpx2.Client, files: dict[str, bytes]) -> httpx2.Response:
    """A whole upload by the API; the answer to its end, or to the first refusal."""
    begun = team.post("/api/v1/uploads", json=declared(files))
    if not begun.is_success or begun.json()["state"] != "open":
        return begun
    path = f"/api/v1/uploads/{begun.json()['id']}"
    for name, data in files.items():
        answer = team.patch(f"{path}/files/{name}", params={"offset": 0}, content=data)
        if not answer.is_success:
            return answer
    return team.post(f"{path}/finish")


MakePlace = Callable[..., Place]


@pytest.fixture
def make_place(tmp_path: Path) -> Iterator[MakePlace]:
    """Makes places in a folder of the test's own; a module takes it by name."""
    with Stages(tmp_path) as stages, ExitStack() as ends:

        def make(board: Path | None = None, file_bytes: int = 1 << 20, **told: Any) -> Place:
            board = board or make_board(tmp_path)
            uploads = tmp_path / "uploads"
            uploads.mkdir()
            database = intake_database(uploads, "")
            ends.callback(database.close)
            clock = Clock(NOW)
            intake = make_intake(
                database,
                board=board,
                uploads=uploads,
                endings=ENDINGS,
                is_team=is_team,
                key=b"k" * 32,
                clock=clock,
                **{
                    "root": "https://board.example",
                    "limits": FileLimits(file_bytes=file_bytes),
                    "most": IntakeLimits(free_bytes=0),
                    **told,
                },
            )
            url = stages.serve(make_intake_app(intake))
            client = ends.enter_context(httpx2.Client(base_url=url, timeout=20, trust_env=False))
            return Place(intake, url, clock, board, uploads, client, ends)

        yield make


@pytest.fixture
def place(make_place: MakePlace) -> Place:
    """One place; a module takes it by name."""
    return make_place()
