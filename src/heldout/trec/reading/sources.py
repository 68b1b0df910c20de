"""Received bytes: counted, limited, hashed, read again if need be, and unpacked.

An archive is recognised by its content, never by its name. It is one or more members of one kind
and nothing else: cut short, damaged or followed by anything, it is refused. Archives of other kinds
are refused by name, also where they stand in one of these. zstd is read one frame at a time, in
pieces of bounded size; frames without text are skipped.

Accelerators decide nothing. Whatever one of them finds odd, the archive is read again with the
standard library, which skips what was given out already and says what is wrong, if anything is.

bzip2 is read by lbzip2, which uses all cores, in a child process that is fed by a thread. lbzip2
silently leaves out whatever follows the last member (2.5, measured), which we refuse. So one more
member is fed after the last byte of the file, with a secret in it: the secret ends the output if
and only if all before it was members, each whole. rapidgzip (0.16.1), the other fast decoder, stays
out: it leaves out trailing bytes as well, but reads the file by itself, so nothing can be fed after
them; it does not compare the checksum of a whole member, so that blocks may be missing; it writes
its warnings to our stderr; and with two threads it takes 27 MB of this process, which has 64 MB for
everything.
"""

import bz2
import contextlib
import hashlib
import io
import os
import secrets
import shutil
import stat
import subprocess
import sys
import weakref
import zlib
from collections.abc import Callable, Generator, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from importlib import import_module
from itertools import islice
from pathlib import Path
from threading import Thread
from typing import IO, BinaryIO, Final, Protocol, TypeVar

from heldout.errors import InputError, SetupError
from heldout.ids import Digest
from heldout.trec.accelerators import Accelerators
from heldout.trec.text import show

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

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
            found=error.strerror or type(error).__name__,
            expected="a file that can be read",
            hint=_HINTS.get(str(path).partition(":")[0]) or _say_place(path, error),
        ) from error


def _say_place(path: Path, error: OSError) -> str:
    """Where a file was looked for: most often a command is called in another folder."""
    if not isinstance(error, FileNotFoundError):
        return ""
    if any(sign in path.name for sign in "*?["):
        return f"no file of {path.absolute().parent} fits this pattern"
    return f"looked for {path.absolute()}; change the folder, or name the whole path"


def read_file(read: Callable[..., Read], path: Path | str) -> Read:
    """What a reader of `trec` makes of a file, as in `read_file(read_qrels, path)`.

    Raises:
        InputError: code `unreadable-file`, and what the reader raises.
    """
    with open_input(Path(path)) as file:
        return read(file, path=str(path))


