"""Scores, stored once: what scoring a run gave, found again by the digests of all that went in.

A record holds one run seen through one set of judgments: the integers of the scan, so that a
measure that is asked for later needs no second look at the run, and the scores themselves. Its
key is the SHA-256 of the run's and of the judgments' bytes, the order of documents, and the code
that computed it. A run with errors is not stored: it gives no number, and is soon fixed.

A record names judged documents' places and grades, which may be secret: folders are 0700, files
0600, and a record that somebody else could have written is never read. A record that is damaged
fails its checksum and is as good as absent; writers need no lock: of two at once one wins.

On disk a record is msgpack, behind a line that says so and a checksum.
"""

import hashlib
import os
import stat
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

import heldout
from heldout.errors import Problem, SetupError, StoreError
from heldout.ids import Digest
from heldout.scoring.evaluate import Evaluation
from heldout.scoring.measures import Measure
from heldout.trec import orders, ranking, rows, scans


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """All that a record depends on, but the run.

    Attributes:
        qrels: SHA-256 of the judgments' bytes.
        order: the order asked for, `None` for the one that fits the run's columns.
        code: what computes, as `code_version` gives it.
    """

    qrels: Digest
    order: orders.Order | None
    code: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredRun:
    """What scoring a run gave.

    Attributes:
        digest: SHA-256 of the run's bytes.
        form: how its lines are laid out.
        order: the order of its documents.
        notes: what is odd about it, without the path, which may be another today.
        counts: code -> how many there are.
        facts: what is odd without being worth a note.
        rankings: places and grades of the judged documents.
        evaluation: its scores, as far as they are known; `None` before it was measured.
    """

    digest: Digest
    form: rows.Form | None
    order: orders.Order
    notes: tuple[Problem, ...]
    counts: Mapping[str, int]
    facts: scans.Facts
    rankings: ranking.Rankings
    evaluation: Evaluation | None = None


CODE = ("trec", "scoring")
"""The folders whose code decides a score."""

_FOLDER = "scores-1"
_LIMIT = 256 << 20
_SUFFIXES = (".py", ".c", ".h", ".so", ".pyd")
_OTHERS_MAY_WRITE = stat.S_IWGRP | stat.S_IWOTH


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreCache:
    """A folder of records.

    Attributes:
        root: the folder; made when something is written.
        limit: bytes of all records; `prune` removes the oldest when there are more. `None` for a
            folder that a user named: other machines may be about to read what is oldest here.
    """

    root: Path
    limit: int | None = _LIMIT

    @property
    def folder(self) -> Path:
        """Where the records of this version lie."""
        return self.root / _FOLDER

    def may_know(self, key: Key, size: int) -> bool:
        """Check whether some run of so many bytes was stored: only then is it worth hashing one."""
        with suppress(OSError):  # somebody else's folder
            return self._folder(key, size).is_dir()
        return False

    def find(
        self, key: Key, run: Digest, size: int, measures: Sequence[Measure]
    ) -> StoredRun | None:
        """Return what is stored of a run.

        Args:
            key: what else it depends on.
            run: SHA-256 of its bytes.
            size: how many bytes those are.
            measures: whose scores to return, as far as they are there, in this order.
        """
        path = self._folder(key, size) / run
        if not (content := _read_own(path)):
            return None
        found = decode(content, key, run)
        if found is None or found.evaluation is None:
            return None
        with suppress(OSError):
            os.utime(path)  # so that what is in use is not the oldest
        scores = found.evaluation.scores
        asked = {measure: scores[measure] for measure in measures if measure in scores}
        return replace(found, evaluation=replace(found.evaluation, scores=asked))

    def add(self, key: Key, size: int, found: StoredRun) -> bool:
        """Store scores, beside those that are already there of the same run.

        Returns:
            Whether that could be written. Nothing else depends on it.

        Raises:
            ValueError: it was not measured, or queries were left out.
        """
        if found.evaluation is None or found.evaluation.excluded:
            raise ValueError(found.digest)  # no part of the key says which queries were left out
        path = self._folder(key, size) / found.digest
        before = decode(_read_own(path), key, found.digest)
        if before is not None and before.evaluation is not None:
            scores = {**before.evaluation.scores, **found.evaluation.scores}
            found = replace(found, evaluation=replace(found.evaluation, scores=scores))
        try:
            _write(self.root, path, encode(key, found))
        except (OSError, StoreError):
            return False
        return True

    def prune(self) -> None:
        """Remove the records used longest ago until all together are within the limit."""
        if self.limit is None:
            return
        total = 0
        for _, size, path in sorted(_stat_files(self.folder), reverse=True):
            total += size
            if total > self.limit:
                with suppress(OSError):
                    path.unlink()
                    path.parent.rmdir()  # once it is empty

    def _folder(self, key: Key, size: int) -> Path:
        text = "\0".join((key.qrels, key.order or "", key.code))
        name = hashlib.sha256(text.encode()).hexdigest()
        return self.folder / name / str(size)


