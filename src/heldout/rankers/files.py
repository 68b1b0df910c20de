"""Files that are whole or absent."""

import os
import tempfile
from pathlib import Path

from heldout.errors import StoreError

__all__ = ["write_whole"]


def write_whole(path: Path, content: bytes) -> None:
    """Write a file aside, wait until it is on disk, and rename it.

    Args:
        path: replaced where it exists; its folder is made where it is missing.
        content: all of it.

    Raises:
        StoreError: a device, pipe or folder has this name: a rename would put a file in its place.
        OSError: it cannot be written; one of this name that was there is kept. `filename` is
            `path`, not that of the file aside.
    """
    # A link is replaced itself: what it points to is left alone, whatever it is.
    if path.exists() and not (path.is_file() or path.is_symlink()):
        raise StoreError(f"{path} is no file: give another name")
    try:
        _write_aside(path, content)
    except OSError as error:
        if error.errno is None:
            raise
        raise OSError(error.errno, error.strerror, str(path)) from error


def _write_aside(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        Path(name).chmod(0o644)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
