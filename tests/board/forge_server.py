"""Three forges as one HTTP server on this machine: documented shapes, documented errors, faults.

The shapes are those of docs.github.com/en/rest (pulls, issues/comments, issues/labels),
docs.gitlab.com/api (merge_requests, notes) and Forgejo's swagger.v1.json, with more fields than
heldout reads. A fault is put before the answers: it takes the place of the next request that it
fits, or comes after the request was carried out.
"""

import base64
import json
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Literal
from urllib.parse import parse_qs, unquote, urlencode, urlsplit

Kind = Literal["github", "gitlab", "forgejo"]
KINDS: tuple[Kind, ...] = ("github", "gitlab", "forgejo")

TOKEN = "good-token-d41d8cd98f00"  # noqa: S105 - opens nothing but this server
PROJECTS: Mapping[Kind, str] = {
    "github": "lab/board",
    "gitlab": "uni/group/board",
    "forgejo": "lab/board",
}
ROOTS: Mapping[Kind, str] = {"github": "/api/v3", "gitlab": "/api/v4", "forgejo": "/api/v1"}


@dataclass(kw_only=True)
class Request:
    """One pull or merge request on the server."""

    number: int
    sha: str
    title: str = "A submission"
    author: str | None = "team"
    labels: list[str] = field(default_factory=list)
    state: Literal["open", "merged", "closed"] = "open"
    comments: list[str] = field(default_factory=list)


@dataclass(kw_only=True)
class Seen:
    """One call that came in."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: Any


Answer = tuple[int, Any, Mapping[str, str]]
Misbehave = Callable[["Handler"], None]


@dataclass(kw_only=True)
class Fault:
    """What goes wrong, where, and how often.

    `after`: the call is carried out first, so that only its answer is lost.
    """

    act: Misbehave
    method: str = ""
    path: str = ""
    times: int = 1
    after: bool = False

    def fits(self, method: str, path: str) -> bool:
        return self.times > 0 and self.method in ("", method) and self.path in path


@dataclass(kw_only=True)
class Forge:
    """The server's state."""

    kind: Kind
    requests: dict[int, Request] = field(default_factory=dict)
    labels: dict[str, int] = field(default_factory=dict)
    seen: list[Seen] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    url: str = ""
    repository: Path | None = None
    stop: threading.Event = field(default_factory=threading.Event)

    def add(self, number: int, sha: str = "", **more: Any) -> Request:
        request = Request(number=number, sha=sha or f"{number:040x}", **more)
        self.requests[number] = request
        return request

    def calls(self, method: str, path: str = "") -> list[Seen]:
        return [seen for seen in self.seen if seen.method == method and path in seen.path]


