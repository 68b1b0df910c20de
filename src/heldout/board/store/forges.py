"""Where submissions arrive: GitHub, GitLab and Forgejo, a folder, or a bare git repository.

`Forge` is what commands use, and `open_forge` makes the one that `[forge]` of board.toml names. The
hosted ones are asked over HTTP and fetched from with git. A call that only reads is tried again
after a failure. One that changes something is tried again only where the forge said that it did
nothing, or could not be reached: where an answer was lost, the caller looks before it asks again.
No redirect is followed, for the token would go along.

The token is read from the environment, sent in headers, written nowhere, and taken out of every
message. git gets it through its own environment, as configuration of that one call
(`GIT_CONFIG_COUNT`, git 2.31): neither the command line nor the repository's configuration ever
holds it.

How long a forge asks its caller to wait is a pure function of an answer's headers, by
docs.github.com "Best practices for using the REST API" (handle rate limit errors), docs.gitlab.com
"User and IP rate limits" (response headers), and RFC 9110 section 10.2.3.
"""

import base64
import os
import re
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NewType, TypeVar
from urllib.parse import quote as quote_path
from urllib.parse import urlsplit

import msgspec

import heldout
from heldout.board.rules.spec import ForgeSpec, api_root
from heldout.board.store import arrivals
from heldout.board.store.fetching import Fetched, fetch_arrivals, fetch_requests
from heldout.board.store.git import Git, add_settings
from heldout.envelope.keys import Form
from heldout.errors import SetupError, StoreError, quote
from heldout.files import durable, executors
from heldout.ids import Digest, parse_submission_id

if TYPE_CHECKING:
    import httpx2

Handle = NewType("Handle", str)
"""What a forge calls one request: its number, or the submission's id or the
team's handle in a folder."""

Outcome = Literal["done", "known", "nowhere"]
"""`done`: by this call. `known`: it stood so before. `nowhere`: this forge has no such thing."""


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Forge:
    """A place where submissions are opened, answered and closed.

    Every method may be called again after a crash: what stands already is found and left.
    All raise StoreError where the forge refuses or fails. Here nothing is opened or closed: files
    and branches are the team's, and a submission is known by its id.

    Attributes:
        form: the board's envelope.
    """

    form: Form

    def fetch(self) -> tuple[arrivals.Arrival, ...]:
        """List what waits there as sealed files; read as data, nothing is checked out."""
        raise NotImplementedError

    def locate(self, source: str, name: str) -> Handle | None:
        """Find the request that a submission, or a team's registration, came with.

        Args:
            source: of its arrival.
            name: the submission's id, or the team's handle.
        """
        raise NotImplementedError

    def copies(self, handle: Handle) -> tuple[Handle, ...]:
        """List a request, and then the others that are open with the very files that it brings.

        Sealed files are public, so anybody can copy a request; all of them get its answer.
        """
        return (handle,)

    def comment(self, handle: Handle, text: str, *, event: Digest) -> Outcome:  # noqa: ARG002 - for those that can
        """Say something once.

        Args:
            handle: the request.
            text: Markdown, or what is written into a file.
            event: hash of the event that it tells; a comment with its mark is looked up first.

        Raises:
            StoreError: code `answer-lost`: it was sent, and whether it stands is not known. Call
                again later: that call looks first.
        """
        return "nowhere"

    def close(self, handle: Handle) -> Outcome:  # noqa: ARG002 - for those that can
        """Close a request."""
        return "nowhere"

    def label(self, handle: Handle, *names: str) -> Outcome:  # noqa: ARG002 - for those that can
        """Add labels; those that it has stay."""
        return "nowhere"


def format_marker(event: Digest) -> str:
    """Return the hidden line by which a comment is found again: HTML with the event's hash."""
    if not re.fullmatch("[0-9a-f]{64}", event):
        raise ValueError(event)
    return f"<!-- heldout {event} -->"


Number = Annotated[int, msgspec.Meta(ge=1, le=10**15)]
"""A request's number."""

