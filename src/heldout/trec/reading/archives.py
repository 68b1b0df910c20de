"""Archives: gzip, bzip2 and zstd as text in even pieces, or a refusal that says why.

An archive is told by its content, never by its name. It is one or more members of one kind and
nothing else: cut short, damaged or followed by anything, it is refused. Archives of other kinds
are refused by name, also where they stand in one of these.

Accelerators decide nothing. Whatever one of them finds odd, the archive is read again with the
standard library, which skips what was given out already and says what is wrong, if anything is.
"""

import bz2
import shutil
import zlib
from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from importlib import import_module
from itertools import islice
from typing import Protocol

from heldout.errors import InputError, SetupError
from heldout.trec.accelerators import Accelerators
from heldout.trec.problems import show
from heldout.trec.reading.magic import (
    MAGIC_BYTES,
    is_bzip2,
    is_gzip,
    is_zstd,
    is_zstd_skipped,
    name_other,
)
from heldout.trec.reading.sources import Received, refusal

__all__ = ["PIECE", "Kind", "even", "find_kind", "unpack"]

PIECE = 1 << 20
"""Bytes of text at a time: large, since a thread may wait 5 ms for its turn after each."""
_SHOWN = 8
_FIRST_STEP = 1 << 12
"""A member that is over at once gives back the rest, which for thousands of them has a price."""
_GZIP_NAME = b"\x08"
_WORTH_A_PROCESS = 1 << 18
"""Received bytes from which on a child process saves more time than it takes."""
_DAMAGE = (zlib.error, OSError, ValueError)


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


class _Bzip2:
    def __init__(self) -> None:
        self._inner = bz2.BZ2Decompressor()

    def ended(self) -> bool:
        return self._inner.eof

    @property
    def unused_data(self) -> bytes:
        return self._inner.unused_data

    def feed(self, data: bytes) -> Iterator[bytes]:
        text = self._inner.decompress(data, PIECE)
        yield text
        # Of a block whose last byte it has, it may still give out nearly all.
        while not self._inner.eof and (text or not self._inner.needs_input):
            text = self._inner.decompress(b"", PIECE)
            yield text


def _zstd(begin: bytes) -> Decoder:
    from heldout.trec.reading.zstd import Frame, Skipped  # noqa: PLC0415 - it takes time to load

    return Skipped() if is_zstd_skipped(begin) else Frame()


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
    Kind(name="bzip2", begins=is_bzip2, decoder=lambda _: _Bzip2()),
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
    return refusal(
        "unsupported-archive",
        path,
        found=found,
        expected="a text, plain or compressed with gzip, bzip2 or zstd",
        hint="unpack it; the file in it may be compressed with gzip, bzip2 or zstd (gz, bz2, zst)",
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
        from heldout.trec.reading.lbzip2 import run_lbzip2  # noqa: PLC0415 - it imports subprocess

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
            raise refusal(
                "trailing-bytes",
                received.path,
                found=f"{show(begin[:_SHOWN])} after the end of the {kind.name} archive",
                expected="nothing, or another member",
                hint="compress the file again",
            )
        yield from _member(stream, kind.decoder(begin), kind, received.path)


def _member(stream: _Stream, member: Decoder, kind: Kind, path: str) -> Iterator[bytes]:
    size = _FIRST_STEP
    while not member.ended():
        data = stream.take(size)
        if not data:
            raise refusal(
                "truncated-archive",
                path,
                found=f"a {kind.name} archive that stops before its end",
                expected="the whole archive",
                hint="copy or compress the file again",
            )
        yield from _fed(member, data, kind, path)
        size *= 8
    stream.put_back(member.unused_data)


def _fed(member: Decoder, data: bytes, kind: Kind, path: str) -> Iterator[bytes]:
    try:
        yield from member.feed(data)
    except _DAMAGE as error:
        raise refusal(
            "damaged-archive",
            path,
            found=f"a {kind.name} archive that does not unpack",
            expected="an undamaged archive",
            hint="copy or compress the file again",
        ) from error