class Handler(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    forge: Forge

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name there
        """Quiet."""

    def do_GET(self) -> None:
        self._serve()

    do_POST = do_PUT = do_PATCH = do_GET  # noqa: N815 - their names there

    def _serve(self) -> None:
        parts = urlsplit(self.path)
        length = int(self.headers.get("Content-Length") or 0)
        body = json.loads(self.rfile.read(length) or b"null")
        query = {key: values[-1] for key, values in parse_qs(parts.query).items()}
        headers = {name.lower(): value for name, value in self.headers.items()}
        seen = Seen(method=self.command, path=parts.path, query=query, headers=headers, body=body)
        self.forge.seen.append(seen)
        fault = next((f for f in self.forge.faults if f.fits(self.command, parts.path)), None)
        if fault is not None:
            fault.times -= 1
        if fault is not None and not fault.after:
            fault.act(self)
            return
        if self.forge.repository is not None and ".git/" in parts.path:
            self._serve_git(seen, self.forge.repository)
            return
        answer = _answer(self.forge, seen)
        if fault is not None:
            fault.act(self)
            return
        self.reply(*answer)

    def _serve_git(self, seen: Seen, repository: Path) -> None:
        """A bare repository by git's plain ("dumb") protocol, for those who have the token."""
        login = base64.b64encode(f"x-access-token:{TOKEN}".encode()).decode()
        path = repository / seen.path.partition(".git/")[2]
        if seen.headers.get("authorization") != f"Basic {login}":
            self.reply_raw(401, b"", {"WWW-Authenticate": 'Basic realm="forge"'})
        elif path.is_file():
            self.reply_raw(200, path.read_bytes(), {"Content-Type": "text/plain"})
        else:
            self.reply_raw(404, b"", {})

    def reply(self, status: int, value: Any, headers: Mapping[str, str]) -> None:
        data = b"" if value is None else json.dumps(value).encode()
        self.reply_raw(status, data, {"Content-Type": "application/json", **headers})

    def reply_raw(self, status: int, data: bytes, headers: Mapping[str, str]) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        if "Content-Length" not in headers:
            self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def hang_up(self) -> None:
        """Close the connection without another byte."""
        self.close_connection = True


@contextmanager
def serve(kind: Kind) -> Iterator[Forge]:
    """A forge that listens on a free port until the block ends."""
    forge = Forge(kind=kind)
    handler = type("Bound", (Handler,), {"forge": forge})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    server.block_on_close = False
    forge.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield forge
    finally:
        forge.stop.set()
        server.shutdown()
        server.server_close()
        thread.join()


def _answer(forge: Forge, seen: Seen) -> Answer:
    if not _may(forge, seen):
        return 401, {"message": "Bad credentials"}, {}
    root = ROOTS[forge.kind]
    project = PROJECTS[forge.kind]
    if forge.kind == "gitlab":
        prefix = f"{root}/projects/{project.replace('/', '%2F')}/"
    else:
        prefix = f"{root}/repos/{project}/"
    if not seen.path.startswith(prefix):
        return 404, _not_found(forge), {}
    rest = seen.path.removeprefix(prefix)
    for method, pattern, handle in _ROUTES[forge.kind]:
        found = re.fullmatch(pattern, unquote(rest))
        if found and method == seen.method:
            request = forge.requests.get(int(found[1])) if found.groups() else None
            if found.groups() and request is None:
                return 404, _not_found(forge), {}
            return handle(forge, seen, request)
    return 404, _not_found(forge), {}


def _may(forge: Forge, seen: Seen) -> bool:
    name = "private-token" if forge.kind == "gitlab" else "authorization"
    wanted = (TOKEN,) if forge.kind == "gitlab" else (f"Bearer {TOKEN}", f"token {TOKEN}")
    given = seen.headers.get(name)
    return given in wanted or (given is None and seen.method == "GET")


def _not_found(forge: Forge) -> dict[str, Any]:
    texts: Mapping[Kind, dict[str, Any]] = {
        "github": {"message": "Not Found", "documentation_url": "https://docs.github.com/rest"},
        "gitlab": {"message": "404 Project Not Found"},
        "forgejo": {"errors": None, "message": "The target couldn't be found.", "url": "/swagger"},
    }
    return texts[forge.kind]


def _page(forge: Forge, seen: Seen, items: list[Any]) -> Answer:
    asked = seen.query.get("limit" if forge.kind == "forgejo" else "per_page", "30")
    size = min(int(asked), 50 if forge.kind == "forgejo" else 100)
    number = int(seen.query.get("page", "1"))
    last = max(1, -(-len(items) // size))
    links = [_link(forge, seen, 1, "first"), _link(forge, seen, last, "last")]
    if number < last:
        links.insert(0, _link(forge, seen, number + 1, "next"))
    headers = {"Link": ", ".join(links)} if last > 1 else {}
    if forge.kind == "gitlab":
        headers["X-Next-Page"] = str(number + 1) if number < last else ""
        headers["X-Total"] = str(len(items))
    if forge.kind == "forgejo":
        headers["X-Total-Count"] = str(len(items))
    return 200, items[(number - 1) * size : number * size], headers


def _link(forge: Forge, seen: Seen, number: int, name: str) -> str:
    query = urlencode({**seen.query, "page": number})
    return f'<{forge.url}{seen.path}?{query}>; rel="{name}"'


# GitHub and Forgejo


def _pull_json(forge: Forge, request: Request) -> dict[str, Any]:
    user = None if request.author is None else {"login": request.author, "id": 7, "email": ""}
    table = {
        "id": 1000 + request.number,
        "number": request.number,
        "title": request.title,
        "state": "open" if request.state == "open" else "closed",
        "draft": False,
        "user": user,
        "labels": [{"id": 3, "name": name, "color": "ededed"} for name in request.labels],
        "head": {"ref": "submission/x", "sha": request.sha, "repo": None},
        "base": {"ref": "main", "sha": "0" * 40},
        "html_url": f"{forge.url}/pull/{request.number}",
    }
    if forge.kind == "forgejo":
        return {**table, "merged": request.state == "merged", "mergeable": True}
    return table


def _list_open(forge: Forge, seen: Seen, _: Any) -> Answer:
    found = [r for r in forge.requests.values() if r.state == "open"]
    return _page(forge, seen, [_request_json(forge, request) for request in found])


def _get(forge: Forge, _: Seen, request: Any) -> Answer:
    return 200, _request_json(forge, request) | {"merged": request.state == "merged"}, {}


def _edit(forge: Forge, seen: Seen, request: Any) -> Answer:
    if "closed" in (seen.body.get("state"), f"{seen.body.get('state_event')}d"):
        request.state = "closed"
    _add_labels(request, filter(None, seen.body.get("add_labels", "").split(",")))
    return (201 if forge.kind == "forgejo" else 200), _request_json(forge, request), {}


def _add_labels(request: Request, names: Iterable[str]) -> None:
    request.labels += [name for name in names if name not in request.labels]


def _list_comments(forge: Forge, seen: Seen, request: Any) -> Answer:
    items = [
        {"id": place, "body": body, "user": {"login": "x"}, "created_at": "2026-11-20T17:10:00Z"}
        for place, body in enumerate(request.comments, 1)
    ]
    return (200, items, {}) if forge.kind == "forgejo" else _page(forge, seen, items)


def _add_comment(_: Forge, seen: Seen, request: Any) -> Answer:
    request.comments.append(seen.body["body"])
    return 201, {"id": len(request.comments), "body": seen.body["body"]}, {}


def _label(forge: Forge, seen: Seen, request: Any) -> Answer:
    """By names on GitHub, by numbers on Forgejo."""
    names = {number: name for name, number in forge.labels.items()}
    _add_labels(request, [names.get(one, one) for one in seen.body["labels"]])
    return 200, [{"id": forge.labels.get(n, 3), "name": n} for n in request.labels], {}


def _list_labels(forge: Forge, seen: Seen, _: Any) -> Answer:
    items = [{"id": number, "name": name} for name, number in forge.labels.items()]
    return _page(forge, seen, items)


def _new_label(forge: Forge, seen: Seen, _: Any) -> Answer:
    assert re.fullmatch("#[0-9a-f]{6}", seen.body["color"])
    forge.labels[seen.body["name"]] = len(forge.labels) + 11
    return 201, {"id": forge.labels[seen.body["name"]], "name": seen.body["name"]}, {}


# GitLab


def _merge_request_json(forge: Forge, request: Request) -> dict[str, Any]:
    author = None if request.author is None else {"id": 7, "username": request.author}
    states = {"open": "opened", "merged": "merged", "closed": "closed"}
    return {
        "id": 90000 + request.number,
        "iid": request.number,
        "title": request.title,
        "state": states[request.state],
        "author": author,
        "labels": request.labels,
        "sha": request.sha or None,
        "source_branch": "submission/x",
        "target_branch": "main",
        "web_url": f"{forge.url}/-/merge_requests/{request.number}",
    }


def _request_json(forge: Forge, request: Request) -> dict[str, Any]:
    make = _merge_request_json if forge.kind == "gitlab" else _pull_json
    return make(forge, request)


Handle = Callable[[Forge, Seen, Any], Answer]

_BOTH: tuple[tuple[str, str, Handle], ...] = (
    ("GET", "pulls", _list_open),
    ("GET", r"pulls/(\d+)", _get),
    ("PATCH", r"pulls/(\d+)", _edit),
    ("GET", r"issues/(\d+)/comments", _list_comments),
    ("POST", r"issues/(\d+)/comments", _add_comment),
    ("POST", r"issues/(\d+)/labels", _label),
)
_ROUTES: Mapping[Kind, tuple[tuple[str, str, Handle], ...]] = {
    "github": _BOTH,
    "forgejo": (*_BOTH, ("GET", "labels", _list_labels), ("POST", "labels", _new_label)),
    "gitlab": (
        ("GET", "merge_requests", _list_open),
        ("GET", r"merge_requests/(\d+)", _get),
        ("PUT", r"merge_requests/(\d+)", _edit),
        ("GET", r"merge_requests/(\d+)/notes", _list_comments),
        ("POST", r"merge_requests/(\d+)/notes", _add_comment),
    ),
}


# faults


def says(status: int, message: str, headers: Mapping[str, str] | None = None) -> Misbehave:
    """An error as forges write it."""
    return lambda handler: handler.reply(status, {"message": message}, headers or {})


def sends(status: int, data: bytes, headers: Mapping[str, str] | None = None) -> Misbehave:
    """Any bytes."""
    return lambda handler: handler.reply_raw(status, data, headers or {})


def hangs_up(handler: Handler) -> None:
    """No answer; the connection is closed."""
    handler.hang_up()


def is_silent(handler: Handler) -> None:
    """No answer, for longer than anybody waits."""
    handler.forge.stop.wait(5)
    handler.hang_up()


def breaks_off(handler: Handler) -> None:
    """Half of a JSON document."""
    handler.reply_raw(200, b'[{"number": 1, "ti', {"Content-Length": "5000"})
    handler.hang_up()


def pours(handler: Handler) -> None:
    """50 MB, as long as anybody listens."""
    handler.send_response(200)
    handler.send_header("Content-Type", "application/json")
    handler.send_header("Content-Length", str(50_000_000))
    handler.end_headers()
    try:
        for _ in range(50):
            handler.wfile.write(b"[" * 1_000_000)
    except OSError:
        handler.hang_up()
