"""What this clone sealed and sent last of each submission: `.heldout/packed/ID.json`."""

from datetime import datetime

import msgspec

from heldout.store.files import File
from heldout.store.repository import Repository

__all__ = ["Sealed", "read_sealed", "write_sealed"]


class Sealed(msgspec.Struct, frozen=True, kw_only=True):
    """What was sealed last, and what was sent.

    Attributes:
        inputs: name -> digest of what went in.
        outputs: name -> digest of each sealed file.
        revision: of the sealed metadata.
        withdrawn: whether that metadata takes the submission back.
        sent: receipt of what was sent last; empty before.
        sent_at: when something was first sent, UTC.
    """

    inputs: dict[str, str]
    outputs: dict[str, str]
    revision: int
    withdrawn: bool = False
    sent: str = ""
    sent_at: datetime | None = None


def read_sealed(repository: Repository, submission: str) -> Sealed | None:
    """What was sealed last; `None` where nothing was, or the note of it is damaged."""
    file = _file(repository, submission)
    try:
        data = file.find()
        return None if data is None else msgspec.json.decode(data, type=Sealed)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None


def write_sealed(repository: Repository, submission: str, note: Sealed) -> None:
    """Keep what was sealed, mode 0600."""
    _file(repository, submission).write_whole(msgspec.json.encode(note), mode=0o600)


def _file(repository: Repository, submission: str) -> File:
    return repository.files.file(f".heldout/packed/{submission}.json")
