"""Received bytes: counted, limited, hashed, read again if need be, and unpacked.

An archive is recognised by its content, never by its name. It is one or more members of one kind
and nothing else: cut short, damaged or followed by anything, it is refused. Archives of other kinds
are refused by name, also where they stand in one of these. zstd is read one frame at a time, in
pieces of bounded size; frames without text are skipped.
"""

import bz2
import hashlib
import io
import os
import stat
import sys
import weakref
import zlib
from collections.abc import Callable, Generator, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, BinaryIO, Final, Protocol, TypeVar

from heldout.errors import InputError
from heldout.ids import Digest
from heldout.trec.text import show

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

Read = TypeVar("Read")

CHUNK = 1 << 19
_IN_MEMORY = 1 << 21


class Readable(Protocol):
    """What bytes are read from."""

    def read(self, size: int, /) -> bytes:
        """At most `size` bytes, `b""` at the end."""
        ...


_HINTS = {
    "-": "/dev/stdin is standard input",
    "irds": "a name of ir_datasets stands for no run; --qrels, --queries and --collection take it",
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
        raise InputError.of(
            "unreadable-file",
            str(path),
            error.strerror or type(error).__name__,
            hint=_HINTS.get(str(path).partition(":")[0]) or _say_place(path, error),
        ) from error


def _say_place(path: Path, error: OSError) -> str:
    """Return where a file was looked for: most often a command is called in another folder."""
    if not isinstance(error, FileNotFoundError):
        return ""
    if any(sign in path.name for sign in "*?["):
        return f"no file of {path.absolute().parent} fits this pattern"
    return f"looked for {path.absolute()}; change the folder, or name the whole path"


def read_file(read: Callable[..., Read], path: Path | str) -> Read:
    """Return what a reader of `trec` makes of a file, as in `read_file(read_qrels, path)`.

    Raises:
        InputError: code `unreadable-file`, and what the reader raises.
    """
    with open_input(Path(path)) as file:
        return read(file, path=str(path))


class ReplaySource:
    """A source that can be read a second time from where it stood.

    Ordinary files and `BytesIO` are rewound; of anything else the received bytes are copied, the
    first 2 MiB in memory and more in a file without a name, since many pipes claim to be
    seekable and are not.

    Attributes:
        size: bytes from where it stood to its end, `None` where only reading shows.
    """

    def __init__(self, source: BinaryIO, *, path: str) -> None:
        """Begin; nothing is read yet.

        Args:
            source: its bytes.
            path: its name for messages.
        """
        self._source, self._path = source, path
        self.size = _size_left(source)
        self._copy: IO[bytes] | None = None
        if _can_seek(source):
            self._start = source.tell()
            return
        import tempfile  # noqa: PLC0415 - files need none

        self._copy = tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY)  # noqa: SIM115 - see below
        weakref.finalize(self, self._copy.close)

    def read(self, size: int) -> bytes:
        """Return at most `size` bytes, `b""` at the end.

        Raises:
            InputError: code `no-scratch`.
        """
        if self._copy is None:
            return self._source.read(size)
        with self._room():
            chunk = self._copy.read(size)
        if not chunk:
            chunk = self._source.read(size)
            with self._room():
                self._copy.write(chunk)
        return chunk

    def rewind(self) -> None:
        """Go back to where the source stood.

        Raises:
            InputError: code `no-scratch`.
        """
        if self._copy is None:
            self._source.seek(self._start)
            return
        with self._room():
            self._copy.seek(0)  # which writes what was not yet written

    @contextmanager
    def _room(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise InputError.of("no-scratch", self._path, why=error.strerror) from error


def _can_seek(source: Readable) -> bool:
    # Exact types: tarfile's members in stream mode are BufferedReaders that lie about this.
    return (
        isinstance(source, io.BytesIO | io.BufferedReader)
        and type(source) in {io.BytesIO, io.BufferedReader}
        and source.seekable()
    )


def _size_left(source: Readable) -> int | None:
    """Bytes that are still to come, `None` where only reading shows."""
    if isinstance(source, ReplaySource):
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
        size: bytes there are, `None` where only reading them all shows.
        whole: whether the end has been seen.
    """

    def __init__(self, source: Readable, *, path: str, limit: int) -> None:
        self._source = source
        self._limit = limit
        self.path = path
        self.size = _size_left(source)
        self._hash = hashlib.sha256()
        self.count = 0
        self.whole = False

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
            raise InputError.of("too-large", self.path, most=self._limit)
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


MAGIC_BYTES: Final = 10
"""So many bytes show which kind it is."""

_BZIP2_SIZES = b"123456789"
_BZIP2_BLOCKS = (b"\x31\x41\x59\x26\x53\x59", b"\x17\x72\x45\x38\x50\x90")
"""How the first block begins, and the end of an archive without one."""
_ZSTD_SKIPPED_FIRST = range(0x50, 0x60)
_OTHERS = {
    "xz": b"\xfd7zXZ\x00",
    "zip": b"PK\x03\x04",
    "7-Zip": b"7z\xbc\xaf\x27\x1c",
}
_TAR_MAGIC = slice(257, 262)
_TAR_HEADER = 512


def is_gzip(begin: bytes) -> bool:
    """Check whether a gzip member begins like this (RFC 1952, 2.3.1)."""
    return begin.startswith(b"\x1f\x8b")


def is_bzip2(begin: bytes) -> bool:
    """Check whether a bzip2 stream begins like this; where it is cut short, whether one may.

    A text may begin with `BZh` as well, so its first block is looked at.
    """
    block = begin[4:MAGIC_BYTES]
    return (
        begin.startswith(b"BZh")
        and begin[3:4] in _BZIP2_SIZES
        and any(magic.startswith(block) for magic in _BZIP2_BLOCKS)
    )


def is_zstd(begin: bytes) -> bool:
    """Check whether a zstd frame begins like this, with text or without (RFC 8878, 3.1)."""
    return begin.startswith(b"\x28\xb5\x2f\xfd") or is_zstd_skipped(begin)


def is_zstd_skipped(begin: bytes) -> bool:
    """Check whether a frame without text begins like this, of which there are 16 kinds (3.1.2)."""
    return begin[1:4] == b"\x2a\x4d\x18" and begin[0] in _ZSTD_SKIPPED_FIRST


def name_other(begin: bytes) -> str | None:
    """The name of an archive that is not read; none of them can begin a text.

    Args:
        begin: 512 bytes, if there are as many.
    """
    if begin[_TAR_MAGIC] == b"ustar" and b"\0" in begin[:_TAR_HEADER]:
        return "tar"
    return next((name for name, magic in _OTHERS.items() if begin.startswith(magic)), None)


PIECE = 1 << 20
"""Bytes of text at a time: large, since a thread may wait 5 ms for its turn after each."""
_SHOWN = 8
_FIRST_STEP = 1 << 12
"""A member that is over at once gives back the rest, which for thousands of them has a price."""
_DAMAGE = (zlib.error, zstd.ZstdError, OSError, ValueError)
_WINDOW_LOG = 27
"""Largest window of zstd, 128 MiB: what the program unpacks unless told otherwise."""


class Decoder(Protocol):
    """One archive member on its way; what comes out of one step is at most `PIECE` long."""

    def ended(self) -> bool:
        """Check whether the member is complete."""
        ...

    @property
    def unused_data(self) -> bytes:
        """What was fed beyond its end."""
        ...

    def feed(self, data: bytes) -> Iterator[bytes]:
        """The text of more bytes, all there is so far; pieces of it may be empty."""
        ...


class _Gzip:
    def __init__(self) -> None:
        self._inner = zlib.decompressobj(wbits=31)

    def ended(self) -> bool:
        return self._inner.eof

    @property
    def unused_data(self) -> bytes:
        return self._inner.unused_data

    def feed(self, data: bytes) -> Iterator[bytes]:
        while data and not self._inner.eof:
            yield self._inner.decompress(data, PIECE)
            data = self._inner.unconsumed_tail


class _Holding:
    """By bz2 or zstd: what does not fit into a piece, the library holds back."""

    def __init__(self, inner: bz2.BZ2Decompressor | zstd.ZstdDecompressor) -> None:
        self._inner = inner

    def ended(self) -> bool:
        return self._inner.eof

    @property
    def unused_data(self) -> bytes:
        return self._inner.unused_data

    def feed(self, data: bytes) -> Iterator[bytes]:
        text = self._inner.decompress(data, PIECE)
        yield text
        # Of a block whose last byte it has, the library may still give out nearly all.
        while not self._inner.eof and (text or not self._inner.needs_input):
            text = self._inner.decompress(b"", PIECE)
            yield text


def _zstd(begin: bytes) -> Decoder:
    if is_zstd_skipped(begin):
        return Skipped()
    largest: dict[int, int] = {zstd.DecompressionParameter.window_log_max: _WINDOW_LOG}
    return _Holding(zstd.ZstdDecompressor(options=largest))


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchiveKind:
    """A kind of archive.

    Attributes:
        name: as in messages.
        begins: whether a member begins with these bytes, 10 if there are as many.
        decoder: makes the decoder of the member that begins with these.
    """

    name: str
    begins: Callable[[bytes], bool]
    decoder: Callable[[bytes], Decoder]


_KINDS = (
    ArchiveKind(name="gzip", begins=is_gzip, decoder=lambda _: _Gzip()),
    ArchiveKind(name="bzip2", begins=is_bzip2, decoder=lambda _: _Holding(bz2.BZ2Decompressor())),
    ArchiveKind(name="zstd", begins=is_zstd, decoder=_zstd),
)


def find_kind(head: bytes, path: str) -> ArchiveKind | None:
    """Return what kind of archive begins like this, `None` for plain text.

    Args:
        head: at least the first 512 bytes if there are as many.
        path: the file, for messages.

    Raises:
        InputError: code `unsupported-archive`.
    """
    kind = _kind(head)
    if kind is None and (name := name_other(head)):
        raise _unsupported(f"an archive of the kind {name}", path)
    return kind


def _kind(head: bytes) -> ArchiveKind | None:
    return next((kind for kind in _KINDS if kind.begins(head[:MAGIC_BYTES])), None)


def _unsupported(found: str, path: str) -> InputError:
    return InputError.of("unsupported-archive", path, found)


def read_plain(head: bytes, received: Received) -> Iterator[bytes]:
    """Give out a text that is no archive, in pieces as they come."""
    while head:
        yield head
        head = received.read()


def unpack(head: bytes, kind: ArchiveKind, received: Received) -> Generator[bytes]:
    """Give out the text of an archive in pieces of 1 MiB; the last may be shorter.

    Args:
        head: what has been read of it.
        kind: what it is.
        received: the rest of it.

    Raises:
        InputError: codes `truncated-archive`, `damaged-archive`, `trailing-bytes`, `too-large`,
            `unsupported-archive`.
    """
    with closing(even(_members(head, kind, received))) as pieces:
        first = next(pieces, b"")
        inner = _kind(first)
        if name := inner.name if inner else name_other(first):
            raise _unsupported(
                f"an archive of the kind {name}, in one of {kind.name}", received.path
            )
        yield first
        yield from pieces


def even(chunks: Iterator[bytes]) -> Generator[bytes]:
    """The same bytes in pieces of 1 MiB, whatever size the chunks have; the last may be shorter."""
    kept: list[bytes | memoryview] = []
    size = 0
    for chunk in chunks:
        left: bytes | memoryview = chunk
        while size + len(left) >= PIECE:
            view = memoryview(left)
            room = PIECE - size
            yield b"".join([*kept, view[:room] if room < len(view) else left])
            kept, size, left = [], 0, view[room:]
        if left:
            kept.append(left)
            size += len(left)
    yield b"".join(kept)


class _Stream:
    """Received bytes in pieces of the size that is asked for, some of which may come back."""

    def __init__(self, head: bytes, received: Received) -> None:
        self._data = head
        self._place = 0
        self._received = received

    def peek(self) -> bytes:
        """The next 10 bytes, fewer only at the end."""
        while len(self._data) - self._place < MAGIC_BYTES and (chunk := self._received.read()):
            self._data = self._data[self._place :] + chunk
            self._place = 0
        return self._data[self._place : self._place + MAGIC_BYTES]

    def take(self, size: int) -> bytes:
        """At most `size` bytes, `b""` at the end."""
        if self._place == len(self._data):
            self._data, self._place = self._received.read(), 0
        piece = self._data[self._place : self._place + size]
        self._place += len(piece)
        return piece

    def put_back(self, data: bytes) -> None:
        """Give back the last bytes that were taken."""
        if len(data) > self._place:
            self._data, self._place = data + self._data[self._place :], 0
        else:
            self._place -= len(data)


def _members(head: bytes, kind: ArchiveKind, received: Received) -> Generator[bytes]:
    stream = _Stream(head, received)
    while begin := stream.peek():
        if not kind.begins(begin):
            raise InputError.of(
                "trailing-bytes", received.path, bytes=show(begin[:_SHOWN]), kind=kind.name
            )
        yield from _member(stream, kind.decoder(begin), kind, received.path)


def _member(stream: _Stream, member: Decoder, kind: ArchiveKind, path: str) -> Iterator[bytes]:
    size = _FIRST_STEP
    while not member.ended():
        data = stream.take(size)
        if not data:
            raise InputError.of("truncated-archive", path, kind=kind.name)
        yield from _fed(member, data, kind, path)
        size *= 8
    stream.put_back(member.unused_data)


def _fed(member: Decoder, data: bytes, kind: ArchiveKind, path: str) -> Iterator[bytes]:
    try:
        yield from member.feed(data)
    except _DAMAGE as error:
        raise InputError.of("damaged-archive", path, kind=kind.name) from error


_SKIPPED_HEADER = 8


class Skipped:
    """A frame without text: a number of bytes that its header states (RFC 8878, 3.1.2).

    `pzstd` begins each of its pieces with one.
    """

    def __init__(self) -> None:
        """Begin a frame."""
        self._header = b""
        self._left = 0
        self.unused_data = b""

    def ended(self) -> bool:
        """Check whether the frame is complete."""
        return len(self._header) == _SKIPPED_HEADER and not self._left

    def feed(self, data: bytes) -> Iterator[bytes]:
        """No text; counts what belongs to the frame."""
        if len(self._header) < _SKIPPED_HEADER:
            missing = _SKIPPED_HEADER - len(self._header)
            self._header, data = self._header + data[:missing], data[missing:]
            self._left = int.from_bytes(self._header[4:], "little")
        self.unused_data = data[self._left :]
        self._left -= len(data) - len(self.unused_data)
        return iter(())
