"""A log in its files, verified once, line by line, and never whole in memory.

`read_log` goes through a file, verifies every line and folds it into the history. What it gives can
be continued by one event, and asked for single events: these are read from the file again.

What was verified can be remembered: the length and the SHA-256 of the bytes, the chain and the fold
at their end. Later only the lines behind them are verified. If a byte of the beginning is another
one, or the memory cannot be read, all of it is verified as if nothing were remembered. Whoever
stores a memory has to make sure that nobody else can write one: `Vault.recall`.

The public log is `log.jsonl`. Where it has more than 10,000 events, each full ten thousand of the
earlier ones lie in a file of their own, `log/00010000.jsonl` and so on, named by the number of the
event behind its last one; `log.jsonl` has the rest. So git stores and sends what is new alone, and
no file outgrows what a forge takes (GitHub: 100 MB). Figures of a ranking are as long as many
events, and count for as many. Sizes in bytes would be no rule: a line grows where an embargo ends,
and the events behind it would move to other files. The first line of each file says which file
comes before it; what else lies there is never read.

A verified log is read again only where its files have changed. A file's mark (`Folder.mark`) tells
whether it may have. Where it says nothing, the bytes are held against the SHA-256 of those that
were verified. A file to which this process has just appended is known by its state right after
that: another line would have made it longer. Otherwise a thousand events in a row would read the
log a thousand times.
"""

import hashlib
import re
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from io import SEEK_CUR, SEEK_END, SEEK_SET, BufferedReader, BytesIO, RawIOBase
from itertools import islice, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, NamedTuple, TypeVar

import msgspec

from heldout.board.log.events import Chain, Entry, read_verified
from heldout.board.log.final import Measured
from heldout.board.log.history import Fold, History
from heldout.errors import StoreError
from heldout.files.durable import Folder

if TYPE_CHECKING:
    from hashlib import _Hash

    from _typeshed import WriteableBuffer

T = TypeVar("T", bound=msgspec.Struct)
_CHUNK = 1 << 20
_BETWEEN = 256  # lines between two marks
_FEW = 4
_DIGEST = re.compile(rb"[0-9a-f]{64}")
_TAR = re.compile(r".*\.tar\.(age|enc)")
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

    def take(self, line: bytes, *, where: str) -> Entry:
        """Verify the line that comes next, newline included, and go on with it."""
        entry = self.chain.take(line.removesuffix(b"\n"), where=where)
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
                    block.rfind(b"\n", 0, at) + 1 for mark in marks for at in _starts(block, mark)
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
        yield from self._select([b'"kind":"%b"' % kind for kind in wanted], 1, wanted)

    def _select(
        self, marks: Collection[bytes], part: int, wanted: frozenset[bytes]
    ) -> Iterator[Entry]:
        """Yield the events of which a part of the head, the kind or the submission, is wanted."""
        for line in self._find_lines(marks):
            found = _HEAD.match(line)
            if found is not None and found[part] in wanted:
                yield read_verified(line)

    def about_board(self) -> Iterator[Entry]:
        """The events about no submission, in order."""
        yield from self._select([_NOBODY], 2, frozenset((b"null",)))

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
        yield from self._select([b'"submission":%b' % name for name in wanted], 2, wanted)

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
        """Return what is known of it now."""
        return Remembered(
            length=self.length,
            sha256=self.digest.digest(),
            chain=self.chain,
            fold=self.fold,
            marks=[*self.marks],
        )

    def begins_with(self, other: "Log") -> bool:
        """Check whether it has the events of another one at its beginning."""
        if len(other) > len(self) or not len(other):
            return not len(other)
        number, digest = len(other) - 1, other.chain.hash
        if len(other) == len(self):
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
                log.take(line, where=f"{path}:{len(log) + 1}")
    return log


