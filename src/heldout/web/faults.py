"""What goes wrong below the pages, told as a page; and the headers that every answer carries.

Nothing of an error's inside reaches the page: it is logged, with its traceback where it is a bug.
"""

import logging
from dataclasses import dataclass

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, Response
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from heldout.errors import StoreError
from heldout.store.judging.faults import DatabaseError
from heldout.web.pages import EndPage, Page, Study, render
from heldout.web.signed_values import BadTokenError, OldTokenError

__all__ = ["RETRY_SECONDS", "Guard", "add_handlers", "content_policy", "respond"]

_LOG = logging.getLogger("heldout.web")
RETRY_SECONDS = "5"
"""After which a page may be asked for again."""
_MTURK_FRAMES = "https://*.mturk.com"
_MTURK_FORMS = "https://www.mturk.com https://workersandbox.mturk.com"


def content_policy(*, mturk: bool = False) -> str:
    """The Content-Security-Policy: own files only, in no frame but Mechanical Turk's.

    Args:
        mturk: whether the page is shown in its frame and handed in to it.
    """
    return "; ".join(
        (
            "default-src 'none'",
            "script-src 'self'",
            "style-src 'self'",
            "img-src 'self' data:",
            "connect-src 'self'",
            "base-uri 'none'",
            f"form-action 'self' {_MTURK_FORMS}" if mturk else "form-action 'self'",
            f"frame-ancestors {_MTURK_FRAMES}" if mturk else "frame-ancestors 'none'",
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


def add_handlers(app: FastAPI, study: Study, *, mturk: bool = False) -> None:
    """Tell what goes wrong as pages of this study.

    Args:
        app: what they are told by.
        study: what they say of the study.
        mturk: whether the pages of judges are shown in Mechanical Turk's frame.
    """

    def tell(request: Request, page: EndPage, status: int) -> Response:
        return respond(page, status=status, mturk=mturk and _is_judging(request.url.path))

    def missing(request: Request, error: Exception) -> Response:
        if isinstance(error, HTTPException) and error.status_code != 404:  # noqa: PLR2004 - HTTP's
            answer = tell(request, _refused(study), error.status_code)
            answer.headers.update(error.headers or {})
            return answer
        return tell(request, _missing(study), 404)

    def forged(request: Request, _error: Exception) -> Response:
        return tell(request, _unreadable(study), 403)

    def over(request: Request, _error: Exception) -> Response:
        return tell(request, _over(study), 410)

    def gone(request: Request, error: Exception) -> Response:
        if isinstance(error, DatabaseError) and error.code == "unknown-assignment":
            return tell(request, _missing(study), 404)
        _LOG.error("%s failed: %s", request.method, error)  # the address is a token
        answer = tell(request, _unavailable(study), 503)
        answer.headers["Retry-After"] = RETRY_SECONDS
        return answer

    app.add_exception_handler(HTTPException, missing)
    app.add_exception_handler(RequestValidationError, missing)
    app.add_exception_handler(BadTokenError, forged)
    app.add_exception_handler(OldTokenError, over)
    app.add_exception_handler(StoreError, gone)


def _is_judging(path: str) -> bool:
    """Whether an address is one of the judges', and not the organiser's."""
    return path.startswith(("/j/", "/a/"))


def _unavailable(study: Study) -> EndPage:
    """The database does not answer."""
    return EndPage(
        study=study,
        title="We can't reach our records just now",
        paragraphs=(
            "Nothing is lost: every answer that was saved stays saved.",
            "Please load this page again in a moment.",
        ),
    )


@dataclass(frozen=True, slots=True)
class Guard:
    """Adds the headers to every answer, answers where a bug left none, and HEAD as GET.

    Attributes:
        app: what answers.
        study: of the page that tells of a bug.
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
            await send(message)

        try:
            asked = {**scope, "method": "GET"} if head else scope
            await self.app(asked, receive, send_with_headers)
        except Exception:
            _LOG.exception("%s failed", scope["method"])
            if started:
                raise
            mturk = self.mturk and _is_judging(scope["path"])
            answer = respond(_broken(self.study), status=500, mturk=mturk)
            await answer(scope, receive, send_with_headers)


def _missing(study: Study) -> EndPage:
    return EndPage(
        study=study,
        title="There is no such page",
        paragraphs=("Please open the study again with the link that you were given.",),
    )


def _unreadable(study: Study) -> EndPage:
    return EndPage(
        study=study,
        title="This address is not complete",
        paragraphs=(
            "It is not one that we gave out, or a part of it is missing. Nothing was changed.",
            "Please open the study again with the link that you were given: you come back to it.",
        ),
    )


def _over(study: Study) -> EndPage:
    return EndPage(
        study=study,
        title="This address is too old",
        paragraphs=(
            "Your answers are kept, and what you have earned stays yours.",
            "Please open the study again with the link that you were given.",
        ),
    )


def _refused(study: Study) -> EndPage:
    return EndPage(
        study=study,
        title="That could not be read",
        paragraphs=("Nothing was changed. Please go back and try again.",),
    )


def _broken(study: Study) -> EndPage:
    return EndPage(
        study=study,
        title="Something went wrong on our side",
        paragraphs=(
            "Nothing is lost: every answer that was saved stays saved.",
            "Please go back and try again; if it happens again, write to us.",
        ),
    )
