"""Received bytes as blocks of whole text lines: decompressed, limited, hashed on the way.

The archive is told by its content, never by its name. A stream is read once, forwards, so it
may come out of a decrypting pipe. Nothing is trusted: sizes, ratios and line lengths are
limited, and an archive that is cut short, damaged or followed by anything else is refused.
"""

import bz2
import hashlib
import io
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Protocol

import numpy as np
import zstandard
from numpy.typing import NDArray

from heldout.errors import InputError, Problem
from heldout.ids import Digest
from heldout.trec.problems import show

__all__ = ["Block", "Limits", "Replay", "TextReader", "open_input", "read_lines"]

_CHUNK = 1 << 18
_RATIO_FREE = 1 << 25
"""Decompressed bytes before the ratio is looked at: small files may compress very well."""
_ZSTD_PIECE = 1 << 10
"""A zstd block of four bytes can stand for 128 KiB, so 1 KiB gives 32 MiB at most."""
_ZSTD_WINDOW = 1 << 27
_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How much of somebody's file is read before it is refused.

    Attributes:
        compressed_bytes: bytes received.
        bytes: bytes after decompression.
        ratio: decompressed over received bytes, looked at from 32 MiB on.
        lines: lines in the text.
        line_bytes: bytes in one line.
        queries: different queries in a run.
        documents: documents of one query in a run.
        problems: errors reported in full; all are counted.
    """

    compressed_bytes: int = 1 << 30
    bytes: int = 1 << 32
    ratio: int = 250
    lines: int = 50_000_000
    line_bytes: int = 1 << 16
    queries: int = 100_000
    documents: int = 100_000
    problems: int = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    r"""Consecutive whole lines.

    Attributes:
        text: each line ends with one `\n`; `\r\n` has become `\n`; no NUL.
        line: 1-based number of the first line.
        ends: int64, offsets of the `\n` in text, one per line.
    """

    text: bytes
    line: int
    ends: NDArray[np.int64]


def open_input(path: Path) -> BinaryIO:
    """Open a file for the readers of this room.

    Raises:
        InputError: code `unreadable-file`.
    """
    try:
        return path.open("rb")
    except OSError as error:
        raise InputError(
            Problem(
                code="unreadable-file",
                path=str(path),
                found=error.strerror or type(error).__name__,
                expected="a file that can be read",
            )
        ) from error


class Replay:
    """A source that can be read a second time from where it stood.

    Ordinary files and `BytesIO` are rewound; of anything else the received bytes are kept in
    memory, since many pipes claim to be seekable and are not.
    """

    def __init__(self, source: BinaryIO) -> None:
        self._source = source
        self._start = source.tell() if _can_seek(source) else None
        self._kept: list[bytes] = []
        self._again: Iterator[bytes] | None = None

    def read(self, size: int) -> bytes:
        """At most `size` bytes, `b""` at the end."""
        if self._again is not None:
            chunk = next(self._again, None)
            if chunk is not None:
                return chunk
            self._again = None
        chunk = self._source.read(size)
        if self._start is None and chunk:
            self._kept.append(chunk)
        return chunk

    def rewind(self) -> None:
        """Go back to where the source stood."""
        if self._start is None:
            self._again = iter(tuple(self._kept))
        else:
            self._source.seek(self._start)


def _can_seek(source: BinaryIO) -> bool:
    # Exact types: tarfile's members in stream mode are BufferedReaders that lie about this.
    return type(source) in {io.BytesIO, io.BufferedReader} and source.seekable()


class _Readable(Protocol):
    def read(self, size: int, /) -> bytes: ...


class _Received:
    """The raw bytes, hashed and counted."""

    def __init__(self, source: _Readable, *, path: str, limit: int) -> None:
        self._source = source
        self._path = path
        self._limit = limit
        self._hash = hashlib.sha256()
        self.count = 0

    def read(self) -> bytes:
        chunk = self._source.read(_CHUNK)
        self._hash.update(chunk)
        self.count += len(chunk)
        if self.count > self._limit:
            raise _refusal(
                "too-large",
                self._path,
                found=f"more than {self._limit} bytes",
                expected=f"at most {self._limit} bytes as received",
                hint="remove documents below the depth that is scored, or compress the file",
            )
        return chunk

    def digest(self) -> Digest:
        return Digest(self._hash.hexdigest())


class TextReader:
    """Reads one stream once.

    Attributes:
        path: the file's name for messages.
        limits: as given.
        lines: lines read so far.
        notes: what was read in a way worth telling: code `byte-order-mark`.
    """

    def __init__(self, source: _Readable, *, path: str, limits: Limits) -> None:
        self.path = path
        self.limits = limits
        self.lines = 0
        self.notes: list[Problem] = []
        self._received = _Received(source, path=path, limit=limits.compressed_bytes)

    def blocks(self) -> Iterator[Block]:
        """The text in order, in blocks of some 256 KiB.

        Raises:
            InputError: codes `empty-file`, `truncated-archive`, `damaged-archive`,
                `trailing-bytes`, `archive-bomb`, `too-large`, `too-many-lines`,
                `line-too-long`, `nul-byte`.
        """
        rest = b""
        chunks = self._limited(_decompress(self._received, self.path))
        for chunk in self._without_mark(_even(chunks)):
            cut = chunk.rfind(b"\n") + 1
            if cut:
                yield self._block(rest + chunk[:cut])
                rest = chunk[cut:]
            else:
                rest += chunk
            self._check_length(len(rest), self.lines + 1)
        if rest:
            yield self._block(rest + b"\n")
        if not self.lines:
            raise _refusal("empty-file", self.path, found="no text", expected="at least one line")

    def digest(self) -> Digest:
        """SHA-256 of the received bytes.

        After a refusal the rest of the stream is read first, up to the limit, so that the
        digest is that of the whole file unless the file is over the limit.
        """
        try:
            while self._received.read():
                pass
        except InputError:
            pass
        return self._received.digest()

    def _limited(self, chunks: Iterator[bytes]) -> Iterator[bytes]:
        total = 0
        for chunk in chunks:
            total += len(chunk)
            allowed = max(_RATIO_FREE, self.limits.ratio * self._received.count)
            if total > min(self.limits.bytes, allowed):
                raise _refusal(
                    "archive-bomb" if total > self._received.count else "too-large",
                    self.path,
                    found=f"{self._received.count} bytes that unpack to more than {total}",
                    expected=f"at most {self.limits.bytes} bytes of text, "
                    f"at most {self.limits.ratio} times what was received",
                )
            yield chunk

    def _without_mark(self, chunks: Iterator[bytes]) -> Iterator[bytes]:
        head = next(chunks, b"")
        if head.startswith(_BOM):
            head = head[len(_BOM) :]
            self.notes.append(
                Problem(
                    code="byte-order-mark",
                    path=self.path,
                    line=1,
                    found="a UTF-8 byte order mark",
                    expected="text from the first byte on",
                    hint="it was skipped; most tools would make it part of the first id",
                    severity="note",
                )
            )
        yield head
        yield from chunks

    def _block(self, text: bytes) -> Block:
        if b"\r" in text:
            text = text.replace(b"\r\n", b"\n")
        ends = np.flatnonzero(np.frombuffer(text, dtype=np.uint8) == ord("\n"))
        first = self.lines + 1
        self.lines += len(ends)
        lengths = np.diff(ends, prepend=-1) - 1
        longest = int(lengths.argmax())
        self._check_length(int(lengths[longest]), first + longest)
        if self.lines > self.limits.lines:
            raise _refusal(
                "too-many-lines",
                self.path,
                line=self.limits.lines + 1,
                found=f"more than {self.limits.lines} lines",
                expected=f"at most {self.limits.lines} lines",
            )
        if b"\0" in text:
            raise _refusal(
                "nul-byte",
                self.path,
                line=first + text.count(b"\n", 0, text.index(b"\0")),
                found="a NUL byte",
                expected="text in UTF-8",
                hint="this may be a binary file, UTF-16, or an archive inside an archive",
            )
        return Block(text=text, line=first, ends=ends)

    def _check_length(self, length: int, line: int) -> None:
        if length > self.limits.line_bytes:
            raise _refusal(
                "line-too-long",
                self.path,
                line=line,
                found=f"a line of more than {self.limits.line_bytes} bytes",
                expected=f"at most {self.limits.line_bytes} bytes in a line",
                hint="this may be a binary file or another format",
            )


def read_lines(reader: TextReader) -> Iterator[tuple[int, bytes]]:
    r"""The lines with their 1-based numbers, without `\n`; raises as `TextReader.blocks`."""
    for block in reader.blocks():
        yield from enumerate(block.text[:-1].split(b"\n"), start=block.line)


def _even(chunks: Iterator[bytes]) -> Iterator[bytes]:
    """The same bytes in chunks of 256 KiB, whatever size a decompressor gave."""
    kept: list[bytes] = []
    size = 0
    for chunk in chunks:
        kept.append(chunk)
        size += len(chunk)
        if size >= _CHUNK:
            whole = b"".join(kept)
            cut = size - size % _CHUNK
            yield from (whole[start : start + _CHUNK] for start in range(0, cut, _CHUNK))
            kept, size = [whole[cut:]], size - cut
    yield b"".join(kept)


class _Decoder(Protocol):
    """One archive member on its way: at most some MiB come out of one call."""

    def ended(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    def feed(self, data: bytes) -> Iterator[bytes]: ...


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
            yield self._inner.decompress(data, _CHUNK)
            data = self._inner.unconsumed_tail


class _Bzip2:
    def __init__(self) -> None:
        self._inner = bz2.BZ2Decompressor()

    def ended(self) -> bool:
        return self._inner.eof

    @property
    def unused_data(self) -> bytes:
        return self._inner.unused_data

    def feed(self, data: bytes) -> Iterator[bytes]:
        yield self._inner.decompress(data, _CHUNK)
        while not self._inner.needs_input and not self._inner.eof:
            yield self._inner.decompress(b"", _CHUNK)


class _Zstd:
    def __init__(self) -> None:
        self._inner = zstandard.ZstdDecompressor(max_window_size=_ZSTD_WINDOW).decompressobj()
        self._left = b""

    def ended(self) -> bool:
        return self._inner.eof

    @property
    def unused_data(self) -> bytes:
        return self._inner.unused_data + self._left

    def feed(self, data: bytes) -> Iterator[bytes]:
        for start in range(0, len(data), _ZSTD_PIECE):
            yield self._inner.decompress(data[start : start + _ZSTD_PIECE])
            if self._inner.eof:
                self._left = data[start + _ZSTD_PIECE :]
                return


_ARCHIVES: dict[bytes, tuple[str, Callable[[], _Decoder]]] = {
    b"\x1f\x8b": ("gzip", _Gzip),
    b"BZh": ("bzip2", _Bzip2),
    b"\x28\xb5\x2f\xfd": ("zstd", _Zstd),
}
_MAGIC = 4


def _decompress(received: _Received, path: str) -> Iterator[bytes]:
    """Chunks of text from plain bytes or from one or more members of one kind of archive."""
    head = b""
    while len(head) < _MAGIC and (chunk := received.read()):
        head += chunk
    for magic, (name, decoder) in _ARCHIVES.items():
        if head.startswith(magic):
            yield from _members(head, received, path, magic=magic, name=name, decoder=decoder)
            return
    while head:
        yield head
        head = received.read()


def _members(
    data: bytes,
    received: _Received,
    path: str,
    *,
    magic: bytes,
    name: str,
    decoder: Callable[[], _Decoder],
) -> Iterator[bytes]:
    while data:
        member = decoder()
        while not member.ended():
            if not data:
                raise _refusal(
                    "truncated-archive",
                    path,
                    found=f"a {name} archive that stops before its end",
                    expected="the whole archive",
                    hint="copy or compress the file again",
                )
            yield from _fed(member, data, path, name)
            data = b"" if member.ended() else received.read()
        data = member.unused_data
        while len(data) < _MAGIC and (chunk := received.read()):
            data += chunk
        if data and not data.startswith(magic):
            raise _refusal(
                "trailing-bytes",
                path,
                found=f"{show(data[:8])} after the end of the {name} archive",
                expected="nothing, or another member",
                hint="compress the file again",
            )


def _fed(member: _Decoder, data: bytes, path: str, name: str) -> Iterator[bytes]:
    try:
        yield from member.feed(data)
    except (zlib.error, OSError, ValueError, zstandard.ZstdError) as error:
        raise _refusal(
            "damaged-archive",
            path,
            found=f"a {name} archive that does not unpack",
            expected="an undamaged archive",
            hint="copy or compress the file again",
        ) from error


def _refusal(
    code: str, path: str, *, found: str, expected: str, hint: str = "", line: int | None = None
) -> InputError:
    """An error that ends the reading of a file."""
    return InputError(
        Problem(code=code, path=path, found=found, expected=expected, hint=hint, line=line)
    )
