"""What a team asks for on a hosted forge is answered once: a new name, or a registration."""

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from forge_server import PROJECTS, TOKEN, Fault, Forge, Request, says, serve

from heldout.cli.program import main

pytestmark = pytest.mark.slow
DAY = "2026-11-02T10:00:00Z"
TEAM = {
    "team": "Lighthouse Retrieval",
    "institution": "Lighthouse College",
    "model_description": "BM25, then a cross-encoder over the first hundred documents",
    "training_data": "the public training set",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Harbour:
    """A board, its vault, a bare repository that everybody knows, and the forge in front of it."""

    root: Path
    server: Forge
    entry: str = ""

    def call(self, *arguments: str | Path, board: str = "board") -> Any:
        """Call heldout in process; gives the JSON that it says."""
        clean = dict.fromkeys((k for k in os.environ if k.startswith(("GIT_", "HELDOUT_"))), None)
        env = {**clean, "HOME": str(self.root), "HELDOUT_FORGE_TOKEN": TOKEN}
        told = (*arguments, "--board", self.root / board, "--now", DAY, "--json")
        result = CliRunner(env=env).invoke(main, [str(one) for one in told])
        assert result.exit_code == 0, result.output
        return json.loads(result.stdout)

    def inbox(self) -> list[tuple[str, str]]:
        """Source and kind of what was received."""
        told = ("inbox", "--token-host", self.server.url, "--vault", self.root / "vault")
        received = self.call(*told)["received"]
        return [(receipt["source"], receipt["kind"]) for receipt in received]

    def open_request(self, number: int, branch: str, **more: Any) -> None:
        """Turn the branch that a command has pushed into a request."""
        ref, bare = f"refs/heads/{branch}", self.root / "bare"
        self.show(number, git(bare, "rev-parse", ref), **more)
        git(bare, "update-ref", "-d", ref)

    def show(self, number: int, sha: str, **more: Any) -> None:
        git(self.root / "bare", "update-ref", f"refs/pull/{number}/head", sha)
        git(self.root / "bare", "update-server-info")
        self.server.add(number, sha, **more)

    def register(self, number: int, team: str, **more: Any) -> None:
        """A team registers in a clone of its own, and opens a request instead of a branch."""
        clone = f"clone{number}"
        git(self.root, "clone", "-q", "bare", clone)
        handle = self.call("register", "--team", team, board=clone)["team"]
        self.open_request(number, f"registration/{handle}", **more)

    def registered(self) -> int:
        return (self.root / "vault" / "events.jsonl").read_text().count('"kind":"registered"')

    def decide(self, *arguments: str) -> Any:
        name, *told = arguments
        return self.call(name, self.entry, *told, "--vault", self.root / "vault")

    def status(self) -> tuple[dict[str, str] | None, str]:
        """What the team reads of its new name, and of what it sent last."""
        git(self.root / "board", "push", "-q", "origin", "main")
        (row,) = self.call("status", self.entry, board="clone")["submissions"]
        proposal = row["proposal"]
        if proposal is not None:
            assert list(proposal.pop("files")) == [f"{self.entry}-metadata.json.age"]
        return proposal, row["update"]

    def fill(self, **fields: str) -> None:
        file = self.root / "clone" / ".git/heldout/drafts" / self.entry / "metadata.json"
        file.write_text(json.dumps({**json.loads(file.read_text()), **fields}))

    def fail_once(self) -> None:
        """Let the forge refuse the next comment."""
        self.server.faults.append(Fault(act=says(422, "no"), method="POST", path="comments"))

    @property
    def request(self) -> Request:
        return self.server.requests[10]


def git(folder: Path, *arguments: str) -> str:
    result = subprocess.run(["git", *arguments], cwd=folder, capture_output=True, check=True)
    return result.stdout.decode().strip()


@pytest.fixture
def make(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], Harbour]]:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".gitconfig").write_text("[user]\n\tname = x\n\temail = x@x\n")
    (tmp_path / "queries.tsv").write_text("q1\ta question\n")
    (tmp_path / "labels.qrels").write_text("q1 0 d1 1\n")
    (tmp_path / "eval.run").write_text("q1\td1\t1\nq1\td2\t2\n")
    with serve("github") as server:

        def found(rules: str) -> Harbour:
            harbour = Harbour(root=tmp_path, server=server)
            sets = ("--eval", tmp_path / "queries.tsv", tmp_path / "labels.qrels")
            told = ("board", "new", tmp_path / "board", "--vault", tmp_path / "vault", *sets)
            runner = CliRunner(env={"HOME": str(tmp_path)})
            assert runner.invoke(main, [*map(str, told), "--now", DAY]).exit_code == 0
            with (tmp_path / "board" / "board.toml").open("a") as file:
                file.write(f'\n[forge]\nkind = "{server.kind}"\nurl = "{server.url}"\n')
                file.write(f'project = "{PROJECTS[server.kind]}"\n{rules}')
            harbour.call("rebuild", "--accept-rules", "--vault", tmp_path / "vault")
            git(tmp_path, "init", "-q", "--bare", "-b", "main", "bare")
            git(tmp_path / "board", "remote", "add", "origin", str(tmp_path / "bare"))
            git(tmp_path / "board", "push", "-q", "origin", "main")
            server.repository = tmp_path / "bare"
            return harbour

        yield found


