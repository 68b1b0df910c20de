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
  .gitattributes            that git leaves every file as it is

Whoever can write to the remote, or gave us the clone, can put any tree here: no symlink in it is
followed (`store.files.Folder`), and only pages that a rebuild wrote are removed by the next one.
git and unzip replace what lies there without a word, also what git ignores. So what is this
clone's own lies elsewhere, in `.git/heldout` or in the user's folder for state:

  pinned.json               which board this clone is of
  drafts/                   drafts of submissions
  keys/, sealed/, packed/   the key of each submission, its sealed files, what was sealed last
  receipts/                 what was sent, and the log that was seen then
  team/, tokens/            the team's key and registration; its tokens for servers
  lock                      one writer at a time
"""

import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import msgspec

from heldout.board.log.events import Entry, parse_again, parse_log
from heldout.board.log.history import newest_copy, read_history
from heldout.board.log.reading import CLOSED, LOG, Log, read_public_log
from heldout.board.rules.spec import BoardSpec
from heldout.board.rules.spec_file import PRIVATE, is_private, parse_spec
from heldout.board.store.git import Git, find_common
from heldout.errors import InputError, StoreError, plural, quote
from heldout.files.durable import ASIDE, File, Folder
from heldout.ids import digest_bytes
from heldout.trec.groups import read_candidates
from heldout.trec.qrels import Qrels, read_qrels
from heldout.trec.queries import Queries, read_queries

SPEC = "board.toml"
LEADERBOARD = "leaderboard"
KEYS = "keys/organisers.txt"
README = "README.md"
TIMESTAMPS = "timestamps"
NO_LOG = (
    f"{LOG} is missing or empty, so nothing says which rules hold; "
    f"fetch it again: git checkout {LOG}"
)
"""What to do without a log."""

_MANIFEST = f"{LEADERBOARD}/manifest.json"
_MOST_LOG = 1 << 30
_PINNED = "pinned.json"
_MOST_PINNED = 1 << 12
_WRITTEN = ("keys", "queries", "qrels", "submissions", CLOSED, LEADERBOARD, TIMESTAMPS)


def find_board(start: Path, *, states: Path | None = None) -> "Repository":
    """The board that a folder belongs to: itself or the nearest one above with a board.toml.

    Args:
        start: the folder.
        states: see `Repository`.

    Raises:
        StoreError: there is none.
        InputError: code `private-path`: somebody put a path there that was a clone's own.
    """
    for folder in (start.resolve(), *start.resolve().parents):
        file = folder / SPEC
        if file.is_file() or file.is_symlink():  # of a symlink the first read says what to do
            repository = Repository(folder, states)
            repository.check_folder()
            return repository
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
    """Which board a clone is of, and how far its log has been seen.

    Attributes:
        board: hash of its first event.
        last: number and hash of the last event that was seen.
    """

    board: str
    last: tuple[int, str] = (0, "")


@dataclass(frozen=True, slots=True)
class Repository:
    """A board, by its folder.

    Attributes:
        root: the folder.
        states: the user's folder for the state of boards that are no clones of git, as an unpacked
            board.zip; `None` where nothing is stored of those.
        stored: its files, its git and its state, where they are not on disk but in memory.
    """

    root: Path
    states: Path | None = None
    stored: tuple[Folder, Git, Folder] | None = None

    @property
    def files(self) -> Folder:
        """The board's files, of which none is reached by a symlink."""
        return Folder(self.root) if self.stored is None else self.stored[0]

    @property
    def git(self) -> Git:
        """The board as a git repository."""
        return Git(self.root) if self.stored is None else self.stored[1]

    @property
    def state(self) -> Folder:
        """This clone's own files, which lie in no tree that others write.

        Raises:
            StoreError: the board is no clone of git, and no folder for state is known.
        """
        found = self._find_state()
        if found is None:
            raise StoreError(
                f"{self.root} is no clone of a git repository, so there is no safe folder for its "
                "keys and drafts: clone the board, or use the command heldout"
            )
        return found

    def _find_state(self) -> Folder | None:
        return find_state(self.root, self.states) if self.stored is None else self.stored[2]

    def check_folder(self) -> None:
        """Refuse a folder in which somebody put a path that was a clone's own; see `PRIVATE`.

        In a clone of git that are paths that git tracks; elsewhere any: they came with the board.

        Raises:
            InputError: code `private-path`.
        """
        found = [name for name in self.files.names() if is_private(name)]
        if found and self.git.is_repository():
            found = [*self.git.tracked_of(*found)]
        if found:
            refuse_private(found, str(self.root))

    @contextmanager
    def locked(self) -> Iterator[None]:
        """One writer at a time in this folder; what a killed one left aside is removed.

        Raises:
            InputError: code `private-path`: the commit checked out has a path that is a clone's.
        """
        with self.state.lock_and_sweep("lock", self._sweep):
            head = self.git.head() if self.git.is_repository() else None
            if head is not None:
                refuse_private(self.git.top(head), "the commit checked out")
            for folder in _WRITTEN:
                self.files.stat(folder)  # refuses a symlink before anything is done
            yield

    def _sweep(self) -> None:
        files, state = self.files, self.state
        files.sweep("")
        for tree, folders in ((files, _WRITTEN), (state, ("",))):
            left = [
                path
                for folder in folders
                for path, plain in tree.walk(folder)
                if plain and path.rpartition("/")[2].startswith(ASIDE)
            ]
            for path in left:
                tree.delete(path)

    def tree_rules(self) -> str:
        """The text of board.toml as it lies in the folder: nothing holds by it until it is logged.

        Whoever may push to the board can change this file.
        """
        try:
            return self.files.file(SPEC).read_text("utf-8")
        except UnicodeDecodeError:
            raise InputError.of("bad-utf8", SPEC, "bytes that are not UTF-8") from None

    def tree_spec(self) -> BoardSpec:
        """Return what board.toml in the folder says; see `tree_rules`."""
        return parse_spec(self.tree_rules().encode(), path=SPEC)

    def rules(self) -> str:
        """The text of the rules in force: the last ones in the public log of this folder.

        Raises:
            StoreError: the log is missing, damaged, or of another board.
        """
        log = self.log()
        if not log:
            raise StoreError(NO_LOG)
        return read_history(log).rules[-1][1]

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
        entries = parse_again(self.log_bytes(), path=LOG)
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
        """Remember in this clone which board a verified log is of, and what it has seen of it.

        Whoever can write to the board's main branch can put another log there, from its first event
        on. A signer can make all events again.

        Raises:
            StoreError: it is not the log that was remembered.
        """
        self._check_pinned(entries, path=LOG)
        if not entries:
            return
        before, end = self._pinned(), entries[-1]
        last = end.event.seq, str(end.hash)
        if before is not None and before.last[0] > last[0]:
            last = before.last
        known = _Pinned(board=entries[0].hash, last=last)
        if known != before:
            self.state.write_whole(_PINNED, msgspec.json.encode(known))

    def _pinned(self) -> "_Pinned | None":
        state = self._find_state()
        if state is None or not state.is_file(_PINNED):
            return None
        try:
            return msgspec.json.decode(state.read(_PINNED, limit=_MOST_PINNED), type=_Pinned)
        except (msgspec.MsgspecError, UnicodeDecodeError):
            raise StoreError(
                f"{state.path(_PINNED)} is damaged: it says which board this clone is of; restore "
                "it, or make a new clone from an address that you trust"
            ) from None

    def check_pinned(self, log: Log, *, path: str) -> None:
        """Refuse the log of another board.

        Args:
            log: verified.
            path: its name, for the error.

        Raises:
            StoreError: it is.
        """
        known = self._pinned()
        if known is not None and len(log):
            hashes = {entry.event.seq: str(entry.hash) for entry in log.at({*_events_of(known)})}
            _refuse_other(known, hashes, path=path, pinned=self.state.path(_PINNED))

    def _check_pinned(self, entries: Sequence[Entry], *, path: str) -> None:
        """Refuse the log of another board."""
        known = self._pinned()
        if known is None or not entries:
            return
        hashes = {n: str(one.hash) for n in _events_of(known) for one in entries[n : n + 1]}
        _refuse_other(known, hashes, path=path, pinned=self.state.path(_PINNED))

    def has_seen_more(self, events: int) -> bool:
        """Tell whether this clone has seen more events: it is behind, or some were cut off."""
        known = self._pinned()
        return known is not None and known.last[0] >= events > 0

    def find_cut(
        self, newest: Sequence[Entry], remotes: Mapping[str, Sequence[Entry]]
    ) -> Iterator[str]:
        """Tell where the newest log has less than this clone has seen.

        Args:
            newest: of all copies.
            remotes: the copies of `remote_logs`; of a board that does not answer nothing follows.
        """
        known = self.git.remotes() if self.git.is_repository() else ()
        silent = "upstream" in known and "upstream" not in remotes
        if self.has_seen_more(len(newest)) and not silent:
            yield (
                f"this clone has seen more than {plural(len(newest), 'event')}, which is all that "
                "the newest log has: events were cut off; ask the organisers. If origin is a fork "
                "of the board that is behind: git remote add upstream ADDRESS"
            )

    def remote_logs(self) -> dict[str, tuple[Entry, ...]]:
        """Remote -> its public log, of `origin` and, where origin is a fork, of `upstream`.

        Both are asked. If origin does not answer it has what was last heard of it; upstream, which
        the others are held against, is left out then.

        Raises:
            StoreError: one of these logs is damaged.
            InputError: code `private-path`: one has a path in its tree that is a clone's own.
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
                return parse_again(data, path=LOG)
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
        if commit:
            refuse_private(self.git.top(commit), f"{remote}/{branch}")
        return self.log_at(commit) if commit else None

    def newest_log(self) -> tuple[Entry, ...]:
        """The newest copy of the public log: a remote's, or our own where it goes on from there.

        Raises:
            StoreError: a log is damaged, or of another board than this clone has worked with.
        """
        remotes = self.remote_logs()
        try:
            found = tuple(newest_copy(self.log(), remotes.values()))
        except StoreError:
            if not remotes:
                raise
            found = tuple(newest_copy((), remotes.values()))
        self._check_pinned(found, path=f"the newest {LOG}")
        for cut in self.find_cut(found, remotes):
            raise StoreError(cut)
        return found

    def packed_file(self, name: str) -> File:
        """Return where a participant's sealed file lies."""
        return self.state.file(f"sealed/{name}")

    def own_ids(self) -> tuple[str, ...]:
        """Ids of the submissions that were sealed in this clone."""
        state = self._find_state()
        return () if state is None else state.names("keys")

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
        stale = [path for path, plain in others if plain and path in before]
        for path in stale:
            self.files.delete(path)
        # Last, so that a call which is killed before leaves no page that nobody knows.
        changed += self.write_file(_MANIFEST, listed + b"\n")
        unknown = tuple(path for path, _ in others if path not in stale)
        return WrittenPages(changed=changed + len(stale), unknown=unknown)

    def _written_pages(self) -> frozenset[str]:
        """Return the paths of the pages that the last rebuild wrote."""
        try:
            return frozenset(
                msgspec.json.decode(self.files.find(_MANIFEST) or b"", type=_Manifest).files
            )
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            return frozenset()  # missing or damaged: nothing says what is ours

    def write_file(self, name: str, data: bytes) -> bool:
        """Write one public file; says whether it changed."""
        return self.files.write_whole(name, data)


