"""A log that is verified once, line by line, and never whole in memory.

`read_log` goes through a file, verifies every line and folds it into the history. What it gives can
be continued by one event, and asked for single events: these are read from the file again.

What was verified can be remembered: the length and the SHA-256 of the bytes, the chain and the fold
at their end. Later only the lines behind them are verified. If a byte of the beginning is another
one, or the memory cannot be read, all of it is verified as if nothing were remembered. Whoever
stores a memory has to make sure that nobody else can write one: `Vault.recall`.
"""

import hashlib
import re
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, TypeVar

import msgspec

from heldout.board.log.events import Chain, Entry, read_verified
from heldout.board.log.history import Fold, History
from heldout.errors import StoreError

if TYPE_CHECKING:
    from hashlib import _Hash

T = TypeVar("T", bound=msgspec.Struct)
_CHUNK = 1 << 20
_BETWEEN = 256  # lines between two marks
_FEW = 4
_HEAD = re.compile(
    rb'\{"event":\{"seq":\d+,"at":"[^"]+","kind":"([^"]+)",'
    rb'"by":"(?:[^"\\]|\\.)*","submission":(null|"(?:[^"\\]|\\.)*")'
)

_NOBODY = b'"submission":null'


class Remembered(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of the beginning of a log.

    Attributes:
        length: how many bytes.
        sha256: of these bytes.
        chain: verified to their end.
        fold: what these events say.
        marks: as `Log.marks`.
    """

    length: int
    sha256: bytes
    chain: Chain
    fold: Fold
    marks: list[tuple[int, int]]


@dataclass(slots=True)
class Log:
    """A verified log.

    Attributes:
        open: gives a stream of the file.
        chain: verified to the end.
        fold: what the events say.
        length: bytes of whole lines.
        digest: running SHA-256 of these bytes.
        remembered: how many of the events were not verified again.
        known: SHA-256 of their bytes, by which they were known; b"" for none.
        fault: why the events make no history; `None` where they do.
        marks: numbers of some events, ascending, with the byte where the line of each begins.
    """

    open: Callable[[], BinaryIO]
    chain: Chain
    fold: Fold
    length: int
    digest: "_Hash"
    remembered: int = 0
    known: bytes = b""
    fault: StoreError | None = None
    marks: list[tuple[int, int]] = field(default_factory=lambda: [(0, 0)])
    _history: History | None = None
    _last: Entry | None = None

    def __len__(self) -> int:
        return self.chain.count

    @property
    def history(self) -> History:
        """What the log says.

        Raises:
            StoreError: an event cannot come where it stands, or lacks what its kind has to say.
        """
        if self.fault is not None:
            raise self.fault
        if self._history is None:
            self._history = self.fold.now()
        return self._history

    @property
    def last(self) -> Entry:
        """The last event; there must be one."""
        if self._last is None:
            self._last = read_verified(_last_line(self.open, self.length))
        return self._last

    def take(self, line: bytes, *, place: str) -> Entry:
        """Verify the line that comes next, newline included, and go on with it."""
        entry = self.chain.take(line.removesuffix(b"\n"), place=place)
        self.length += len(line)
        mark_line(self.marks, self.chain.count, self.length)
        self.digest.update(line)
        self._history, self._last = None, entry
        if self.fault is None:
            try:
                self.fold.take(entry)
            except StoreError as error:
                self.fault = error
        return entry

    def lines(self, start: int = 0) -> Iterator[bytes]:
        """The lines from an event on, newline included."""
        number, offset = self.marks[bisect_right(self.marks, (start, self.length)) - 1]
        with self.open() as stream:
            stream.seek(offset)
            yield from islice(stream, start - number, self.chain.count - number)

    def _find_lines(self, marks: Collection[bytes], start: int = 0) -> Iterator[bytes]:
        """The lines from an event on that hold one of some texts, others are not even cut apart.

        All lines where it would take longer to look for so many texts.
        """
        if len(marks) > _FEW:
            yield from self.lines(start)
            return
        offset = self.find(start) if marks else self.length
        left = self.length - offset
        with self.open() as stream:
            stream.seek(offset)
            while left and (block := stream.read(min(_CHUNK, left))):
                block += stream.readline() if len(block) < left else b""
                left -= len(block)
                found = {
                    block.rfind(b"\n", 0, at) + 1 for mark in marks for at in _places(block, mark)
                }
                yield from (block[at : block.find(b"\n", at) + 1] for at in sorted(found))

    def find(self, number: int) -> int:
        """The byte where the line of an event begins; the log's length for the next event."""
        if number >= self.chain.count:
            return self.length
        before, offset = self.marks[bisect_right(self.marks, (number, self.length)) - 1]
        return offset + sum(map(len, islice(self.lines(before), number - before)))

    def entries(self, start: int = 0) -> Iterator[Entry]:
        """The events from one on."""
        return (read_verified(line) for line in self.lines(start))

    def select(self, *kinds: str) -> Iterator[Entry]:
        """The events of some kinds, in order.

        Others are passed over by their bytes, for an event is written in one form alone.
        """
        wanted = frozenset(kind.encode() for kind in kinds)
        for line in self._find_lines([b'"kind":"%b"' % kind for kind in wanted]):
            found = _HEAD.match(line)
            if found is not None and found[1] in wanted:
                yield read_verified(line)

    def about_board(self) -> Iterator[Entry]:
        """The events about no submission, in order."""
        for line in self._find_lines([_NOBODY]):
            found = _HEAD.match(line)
            if found is not None and found[2] == b"null":
                yield read_verified(line)

    def heads(self) -> Iterator[tuple[str, str | None]]:
        """Kind and submission of every event, in order."""
        return map(read_head, self.lines())

    def public_texts(self, field: str, *, start: int = 0) -> Iterator[tuple[str | None, str]]:
        """Submission and text of a field, of the events that have it; no more of them is read.

        Args:
            field: a text, and public in every event that has it.
            start: the first event that is looked at.
        """
        # No text has this inside: there a backslash stands before each quotation mark.
        name = msgspec.json.encode(field) + b":"
        wanted = re.compile(re.escape(name) + rb'("(?:[^"\\]|\\.)*")')
        for line in self._find_lines([name], start):
            if (found := wanted.search(line)) is not None:
                yield read_head(line)[1], msgspec.json.decode(found[1])

    def select_about(self, submissions: Collection[str]) -> Iterator[Entry]:
        """The events about some submissions, in order."""
        wanted = frozenset(map(msgspec.json.encode, submissions))
        for line in self._find_lines([b'"submission":%b' % name for name in wanted]):
            found = _HEAD.match(line)
            if found is not None and found[2] in wanted:
                yield read_verified(line)

    def lines_about_others(self, submissions: Collection[str]) -> Iterator[bytes]:
        """The lines of all events but those about some submissions."""
        unwanted = frozenset(map(msgspec.json.encode, submissions))
        for line in self.lines():
            found = _HEAD.match(line)
            if found is None or found[2] not in unwanted:
                yield line

    def holding(self, field: str) -> Iterator[Entry]:
        """The events that name a field anywhere, in order."""
        mark = msgspec.json.encode(field) + b":"
        return map(read_verified, self._find_lines([mark]))

    def at(self, numbers: Collection[int]) -> Iterator[Entry]:
        """The events with these numbers, in order."""
        wanted = frozenset(numbers)
        if wanted:
            first, last = min(wanted), max(wanted)
            numbered = enumerate(islice(self.lines(first), last - first + 1), first)
            yield from (read_verified(line) for number, line in numbered if number in wanted)

    def remember(self) -> Remembered:
        """What is known of it now."""
        return Remembered(
            length=self.length,
            sha256=self.digest.digest(),
            chain=self.chain,
            fold=self.fold,
            marks=[*self.marks],
        )

    def begins_with(self, other: "Log") -> bool:
        """Whether it has the events of another one at its beginning."""
        if len(other) > len(self) or not len(other):
            return not len(other)
        return self.has_hash(other.chain.hash, number=len(other) - 1)

    def has_hash(self, digest: str, *, number: int) -> bool:
        """Whether it has an event of this number, with this hash."""
        if number == len(self) - 1:
            return self.chain.hash == digest
        return any(entry.hash == digest for entry in self.at([number]))


def mark_line(marks: list[tuple[int, int]], number: int, offset: int) -> None:
    """Note where the line of an event begins, where the last mark is far enough before it."""
    if number - marks[-1][0] >= _BETWEEN:
        marks.append((number, offset))


def read_log(open_: Callable[[], BinaryIO], *, path: str, known: Remembered | None = None) -> Log:
    """Verify a log, but for the beginning that is known; an unfinished last line never counted.

    Args:
        open_: gives a stream of the file.
        path: name for errors.
        known: of a log that may be this one, as it was.

    Raises:
        StoreError: with the line that breaks the chain.
    """
    with open_() as stream:
        log = _go_on(stream, open_, known)
        if log is None:
            stream.seek(0)
            log = Log(open_, Chain(), Fold(), 0, hashlib.sha256())
        for line in stream:
            if line.endswith(b"\n"):
                log.take(line, place=f"{path}:{len(log) + 1}")
    return log


def read_head(line: bytes) -> tuple[str, str | None]:
    """Kind and submission of a line that was verified before."""
    found = _HEAD.match(line)
    if found is None:
        raise ValueError(line)
    return found[1].decode(), msgspec.json.decode(found[2])


def _go_on(stream: BinaryIO, open_: Callable[[], BinaryIO], known: Remembered | None) -> Log | None:
    """The log to the end of what is known of it; `None` where it begins otherwise."""
    if known is None:
        return None
    digest, left = hashlib.sha256(), known.length
    while left and (data := stream.read(min(_CHUNK, left))):
        digest.update(data)
        left -= len(data)
    if left or digest.digest() != known.sha256:
        return None
    chain = replace(known.chain)
    return Log(
        open_,
        chain,
        known.fold.copy(),  # what is known stays as it is while this goes on
        known.length,
        digest,
        remembered=chain.count,
        known=known.sha256,
        marks=[*known.marks],
    )


def _places(block: bytes, mark: bytes) -> Iterator[int]:
    """Where a text stands in some lines, once for each line that holds it."""
    at = block.find(mark)
    while at >= 0:
        yield at
        end = block.find(b"\n", at)
        at = block.find(mark, end) if end >= 0 else -1


def _last_line(open_: Callable[[], BinaryIO], length: int) -> bytes:
    size = _CHUNK
    with open_() as stream:
        while True:
            stream.seek(max(length - size, 0))
            lines = stream.read(min(size, length)).splitlines(keepends=True)
            if len(lines) > 1 or size >= length:
                return lines[-1]
            size *= 2


def encode_memory(memory: msgspec.Struct) -> bytes:
    """A memory as bytes, with a mark of the code that made it."""
    return _code() + msgspec.msgpack.encode(memory)


def decode_memory(data: bytes | None, kind: type[T]) -> T | None:
    """The memory in some bytes; `None` where other code made it, or it is damaged."""
    if data is None or not data.startswith(_code()):
        return None
    try:
        return msgspec.msgpack.decode(data[len(_code()) :], type=kind)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None


@cache
def _code() -> bytes:
    """SHA-256 of the code that reads logs: what other code has verified says nothing."""
    found = hashlib.sha256()
    for path in sorted(Path(__file__).parent.glob("*.py")):
        found.update(path.read_bytes())
    return found.digest()
