"""GitHub, GitLab and Forgejo: asked over HTTP, fetched from with git.

`Forge` is what commands use, here and in `local`. A call that only reads is tried again after a
failure. One that changes something is tried again only where the forge said that it did nothing, or
could not be reached: where an answer was lost, the caller looks before it asks again. No redirect
is followed, for the token would go along.

The token is read from the environment, sent in headers, written nowhere, and taken out of every
message. git gets it through its own environment, as configuration of that one call
(`GIT_CONFIG_COUNT`, git 2.31): neither the command line nor the repository's configuration ever
holds it.

How long a forge asks its caller to wait is a pure function of an answer's headers, by
docs.github.com "Best practices for using the REST API" (handle rate limit errors), docs.gitlab.com
"User and IP rate limits" (response headers), and RFC 9110 section 10.2.3.
"""

import base64
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, NewType, Protocol, TypeVar
from urllib.parse import quote as quote_path
from urllib.parse import urlsplit

import msgspec

from heldout.board.store.arrivals import Arrival, arrival_branch, find_in_git, fingerprints
from heldout.board.store.fetching import fetch_requests
from heldout.board.store.git import Git
from heldout.envelope.keys import Form
from heldout.errors import SetupError, StoreError, quote
from heldout.files.executors import work_within
from heldout.ids import Digest

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


class Forge(Protocol):
    """A place where submissions are opened, answered and closed.

    Every method may be called again after a crash: what stands already is found and left.
    All raise StoreError where the forge refuses or fails.
    """

    def fetch(self) -> tuple[Arrival, ...]:
        """List what waits there as sealed files; read as data, nothing is checked out."""
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
            StoreError: code `answer-lost`: it was sent, and whether it stands is not known. Call
                again later: that call looks first.
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
    """One kind of forge. All methods raise StoreError."""

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
        """Check that a request is open: neither closed nor merged."""
        ...

    def close(self, handle: Handle) -> None:
        """Close a request."""
        ...

    def add_labels(self, handle: Handle, names: Sequence[str]) -> None:
        """Add labels; those that it has stay."""
        ...


TOKEN = "HELDOUT_FORGE_TOKEN"  # noqa: S105 - the variable's name, no secret
"""Name of the environment variable that holds the token."""

_LONGEST = 4096


def read_token(environ: Mapping[str, str]) -> str:
    """The token, "" where none is set: then a public board can be read, and nothing changed.

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
    pairs = (
        (f"http.{url}.extraHeader", f"Authorization: Basic {basic}"),
        (f"http.{url}.followRedirects", "false"),
        ("credential.helper", ""),
    )
    numbered = {f"GIT_CONFIG_KEY_{i}": key for i, (key, _) in enumerate(pairs)}
    values = {f"GIT_CONFIG_VALUE_{i}": value for i, (_, value) in enumerate(pairs)}
    return {"GIT_CONFIG_COUNT": str(len(pairs)), **numbered, **values}


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
    """The body as a value of the documented shape.

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
        told = quote(answer.headers.get("content-type", "nothing said"), limit=40)
        raise StoreError(f"the forge answered no JSON (its type: {told})") from None


def explain(answer: ForgeReply, *, token: str) -> str:
    """A refusal in words: what the status means here, and what the forge said.

    Args:
        answer: of a status that is no success.
        token: taken out of what the forge said, should it say it back.
    """
    meaning = _MEANINGS.get(answer.status, "")
    if answer.headers.get("location"):
        meaning = _tell_redirect(answer.headers["location"])
    said = _message(answer)
    said = said.replace(token, "…") if token else said
    told = f"status {answer.status}" + (f": {meaning}" if meaning else "")
    return f"{told}; it says {quote(said, limit=_LINE)}" if said else told


def _tell_redirect(location: str) -> str:
    try:
        host = urlsplit(location).netloc.rpartition("@")[2]
    except ValueError:
        host = ""
    where = f" to {quote(host, limit=60)}" if host else ""
    return f"it sends us elsewhere{where}, and no redirect is followed; fix the address"


