"""GitLab, by version 4 of its REST API.

Source: docs.gitlab.com/api, pages "Merge requests", "Notes", "REST API" (pagination).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import quote as quote_path

import msgspec

from heldout.store.forge.api import Number, Sha, pull_request
from heldout.store.forge.protocol import Handle, PullRequest, State
from heldout.store.forge.rest import Rest, Size

__all__ = ["GitLab", "gitlab_headers"]

_SIZE = Size("per_page", 100)


class _User(msgspec.Struct, frozen=True):
    username: str


class _MergeRequest(msgspec.Struct, frozen=True):
    iid: Number
    title: str
    author: _User | None
    labels: list[str]
    sha: Sha | None  # null for a moment after it was opened


class _Standing(msgspec.Struct, frozen=True):
    state: str


class _Note(msgspec.Struct, frozen=True):
    body: str


def gitlab_headers(token: str) -> Mapping[str, str]:
    """What goes with every call; without a token only public boards can be read."""
    return {"PRIVATE-TOKEN": token} if token else {}


@dataclass(frozen=True, slots=True)
class GitLab:
    """The calls of GitLab for one project.

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
        params = {
            "state": "opened",
            "scope": "all",
            "order_by": "created_at",
            "sort": "asc",
        }
        path = self._project("merge_requests")
        for request in self.rest.pages(path, list[_MergeRequest], params, size=_SIZE):
            if request.sha is None:
                continue
            yield pull_request(
                request.iid,
                self.ref(Handle(str(request.iid))),
                request.sha,
                title=request.title,
                author=request.author.username if request.author else None,
                labels=request.labels,
            )

    def comments(self, handle: Handle) -> Iterator[str]:
        """`GET /projects/:id/merge_requests/:merge_request_iid/notes`."""
        params = {"order_by": "created_at", "sort": "asc"}
        path = self._project(f"merge_requests/{handle}/notes")
        for note in self.rest.pages(path, list[_Note], params, size=_SIZE):
            yield note.body

    def post(self, handle: Handle, text: str) -> None:
        """`POST /projects/:id/merge_requests/:merge_request_iid/notes`."""
        self.rest.send("POST", self._project(f"merge_requests/{handle}/notes"), {"body": text})

    def state(self, handle: Handle) -> State:
        """`GET /projects/:id/merge_requests/:merge_request_iid`."""
        standing = self.rest.get(self._project(f"merge_requests/{handle}"), _Standing)
        if standing.state == "merged":
            return "merged"
        return "closed" if standing.state == "closed" else "open"  # `locked`: about to be merged

    def merge(self, handle: Handle, sha: str) -> None:
        """`PUT /projects/:id/merge_requests/:merge_request_iid/merge`."""
        self.rest.send("PUT", self._project(f"merge_requests/{handle}/merge"), {"sha": sha})

    def close(self, handle: Handle) -> None:
        """`PUT /projects/:id/merge_requests/:merge_request_iid`, `state_event`."""
        self.rest.send("PUT", self._project(f"merge_requests/{handle}"), {"state_event": "close"})

    def add_labels(self, handle: Handle, names: Sequence[str]) -> None:
        """`PUT /projects/:id/merge_requests/:merge_request_iid`, `add_labels`, comma-separated."""
        body = {"add_labels": ",".join(names)}
        self.rest.send("PUT", self._project(f"merge_requests/{handle}"), body)

    def _project(self, path: str) -> str:
        return f"/projects/{quote_path(self.project, safe='')}/{path}"
