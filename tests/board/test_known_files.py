"""A rebuild makes and writes only what is different, and repairs what somebody changed."""

import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from scored_board import QUERIES, ScoredBoard, make_board

from heldout.board.organiser import inbox
from heldout.board.organiser import rebuild as rebuilding
from heldout.board.organiser.answer import ForgeAccess
from heldout.board.organiser.inbox import take_in
from heldout.board.organiser.rebuild import catch_up, rebuild
from heldout.board.scores import public_log
from heldout.board.scores.session import Session, check_clock
from heldout.board.site import rows as table
from heldout.board.store import vault


@pytest.fixture
def board(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ScoredBoard:
    """A board whose table goes on over several pages, all of it remembered."""
    monkeypatch.setattr(rebuilding, "_MANY", 1)
    monkeypatch.setattr(table, "_ONE_PAGE", 4)
    monkeypatch.setattr(table, "_ROWS", 4)
    board = make_board(tmp_path)
    board.baseline("bm25", [0.3] * QUERIES)
    for number in range(8):
        board.enter(f"20261101-{number}", [0.4 + number / 50] * QUERIES, team=f"Team {number}")
    rebuild(board.tick())
    time.sleep(0.1)  # longer than a step of the clock for files
    board.tick()
    rebuild(board.tick())
    return board


def _stamps(board: ScoredBoard, *folders: str) -> dict[str, tuple[int, int]]:
    root = board.root / "board"
    inside = folders or ("leaderboard", "submissions")
    files = [path for one in inside for path in (root / one).rglob("*")]
    return {
        path.relative_to(root).as_posix(): (path.stat().st_ino, path.stat().st_mtime_ns)
        for path in files
        if path.is_file() and ".git" not in path.relative_to(root).parts
    }


def test_a_publication_writes_its_own_page(
    board: ScoredBoard, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, rendered = _stamps(board), []
    render = rebuilding.KnownFiles.is_same

    def spy(known: rebuilding.KnownFiles, path: str, made_of: bytes) -> bool:
        same = render(known, path, made_of)
        rendered.extend([] if same else [path])
        return same

    monkeypatch.setattr(rebuilding.KnownFiles, "is_same", spy)
    board.enter("20261101-best", [0.9] * QUERIES, team="Best")
    rebuild(board.tick())
    after = _stamps(board)
    changed = {path for path in after if before.get(path) != after[path]}
    pages = {path for path in changed if path.startswith("leaderboard/entries/")}
    # The best entry, and two that went over to the next page of the table.
    names = ("best", "4", "0")
    wanted = {f"leaderboard/entries/20261101-{name}.html" for name in names}
    assert wanted <= pages <= wanted | {"leaderboard/entries/bm25.html"}
    assert {path for path in rendered if "/entries/" in path} == pages
    parts = {f"submissions/20261101-best.{part}.age" for part in ("key", "metadata", "tar")}
    assert {p for p in changed if p.startswith("submissions/")} == parts


def test_what_was_changed_is_made_again(board: ScoredBoard) -> None:
    names = ("leaderboard/entries/20261101-3.html", "submissions/20261101-3.tar.age")
    files = [board.root / "board" / name for name in names]
    honest = [file.read_bytes() for file in files]
    for change in (Path.unlink, lambda file: file.write_bytes(b"something else")):
        for file in files:
            change(file)
        rebuild(board.tick())
        assert [file.read_bytes() for file in files] == honest


def test_a_page_says_no_rank_that_the_next_entry_changes(board: ScoredBoard) -> None:
    text = (board.root / "board/leaderboard/entries/20261101-1.html").read_text()
    assert "Among ranks 5–8" in text
    assert "As of" not in text


def test_a_rebuild_with_nothing_new_writes_no_file_at_all(board: ScoredBoard) -> None:
    session = board.tick()
    rebuild(session)  # the day of the front page
    before = _stamps(board, "")
    again = rebuild(session)
    assert (again.changed, again.commit) == (0, None)
    assert _stamps(board, "") == before
    rebuild(board.tick())
    changed = {path for path, one in _stamps(board).items() if before[path] != one}
    assert changed == {"leaderboard/index.html", "leaderboard/leaderboard.json"}


def test_git_is_started_as_often_whatever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # As on a large board everything is remembered, and the table has several pages.
    for module in (rebuilding, public_log, inbox, vault):
        monkeypatch.setattr(module, "_MANY", 2)
    monkeypatch.setattr(table, "_ONE_PAGE", 4)
    monkeypatch.setattr(table, "_ROWS", 4)
    started = list[str]()
    popen = subprocess.Popen

    def start(command: Sequence[str], *rest: Any, **named: Any) -> "subprocess.Popen[Any]":
        started.append(next(c for c in command[1:] if not c.startswith("-") and "=" not in c))
        return popen(command, *rest, **named)

    board = make_board(tmp_path)
    board.baseline("bm25", [0.3] * QUERIES)
    found = []
    for size in (1, 12):
        while len(board.session.history().submissions) < size + 1:
            number = len(board.session.history().submissions)
            board.enter(f"20261101-{number}", [0.4 + number / 50] * QUERIES, team=f"Team {number}")
        rebuild(board.tick())
        with monkeypatch.context() as patched:
            patched.setattr(subprocess, "Popen", start)
            found.append({step: _count(board, step, started) for step in _STEPS})
    assert all(found[0].values())
    assert found[0] == found[1]


_STEPS: Mapping[str, Callable[[Session], object]] = {
    "inbox": lambda session: take_in(session, ForgeAccess()),
    "review": check_clock,
    "publish": lambda session: catch_up(session, news=True),
    "nothing new": rebuild,
}


def _count(board: ScoredBoard, step: str, started: list[str]) -> list[str]:
    """The git processes that a step starts."""
    if step == "publish":
        name = f"20261102-{len(board.session.history().submissions)}"
        board.enter(name, [0.7] * QUERIES, team=name)
    started.clear()
    _STEPS[step](board.tick())
    return [*started]
