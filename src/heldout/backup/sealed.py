"""The file of a backup: a tarball, compressed by zstd, encrypted with age.

    age(zstd(tar(heldout-backup-1/DIGEST, ..., heldout-backup-1/MANIFEST.json)))

Each content lies there once, under its SHA-256; the manifest, which comes last, says what it is. So
a name in the tarball never becomes a path, and a content that is not what its name says is found
while it is read. age authenticates each 64 KiB, and that the file is whole; not who made it. So
what comes out is read as if an enemy had made it: nothing but plain files, bounded, each once.

`unpack` writes contents by their digests alone; they get names when all of them were checked.
"""

import hashlib
import io
import os
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import msgspec

from heldout.backup.manifest import Manifest, Stored, check_manifest, damaged
from heldout.envelope.age import decrypt_for, encrypting, is_age
from heldout.envelope.archive import PACK_END, Member, pack_header, pack_padding, read_files
from heldout.errors import InputError, StoreError, TrustError, quote
from heldout.files.durable import ASIDE, Folder
from heldout.ids import digest_bytes

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

_FORMAT = "heldout-backup-"
_ROOT = f"{_FORMAT}1/"
_MANIFEST = f"{_ROOT}MANIFEST.json"
_HEX = frozenset("0123456789abcdef")
_DIGEST_LENGTH = 64
_CHUNK = 1 << 20
_HEAD = 4096
_MOST_MEMBERS = 5_000_000
_MOST_MANIFEST = 1 << 29
_SMALL = 1 << 26
_SPARE = 1 << 28
_MOST_RATIO = 250


@dataclass(slots=True)
class Writer:
    """Adds contents to a backup; each is stored once, however often it is added.

    Attributes:
        target: the plaintext.
        known: the digests that are there.
    """

    target: BinaryIO
    known: set[str] = field(default_factory=set)

    def add(self, data: bytes) -> Stored:
        """Store some bytes."""
        stored = Stored(bytes=len(data), sha256=digest_bytes(data))
        self._store(stored, io.BytesIO(data), "")
        return stored

    def add_file(self, source: BinaryIO, name: str) -> Stored:
        """Store a file's content, which is read twice: for its digest, then to be stored.

        Raises:
            InputError: code `changed-file`: it was written to meanwhile.
            StoreError: it is larger than 8 GiB.
        """
        digest = hashlib.sha256()
        while data := source.read(_CHUNK):
            digest.update(data)
        stored = Stored(bytes=source.tell(), sha256=digest.hexdigest())
        source.seek(0)
        self._store(stored, source, name)
        return stored

    def finish(self, manifest: Manifest) -> None:
        """Write what the backup holds, and its end."""
        data = msgspec.json.encode(manifest, order="deterministic")
        self._write(_MANIFEST, io.BytesIO(data), len(data))
        self.target.write(PACK_END)

    def _store(self, stored: Stored, source: BinaryIO, name: str) -> None:
        if stored.sha256 in self.known:
            return
        self.known.add(stored.sha256)
        try:
            read = self._write(f"{_ROOT}{stored.sha256}", source, stored.bytes)
        except ValueError:
            raise StoreError(f"{name} is larger than a backup can hold (8 GiB)") from None
        if read != stored.sha256:
            raise InputError.of(
                "changed-file", name, "other bytes when it was read again", "a file at rest"
            )

    def _write(self, name: str, source: BinaryIO, size: int) -> str:
        """Write a member; the digest of what was written."""
        self.target.write(pack_header(name, size))
        digest, left = hashlib.sha256(), size
        while left and (data := source.read(min(_CHUNK, left))):
            digest.update(data)
            self.target.write(data)
            left -= len(data)
        self.target.write(bytes(left) + pack_padding(size))  # of a file that became shorter
        return digest.hexdigest()


@contextmanager
def new_backup(path: Path, recipients: Sequence[str]) -> Iterator[Writer]:
    """A new backup: a whole file when the block has ended, and no file before, or if it fails.

    Args:
        path: the file; nothing may lie there.
        recipients: public keys (age) of who can open it.

    Raises:
        StoreError: something lies there.
        OSError: it cannot be written.
    """
    folder, aside = Folder(path.parent), path.with_name(f"{ASIDE}{path.name}")
    if path.exists() or path.is_symlink():
        raise StoreError(f"{path} exists; name a file that does not exist yet")
    folder.delete(aside.name)  # what a killed call left
    try:
        with folder.create(aside.name, mode=0o600) as file:
            with (
                encrypting(file, recipients) as plaintext,
                zstd.ZstdFile(plaintext, "wb") as compressed,
            ):
                yield Writer(target=compressed)  # type: ignore[arg-type]  # it has all that is used
            file.flush()
            os.fsync(file.fileno())
        if path.exists():
            raise StoreError(f"{path} exists; name a file that does not exist yet")
        aside.replace(path)
        folder.sync()
    finally:
        folder.delete(aside.name)


