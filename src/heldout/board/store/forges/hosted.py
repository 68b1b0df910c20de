"""A forge that is asked over HTTP and fetched from with git: looks before it says anything."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar
from urllib.parse import quote as quote_path

import msgspec

from heldout.board.store.arrivals import Arrival, arrival_branch, find_in_git, fingerprints
from heldout.board.store.fetching import fetch_requests
from heldout.board.store.forges.protocol import (
    Api,
    ForgeError,
    Handle,
    LostAnswerError,
    Number,
    Outcome,
    PullRequest,
    Sha,
    format_marker,
)
from heldout.board.store.forges.rest import Rest, Size
from heldout.board.store.git import Git
from heldout.envelope.keys import Form
from heldout.ids import Digest

_COLOUR = "#0b5fff"
_GITLAB_PAGE = Size("per_page", 100)
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
        done = fetch_requests(self.git, self.clone_url, self.form, heads)
        unread = {**done.refused, **done.failed}
        return tuple(
            find_in_git(
                self.git, self.form, main=self.main, only=heads, unread=unread, waiting=done.waiting
            )
        )

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

    def close(self, handle: Handle) -> Outcome:
        """Close, unless it is closed or merged."""
        return self._once(
            handle, lambda: not self.api.is_open(handle), lambda: self.api.close(handle)
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


class _Head(msgspec.Struct, frozen=True):
    sha: Sha


class _Pull(msgspec.Struct, frozen=True):
    number: Number
    head: _Head


class _State(msgspec.Struct, frozen=True):
    state: str


class _Comment(msgspec.Struct, frozen=True):
    body: str | None = None


class _Label(msgspec.Struct, frozen=True):
    id: int
    name: str


@dataclass(frozen=True, slots=True)
class _Pulls:
    """What GitHub, Forgejo and Gitea have in common, for one repository.

    Attributes:
        rest: rooted where their paths begin.
        project: `owner/name`.
    """

    rest: Rest
    project: str

    page: ClassVar[Size]
    oldest_first: ClassVar[Mapping[str, str]]

    def ref(self, handle: Handle) -> str:
        """`refs/pull/N/head`."""
        return f"refs/pull/{handle}/head"

    def pulls(self) -> Iterator[PullRequest]:
        """`GET /repos/{owner}/{repo}/pulls`."""
        params = {"state": "open", **self.oldest_first}
        for pull in self.rest.pages(self._repo("pulls"), list[_Pull], params, size=self.page):
            handle = Handle(str(pull.number))
            yield PullRequest(handle=handle, ref=self.ref(handle), sha=pull.head.sha)

    def comments(self, handle: Handle) -> Iterator[str]:
        """`GET /repos/{owner}/{repo}/issues/{number}/comments`; Forgejo has no pages there."""
        path = self._repo(f"issues/{handle}/comments")
        for comment in self.rest.pages(path, list[_Comment], {}, size=self.page):
            yield comment.body or ""

    def post(self, handle: Handle, text: str) -> None:
        """`POST /repos/{owner}/{repo}/issues/{number}/comments`."""
        self.rest.send("POST", self._repo(f"issues/{handle}/comments"), {"body": text})

    def is_open(self, handle: Handle) -> bool:
        """`GET /repos/{owner}/{repo}/pulls/{number}`."""
        return self.rest.get(self._repo(f"pulls/{handle}"), _State).state == "open"

    def close(self, handle: Handle) -> None:
        """`PATCH /repos/{owner}/{repo}/pulls/{number}`."""
        self.rest.send("PATCH", self._repo(f"pulls/{handle}"), {"state": "closed"})

    def _repo(self, path: str) -> str:
        return f"/repos/{self.project}/{path}"


class GitHub(_Pulls):
    """GitHub and GitHub Enterprise Server, by the REST API of version 2022-11-28.

    Rooted at `https://api.github.com`, or `https://HOST/api/v3`. Source: docs.github.com/en/rest,
    pages "Pulls", "Issues / Comments", "Issues / Labels".
    """

    page = Size("per_page", 100)
    oldest_first: ClassVar = {"sort": "created", "direction": "asc"}

    def add_labels(self, handle: Handle, names: Sequence[str]) -> None:
        """`POST /repos/{owner}/{repo}/issues/{number}/labels`; new names make new labels."""
        self.rest.send("POST", self._repo(f"issues/{handle}/labels"), {"labels": list(names)})


class Forgejo(_Pulls):
    """Forgejo, and Gitea which it comes from, by version 1 of their REST API.

    Rooted at `https://HOST/api/v1`. Source: the interface's own description at `/swagger.v1.json`
    of every instance, groups "repository" and "issue"; forgejo.org/docs "API Usage".
    """

    page = Size("limit", 50)  # the most that an instance gives, unless it is set up otherwise
    oldest_first: ClassVar = {"sort": "oldest"}

    def add_labels(self, handle: Handle, names: Sequence[str]) -> None:
        """`POST /repos/{owner}/{repo}/issues/{index}/labels`, by their ids; missing ones are made.

        Older instances take no names here, and none makes a label by itself.
        """
        known = self._labels()
        for name in names:
            if name not in known:
                self.rest.send("POST", self._repo("labels"), {"name": name, "color": _COLOUR})
        known = self._labels()
        missing = [name for name in names if name not in known]
        if missing:
            raise ForgeError(f"the forge made no label {missing[0]}")
        ids = [known[name] for name in names]
        self.rest.send("POST", self._repo(f"issues/{handle}/labels"), {"labels": ids})

    def _labels(self) -> Mapping[str, int]:
        """`GET /repos/{owner}/{repo}/labels`: name -> id."""
        found = self.rest.pages(self._repo("labels"), list[_Label], {}, size=self.page)
        return {label.name: label.id for label in found}


class _MergeRequest(msgspec.Struct, frozen=True):
    iid: Number
    sha: Sha | None  # null for a moment after it was opened


@dataclass(frozen=True, slots=True)
class GitLab:
    """The calls of GitLab for one project, by version 4 of its REST API.

    Source: docs.gitlab.com/api, pages "Merge requests", "Notes", "REST API" (pagination).

    Attributes:
        rest: rooted at `https://HOST/api/v4`.
        project: `group/name`, or deeper.
    """

    rest: Rest
    project: str

    def ref(self, handle: Handle) -> str:
        """`refs/merge-requests/N/head`."""
        return f"refs/merge-requests/{handle}/head"

    def pulls(self) -> Iterator[PullRequest]:
        """`GET /projects/:id/merge_requests`."""
        params = {"state": "opened", "scope": "all", "order_by": "created_at", "sort": "asc"}
        path = self._project("merge_requests")
        for request in self.rest.pages(path, list[_MergeRequest], params, size=_GITLAB_PAGE):
            handle = Handle(str(request.iid))
            if request.sha is not None:
                yield PullRequest(handle=handle, ref=self.ref(handle), sha=request.sha)

    def comments(self, handle: Handle) -> Iterator[str]:
        """`GET /projects/:id/merge_requests/:merge_request_iid/notes`."""
        params = {"order_by": "created_at", "sort": "asc"}
        path = self._project(f"merge_requests/{handle}/notes")
        for note in self.rest.pages(path, list[_Comment], params, size=_GITLAB_PAGE):
            yield note.body or ""

    def post(self, handle: Handle, text: str) -> None:
        """`POST /projects/:id/merge_requests/:merge_request_iid/notes`."""
        self.rest.send("POST", self._project(f"merge_requests/{handle}/notes"), {"body": text})

    def is_open(self, handle: Handle) -> bool:
        """`GET /projects/:id/merge_requests/:merge_request_iid`; `locked`: about to be merged."""
        found = self.rest.get(self._project(f"merge_requests/{handle}"), _State)
        return found.state not in ("merged", "closed")

    def close(self, handle: Handle) -> None:
        """`PUT /projects/:id/merge_requests/:merge_request_iid`, `state_event`."""
        self.rest.send("PUT", self._project(f"merge_requests/{handle}"), {"state_event": "close"})

    def add_labels(self, handle: Handle, names: Sequence[str]) -> None:
        """`PUT /projects/:id/merge_requests/:merge_request_iid`, `add_labels`, comma-separated."""
        body = {"add_labels": ",".join(names)}
        self.rest.send("PUT", self._project(f"merge_requests/{handle}"), body)

    def _project(self, path: str) -> str:
        return f"/projects/{quote_path(self.project, safe='')}/{path}"
