"""Registrations by pull request on a hosted forge: taken in while open, answered once, closed."""

import json
import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from forge_server import PROJECTS, TOKEN, Fault, Forge, Kind, says, serve

from heldout.cli.program import main

pytestmark = pytest.mark.slow
DAY = "2026-11-02T10:00:00Z"
REFS: dict[Kind, str] = {"github": "refs/pull/{}/head", "gitlab": "refs/merge-requests/{}/head"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A board, its vault, a bare repository that everybody knows, and the forge in front of it."""

    root: Path
    server: Forge

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

    def open_request(self, number: int, team: str, **more: Any) -> None:
        """A team registers in a clone of its own, and opens a request instead of a branch."""
        clone = f"clone{number}"
        git(self.root, "clone", "-q", "bare", clone)
        handle = self.call("register", "--team", team, board=clone)["team"]
        branch = f"refs/heads/registration/{handle}"
        self.show(number, git(self.root / "bare", "rev-parse", branch), **more)
        git(self.root / "bare", "update-ref", "-d", branch)

    def show(self, number: int, sha: str, **more: Any) -> None:
        git(self.root / "bare", "update-ref", REFS[self.server.kind].format(number), sha)
        git(self.root / "bare", "update-server-info")
        self.server.add(number, sha, **more)

    def registered(self) -> int:
        return (self.root / "vault" / "events.jsonl").read_text().count('"kind":"registered"')


def git(folder: Path, *arguments: str) -> str:
    result = subprocess.run(["git", *arguments], cwd=folder, capture_output=True, check=True)
    return result.stdout.decode().strip()


@pytest.fixture(params=list(REFS))
def place(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Place]:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".gitconfig").write_text("[user]\n\tname = x\n\temail = x@x\n")
    (tmp_path / "queries.tsv").write_text("q1\ta question\n")
    (tmp_path / "labels.qrels").write_text("q1 0 d1 1\n")
    with serve(request.param) as server:
        place = Place(root=tmp_path, server=server)
        sets = ("--eval", tmp_path / "queries.tsv", tmp_path / "labels.qrels")
        found = ("board", "new", tmp_path / "board", "--vault", tmp_path / "vault", *sets)
        runner = CliRunner(env={"HOME": str(tmp_path)})
        assert runner.invoke(main, [*map(str, found), "--now", DAY]).exit_code == 0
        with (tmp_path / "board" / "board.toml").open("a") as file:
            file.write(f'\n[forge]\nkind = "{server.kind}"\nurl = "{server.url}"\n')
            file.write(f'project = "{PROJECTS[server.kind]}"\n\n[registration]\n')
        place.call("rebuild", "--accept-rules", "--vault", tmp_path / "vault")
        git(tmp_path, "init", "-q", "--bare", "-b", "main", "bare")
        git(tmp_path / "board", "remote", "add", "origin", str(tmp_path / "bare"))
        git(tmp_path / "board", "push", "-q", "origin", "main")
        server.repository = tmp_path / "bare"
        yield place


def test_an_open_registration_is_taken_in_and_answered_once_and_a_closed_one_is_not(
    place: Place,
) -> None:
    place.open_request(9, "Harbour Ranking")
    place.open_request(10, "North Coast Search", state="closed")
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


def test_an_answer_that_failed_comes_with_the_next_inbox_and_a_copy_gets_it_too(
    place: Place,
) -> None:
    place.open_request(9, "Harbour Ranking")
    path = "notes" if place.server.kind == "gitlab" else "comments"
    place.server.faults.append(Fault(act=says(422, "no"), method="POST", path=path))
    assert place.inbox() == [("pull request 9", "registered")]
    assert place.server.requests[9].comments == []
    place.show(10, place.server.requests[9].sha)
    assert place.inbox() == []
    for number in (9, 10):
        request = place.server.requests[number]
        assert (len(request.comments), request.state) == (1, "closed"), number
    assert place.registered() == 1
