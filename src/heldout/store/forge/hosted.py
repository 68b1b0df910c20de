"""A forge that is asked over HTTP and fetched from with git: looks before it says anything."""

import re
from collections.abc import Callable
from dataclasses import dataclass

from heldout.envelope.bundle import Form
from heldout.ids import Digest
from heldout.store.arrivals import Arrival, find_in_git, fingerprints
from heldout.store.fetching import fetch_requests
from heldout.store.forge.api import Api
from heldout.store.forge.protocol import (
    ForgeError,
    Handle,
    LostAnswerError,
    Outcome,
    PullRequest,
    format_marker,
)
from heldout.store.git import Git
from heldout.store.registrations import arrival_branch

__all__ = ["HostedForge"]

_LABEL = re.compile("[A-Za-z0-9][A-Za-z0-9 :._-]{0,49}")


@dataclass(frozen=True, slots=True, kw_only=True)
class HostedForge:
    """GitHub, GitLab or Forgejo.

    Attributes:
        api: its calls.
        git: the board's repository; where it needs a token, one that carries it.
        clone_url: what git fetches from.
        form: the board's envelope.
        main: the commit that requests are compared with.
    """

    api: Api
    git: Git
    clone_url: str
    form: Form
    main: str

    def list_open(self) -> tuple[PullRequest, ...]:
        """Every open request, once, the oldest first."""
        return tuple({request.handle: request for request in self.api.pulls()}.values())

    def fetch(self) -> tuple[Arrival, ...]:
        """Arrivals of the requests that are open now; of two with the same files the first."""
        heads = [request.ref for request in self.list_open()]
        done = fetch_requests(self.git, self.clone_url, heads)
        unread = {**done.refused, **done.failed}
        return tuple(find_in_git(self.git, self.form, main=self.main, only=heads, unread=unread))

    def locate(self, source: str, name: str) -> Handle | None:
        """The number in `pull request N`; for a branch the open request at the same commit."""
        branch = arrival_branch(name)
        if source != f"branch {branch}":
            return _number(source)
        commits = self.git.refs(f"refs/heads/{branch}", f"refs/remotes/*/{branch}").values()
        return next((r.handle for r in self.list_open() if r.sha in commits), None)

    def copies(self, handle: Handle) -> tuple[Handle, ...]:
        """By what was fetched last."""
        heads = {request.ref: request.handle for request in self.list_open()}
        found = fingerprints(self.git, self.form, base=self.main, heads=heads)
        marks = {heads[ref]: mark for ref, mark in found.items()}
        own = marks.get(handle)
        same = [other for other, mark in marks.items() if mark == own and own is not None]
        return (handle, *sorted(set(same) - {handle}, key=int))

    def comment(self, handle: Handle, text: str, *, event: Digest) -> Outcome:
        """Post a comment, unless one of this event is there; looks again where no answer came."""
        marker = format_marker(event)
        body = f"{text.rstrip()}\n\n{marker}\n"
        return self._once(
            handle, lambda: self._is_said(handle, marker), lambda: self.api.post(handle, body)
        )

    def merge(self, handle: Handle, *, sha: str) -> Outcome:
        """Merge, if the head still is `sha` and the request is open."""

        def is_merged() -> bool:
            state = self.api.state(handle)
            if state == "closed":
                raise ForgeError(f"request {handle} was closed and cannot be merged")
            return state == "merged"

        return self._once(handle, is_merged, lambda: self.api.merge(handle, sha))

    def close(self, handle: Handle) -> Outcome:
        """Close, unless it is closed or merged."""
        return self._once(
            handle, lambda: self.api.state(handle) != "open", lambda: self.api.close(handle)
        )

    def label(self, handle: Handle, *names: str) -> Outcome:
        """Add labels; the forge itself leaves those that are there."""
        _check_handle(handle)
        wrong = [name for name in names if not _LABEL.fullmatch(name)]
        if wrong or not names:
            raise ValueError(f"no label: {wrong}")
        self.api.add_labels(handle, names)
        return "done"

    def _once(self, handle: Handle, stands: Callable[[], bool], act: Callable[[], None]) -> Outcome:
        """Act, unless it stands already; where the answer is lost, look, and never act again."""
        _check_handle(handle)
        if stands():
            return "known"
        try:
            act()
        except LostAnswerError:
            if not stands():
                raise
        return "done"

    def _is_said(self, handle: Handle, marker: str) -> bool:
        """Whether a comment has the mark on a line of its own; all pages are looked through."""
        return any(
            marker in (line.strip() for line in body.splitlines())
            for body in self.api.comments(handle)
        )


def _number(source: str) -> Handle | None:
    found = re.fullmatch("pull request ([1-9][0-9]{0,15})", source, re.ASCII)
    return Handle(found[1]) if found else None


def _check_handle(handle: Handle) -> None:
    """A handle becomes a part of an address."""
    if not re.fullmatch("[1-9][0-9]{0,15}", handle, re.ASCII):
        raise ValueError(f"no number of a request: {handle!r}")