def unpack(path: Path, identities: Sequence[str], folder: Path) -> Manifest:
    """Read a whole backup, check every byte of it, and write each content under its SHA-256.

    Args:
        path: the file.
        identities: private keys (age), as the text of their files.
        folder: empty, and ours alone; where this fails it is to be removed.

    Raises:
        InputError: codes `backup-foreign`, `backup-key`, `backup-newer`, `backup-damaged`,
            `archive-bomb`.
        StoreError: the disk has no room for it.
    """
    found: dict[str, int] = {}
    manifest: Manifest | None = None
    room = shutil.disk_usage(folder).free // 2 - _SPARE  # each is copied to its name

    def take(digest: str, member: Member) -> None:
        nonlocal manifest, room
        if not digest:
            manifest = _decode(member, path)
            return
        room -= member.size
        if room < 0:
            raise StoreError(f"the disk of {folder} has no room for {path}; nothing was restored")
        with (folder / digest).open("xb") as target:
            shutil.copyfileobj(member, target, _CHUNK)
        found[digest] = member.size

    _read(path, identities, take)
    if manifest is None:
        raise damaged(path.name, "no list of its files")
    check_manifest(manifest, found, path.name)
    return manifest


def _read(path: Path, identities: Sequence[str], take: Callable[[str, Member], None]) -> None:
    with path.open("rb") as file:
        if not is_age(file.read(_HEAD)):
            raise _foreign(path, "no file that age has encrypted")
        file.seek(0)
        pieces = _Pieces(decrypt_for(file, identities))
        try:
            with zstd.ZstdFile(pieces, "rb") as plain:
                _take_members(_bounded(plain, pieces, path), take, path)
            if pieces.read(1):
                raise damaged(path.name, "bytes after its end")
        except (TrustError, zstd.ZstdError, EOFError) as error:
            raise _explain(error, pieces, path) from None
        finally:
            pieces.close()


def _take_members(plain: Iterator[bytes], take: Callable[[str, Member], None], path: Path) -> None:
    seen: set[str] = set()
    for member in read_files(plain):
        name = member.name
        if not seen:
            _check_format(name, path)
        digest = "" if name == _MANIFEST else name.removeprefix(_ROOT)
        if (digest and not _is_digest(digest)) or name in seen or _MANIFEST in seen:
            raise damaged(path.name, f"{quote(name)}, which no backup has there")
        seen.add(name)
        if len(seen) > _MOST_MEMBERS:
            raise _bomb(path, f"more than {_MOST_MEMBERS:,} files")
        take(digest, member)
        member.finish()
        if digest and member.digest != digest:
            raise damaged(path.name, "a content that is not what its name says")


def _check_format(name: str, path: Path) -> None:
    """Refuse what is no backup of ours, or of a later heldout."""
    if name.startswith(_ROOT):
        return
    number = name.removeprefix(_FORMAT).partition("/")[0]
    if name.startswith(_FORMAT) and number.isdecimal():
        raise InputError.of(
            "backup-newer",
            path.name,
            f"a backup of format {number}",
            "format 1",
            "restore it with the heldout that wrote it, or a later one",
        )
    raise _foreign(path, "an age file that holds something else")


def _decode(member: Member, path: Path) -> Manifest:
    if member.size > _MOST_MANIFEST:
        raise _bomb(path, f"a list of {member.size:,} bytes")
    data = io.BufferedReader(member, _CHUNK).read(member.size)
    try:
        return msgspec.json.decode(data, type=Manifest)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        raise damaged(path.name, "a list of its files that cannot be read") from None


def _is_digest(text: str) -> bool:
    return len(text) == _DIGEST_LENGTH and set(text) <= _HEX


class _Pieces(io.RawIOBase):
    """Pieces of bytes as a stream, which counts them."""

    def __init__(self, pieces: Iterable[bytes]) -> None:
        super().__init__()
        self._pieces = iter(pieces)
        self._rest = b""
        self.count = 0

    def readable(self) -> bool:
        """It is."""
        return True

    def readinto(self, buffer: "WriteableBuffer", /) -> int:
        """Read on; 0 at the end."""
        view = memoryview(buffer).cast("B")
        while not self._rest:
            piece = next(self._pieces, None)
            if piece is None:
                return 0
            self._rest = piece
            self.count += len(piece)
        data, self._rest = self._rest[: len(view)], self._rest[len(view) :]
        view[: len(data)] = data
        return len(data)

    def close(self) -> None:
        """End the thread that decrypts."""
        with suppress(AttributeError):
            self._pieces.close()  # type: ignore[attr-defined]  # of a generator
        super().close()


def _bounded(plain: zstd.ZstdFile, pieces: _Pieces, path: Path) -> Iterator[bytes]:
    """What comes out of a compressed stream, unless it is far more than went in."""
    total = 0
    while data := plain.read(_CHUNK):
        total += len(data)
        if total > _SMALL and total > pieces.count * _MOST_RATIO:
            raise _bomb(path, f"more than {_MOST_RATIO} bytes out of each that is stored")
        yield data


def _explain(error: Exception, pieces: _Pieces, path: Path) -> InputError:
    """What is wrong, by how far reading came."""
    if isinstance(error, TrustError) and not pieces.count:
        return InputError.of(
            "backup-key",
            path.name,
            "a file that none of these private keys opens",
            "a key that it was encrypted for",
            "name the key (--identity FILE); with the right one, its first 64 KiB are damaged",
        )
    if isinstance(error, zstd.ZstdError) and pieces.count <= _SMALL:
        return _foreign(path, "an age file that holds something else, or a damaged one")
    return damaged(path.name, "a cut or damaged file")


def _foreign(path: Path, found: str) -> InputError:
    return InputError.of(
        "backup-foreign", path.name, found, "a file that heldout backup has written"
    )


def _bomb(path: Path, found: str) -> InputError:
    return InputError.of("archive-bomb", path.name, found, "a backup of a board")
