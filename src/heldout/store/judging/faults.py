"""What can go wrong with a campaign's database, each with a code."""

from typing import Literal

from heldout.errors import StoreError

__all__ = ["DatabaseError", "Fault"]

Fault = Literal[
    "database-address",
    "database-busy",
    "database-damaged",
    "database-empty",
    "database-full",
    "database-lost",
    "database-newer",
    "database-other",
    "database-read-only",
    "unknown-assignment",
]
"""What is the matter; each has a row in docs/errors.md."""


class DatabaseError(StoreError):
    """The database refused, failed or is gone; nothing of what was asked has been written.

    One exception: where the connection is lost while the database commits, it may have been. What
    is asked again is then found done: an answer, a payment, an ending are never taken twice.

    Attributes:
        code: which fault.
    """

    def __init__(self, code: Fault, text: str) -> None:
        self.code = code
        super().__init__(f"{code}: {text}")
