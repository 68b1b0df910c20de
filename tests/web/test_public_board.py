"""What the pages know of the board: files that are read again, a remote that is asked."""

import json
import shutil
import subprocess
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from judging_stage import Clock
from team_stage import make_board

from heldout.board.log.submission import Submission
from heldout.errors import StoreError
from heldout.intake.board import PublicBoard

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
RESULT = "leaderboard/leaderboard.json"


def git(folder: Path, *arguments: str) -> None:
    who = ("-c", "user.name=x", "-c", "user.email=x@x", "-c", "protocol.file.allow=always")
    subprocess.run(["git", *who, *arguments], cwd=folder, check=True, capture_output=True)


def show(board: Path, *names: str) -> None:
    rows = [{"id": name, "rank": number} for number, name in enumerate(names, 1)]
    (board / RESULT).write_text(json.dumps({"board": "b", "rows": rows}))


def test_a_folder_is_read_again_when_it_changes_and_else_not(tmp_path: Path) -> None:
    board = make_board(tmp_path)
    public = PublicBoard(board, Clock(NOW))
    first = public.view()
    assert public.view() is first
    show(board, "one", "two")
    assert len(public.view().rows) == 2
    (board / "log.jsonl").write_text("{")  # damaged: what was known before still holds
    assert len(public.view().rows) == 2
    with pytest.raises(StoreError):
        PublicBoard(board, Clock(NOW)).view()


def test_a_clone_follows_its_remote_once_a_minute(tmp_path: Path) -> None:
    board, clock = make_board(tmp_path), Clock(NOW)
    git(board, "init", "-q", "-b", "main")
    git(board, "add", "-A")
    git(board, "commit", "-qm", "one")
    git(tmp_path, "clone", "-q", str(board), "clone")
    public = PublicBoard(tmp_path / "clone", clock)
    assert public.view().rows == ()
    show(board, "one")
    git(board, "commit", "-qam", "two")
    assert public.view().rows == ()
    clock.pass_by(seconds=61)
    assert len(public.view().rows) == 1
    shutil.rmtree(board)  # the remote is gone: what was last heard of it still holds
    clock.pass_by(seconds=61)
    assert len(public.view().rows) == 1


@pytest.mark.parametrize(
    ("status", "state", "why"),
    [
        ("received", "received", ""),
        ("reviewed", "in review", ""),
        ("asked", "the organiser has a question", "because"),
        ("rejected", "refused", "because"),
        ("withdrawn", "withdrawn", "because"),
        ("published", "published", ""),
    ],
)
def test_a_submission_s_state_is_that_of_the_public_log(
    tmp_path: Path, status: str, state: str, why: str
) -> None:
    view = PublicBoard(make_board(tmp_path), Clock(NOW)).view()
    name, sent = "20261121-one", {"a": "1" * 64}
    shown = view.state_of(name, NOW, sent, waits=False)
    assert shown.state.startswith("taken in by the organiser")
    known = Submission(
        id=name,
        received=NOW,
        files=sent,
        status=status,  # type: ignore[arg-type]  # one of them
        why="because",
    )
    # A history is shared by whoever reads the log: it stays as it is.
    history = replace(view.history, submissions={**view.history.submissions, name: known})
    view = replace(view, history=history)
    found = view.state_of(name, NOW, sent, waits=False)
    assert (found.state, found.why) == (state, why)
    other = {"a": "2" * 64}
    assert view.state_of(name, NOW, other, waits=False).state == "not accepted"
    assert view.state_of(name, NOW, other, waits=True).state == "waiting for the organiser"
    assert view.state_of("20261121-two", None, other, waits=False).state == "uploading"
