"""What somebody is told who uploaded files: names, sizes and digests of what lies there."""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from heldout.ids import Digest, digest_bytes

__all__ = ["Received", "UploadReceipt"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Received:
    """A file that lies there.

    Attributes:
        name: its base name.
        size: bytes.
        digest: of them.
    """

    name: str
    size: int
    digest: Digest


@dataclass(frozen=True, slots=True, kw_only=True)
class UploadReceipt:
    """What somebody is told who has sent files.

    Attributes:
        owner: id of the submission, or handle of the team that registers.
        kind: which of the two came.
        files: that came, sorted.
        received: when, UTC.
        known: the same files were there already.
    """

    owner: str
    kind: Literal["submission", "registration"]
    files: tuple[Received, ...]
    received: datetime
    known: bool

    @property
    def sums(self) -> str:
        """One line for each file, as `sha256sum` writes and checks them."""
        return "".join(f"{one.digest}  {one.name}\n" for one in self.files)

    @property
    def digest(self) -> Digest:
        """One digest for all of it: that of `sums`."""
        return digest_bytes(self.sums.encode())
