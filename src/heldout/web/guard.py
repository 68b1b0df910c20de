"""Errors below the pages, shown as a page; and the headers that every answer carries.

Nothing of an error's inside reaches the page: it is logged, with its traceback where it is a bug.
"""

import asyncio
import ctypes
import gc
import hashlib
import hmac
import logging
import secrets
import socket
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from ipaddress import ip_address, ip_network
from typing import Annotated, Any, TypeVar

import msgspec
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, Response
from h11 import SEND_BODY
from itsdangerous import BadData, URLSafeSerializer
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from heldout.errors import SetupError, StoreError
from heldout.web.health import ERROR_CODE
from heldout.web.pages import EndPage, Page, Study, render

# Values that leave the server and come back: signed, so that nobody can change or make one.

_LONGEST = 2_000
Kind = TypeVar("Kind", bound=msgspec.Struct)


class BadTokenError(Exception):
    """Not signed here, not of this kind, or altered; one error for every cause."""


class OldTokenError(Exception):
    """Signed here, and over."""


def sign_value(value: msgspec.Struct | str, *, key: bytes, purpose: str) -> str:
    """The value as text for an address or a form.

    Args:
        value: what is signed; its fields can be read by whoever has the text.
        key: the secret.
        purpose: part of what is signed: a value of one purpose is never taken for another's.
    """
    return str(_serializer(key, purpose).dumps(msgspec.to_builtins(value)))


def read_value(text: str, kind: type[Kind], *, key: bytes, purpose: str) -> Kind:
    """The value that was signed.

    Args:
        text: what came back, of any length.
        kind: of the value.
        key: the secret.
        purpose: as when it was signed.

    Raises:
        BadTokenError: it was not signed with this key for this purpose as such a value.
    """
    if len(text) > _LONGEST or not text.isascii():
        raise BadTokenError
    try:
        return msgspec.convert(_serializer(key, purpose).loads(text), kind)
    except (BadData, msgspec.ValidationError) as error:
        raise BadTokenError from error


def _serializer(key: bytes, purpose: str) -> URLSafeSerializer:
    return URLSafeSerializer(key, salt=f"heldout.web.{purpose}")


_LOG = logging.getLogger("heldout.web")
RETRY_SECONDS = "5"
"""After which a page may be asked for again."""
_MTURK_FRAMES = "https://*.mturk.com"
_MTURK_FORMS = "https://www.mturk.com https://workersandbox.mturk.com"


def content_policy(
    *, mturk: bool = False, frames: str = "'none'", forms: Sequence[str] = ()
) -> str:
    """The Content-Security-Policy: own files only, in no frame but Mechanical Turk's.

    Args:
        mturk: whether the page is shown in its frame and handed in to it.
        frames: else the sites whose pages may show it in a frame.
        forms: sites to which an answer to a form may lead.
    """
    return "; ".join(
        (
            "default-src 'none'",
            "script-src 'self'",
            "style-src 'self'",
            "img-src 'self' data:",
            "connect-src 'self'",
            "base-uri 'none'",
            " ".join(("form-action 'self'", *([_MTURK_FORMS] if mturk else forms))),
            f"frame-ancestors {_MTURK_FRAMES if mturk else frames}",
        )
    )


_PIECE = 1 << 16
_HEADERS = {
    "Content-Security-Policy": content_policy(),
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Cache-Control": "no-store",
}
"""Of every answer that does not say otherwise. `no-store`: going back shows the present answer."""


def respond(page: Page, *, status: int = 200, mturk: bool = False) -> HTMLResponse:
    """A page as an answer.

    Args:
        page: what it shows.
        status: of HTTP.
        mturk: whether it may be shown in Mechanical Turk's frame.
    """
    return HTMLResponse(
        render(page),
        status_code=status,
        headers={"Content-Security-Policy": content_policy(mturk=mturk)},
    )


