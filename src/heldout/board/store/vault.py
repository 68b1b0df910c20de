"""The vault: identities, held-out labels, sealed files, scores, signatures, the event log.

vault/                   mode 0700, never inside the board
  identities/*.txt       the organisers' private keys, 0600
  identities/*.signing   the key with which this organiser signs events, 0600
  identities/token-host  the one host that HELDOUT_FORGE_TOKEN may be sent to
  labels/SET.qrels       labels of each held-out query set, as given
  labels/SET.exclude     ids of its queries that do not count, one a line; may be absent
  labels/SET.key         its secret key, where the rules need one; never changes
  sealed/SHA256          by its digest every sealed file that was received (of what was rejected or
                         withdrawn no run), every version of a file of labels/ that was committed
                         to, and what each score was told for
  scores/ID.json         true scores per query of a submission, by digest of its files
  signatures/ID.npz      the first documents of each query as 64-bit hashes
  sketches/SET.npz       a sketch of each signature, to look up runs that are alike
  comparisons/ID.json    what earlier runs a submission's are like; both are made again at any time
  refused                marks of refused arrivals that were printed in full, one a line
  running/               what a program reads and writes while `heldout run` runs it
  remembered/            what was verified before, so that it need not be again; may be removed
  remembered/scores/ID   scores that were computed ahead of a correction
  events.jsonl           everything that happened; append-only, hash-chained

Where it is a git clone with a remote, several organisers share it: store/sharing.py. No symlink in
it is followed (`store.files.Folder`): a pull could bring one.
"""

import hashlib
import hmac
import re
import secrets
import stat
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from functools import lru_cache, partial
from io import BytesIO
from pathlib import Path, PurePosixPath

from heldout.board.log import events, reading
from heldout.board.log.history import History
from heldout.board.rules import changes
from heldout.board.store import sharing
from heldout.board.store.git import Git
from heldout.envelope.keys import new_signing_key, public_key, sign
from heldout.errors import InputError, StoreError, printable
from heldout.files.durable import ASIDE, File, Folder, Mark
from heldout.ids import Digest, digest_bytes
from heldout.trec import groups, qrels

_FOUNDING = "founding"
_LOG = "events"
_MARK = 32
_MANY = 1_000
"""Events that are verified in a tenth of a second."""

_PRINTED = "refused"
_HOST = "identities/token-host"  # with the private keys: each organiser has a token of their own
_SIGNING = re.compile(r"[^.].*\.signing")
_FOLDERS = ("identities", *sharing.SHARED_FOLDERS)
_MOST_SEALED = 200 << 30
_FREE = 1 << 30
_KEY_BYTES = 32
_PRIVATE = (sharing.EVENTS, *(f"{folder}/any" for folder in sharing.SHARED_FOLDERS))
"""Paths like those that a vault's own .gitignore does not keep from git."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnSigner:
    """A signer of the board whose private key lies in this vault."""

    name: str
    key: str
    private: bytes

    def sign(self, digest: Digest) -> events.EventSignature:
        """Sign an event's hash."""
        return events.EventSignature(
            key=self.key, value=sign(self.private, events.event_message(digest))
        )