def unneeded_runs(log: Log, among: Callable[[str], bool] = bool) -> frozenset[str]:
    """Return the SHA-256 of the sealed runs that only rejected and withdrawn submissions have.

    Nothing opens these runs again: later ones are compared with their signatures. Key and metadata
    are small, and needed where an owner's files come after a spoiled copy of them.

    Args:
        log: the vault's, verified.
        among: says which digests are asked about; all by default.
    """
    every = log.history.submissions.values()
    decided = {one.id for one in every if one.status in ("rejected", "withdrawn")}
    runs: set[str] = set()
    needed: set[str] = set()
    for entry in log.select_about(decided):
        for name, digest in (entry.get("files") or {}).items():
            (runs if _TAR.fullmatch(name) else needed).add(digest)
        runs.update((entry.get("runs") or {}).values())
    left = set(filter(among, runs - needed))
    if left:  # any mention counts: other submissions, labels, baselines, evidence
        for line in log.lines_about_others(decided):
            left.difference_update(found.decode() for found in _DIGEST.findall(line))
    return frozenset(left)


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


def _starts(block: bytes, mark: bytes) -> Iterator[int]:
    """Yield where a text stands in some lines, once for each line that holds it."""
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


LOG = "log.jsonl"
CLOSED = "log"
"""Folder of the full files of the public log."""

IN_FILE = 10_000
_ENTRIES_OF_FIGURES = 4
"""Entries of a ranking whose figures have about the length of an event: 400 bytes each."""
_MOST_FILES = 200
"""More than a log of a gibibyte has, and fewer than can be open at once."""
_HEAD_BYTES = 64
_FIRST = re.compile(rb'\{"event":\{"seq":(\d{1,12}),')
_LOGS: dict[Path, tuple[object, Log]] = {}
"""File -> the marks of its log when that was read last, and the log."""
_APPENDED: dict[Path, tuple[int, ...]] = {}
"""File -> its state when this process had appended to it."""


class LogFile(NamedTuple):
    """A file of the public log.

    Attributes:
        name: its path in the board.
        first: number of its first event.
        end: number of the event behind its last one.
    """

    name: str
    first: int
    end: int