Sha = Annotated[str, msgspec.Meta(pattern=r"^([0-9a-f]{40}|[0-9a-f]{64})\Z")]
"""A commit, as git names it."""


TOKEN = "HELDOUT_FORGE_TOKEN"  # noqa: S105 - the variable's name, no secret
"""Name of the environment variable that holds the token."""

_LONGEST = 4096


def read_token(environ: Mapping[str, str]) -> str:
    """Return the token, "" where none is set: then a public board can be read, and nothing changed.

    Raises:
        SetupError: it holds blanks, line ends or anything but ASCII; the text does not show it.
    """
    token = environ.get(TOKEN, "").strip()
    if not token.isascii() or not token.isprintable() or " " in token or len(token) > _LONGEST:
        raise SetupError(f"{TOKEN} is no token: set it to the token alone, without blanks")
    return token


def git_environment(token: str, url: str) -> Mapping[str, str]:
    """Return what makes git send the token to one repository, and follow no redirect with it.

    Args:
        token: as `read_token` gives it; without one there is nothing to set.
        url: the repository's address, https.
    """
    if not token:
        return {}
    # All three forges take a token as the password, whatever the name before it.
    basic = base64.b64encode(f"x-access-token:{token}".encode()).decode()
    header, redirects = f"http.{url}.extraHeader", f"http.{url}.followRedirects"
    settings = {header: f"Authorization: Basic {basic}", redirects: "false"}
    return add_settings({}, {**settings, "credential.helper": ""})


T = TypeVar("T")

BODY_LIMIT = 8 << 20
"""Most bytes of one answer that are read."""

_MEANINGS: Mapping[int, str] = {
    401: "the token is missing, wrong or expired (HELDOUT_FORGE_TOKEN)",
    403: "the token may not do this (HELDOUT_FORGE_TOKEN)",
    404: "no such project or request, or the token may not see it",
    405: "it cannot be merged as it is",
    406: "it cannot be merged as it is",
    409: "its head is not the commit that was read any more, or somebody else was faster",
    410: "it is gone",
    422: "the forge does not take this",
    451: "the forge may not show it",
}
_LINE = 160


@dataclass(frozen=True, slots=True, kw_only=True)
class ForgeReply:
    """One HTTP answer.

    Attributes:
        status: HTTP status.
        headers: names in lower case.
        body: its first bytes, at most `BODY_LIMIT`.
        whole: whether that is all of it.
        more: whether a `Link` header, or GitLab's `X-Next-Page`, names a next page; `None` where
            neither was sent.
    """

    status: int
    headers: Mapping[str, str]
    body: bytes
    whole: bool
    more: bool | None

    @property
    def text(self) -> str:
        """The begin of the body, for looking at what it says."""
        return self.body[: 1 << 12].decode("utf-8", "replace")


def decode(answer: ForgeReply, kind: type[T]) -> T:
    """Read the body as a value of the documented shape.

    Raises:
        StoreError: it is too large, no JSON, or of another shape.
    """
    if not answer.whole:
        raise StoreError(f"the forge's answer is over {BODY_LIMIT >> 20} MiB, or compressed")
    try:
        return msgspec.json.decode(answer.body, type=kind)
    except msgspec.ValidationError as error:
        raise StoreError(f"the forge answered another JSON than documented: {error}") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        shown = quote(answer.headers.get("content-type", "nothing said"), limit=40)
        raise StoreError(f"the forge answered no JSON (its type: {shown})") from None


def explain(answer: ForgeReply, *, token: str) -> str:
    """Say a refusal in words: what the status means here, and what the forge said.

    Args:
        answer: of a status that is no success.
        token: taken out of what the forge said, should it say it back.
    """
    meaning = _MEANINGS.get(answer.status, "")
    if answer.headers.get("location"):
        meaning = _explain_redirect(answer.headers["location"])
    said = _message(answer)
    said = said.replace(token, "…") if token else said
    text = f"status {answer.status}" + (f": {meaning}" if meaning else "")
    return f"{text}; it says {quote(said, limit=_LINE)}" if said else text