def _message(answer: ForgeReply) -> str:
    """The message in an error's JSON; GitHub and Forgejo have `message`, GitLab also `error`."""
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
    told = "retry-after" in headers or "rate limit" in text.lower()
    return status == _FORBIDDEN and (spent or told)


def seconds_to_wait(headers: Mapping[str, str], *, now: float) -> float:
    """Seconds until the next call may be made, at least one; a minute where nothing is said.

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
    """Retry-After, which is a number of seconds or a date."""
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
_REFUSED = 300
_FAILED = 500


@dataclass(frozen=True, slots=True)
class Size:
    """Return how many items a page has.

    Attributes:
        name: the parameter that asks for it.
        most: the most that the forge gives.
    """

    name: str
    most: int


class _NotSentError(Exception):
    """The forge could not be reached: nothing happened."""


class _LostError(Exception):
    """The request went out, and no whole answer came back."""


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
        """One document.

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
        """The items of a list, page by page.

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
            except _NotSentError as error:
                delay, reason = float(2**attempt), str(error)
            except _LostError as error:
                self._check_repeatable(method, path, str(error))
                delay, reason = float(2**attempt), str(error)
            else:
                if not _is_passing(answer):
                    return self._accept(method, path, answer)
                reason = explain(answer, token=self.token)
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

    def _delay(self, answer: ForgeReply, attempt: int, told: str) -> float:
        if answer.status >= _FAILED and "retry-after" not in answer.headers:
            return float(2**attempt)
        delay = seconds_to_wait(answer.headers, now=self.clock())
        if delay > LONGEST_WAIT:
            raise StoreError(f"{told}; call again {_moment(self.clock() + delay)}")
        return delay

    def _accept(self, method: Method, path: str, answer: ForgeReply) -> ForgeReply:
        if answer.status >= _REFUSED:
            raise StoreError(f"{method} {path}: {explain(answer, token=self.token)}")
        return answer

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
            return work_within(_SECONDS, ask)
        except (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout):
            raise _NotSentError("the forge cannot be reached") from None
        except (httpx2.TimeoutException, TimeoutError):
            raise _LostError("the forge did not answer in time") from None
        except httpx2.HTTPError as error:
            raise _LostError(f"the connection broke ({type(error).__name__})") from None

    def _read(self, response: "httpx2.Response", begun: float) -> ForgeReply:
        """The answer, without unpacking anything: a small archive can be a large text."""
        body, whole = bytearray(), "content-encoding" not in response.headers
        for chunk in response.iter_raw():
            body += chunk
            if len(body) > BODY_LIMIT or not whole:
                whole = False
                break
            if self.clock() - begun > _SECONDS:
                raise _LostError(f"the answer took over {_SECONDS:.0f} s")
        return ForgeReply(
            status=response.status_code,
            headers={name.lower(): value for name, value in response.headers.items()},
            body=bytes(body[:BODY_LIMIT]) if whole else b"",
            whole=whole,
            more=_has_next(response),
        )


def _is_passing(answer: ForgeReply) -> bool:
    """Check whether it makes sense to ask again later."""
    limited = is_rate_limited(answer.status, answer.headers, answer.text)
    return limited or answer.status >= _FAILED


def _has_next(response: "httpx2.Response") -> bool | None:
    if "x-next-page" in response.headers:
        return bool(response.headers["x-next-page"].strip())
    return "next" in response.links if "link" in response.headers else None


def _moment(unix: float) -> str:
    try:
        return f"after {datetime.fromtimestamp(unix, UTC):%d %b %Y %H:%M} UTC"
    except (ValueError, OverflowError, OSError):
        return "much later"


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
        except StoreError as error:
            if error.code != "answer-lost" or not stands():
                raise
        return "done"

    def _is_said(self, handle: Handle, marker: str) -> bool:
        """Check whether a comment has the mark on a line of its own, on any page."""
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
            raise StoreError(f"the forge made no label {missing[0]}")
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