@pytest.fixture
def harbour(make: Callable[[str], Harbour]) -> Harbour:
    """With an entry of request 9 whose team asks in request 10 for a name."""
    empty = make("")
    git(empty.root, "clone", "-q", "bare", "clone")
    run = ("--eval", empty.root / "eval.run")
    entry = str(empty.call("draft", "one", *run, board="clone")["id"])
    found = Harbour(root=empty.root, server=empty.server, entry=entry)
    for number, command, names, kind in (
        (9, "submit", TEAM, "received"),
        (10, "amend", {"team": "Foghorn Ensemble"}, "proposed"),
    ):
        found.fill(**names)
        found.call(command, entry, board="clone")
        found.open_request(number, f"submission/{entry}")
        assert found.inbox() == [(f"pull request {number}", kind)]
        if command == "submit":
            found.decide("publish", "--yes", "--why", "a test")
            git(found.root / "board", "push", "-q", "origin", "main")
    return found


@pytest.fixture
def place(make: Callable[[str], Harbour]) -> Harbour:
    """Where teams register."""
    return make("\n[registration]\n")


def test_a_name_that_is_approved_is_told_once_where_it_was_asked_for(harbour: Harbour) -> None:
    before = list(harbour.server.requests[9].comments)
    assert harbour.status() == ({"state": "waits", "at": DAY, "why": ""}, "")
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
    harbour.fail_once()
    (decision,) = harbour.decide("reject", "--why", "who are they?")["decisions"]
    assert (decision["kind"], harbour.request.comments) == ("declined", [])
    for _ in range(2):  # what the forge missed comes with the next call, and then no more
        harbour.decide("publish", "--yes")
        (comment,) = harbour.request.comments
        assert f"`{harbour.entry}` has its old name" in comment
        assert "The organisers' reason: `who are they?`" in comment
        assert (harbour.request.labels, harbour.request.state) == (["heldout: declined"], "closed")
    assert harbour.server.requests[9].labels == ["heldout: published"]
    assert harbour.status() == ({"state": "declined", "at": DAY, "why": "who are they?"}, "")


def test_an_open_registration_is_answered_once_a_closed_one_is_not(place: Harbour) -> None:
    place.register(9, "Harbour Ranking")
    place.register(10, "North Coast Search", state="closed")
    assert place.inbox() == [("pull request 9", "registered")]
    request = place.server.requests[9]
    (comment,) = request.comments
    assert "is registered (02 Nov 2026 10:00:00 UTC)" in comment
    assert "Harbour" not in comment
    assert (request.labels, request.state) == (["heldout: registered"], "closed")
    assert place.inbox() == []
    assert len(request.comments) == 1
    assert place.registered() == 1
    assert place.server.requests[10].comments == []


def test_an_answer_that_failed_comes_later_and_a_copy_has_it_too(place: Harbour) -> None:
    place.register(9, "Harbour Ranking")
    place.fail_once()
    assert place.inbox() == [("pull request 9", "registered")]
    assert place.server.requests[9].comments == []
    place.show(10, place.server.requests[9].sha)
    assert place.inbox() == []
    for number in (9, 10):
        request = place.server.requests[number]
        assert (len(request.comments), request.state) == (1, "closed"), number
    assert place.registered() == 1
