"""What pages share that ask one person after the other: forms, signed addresses, the application.

There are no cookies: inside a platform's frame they would not come back. A token stands in the
address and in every form, is signed with the owner's own key, and ends on a day.
"""

import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated
from urllib.parse import parse_qs

import anyio
import msgspec
from fastapi import APIRouter, Depends, FastAPI, Request
from fastapi.responses import PlainTextResponse, RedirectResponse, Response
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.routing import Mount
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp

from heldout.errors import StoreError
from heldout.web.guard import Guard, OldTokenError, add_handlers, network, read_value, sign_value
from heldout.web.pages import Study

_DIGITS = 12
_Seconds = Annotated[int, msgspec.Meta(ge=0, le=99_999_999_999)]
_Milliseconds = Annotated[int, msgspec.Meta(ge=0, le=99_999_999_999_999)]


_BODY_SECONDS = 30.0


async def read_body(request: Request, longest: int) -> bytes:
    """The whole body of a request that is short.

    Args:
        request: what comes.
        longest: most bytes.

    Raises:
        HTTPException: 413 it is longer; 408 it did not come within 30 seconds: who sends it in
            drips keeps a connection from others; 400 the connection broke.
    """
    body = bytearray()
    try:
        with anyio.fail_after(_BODY_SECONDS):
            async for chunk in request.stream():
                body += chunk
                if len(body) > longest:
                    raise HTTPException(413)
    except TimeoutError:
        raise HTTPException(408) from None
    except ClientDisconnect:
        raise HTTPException(400) from None
    return bytes(body)


def _fields_reader(
    longest: int, most: int
) -> Callable[[Request], Awaitable[Mapping[str, Sequence[str]]]]:
    """Reads the fields of a form of at most so many bytes and fields."""

    async def read_fields(request: Request) -> Mapping[str, Sequence[str]]:
        body = await read_body(request, longest)
        try:
            return parse_qs(
                body.decode(), keep_blank_values=True, max_num_fields=most, errors="strict"
            )
        except ValueError:
            raise HTTPException(400) from None

    return read_fields


Fields = Annotated[Mapping[str, Sequence[str]], Depends(_fields_reader(256 << 10, 5_000))]
"""All values of each field of a form with a box for each passage, as a route's argument."""

_FewFields = Annotated[Mapping[str, Sequence[str]], Depends(_fields_reader(64 << 10, 50))]


def _read_last(fields: _FewFields) -> Mapping[str, str]:
    return {name: values[-1] for name, values in fields.items()}


Form = Annotated[Mapping[str, str], Depends(_read_last)]
"""The last value of each field of a short form, as a route's argument."""


def read_count(text: str) -> int | None:
    """A whole number from 0, of at most twelve digits; `None` where it is none."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= _DIGITS else None


class _Pass(msgspec.Struct, frozen=True, kw_only=True, array_like=True, forbid_unknown_fields=True):
    """Whose pages, and until when."""

    owner: str
    expires: _Seconds


class Stamp(msgspec.Struct, frozen=True, kw_only=True, array_like=True, forbid_unknown_fields=True):
    """What a form knew when it was shown.

    Attributes:
        owner: whose it is.
        item: what was asked.
        shown_ms: when the page left the server, milliseconds since 1970 in UTC.
        replaces: revision of the answer that stood then; 0 where there was none.
    """

    owner: str
    item: str
    shown_ms: _Milliseconds
    replaces: Annotated[int, msgspec.Meta(ge=0)]

    @property
    def shown_at(self) -> datetime:
        """When the page left the server, UTC."""
        return datetime.fromtimestamp(self.shown_ms / 1000, UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class PageSigner:
    """Signs and reads the tokens of somebody's pages, and the stamps of their forms.

    Attributes:
        key: the secret.
        pages: which; part of what is signed.
    """

    key: bytes
    pages: str

    def sign_owner(self, owner: str, *, expires: datetime) -> str:
        """The token of somebody's pages; it opens nothing from that time on."""
        value = _Pass(owner=owner, expires=int(expires.timestamp()))
        return sign_value(value, key=self.key, purpose=f"{self.pages}.owner")

    def read_owner(self, token: str, *, now: datetime) -> str:
        """Whose pages a token opens.

        Raises:
            BadTokenError: it was not signed with this key as such a token.
            OldTokenError: it is over.
        """
        found = read_value(token, _Pass, key=self.key, purpose=f"{self.pages}.owner")
        if now.timestamp() >= found.expires:
            raise OldTokenError
        return found.owner

    def sign_stamp(self, stamp: Stamp) -> str:
        """The stamp as a field of a form."""
        return sign_value(stamp, key=self.key, purpose=f"{self.pages}.stamp")

    def read_stamp(self, text: str) -> Stamp:
        """The stamp that a form sent back.

        Raises:
            BadTokenError: it was not signed with this key as a stamp.
        """
        return read_value(text, Stamp, key=self.key, purpose=f"{self.pages}.stamp")


def go_to(address: str) -> Response:
    """On to another page, after a form."""
    return RedirectResponse(address, status_code=303)


def address_of(request: Request) -> str:
    """Whose tries are counted together: an address, of IPv6 a network; "" where it is not known."""
    return network(request.client.host) if request.client else ""


def network_of(request: Request) -> str:
    """As `address_of`, but "" for this machine.

    A server in front that was not named with --proxy calls from here for everybody.
    """
    found = address_of(request)
    return "" if found.startswith("127.") or found == network("::1") else found


_ELSEWHERE = ("cross-site", "same-site")


def refuse_elsewhere(request: Request) -> None:
    """A form that another site sent.

    Raises:
        HTTPException: 403, as the browser says where the form came from.
    """
    if request.headers.get("sec-fetch-site", "") in _ELSEWHERE:
        raise HTTPException(403)


def make_application(
    study: Study,
    routers: Iterable[APIRouter],
    *,
    mounts: Mapping[str, ASGIApp] | None = None,
    mturk: bool = False,
    is_missing: Callable[[StoreError], bool] = lambda _: False,
) -> FastAPI:
    """The application of some pages: style and scripts, `/health`, and pages of what goes wrong.

    Args:
        study: of the pages.
        routers: their addresses.
        mounts: applications that answer below an address, and show their own errors.
        mturk: whether the pages of judges are shown in Mechanical Turk's frame.
        is_missing: whether an error says that what was asked for is not there.
    """
    app = FastAPI(openapi_url=None, redirect_slashes=False)
    app.mount("/static", StaticFiles(packages=[("heldout.web", "static")]), name="static")
    for address, mounted in (mounts or {}).items():
        mount = Mount(address, app=mounted)
        # Its own pattern stops at a line end, and what has one would get a page for an answer.
        mount.path_regex = re.compile(mount.path_regex.pattern, re.DOTALL)
        app.router.routes.append(mount)
    for router in routers:
        app.include_router(router)
    app.add_api_route("/health", lambda: PlainTextResponse("alive"), methods=["GET"])
    add_handlers(app, study, mturk=mturk, is_missing=is_missing)
    app.add_middleware(Guard, study=study, mturk=mturk)
    return app