def find_cache(environ: Mapping[str, str]) -> ScoreCache | None:
    """Return where scores are stored; `None` for nowhere.

    Args:
        environ: `HELDOUT_CACHE` is a folder or `off`; without it the folder is `heldout` in
            `XDG_CACHE_HOME`, or in `.cache` at home.
    """
    chosen, shared = environ.get("HELDOUT_CACHE"), environ.get("XDG_CACHE_HOME", "")
    if chosen:
        return None if chosen == "off" else ScoreCache(root=Path(chosen).absolute(), limit=None)
    if Path(shared).is_absolute():
        return ScoreCache(root=Path(shared) / "heldout")
    home = environ.get("HOME")
    return ScoreCache(root=Path(home) / ".cache" / "heldout") if home else None


@cache
def code_version(package: Path = Path(heldout.__file__).parent) -> str:
    """Return what computes scores: versions, the machine, SHA-256 of the code.

    Args:
        package: folder of the code.

    Raises:
        SetupError: one of its folders is missing. Without it, stored scores would outlive changes
            of the code.
    """
    code = hashlib.sha256()
    for room in CODE:
        if not any((package / room).rglob("*.py")):
            raise SetupError(f"{package / room} has no code; install heldout again")
        for path in sorted((package / room).rglob("*")):
            if path.suffix in _SUFFIXES:
                data = path.read_bytes()
                code.update(f"{path.relative_to(package)} {len(data)}\n".encode())
                code.update(data)
    python = ".".join(map(str, sys.version_info[:3]))
    versions = f"heldout {heldout.__version__}, Python {python}, numpy {np.__version__}"
    return f"{versions}, {os.uname().machine}, {code.hexdigest()}"


def digest_file(path: Path) -> Digest:
    """SHA-256 of a file's bytes.

    Raises:
        OSError: it cannot be read.
    """
    with path.open("rb") as file:
        return Digest(hashlib.file_digest(file, "sha256").hexdigest())


def _read_own(path: Path) -> bytes:
    """A file that nobody but us can have written; nothing if it is not that."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        with os.fdopen(handle, "rb") as file:
            status = os.fstat(file.fileno())
            ours = status.st_uid == os.geteuid() and not status.st_mode & _OTHERS_MAY_WRITE
            return file.read() if ours and stat.S_ISREG(status.st_mode) else b""
    except OSError:
        return b""


def _write(root: Path, path: Path, data: bytes) -> None:
    """Write a record whole.

    Raises:
        OSError: it cannot be written.
        StoreError: something that is no file stands in its place.
    """
    from heldout.files.durable import write_whole  # noqa: PLC0415 - most calls only read

    root.mkdir(parents=True, exist_ok=True, mode=0o700)
    for folder in (path.parents[2], path.parents[1], path.parent):
        folder.mkdir(exist_ok=True, mode=0o700)
    write_whole(path, data, mode=0o600)


def _stat_files(folder: Path) -> Iterator[tuple[int, int, Path]]:
    """Time of last use in ns, size and path of every file, also of those never finished."""
    for path in folder.glob("*/*/*"):
        with suppress(OSError):
            status = path.stat()
            yield status.st_mtime_ns, status.st_size, path


_KIND = b"heldout scores 2\n"
_DIGEST_BYTES = 32


def encode(key: Key, found: StoredRun) -> bytes:
    """Return the content of the file of a run that was measured."""
    data = msgspec.msgpack.encode((key, found), enc_hook=_pack_array)
    return _KIND + hashlib.sha256(data).digest() + data


def decode(content: bytes, key: Key, run: Digest) -> StoredRun | None:
    """Return the run in a file, if it is whole, ours, and of these."""
    head = len(_KIND) + _DIGEST_BYTES
    data = content[head:]
    if content[:head] != _KIND + hashlib.sha256(data).digest():
        return None
    record = tuple[Key, StoredRun]
    try:
        its_key, found = msgspec.msgpack.decode(data, type=record, dec_hook=_unpack_array)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None
    return found if (found.digest, its_key) == (run, key) else None


def _pack_array(array: object) -> tuple[str, bytes]:
    if not isinstance(array, np.ndarray):
        raise NotImplementedError(type(array))
    return array.dtype.str, array.tobytes()


def _unpack_array(_type: type, packed: tuple[str, bytes]) -> NDArray[Any]:
    kind, data = packed
    return np.frombuffer(data, dtype=kind).copy()
