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
from heldout.intake.board import PublicBoard, SentSubmission

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


def test_pages_of_standings_take_so_much_memory_whatever_is_asked(tmp_path: Path) -> None:
    board = make_board(tmp_path)
    show(board, *(f"{number}-{'x' * 20_000}" for number in range(200)))
    view = PublicBoard(board, Clock(NOW)).view()
    asked = [view.standings(offset=offset, limit=200) for offset in range(20)]
    assert sum(len(page.data) for page in asked) > 60 << 20
    assert sum(len(page.data) for page in view.pages.values()) < 20 << 20
    assert view.standings(offset=0, limit=200) is asked[0]
    assert view.standings(offset=19, limit=200) == asked[19]


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
    sent = SentSubmission(id="20261121-one", at=NOW, digests={"a": "1" * 64}, waits=False)
    assert view.state_of(sent).state.startswith("taken in by the organiser")
    known = Submission(
        id=sent.id,
        received=NOW,
        files=dict(sent.digests),
        status=status,  # type: ignore[arg-type]  # one of them
        why="because",
    )
    # A history is shared by whoever reads the log: it stays as it is.
    history = replace(view.history, submissions={**view.history.submissions, sent.id: known})
    view = replace(view, history=history)
    found = view.state_of(sent)
    assert (found.state, found.why) == (state, why)
    other = SentSubmission(id=sent.id, at=NOW, digests={"a": "2" * 64}, waits=False)
    assert view.state_of(other).state == "not accepted"
    waits = SentSubmission(id=sent.id, at=NOW, digests={"a": "2" * 64}, waits=True)
    assert view.state_of(waits).state == "waiting for the organiser"
    coming = SentSubmission(id="20261121-two", at=None, digests={"a": "3" * 64}, waits=False)
    assert view.state_of(coming).state == "uploading"
