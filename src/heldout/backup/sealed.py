"""The file of a backup: a tarball, compressed by zstd, encrypted with age.

    age(zstd(tar(heldout-backup-2/KIND/FOLDER/PATH, ..., heldout-backup-2/MANIFEST.json)))

KIND is `files` for what lies in a folder, `own` for the keys and drafts of a clone, `git` for a
bundle of all its refs, and `rows` for the tables of a database. So age, zstd and tar get the files
out without heldout. age authenticates each 64 KiB, and that the file is whole; not who made it. So
what comes out is read as if an enemy had made it: nothing but plain files, bounded, each once, by
paths that stay in their folders and lie in no folder of git's.
"""

import io
import os
import shutil
import sys
import tarfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Literal

import msgspec

from heldout.envelope.age import decrypt_for, encrypting, is_age
from heldout.errors import InputError, StoreError, TrustError, quote
from heldout.files.durable import ASIDE, Folder

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

BOARD = "board"
VAULT = "vault"
DATABASE = "database"
BUNDLE = "bundle"
"""Name of the one file of kind `git` that a folder has."""

Kind = Literal["files", "own", "git", "rows"]

_FORMAT = "heldout-backup-"
_ROOT = f"{_FORMAT}2/"
_MANIFEST = f"{_ROOT}MANIFEST.json"
_CHUNK = 1 << 20
_HEAD = 4096
_MOST_MEMBERS = 5_000_000
_MOST_MANIFEST = 1 << 24
_SMALL = 1 << 26
_SPARE = 1 << 28
_MOST_RATIO = 250
_LONGEST = 4096
_LONGEST_PART = 255


