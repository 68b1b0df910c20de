"""Logs in a folder: verified once in a process, and then only where their file has changed.

A file's mark (`Folder.mark`) tells whether it may have changed. Where it says nothing, the bytes
are held against the SHA-256 of those that were verified.
"""

import hashlib
from collections.abc import Callable
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import BinaryIO

from heldout.board.log.reading import Log, Remembered, read_log
from heldout.files.durable import Folder

_CHUNK = 1 << 20
_LOGS: dict[Path, tuple[object, Log]] = {}
"""File -> its mark when it was read last, and the log in it."""


def find_log(
    folder: Folder, name: str, *, recall: Callable[[], Remembered | None] = lambda: None
) -> Log:
    """The log in a file, verified; an empty one where there is none.

    Args:
        folder: where it lies.
        name: of the file.
        recall: gives what is remembered of it from an earlier process; asked where this one has
            not read it.

    Raises:
        StoreError: a line breaks the chain.
    """
    path, mark = folder.path(name), folder.mark(name)
    if not folder.exists(name):
        _LOGS.pop(path, None)  # another log may begin here
        return read_log(BytesIO, path=name)
    before, log = _LOGS.get(path, (None, None))
    if log is None or mark is None or mark != before:
        opened = partial(folder.open, name)
        if log is None or not _is_still(log, opened):
            log = read_log(opened, path=name, known=recall())
        else:
            log.open = opened
        _LOGS[path] = mark, log
    return log


def went_on(folder: Folder, name: str, line: bytes) -> None:
    """Take up a line that was just appended to a log here."""
    path = folder.path(name)
    _, log = _LOGS.get(path, (None, None))
    if log is not None:
        log.take(line, place=f"{name}:{len(log) + 1}")
        _LOGS[path] = folder.mark(name), log


def put_log(folder: Folder, name: str, log: Log) -> None:
    """Take a log as the one that was just written here."""
    _LOGS[folder.path(name)] = folder.mark(name), log


def _is_still(log: Log, opened: Callable[[], BinaryIO]) -> bool:
    """Whether a file holds just the lines that were verified, and perhaps the start of another."""
    digest, left = hashlib.sha256(), log.length
    with opened() as stream:
        while left and (data := stream.read(min(_CHUNK, left))):
            digest.update(data)
            left -= len(data)
        return not left and b"\n" not in stream.read() and digest.digest() == log.digest.digest()