@dataclass(frozen=True, slots=True)
class Vault:
    """A vault, by its folder.

    Attributes:
        root: the folder.
        read_only: whether everything that would write, lock or fetch raises `RuntimeError`.
        stored: its files, where they are not in that folder but in memory; nobody shares it then.
    """

    root: Path
    read_only: bool = False
    stored: Folder | None = None

    @property
    def files(self) -> Folder:
        """The vault's files, of which none is reached by a symlink."""
        stored = Folder(self.root) if self.stored is None else self.stored
        return replace(stored, read_only=self.read_only)

    def _sharing(self) -> sharing.Sharing | None:
        """Return how several organisers share it; `None` where one alone has it."""
        alone = self.stored is not None or not (self.root / ".git").exists()
        return None if alone else sharing.find_sharing(self.root)

    @staticmethod
    def create(root: Path, *, board: Path) -> "Vault":
        """Make an empty vault, or go on with one that a crash left unfinished.

        It is unfinished while the file `founding` lies in it, which names its board.

        Raises:
            StoreError: it would lie where git would publish it, or the folder holds something.
        """
        vault = Vault(root)
        vault.check_new(board=board)
        root.mkdir(mode=0o700, parents=True, exist_ok=True)
        root.chmod(0o700)
        vault.files.write_whole(_FOUNDING, str(board.resolve()).encode(), mode=0o600)
        for name in _FOLDERS:
            vault.files.make_folder(name, mode=0o700)
        vault.files.write_whole(".gitignore", sharing.IGNORED, mode=0o600)
        return vault

    def check_new(self, *, board: Path) -> None:
        """Refuse a folder in which no vault for this board can be made or gone on with.

        Raises:
            StoreError: it lies where git would publish it, or holds something.
        """
        check_apart(self.root, board)
        # What a killed write left aside is nothing.
        holds = self.root.exists() and any(
            not path.name.startswith(ASIDE) for path in self.root.iterdir()
        )
        if holds and not self.is_unfinished(board):
            raise StoreError(f"{self.root} is not empty; name a folder that does not exist yet")

    def is_unfinished(self, board: Path) -> bool:
        """Check whether its founding for this board was begun and not finished."""
        return self.files.find(_FOUNDING) == str(board.resolve()).encode()

    def finish(self) -> None:
        """The founding is done."""
        self.files.delete(_FOUNDING)

    @staticmethod
    def open(root: Path, *, board: Path, read_only: bool = False) -> "Vault":
        """Open a vault that exists.

        Args:
            root: its folder.
            board: that of its board.
            read_only: refuse to write.

        Raises:
            StoreError: it is none, others may read it or git would publish it, or it lost its log.
        """
        vault = Vault(root, read_only=read_only)
        files = vault.files
        if files.exists(sharing.EVENTS) and not files.is_folder("identities"):
            raise StoreError(
                f"{root / 'identities'} is missing; restore it from the backup, or put your "
                "own key there if others share this vault (docs/how-to/organisers.md)"
            )
        if not files.is_folder("identities") or files.exists(_FOUNDING):
            raise StoreError(f"{root} is not a vault (--vault DIR or HELDOUT_VAULT names one)")
        check_apart(root, board)
        if stat.S_IMODE(root.stat().st_mode) & 0o077:
            raise StoreError(f"others may read the vault; run: chmod 700 {root}")
        if not _has_line(files, sharing.EVENTS):
            _check_born(root)
            raise StoreError(
                f"{root / sharing.EVENTS} is missing or empty; restore it from the backup"
            )
        return vault

    @contextmanager
    def locked(self) -> Iterator[tuple[str, ...]]:
        """One writer at a time; what a killed one left aside is removed.

        A shared vault is brought up to its remote first; gives what a person should know of that.

        Raises:
            StoreError: another process holds the lock, or the remote cannot be followed.
        """
        folders = (*_FOLDERS, *sharing.DERIVED_FOLDERS)
        with self.files.lock_and_sweep("lock", partial(self.files.sweep, "", *folders)):
            for folder in folders:
                self.files.stat(folder)  # refuses a symlink before anything is done
            shared = self._sharing()
            yield () if shared is None else shared.synchronise()

    def is_shared(self) -> bool:
        """Check whether several organisers share it, by a git remote."""
        return self._sharing() is not None

    def identities(self) -> tuple[str, ...]:
        """The private keys, as text.

        Raises:
            StoreError: one of the files is no text.
        """
        return tuple(_read_key(file) for file in self.identity_files())

    def identity_files(self) -> tuple[File, ...]:
        """The files of the private keys."""
        names = self.files.names("identities")
        # As a shell's *.txt: what an editor left hidden is no key.
        shown = (n for n in names if PurePosixPath(n).match("*.txt"))
        return tuple(self.files.file(f"identities/{name}") for name in shown)

    def add_identity(self, name: str, text: str) -> None:
        """Store a private key."""
        self.files.write_whole(f"identities/{name}.txt", text.encode("ascii"), mode=0o600)

    def token_host(self) -> str:
        """The host that this organiser's forge token is for; "" before one was named."""
        return self.files.read_lines(_HOST).decode("ascii", "replace").strip()

    def store_token_host(self, host: str) -> None:
        """Remember the host that the token may be sent to, as `ForgeSpec.host` has it."""
        self.files.write_whole(_HOST, f"{host}\n".encode("ascii"), mode=0o600)

    def signing_keys(self) -> tuple[bytes, ...]:
        """The private keys for signatures of events, in the order of their files.

        Raises:
            StoreError: one of the files is no such key.
        """
        found = tuple(file.read_bytes() for file in self._signing_files())
        for key in found:
            public_key(key)
        return found

    def _signing_files(self) -> tuple[File, ...]:
        names = sorted(n for n in self.files.names("identities") if _SIGNING.fullmatch(n))
        return tuple(self.files.file(f"identities/{name}") for name in names)

    def add_signing_key(self, private: bytes) -> None:
        """Store a private key for signatures of events; one that is here already is left alone."""
        taken = {file.name for file in self._signing_files()}
        names = ("organiser", *(f"organiser-{number}" for number in range(2, len(taken) + 3)))
        name = next(f"{name}.signing" for name in names if f"{name}.signing" not in taken)
        if private not in self.signing_keys():
            self.files.write_whole(f"identities/{name}", private, mode=0o600)

    def remove_signing_key(self, public: str) -> None:
        """Remove a private key that signs no more."""
        for file in self._signing_files():
            if public_key(file.read_bytes()) == public:
                file.delete()

    def own_signing_key(self) -> bytes:
        """The vault's first private key for signatures, which is made where there is none yet."""
        if not self.signing_keys():
            self.add_signing_key(new_signing_key("ORGANISER"))
        return self.signing_keys()[0]

    def own_signer(self, signers: events.Signers) -> OwnSigner | None:
        """Return which of a board's signers this vault can sign as, `None` for none of them."""
        ours = {public_key(private): private for private in self.signing_keys()}
        found = ((name, key) for name, key in signers.items() if key in ours)
        return next((OwnSigner(name=n, key=k, private=ours[k]) for n, k in found), None)

    def labels(self, name: str) -> qrels.Qrels:
        """A held-out set's labels.

        Raises:
            StoreError: they are missing.
        """
        with self._existing_labels(name).open("rb") as source:
            return qrels.read_qrels(source, path=f"{name}.qrels")

    def labels_digest(self, name: str) -> Digest:
        """Digest of a held-out set's labels.

        Raises:
            StoreError: they are missing.
        """
        return digest_bytes(self._existing_labels(name).read_bytes())

    def _existing_labels(self, name: str) -> File:
        file = self.labels_file(name)
        if file.is_file():
            return file
        if name in self.history().labels:
            raise StoreError(f"{file} is missing; restore it from the backup")
        raise StoreError(
            f"{file} is missing: board.toml names held-out labels '{name}'; put them there"
        )

    def labels_file(self, name: str) -> File:
        """Return where a held-out set's labels lie."""
        return self.files.file(f"labels/{name}.qrels")

    def excluded(self, name: str) -> frozenset[str]:
        """Queries of a held-out set that do not count.

        Raises:
            InputError: the file is no list of queries.
        """
        path = f"labels/{name}.exclude"
        if not self.files.exists(path):
            return frozenset()
        with self.files.open(path) as source:
            return groups.read_query_list(source, path=path)

    def set_key(self, name: str) -> bytes:
        """The secret key of a held-out query set, 32 bytes.

        Raises:
            StoreError: it is missing, or is no key.
        """
        path = _key_path(name)
        data = self.files.find(path)
        if data is None:
            raise StoreError(f"{self.files.path(path)} is missing; restore it from the backup")
        return changes.parse_key(data, path=path)

    def has_set_key(self, name: str) -> bool:
        """Check whether there is a key of a held-out query set."""
        return self.files.exists(_key_path(name))

    def make_set_key(self, name: str) -> bool:
        """Make the key of a query set that has none; whether it was made now.

        Raises:
            StoreError: there is one, and it is damaged.
        """
        path = _key_path(name)
        if self.files.exists(path):
            self.set_key(name)
            return False
        self.files.write_whole(
            path, changes.format_key(secrets.token_bytes(_KEY_BYTES)), mode=0o600
        )
        return True

    def drop_set_key(self, name: str) -> None:
        """Remove a key that no event commits to."""
        self.files.delete(_key_path(name))

    def held_out(self, stems: Collection[str]) -> dict[str, str]:
        """The files that decide scores: name, as `board.held_out` has it -> SHA-256.

        Args:
            stems: of query sets, and of labels that views name.
        """
        named = (
            (changes.held_out_name(file), f"labels/{file}") for file in self.files.names("labels")
        )
        return {
            name: digest_bytes(self.files.read(file))
            for name, file in sorted((name, file) for name, file in named if name is not None)
            if changes.stem_of(name) in stems and self.files.is_file(file)
        }

    def has_sealed(self, digest: str) -> bool:
        """Check whether a file lies here under that digest."""
        return self.files.is_file(f"sealed/{digest}")

    def check_room(self, size: int) -> None:
        """Refuse what strangers sent where the vault would hold too much, or its disk too little.

        Raises:
            InputError: code `vault-full`.
        """
        found = (self.files.stat(f"sealed/{name}") for name in self.files.names("sealed"))
        used = sum(one.st_size for one in found if one is not None)
        free = self.files.free_bytes()
        if used + size <= _MOST_SEALED and free - size >= _FREE:
            return
        raise InputError.of(
            "vault-full", "vault", used=used, free=free, size=size, most=_MOST_SEALED, least=_FREE
        )

    def store_sealed(self, data: bytes) -> Digest:
        """Store a sealed file by its digest."""
        digest = digest_bytes(data)
        self.files.write_whole(f"sealed/{digest}", data, mode=0o600)
        return digest

    def unneeded_runs(self, among: Callable[[str], bool]) -> frozenset[str]:
        """Return the digests of the runs that only rejected and withdrawn submissions have.

        Args:
            among: says which digests are asked about; for none of them the log is not searched.
        """
        return reading.unneeded_runs(self.log(), among)

    def remove_unneeded(self) -> None:
        """Remove these runs; those of a decision that a crash came after, too.

        In a shared vault they stay in git's history, which nobody rewrites.
        """
        for digest in self.unneeded_runs(self.has_sealed):
            self.files.delete(f"sealed/{digest}")

    def sealed(self, digest: str) -> File:
        """File of a sealed file that was received.

        Raises:
            StoreError: it is missing or damaged.
        """
        file = self.files.file(f"sealed/{digest}")
        if not file.is_file() or digest_bytes(file.read_bytes()) != digest:
            raise StoreError(f"{file} is missing or damaged; restore it from the backup")
        return file

    def scores(self, submission: str) -> File:
        """File of a submission's true scores."""
        return self._result("scores", submission)

    def signature(self, submission: str) -> File:
        """File of a submission's first documents."""
        return self._result("signatures", submission)

    def _result(self, folder: str, submission: str) -> File:
        return self.files.file(f"{folder}/{submission}{sharing.RESULTS[folder]}")

    def result_digests(self, submission: str) -> dict[str, str]:
        """Folder -> SHA-256 of what is kept of a submission, as an event that scores it has it."""
        found = {
            folder: self.files.find(self._result(folder, submission).path)
            for folder in sharing.RESULTS
        }
        return {folder: digest_bytes(data) for folder, data in found.items() if data is not None}

    def printed_refusals(self) -> frozenset[str]:
        """Marks of the refused arrivals that were printed in full."""
        return frozenset(self.files.read_lines(_PRINTED).decode("ascii").split())

    def store_printed(self, marks: frozenset[str]) -> None:
        """Remember these marks, and no others."""
        text = "".join(f"{mark}\n" for mark in sorted(marks))
        self.files.write_whole(_PRINTED, text.encode("ascii"), mode=0o600)

    def entries(self) -> tuple[events.Entry, ...]:
        """The whole log, every line verified now."""
        return events.parse_again(self.files.read_lines(sharing.EVENTS), path=sharing.EVENTS)

    def log(self) -> reading.Log:
        """The log, of which what this vault remembers is not verified again."""
        if self.stored is not None:
            return _log_in_memory(self.files.read_lines(sharing.EVENTS))
        names = (sharing.EVENTS,) if self.files.exists(sharing.EVENTS) else ()
        known = None
        if not reading.has_read(self.files, sharing.EVENTS):
            known = reading.decode_memory(self.recall(_LOG), reading.Remembered)
        return reading.find_log(self.files, names, path=sharing.EVENTS, known=known)

    def remember_log(self, *, least: int = _MANY) -> None:
        """Remember what was verified of the log, if that is as many events more than before."""
        log = self.log()
        if len(log) - log.remembered >= least and log.fault is None:
            self.remember(_LOG, reading.encode_memory(log.remember()))
            log.remembered = len(log)

    def remember(self, name: str, data: bytes) -> None:
        """Store what can be made again; it is bound to this vault's private keys.

        Nothing is stored where the vault has none, or is only read.
        """
        key = self._memory_key()
        if key is not None and not self.read_only:
            path = f"{sharing.REMEMBERED}/{name}"
            self.files.write_whole(path, _authenticate(key, name, data) + data, mode=0o600)

    def mark_of_memory(self, name: str) -> Mark | None:
        """Return what changes once `remember` has stored something else."""
        return self.files.mark(f"{sharing.REMEMBERED}/{name}")

    def recall(self, name: str) -> bytes | None:
        """Return what `remember` stored; `None` where nothing was, or without the keys."""
        data, key = self.files.find(f"{sharing.REMEMBERED}/{name}"), self._memory_key()
        if data is None or key is None:
            return None
        mark, content = data[:_MARK], data[_MARK:]
        return content if hmac.compare_digest(mark, _authenticate(key, name, content)) else None

    def forget(self, name: str) -> None:
        """Remove what `remember` stored."""
        self.files.delete(f"{sharing.REMEMBERED}/{name}")

    def sweep_memory(self, folder: str) -> None:
        """Remove what killed calls of `remember` left aside in a folder below `remembered/`."""
        self.files.sweep(f"{sharing.REMEMBERED}/{folder}")

    def _memory_key(self) -> bytes | None:
        """A secret that only who has the vault's private keys can know."""
        files = (*self.identity_files(), *self._signing_files())
        digest = hashlib.sha256(b"heldout remembers\n")
        for file in files:
            digest.update(hashlib.sha256(file.read_bytes()).digest())
        return digest.digest() if files else None

    def history(self) -> History:
        """Return what the log says."""
        return self.log().history

    def check_clock(self, now: datetime) -> None:
        """Refuse a clock by which nothing could be logged.

        Raises:
            StoreError: it is before the last event.
        """
        log = self.log()
        last = log.last if len(log) else None
        if self.is_shared():
            _check_clocks(last, now)
        events.check_clock(last, now)

    def append(self, draft: events.Draft, *, now: datetime) -> events.Entry:
        """Append an event; it has happened when this returns.

        In a shared vault it has happened when its push has succeeded, and not before.

        Raises:
            StoreError: code `overtaken`: another organiser's event came first.
            StoreError: a clock is wrong, this vault has no key of a signer, or the remote did not
                take it; nothing has happened.
        """
        if self.read_only:
            raise RuntimeError(f"{self.root} is opened to be read alone")
        log = self.log()
        shared = self._sharing()
        if shared is not None:
            _check_clocks(log.last if len(log) else None, now)
        entry = self.make_entry(draft, now=now)
        line = events.format_entry(entry)
        if shared is not None:
            fold = log.fold.copy()
            fold.take(entry)
            shared.record(
                self.files.read_lines(sharing.EVENTS) + line, last=entry, history=fold.now()
            )
        self.files.append_line(sharing.EVENTS, line)
        if self.stored is None:
            reading.went_on(self.files, sharing.EVENTS, line)
        return entry

    def make_entry(self, draft: events.Draft, *, now: datetime) -> events.Entry:
        """The next event of the log, linked and signed, which does not happen by this.

        Raises:
            StoreError: the clock is wrong, or this vault has no key of a signer.
        """
        log = self.log()
        signers = log.chain.signers or events.signers_after({}, draft.kind, draft.public)
        own = self.own_signer(signers)
        if own is None and signers:
            raise StoreError(
                f"no key in {self.root / 'identities'} is that of a signer of this board "
                f"({', '.join(map(printable, signers))}), so no event can be signed: restore it "
                "from the backup, or let another organiser name your key: heldout board signer, "
                "docs/how-to/keys.md"
            )
        entry = events.link(draft, log.last if len(log) else None, at=now)
        return entry if own is None else replace(entry, signature=own.sign(entry.hash))


