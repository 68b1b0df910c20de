"""What somebody is told who uploaded a submission: names, sizes and digests of what lies there."""

from dataclasses import dataclass
from datetime import datetime

from heldout.ids import Digest, SubmissionId, digest_bytes

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
    """What somebody is told who has sent a submission.

    Attributes:
        submission: its id.
        files: that came, sorted.
        received: when, UTC.
        known: the same files were there already.
    """

    submission: SubmissionId
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