def _explain_redirect(location: str) -> str:
    try:
        host = urlsplit(location).netloc.rpartition("@")[2]
    except ValueError:
        host = ""
    where = f" to {quote(host, limit=60)}" if host else ""
    return f"it sends us elsewhere{where}, and no redirect is followed; fix the address"


def _message(answer: ForgeReply) -> str:
    """Find the message of an error; GitHub and Forgejo have `message`, GitLab also `error`."""
    try:
        table = msgspec.json.decode(answer.body, type=dict[str, object])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return ""
    said = table.get("message") or table.get("error") or ""
    return said if isinstance(said, str) else msgspec.json.encode(said).decode()


LONGEST_WAIT = 120.0
"""Seconds; who asks for more is told to the user instead of waited for."""

_UNSAID = 60.0
_TOO_MANY = 429
_FORBIDDEN = 403


def is_rate_limited(status: int, headers: Mapping[str, str], text: str) -> bool:
    """Check whether an answer refuses for now, and did nothing.

    Args:
        status: HTTP status; 429, or GitHub's 403.
        headers: the answer's, names in any case if the mapping ignores it.
        text: the body, for GitHub's secondary limits, which may come without a header.
    """
    if status == _TOO_MANY:
        return True
    spent = headers.get("x-ratelimit-remaining") == "0"
    asks = "retry-after" in headers or "rate limit" in text.lower()
    return status == _FORBIDDEN and (spent or asks)


def seconds_to_wait(headers: Mapping[str, str], *, now: float) -> float:
    """Return the seconds until the next call, at least one; a minute where nothing is said.

    Args:
        headers: of an answer that `is_rate_limited`.
        now: Unix time in seconds.
    """
    said = headers.get("retry-after", "").strip()
    if said:
        return _clip(_seconds(said, now))
    for name in ("x-ratelimit-reset", "ratelimit-reset"):
        reset = headers.get(name, "").strip()
        if reset.isascii() and reset.isdigit() and len(reset) <= len("9999999999"):
            return _clip(int(reset) - now)
    return _UNSAID


def _seconds(said: str, now: float) -> float:
    """Read Retry-After, which is a number of seconds or a date."""
    if said.isascii() and said.isdigit() and len(said) <= len("9999999999"):
        return float(said)
    try:
        return parsedate_to_datetime(said).timestamp() - now
    except (ValueError, OverflowError):
        return _UNSAID


def _clip(seconds: float) -> float:
    return max(1.0, seconds)


Method = Literal["GET", "POST", "PUT", "PATCH"]

_TRIES = 4
_MOST_PAGES = 200
_SECONDS = 120.0
_PATIENCE = 30.0
"""Seconds for each step of a call; `_SECONDS` are for all of it."""
_REFUSED = 300
_FAILED = 500


@dataclass(frozen=True, slots=True)
class Size:
    """How many items a page has.

    Attributes:
        name: the parameter that asks for it.
        most: the most that the forge gives.
    """

    name: str
    most: int


class _NoAnswerError(Exception):
    """No whole answer came back.

    Attributes:
        sent: whether the request went out; else nothing happened.
    """

    def __init__(self, message: str, *, sent: bool = True) -> None:
        super().__init__(message)
        self.sent = sent


