"""Received bytes: where they come from, counted, limited, hashed, and read again if need be."""

import hashlib
import io
import os
import stat
import sys
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Protocol

from heldout.errors import InputError, Problem
from heldout.ids import Digest

_TRIM_THRESHOLD, _TOP_PAD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -2, -3, -8  # malloc.h
_KEPT = 1 << 24


def keep_freed_memory() -> bool:
    """Have this process keep up to 16 MiB of freed memory, in one arena for all threads.

    For programs, not for libraries: it holds for the whole process.

    Returns:
        Whether the allocator took it; only glibc's does.
    """
    if sys.platform != "linux":
        return False
    import ctypes  # noqa: PLC0415 - numpy has loaded it already where runs are read

    try:
        mallopt = ctypes.CDLL(None).mallopt
    except AttributeError:  # another C library
        return False
    limits = {_ARENA_MAX: 1, _TOP_PAD: 1 << 20, _MMAP_THRESHOLD: _KEPT, _TRIM_THRESHOLD: _KEPT}
    return all(mallopt(name, value) for name, value in limits.items())


CHUNK = 1 << 19
_IN_MEMORY = 1 << 21


class Readable(Protocol):
    """What bytes are read from."""

    def read(self, size: int, /) -> bytes:
        """At most `size` bytes, `b""` at the end."""
        ...


def refusal(
    code: str, path: str, *, found: str, expected: str, hint: str = "", line: int | None = None
) -> InputError:
    """An error that ends the reading of a file.

    Args:
        code: listed in docs/errors.md.
        path: the file, for messages.
        found: what stands there.
        expected: what should.
        hint: what to do about it.
        line: 1-based.
    """
    return InputError(
        Problem(code=code, path=path, found=found, expected=expected, hint=hint, line=line)
    )


_HINTS = {
    "-": "/dev/stdin is standard input",
    "irds": "a name of ir_datasets stands for no file here: write its labels as qrels first; "
    "heldout rank --collection takes such names",
}
"""What a path that begins so was meant to be."""


def open_input(path: Path) -> BinaryIO:
    """Open a file for the readers of this room.

    Raises:
        InputError: code `unreadable-file`.
    """
    try:
        return path.open("rb")
    except OSError as error:
        raise refusal(
            "unreadable-file",
            str(path),
            found=error.strerror or type(error).__name__,
            expected="a file that can be read",
            hint=_HINTS.get(str(path).partition(":")[0], ""),
        ) from error


class Replay:
    """A source that can be read a second time from where it stood.

    Ordinary files and `BytesIO` are rewound; of anything else the received bytes are kept, the
    first 2 MiB in memory and more in a file without a name, since many pipes claim to be
    seekable and are not.

    Attributes:
        size: bytes from where it stood to its end, `None` where only reading tells.
    """

    def __init__(self, source: BinaryIO, *, path: str) -> None:
        """Begin; nothing is read yet.

        Args:
            source: its bytes.
            path: its name for messages.
        """
        self._source = source
        self._start = source.tell() if _can_seek(source) else None
        self.size = _size_left(source)
        self._kept = None if self._start is not None else _Kept(source, path)

    def read(self, size: int) -> bytes:
        """At most `size` bytes, `b""` at the end.

        Raises:
            InputError: code `no-scratch`.
        """
        return (self._kept or self._source).read(size)

    def rewind(self) -> None:
        """Go back to where the source stood."""
        if self._kept is not None:
            self._kept.rewind()
        elif self._start is not None:
            self._source.seek(self._start)


