"""What the vault stores of comparing runs: sketches of all, and what each is like.

    sketches/SET           a row for each submission: of which signature file it is, and the sketch
    comparisons/ID.json    what earlier runs a submission's runs are like
    comparisons/keys.json  the digest of each submission's own key, from `scores/`

All are made from `signatures/` and `scores/`. None is shared, and each may be deleted at any time:
what is missing, damaged or of another file is made again, row by row.

A file of sketches is a line with the SHA-256 of the next, that line with key and queries, then
rows of one length. Each row has a checksum of its own, so a row that a crash cut off is no row. It
is of the signature file whose inode, size and time of change it has: what was written since has
others, and is read again.

A stored comparison counts for what it was made of alone: the run's own signature, the signatures
of all earlier runs, and the code that compares.
"""

import hashlib
import inspect
import os
import secrets
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, lru_cache, partial
from typing import NamedTuple, TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from heldout.board.policy import ensembles, similarity, sketches
from heldout.board.policy.ensembles import RunLikeness
from heldout.board.policy.similarity import TOP
from heldout.board.policy.sketches import Block, Sketches, sketch
from heldout.board.scores.kept import read_signatures
from heldout.board.store.sharing import KEPT, kept_path
from heldout.board.store.vault import Vault
from heldout.errors import StoreError
from heldout.files.durable import ASIDE, Folder
from heldout.ids import digest_bytes
from heldout.trec.scans import Signature

T = TypeVar("T", bound=msgspec.Struct)

_KEYS = "comparisons/keys.json"
_MOST_HEAD = 1 << 26
_FORMAT = 1
_CHUNK = 1 << 22
_DIGEST = 32
_CHECKSUM = 4


class Stamp(NamedTuple):
    """Which state of a file was read: none that is written later has the same."""

    inode: int
    size: int
    changed: int


class _Head(msgspec.Struct, frozen=True, kw_only=True):
    """What holds for all rows.

    Attributes:
        key: of the sketches.
        queries: id of each column.
        format: version of the rows.
        top: documents of a query.
    """

    key: int
    queries: tuple[str, ...]
    format: int = _FORMAT
    top: int = TOP


@dataclass(frozen=True, slots=True, kw_only=True)
class _Row:
    """Where the sketch of a submission lies, and what it is of."""

    slot: int
    stamp: Stamp
    digest: bytes