class GitState(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A folder's git: the branch that is checked out, and name -> address of its remotes."""

    branch: str
    remotes: dict[str, str]


class FolderState(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A folder.

    Attributes:
        files: how many lie in it, beside git's.
        git: `None` of a folder that is no repository.
        private: whether nobody else may read it.
    """

    files: int
    git: GitState | None
    private: bool


class DatabaseState(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A database: name of each schema -> its version, name of each table -> number of rows."""

    versions: dict[str, int]
    rows: dict[str, int]


class LogState(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """State of the log: number of events, hash and time of the last one."""

    events: int
    head: str
    at: str


class BackupManifest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The content of a backup.

    Attributes:
        created_at: time, UTC.
        program: version of heldout that wrote it.
        folders: name -> folder; `board` and `vault` are those.
        database: `None` where none was asked for.
        log: of the vault, else of the board; `None` without either.
    """

    created_at: str
    program: str
    folders: dict[str, FolderState]
    database: DatabaseState | None
    log: LogState | None


@dataclass(frozen=True, slots=True)
class Writer:
    """Adds files to a backup."""

    tar: tarfile.TarFile

    def add(self, kind: Kind, folder: str, path: str, source: BinaryIO) -> None:
        """Store a file, which is read from its beginning to its end.

        Raises:
            InputError: code `changed-file`: it was written to meanwhile.
        """
        name, before = f"{kind}/{folder}/{path}", os.fstat(source.fileno())
        source.seek(0)
        try:
            self._write(f"{_ROOT}{name}", source, before.st_size)
            after = os.fstat(source.fileno())
            same = (before.st_size, before.st_mtime_ns) == (after.st_size, after.st_mtime_ns)
        except tarfile.TarError:
            same = False
        if not same:
            raise InputError.of("changed-file", name)

    def finish(self, manifest: BackupManifest) -> None:
        """Write what the backup holds, and its end."""
        data = msgspec.json.encode(manifest, order="deterministic")
        self._write(_MANIFEST, io.BytesIO(data), len(data))
        self.tar.close()

    def _write(self, name: str, source: BinaryIO, size: int) -> None:
        info = tarfile.TarInfo(name)
        info.size = size
        try:
            self.tar.addfile(info, source)
        except OSError as error:
            if error.errno is not None:  # the disk's
                raise
            raise tarfile.ReadError(str(error)) from None  # the file became shorter
        _forget(self.tar)


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
                tarfile.open(fileobj=compressed, mode="w|") as tar,
            ):
                yield Writer(tar)
            file.flush()
            os.fsync(file.fileno())
        if path.exists():
            raise StoreError(f"{path} exists; name a file that does not exist yet")
        aside.replace(path)
        folder.sync()
    finally:
        folder.delete(aside.name)


def unpack(path: Path, identities: Sequence[str], folder: Path) -> BackupManifest:
    """Read a whole backup and write its files as KIND/FOLDER/PATH.

    Args:
        path: the file.
        identities: private keys (age), as the text of their files.
        folder: empty, and ours alone; where this fails it is to be removed.

    Raises:
        InputError: codes `backup-foreign`, `backup-key`, `backup-newer`, `backup-damaged`,
            `archive-bomb`.
        StoreError: the disk has no room for it.
    """
    with path.open("rb") as file:
        if not is_age(file.read(_HEAD)):
            raise _foreign(path, "no file that age has encrypted")
        file.seek(0)
        pieces = _Pieces(decrypt_for(file, identities))
        try:
            with zstd.ZstdFile(pieces, "rb") as plain:
                bounded = _Bounded(plain, pieces, path)
                manifest = _take_members(bounded, folder, path)
                while bounded.read(_CHUNK):  # only its end says that age's file is whole
                    pass
            if pieces.read(1):
                raise damaged(path.name, "bytes after its end")
        except (TrustError, zstd.ZstdError, EOFError, tarfile.TarError) as error:
            raise _explain(error, pieces, path) from None
        finally:
            pieces.close()
    return manifest


def _take_members(plain: "_Bounded", folder: Path, path: Path) -> BackupManifest:
    """Write each file of a tarball; return its list, which has to come last and to fit."""
    room = shutil.disk_usage(folder).free // 2 - _SPARE  # a bundle is unpacked once more
    found: Counter[tuple[str, str]] = Counter()
    manifest: BackupManifest | None = None
    with tarfile.open(fileobj=plain, mode="r|") as tar:  # type: ignore[call-overload]  # reads alone
        for number, member in enumerate(iter(tar.next, None)):
            _forget(tar)
            if not number:
                _check_format(member.name, path)
            source = tar.extractfile(member) if member.type == tarfile.REGTYPE else None
            if source is None or member.sparse is not None or manifest is not None:
                raise damaged(path.name, f"{quote(member.name)}, which no backup has there")
            if number > _MOST_MEMBERS:
                raise _bomb(path, f"more than {_MOST_MEMBERS:,} files")
            if member.name == _MANIFEST:
                manifest = _decode(source.read(_MOST_MANIFEST), path)
                continue
            room -= member.size
            if room < 0:
                raise StoreError(
                    f"the disk of {folder} has no room for {path}; nothing was restored"
                )
            kind, name = _write_member(member.name, source, folder, path)
            found[kind, name] += 1
    if manifest is None:
        raise damaged(path.name, "no list of its files")
    _check_manifest(manifest, found, path.name)
    return manifest


def _forget(tar: tarfile.TarFile) -> None:
    """Let a tarball not remember its members: there may be millions."""
    tar.members.clear()  # type: ignore[attr-defined]  # the way of its own `stream` since 3.13


def _write_member(member: str, source: "io.BufferedReader", folder: Path, path: Path) -> list[str]:
    """Write a file by its name, if that stays where it belongs; return its kind and folder."""
    kind, name, *rest = [*member.removeprefix(_ROOT).split("/", 2), "", ""][:3]
    sound = member.startswith(_ROOT) and kind in ("files", "own", "git", "rows")
    if not sound or not is_part(name) or not is_path(rest[0]):
        raise damaged(path.name, f"the path {quote(member)}")
    target = folder / kind / name / rest[0]
    try:
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with target.open("xb") as file:
            shutil.copyfileobj(source, file, _CHUNK)
    except (FileExistsError, NotADirectoryError, IsADirectoryError):
        raise damaged(path.name, f"{quote(member)} twice, or as a file and as a folder") from None
    return [kind, name]


def _check_manifest(manifest: BackupManifest, found: Counter[tuple[str, str]], path: str) -> None:
    """Hold a list against the files that came with it.

    Raises:
        InputError: code `backup-damaged`.
    """
    named = {("files", name): state.files for name, state in manifest.folders.items()}
    if any(not is_part(name) for name in manifest.folders):
        raise damaged(path, "a folder of another name than one can have")
    for (kind, name), count in found.items():
        state = manifest.folders.get(name)
        has_git = state is not None and state.git is not None
        if kind in ("own", "git") and not has_git:
            raise damaged(path, f"files of a clone in {quote(name)}, which has no git")
        if kind == "rows" and (manifest.database is None or name != DATABASE):
            raise damaged(path, "rows of a database that is not listed")
        named.setdefault((kind, name), -1 if kind == "files" else count)
    if any(found[one] != count for one, count in named.items()):
        raise damaged(path, "files that are listed or stored, but not both")


def is_path(path: str) -> bool:
    """Check whether a path stays inside its folder, and is none of git's own."""
    return len(path) <= _LONGEST and all(is_part(part) for part in path.split("/"))


def is_part(part: str) -> bool:
    """Check whether a name can be that of a file or folder in a backup."""
    return (
        part not in ("", ".", "..")
        and part.casefold() != ".git"
        and not part.startswith(ASIDE)
        and "/" not in part
        and len(part.encode("utf-8", "surrogatepass")) <= _LONGEST_PART
        and all(char.isprintable() for char in part)
    )


def damaged(path: str, found: str) -> InputError:
    """The error of a backup that is not as it was written."""
    return InputError.of("backup-damaged", path, found)


def _check_format(name: str, path: Path) -> None:
    """Refuse what is no backup of ours, or of another heldout."""
    if name.startswith(_ROOT):
        return
    number = name.removeprefix(_FORMAT).partition("/")[0]
    if name.startswith(_FORMAT) and number.isdecimal():
        raise InputError.of("backup-newer", path.name, number=number)
    raise _foreign(path, "an age file that holds something else")


def _decode(data: bytes, path: Path) -> BackupManifest:
    try:
        return msgspec.json.decode(data, type=BackupManifest)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        raise damaged(path.name, "a list of its files that cannot be read") from None


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


@dataclass(slots=True)
class _Bounded:
    """What comes out of a compressed stream, unless it is far more than went in."""

    plain: zstd.ZstdFile
    pieces: _Pieces
    path: Path
    total: int = 0

    def read(self, size: int) -> bytes:
        """Read on."""
        data = self.plain.read(size)
        self.total += len(data)
        if self.total > _SMALL and self.total > self.pieces.count * _MOST_RATIO:
            raise _bomb(self.path, f"more than {_MOST_RATIO} bytes out of each that is stored")
        return data


def _explain(error: Exception, pieces: _Pieces, path: Path) -> InputError:
    """Return what is wrong, by how far reading came."""
    if isinstance(error, TrustError) and not pieces.count:
        return InputError.of("backup-key", path.name)
    if isinstance(error, zstd.ZstdError) and pieces.count <= _SMALL:
        return _foreign(path, "an age file that holds something else, or a damaged one")
    return damaged(path.name, "a cut or damaged file")


def _foreign(path: Path, found: str) -> InputError:
    return InputError.of("backup-foreign", path.name, found)


def _bomb(path: Path, found: str) -> InputError:
    return InputError.of("archive-bomb", path.name, found, "a backup of a board")