def find_state(root: Path, states: Path | None = None) -> Folder | None:
    """Return where a clone's own files lie: beside git's, else in the user's folder for state.

    Args:
        root: of the board.
        states: the user's folder; `None` for none.
    """
    folder = root.resolve()
    name = f"{folder.name}-{digest_bytes(os.fsencode(folder))[:16]}"
    own = None if states is None else Folder(states, name)
    # What is there counts, though a .git came into the folder since: a zip file can bring one.
    common = None if own is not None and own.exists() else find_common(folder)
    return own if common is None else Folder(common, "heldout")


def refuse_private(names: Iterable[str], path: str) -> None:
    """Refuse a board's files that have a path of what was a clone's own; see `PRIVATE`.

    Args:
        names: paths, or the first part of each.
        path: of these files, for the error.

    Raises:
        InputError: code `private-path`.
    """
    for name in names:
        if is_private(name):
            raise InputError.of(
                "private-path", path, name=quote(name), private=" or ".join(PRIVATE)
            )


def _events_of(known: _Pinned) -> dict[int, str]:
    """The number and hash of each event that a clone remembers."""
    return {0: known.board, **({known.last[0]: known.last[1]} if known.last[1] else {})}


def _refuse_other(known: _Pinned, hashes: Mapping[int, str], *, path: str, pinned: Path) -> None:
    """Refuse a log, by the hashes of its events by number, that is not the one that is known."""
    wanted = _events_of(known)
    if any(wanted[number] != digest for number, digest in hashes.items()):
        raise StoreError(
            f"{path} is of another board than this clone has worked with, or its history was "
            "rewritten, with other signers perhaps: use nothing of it, and ask the organisers; "
            f"if they founded the board again, make a new clone ({pinned} has the board's "
            "first event)"
        )
