"""Sealed files from forges: by git with a token that leaves no trace, from folders, branches."""

import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx2
import pytest
from certain import sure
from forge_server import PROJECTS, TOKEN, Fault, Forge, Kind, says, serve

from heldout.board.rules.spec import ForgeSpec
from heldout.board.store.fetching import fetch_arrivals
from heldout.board.store.forges import Forge as ForgeProtocol
from heldout.board.store.forges import Handle, Surroundings, git_environment, open_forge
from heldout.board.store.git import Author, Git
from heldout.errors import InputError, StoreError
from heldout.ids import SubmissionId, digest_bytes

AT = datetime(2026, 11, 2, 10, tzinfo=UTC)
SOMEONE = Author(name="Someone", email="someone@here")
ONE, TWO = SubmissionId("20261102-one"), SubmissionId("20261103-two")
EVENT = digest_bytes(b"an event")


def run(folder: Path, *arguments: str) -> str:
    result = subprocess.run(["git", *arguments], cwd=folder, capture_output=True, check=True)
    return result.stdout.decode().strip()


def sealed(submission: str) -> dict[str, bytes]:
    names = (f"{submission}.tar.age", f"{submission}-metadata.json.age", f"{submission}.key.age")
    return {f"submissions/{name}": name.encode() for name in names}


