"""A zip file written one way, and read as if an enemy had made it.

Equal members give equal bytes: dates, modes and order are fixed. (Another build of zlib may
compress to other bytes; the members are the same.) A name is checked before it is used, a size
before anything is unpacked.
"""

import errno
import filecmp
import os
import shutil
import stat
import struct
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import IO

from heldout.errors import InputError, Problem, StoreError, quote
from heldout.files.durable import ASIDE, Folder

_BEGINNING = (1980, 1, 1, 0, 0, 0)
_COMPRESSED = (".bz2", ".gz", ".xz", ".zst", ".lz4")
_MOST_MEMBERS = 100_000
_MOST_BYTES = 1 << 30
_MOST_IN_ALL = 1 << 36
_MOST_CHARACTERS = 255
_MOST_RATIO = 250
_MOST_RATIO_IN_ALL = 50
_SMALL = 1 << 20
_CHUNK = 1 << 20
_FORBIDDEN = frozenset('\\:*?"<>|')
_BROKEN = (
    *(zipfile.BadZipFile, zlib.error, struct.error),
    *(EOFError, NotImplementedError, RuntimeError, ValueError),
)
"""What the zip module raises for a file that is none, damaged, encrypted or of a strange kind."""


def write_zip(path: Path, members: Iterable[tuple[str, bytes]]) -> None:
    """Write a zip file that is whole or absent; one that exists is not written over.

    Args:
        path: the file; one that holds just these bytes is left as it is.
        members: name and content, in the order of the file.

    Raises:
        InputError: a name that `unpack_zip` would refuse.
        StoreError: the file exists and holds something else.
    """
    folder, aside = Folder(path.parent), path.with_name(f"{ASIDE}{path.name}")
    folder.delete(aside.name)  # what a killed call left
    try:
        with folder.create(aside.name) as file:
            _write(file, members)
            file.flush()
            os.fsync(file.fileno())
        if path.exists() and not filecmp.cmp(path, aside, shallow=False):
            raise StoreError(f"{path} exists and holds something else; name another file")
        aside.replace(path)
    finally:
        folder.delete(aside.name)


def unpack_zip(path: Path, folder: Path) -> tuple[str, ...]:
    """Unpack a zip file that anybody may have made into an empty folder.

    Args:
        path: the file.
        folder: where to; nothing is written outside it, and nothing before all names and sizes
            are checked.

    Returns:
        The members' names, in the order of the file.

    Raises:
        InputError: it is no zip file, it is damaged, or it holds what no archive of ours holds:
            a path that leads out, a link, a folder, a name twice, more than is allowed.
    """
    try:
        with zipfile.ZipFile(path) as source:
            members = source.infolist()
            if problems := [*_check_members(members, path)]:
                raise InputError(problems[:10])
            for member in members:
                _unpack(source, member, folder / member.filename)
    except _BROKEN as error:
        raise InputError(_damaged(path.name, quote(str(error)))) from None
    except OSError as error:
        if error.errno != errno.EINVAL:  # a position before the beginning of the file
            raise
        raise InputError(_damaged(path.name, "an offset out of the file")) from None
    return tuple(member.filename for member in members)


def _write(file: IO[bytes], members: Iterable[tuple[str, bytes]]) -> None:
    with zipfile.ZipFile(file, "w") as target:
        for name, data in members:
            if wrong := _wrong_name(name):
                raise InputError(_damaged(quote(name), wrong))
            member = zipfile.ZipInfo(name, _BEGINNING)
            member.create_system = 3  # as on Unix, wherever it is written
            member.external_attr = (stat.S_IFREG | 0o644) << 16
            stored = name.endswith(_COMPRESSED)
            member.compress_type = zipfile.ZIP_STORED if stored else zipfile.ZIP_DEFLATED
            target.writestr(member, data)


def _check_members(members: Sequence[zipfile.ZipInfo], path: Path) -> Iterator[Problem]:
    if len(members) > _MOST_MEMBERS:
        yield _bomb(path.name, f"{len(members):,} members", f"at most {_MOST_MEMBERS:,}")
        return
    names = [member.filename.casefold() for member in members]
    folders = {str(parent) for name in names for parent in PurePosixPath(name).parents}
    seen: set[str] = set()
    for name, member in zip(names, members, strict=True):
        named = quote(member.filename)
        found = _wrong_name(member.filename) or _wrong_kind(member)
        if found or name in seen or name in folders:
            yield _damaged(named, found or "a name that another member has or needs")
        seen.add(name)
    yield from _check_sizes(members, path)


def _check_sizes(members: Sequence[zipfile.ZipInfo], path: Path) -> Iterator[Problem]:
    alone = [p for member in members for p in _check_size(member, quote(member.filename))]
    yield from alone
    total = sum(member.file_size for member in members)
    packed = sum(member.compress_size for member in members)
    if packed > path.stat().st_size:
        yield _bomb(path.name, "members that share their bytes", "bytes of its own for each")
    elif total > _MOST_IN_ALL:
        yield _bomb(path.name, f"{total:,} bytes unpacked", f"at most {_MOST_IN_ALL:,}")
    elif not alone and total > _SMALL and total > packed * _MOST_RATIO_IN_ALL:
        expected = f"at most {_MOST_RATIO_IN_ALL} times"
        yield _bomb(path.name, f"{total:,} bytes out of {packed:,}", expected)


def _check_size(member: zipfile.ZipInfo, path: str) -> Iterator[Problem]:
    size, packed = member.file_size, member.compress_size
    if size > _MOST_BYTES:
        yield _bomb(path, f"{size:,} bytes", f"at most {_MOST_BYTES:,}")
    elif size > _SMALL and size > packed * _MOST_RATIO:
        yield _bomb(path, f"{size:,} bytes out of {packed:,}", f"at most {_MOST_RATIO} times")


def _wrong_name(name: str) -> str:
    """Return why a name is not taken; empty where it is."""
    parts = name.split("/")
    if any(part in ("", ".", "..") for part in parts):
        return "a path that leads elsewhere, or a folder"
    if not name.isprintable() or _FORBIDDEN & set(name) or len(name) > _MOST_CHARACTERS:
        return "a name that not every system takes"
    return ""


def _wrong_kind(member: zipfile.ZipInfo) -> str:
    kind = stat.S_IFMT(member.external_attr >> 16)
    if kind not in (0, stat.S_IFREG):
        return "a link or another thing that is no file"
    if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        return "an unusual compression"
    return "an encrypted file" if member.flag_bits & 1 else ""


def _unpack(source: zipfile.ZipFile, member: zipfile.ZipInfo, file: Path) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    # The zip module stops at the size that was checked, and checks the CRC there.
    with source.open(member) as data, file.open("xb") as target:
        shutil.copyfileobj(data, target, _CHUNK)


def _bomb(path: str, found: str, expected: str) -> Problem:
    return Problem(code="archive-bomb", path=path, found=found, expected=expected)


def _damaged(path: str, found: str) -> Problem:
    return Problem(
        code="damaged-archive",
        path=path,
        found=found,
        expected="an archive as heldout archive writes it",
        hint="fetch it again from where it was published",
    )