class SketchFile:
    """The sketches of one query set.

    Args:
        files: of the vault.
        query_set: its name.
        queries: the first columns of a new file.
    """

    def __init__(self, files: Folder, query_set: str, queries: Sequence[str]) -> None:
        self._files = files
        self._path = f"sketches/{query_set}"
        self._head, self._start = self._read_head(queries)
        self._columns = {query: column for column, query in enumerate(self._head.queries)}
        self._layout = _lay_out(len(self._head.queries))
        self._rows: dict[bytes, _Row] = {}
        self._slots = 0
        self._pending: dict[int, bytes] = {}
        if self._start:
            self._read_rows()
        else:
            self._write_head()

    def find(self, submission: str) -> _Row | None:
        """The row of a submission, `None` before it has one."""
        return self._rows.get(_name(submission))

    def put(self, submission: str, stamp: Stamp, digest: bytes, run: Signature | None) -> None:
        """Add or replace the row of a submission; it is written with the next `flush`.

        Args:
            submission: its id.
            stamp: of its signature file.
            digest: SHA-256 of that file.
            run: what it has for this query set, `None` for nothing.
        """
        run = run or Signature(queries=(), documents=np.zeros((0, TOP), np.uint64))
        unknown = [query for query in run.queries if query not in self._columns]
        if unknown:
            self._widen(unknown)
        name = _name(submission)
        known = self._rows.get(name)
        row = np.zeros((), self._layout)
        row["submission"] = np.frombuffer(name, np.uint8)
        row["digest"] = np.frombuffer(digest, np.uint8)
        row["inode"], row["size"], row["changed"] = stamp
        row["tops"] = sketch(run, self._columns, self._head.key)
        slot = self._slots if known is None else known.slot
        self._slots = max(self._slots, slot + 1)
        self._rows[name] = _Row(slot=slot, stamp=stamp, digest=digest)
        self._pending[slot] = _seal(row)
        if len(self._pending) * self._layout.itemsize > _CHUNK:
            self.flush()

    def flush(self) -> None:
        """Write what was put."""
        if not self._pending:
            return
        with self._files.change(self._path) as file:
            for slot, data in sorted(self._pending.items()):
                file.seek(self._start + slot * self._layout.itemsize)
                file.write(data)
        self._pending = {}

    def of(self, names: Sequence[str]) -> Sketches:
        """The sketches of some submissions, all of which have a row."""
        head = self._head
        blocks = partial(self._blocks, names)
        return Sketches(names=names, queries=head.queries, key=head.key, blocks=blocks)

    def _blocks(self, names: Sequence[str]) -> Iterator[Block]:
        self.flush()
        places = np.full(self._slots, -1, np.int64)
        for place, name in enumerate(names):
            places[self._rows[_name(name)].slot] = place
        for start, rows in self._chunks():
            wanted = places[start : start + len(rows)]
            if (wanted >= 0).any():
                yield wanted[wanted >= 0], rows["tops"][wanted >= 0]

    def _read_head(self, queries: Sequence[str]) -> tuple[_Head, int]:
        """The head, and where the rows begin; a new head and 0 where there is none."""
        if self._files.is_file(self._path):
            self._files.check_size(self._path)
            with self._files.open(self._path) as file:
                digest, line = file.readline(_MOST_HEAD).strip(), file.readline(_MOST_HEAD)
            head = _decode(line, _Head) if digest == digest_bytes(line).encode() else None
            if head is not None and (head.format, head.top) == (_FORMAT, TOP):
                return head, len(digest) + 1 + len(line)
        return _Head(key=secrets.randbits(64) | 1, queries=tuple(queries)), 0

    def _read_rows(self) -> None:
        """Note the rows that are whole; any other will be made again."""
        for start, rows in self._chunks():
            self._slots = start + len(rows)
            for slot, row in enumerate(rows, start):
                if _is_whole(row):
                    stamp = Stamp(int(row["inode"]), int(row["size"]), int(row["changed"]))
                    digest, name = row["digest"].tobytes(), row["submission"].tobytes()
                    self._rows[name] = _Row(slot=slot, stamp=stamp, digest=digest)

    def _chunks(self) -> Iterator[tuple[int, NDArray[np.void]]]:
        """First slot and rows, of the whole rows that are in the file."""
        size = self._layout.itemsize
        many, slot = max(1, _CHUNK // size), 0
        with self._files.open(self._path) as file:
            file.seek(self._start)
            while whole := len(data := file.read(many * size)) // size:
                yield slot, np.frombuffer(data, self._layout, count=whole)
                slot += whole

    def _write_head(self) -> None:
        head = _encode_head(self._head)
        self._files.write_whole(self._path, head, mode=0o600)
        self._start = len(head)

    def _widen(self, queries: Sequence[str]) -> None:
        """Write the file again with more columns, aside and then in its place."""
        self.flush()
        wider = msgspec.structs.replace(self._head, queries=(*self._head.queries, *queries))
        head, layout = _encode_head(wider), _lay_out(len(wider.queries))
        aside = f"sketches/{ASIDE}{secrets.token_hex(8)}"
        with self._files.create(aside, mode=0o600) as file:
            file.write(head)
            for _, rows in self._chunks():
                for row in rows:
                    file.write(
                        _seal(_copy(row, layout)) if _is_whole(row) else bytes(layout.itemsize)
                    )
        self._files.rename(aside, self._path)
        self._head, self._start, self._layout = wider, len(head), layout
        self._columns = {query: column for column, query in enumerate(wider.queries)}


def _lay_out(queries: int) -> np.dtype[np.void]:
    """A row; its checksum is of all that follows it."""
    return np.dtype(
        [
            ("checksum", "<u4"),
            ("submission", "u1", (_DIGEST,)),
            ("digest", "u1", (_DIGEST,)),
            ("inode", "<u8"),
            ("size", "<u8"),
            ("changed", "<i8"),
            ("tops", "<u2", (queries, TOP)),
        ]
    )


@lru_cache(maxsize=1 << 15)
def _name(submission: str) -> bytes:
    """An id as a row has it: of one length."""
    return hashlib.sha256(submission.encode()).digest()


def _copy(row: np.void, layout: np.dtype[np.void]) -> NDArray[np.void]:
    """A row with more columns."""
    wide = np.zeros((), layout)
    for field in layout.names or ():
        if field != "tops":
            wide[field] = row[field]
    wide["tops"][: len(row["tops"])] = row["tops"]
    return wide


def _seal(row: NDArray[np.void]) -> bytes:
    """The bytes of a row, with its checksum."""
    body = row.tobytes()[_CHECKSUM:]
    return zlib.crc32(body).to_bytes(_CHECKSUM, "little") + body


def _is_whole(row: np.void) -> bool:
    return zlib.crc32(row.tobytes()[_CHECKSUM:]) == int(row["checksum"])


def _decode(data: bytes, kind: type[T]) -> T | None:
    """A document; `None` where it is another file's, or made to be one."""
    with suppress(msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return msgspec.json.decode(data, type=kind)
    return None


def _encode_head(head: _Head) -> bytes:
    line = msgspec.json.encode(head) + b"\n"
    return digest_bytes(line).encode() + b"\n" + line


def refresh(
    vault: Vault,
    names: Sequence[str],
    sketches_of: Mapping[str, SketchFile],
    read: Callable[[str], Mapping[str, Signature]],
) -> dict[str, bytes]:
    """Bring the rows of some submissions up to their signature files.

    Args:
        vault: of the board.
        names: the submissions.
        sketches_of: query set -> its file.
        read: gives the signatures of a submission; it repairs what is damaged or lost.

    Returns:
        Submission -> SHA-256 of its signature file, of those that have one.
    """
    stamps = _stamps(vault, "signatures")
    digests = {}
    for name in names:
        stamp = stamps.get(name)
        rows = [file.find(name) for file in sketches_of.values()]
        fresh = stamp is not None and all(row is not None and row.stamp == stamp for row in rows)
        if fresh and rows[0] is not None:
            digests[name] = rows[0].digest
        elif (digest := _refresh(vault, name, sketches_of, read)) is not None:
            digests[name] = digest
    for file in sketches_of.values():
        file.flush()
    return digests


def _refresh(
    vault: Vault,
    name: str,
    sketches_of: Mapping[str, SketchFile],
    read: Callable[[str], Mapping[str, Signature]],
) -> bytes | None:
    """Read one signature file; `None` where nothing can be read or made again."""
    found = read(name)
    file = vault.signature(name)
    status = vault.files.stat(kept_path("signatures", name))
    if status is None or (not found and not _is_sound(vault, name)):
        return None
    digest = hashlib.sha256(file.read_bytes()).digest()
    for query_set, stored in sketches_of.items():
        stored.put(name, _stamp(status), digest, found.get(query_set))
    return digest


def _is_sound(vault: Vault, name: str) -> bool:
    """Whether a signature file holds no run, rather than none that can be read."""
    try:
        return not read_signatures(vault, name)
    except StoreError:
        return False


def _stamps(vault: Vault, folder: str) -> dict[str, Stamp]:
    """Submission -> the state of its file in a folder of `KEPT`."""
    ending = KEPT[folder]
    stamps = vault.files.stats(folder).items()
    return {n.removesuffix(ending): _stamp(s) for n, s in stamps if n.endswith(ending)}


def _stamp(status: os.stat_result) -> Stamp:
    return Stamp(status.st_ino, status.st_size, status.st_ctime_ns)


class _Keys(msgspec.Struct, frozen=True, kw_only=True):
    """`comparisons/keys.json`: submission -> state of its file of scores, and the key in it."""

    known: dict[str, tuple[Stamp, str]]


def list_keys(vault: Vault, names: Iterable[str], read: Callable[[str], str]) -> dict[str, str]:
    """Submission -> digest of its own key, "" where it is not known.

    Args:
        vault: of the board.
        names: the submissions.
        read: reads the key in the scores of one; it repairs what is damaged or lost.
    """
    stamps = _stamps(vault, "scores")
    stored = _read_checked(vault, _KEYS, _Keys)
    known = {} if stored is None else stored.known
    keys, fresh = {}, {}
    for name in names:
        stamp, key = known.get(name, (None, ""))
        if stamp is None or stamp != stamps.get(name):
            key = read(name)
            status = vault.files.stat(kept_path("scores", name)) if key else None
            stamp = None if status is None else _stamp(status)
        keys[name] = key
        if stamp is not None:
            fresh[name] = (stamp, key)
    if fresh != known:
        _write_checked(vault, _KEYS, _Keys(known=fresh))
    return keys


class _Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """`comparisons/ID.json`: what was found, and by what.

    Attributes:
        made_of: digest of all that it depends on.
        found: query set -> what earlier runs are like the submission's.
    """

    made_of: str
    found: dict[str, RunLikeness]


def digest_inputs(own: bytes, earlier: Mapping[str, bytes]) -> str:
    """The digest of all that a comparison depends on.

    Args:
        own: SHA-256 of the submission's signature file.
        earlier: earlier submission -> that of its file, in the order in which they came.
    """
    inputs = hashlib.sha256(_digest_code() + own)
    for name, digest in earlier.items():
        inputs.update(_name(name) + digest)
    return inputs.hexdigest()


@cache
def _digest_code() -> bytes:
    """Of the code that compares: other code may find something else."""
    code = hashlib.sha256(np.__version__.encode())
    for module in (similarity, ensembles, sketches):
        code.update(hashlib.sha256(inspect.getsource(module).encode()).digest())
    return code.digest()


def read_comparison(vault: Vault, submission: str, made_of: str) -> dict[str, RunLikeness] | None:
    """What was found before, `None` where nothing is stored, or not of just these inputs."""
    stored = _read_checked(vault, f"comparisons/{submission}.json", _Comparison)
    return None if stored is None or stored.made_of != made_of else stored.found


def store_comparison(
    vault: Vault, submission: str, made_of: str, found: Mapping[str, RunLikeness]
) -> None:
    """Store what was found."""
    stored = _Comparison(made_of=made_of, found=dict(found))
    _write_checked(vault, f"comparisons/{submission}.json", stored)


def _read_checked(vault: Vault, path: str, kind: type[T]) -> T | None:
    """A document behind a line with its SHA-256; `None` where it is missing or damaged."""
    digest, _, body = (vault.files.find(path) or b"").partition(b"\n")
    if digest != digest_bytes(body).encode():
        return None
    return _decode(body, kind)


def _write_checked(vault: Vault, path: str, document: msgspec.Struct) -> None:
    body = msgspec.json.encode(document)
    vault.files.write_whole(path, digest_bytes(body).encode() + b"\n" + body, mode=0o600)
