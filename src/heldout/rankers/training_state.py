"""The state of a training on disk: whole or absent, and of no other training.

The file is torch's own form, read without its pickles, so that a state somebody else gave away
runs nothing.
"""

import io
import os
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, BinaryIO

from heldout.errors import StoreError
from heldout.ids import Digest
from heldout.rankers.devices import import_neural

__all__ = ["read_state", "write_state"]


def write_state(path: Path, state: Mapping[str, Any]) -> None:
    """Write a state so that a kill leaves the one before or this one, never a part.

    Args:
        path: its folder is made where it is missing.
        state: tensors, numbers, text, and dicts and lists of them; has a `digest`.

    Raises:
        StoreError: it cannot be written; the state before is kept.
    """
    torch = import_neural("torch")
    try:
        _write(path, lambda file: torch.save(dict(state), file))
    # What torch raises where a disk is full is a RuntimeError.
    except (OSError, RuntimeError) as error:
        raise StoreError(f"{path} cannot be written: {_reason(error)}") from error


def _write(path: Path, save: Callable[[BinaryIO], None]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            save(file)
            file.flush()
            os.fsync(file.fileno())
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
    _sweep(path)


def read_state(path: Path, digest: Digest) -> dict[str, Any] | None:
    """The state that was kept of a training, `None` where there is none.

    Args:
        path: where `write_state` put it.
        digest: of the training that wants to go on.

    Raises:
        StoreError: the file is damaged, or belongs to another training.
    """
    torch = import_neural("torch")
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return None
    try:
        found = torch.load(io.BytesIO(data), map_location="cpu", weights_only=True)
        theirs = found["digest"]
    # What torch raises on a file that is none of its own is nowhere listed.
    except Exception as error:
        raise StoreError(
            f"{path} cannot be read; remove it, and the training begins anew"
        ) from error
    if theirs != digest:
        raise StoreError(
            f"{path} belongs to another training: its model, triples, settings or version of torch "
            "are others; remove it to begin anew"
        )
    return dict(found)


def _reason(error: OSError | RuntimeError) -> str:
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return next(iter(str(error).splitlines()), type(error).__name__)


def _sweep(path: Path) -> None:
    """Remove what a killed writer left beside the state."""
    for left in path.parent.glob(f".{path.name}.*"):
        left.unlink(missing_ok=True)