def _key_path(name: str) -> str:
    return f"labels/{changes.held_out_file(changes.key_name(name))}"


def _has_line(files: Folder, name: str) -> bool:
    """Check whether a file has a whole line; no more than the first is read."""
    if not files.exists(name):
        return False
    files.check_size(name)
    with files.open(name) as stream:
        return stream.readline().endswith(b"\n")


def _read_key(file: File) -> str:
    """A key file's text, without the mark that some editors put before it."""
    try:
        return file.read_text("utf-8-sig")
    except UnicodeDecodeError:
        raise StoreError(
            f"{file} holds bytes that are not UTF-8, so no key: save it as plain text, or restore "
            "it from the backup"
        ) from None


def _check_clocks(last: events.Entry | None, now: datetime) -> None:
    """Say whose clock may be wrong where organisers at several machines log events."""
    if last is not None and now < last.time:
        raise StoreError(
            f"the clock here says {events.format_time(now)}, but the last event, by "
            f"{last.event.by}, is of {last.event.at}; events are never dated before others: set "
            "the clock that is wrong, here or there, or wait until then"
        )


@lru_cache(maxsize=2)
def _log_in_memory(data: bytes) -> reading.Log:
    return reading.read_log(lambda: BytesIO(data), path=sharing.EVENTS)