@dataclass(frozen=True, slots=True, kw_only=True)
class Rest:
    """One forge's REST interface.

    Attributes:
        client: its timeouts hold for each read; it must not follow redirects.
        root: what every path is appended to.
        headers: sent with every call, the token among them.
        token: kept out of every message.
        clock: Unix time in seconds.
        sleep: waits for so many seconds.
    """

    client: "httpx2.Client"
    root: str
    headers: Mapping[str, str] = field(repr=False)
    token: str = field(repr=False)
    clock: Callable[[], float]
    sleep: Callable[[float], None]

    def get(self, path: str, kind: type[T]) -> T:
        """Get one document.

        Args:
            path: below the root, quoted.
            kind: the documented shape; fields that it does not name are skipped.

        Raises:
            StoreError: the forge refused, did not answer, or answered another shape.
        """
        return decode(self._call("GET", path, {}, None), kind)

    def pages(
        self, path: str, kind: type[list[T]], params: Mapping[str, str], *, size: Size
    ) -> Iterator[T]:
        """Yield the items of a list, page by page.

        Where a page is too large, for anybody may write long texts into a request, the list is
        read again in smaller ones, so that items can come twice. A page equal to the one before
        ends the list: the forge knows no pages.

        Args:
            path: below the root, quoted.
            kind: shape of a page.
            params: the rest of the query.
            size: how a page's size is asked for.

        Raises:
            StoreError: also where the list does not end, or one item is too large.
        """
        count, number, before = size.most, 1, b""
        while number * count <= _MOST_PAGES * size.most:
            asked = {**params, size.name: str(count), "page": str(number)}
            answer = self._call("GET", path, asked, None)
            if not answer.whole and count > 1:
                count, number, before = max(1, count // 10), 1, b""
                continue
            items = decode(answer, kind)
            if answer.body == before:
                return
            yield from items
            before, number = answer.body, number + 1
            if not (len(items) >= count if answer.more is None else answer.more and items):
                return
        raise StoreError(f"{path}: the list does not end")

    def send(self, method: Method, path: str, body: Mapping[str, Any]) -> None:
        """Change something, once.

        Raises:
            StoreError: code `answer-lost`: it may have happened.
            StoreError: it did not happen.
        """
        self._call(method, path, {}, body)

    def _call(
        self, method: Method, path: str, params: Mapping[str, str], body: Mapping[str, Any] | None
    ) -> ForgeReply:
        for attempt in range(_TRIES):
            try:
                answer = self._ask(method, path, params, body)
            except _NoAnswerError as error:
                delay, reason = float(2**attempt), str(error)
                if error.sent:
                    self._check_repeatable(method, path, reason)
            else:
                if answer.status < _REFUSED:
                    return answer
                reason = explain(answer, token=self.token)
                limited = is_rate_limited(answer.status, answer.headers, answer.text)
                if answer.status < _FAILED and not limited:
                    raise StoreError(f"{method} {path}: {reason}")
                if answer.status >= _FAILED:
                    self._check_repeatable(method, path, reason)
                delay = self._delay(answer, attempt, f"{method} {path}: {reason}")
            if attempt < _TRIES - 1:
                self.sleep(delay)
        raise StoreError(f"{method} {path}: asked {_TRIES} times; {reason}")

    def _check_repeatable(self, method: Method, path: str, reason: str) -> None:
        if method != "GET":
            raise StoreError(
                f"{method} {path}: {reason}. It may have happened all the same; "
                "call again, which looks before it asks",
                code="answer-lost",
            )

    def _delay(self, answer: ForgeReply, attempt: int, what: str) -> float:
        if answer.status >= _FAILED and "retry-after" not in answer.headers:
            return float(2**attempt)
        delay = seconds_to_wait(answer.headers, now=self.clock())
        if delay > LONGEST_WAIT:
            raise StoreError(f"{what}; call again {_moment(self.clock() + delay)}")
        return delay

    def _ask(
        self, method: Method, path: str, params: Mapping[str, str], body: Mapping[str, Any] | None
    ) -> ForgeReply:
        import httpx2  # noqa: PLC0415 - heavy, and most boards have no forge that is asked

        begun = self.clock()

        def ask() -> ForgeReply:
            with self.client.stream(
                method,
                self.root + path,
                params=params or None,
                json=body,
                headers={**self.headers, "Accept-Encoding": "identity"},
                follow_redirects=False,
            ) as response:
                return self._read(response, begun)

        try:
            return executors.work_within(_SECONDS, ask)
        except (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout):
            raise _NoAnswerError("the forge cannot be reached", sent=False) from None
        except (httpx2.TimeoutException, TimeoutError):
            raise _NoAnswerError("the forge did not answer in time") from None
        except httpx2.HTTPError as error:
            raise _NoAnswerError(f"the connection broke ({type(error).__name__})") from None

    def _read(self, response: "httpx2.Response", begun: float) -> ForgeReply:
        """Read the answer, without unpacking anything: a small archive can be a large text."""
        body, whole = bytearray(), "content-encoding" not in response.headers
        for chunk in response.iter_raw():
            body += chunk
            if len(body) > BODY_LIMIT or not whole:
                whole = False
                break
            if self.clock() - begun > _SECONDS:
                raise _NoAnswerError(f"the answer took over {_SECONDS:.0f} s")
        return ForgeReply(
            status=response.status_code,
            headers={name.lower(): value for name, value in response.headers.items()},
            body=bytes(body[:BODY_LIMIT]) if whole else b"",
            whole=whole,
            more=_has_next(response),
        )


def _has_next(response: "httpx2.Response") -> bool | None:
    if "x-next-page" in response.headers:
        return bool(response.headers["x-next-page"].strip())
    return "next" in response.links if "link" in response.headers else None


def _moment(unix: float) -> str:
    try:
        return f"after {datetime.fromtimestamp(unix, UTC):%d %b %Y %H:%M} UTC"
    except (ValueError, OverflowError, OSError):
        return "much later"


class _Head(msgspec.Struct, frozen=True):
    sha: Sha


class _Pull(msgspec.Struct, frozen=True):
    number: Number
    head: _Head


class _MergeRequest(msgspec.Struct, frozen=True):
    iid: Number
    sha: Sha | None  # null for a moment after it was opened


class _State(msgspec.Struct, frozen=True):
    state: str


class _Comment(msgspec.Struct, frozen=True):
    body: str | None = None


class _Label(msgspec.Struct, frozen=True):
    id: int
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """How one kind of forge is spoken to: paths below the project's, and what goes with them.

    Attributes:
        project: path of a project's interface; gets `owner/name`.
        requests: path of the requests, where one lies below by its number.
        comments: path of a request's comments.
        ref: where git finds a request's head.
        shape: of a page of requests.
        size: how a page's size is asked for.
        open: parameters that list the open requests, the oldest first.
        order: parameters that list comments.
        close: method and body that close a request.
        token: header in which a token goes with every call, and what stands before it.
        headers: further ones.
    """

    project: Callable[[str], str]
    requests: str = "/pulls"
    comments: str = "/issues/{}/comments"
    ref: str = "refs/pull/{}/head"
    shape: type[list[Any]] = list[_Pull]
    size: Size
    open: Mapping[str, str]
    order: Mapping[str, str] = field(default_factory=dict)
    close: tuple[Method, Mapping[str, str]] = ("PATCH", {"state": "closed"})
    token: tuple[str, str]
    headers: Mapping[str, str] = field(default_factory=dict)


_CREATED = {"order_by": "created_at", "sort": "asc"}

DIALECTS: Mapping[str, Dialect] = {
    # GitHub and GitHub Enterprise Server, version 2022-11-28: docs.github.com/en/rest, pages
    # "Pulls", "Issues / Comments", "Issues / Labels".
    "github": Dialect(
        project="/repos/{}".format,
        size=Size("per_page", 100),
        open={"state": "open", "sort": "created", "direction": "asc"},
        token=("Authorization", "Bearer "),
        headers={"Accept": "application/vnd.github+json", "X-GitHub-Api-Version": "2022-11-28"},
    ),
    # Version 4: docs.gitlab.com/api, pages "Merge requests", "Notes", "REST API" (pagination).
    "gitlab": Dialect(
        project=lambda name: f"/projects/{quote_path(name, safe='')}",
        requests="/merge_requests",
        comments="/merge_requests/{}/notes",
        ref="refs/merge-requests/{}/head",
        shape=list[_MergeRequest],
        size=Size("per_page", 100),
        open={"state": "opened", "scope": "all", **_CREATED},
        order=_CREATED,
        close=("PUT", {"state_event": "close"}),
        token=("PRIVATE-TOKEN", ""),
    ),
    # Forgejo, and Gitea which it comes from, version 1: `/swagger.v1.json` of every instance,
    # groups "repository" and "issue"; forgejo.org/docs "API Usage". Comments have no pages there.
    "forgejo": Dialect(
        project="/repos/{}".format,
        size=Size("limit", 50),  # the most that an instance gives, unless it is set up otherwise
        open={"state": "open", "sort": "oldest"},
        token=("Authorization", "token "),
    ),
}
"""Kind of forge -> how it is spoken to."""

_COLOUR = "#0b5fff"
_LABEL = re.compile("[A-Za-z0-9][A-Za-z0-9 :._-]{0,49}")


@dataclass(frozen=True, slots=True, kw_only=True)
class HostedForge(Forge):
    """GitHub, GitLab or Forgejo.

    Attributes:
        kind: a key of `DIALECTS`.
        rest: rooted where its paths begin.
        project: `owner/name`, or deeper at GitLab.
        git: the board's repository; where it needs a token, one that carries it.
        clone_url: what git fetches from.
        main: the commit that requests are compared with.
    """

    kind: str
    rest: Rest
    project: str
    git: Git
    clone_url: str
    main: str

    @property
    def _dialect(self) -> Dialect:
        return DIALECTS[self.kind]

    def _path(self, path: str, handle: Handle | str = "") -> str:
        return self._dialect.project(self.project) + path.format(handle)

    def _request(self, handle: Handle) -> str:
        return self._path(f"{self._dialect.requests}/{{}}", handle)

    def list_open(self) -> tuple[PullRequest, ...]:
        """List every open request, once, the oldest first."""
        own = self._dialect
        found: dict[Handle, PullRequest] = {}
        path = self._path(own.requests)
        for one in self.rest.pages(path, own.shape, own.open, size=own.size):
            number, sha = (
                (one.number, one.head.sha) if isinstance(one, _Pull) else (one.iid, one.sha)
            )
            handle = Handle(str(number))
            if sha is not None:
                found[handle] = PullRequest(handle=handle, ref=own.ref.format(handle), sha=sha)
        return tuple(found.values())

    def fetch(self) -> tuple[arrivals.Arrival, ...]:
        """Fetch the arrivals of the open requests; of two with the same files the first."""
        heads = [request.ref for request in self.list_open()]
        done = fetch_requests(self.git, self.clone_url, self.form, heads)
        return _list_fetched(self.git, self.form, self.main, done, only=heads)

    def locate(self, source: str, name: str) -> Handle | None:
        """Find the number in `pull request N`; for a branch the open request at its commit."""
        branch = arrivals.arrival_branch(name)
        if source != f"branch {branch}":
            found = re.fullmatch("pull request ([1-9][0-9]{0,15})", source, re.ASCII)
            return Handle(found[1]) if found else None
        commits = self.git.refs(f"refs/heads/{branch}", f"refs/remotes/*/{branch}").values()
        return next((r.handle for r in self.list_open() if r.sha in commits), None)

    def copies(self, handle: Handle) -> tuple[Handle, ...]:
        """List a request and its copies, by what was fetched last."""
        heads = {request.ref: request.handle for request in self.list_open()}
        found = arrivals.fingerprints(self.git, self.form, base=self.main, heads=heads)
        marks = {heads[ref]: mark for ref, mark in found.items()}
        own = marks.get(handle)
        same = [other for other, mark in marks.items() if mark == own and own is not None]
        return (handle, *sorted(set(same) - {handle}, key=int))

    def comment(self, handle: Handle, text: str, *, event: Digest) -> Outcome:
        """Post a comment, unless one of this event is there on a line of its own, on any page."""
        marker, own = format_marker(event), self._dialect
        path = self._path(own.comments, handle)

        def is_said() -> bool:
            bodies = self.rest.pages(path, list[_Comment], own.order, size=own.size)
            return any(marker in map(str.strip, (one.body or "").splitlines()) for one in bodies)

        body = {"body": f"{text.rstrip()}\n\n{marker}\n"}
        return self._once(handle, is_said, lambda: self.rest.send("POST", path, body))

    def close(self, handle: Handle) -> Outcome:
        """Close, unless it is closed or merged."""
        path, (method, body) = self._request(handle), self._dialect.close
        ended = ("merged", "closed")  # at GitLab `locked` is about to be merged
        return self._once(
            handle,
            lambda: self.rest.get(path, _State).state in ended,
            lambda: self.rest.send(method, path, body),
        )

    def label(self, handle: Handle, *names: str) -> Outcome:
        """Add labels; the forge itself leaves those that are there."""
        _check_handle(handle)
        wrong = [name for name in names if not _LABEL.fullmatch(name)]
        if wrong or not names:
            raise ValueError(f"no label: {wrong}")
        if self.kind == "gitlab":
            self.rest.send("PUT", self._request(handle), {"add_labels": ",".join(names)})
        else:  # at GitHub new names make new labels
            labels = self._label_ids(names) if self.kind == "forgejo" else [*names]
            self.rest.send("POST", self._path("/issues/{}/labels", handle), {"labels": labels})
        return "done"

    def _label_ids(self, names: Sequence[str]) -> list[int]:
        """Find the ids of labels, and make those that are missing.

        Older instances of Forgejo take no names, and none makes a label by itself.
        """
        path, own = self._path("/labels"), self._dialect

        def known() -> dict[str, int]:
            found = self.rest.pages(path, list[_Label], {}, size=own.size)
            return {label.name: label.id for label in found}

        for name in dict.fromkeys(names).keys() - known().keys():
            self.rest.send("POST", path, {"name": name, "color": _COLOUR})
        ids = known()
        if missing := [name for name in names if name not in ids]:
            raise StoreError(f"the forge made no label {missing[0]}")
        return [ids[name] for name in names]

    def _once(self, handle: Handle, stands: Callable[[], bool], act: Callable[[], None]) -> Outcome:
        """Act, unless it stands already; where the answer is lost, look, and never act again."""
        _check_handle(handle)
        if stands():
            return "known"
        try:
            act()
        except StoreError as error:
            if error.code != "answer-lost" or not stands():
                raise
        return "done"


def _list_fetched(
    git: Git, form: Form, main: str, done: Fetched, *, only: Sequence[str] | None = None
) -> tuple[arrivals.Arrival, ...]:
    unread = {**done.refused, **done.failed}
    return tuple(
        arrivals.find_in_git(git, form, main=main, only=only, unread=unread, waiting=done.waiting)
    )


def _check_handle(handle: Handle) -> None:
    """Refuse what is no number of a request: a handle becomes a part of an address."""
    if not re.fullmatch("[1-9][0-9]{0,15}", handle, re.ASCII):
        raise ValueError(f"no number of a request: {handle!r}")


_REMOTE = "forge"
_REPLY_LIMIT = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderForge(Forge):
    """A folder: files arrive in it, and answers are laid beside them as `ID.reply.txt`.

    Attributes:
        root: the folder.
    """

    root: Path

    def fetch(self) -> tuple[arrivals.Arrival, ...]:
        """List the files, as they lie."""
        return tuple(arrivals.find_in_folder(self.root, self.form))

    def locate(self, source: str, name: str) -> Handle | None:
        """Return the name itself, if it came from a folder."""
        return Handle(name) if source == arrivals.IN_FOLDER else None

    def comment(self, handle: Handle, text: str, *, event: Digest) -> Outcome:
        """Add to `ID.reply.txt`, which is replaced whole; what is no plain file is replaced too.

        Raises:
            InputError: the handle is neither a submission's id nor a team's.
        """
        name = handle if arrivals.is_team(handle) else parse_submission_id(handle)
        path = self.root / f"{name}.reply.txt"
        marker = format_marker(event)
        before = _read_plain(path)
        if marker in before.splitlines():
            return "known"
        block = f"{text.rstrip()}\n\n{marker}\n"
        if not path.is_file():
            path.unlink(missing_ok=True)  # a pipe that a stranger left: a reply is no way to it
        durable.write_whole(path, (f"{before}\n{block}" if before else block).encode())
        return "done"


@dataclass(frozen=True, slots=True, kw_only=True)
class GitForge(Forge):
    """A bare repository that participants push branches `submission/ID` to.

    Answers are in the board's own log and page; there is no other place for them.

    Attributes:
        git: the board's repository.
        url: path or address of the bare one.
        main: the commit that branches are compared with.
    """

    git: Git
    url: str
    main: str

    def fetch(self) -> tuple[arrivals.Arrival, ...]:
        """Return what lies on those branches, and on those of other remotes."""
        done = fetch_arrivals(self.git, {_REMOTE: self.url}, self.form, requests=False)[_REMOTE]
        if isinstance(done, StoreError):
            raise done
        return _list_fetched(self.git, self.form, self.main, done)

    def locate(self, source: str, name: str) -> Handle | None:
        """Return the name itself, if it came on its own branch."""
        return Handle(name) if source == f"branch {arrivals.arrival_branch(name)}" else None


def _read_plain(path: Path) -> str:
    """Read a small plain file; a link is not followed, for others may write to the folder."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return ""
    with os.fdopen(handle, "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            return ""
        return file.read(_REPLY_LIMIT).decode("utf-8", "replace")


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What a forge needs of the world.

    Attributes:
        client: as `new_client` makes it.
        environ: where the token is.
        token_host: the one host that the token may be sent to, as `ForgeSpec.host` has it; "" for
            none.
        clock: Unix time in seconds.
        sleep: waits for so many seconds.
    """

    client: "httpx2.Client"
    environ: Mapping[str, str] = field(repr=False)
    clock: Callable[[], float]
    sleep: Callable[[float], None]
    token_host: str = ""


def new_client() -> "httpx2.Client":
    """Make a client for forges, which waits half a minute and follows no redirect."""
    import httpx2  # noqa: PLC0415 - heavy, and most boards have no forge that is asked

    name = {"User-Agent": f"heldout/{heldout.__version__}"}
    return httpx2.Client(headers=name, timeout=_PATIENCE, follow_redirects=False)


def open_forge(spec: ForgeSpec, git: Git, form: Form, *, main: str, world: Surroundings) -> Forge:
    """Open the forge that a board names.

    Args:
        spec: checked by `check_forge`.
        git: the board's repository.
        form: the board's envelope.
        main: the commit that requests are compared with.
        world: client, environment, clock.

    Raises:
        SetupError: the token is malformed.
        StoreError: the token is for another host: it is not sent, and nothing is asked.
    """
    if spec.kind == "folder":
        return FolderForge(root=git.root / Path(spec.url).expanduser(), form=form)
    if spec.kind == "git":
        return GitForge(git=git, url=spec.url, form=form, main=main)
    token = read_token(world.environ)
    if token and spec.host != world.token_host:
        known = world.token_host or "no host yet"
        raise StoreError(
            f"{TOKEN} is for {known} and was not sent to {spec.host}, which [forge] of "
            f"board.toml names; if that is right: heldout inbox --token-host {spec.host}"
        )
    dialect = DIALECTS[spec.kind]
    header, scheme = dialect.token
    own = {header: f"{scheme}{token}"} if token else {}  # without one public boards can be read
    rest = Rest(
        client=world.client,
        root=api_root(spec),
        headers={**dialect.headers, **own},
        token=token,
        clock=world.clock,
        sleep=world.sleep,
    )
    return HostedForge(
        kind=spec.kind,
        rest=rest,
        project=spec.project,
        git=Git(git.root, environment=git_environment(token, spec.clone_url)),
        clone_url=spec.clone_url,
        form=form,
        main=main,
    )
