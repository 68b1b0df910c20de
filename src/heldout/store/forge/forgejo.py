"""Forgejo, and Gitea which it comes from, by version 1 of their REST API.

Source: the interface's own description at `/swagger.v1.json` of every instance, groups
"repository" and "issue"; forgejo.org/docs "API Usage".
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from heldout.store.forge.api import Name, Number, Sha, pull_request
from heldout.store.forge.protocol import ForgeError, Handle, PullRequest, State
from heldout.store.forge.rest import Rest, Size

__all__ = ["Forgejo", "forgejo_headers"]

_SIZE = Size("limit", 50)  # the most that an instance gives, unless it is set up otherwise
_COLOUR = "#0b5fff"


class _User(msgspec.Struct, frozen=True):
    login: str


class _Head(msgspec.Struct, frozen=True):
    sha: Sha


class _Pull(msgspec.Struct, frozen=True):
    number: Number
    title: str
    head: _Head
    user: _User | None = None
    labels: list[Name] | None = None


class _Standing(msgspec.Struct, frozen=True):
    state: str
    merged: bool


class _Comment(msgspec.Struct, frozen=True):
    body: str


class _Label(msgspec.Struct, frozen=True):
    id: int
    name: str


def forgejo_headers(token: str) -> Mapping[str, str]:
    """What goes with every call; without a token only public boards can be read."""
    return {"Authorization": f"token {token}"} if token else {}


@dataclass(frozen=True, slots=True)
class Forgejo:
    """The calls of Forgejo for one repository.

    Attributes:
        rest: rooted at `https://HOST/api/v1`.
        project: `owner/name`.
    """

    rest: Rest
    project: str

    def ref(self, handle: Handle) -> str:
        """`refs/pull/N/head`."""
        return f"refs/pull/{handle}/head"

    def pulls(self) -> Iterator[PullRequest]:
        """`GET /repos/{owner}/{repo}/pulls`."""
        params = {"state": "open", "sort": "oldest"}
        for pull in self.rest.pages(self._repo("pulls"), list[_Pull], params, size=_SIZE):
            yield pull_request(
                pull.number,
                self.ref(Handle(str(pull.number))),
                pull.head.sha,
                title=pull.title,
                author=pull.user.login if pull.user else None,
                labels=[label.name for label in pull.labels or ()],
            )

    def comments(self, handle: Handle) -> Iterator[str]:
        """`GET /repos/{owner}/{repo}/issues/{index}/comments`, which has no pages today."""
        path = self._repo(f"issues/{handle}/comments")
        for comment in self.rest.pages(path, list[_Comment], {}, size=_SIZE):
            yield comment.body

    def post(self, handle: Handle, text: str) -> None:
        """`POST /repos/{owner}/{repo}/issues/{index}/comments`."""
        self.rest.send("POST", self._repo(f"issues/{handle}/comments"), {"body": text})

    def state(self, handle: Handle) -> State:
        """`GET /repos/{owner}/{repo}/pulls/{index}`."""
        standing = self.rest.get(self._repo(f"pulls/{handle}"), _Standing)
        if standing.merged:
            return "merged"
        return "open" if standing.state == "open" else "closed"

    def merge(self, handle: Handle, sha: str) -> None:
        """`POST /repos/{owner}/{repo}/pulls/{index}/merge`."""
        body = {"Do": "merge", "head_commit_id": sha}
        self.rest.send("POST", self._repo(f"pulls/{handle}/merge"), body)

    def close(self, handle: Handle) -> None:
        """`PATCH /repos/{owner}/{repo}/pulls/{index}`."""
        self.rest.send("PATCH", self._repo(f"pulls/{handle}"), {"state": "closed"})

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
        found = self.rest.pages(self._repo("labels"), list[_Label], {}, size=_SIZE)
        return {label.name: label.id for label in found}

    def _repo(self, path: str) -> str:
        return f"/repos/{self.project}/{path}"
