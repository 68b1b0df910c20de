"""The board on disk: the public layout, read and written.

board/
  board.toml                what the board is
  README.md                 how to take part
  queries/, qrels/          queries of every set, labels of the public ones
  keys/organisers.txt       whom submissions are sealed for, as `age -R` takes it
  submissions/              sealed files of published submissions
  log.jsonl                 the public log
  log/                      its earlier events, where there are more than 10,000 (`store.logs`)
  timestamps/               SEQ.tsr: an authority's time stamp of an event; may be absent
  leaderboard/              index.html, entries/, CSV, JSON; manifest.json lists them
  drafts/, .heldout/        a participant's own; git ignores them
  .gitattributes            that git leaves every file as it is

Whoever can write to the remote, or gave us the clone, can put any tree here: no symlink in it is
followed (`store.files.Folder`), and only pages that a rebuild wrote are removed by the next one.
"""

import hashlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import msgspec

from heldout.board.log.events import Entry, parse_log
from heldout.board.log.history import History, newest_copy, read_history
from heldout.board.log.reading import Log
from heldout.board.rules.spec import BoardSpec
from heldout.board.rules.spec_file import parse_spec
from heldout.board.store.git import Git
from heldout.board.store.logs import CLOSED, LOG, read_public_log
from heldout.errors import InputError, Problem, StoreError
from heldout.files.durable import ASIDE, File, Folder
from heldout.trec.groups import read_candidates
from heldout.trec.qrels import Qrels, read_qrels
from heldout.trec.queries import Queries, read_queries

SPEC = "board.toml"
LEADERBOARD = "leaderboard"
KEYS = "keys/organisers.txt"
README = "README.md"
TIMESTAMPS = "timestamps"
_MANIFEST = f"{LEADERBOARD}/manifest.json"
_MOST_LOG = 1 << 30
_PINNED = ".heldout/pinned.json"
_MOST_PINNED = 1 << 12
_WRITTEN = (
    *(
        "keys",
        "queries",
        "qrels",
        "submissions",
        CLOSED,
        LEADERBOARD,
        TIMESTAMPS,
        "drafts",
        ".heldout",
    ),
)


def find_board(start: Path) -> "Repository":
    """The board that a folder belongs to: itself or the nearest one above with a board.toml.

    Raises:
        StoreError: there is none.
    """
    for folder in (start.resolve(), *start.resolve().parents):
        file = folder / SPEC
        if file.is_file() or file.is_symlink():  # of a symlink the first read says what to do
            return Repository(folder)
    raise StoreError(
        f"no board.toml in {start.resolve()} or above it; change into the board's folder, or name "
        "it: --board DIR (a participant clones the board first: git clone ADDRESS)"
    )


class _Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """`leaderboard/manifest.json`: the files of the folder that heldout wrote."""

    files: tuple[str, ...]
    schema: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenPages:
    """What became of `leaderboard/`.

    Attributes:
        changed: how many files were written or removed.
        unknown: what lies there and heldout did not write, by its path in the board; left alone.
    """

    changed: int
    unknown: tuple[str, ...]


