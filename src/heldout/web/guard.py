"""Guards of every page: headers, the Content-Security-Policy, and errors shown as a page.

Nothing of an error's inside reaches the page: it is logged, with its traceback where it is a bug.
"""

import logging
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, Response
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from heldout.errors import StoreError
from heldout.web import health, pages, signing

_LOG = logging.getLogger("heldout.web")
RETRY_SECONDS = "5"
"""After which a page may be asked for again."""
_MTURK_FRAMES = "https://*.mturk.com"
_MTURK_FORMS = "https://www.mturk.com https://workersandbox.mturk.com"


def content_policy(*, mturk: bool = False, forms: Sequence[str] = ()) -> str:
    """The Content-Security-Policy: own files only, in no frame but Mechanical Turk's.

    Args:
        mturk: whether the page is shown in its frame and handed in to it.
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
            "frame-ancestors " + (_MTURK_FRAMES if mturk else "'none'"),
        )
    )


_HEADERS = {
    "Content-Security-Policy": content_policy(),
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Cache-Control": "no-store",
}
"""Of every answer that does not say otherwise. `no-store`: going back shows the present answer."""


def respond(
    template: str,
    study: pages.Study,
    values: Mapping[str, object],
    *,
    title: str,
    status: int = 200,
    mturk: bool = False,
    **words: object,
) -> HTMLResponse:
    """A page as an answer.

    Args:
        template: its name.
        study: what the page says of the study.
        values: what the template knows as `page.NAME`.
        title: of the window.
        status: of HTTP.
        mturk: whether it may be shown in Mechanical Turk's frame.
        words: what every template of these pages knows.
    """
    page = {"study": study, "title": title, **values}
    return HTMLResponse(
        pages.render_template(f"{template}.html", page, **words),
        status_code=status,
        headers={"Content-Security-Policy": content_policy(mturk=mturk)},
    )


def respond_briefly(
    study: pages.Study,
    title: str,
    *paragraphs: str,
    status: int = 200,
    mturk: bool = False,
    link: tuple[str, str] | None = None,
) -> HTMLResponse:
    """A page that says one thing, as an answer; with an address to go on at, and its words."""
    said = {"paragraphs": paragraphs, "link": link, "code": "", "hand_in": None}
    return respond("end", study, said, title=title, status=status, mturk=mturk)


def add_handlers(
    app: FastAPI,
    study: pages.Study,
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
        elif isinstance(error, signing.TokenError):
            status = shown = error.status
        elif isinstance(error, StoreError) and is_missing(error):
            status = shown = 404
        elif isinstance(error, StoreError):
            _LOG.error("%s failed: %s", request.method, error)  # the address is a token
            headers = {"Retry-After": RETRY_SECONDS, health.ERROR_CODE: "server-unavailable"}
        mturked = mturk and _is_judging(request.url.path)
        page = respond_briefly(study, *_ERROR_PAGES[shown], status=status, mturk=mturked)
        page.headers.update(headers)
        return page

    for kind in _STATUSES:
        app.add_exception_handler(kind, answer)


def _is_judging(path: str) -> bool:
    """Check whether an address is one of the judges', and not the organiser's."""
    return path.startswith(("/j/", "/a/"))


_STATUSES: Mapping[type[Exception], int] = {
    HTTPException: 404,
    RequestValidationError: 404,
    signing.TokenError: 403,
    StoreError: 503,
}
"""Error -> status of its answer; an `HTTPException` has its own."""

_ERROR_PAGES: Mapping[int, tuple[str, ...]] = {
    int(status): (page["title"], *page["paragraphs"])
    for status, page in tomllib.loads(
        resources.files("heldout.web").joinpath("error_pages.toml").read_text("utf-8")
    ).items()
}
"""Status -> title and paragraphs of the page."""


@dataclass(frozen=True, slots=True)
class Guard:
    """Adds the headers to every answer, answers where a bug left none, and HEAD as GET.

    Attributes:
        app: what answers.
        study: of the page that reports a bug.
        mturk: whether the pages of judges are shown in Mechanical Turk's frame.
    """

    app: ASGIApp
    study: pages.Study
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
            await send(message)

        try:
            asked = {**scope, "method": "GET"} if head else scope
            await self.app(asked, receive, send_with_headers)
        except Exception:
            _LOG.exception("%s failed", scope["method"])
            if started:
                raise
            mturk = self.mturk and _is_judging(scope["path"])
            answer = respond_briefly(self.study, *_ERROR_PAGES[500], status=500, mturk=mturk)
            answer.headers[health.ERROR_CODE] = "server-error"
            await answer(scope, receive, send_with_headers)
