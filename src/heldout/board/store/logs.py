"""The files of a log, and logs that are verified once in a process.

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
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from io import SEEK_CUR, SEEK_END, SEEK_SET, BufferedReader, BytesIO, RawIOBase
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, NamedTuple

from heldout.board.log.measured import Measured
from heldout.board.log.reading import Log, Remembered, read_log
from heldout.files.durable import Folder

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

LOG = "log.jsonl"
CLOSED = "log"
"""Folder of the full files of the public log."""

IN_FILE = 10_000
_ENTRIES_OF_FIGURES = 4
"""Entries of a ranking whose figures have about the length of an event: 400 bytes each."""
_MOST_FILES = 200
"""More than a log of a gibibyte has, and fewer than can be open at once."""
_HEAD = 64
_FIRST = re.compile(rb'\{"event":\{"seq":(\d{1,12}),')
_CHUNK = 1 << 20
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
            before = _name_before(stream.read(_HEAD), names[0])
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
        before = _name_before(files[0][:_HEAD], name)
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
    recall: Callable[[], Remembered | None] = lambda: None,
) -> Log:
    """The log in some files, verified; an empty one where there is none.

    Args:
        folder: where they lie.
        names: of the files, in order; none where the log is missing.
        path: name of the log, for errors; that of the last file.
        recall: gives what is remembered of it from an earlier process; asked where this one has
            not read it.

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
            log = read_log(opened, path=path, known=recall())
        else:
            log.open = opened
        _LOGS[key] = marks, log
    return log


def went_on(folder: Folder, name: str, line: bytes) -> None:
    """Take up a line that was just appended to a log of one file."""
    path = folder.path(name)
    _, log = _LOGS.get(path, (None, None))
    if log is not None:
        log.take(line, place=f"{name}:{len(log) + 1}")
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
    """Whether a file holds just the lines that were verified, and perhaps the start of another."""
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
