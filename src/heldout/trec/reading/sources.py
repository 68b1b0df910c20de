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
import zlib
from collections.abc import Callable, Generator, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final, Protocol, TypeVar, cast

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
            hint=_HINTS.get(str(path).partition(":")[0]) or _explain_path(path, error),
        ) from error


def _explain_path(path: Path, error: OSError) -> str:
    """Return where a file was looked for: most often a command is called in another folder."""
    if not isinstance(error, FileNotFoundError):
        return ""
    if any(sign in path.name for sign in "*?["):
        return f"no file of {path.absolute().parent} fits this pattern"
    return f"looked for {path.absolute()}; change the folder, or name the whole path"


def read_file(read: Callable[..., Read], path: Path | str, **options: object) -> Read:
    """Return what a reader of `trec` makes of a file, as in `read_file(read_qrels, path)`.

    Raises:
        InputError: code `unreadable-file`, and what the reader raises.
    """
    with open_input(Path(path)) as file:
        return read(file, path=str(path), **options)


@contextmanager
def rewindable(source: BinaryIO, *, path: str, most: int) -> Iterator[BinaryIO]:
    """Yield the source, or a copy of its bytes, that can be read again from where it stands.

    Of ordinary files and `BytesIO` it is the source. Anything else is copied, the first 2 MiB in
    memory and more into a file without a name, since many pipes claim to be seekable and are not.

    Args:
        source: its bytes.
        path: its name for messages.
        most: bytes that are copied; a little more where there are more, so that readers see it.

    Raises:
        InputError: code `no-scratch`.
        Exception: whatever reading the source raises.
    """
    if _can_seek(source):
        yield source
        return
    import tempfile  # noqa: PLC0415 - files need none

    with tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY) as copy:
        chunk = b"begin"
        while chunk:
            chunk = source.read(CHUNK) if copy.tell() <= most else b""
            try:
                copy.write(chunk)
                if not chunk:
                    copy.seek(0)  # which writes what was not yet written
            except OSError as error:
                raise InputError.of("no-scratch", path, why=error.strerror) from error
        yield cast("BinaryIO", copy)


def _can_seek(source: Readable) -> bool:
    # Exact types: tarfile's members in stream mode are BufferedReaders that lie about this.
    return (
        isinstance(source, io.BytesIO | io.BufferedReader)
        and type(source) in {io.BytesIO, io.BufferedReader}
        and source.seekable()
    )


def _size_left(source: Readable) -> int | None:
    """Bytes that are still to come, `None` where only reading shows."""
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
    """Check whether a zstd frame begins like this (RFC 8878, 3.1).

    Of those without text, which `pzstd` writes, there are 16 kinds (3.1.2).
    """
    skipped = begin[1:4] == b"\x2a\x4d\x18" and begin[0] in _ZSTD_SKIPPED_FIRST
    return skipped or begin.startswith(b"\x28\xb5\x2f\xfd")


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
    """One archive member on its way, as bz2 and zstd of the standard library have it."""

    @property
    def eof(self) -> bool:
        """Whether the member is complete."""

    @property
    def needs_input(self) -> bool:
        """Whether all text of what was given is out."""

    @property
    def unused_data(self) -> bytes:
        """What was given beyond its end."""

    def decompress(self, data: bytes, max_length: int, /) -> bytes:
        """At most so many bytes of text; what does not fit is held back."""


class _Gzip:
    def __init__(self) -> None:
        self._inner = zlib.decompressobj(wbits=31)

    @property
    def eof(self) -> bool:
        return self._inner.eof

    @property
    def needs_input(self) -> bool:
        return not self._inner.unconsumed_tail

    @property
    def unused_data(self) -> bytes:
        return self._inner.unused_data

    def decompress(self, data: bytes, max_length: int) -> bytes:
        return self._inner.decompress(self._inner.unconsumed_tail + data, max_length)


def _zstd() -> Decoder:
    largest: dict[int, int] = {zstd.DecompressionParameter.window_log_max: _WINDOW_LOG}
    return zstd.ZstdDecompressor(options=largest)


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchiveKind:
    """A kind of archive.

    Attributes:
        name: as in messages.
        begins: whether a member begins with these bytes, 10 if there are as many.
        decoder: makes the decoder of a member.
    """

    name: str
    begins: Callable[[bytes], bool]
    decoder: Callable[[], Decoder]


_KINDS = (
    ArchiveKind(name="gzip", begins=is_gzip, decoder=_Gzip),
    ArchiveKind(name="bzip2", begins=is_bzip2, decoder=bz2.BZ2Decompressor),
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
    selected: list[bytes | memoryview] = []
    size = 0
    for chunk in chunks:
        left: bytes | memoryview = chunk
        while size + len(left) >= PIECE:
            view = memoryview(left)
            room = PIECE - size
            yield b"".join([*selected, view[:room] if room < len(view) else left])
            selected, size, left = [], 0, view[room:]
        if left:
            selected.append(left)
            size += len(left)
    yield b"".join(selected)


def _members(head: bytes, kind: ArchiveKind, received: Received) -> Generator[bytes]:
    """The text of all members, in pieces of at most 1 MiB; some may be empty."""
    data, at = head, 0
    while True:
        while len(data) - at < MAGIC_BYTES and (more := received.read()):
            data, at = data[at:] + more, 0
        if not (begin := data[at : at + MAGIC_BYTES]):
            return
        if not kind.begins(begin):
            shown = show(begin[:_SHOWN])
            raise InputError.of("trailing-bytes", received.path, bytes=shown, kind=kind.name)
        member, step = kind.decoder(), _FIRST_STEP
        while not member.eof:
            if at == len(data):
                data, at = received.read(), 0
            if not data:
                raise InputError.of("truncated-archive", received.path, kind=kind.name)
            piece = data[at : at + step]
            yield from _feed(member, piece, kind, received.path)
            at, step = at + len(piece), step * 8
        at -= len(member.unused_data)


def _feed(member: Decoder, data: bytes, kind: ArchiveKind, path: str) -> Iterator[bytes]:
    try:
        yield (text := member.decompress(data, PIECE))
        # Of a block whose last byte it has, a library may still give out nearly all.
        while not member.eof and (text or not member.needs_input):
            yield (text := member.decompress(b"", PIECE))
    except _DAMAGE as error:
        raise InputError.of("damaged-archive", path, kind=kind.name) from error