def add_handlers(
    app: FastAPI,
    study: Study,
    *,
    mturk: bool = False,
    is_missing: Callable[[StoreError], bool] = lambda _: False,
) -> None:
    """Show errors as pages of this study.

    Args:
        app: what raises them.
        study: what the pages say of the study.
        mturk: whether the pages of judges are shown in Mechanical Turk's frame.
        is_missing: whether an error says that there is no such page, and not that the database
            is gone.
    """

    def answer(request: Request, error: Exception) -> Response:
        status = shown = next(n for kind, n in _STATUSES.items() if isinstance(error, kind))
        headers: Mapping[str, str] = {}
        if isinstance(error, HTTPException):
            status, headers = error.status_code, error.headers or {}
            shown = 404 if status == 404 else 400  # noqa: PLR2004 - HTTP's
        elif isinstance(error, StoreError) and is_missing(error):
            status = shown = 404
        elif isinstance(error, StoreError):
            _LOG.error("%s failed: %s", request.method, error)  # the address is a token
            headers = {"Retry-After": RETRY_SECONDS, ERROR_CODE: "server-unavailable"}
        mturked = mturk and _is_judging(request.url.path)
        page = respond(_error_page(study, shown), status=status, mturk=mturked)
        page.headers.update(headers)
        return page

    for kind in _STATUSES:
        app.add_exception_handler(kind, answer)


def _is_judging(path: str) -> bool:
    """Whether an address is one of the judges', and not the organiser's."""
    return path.startswith(("/j/", "/a/"))


_STATUSES: Mapping[type[Exception], int] = {
    HTTPException: 404,
    RequestValidationError: 404,
    BadTokenError: 403,
    OldTokenError: 410,
    StoreError: 503,
}
"""Error -> status of its answer; an `HTTPException` has its own."""

_LINK = "Please open the page again with the whole link that you were given"
_SAVED = "What you saved is safe."
_ERROR_PAGES: Mapping[int, tuple[str, ...]] = {
    400: ("That could not be read", "Nothing was changed. Please go back and try again."),
    403: (
        "This address is wrong or incomplete",
        "Nothing was changed.",
        f"{_LINK}. You return to your task.",
    ),
    404: ("There is no such page", f"{_LINK}."),
    410: (
        "This address is too old",
        "Your answers are stored, and your pay does not change.",
        f"{_LINK}.",
    ),
    500: (
        "The server made a mistake",
        _SAVED,
        "Please go back and try again. If it happens again, write to us.",
    ),
    503: (
        "The server can't reach its database at the moment",
        _SAVED,
        "Please load this page again in a moment.",
    ),
}
"""Status -> title and paragraphs of the page."""


def _error_page(study: Study, status: int) -> EndPage:
    title, *paragraphs = _ERROR_PAGES[status]
    return EndPage(study=study, title=title, paragraphs=tuple(paragraphs))