@pytest.fixture
def board(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Git:
    """A board with one commit, and a bare repository beside it that has it too."""
    monkeypatch.setenv("HOME", str(tmp_path))
    git = Git(tmp_path / "board")
    git.root.mkdir()
    git.init()
    (git.root / "README.md").write_text("a board")
    git.commit_paths(["README.md"], message="x", author=SOMEONE, at=AT)
    run(tmp_path, "init", "-q", "--bare", "-b", "main", "bare")
    git.push(str(tmp_path / "bare"), "main:main")
    return git


@pytest.fixture
def bare(tmp_path: Path) -> Path:
    return tmp_path / "bare"


def send(board: Git, bare: Path, ref: str, files: dict[str, bytes]) -> str:
    """Put a commit with these files on a ref of the bare repository, and nowhere else."""
    tip = board.commit_on("work", "main", files, message="m", author=SOMEONE, at=AT)
    board.push(str(bare), f"+{tip}:{ref}")
    run(board.root, "branch", "-q", "-D", "work")
    run(bare, "update-server-info")
    return tip


def connect(
    board: Git, kind: str, url: str, client: httpx2.Client, project: str = ""
) -> ForgeProtocol:
    spec = ForgeSpec(kind=kind, url=url, project=project)  # type: ignore[arg-type]
    world = Surroundings(
        client=client,
        environ={"HELDOUT_FORGE_TOKEN": TOKEN},
        clock=lambda: 0.0,
        sleep=lambda _: None,
        token_host=spec.host,
    )
    return open_forge(spec, board, "age", main=board.head() or "", world=world)


@pytest.fixture(scope="module")
def client() -> Iterator[httpx2.Client]:
    with httpx2.Client(timeout=20, trust_env=False) as client:
        yield client


# hosted

REFS: dict[Kind, str] = {
    "github": "refs/pull/{}/head",
    "forgejo": "refs/pull/{}/head",
    "gitlab": "refs/merge-requests/{}/head",
}


@dataclass(frozen=True)
class Hosting:
    """A board on a hosted forge, and the bare repository behind it."""

    board: Git
    bare: Path
    server: Forge
    client: httpx2.Client

    def request(self, number: int, files: dict[str, bytes], **more: Any) -> None:
        ref = REFS[self.server.kind].format(number)
        self.server.add(number, send(self.board, self.bare, ref, files), **more)

    def forge(self) -> ForgeProtocol:
        kind = self.server.kind
        return connect(self.board, kind, self.server.url, self.client, PROJECTS[kind])


@pytest.fixture(params=list(REFS))
def hosting(
    request: pytest.FixtureRequest, board: Git, bare: Path, client: httpx2.Client
) -> Iterator[Hosting]:
    with serve(request.param) as server:
        server.repository = bare
        yield Hosting(board, bare, server, client)


def test_open_requests_are_data(hosting: Hosting) -> None:
    hosting.request(1, sealed(ONE))
    hosting.request(2, {"evil.py": b"import os"}, title="$(id)")
    hosting.request(3, sealed(TWO), state="closed")
    forge = hosting.forge()
    honest, hostile = forge.fetch()
    assert (honest.id, honest.problems) == (ONE, ())
    assert sorted(honest.read()) == sorted(name.partition("/")[2] for name in sealed(ONE))
    assert forge.locate(honest.source, ONE) == "1"
    assert [problem.code for problem in hostile.problems] == ["foreign-change"]
    assert sorted(path.name for path in hosting.board.root.iterdir()) == [".git", "README.md"]


def test_a_branch_has_its_request(hosting: Hosting) -> None:
    board, bare, server = hosting.board, hosting.bare, hosting.server
    tip = send(board, bare, f"refs/heads/submission/{ONE}", sealed(ONE))
    server.add(4, "a" * 40)
    server.add(5, tip)
    run(board.root, "remote", "add", "origin", str(bare))
    fetch_arrivals(board, {"origin": "origin"}, "age")
    run(board.root, "update-ref", f"refs/heads/submission/{ONE}", tip)
    run(bare, "update-ref", REFS[server.kind].format(5), tip)
    run(bare, "update-server-info")
    forge = hosting.forge()
    assert [arrival.source for arrival in forge.fetch()] == ["pull request 5"]
    assert forge.locate(f"branch submission/{ONE}", ONE) == "5"
    assert forge.locate(f"branch submission/{TWO}", TWO) is None
    assert forge.locate(f"branch submission/{ONE}", TWO) is None


def test_a_copy_comes_later(hosting: Hosting) -> None:
    """By number: as text, 10 comes before 9."""
    for number, files in ((9, sealed(ONE)), (10, sealed(ONE)), (11, sealed(TWO))):
        hosting.request(number, files)
    forge = hosting.forge()
    assert [arrival.source for arrival in forge.fetch()] == ["pull request 9", "pull request 11"]
    copies = {"9": ("9", "10"), "11": ("11",), "12": ("12",)}
    assert {one: forge.copies(Handle(one)) for one in copies} == copies


def test_the_token_stays_nowhere(hosting: Hosting) -> None:
    hosting.request(1, sealed(ONE))
    hosting.forge().fetch()
    root = hosting.board.root
    login = git_environment(TOKEN, "x")["GIT_CONFIG_VALUE_0"].split()[-1]
    files = [path.read_bytes() for path in root.rglob("*") if path.is_file()]
    assert len(files) > 10
    assert not any(secret.encode() in data for secret in (TOKEN, login) for data in files)
    assert "http" not in run(root, "config", "--local", "--list")


def test_the_token_is_on_no_command_line(hosting: Hosting, monkeypatch: pytest.MonkeyPatch) -> None:
    """A git on the PATH that writes down how it was called, then calls the true one."""
    hosting.request(1, sealed(ONE))
    true_git = run(hosting.board.root, "--exec-path") + "/git"
    folder, server = hosting.bare.parent, hosting.server
    spy = folder / "bin" / "git"
    spy.parent.mkdir()
    spy.write_text(f'#!/bin/sh\necho "$@" >> {folder}/calls\nexec {true_git} "$@"\n')
    spy.chmod(0o755)
    monkeypatch.setenv("PATH", f"{spy.parent}:{os.environ['PATH']}")
    assert len(hosting.forge().fetch()) == 1
    calls = (folder / "calls").read_text()
    assert f"{server.url}/{PROJECTS[server.kind]}.git" in calls
    assert TOKEN not in calls
    assert "Authorization" not in calls


def test_git_follows_no_redirect(hosting: Hosting) -> None:
    with serve("github") as evil:
        moved = says(301, "moved", {"Location": f"{evil.url}/x.git/info/refs"})
        hosting.server.faults.append(Fault(act=moved, path=".git/", times=99))
        with pytest.raises(StoreError, match="git ls-remote failed") as caught:
            hosting.forge().fetch()
        assert evil.seen == []
    assert TOKEN not in str(caught.value)


def test_without_a_token_git_gets_nothing() -> None:
    assert git_environment("", "https://host/x.git") == {}


# a folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "uploads"
    folder.mkdir()
    for name, data in (sealed(ONE) | sealed(TWO)).items():
        (folder / name.partition("/")[2]).write_bytes(data)
    return folder


def test_a_folder_is_fetched_and_answered(board: Git, folder: Path, client: httpx2.Client) -> None:
    forge = connect(board, "folder", "../uploads", client)
    arrivals = forge.fetch()
    assert [(a.id, a.problems) for a in arrivals] == [(ONE, ()), (TWO, ())]
    handle = sure(forge.locate(arrivals[0].source, ONE))
    assert forge.comment(handle, "Received.\n", event=EVENT) == "done"
    reply = folder / f"{ONE}.reply.txt"
    assert reply.read_text() == f"Received.\n\n<!-- heldout {EVENT} -->\n"
    assert forge.comment(handle, "Received.\n", event=EVENT) == "known"
    assert forge.comment(handle, "Published.", event=digest_bytes(b"another")) == "done"
    assert reply.read_text().count("heldout") == 2
    assert reply.read_text().startswith("Received.\n")
    assert len(forge.fetch()) == 2


def test_a_folder_closes_nothing(board: Git, folder: Path, client: httpx2.Client) -> None:
    before = sorted(path.name for path in folder.iterdir())
    forge = connect(board, "folder", str(folder), client)
    outcomes = {forge.close(Handle(ONE)), forge.label(Handle(ONE), "published")}
    assert outcomes == {"nowhere"}
    assert sorted(path.name for path in folder.iterdir()) == before


def test_a_reply_that_is_a_link_elsewhere_leaves_its_target_alone(
    board: Git, folder: Path, client: httpx2.Client, tmp_path: Path
) -> None:
    target = tmp_path / "precious"
    target.write_text("as it was")
    (folder / f"{ONE}.reply.txt").symlink_to(target)
    os.mkfifo(folder / f"{TWO}.reply.txt")
    forge = connect(board, "folder", str(folder), client)
    for submission in (ONE, TWO):
        assert forge.comment(Handle(submission), "Hello", event=EVENT) == "done"
        assert (folder / f"{submission}.reply.txt").read_text().startswith("Hello")
    assert target.read_text() == "as it was"


@pytest.mark.parametrize("handle", ["../../evil", "20261102-../x", "/etc/passwd", ""])
def test_a_reply_stays_inside(board: Git, folder: Path, client: httpx2.Client, handle: str) -> None:
    with pytest.raises(InputError, match="submission-id"):
        connect(board, "folder", str(folder), client).comment(Handle(handle), "x", event=EVENT)


def test_a_folder_that_is_not_there_is_told(board: Git, client: httpx2.Client) -> None:
    with pytest.raises(StoreError, match="is not a folder"):
        connect(board, "folder", "../nothing", client).fetch()


# a bare repository


def test_a_bare_repository_is_fetched(board: Git, bare: Path, client: httpx2.Client) -> None:
    send(board, bare, f"refs/heads/submission/{ONE}", sealed(ONE))
    send(board, bare, "refs/heads/submission/no-id", {"x": b"x"})
    send(board, bare, "refs/heads/other", sealed(TWO))
    forge = connect(board, "git", "../bare", client)
    honest = next(arrival for arrival in forge.fetch() if arrival.id == ONE)
    assert honest.problems == ()
    assert forge.locate(honest.source, ONE) == Handle(ONE)
    assert forge.locate("a folder", ONE) is None
    done = (forge.comment(Handle(ONE), "x", event=EVENT), forge.close(Handle(ONE)))
    outcomes = {*done, forge.label(Handle(ONE), "published")}
    assert outcomes == {"nowhere"}


def test_a_command_for_a_repository(board: Git, client: httpx2.Client, tmp_path: Path) -> None:
    forge = connect(board, "git", f"ext::touch {tmp_path}/evil", client)
    with pytest.raises(StoreError, match="git ls-remote failed"):
        forge.fetch()
    assert not (tmp_path / "evil").exists()