class Replay:
    """A source that can be read a second time from where it stood.

    Ordinary files and `BytesIO` are rewound; of anything else the received bytes are kept, the
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
            self._full = InputError.of(
                "no-scratch",
                self._path,
                f"no room for a temporary file: {error.strerror or type(error).__name__}",
                "room for the bytes of a pipe, which are read a second time",
                "make room there, name another folder with TMPDIR, or give a file",
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
    """Bytes that are still to come, `None` where only reading shows."""
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
        size: bytes there are, `None` where only reading them all shows.
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
            raise InputError.of(
                "too-large",
                self.path,
                f"more than {self._limit} bytes",
                f"at most {self._limit} bytes as received",
                "remove documents below the depth that is scored, or compress the file",
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


_SECRET = 32
_READ = 1 << 20
_F_SETPIPE_SZ = 1031


class IrregularError(Exception):
    """This is not the output of an archive that is whole; why, the standard library decides."""


def run_lbzip2(
    program: str, head: bytes, received: Received, *, threads: int
) -> Generator[bytes, None, None]:
    """What lbzip2 makes of an archive, in pieces of about 1 MiB.

    Args:
        program: its path.
        head: what has been read of the archive.
        received: the rest of it.
        threads: how many it may use.

    Raises:
        IrregularError: it was not whole. What came out before may or may not belong to it.
    """
    secret = secrets.token_bytes(_SECRET)
    # No environment: LBZIP2 and BZIP2 in it would be read as options.
    command = [program, "--decompress", "--stdout", f"-n{threads}"]
    with subprocess.Popen(  # noqa: S603 - our own arguments; the file comes through a pipe
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={},
    ) as child:
        feeder = _Feeder(_pipe(child.stdin), head, received, bz2.compress(secret))
        try:
            yield from _before(secret, _pipe(child.stdout))
            feeder.join()
            if child.wait() or not feeder.done:
                raise IrregularError
        finally:
            child.kill()
            feeder.join()


def _before(secret: bytes, output: IO[bytes]) -> Generator[bytes, None, None]:
    """The output without the secret at its end; pieces are passed on as they came."""
    held = b""
    while chunk := output.read(_READ):
        if len(chunk) < _SECRET:
            held += chunk
            continue
        yield held
        held = chunk
    if not held.endswith(secret):
        raise IrregularError
    yield held[:-_SECRET]


class _Feeder(Thread):
    """Writes the archive and the member with the secret, then closes the pipe."""

    def __init__(self, pipe: IO[bytes], head: bytes, received: Received, last: bytes) -> None:
        super().__init__(name="heldout-lbzip2", daemon=True)
        self._pipe = pipe
        self._head = head
        self._received = received
        self._last = last
        self.done = False
        self.start()

    def run(self) -> None:
        # Whatever fails here, the program or the source, fails again where it is decided.
        with contextlib.suppress(Exception):
            chunk = self._head
            while chunk:
                self._pipe.write(chunk)
                chunk = self._received.read()
            self._pipe.write(self._last)
            self._pipe.flush()
            self.done = True
        with contextlib.suppress(OSError):
            self._pipe.close()


def _pipe(pipe: IO[bytes] | None) -> IO[bytes]:
    """The pipe, as large as the system lets us make it, which spares changes of threads."""
    if pipe is None:
        raise IrregularError
    with contextlib.suppress(ImportError, OSError):
        import fcntl  # noqa: PLC0415 - only on POSIX

        fcntl.fcntl(pipe, _F_SETPIPE_SZ, _READ)
    return pipe


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
    """Whether a gzip member begins like this (RFC 1952, 2.3.1)."""
    return begin.startswith(b"\x1f\x8b")


def is_bzip2(begin: bytes) -> bool:
    """Whether a bzip2 stream begins like this; where it is cut short, whether one may.

    A text may begin with `BZh` as well, so its first block is looked at.
    """
    block = begin[4:MAGIC_BYTES]
    return (
        begin.startswith(b"BZh")
        and begin[3:4] in _BZIP2_SIZES
        and any(magic.startswith(block) for magic in _BZIP2_BLOCKS)
    )


def is_zstd(begin: bytes) -> bool:
    """Whether a zstd frame begins like this, with text or without (RFC 8878, 3.1)."""
    return begin.startswith(b"\x28\xb5\x2f\xfd") or is_zstd_skipped(begin)


def is_zstd_skipped(begin: bytes) -> bool:
    """Whether a frame without text begins like this, of which there are 16 kinds (3.1.2)."""
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
_GZIP_NAME = b"\x08"
_WORTH_A_PROCESS = 1 << 18
"""Received bytes from which on a child process saves more time than it takes."""
_DAMAGE = (zlib.error, zstd.ZstdError, OSError, ValueError)
_WINDOW_LOG = 27
"""Largest window of zstd, 128 MiB: what the program unpacks unless told otherwise."""


class Decoder(Protocol):
    """One archive member on its way; what comes out of one step is at most `PIECE` long."""

    def ended(self) -> bool:
        """Whether the member is complete."""
        ...

    @property
    def unused_data(self) -> bytes:
        """What was fed beyond its end."""
        ...

    def feed(self, data: bytes) -> Iterator[bytes]:
        """The text of more bytes, all there is so far; pieces of it may be empty."""
        ...


class _Inflate(Protocol):
    """What zlib and isal have in common."""

    @property
    def eof(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    @property
    def unconsumed_tail(self) -> bytes: ...
    def decompress(self, data: bytes, max_length: int = 0, /) -> bytes: ...


class _Gzip:
    def __init__(self) -> None:
        self._inner = self._inflate()

    def _inflate(self) -> _Inflate:
        return zlib.decompressobj(wbits=31)

    def ended(self) -> bool:
        return self._inner.eof

    @property
    def unused_data(self) -> bytes:
        return self._inner.unused_data

    def feed(self, data: bytes) -> Iterator[bytes]:
        while data and not self._inner.eof:
            yield self._inner.decompress(data, PIECE)
            data = self._inner.unconsumed_tail


class _IsalGzip(_Gzip):
    """By isal, for members with a plain header, where nobody can be of two minds."""

    def __init__(self) -> None:
        super().__init__()
        self._begun = False

    def _inflate(self) -> _Inflate:
        made: _Inflate = import_module("isal.isal_zlib").decompressobj(wbits=31)
        return made

    def feed(self, data: bytes) -> Iterator[bytes]:
        if not self._begun and data[3:4] not in {b"\0", _GZIP_NAME}:
            raise ValueError("extra fields, a comment, a header checksum, or reserved bits")
        self._begun = True
        return super().feed(data)


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
class Kind:
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
    Kind(name="gzip", begins=is_gzip, decoder=lambda _: _Gzip()),
    Kind(name="bzip2", begins=is_bzip2, decoder=lambda _: _Holding(bz2.BZ2Decompressor())),
    Kind(name="zstd", begins=is_zstd, decoder=_zstd),
)


def find_kind(head: bytes, path: str) -> Kind | None:
    """What kind of archive begins like this, `None` for plain text.

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


