"""Files that are whole or absent: write aside, fsync, rename; append a line, fsync."""

import fcntl
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from heldout.errors import StoreError

__all__ = ["ASIDE", "append_line", "exclusive", "read_lines", "sweep", "write_whole"]

ASIDE = ".writing-"
"""What the names of files begin with that are being written."""


def write_whole(path: Path, data: bytes, *, mode: int = 0o644) -> bool:
    """Write a file so that a crash leaves the old one or the new one, never a part.

    Args:
        path: its folder is made when missing.
        data: the whole content.
        mode: permissions of the new file.

    Returns:
        Whether anything was written; a file that holds these bytes already is left alone.

    Raises:
        StoreError: a device, pipe or folder has this name: a rename would put a file in its place.
        OSError: it cannot be written; `filename` is `path`, not that of the file aside.
    """
    if path.is_file() and path.read_bytes() == data:
        return False
    # A link is replaced itself: what it points to is left alone, whatever it is.
    if path.exists() and not (path.is_file() or path.is_symlink()):
        raise StoreError(f"{path} is no file: give another name")
    try:
        _write_aside(path, data, mode)
    except OSError as error:
        if error.errno is None:
            raise
        raise OSError(error.errno, error.strerror, str(path)) from error
    return True


def _write_aside(path: Path, data: bytes, mode: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=ASIDE)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fchmod(file.fileno(), mode)
            os.fsync(file.fileno())
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    _sync_folder(path.parent)


def append_line(path: Path, line: bytes, *, mode: int = 0o600) -> None:
    """Append one line and wait until it is on disk; only then has it happened.

    An unfinished line that a crash left behind is cut first: it never counted.
    """
    if not line.endswith(b"\n") or b"\n" in line[:-1]:
        raise ValueError(line)
    handle = os.open(path, os.O_RDWR | os.O_CREAT, mode)
    with os.fdopen(handle, "r+b") as file:
        file.truncate(len(_whole_lines(file.read())))
        file.seek(0, os.SEEK_END)
        file.write(line)
        file.flush()
        os.fsync(file.fileno())
    _sync_folder(path.parent)


def read_lines(path: Path) -> bytes:
    """The file's whole lines; b"" where there is no file. An unfinished last line is left out."""
    return _whole_lines(path.read_bytes()) if path.exists() else b""


def sweep(*folders: Path) -> None:
    """Remove what killed writers left aside in these folders; the caller holds their lock."""
    for folder in folders:
        for path in folder.glob(f"{ASIDE}*"):
            path.unlink(missing_ok=True)


@contextmanager
def exclusive(path: Path) -> Iterator[None]:
    """Hold a lock file: one writer at a time on this machine; freed also by a crash.

    Raises:
        StoreError: another process holds it.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise StoreError(
                f"another heldout is at work here ({path}); wait for it, then call again"
            ) from None
        yield


def _whole_lines(data: bytes) -> bytes:
    return data[: data.rfind(b"\n") + 1]


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
