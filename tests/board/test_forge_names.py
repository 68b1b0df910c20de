"""A team's new name on a hosted forge: the request that asks for it is answered once."""

import json
import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from forge_server import PROJECTS, TOKEN, Fault, Forge, Kind, Request, says, serve

from heldout.board.rules.spec_file import parse_spec
from heldout.cli.program import main

pytestmark = pytest.mark.slow
DAY = "2026-11-02T10:00:00Z"
AT = "2026-11-02T10:00:00Z"
REFS: dict[Kind, str] = {"github": "refs/pull/{}/head", "gitlab": "refs/merge-requests/{}/head"}
TEAM = {
    "team": "Lighthouse Retrieval",
    "institution": "Lighthouse College",
    "model_description": "BM25, then a cross-encoder over the first hundred documents",
    "training_data": "the public training set",
}
RENAMED = {"team": "Foghorn Ensemble"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Harbour:
    """A board on a forge, with an entry of request 9 whose team asks in request 10 for a name."""

    root: Path
    server: Forge
    entry: str

    def decide(self, *arguments: str) -> Any:
        name, *told = arguments
        vault = ("--vault", self.root / "vault")
        return call(self.root, name, self.entry, *told, *vault, board="board")

    def status(self) -> tuple[dict[str, str] | None, str]:
        """What the team reads of its new name, and of what it sent last."""
        git(self.root / "board", "push", "-q", "origin", "main")
        (row,) = call(self.root, "status", self.entry, board="clone")["submissions"]
        proposal = row["proposal"]
        if proposal is not None:
            assert list(proposal.pop("files")) == [f"{self.entry}-metadata.json.age"]
        return proposal, row["update"]

    @property
    def request(self) -> Request:
        return self.server.requests[10]


def call(root: Path, *arguments: str | Path, board: str) -> Any:
    """Call heldout in process; gives the JSON that it says."""
    clean = dict.fromkeys((k for k in os.environ if k.startswith(("GIT_", "HELDOUT_"))), None)
    env = {**clean, "HOME": str(root), "HELDOUT_FORGE_TOKEN": TOKEN}
    told = (*arguments, "--board", root / board, "--now", DAY, "--json")
    result = CliRunner(env=env).invoke(main, [str(one) for one in told])
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def git(folder: Path, *arguments: str) -> str:
    result = subprocess.run(["git", *arguments], cwd=folder, capture_output=True, check=True)
    return result.stdout.decode().strip()


def fill(root: Path, submission: str, **fields: str) -> None:
    file = root / "clone" / ".git/heldout/drafts" / submission / "metadata.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), **fields}))


def open_request(root: Path, server: Forge, number: int, submission: str) -> None:
    """Turn the branch that a command has pushed into a request."""
    branch = f"refs/heads/submission/{submission}"
    sha = git(root / "bare", "rev-parse", branch)
    git(root / "bare", "update-ref", "-d", branch)
    git(root / "bare", "update-ref", REFS[server.kind].format(number), sha)
    git(root / "bare", "update-server-info")
    server.add(number, sha)


def create_board(root: Path, server: Forge) -> None:
    (root / ".gitconfig").write_text("[user]\n\tname = x\n\temail = x@x\n")
    (root / "queries.tsv").write_text("q1\ta question\n")
    (root / "labels.qrels").write_text("q1 0 d1 1\n")
    (root / "eval.run").write_text("q1\td1\t1\nq1\td2\t2\n")
    sets = ("--eval", root / "queries.tsv", root / "labels.qrels")
    command = ("board", "new", root / "board", "--vault", root / "vault", *sets, "--now", DAY)
    runner = CliRunner(env={"HOME": str(root)})
    assert runner.invoke(main, [str(one) for one in command]).exit_code == 0
    with (root / "board" / "board.toml").open("a") as file:
        file.write(f'\n[forge]\nkind = "{server.kind}"\nurl = "{server.url}"\n')
        file.write(f'project = "{PROJECTS[server.kind]}"\n')
    call(root, "rebuild", "--accept-rules", "--vault", root / "vault", board="board")
    git(root, "init", "-q", "--bare", "-b", "main", "bare")
    git(root / "board", "remote", "add", "origin", str(root / "bare"))
    git(root / "board", "push", "-q", "origin", "main")
    git(root, "clone", "-q", "bare", "clone")
    server.repository = root / "bare"


def receive(root: Path) -> list[tuple[str, str]]:
    forge = parse_spec((root / "board" / "board.toml").read_bytes()).forge
    assert forge is not None
    told = ("inbox", "--token-host", forge.host, "--vault", root / "vault")
    received = call(root, *told, board="board")["received"]
    return [(receipt["source"], receipt["kind"]) for receipt in received]


@pytest.fixture(params=list(REFS))
def harbour(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Harbour]:
    monkeypatch.setenv("HOME", str(tmp_path))
    with serve(request.param) as server:
        create_board(tmp_path, server)
        run = ("--eval", tmp_path / "eval.run")
        entry = str(call(tmp_path, "draft", "one", *run, board="clone")["id"])
        fill(tmp_path, entry, **TEAM)
        call(tmp_path, "submit", entry, board="clone")
        open_request(tmp_path, server, 9, entry)
        assert receive(tmp_path) == [("pull request 9", "received")]
        found = Harbour(root=tmp_path, server=server, entry=entry)
        found.decide("publish", "--yes", "--why", "a test")
        git(tmp_path / "board", "push", "-q", "origin", "main")
        fill(tmp_path, entry, **RENAMED)
        call(tmp_path, "amend", entry, board="clone")
        open_request(tmp_path, server, 10, entry)
        assert receive(tmp_path) == [("pull request 10", "proposed")]
        yield found


def test_a_name_that_is_approved_is_told_once_where_it_was_asked_for(harbour: Harbour) -> None:
    before = list(harbour.server.requests[9].comments)
    assert harbour.status() == ({"state": "waits", "at": AT, "why": ""}, "")
    (decision,) = harbour.decide("publish", "--yes", "--why", "our own doubts")["decisions"]
    assert decision["kind"] == "amended"
    (comment,) = harbour.request.comments
    assert f"`{harbour.entry}` has the name that its team asked for" in comment
    assert not any(hidden in comment for hidden in ("doubts", "Foghorn", "Lighthouse", "Scores"))
    assert (harbour.request.labels, harbour.request.state) == (["heldout: amended"], "closed")
    harbour.decide("publish", "--yes")
    assert len(harbour.request.comments) == 1
    assert harbour.server.requests[9].comments == before
    assert harbour.status() == (None, "")


def test_a_name_that_is_refused_is_told_once_with_the_reason(harbour: Harbour) -> None:
    path = "notes" if harbour.server.kind == "gitlab" else "comments"
    harbour.server.faults.append(Fault(act=says(422, "no"), method="POST", path=path))
    (decision,) = harbour.decide("reject", "--why", "who are they?")["decisions"]
    assert (decision["kind"], harbour.request.comments) == ("declined", [])
    for _ in range(2):  # what the forge missed comes with the next call, and then no more
        harbour.decide("publish", "--yes")
        (comment,) = harbour.request.comments
        assert f"`{harbour.entry}` has its old name" in comment
        assert "The organisers' reason: `who are they?`" in comment
        assert (harbour.request.labels, harbour.request.state) == (["heldout: declined"], "closed")
    assert harbour.server.requests[9].labels == ["heldout: published"]
    assert harbour.status() == ({"state": "declined", "at": AT, "why": "who are they?"}, "")
