"""A board and its vault in memory: copied from a founded one, then nothing touches the disk."""

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from heldout.board.store.git import Author, Git
from heldout.board.store.repository import Repository
from heldout.board.store.vault import Vault
from heldout.files.durable import Folder
from memory_folder import MemoryFolder
from memory_git import MemoryGit

_SOMEONE = Author(name="Someone", email="someone@here")
_NOWHERE = Path("/nowhere")


def memory_board(board: Path, vault: Path) -> tuple[Repository, Vault]:
    """Files of a board and its vault, and one commit of what git has of the board."""
    files = _load(board, "board")
    git = MemoryGit(files.root, files_there=files)
    tracked = [file.path for file in Git(board).files(Git(board).head() or "")]
    at = datetime(2026, 11, 1, tzinfo=UTC)
    git.commit_paths(tracked, message="all of it", author=_SOMEONE, at=at)
    state = _load(board / ".git" / "heldout", "state")
    repository = Repository(files.root, stored=(files, git, state))
    return repository, Vault(_NOWHERE / "vault", stored=_load(vault, "vault"))


def copy_board(repository: Repository, vault: Vault) -> tuple[Repository, Vault]:
    """Another one that changes on its own."""
    assert repository.stored is not None
    before, git, state = repository.stored
    assert isinstance(git, MemoryGit)
    files = _copy(before)
    own = replace(
        git,
        files_there=files,
        objects=dict(git.objects),
        named=dict(git.named),
        beside=dict(git.beside),
    )
    copied = replace(repository, stored=(files, own, _copy(state)))
    return copied, replace(vault, stored=_copy(vault.stored))


def _load(root: Path, name: str) -> MemoryFolder:
    disk, folder = Folder(root), MemoryFolder(_NOWHERE / name)
    for path, plain in disk.walk():
        if plain and not path.startswith(".git/"):
            found = disk.stat(path)
            assert found is not None
            folder.write_whole(path, disk.read(path), mode=found.st_mode & 0o777)
    for inner in root.rglob("*"):
        if inner.is_dir() and ".git" not in inner.relative_to(root).parts:
            folder.make_folder(inner.relative_to(root).as_posix())
    return folder


def _copy(folder: Folder | None) -> MemoryFolder:
    assert isinstance(folder, MemoryFolder)
    return replace(folder, stored=dict(folder.stored), modes=dict(folder.modes), held=set())
