"""GitHub and GitHub Enterprise Server, by the REST API of version 2022-11-28.

Source: docs.github.com/en/rest, pages "Pulls", "Issues / Comments", "Issues / Labels".
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from heldout.store.forge.api import Name, Number, Sha, pull_request
from heldout.store.forge.protocol import Handle, PullRequest, State
from heldout.store.forge.rest import Rest, Size

__all__ = ["GitHub", "github_headers"]

_SIZE = Size("per_page", 100)


class _User(msgspec.Struct, frozen=True):
    login: str


class _Head(msgspec.Struct, frozen=True):
    sha: Sha


class _Pull(msgspec.Struct, frozen=True):
    number: Number
    title: str
    user: _User | None  # gone with its account
    labels: list[Name]
    head: _Head


class _Standing(msgspec.Struct, frozen=True):
    state: str
    merged: bool


class _Comment(msgspec.Struct, frozen=True):
    body: str | None = None


def github_headers(token: str) -> Mapping[str, str]:
    """What goes with every call; without a token only public boards can be read."""
    headers = {"Accept": "application/vnd.github+json", "X-GitHub-Api-Version": "2022-11-28"}
    return {**headers, "Authorization": f"Bearer {token}"} if token else headers


@dataclass(frozen=True, slots=True)
class GitHub:
    """The calls of GitHub for one repository.

    Attributes:
        rest: rooted at `https://api.github.com`, or `https://HOST/api/v3`.
        project: `owner/name`.
    """

    rest: Rest
    project: str

    def ref(self, handle: Handle) -> str:
        """`refs/pull/N/head`."""
        return f"refs/pull/{handle}/head"

    def pulls(self) -> Iterator[PullRequest]:
        """`GET /repos/{owner}/{repo}/pulls`."""
        params = {"state": "open", "sort": "created", "direction": "asc"}
        for pull in self.rest.pages(self._repo("pulls"), list[_Pull], params, size=_SIZE):
            yield pull_request(
                pull.number,
                self.ref(Handle(str(pull.number))),
                pull.head.sha,
                title=pull.title,
                author=pull.user.login if pull.user else None,
                labels=[label.name for label in pull.labels],
            )

    def comments(self, handle: Handle) -> Iterator[str]:
        """`GET /repos/{owner}/{repo}/issues/{number}/comments`, in the order of their ids."""
        path = self._repo(f"issues/{handle}/comments")
        for comment in self.rest.pages(path, list[_Comment], {}, size=_SIZE):
            yield comment.body or ""

    def post(self, handle: Handle, text: str) -> None:
        """`POST /repos/{owner}/{repo}/issues/{number}/comments`."""
        self.rest.send("POST", self._repo(f"issues/{handle}/comments"), {"body": text})

    def state(self, handle: Handle) -> State:
        """`GET /repos/{owner}/{repo}/pulls/{number}`."""
        standing = self.rest.get(self._repo(f"pulls/{handle}"), _Standing)
        if standing.merged:
            return "merged"
        return "open" if standing.state == "open" else "closed"

    def merge(self, handle: Handle, sha: str) -> None:
        """`PUT /repos/{owner}/{repo}/pulls/{number}/merge`."""
        body = {"sha": sha, "merge_method": "merge"}
        self.rest.send("PUT", self._repo(f"pulls/{handle}/merge"), body)

    def close(self, handle: Handle) -> None:
        """`PATCH /repos/{owner}/{repo}/pulls/{number}`."""
        self.rest.send("PATCH", self._repo(f"pulls/{handle}"), {"state": "closed"})

    def add_labels(self, handle: Handle, names: Sequence[str]) -> None:
        """`POST /repos/{owner}/{repo}/issues/{number}/labels`; new names make new labels."""
        self.rest.send("POST", self._repo(f"issues/{handle}/labels"), {"labels": list(names)})

    def _repo(self, path: str) -> str:
        return f"/repos/{self.project}/{path}"