def _authenticate(key: bytes, name: str, data: bytes) -> bytes:
    """A mark of some bytes under a name that nobody can make without the key."""
    found = hashlib.blake2b(name.encode() + b"\0", key=key, digest_size=_MARK)
    found.update(data)
    return found.digest()


def _check_born(root: Path) -> None:
    """Name the branch of a clone that has nothing: the log is on another one, or nowhere yet."""
    git = Git(root)
    if (root / ".git").exists() and git.head() is None:
        raise StoreError(
            f"{root} is a clone whose branch {git.branch()} has no commit: its remote is empty, or "
            f"has the log on another branch, which git -C {root} branch -r names and "
            f"git -C {root} switch NAME takes (docs/how-to/organisers.md, Share a vault)"
        )


def check_apart(vault: Path, board: Path) -> None:
    """Refuse a vault where one `git add` would publish the labels.

    A vault that is the root of a repository itself is a shared one, which others do not take up.

    Raises:
        StoreError: the vault is the board, or lies in it, or in the working tree of another
            repository that does not ignore it.
    """
    inner, outer = vault.resolve(), board.resolve()
    if inner == outer or outer in inner.parents:
        raise StoreError("the vault lies inside the board, where git would publish it; move it out")
    around = next((folder for folder in inner.parents if (folder / ".git").exists()), None)
    if around is None or (inner / ".git").exists():
        return
    name = inner.relative_to(around).as_posix()
    if Git(around).unignored(*(f"{name}/{path}" for path in _PRIVATE)):
        raise StoreError(
            f"the vault {inner} lies in the working tree of {around}, where git would publish it "
            f"with everything else; move it out, or put /{name}/ into {around / '.gitignore'}"
        )