@dataclass(frozen=True, slots=True)
class Guard:
    """Adds the headers to every answer, answers where a bug left none, and HEAD as GET.

    Attributes:
        app: what answers.
        study: of the page that reports a bug.
        mturk: whether the pages of judges are shown in Mechanical Turk's frame.
    """

    app: ASGIApp
    study: Study
    mturk: bool = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        started, head = False, scope["method"] == "HEAD"

        async def send_with_headers(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
            elif head:
                message = {**message, "body": b""}
            elif len(body := message.get("body", b"")) > _PIECE:
                # Whoever does not read has a piece in memory, and not all of it.
                for start in range(0, len(body), _PIECE):
                    piece = body[start : start + _PIECE]
                    await send({**message, "body": piece, "more_body": True})
                message = {**message, "body": b""}
            await send(message)

        try:
            asked = {**scope, "method": "GET"} if head else scope
            await self.app(asked, receive, send_with_headers)
        except Exception:
            _LOG.exception("%s failed", scope["method"])
            if started:
                raise
            mturk = self.mturk and _is_judging(scope["path"])
            answer = respond(_error_page(self.study, 500), status=500, mturk=mturk)
            answer.headers[ERROR_CODE] = "server-error"
            await answer(scope, receive, send_with_headers)


# Who may see the organiser's pages: a token opens a session, stored in a signed cookie.
#
# The token is long and random, so that it cannot be guessed; whoever tries all the same is slowed
# down. Judges never come here and get no cookie.

COOKIE = "heldout-organiser"
"""The session's cookie."""

SESSION = timedelta(hours=12)
"""How long a session lasts."""

_SHORTEST = 16
_MOST_FAILURES = 5
_WINDOW = timedelta(minutes=15)
_MOST_ADDRESSES = 10_000


def check_token(token: str) -> str:
    """A token that is fit to be one, without blanks around it.

    Raises:
        SetupError: it is shorter than 16 characters, and could be guessed.
    """
    plain = token.strip()
    if len(plain) < _SHORTEST:
        raise SetupError(
            f"the organiser's token has {len(plain)} characters: give at least {_SHORTEST}, or "
            "none to have one made"
        )
    return plain


class Session(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """An organiser who signed in.

    Attributes:
        id: random.
        expires: seconds since 1970 in UTC.
        sign_outs: how many sign-outs there had been; another one ends it.
        token: digest of the token it was opened with; a changed token ends it.
    """

    id: str
    expires: Annotated[int, msgspec.Meta(ge=0, le=99_999_999_999)]
    sign_outs: Annotated[int, msgspec.Meta(ge=0)]
    token: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionSigner:
    """Opens sessions and knows them again.

    Attributes:
        key: the campaign's secret.
        token: what opens a session.
    """

    key: bytes
    token: str

    def open(self, given: str, *, sign_outs: int, now: datetime) -> str | None:
        """The cookie of a new session; `None` where the token is another.

        Args:
            given: the token that was typed.
            sign_outs: how many there have been.
            now: the time.
        """
        if not hmac.compare_digest(_digest(given.strip()), _digest(self.token)):
            return None
        session = Session(
            id=secrets.token_urlsafe(18),
            expires=int((now + SESSION).timestamp()),
            sign_outs=sign_outs,
            token=self._mark(),
        )
        return sign_value(session, key=self.key, purpose="organiser.session")

    def read(self, cookie: str, *, sign_outs: int, now: datetime) -> Session | None:
        """The session of a cookie; `None` where it is forged, or over."""
        try:
            session = read_value(cookie, Session, key=self.key, purpose="organiser.session")
        except BadTokenError:
            return None
        fits = hmac.compare_digest(session.token, self._mark())
        alive = now.timestamp() < session.expires and session.sign_outs == sign_outs
        return session if fits and alive else None

    def form_token(self, session: Session) -> str:
        """What each form of this session has to send back."""
        return sign_value(session.id, key=self.key, purpose="organiser.form")

    def is_form_token(self, session: Session, text: str) -> bool:
        """Whether a form was one of this session."""
        return text.isascii() and hmac.compare_digest(self.form_token(session), text)

    def _mark(self) -> str:
        return hmac.new(self.key, _digest(self.token), hashlib.sha256).hexdigest()[:32]


@dataclass(slots=True)
class Attempts:
    """What each address may do five times in 15 minutes, as one process has seen it.

    Attributes:
        failures: when it was done, by address.
    """

    failures: dict[str, list[datetime]] = field(default_factory=dict)

    def wait(self, address: str, *, now: datetime) -> timedelta | None:
        """How long this address has to wait; `None` where it may try."""
        recent = [at for at in self.failures.get(address, ()) if now - at < _WINDOW]
        return None if len(recent) < _MOST_FAILURES else recent[-_MOST_FAILURES] + _WINDOW - now

    def note(self, address: str, *, now: datetime) -> None:
        """Remember one; of very many addresses the oldest are forgotten."""
        recent = [at for at in self.failures.pop(address, ()) if now - at < _WINDOW]
        while len(self.failures) >= _MOST_ADDRESSES:
            self.failures.pop(next(iter(self.failures)), None)  # another thread may be first
        self.failures[address] = [*recent, now][-_MOST_FAILURES:]


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()


# Connections to the pages: so many, from one address half of them, and none that says nothing.
#
# uvicorn waits for a request for ever, takes connections until the process has no handle left, and
# then logs a line for each that it cannot take. Here each has some seconds for the head of a
# request, a new one beyond the limits closes the oldest idle one of the address that has most, and
# the log has so many lines a minute.

_BACKLOG = 256


def network(host: str) -> str:
    """Whose slots are counted together: an IPv4 address, of IPv6 a network; else `host` itself."""
    try:
        found = ip_address(host)
    except ValueError:
        return host
    found = getattr(found, "ipv4_mapped", None) or found
    return str(ip_network((found, 64 if found.version == 6 else 32), strict=False))  # noqa: PLR2004 - IPv6


class Connection(H11Protocol):
    """A connection of uvicorn's that ends where it keeps a place and asks or reads nothing.

    Attributes:
        most: connections of a process.
        most_of_one: those of one address, of IPv6 one network; a server in front, which is named,
            is not counted.
        head_seconds: until the head of a request has come.
        read_seconds: in which some of an answer is read, or the connection ends.
        read_bytes: how much of it at least.
        front: address of the server in front, "" without.
    """

    most = 400
    most_of_one = 200
    head_seconds = 10.0
    read_seconds = 20.0
    read_bytes = 20 << 10
    front = ""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # uvicorn says BaseTransport
        """Take it, or close it where there are too many."""
        self._late: asyncio.TimerHandle | None = None
        self._reading: asyncio.TimerHandle | None = None
        self._unread = 0
        peer = transport.get_extra_info("peername")
        host = peer[0] if peer else ""
        self._network = network(host)
        self._begun = self.loop.time()
        _send_at_once(transport)
        transport.set_write_buffer_limits(0)  # what the reader has not taken is told at once
        super().connection_made(transport)
        self._watch()
        here = [one for one in self.connections if isinstance(one, Connection)]
        same = [one for one in here if one._network == self._network]  # noqa: SLF001 - its own kind
        if host != self.front and len(same) > self.most_of_one:
            self._make_room(same)
        elif len(here) > self.most:
            self._make_room(here)

    def _make_room(self, among: list["Connection"]) -> None:
        """Close the oldest of the address with most that waits for its client: an idle one first.

        So no address keeps the others out, whatever its connections wait for.
        """
        of = Counter(one._network for one in among)  # noqa: SLF001 - its own kind
        idle = {one: one._waits() for one in among}  # noqa: SLF001 - its own kind
        found = max(
            (one for one in among if idle[one] or one._is_slow()),  # noqa: SLF001 - its own kind
            key=lambda one: (of[one._network], idle[one], -one._begun),  # noqa: SLF001 - its own kind
        )
        self.connections.discard(found)  # it goes in the loop's next turn
        found.transport.abort()

    def data_received(self, data: bytes) -> None:
        """Go on with it."""
        super().data_received(data)
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        """Let go of it."""
        self._stop_watching()
        self._stop_waiting()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        """Wait for a reader who takes an answer slowly, but not for ever."""
        super().pause_writing()
        self._unread = self.transport.get_write_buffer_size()
        self._reading = self.loop.call_later(self.read_seconds, self._check_reader)

    def resume_writing(self) -> None:
        """Go on: all was taken."""
        self._stop_waiting()
        super().resume_writing()

    def _check_reader(self) -> None:
        left = self.transport.get_write_buffer_size()
        if self._unread - left < self.read_bytes:
            self.transport.abort()
            return
        self._unread = left
        self._reading = self.loop.call_later(self.read_seconds, self._check_reader)

    def _stop_waiting(self) -> None:
        if self._reading is not None:
            self._reading.cancel()
            self._reading = None

    def _waits(self) -> bool:
        """Whether no request of it is under way."""
        cycle = getattr(self, "cycle", None)  # None before the first, whatever its type says
        return cycle is None or cycle.response_complete

    def _is_slow(self) -> bool:
        """Whether its client has not sent all of a request, or does not read the answer."""
        return self.conn.their_state is SEND_BODY or self._reading is not None

    def _watch(self) -> None:
        if not self._waits():
            self._stop_watching()
        elif self._late is None:
            self._late = self.loop.call_later(self.head_seconds, self._end)

    def _stop_watching(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None

    def _end(self) -> None:
        self._late = None
        if self._waits():
            self.transport.abort()


def _send_at_once(transport: asyncio.Transport) -> None:
    """Send the body of an answer without waiting until its head was acknowledged (40 ms).

    asyncio does so for connections that name TCP as their protocol. Those of the socket that
    uvicorn shares between worker processes do not.
    """
    line = transport.get_extra_info("socket")
    if line is not None and line.family in (socket.AF_INET, socket.AF_INET6):
        line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


_ARENA_MAX, _MMAP_THRESHOLD = -8, -3
_LARGE = 1 << 20


def share_one_heap() -> None:
    """Let all threads of this process take their memory from one heap; called before they start.

    The C library of Linux (glibc) gives threads up to eight heaps for each core. Uploads and
    database run in threads that come and go, each heap keeps the most that any of them ever took,
    and a server would grow for hours. Python's threads gain nothing by them: they take turns
    anyway. Blocks of a mebibyte and more go back to the system at once: else the library takes
    them from the heap too, once it has seen some, and they leave holes. Elsewhere nothing is done.
    """
    limit = getattr(ctypes.CDLL(None), "mallopt", None)
    if limit is not None:
        limit(_ARENA_MAX, 1)
        limit(_MMAP_THRESHOLD, _LARGE)


_YOUNG, _OLDER, _OLDEST = 700, 10, 10


def collect_garbage_often() -> None:
    """Look for garbage as often as Python does unless told otherwise; called once all is loaded.

    The commands look for it seldom (`cli.program`), which suits what ends in minutes: a server
    would first hold 50,000 objects that nobody needs. SQLAlchemy leaves about a hundred for each
    upload. What the program has loaded by now is looked at no more: it stays to the end.
    """
    gc.set_threshold(_YOUNG, _OLDER, _OLDEST)
    gc.collect()
    gc.freeze()


class QuietLog(logging.Filter):
    """Lets so many lines a minute through, and then one that says that there are more."""

    def __init__(self, most: int = 60) -> None:
        super().__init__()
        self._most = most
        self._minute = -1
        self._count = 0

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether a line is written."""
        minute = int(time.monotonic() // 60)
        if minute != self._minute:
            self._minute, self._count = minute, 0
        self._count += 1
        if self._count == self._most + 1:
            record.msg, record.args = "more lines of this minute are left out", ()
            record.exc_info = None
        return self._count <= self._most + 1


def server_options() -> Mapping[str, Any]:
    """What every server of heldout's pages gives uvicorn; worker processes get it by pickle."""
    quiet = {"()": "heldout.web.guard.QuietLog"}
    lines = {"class": "logging.StreamHandler", "formatter": "plain", "filters": ["quiet"]}
    return {
        "http": Connection,
        "backlog": _BACKLOG,
        "access_log": False,
        "server_header": False,
        "log_config": {
            "version": 1,
            "disable_existing_loggers": False,
            "filters": {"quiet": quiet},
            "formatters": {"plain": {"format": "%(levelname)s: %(message)s"}},
            "handlers": {"lines": lines},
            "loggers": {
                name: {"handlers": ["lines"], "level": "WARNING", "propagate": False}
                for name in ("uvicorn", "asyncio")
            },
        },
    }