def _kind(head: bytes) -> Kind | None:
    return next((kind for kind in _KINDS if kind.begins(head[:MAGIC_BYTES])), None)


def _unsupported(found: str, path: str) -> InputError:
    return InputError.of(
        "unsupported-archive",
        path,
        found,
        "a text, plain or compressed with gzip, bzip2 or zstd",
        "unpack it; the file in it may be compressed with gzip, bzip2 or zstd (gz, bz2, zst)",
    )


def unpack(
    head: bytes, kind: Kind, received: Received, accelerators: Accelerators
) -> Generator[bytes]:
    """The text of an archive in pieces of 1 MiB; the last may be shorter.

    Args:
        head: what has been read of it.
        kind: what it is.
        received: the rest of it. If it can't be read again, accelerators are not asked.
        accelerators: who unpacks it.

    Raises:
        InputError: codes `truncated-archive`, `damaged-archive`, `trailing-bytes`, `too-large`,
            `unsupported-archive`.
        SetupError: an accelerator has given out another text than the standard library.
    """
    with closing(_unpacked(head, kind, received, accelerators)) as pieces:
        first = next(pieces, b"")
        inner = _kind(first)
        if name := inner.name if inner else name_other(first):
            raise _unsupported(
                f"an archive of the kind {name}, in one of {kind.name}", received.path
            )
        yield first
        yield from pieces


def _unpacked(
    head: bytes, kind: Kind, received: Received, accelerators: Accelerators
) -> Generator[bytes]:
    fast = _accelerated(head, kind, received, accelerators)
    if fast is None:
        yield from even(_members(head, kind, received))
        return
    given: list[int] = []
    if not (yield from _held_back(fast, given)):
        received.restart()
        pieces = even(_members(received.read(), kind, received))
        _skip(given, pieces, kind)
        yield from pieces


def _accelerated(
    head: bytes, kind: Kind, received: Received, accelerators: Accelerators
) -> Generator[bytes] | None:
    """Text by an accelerator, `None` where there is none for this or it is not worth it."""
    if not received.can_restart:
        return None
    if kind.name == "gzip" and accelerators.gzip == "isal":
        return _members(head, replace(kind, decoder=lambda _: _IsalGzip()), received)
    if kind.name == "bzip2" and accelerators.bzip2 == "lbzip2" and len(head) >= _WORTH_A_PROCESS:
        program = shutil.which("lbzip2")
        if program is not None:
            return run_lbzip2(program, head, received, threads=accelerators.threads)
    return None


def _held_back(fast: Generator[bytes], given: list[int]) -> Generator[bytes, None, bool]:
    """Text by an accelerator, one piece behind; whether it came to a regular end.

    An error costs the standard decoders at most the piece that they were at. So what is given
    out here is never more than what they would have given out.
    """
    with closing(fast):
        pieces = even(fast)
        try:
            held = next(pieces)
            for piece in pieces:
                given.append(hash(held))
                yield held
                held = piece
        except Exception:  # noqa: BLE001 - of any kind: the standard decoder says what it means
            return False
    yield held
    return True


def _skip(given: list[int], pieces: Iterator[bytes], kind: Kind) -> None:
    again = [hash(piece) for piece in islice(pieces, len(given))]
    if again != given:
        raise SetupError(
            f"the {kind.name} accelerator of this machine unpacks to another text than the "
            "standard library; leave it out with HELDOUT_WITHOUT=lbzip2,isal"
        )


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


def _members(head: bytes, kind: Kind, received: Received) -> Generator[bytes]:
    stream = _Stream(head, received)
    while begin := stream.peek():
        if not kind.begins(begin):
            raise InputError.of(
                "trailing-bytes",
                received.path,
                f"{show(begin[:_SHOWN])} after the end of the {kind.name} archive",
                "nothing, or another member",
                "compress the file again",
            )
        yield from _member(stream, kind.decoder(begin), kind, received.path)


def _member(stream: _Stream, member: Decoder, kind: Kind, path: str) -> Iterator[bytes]:
    size = _FIRST_STEP
    while not member.ended():
        data = stream.take(size)
        if not data:
            raise InputError.of(
                "truncated-archive",
                path,
                f"a {kind.name} archive that stops before its end",
                "the whole archive",
                "copy or compress the file again",
            )
        yield from _fed(member, data, kind, path)
        size *= 8
    stream.put_back(member.unused_data)


def _fed(member: Decoder, data: bytes, kind: Kind, path: str) -> Iterator[bytes]:
    try:
        yield from member.feed(data)
    except _DAMAGE as error:
        raise InputError.of(
            "damaged-archive",
            path,
            f"a {kind.name} archive that does not unpack",
            "an undamaged archive",
            "copy or compress the file again",
        ) from error


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
        """Whether the frame is complete."""
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
