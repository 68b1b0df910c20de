"""What differs between hosted forges: a few calls, which `HostedForge` puts together."""

from collections.abc import Iterator, Sequence
from typing import Annotated, Protocol

import msgspec

from heldout.errors import printable
from heldout.store.forge.protocol import Handle, PullRequest, State

__all__ = ["Api", "Name", "Number", "Sha", "pull_request"]

Number = Annotated[int, msgspec.Meta(ge=1, le=10**15)]
"""A request's number."""

Sha = Annotated[str, msgspec.Meta(pattern=r"^([0-9a-f]{40}|[0-9a-f]{64})\Z")]
"""A commit, as git names it."""


class Name(msgspec.Struct, frozen=True):
    """A label, of which only the name matters."""

    name: str


_LONGEST_TEXT = 200
_MOST_LABELS = 50


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

    def state(self, handle: Handle) -> State:
        """How a request stands."""
        ...

    def merge(self, handle: Handle, sha: str) -> None:
        """Merge a request whose head is this commit."""
        ...

    def close(self, handle: Handle) -> None:
        """Close a request."""
        ...

    def add_labels(self, handle: Handle, names: Sequence[str]) -> None:
        """Add labels; those that it has stay."""
        ...


def pull_request(
    number: int, ref: str, sha: str, *, title: str, author: str | None, labels: Sequence[str]
) -> PullRequest:
    """A request with everybody's texts cut and made safe for a terminal."""
    return PullRequest(
        handle=Handle(str(number)),
        ref=ref,
        sha=sha,
        title=_tidy(title),
        author=_tidy(author or ""),
        labels=tuple(_tidy(name) for name in labels[:_MOST_LABELS]),
    )


def _tidy(text: str) -> str:
    return printable(text[:_LONGEST_TEXT])