class _Kept:
    """The bytes of a pipe, and the error that ended it, as often as they are asked for."""

    def __init__(self, source: Readable, path: str) -> None:
        self._source = source
        self._path = path
        import tempfile  # noqa: PLC0415 - files need none

        self._file = tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY)  # noqa: SIM115 - see below
        weakref.finalize(self, self._file.close)
        self._size = 0
        self._place = 0
        self._error: Exception | None = None
        self._full: InputError | None = None

    def read(self, size: int) -> bytes:
        if self._place < self._size:
            with self._room():
                chunk = self._file.read(min(size, self._size - self._place))
        else:
            chunk = self._receive(size)
        self._place += len(chunk)
        return chunk

    def _receive(self, size: int) -> bytes:
        if self._error is not None:
            raise self._error
        try:
            chunk = self._source.read(size)
        except Exception as error:
            self._error = error
            raise
        with self._room():
            self._file.write(chunk)
        self._size += len(chunk)
        return chunk

    def rewind(self) -> None:
        with self._room():
            self._file.seek(0)  # which writes what was not yet written
        self._place = 0

    @contextmanager
    def _room(self) -> Iterator[None]:
        """Once the file has failed, nobody knows what is in it: from then on nothing is read."""
        if self._full is not None:
            raise self._full
        try:
            yield
        except OSError as error:
            self._full = refusal(
                "no-scratch",
                self._path,
                found=f"no room for a temporary file: {error.strerror or type(error).__name__}",
                expected="room for the bytes of a pipe, which are read a second time",
                hint="make room there, name another folder with TMPDIR, or give a file",
            )
            raise self._full from error


def _can_seek(source: Readable) -> bool:
    # Exact types: tarfile's members in stream mode are BufferedReaders that lie about this.
    return (
        isinstance(source, io.BytesIO | io.BufferedReader)
        and type(source) in {io.BytesIO, io.BufferedReader}
        and source.seekable()
    )


def _size_left(source: Readable) -> int | None:
    """Bytes that are still to come, `None` where only reading tells."""
    if isinstance(source, Replay):
        return source.size
    if not _can_seek(source):
        return None
    if isinstance(source, io.BytesIO):
        return max(source.getbuffer().nbytes - source.tell(), 0)
    return _file_left(source) if isinstance(source, io.BufferedReader) else None


def _file_left(file: io.BufferedReader) -> int | None:
    try:
        found = os.fstat(file.fileno())
    except OSError:  # a reader over something in memory
        return None
    return max(found.st_size - file.tell(), 0) if stat.S_ISREG(found.st_mode) else None


class Received:
    """The raw bytes, hashed and counted.

    Attributes:
        path: the file, for messages.
        count: bytes so far.
        size: bytes there are, `None` where only reading them all tells.
        whole: whether the end has been seen.
    """

    def __init__(self, source: Readable, *, path: str, limit: int) -> None:
        self._source = source
        self._limit = limit
        self.path = path
        self.size = _size_left(source)
        self._begin()

    def _begin(self) -> None:
        self._hash = hashlib.sha256()
        self.count = 0
        self.whole = False

    @property
    def can_restart(self) -> bool:
        """Whether the source can be read again."""
        return isinstance(self._source, Replay)

    def restart(self) -> None:
        """Go back to the beginning; only if it can.

        Raises:
            TypeError: it cannot.
        """
        if not isinstance(self._source, Replay):
            raise TypeError("this source is read once")
        self._source.rewind()
        self._begin()

    def read(self) -> bytes:
        """The next 512 KiB, fewer only at the end, so that pieces do not depend on the source.

        Raises:
            InputError: code `too-large`.
        """
        chunk = b""
        if not self.whole and self.count <= self._limit:
            chunk = self._fill()
            self._hash.update(chunk)
            self.count += len(chunk)
            self.whole = len(chunk) < CHUNK
        if self.count > self._limit:
            raise refusal(
                "too-large",
                self.path,
                found=f"more than {self._limit} bytes",
                expected=f"at most {self._limit} bytes as received",
                hint="remove documents below the depth that is scored, or compress the file",
            )
        return chunk

    def _fill(self) -> bytes:
        chunk = self._source.read(CHUNK)
        if not chunk or len(chunk) == CHUNK:
            return chunk
        parts, size = [chunk], len(chunk)
        while size < CHUNK and (chunk := self._source.read(CHUNK - size)):
            parts.append(chunk)
            size += len(chunk)
        return b"".join(parts)

    def digest(self) -> Digest:
        """SHA-256 of the bytes so far."""
        return Digest(self._hash.hexdigest())
