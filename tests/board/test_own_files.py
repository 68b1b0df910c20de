"""What is a clone's own: where it lies, and which trees are refused."""

import subprocess
import zipfile
from pathlib import Path

import pytest

from heldout.board.audit.archive_audit import unpack_archive
from heldout.board.rules.spec_file import is_private
from heldout.board.store.git import find_common
from heldout.board.store.repository import Repository, find_board, find_state
from heldout.errors import InputError, StoreError
from memory_folder import MemoryFolder
from memory_git import MemoryGit

PRIVATE = (
    *(
        ".heldout", "drafts", ".heldout/pinned.json", "drafts/x/y", ".HELDOUT/x", "Drafts",
        "DRAFTS/x",
    ),
    *(".heldout ", ".heldout.", "drafts. .", ".heldout:x", "drafts::$INDEX_ALLOCATION/x"),
    *(".hel\u200cdout", "\ufeffdrafts/x", "draft\u017f", "HELDOU~1/x", "heldou~2", ".heldout\\x"),
)  # fmt: skip
OTHERS = ("heldout", "drafts.md", "draft", "my/drafts", "x/.heldout", ".heldoutx", "log.jsonl", "")


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))


def git(folder: Path, *words: str) -> None:
    who = ["-c", "user.name=x", "-c", "user.email=x@x"]
    subprocess.run(["git", *who, *words], cwd=folder, check=True, capture_output=True)


def clone(folder: Path) -> Path:
    """A repository with a board.toml, of one commit."""
    folder.mkdir()
    (folder / "board.toml").write_bytes(b"")
    (folder / ".gitignore").write_bytes(b"drafts/\n.heldout/\n")
    git(folder, "init", "-q")
    git(folder, "add", ".")
    git(folder, "commit", "-q", "-m", "one")
    return folder


@pytest.mark.parametrize("path", PRIVATE)
def test_a_path_that_some_disk_takes_for_a_clone_s_own(path: str) -> None:
    assert is_private(path)
    folder = MemoryFolder(Path("/nowhere/board"))
    git = MemoryGit(folder.root, files_there=folder)
    git.named["refs/heads/main"] = git.commit_tree({path: ("100644", b"")}, parent=None)
    repository = Repository(folder.root, stored=(folder, git, MemoryFolder(Path("/nowhere/s"))))
    with pytest.raises(InputError, match="private-path"), repository.locked():
        pass


@pytest.mark.parametrize("path", OTHERS)
def test_a_path_that_is_anybody_s(path: str) -> None:
    assert not is_private(path)


def test_a_clone_s_own_files_lie_beside_git_s(tmp_path: Path) -> None:
    root = clone(tmp_path / "clone")
    git(root, "worktree", "add", "-q", "-b", "other", str(tmp_path / "linked"))
    git(root, "init", "-q", "--separate-git-dir", str(tmp_path / "apart"), str(tmp_path / "far"))
    (tmp_path / "link").symlink_to(root)
    found = {
        name: find_state(tmp_path / name, tmp_path / "states")
        for name in ("clone", "linked", "far", "link")
    }
    assert {name: folder and folder.path() for name, folder in found.items()} == {
        "clone": root / ".git" / "heldout",
        "linked": root / ".git" / "heldout",
        "far": tmp_path / "apart" / "heldout",
        "link": root / ".git" / "heldout",
    }
    (tmp_path / "plain" / ".git").mkdir(parents=True)
    assert find_common(tmp_path / "plain") is None
    (tmp_path / "plain" / ".git").rmdir()
    (tmp_path / "plain" / ".git").write_bytes(b"gitdir: \0nowhere\n")
    assert find_common(tmp_path / "plain") is None


def test_those_of_an_unpacked_board_lie_in_the_user_s_folder_and_stay_there(tmp_path: Path) -> None:
    root, states = tmp_path / "board", tmp_path / "states"
    root.mkdir()
    first = Repository(root, states).state
    assert first.path().parent == states
    assert first.path().name.startswith("board-")
    first.write_whole("pinned.json", b"{}")
    git(root, "init", "-q")  # as a zip file that brings a .git would do it
    assert Repository(root, states).state == first
    assert Repository(root).state.path() == root / ".git" / "heldout"


def test_without_a_folder_for_it_nothing_is_stored(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="clone the board"):
        _ = Repository(tmp_path).state
    assert Repository(tmp_path).own_ids() == ()


@pytest.mark.parametrize("name", [".heldout", "drafts", ".HELDOUT"])
def test_an_unpacked_board_with_such_a_path_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "board.toml").write_bytes(b"")
    (tmp_path / name).mkdir()
    with pytest.raises(InputError, match="private-path"):
        find_board(tmp_path, states=tmp_path / "states")


@pytest.mark.parametrize("name", [".heldout/pinned.json", "DRAFTS/x/metadata.json"])
def test_an_archive_with_such_a_path_is_refused(tmp_path: Path, name: str) -> None:
    """Before anything in it is believed: the same zip file without it lacks a manifest."""
    for names, told in (((name, "log.jsonl"), "private-path"), (("log.jsonl",), "no archive")):
        with zipfile.ZipFile(tmp_path / "a.zip", "w") as target:
            for one in names:
                target.writestr(one, b"{}")
        (tmp_path / told).mkdir()
        with pytest.raises((InputError, StoreError), match=told):
            unpack_archive(tmp_path / "a.zip", tmp_path / told)