def plan_log_files(events: int, measured: Iterable[Measured] = ()) -> tuple[LogFile, ...]:
    """The files that a public log of so many events lies in, in order.

    Args:
        events: how many.
        measured: those with figures of a ranking, in order.
    """
    starts, room, at = [0], IN_FILE, 0
    figures = [(one.event, len(one.covered) // _ENTRIES_OF_FIGURES) for one in measured]
    for number, extra in (*figures, (events, 0)):
        while number - at > room:
            at += room
            starts.append(at)
            room = IN_FILE
        room -= number - at
        at = number
        if at < events:
            if room < min(1 + extra, IN_FILE):
                starts.append(at)
                room = IN_FILE
            room = max(room - 1 - extra, 0)
            at += 1
    closed = [LogFile(_name_closed(end), first, end) for first, end in pairwise(starts)]
    return (*closed, LogFile(LOG, starts[-1], events))


def list_log_files(folder: Folder) -> tuple[str, ...]:
    """The files that a public log lies in, in order; none where it is missing."""
    if not folder.exists(LOG):
        return ()
    names = [LOG]
    while len(names) <= _MOST_FILES:
        with folder.open(names[0]) as stream:
            before = _name_before(stream.read(_HEAD_BYTES), names[0])
        if before is None or not folder.exists(before):
            break  # the log begins here, or has a hole, which its chain shows
        names.insert(0, before)
    return tuple(names)


def read_public_log(find: Callable[[str], bytes | None]) -> bytes | None:
    """The bytes of a public log, all its files in order; `None` where there is none.

    Args:
        find: gives a file's bytes by its path in the board, `None` where there is none.
    """
    data = find(LOG)
    if data is None:
        return None
    files, name = [data], LOG
    while len(files) <= _MOST_FILES:
        before = _name_before(files[0][:_HEAD_BYTES], name)
        data = None if before is None else find(before)
        if before is None or data is None:
            break  # the log begins here, or has a hole, which its chain shows
        files.insert(0, data)
        name = before
    return b"".join(files)


def open_log(folder: Folder, names: Sequence[str]) -> BinaryIO:
    """A stream of a log: its files, one behind the other."""
    for name in names:
        folder.check_size(name)
    if len(names) == 1:
        return folder.open(names[0])
    return BufferedReader(_Joined([folder.open(name) for name in names]), _CHUNK)


def find_log(
    folder: Folder,
    names: Sequence[str],
    *,
    path: str,
    known: Remembered | None = None,
) -> Log:
    """The log in some files, verified; an empty one where there is none.

    Args:
        folder: where they lie.
        names: of the files, in order; none where the log is missing.
        path: name of the log, for errors; that of the last file.
        known: what is remembered of it; needed only where this process has not read it.

    Raises:
        StoreError: a line breaks the chain.
    """
    key = folder.path(path)
    if not names:
        _LOGS.pop(key, None)  # another log may begin here
        return read_log(BytesIO, path=path)
    marks = _mark_all(folder, names)
    before, log = _LOGS.get(key, (None, None))
    if log is not None and _state(folder, names[-1]) == _APPENDED.get(key):
        return log
    if log is None or marks is None or marks != before:
        opened = partial(open_log, folder, names)
        if log is None or not _is_still(log, opened):
            log = _read_again(log, opened, path=path, known=known)
        else:
            log.open = opened
        _LOGS[key] = marks, log
    return log


def has_read(folder: Folder, path: str) -> bool:
    """Check whether this process has read the log of a path, and knows itself what it verified."""
    return folder.path(path) in _LOGS


def _read_again(
    before: Log | None, opened: Callable[[], BinaryIO], *, path: str, known: Remembered | None
) -> Log:
    if before is None:
        return read_log(opened, path=path, known=known)
    known = before.remember() if known is None and before.fault is None else known
    log = read_log(opened, path=path, known=known)
    log.remembered = min(log.remembered, before.remembered)  # as far as it was stored
    return log


def went_on(folder: Folder, name: str, line: bytes) -> None:
    """Take up a line that was just appended to a log of one file."""
    path = folder.path(name)
    _, log = _LOGS.get(path, (None, None))
    if log is not None:
        log.take(line, where=f"{name}:{len(log) + 1}")
        _LOGS[path] = _mark_all(folder, (name,)), log
        state = _state(folder, name)
        if state is not None and state[2] == log.length:
            _APPENDED[path] = state


def put_log(folder: Folder, names: Sequence[str], log: Log) -> None:
    """Take a log as the one that was just written to these files."""
    _LOGS[folder.path(names[-1])] = _mark_all(folder, names), log


def _name_closed(end: int) -> str:
    return f"{CLOSED}/{end:08d}.jsonl"


def _name_before(head: bytes, name: str) -> str | None:
    """The file before one of this name that begins with these bytes; `None` for the first one."""
    found = _FIRST.match(head)
    first = int(found[1]) if found else 0
    before = _name_closed(first)
    # Numbers fall from file to file, so that no two can name each other.
    falls = name == LOG or (len(before), before) < (len(name), name)
    return before if first and falls else None


def _mark_all(folder: Folder, names: Sequence[str]) -> object:
    """The marks of files; `None` where one of them tells nothing."""
    marks = {name: folder.mark(name) for name in names}
    return None if None in marks.values() else marks


def _state(folder: Folder, name: str) -> tuple[int, ...] | None:
    found = folder.stat(name)
    if found is None:
        return None
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def _is_still(log: Log, opened: Callable[[], BinaryIO]) -> bool:
    """Check that a file holds just the verified lines, and perhaps the start of another."""
    digest, left = hashlib.sha256(), log.length
    with opened() as stream:
        while left and (data := stream.read(min(_CHUNK, left))):
            digest.update(data)
            left -= len(data)
        return not left and b"\n" not in stream.read() and digest.digest() == log.digest.digest()


class _Joined(RawIOBase):
    """Files to read as if they were one."""

    def __init__(self, files: Sequence[BinaryIO]) -> None:
        self._files = files
        self._sizes = [file.seek(0, SEEK_END) for file in files]
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = 0) -> int:
        starts = {SEEK_SET: 0, SEEK_CUR: self._at, SEEK_END: sum(self._sizes)}
        self._at = max(starts[whence] + offset, 0)
        return self._at

    def readinto(self, buffer: "WriteableBuffer") -> int:
        start, view = 0, memoryview(buffer)
        for file, size in zip(self._files, self._sizes, strict=True):
            left = start + size - self._at
            if left > 0:
                file.seek(self._at - start)
                data = file.read(min(left, len(view)))
                view[: len(data)] = data
                self._at += len(data)
                return len(data)
            start += size
        return 0

    def close(self) -> None:
        for file in self._files:
            file.close()
        super().close()
