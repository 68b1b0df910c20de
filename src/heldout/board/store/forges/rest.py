"""REST calls with httpx2: bounded, paged, patient with rate limits, never twice where it matters.

A call that only reads is tried again after a failure. One that changes something is tried again
only where the forge said that it did nothing, or could not be reached: where an answer was lost,
the caller has to look before it asks again. No redirect is followed, for the token would go along.

The token is read from the environment, sent in headers, written nowhere, and taken out of every
message. git gets it through its own environment, as configuration of that one call
(`GIT_CONFIG_COUNT`, git 2.31): neither the command line nor the repository's configuration ever
holds it.

How long a forge asks its caller to wait is a pure function of an answer's headers, by
docs.github.com "Best practices for using the REST API" (handle rate limit errors), docs.gitlab.com
"User and IP rate limits" (response headers), and RFC 9110 section 10.2.3.
"""

import base64
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any, Literal, TypeVar
from urllib.parse import urlsplit

import msgspec

from heldout.board.store.forges.protocol import ForgeError, LostAnswerError
from heldout.errors import SetupError, quote
from heldout.files.executors import work_within

if TYPE_CHECKING:
    import httpx2

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
    """What makes git send the token to one repository, and follow no redirect with it.

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
class Answer:
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


def decode(answer: Answer, kind: type[T]) -> T:
    """The body as a value of the documented shape.

    Raises:
        ForgeError: it is too large, no JSON, or of another shape.
    """
    if not answer.whole:
        raise ForgeError(f"the forge's answer is over {BODY_LIMIT >> 20} MiB, or compressed")
    try:
        return msgspec.json.decode(answer.body, type=kind)
    except msgspec.ValidationError as error:
        raise ForgeError(f"the forge answered another JSON than documented: {error}") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        told = quote(answer.headers.get("content-type", "nothing said"), limit=40)
        raise ForgeError(f"the forge answered no JSON (its type: {told})") from None


def explain(answer: Answer, *, token: str) -> str:
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


def _message(answer: Answer) -> str:
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
    """Whether an answer refuses for now, and did nothing.

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
    """How many items a page has.

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
            ForgeError: the forge refused, did not answer, or answered another shape.
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
            ForgeError: also where the list does not end, or one item is too large.
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
        raise ForgeError(f"{path}: the list does not end")

    def send(self, method: Method, path: str, body: Mapping[str, Any]) -> None:
        """Change something, once.

        Raises:
            LostAnswerError: it may have happened.
            ForgeError: it did not happen.
        """
        self._call(method, path, {}, body)

    def _call(
        self, method: Method, path: str, params: Mapping[str, str], body: Mapping[str, Any] | None
    ) -> Answer:
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
        raise ForgeError(f"{method} {path}: asked {_TRIES} times; {reason}")

    def _check_repeatable(self, method: Method, path: str, reason: str) -> None:
        if method != "GET":
            raise LostAnswerError(
                f"{method} {path}: {reason}. It may have happened all the same; "
                "call again, which looks before it asks"
            )

    def _delay(self, answer: Answer, attempt: int, told: str) -> float:
        if answer.status >= _FAILED and "retry-after" not in answer.headers:
            return float(2**attempt)
        delay = seconds_to_wait(answer.headers, now=self.clock())
        if delay > LONGEST_WAIT:
            raise ForgeError(f"{told}; call again {_moment(self.clock() + delay)}")
        return delay

    def _accept(self, method: Method, path: str, answer: Answer) -> Answer:
        if answer.status >= _REFUSED:
            raise ForgeError(f"{method} {path}: {explain(answer, token=self.token)}")
        return answer

    def _ask(
        self, method: Method, path: str, params: Mapping[str, str], body: Mapping[str, Any] | None
    ) -> Answer:
        import httpx2  # noqa: PLC0415 - heavy, and most boards have no forge that is asked

        begun = self.clock()

        def ask() -> Answer:
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

    def _read(self, response: "httpx2.Response", begun: float) -> Answer:
        """The answer, without unpacking anything: a small archive can be a large text."""
        body, whole = bytearray(), "content-encoding" not in response.headers
        for chunk in response.iter_raw():
            body += chunk
            if len(body) > BODY_LIMIT or not whole:
                whole = False
                break
            if self.clock() - begun > _SECONDS:
                raise _LostError(f"the answer took over {_SECONDS:.0f} s")
        return Answer(
            status=response.status_code,
            headers={name.lower(): value for name, value in response.headers.items()},
            body=bytes(body[:BODY_LIMIT]) if whole else b"",
            whole=whole,
            more=_has_next(response),
        )


def _is_passing(answer: Answer) -> bool:
    """Whether it makes sense to ask again later."""
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
