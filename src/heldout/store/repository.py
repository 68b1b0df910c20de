"""The board on disk: the public layout, read and written.

board/
  board.toml                what the board is
  README.md                 how to take part
  queries/, qrels/          queries of every set, labels of the public ones
  keys/organisers.txt       whom submissions are sealed for, as `age -R` takes it
  submissions/              sealed files of published submissions
  log.jsonl                 the public log
  leaderboard/              index.html, entries/, CSV, JSON
  drafts/, .heldout/        a participant's own; git ignores them
  .gitattributes            that git leaves every file as it is
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from heldout.board.log.copies import newest_copy
from heldout.board.log.events import Entry, parse_log
from heldout.board.log.history import History, read_history
from heldout.board.rules.spec import BoardSpec
from heldout.board.rules.spec_file import parse_spec
from heldout.errors import InputError, Problem, StoreError
from heldout.store.files import exclusive, read_lines, sweep, write_whole
from heldout.store.git import Git
from heldout.trec.candidates import read_candidates
from heldout.trec.qrels import Qrels, read_qrels
from heldout.trec.queries import Queries, read_queries

__all__ = ["KEYS", "LEADERBOARD", "LOG", "SPEC", "Repository", "find_board"]

SPEC = "board.toml"
LOG = "log.jsonl"
LEADERBOARD = "leaderboard"
KEYS = "keys/organisers.txt"
_MOST_LOG = 1 << 30
_WRITTEN = ("keys", "queries", "qrels", "submissions", LEADERBOARD, "drafts", ".heldout")


def find_board(start: Path) -> "Repository":
    """The board that a folder belongs to: itself or the nearest one above with a board.toml.

    Raises:
        StoreError: there is none.
    """
    for folder in (start.resolve(), *start.resolve().parents):
        if (folder / SPEC).is_file():
            return Repository(folder)
    raise StoreError(f"no board.toml in {start} or above it; change into a clone of a board")


@dataclass(frozen=True, slots=True)
class Repository:
    """A board on disk, by its folder."""

    root: Path

    @property
    def git(self) -> Git:
        """The board as a git repository."""
        return Git(self.root)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """One writer at a time in this folder; what a killed one left aside is removed."""
        with exclusive(self.root / ".heldout/lock"):
            folders = [self.root / name for name in _WRITTEN]
            below = [path for folder in folders for path in folder.rglob("*") if path.is_dir()]
            sweep(self.root, *folders, *below)
            yield

    def tree_rules(self) -> str:
        """The text of board.toml as it lies in the folder: nothing holds by it until it is logged.

        Whoever may push to the board can change this file.
        """
        try:
            return (self.root / SPEC).read_text("utf-8")
        except UnicodeDecodeError:
            problem = Problem(
                code="bad-utf8", path=SPEC, found="bytes that are not UTF-8", expected="UTF-8"
            )
            raise InputError(problem) from None

    def tree_spec(self) -> BoardSpec:
        """What board.toml in the folder says; see `tree_rules`."""
        return parse_spec(self.tree_rules().encode(), path=SPEC)

    def rules(self) -> str:
        """The text of the rules in force: the last ones in the public log of this folder.

        Raises:
            StoreError: the log is missing or damaged.
        """
        history = _fold_log(read_lines(self.root / LOG))
        if history is None:
            raise StoreError(
                f"{LOG} is missing or empty, so nothing says which rules hold; "
                f"fetch it again: git checkout {LOG}"
            )
        return history.rules[-1][1]

    def spec(self) -> BoardSpec:
        """The rules in force, from the public log: an edit of board.toml changes none of them.

        Raises:
            StoreError: the log is missing or damaged.
        """
        return parse_spec(self.rules().encode(), path=SPEC)

    def file(self, name: str) -> Path:
        """A file that board.toml names.

        Raises:
            StoreError: it is missing, or leads out of the board.
        """
        path = self.root / name
        if self.root.resolve() not in path.resolve().parents or not path.is_file():
            raise StoreError(f"board.toml names {name}, but there is no such file in the board")
        return path

    def queries(self, name: str) -> Queries:
        """The queries in a file of the board."""
        with self.file(name).open("rb") as file:
            return read_queries(file, path=name)

    def qrels(self, name: str) -> Qrels:
        """The public labels in a file of the board."""
        with self.file(name).open("rb") as file:
            return read_qrels(file, path=name)

    def candidates(self, name: str) -> Mapping[str, frozenset[str]]:
        """The official documents for re-ranking in a file of the board."""
        with self.file(name).open("rb") as file:
            return read_candidates(file, path=name)

    def log(self) -> tuple[Entry, ...]:
        """The public log, verified; empty where there is none yet."""
        return _read_log(read_lines(self.root / LOG))

    def remote_logs(self) -> dict[str, tuple[Entry, ...]]:
        """Remote -> its public log, of `origin` and, where origin is a fork, of `upstream`.

        Both are asked. If origin does not answer it has what was last heard of it; upstream, which
        the others are held against, is left out then.

        Raises:
            StoreError: one of these logs is damaged.
        """
        found = {}
        known = self.git.remotes() if self.git.is_repository() else ()
        for remote in ("origin", "upstream"):
            data = self._remote_log(remote, stale=remote == "origin") if remote in known else None
            if data is not None:
                found[remote] = parse_log(data, path=f"{remote}:{LOG}")
        return found

    def _remote_log(self, remote: str, *, stale: bool) -> bytes | None:
        """The public log on a remote's main branch; `stale` takes that of before, too."""
        branch = self.git.main_branch()
        ref = f"refs/remotes/{remote}/{branch}"
        try:
            self.git.fetch(remote, f"+refs/heads/{branch}:{ref}")
        except StoreError:
            if not stale:
                return None
        commit = self.git.refs(ref).get(ref)
        return self.git.read_path(commit, LOG, limit=_MOST_LOG) if commit else None

    def newest_log(self) -> tuple[Entry, ...]:
        """The newest copy of the public log: a remote's, or our own where it goes on from there.

        Raises:
            StoreError: a log is damaged.
        """
        remotes = self.remote_logs().values()
        try:
            return tuple(newest_copy(self.log(), remotes))
        except StoreError:
            if not remotes:
                raise
            return tuple(newest_copy((), remotes))

    def packed_file(self, name: str) -> Path:
        """Where a participant's sealed file lies; git ignores it.

        Not in `submissions/`: when it is published, a pull would stop at the untracked file there.
        """
        return self.root / ".heldout/sealed" / name

    def own_ids(self) -> tuple[str, ...]:
        """Ids of the submissions that were sealed in this clone."""
        return tuple(sorted(path.name for path in (self.root / ".heldout/keys").glob("*")))

    def write_leaderboard(self, pages: Mapping[str, bytes]) -> int:
        """Write the page and its files; pages that are no more are removed.

        Args:
            pages: path in the board, below `leaderboard/`, to content.

        Returns:
            How many files changed.
        """
        changed = sum(write_whole(self.root / path, data) for path, data in pages.items())
        folder = self.root / LEADERBOARD
        stale = [
            path
            for path in folder.rglob("*")
            if path.is_file() and path.relative_to(self.root).as_posix() not in pages
        ]
        for path in stale:
            path.unlink()
        return changed + len(stale)

    def is_uncommitted(self, name: str, commit: str) -> bool:
        """Whether a public file differs from what a commit has of it."""
        return self.git.read_path(commit, name, limit=_MOST_LOG) != (self.root / name).read_bytes()

    def write_file(self, name: str, data: bytes) -> bool:
        """Write one public file; says whether it changed."""
        return write_whole(self.root / name, data)


@lru_cache(maxsize=2)
def _read_log(data: bytes) -> tuple[Entry, ...]:
    """Every step of a command asks for the rules: the same bytes are verified once."""
    return parse_log(data, path=LOG)


@lru_cache(maxsize=2)
def _fold_log(data: bytes) -> History | None:
    entries = _read_log(data)
    return read_history(entries) if entries else None
