"""Text out of received bytes: unpacked, limited, checked, in blocks of whole lines.

A stream is read once, forwards, so it may come out of a decrypting pipe; a thread reads ahead.
Nothing is trusted: sizes, ratios and line lengths are limited, and what comes out does not depend
on how the bytes arrived.
"""

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from queue import SimpleQueue
from threading import Semaphore, Thread
from types import TracebackType
from typing import BinaryIO, Final, Generic, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from heldout.errors import InputError, Problem
from heldout.ids import Digest
from heldout.trec.reading import sources
from heldout.trec.text import ProblemLog, check_line

T = TypeVar("T")


class _End:
    """The last thing in the queue, perhaps with the error that ended it all."""

    def __init__(self, error: BaseException | None = None) -> None:
        self.error = error


class Ahead(Generic[T]):
    """The items of a generator, in order, made in a thread some items ahead.

    What the generator raises is raised where its items are taken, after those before it. After
    `close`, or the last item, neither the thread nor the generator runs any more.
    """

    def __init__(self, items: Generator[T], *, depth: int) -> None:
        """Begin.

        Args:
            items: run in the thread from now on, and closed there.
            depth: most items that wait to be taken, >= 1.
        """
        self._items = items
        self._ready: SimpleQueue[T | _End] = SimpleQueue()
        self._room = Semaphore(depth - 1)
        self._stopped = False
        self._thread = Thread(target=self._run, name="heldout-ahead", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        end = _End()
        try:
            for item in self._items:
                self._ready.put(item)
                self._room.acquire()
                if self._stopped:
                    break
        except BaseException as error:  # noqa: BLE001 - raised again where items are taken
            end = _End(error)
        finally:
            self._items.close()
            self._ready.put(end)

    def __iter__(self) -> Iterator[T]:
        """The items that are left.

        Raises:
            BaseException: whatever the generator raises.
        """
        while not self._stopped:
            item = self._ready.get()
            if isinstance(item, _End):
                self.close()
                if item.error is not None:
                    raise item.error
                return
            self._room.release()
            yield item

    def close(self) -> None:
        """Stop the thread and wait for it; does nothing a second time.

        The item that is being made is finished first.
        """
        self._stopped = True
        self._room.release()
        self._thread.join()


_RATIO_FREE = 1 << 25
"""Decompressed bytes before the ratio is looked at: small files may compress very well."""
_AHEAD = 2
_WORTH_A_THREAD = 1 << 18
"""Received bytes of an archive from which on a thread saves more time than it takes."""
_BOM = b"\xef\xbb\xbf"
_END = ord("\n")


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How much of somebody's file is read before it is refused; the defaults are for strangers'.

    Attributes:
        compressed_bytes: bytes received.
        bytes: bytes after decompression.
        ratio: decompressed over received bytes, looked at from 32 MiB on.
        lines: lines in the text.
        line_bytes: bytes in one line.
        queries: different queries in a run.
        documents: documents of one query in a run.
        query_bytes: text of one query in a run.
        problems: errors reported in full; all are counted.
    """

    compressed_bytes: int = 1 << 30
    bytes: int = 1 << 32
    ratio: int = 250
    lines: int = 50_000_000
    line_bytes: int = 1 << 16
    queries: int = 100_000
    documents: int = 100_000
    query_bytes: int = 1 << 23
    problems: int = 20


OWN_FILES: Final = Limits(
    compressed_bytes=1 << 36,
    bytes=1 << 38,
    ratio=1000,
    lines=1 << 32,
    queries=10_000_000,
    documents=10_000_000,
    query_bytes=1 << 29,
)
"""For run files of whoever calls, which may be as large as collections make them.

Rows of a query that stand apart go through SQLite, which takes no text of 1 GB.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    r"""Consecutive whole lines, about 1 MiB of them.

    Attributes:
        text: each line ends with one `\n`; `\r\n` has become `\n`; no NUL.
        line: 1-based number of the first line.
        count: number of lines, >= 1.
    """

    text: bytes
    line: int
    count: int

    @property
    def ends(self) -> NDArray[np.int64]:
        r"""Offsets of the `\n` in text, one per line; computed at each call."""
        return np.flatnonzero(np.frombuffer(self.text, dtype=np.uint8) == _END)


class TextReader:
    """Reads one stream once.

    A context manager: at its end, whatever ended it, nothing runs and the source is not read
    any more.

    Attributes:
        path: the file's name for messages.
        limits: as given.
        lines: lines read so far.
        notes: what was read in a way worth a note: code `byte-order-mark`.
    """

    def __init__(self, source: sources.Readable, *, path: str, limits: Limits) -> None:
        """Begin; nothing is read yet.

        Args:
            source: its bytes.
            path: its name for messages.
            limits: how much is read.
        """
        self.path = path
        self.limits = limits
        self.lines = 0
        self.notes: list[Problem] = []
        self._received = sources.Received(source, path=path, limit=limits.compressed_bytes)
        self._ahead: Ahead[bytes] | None = None
        self._given_back = (b"", 0)
        self._closed = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Stop reading: whoever still takes blocks gets a `ValueError`, never half a text."""
        self._closed = True
        if self._ahead is not None:
            self._ahead.close()

    def blocks(self) -> Iterator[Block]:
        """The text in order, in blocks of some 1 MiB.

        Archives are unpacked, and files of more than 512 KiB read and hashed, in a thread of its
        own, which ends with the iteration.

        Raises:
            InputError: codes `empty-file`, `truncated-archive`, `damaged-archive`,
                `trailing-bytes`, `archive-bomb`, `too-large`, `too-many-lines`,
                `line-too-long`, `nul-byte`, `unsupported-archive`.
        """
        try:
            for text, begin in self._whole_lines():
                yield self._block(text, begin)
                if self._closed:
                    raise ValueError("this reader is closed")
        finally:
            self.close()
        if not self.lines:
            raise InputError.of("empty-file", self.path, "no text", "at least one line")

    def pieces(self) -> Iterator[bytes]:
        """The text in order, in pieces of some 1 MiB; its lines are not looked at.

        Raises:
            InputError: codes `truncated-archive`, `damaged-archive`, `trailing-bytes`,
                `archive-bomb`, `too-large`, `unsupported-archive`.
        """
        return filter(None, self._without_mark(self._text()))

    def give_back(self, text: bytes, *, lines: int) -> None:
        """Have the next block begin with lines of the last, so that they are copied only once.

        If there is no next block, they are gone.

        Args:
            text: whole lines.
            lines: how many.
        """
        self._given_back = text, lines

    def digest(self) -> Digest:
        """SHA-256 of the received bytes.

        After a refusal the rest of the stream is read first, up to the limit, so that the
        digest is that of the whole file unless the file is over the limit.
        """
        self.close()
        try:
            while self._received.read():
                pass
        except InputError:
            pass
        return self._received.digest()

    def _whole_lines(self) -> Iterator[tuple[bytes, int]]:
        """Text, and where what is new in it begins."""
        rest = b""
        for piece in self._without_mark(self._text()):
            cut = piece.rfind(b"\n") + 1
            if cut:
                before, _ = self._given_back
                yield b"".join((before, rest, memoryview(piece)[:cut])), len(before)
                rest = piece[cut:]
            else:
                rest += piece
            if len(rest) - rest.endswith(b"\r") > self.limits.line_bytes:
                raise self._too_long(self.lines + 1)
        if rest:
            before, _ = self._given_back
            yield b"".join((before, rest, b"\n")), len(before)

    def _text(self) -> Iterator[bytes]:
        head = self._received.read()
        kind = sources.find_kind(head, self.path)
        if kind is not None:
            pieces = sources.unpack(head, kind, self._received)
        else:
            pieces = sources.even(sources.read_plain(head, self._received))
        if self._received.whole and (kind is None or len(head) < _WORTH_A_THREAD):
            return self._limited(pieces, kind)
        self._ahead = Ahead(pieces, depth=_AHEAD)
        return self._limited(iter(self._ahead), kind)

    def _limited(
        self, pieces: Iterator[bytes], kind: sources.ArchiveKind | None
    ) -> Iterator[bytes]:
        """The same; whether an archive is a bomb depends on the whole of it, not on the way."""
        size = self._received.size
        most = self._most(self.limits.compressed_bytes if size is None else size)
        total = 0
        for piece in pieces:
            total += len(piece)
            if total > most:
                raise self._bomb(most, kind)
            yield piece
        most = self._most(self._received.count)
        if total > most:
            raise self._bomb(most, kind)

    def _most(self, received: int) -> int:
        return min(self.limits.bytes, max(_RATIO_FREE, self.limits.ratio * received))

    def _bomb(self, most: int, kind: sources.ArchiveKind | None) -> InputError:
        found, limits = f"more than {most} bytes", self.limits
        if kind is None:
            return InputError.of(
                "too-large", self.path, found, f"at most {limits.bytes} bytes of text"
            )
        found = f"a {kind.name} archive that unpacks to {found}"
        return InputError.of("archive-bomb", self.path, found, limits=limits)

    def _without_mark(self, pieces: Iterator[bytes]) -> Iterator[bytes]:
        head = next(pieces, b"")
        if head.startswith(_BOM):
            head = head[len(_BOM) :]
            self.notes.append(Problem.of("byte-order-mark", self.path, line=1))
        yield head
        yield from pieces

    def _block(self, text: bytes, begin: int) -> Block:
        """A block of text, of which what is before `begin` was looked at before."""
        _, known = self._given_back
        self._given_back = b"", 0
        if text.find(b"\r", begin) >= 0:
            # Not in what was known: of `\r\r\n` one `\r` is left there, and stays.
            text = text[:begin] + text[begin:].replace(b"\r\n", b"\n")
        first = self.lines + 1
        self._check_lengths(text, begin, first)
        new = np.frombuffer(text, dtype=np.uint8)[begin:]
        count = int(np.count_nonzero(new == _END))
        self.lines += count
        if self.lines > (most := self.limits.lines):
            raise InputError.of("too-many-lines", self.path, line=most + 1, most=most)
        if b"\0" in text:
            raise InputError.of(
                "nul-byte", self.path, line=first + text.count(b"\n", begin, text.index(b"\0"))
            )
        return Block(text=text, line=first - known, count=known + count)

    def _check_lengths(self, text: bytes, begin: int, first: int) -> None:
        """Look only at the last end of a line that a line from `start` on can have."""
        start = begin
        while start < len(text):
            end = text.rfind(b"\n", start, start + self.limits.line_bytes + 1)
            if end < 0:
                raise self._too_long(first + text.count(b"\n", begin, start))
            start = end + 1

    def _too_long(self, line: int) -> InputError:
        return InputError.of("line-too-long", self.path, line=line, most=self.limits.line_bytes)


def read_lines(reader: TextReader) -> Iterator[tuple[int, bytes]]:
    r"""The lines with their 1-based numbers, without `\n`; raises as `TextReader.blocks`."""
    for block in reader.blocks():
        yield from enumerate(block.text[:-1].split(b"\n"), start=block.line)


@contextmanager
def open_rows(
    source: BinaryIO, *, path: str, limits: Limits | None, prose: bool = False
) -> Iterator[tuple[ProblemLog, Iterator[tuple[int, bytes]]]]:
    """The rows of a small file that is read to its end, and the log of what is wrong with it.

    Blank lines and comments are no rows. Whoever takes the rows logs what is wrong with them.

    Args:
        source: its bytes: plain, gzip, bzip2 or zstd.
        path: its name for messages.
        limits: how much is read; `None` for the usual ones.
        prose: whether people wrote it, as in `check_line`.

    Yields:
        The log, and the rows with their 1-based numbers.

    Raises:
        InputError: at the end, all that was logged; code `empty-file` where there is no row.
    """
    limits = limits or Limits()
    log = ProblemLog(limits.problems)
    with TextReader(source, path=path, limits=limits) as reader:
        yield log, _rows(reader, log, prose=prose)
    log.raise_errors()


def _rows(reader: TextReader, log: ProblemLog, *, prose: bool) -> Iterator[tuple[int, bytes]]:
    empty = True
    for number, line in read_lines(reader):
        problem = check_line(line, path=reader.path, number=number, prose=prose)
        if problem is None:
            empty = False
            yield number, line
        elif problem.severity == "error":
            log.add(problem)
    if empty and not log.errors:
        log.add(Problem("empty-file", reader.path, "no row", "at least one"))