class _Pinned(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which board a clone is of.

    Attributes:
        board: hash of its first event.
        signed: number and hash of the first event with a signature, `None` where there was none.
    """

    board: str
    signed: tuple[int, str] | None


@dataclass(frozen=True, slots=True)
class Repository:
    """A board, by its folder.

    Attributes:
        root: the folder.
        stored: its files and its git, where they are not in that folder but in memory.
    """

    root: Path
    stored: tuple[Folder, Git] | None = None

    @property
    def files(self) -> Folder:
        """The board's files, of which none is reached by a symlink."""
        return Folder(self.root) if self.stored is None else self.stored[0]

    @property
    def git(self) -> Git:
        """The board as a git repository."""
        return Git(self.root) if self.stored is None else self.stored[1]

    @contextmanager
    def locked(self) -> Iterator[None]:
        """One writer at a time in this folder; what a killed one left aside is removed."""
        with self.files.lock_and_sweep(".heldout/lock", self._sweep):
            for folder in _WRITTEN:
                self.files.stat(folder)  # refuses a symlink before anything is done
            yield

    def _sweep(self) -> None:
        files = self.files
        files.sweep("")
        left = [
            path
            for folder in _WRITTEN
            for path, plain in files.walk(folder)
            if plain and path.rpartition("/")[2].startswith(ASIDE)
        ]
        for path in left:
            files.delete(path)

    def tree_rules(self) -> str:
        """The text of board.toml as it lies in the folder: nothing holds by it until it is logged.

        Whoever may push to the board can change this file.
        """
        try:
            return self.files.file(SPEC).read_text("utf-8")
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
            StoreError: the log is missing, damaged, or of another board.
        """
        self.log()
        history = _fold_log(self.log_bytes())
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

    def file(self, name: str) -> File:
        """A file that board.toml names.

        Raises:
            StoreError: it is missing, leads out of the board, or is reached by a symlink.
        """
        if not self.files.is_file(name):
            raise StoreError(f"board.toml names {name}, but there is no such file in the board")
        return self.files.file(name)

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
        """The public log, verified; empty where there is none yet.

        Raises:
            StoreError: it is damaged, or of another board than this clone has worked with.
        """
        entries = _read_log(self.log_bytes())
        self._check_pinned(entries, path=LOG)
        return entries

    def log_bytes(self) -> bytes:
        """The whole lines of the public log, not verified; b"" where it is missing."""
        data = read_public_log(self.files.find) or b""
        return data[: data.rfind(b"\n") + 1]

    def log_at(self, commit: str) -> bytes | None:
        """The bytes of the public log at a commit, not verified; `None` where it has none.

        Raises:
            StoreError: it has more than a gibibyte.
        """
        left = _MOST_LOG

        def read(name: str) -> bytes | None:
            nonlocal left
            data = self.git.read_path(commit, name, limit=left)
            left -= len(data or b"")
            return data

        return read_public_log(read)

    def pin(self, entries: Sequence[Entry]) -> None:
        """Remember in this clone which board a verified log is of, and since when it is signed.

        Whoever can write to the board's main branch can put another log there, from its first event
        on; or, on a board that began to sign later, one without those signatures.

        Raises:
            StoreError: it is not the board that was remembered.
        """
        self._check_pinned(entries, path=LOG)
        if not entries:
            return
        before = self._pinned()
        signed = next(((e.event.seq, str(e.hash)) for e in entries if e.signature), None)
        if signed is None and before is not None:
            signed = before.signed  # a fork that is behind has no signatures yet
        known = _Pinned(board=entries[0].hash, signed=signed)
        if known != before:
            self.files.write_whole(_PINNED, msgspec.json.encode(known))

    def _pinned(self) -> "_Pinned | None":
        if not self.files.is_file(_PINNED):
            return None
        try:
            return msgspec.json.decode(self.files.read(_PINNED, limit=_MOST_PINNED), type=_Pinned)
        except (msgspec.MsgspecError, UnicodeDecodeError):
            raise StoreError(
                f"{self.root / _PINNED} is damaged: it says which board this clone is of; restore "
                "it, or make a new clone from an address that you trust"
            ) from None

    def check_pinned(self, log: Log, *, path: str) -> None:
        """Refuse the log of another board, or one without the signatures that it had.

        Args:
            log: verified.
            path: its name, for the error.

        Raises:
            StoreError: it is.
        """
        known = self._pinned()
        if known is not None and len(log):
            number = 0 if known.signed is None else known.signed[0]
            told = {entry.event.seq: str(entry.hash) for entry in log.at({0, number})}
            _refuse_other(known, told, path=path)

    def _check_pinned(self, entries: Sequence[Entry], *, path: str) -> None:
        """Refuse the log of another board, or one without the signatures that it had."""
        known = self._pinned()
        if known is None or not entries:
            return
        number = 0 if known.signed is None else known.signed[0]
        told = {one.event.seq: str(one.hash) for one in (entries[0], *entries[number : number + 1])}
        _refuse_other(known, told, path=path)

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
                found[remote] = self._parse_remote(remote, data)
        return found

    def _parse_remote(self, remote: str, data: bytes) -> tuple[Entry, ...]:
        """The log in some bytes; where they are those of our own log they are verified once."""
        if data == self.log_bytes():
            with suppress(StoreError):
                return _read_log(data)
        return parse_log(data, path=f"{remote}:{LOG}")

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
        return self.log_at(commit) if commit else None

    def newest_log(self) -> tuple[Entry, ...]:
        """The newest copy of the public log: a remote's, or our own where it goes on from there.

        Raises:
            StoreError: a log is damaged, or of another board than this clone has worked with.
        """
        remotes = self.remote_logs().values()
        try:
            found = tuple(newest_copy(self.log(), remotes))
        except StoreError:
            if not remotes:
                raise
            found = tuple(newest_copy((), remotes))
        self._check_pinned(found, path=f"the newest {LOG}")
        return found

    def packed_file(self, name: str) -> File:
        """Where a participant's sealed file lies; git ignores it.

        Not in `submissions/`: when it is published, a pull would stop at the untracked file there.
        """
        return self.files.file(f".heldout/sealed/{name}")

    def own_ids(self) -> tuple[str, ...]:
        """Ids of the submissions that were sealed in this clone."""
        return self.files.names(".heldout/keys")

    def write_leaderboard(
        self, pages: Mapping[str, bytes], *, same: Collection[str] = ()
    ) -> WrittenPages:
        """Write the page and its files; pages that an earlier call wrote and are no more go.

        Args:
            pages: path in the board, below `leaderboard/`, to content.
            same: paths of pages that lie there as they have to be.
        """
        names = tuple(sorted({*pages, *same}))
        listed = msgspec.json.format(msgspec.json.encode(_Manifest(files=names)), indent=1)
        before = self._written_pages()
        there = [(path, plain) for path, plain in self.files.walk(LEADERBOARD)]
        changed = sum(self.write_file(path, data) for path, data in pages.items())
        ours = {*names, _MANIFEST}
        others = [(path, plain) for path, plain in there if path not in ours]
        stale = [path for path, plain in others if plain and before(path)]
        for path in stale:
            self.files.delete(path)
        # Last, so that a call which is killed before leaves no page that nobody knows.
        changed += self.write_file(_MANIFEST, listed + b"\n")
        unknown = tuple(path for path, _ in others if path not in stale)
        return WrittenPages(changed=changed + len(stale), unknown=unknown)

    def _written_pages(self) -> Callable[[str], bool]:
        """Whether a path is that of a page which the last rebuild wrote.

        A board of before there were manifests has pages of entries alone that may be old.
        """
        data = self.files.find(_MANIFEST)
        try:
            known = None if data is None else msgspec.json.decode(data, type=_Manifest).files
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            known = ()  # damaged: nothing says what is ours
        if known is None:
            return lambda path: PurePosixPath(path).match(f"{LEADERBOARD}/entries/*.html")
        return frozenset(known).__contains__

    def is_uncommitted(self, name: str, commit: str) -> bool:
        """Whether a public file differs from what a commit has of it."""
        return self.git.read_path(commit, name, limit=_MOST_LOG) != self.files.read(name)

    def write_file(self, name: str, data: bytes) -> bool:
        """Write one public file; says whether it changed."""
        return self.files.write_whole(name, data)


def _refuse_other(known: _Pinned, told: Mapping[int, str], *, path: str) -> None:
    """Refuse a log, by the hashes of its events by number, that is not the one that is known."""
    number, digest = known.signed or (0, known.board)
    if told[0] != known.board or told.get(number, digest) != digest:
        raise StoreError(
            f"{path} is of another board than this clone has worked with, or its history was "
            "rewritten, with other signers perhaps: use nothing of it, and ask the organisers; "
            f"if they founded the board again, make a new clone ({_PINNED} has the board's "
            "first event)"
        )


_MOST_READ = 2
_READ: dict[bytes, tuple[Entry, ...]] = {}
"""SHA-256 of a log's bytes -> its events; the bytes themselves need not stay in memory."""


def _read_log(data: bytes) -> tuple[Entry, ...]:
    """Every step of a command asks for the rules: the same bytes are verified once."""
    digest = hashlib.sha256(data).digest()
    found = _READ.pop(digest, None)
    if found is None:
        found = parse_log(data, path=LOG)
    _READ[digest] = found  # the last one that was asked for
    for old in [*_READ][:-_MOST_READ]:
        del _READ[old]
    return found


def _fold_log(data: bytes) -> History | None:
    entries = _read_log(data)
    return read_history(entries) if entries else None
