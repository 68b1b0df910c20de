"""What every forge can do, and the values that go in and come out.

`Forge` is what commands use. `Api` is what differs between the hosted ones, a few calls, which
`HostedForge` puts together.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal, NewType, Protocol

import msgspec

from heldout.board.store.arrivals import Arrival
from heldout.errors import StoreError
from heldout.ids import Digest

Handle = NewType("Handle", str)
"""What a forge calls one request: its number, or the submission's id or the
team's handle in a folder."""

Outcome = Literal["done", "known", "nowhere"]
"""`done`: by this call. `known`: it stood so before. `nowhere`: this forge has no such thing."""


class ForgeError(StoreError):
    """The forge refused, failed, or answered nonsense; the text never holds the token."""


class LostAnswerError(ForgeError):
    """A change was sent and no answer came: it may have happened, so it is not sent again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PullRequest:
    """An open submission as the forge lists it.

    Attributes:
        handle: what later calls name it by.
        ref: where git finds its commit.
        sha: that commit.
    """

    handle: Handle
    ref: str
    sha: str


class Forge(Protocol):
    """A place where submissions are opened, answered and closed.

    Every method may be called again after a crash: what stands already is found and left.
    All raise ForgeError where the forge refuses or fails.
    """

    def fetch(self) -> tuple[Arrival, ...]:
        """What waits there as sealed files; read as data, nothing is checked out."""
        ...

    def locate(self, source: str, name: str) -> Handle | None:
        """The request that a submission, or a team's registration, came with.

        Args:
            source: of its arrival.
            name: the submission's id, or the team's handle.
        """
        ...

    def copies(self, handle: Handle) -> tuple[Handle, ...]:
        """A request, and then the others that are open with the very files that it brings.

        Sealed files are public, so anybody can copy a request; all of them get its answer.
        """
        ...

    def comment(self, handle: Handle, text: str, *, event: Digest) -> Outcome:
        """Say something once.

        Args:
            handle: the request.
            text: Markdown, or what is written into a file.
            event: hash of the event that it tells; a comment with its mark is looked up first.

        Raises:
            LostAnswerError: it was sent, and whether it stands is not known. Call again later:
                that call looks first.
        """
        ...

    def close(self, handle: Handle) -> Outcome:
        """Close a request."""
        ...

    def label(self, handle: Handle, *names: str) -> Outcome:
        """Add labels; those that it has stay."""
        ...


def format_marker(event: Digest) -> str:
    """The hidden line by which a comment is found again: an HTML comment with the event's hash."""
    if not re.fullmatch("[0-9a-f]{64}", event):
        raise ValueError(event)
    return f"<!-- heldout {event} -->"


Number = Annotated[int, msgspec.Meta(ge=1, le=10**15)]
"""A request's number."""

Sha = Annotated[str, msgspec.Meta(pattern=r"^([0-9a-f]{40}|[0-9a-f]{64})\Z")]
"""A commit, as git names it."""


class Api(Protocol):
    """One kind of forge. All methods raise ForgeError."""

    def ref(self, handle: Handle) -> str:
        """The ref at which git finds a request's head."""
        ...

    def pulls(self) -> Iterator[PullRequest]:
        """The open requests."""
        ...

    def comments(self, handle: Handle) -> Iterator[str]:
        """The Markdown of every comment on a request."""
        ...

    def post(self, handle: Handle, text: str) -> None:
        """Post a comment, whatever is there already."""
        ...

    def is_open(self, handle: Handle) -> bool:
        """Whether a request is open: neither closed nor merged."""
        ...

    def close(self, handle: Handle) -> None:
        """Close a request."""
        ...

    def add_labels(self, handle: Handle, names: Sequence[str]) -> None:
        """Add labels; those that it has stay."""
        ...
