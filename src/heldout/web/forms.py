"""Forms of every page, whose tries are counted together, and the application of some pages."""

import re
from collections.abc import Callable, Iterable, Mapping
from ipaddress import ip_address, ip_network
from typing import Annotated
from urllib.parse import parse_qs

import anyio
from fastapi import APIRouter, Depends, FastAPI, Request
from fastapi.responses import PlainTextResponse, RedirectResponse, Response
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.routing import Mount
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp

from heldout.errors import StoreError
from heldout.web import guard, pages

_DIGITS = 12
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


_LONGEST_FORM = 64 << 10
_MOST_FIELDS = 1_000


async def _read_fields(request: Request) -> Mapping[str, str]:
    body = await read_body(request, _LONGEST_FORM)
    try:
        fields = parse_qs(
            body.decode(), keep_blank_values=True, max_num_fields=_MOST_FIELDS, errors="strict"
        )
    except ValueError:
        raise HTTPException(400) from None
    return {name: values[-1] for name, values in fields.items()}


Form = Annotated[Mapping[str, str], Depends(_read_fields)]
"""The last value of each field of a form, as a route's argument."""


def read_count(text: str) -> int | None:
    """A whole number from 0, of at most twelve digits; `None` where it is none."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= _DIGITS else None


def go_to(address: str) -> Response:
    """On to another page, after a form."""
    return RedirectResponse(address, status_code=303)


def network(host: str) -> str:
    """Return whose tries are counted together: an IPv4 address, of IPv6 a network; else `host`."""
    try:
        found = ip_address(host)
    except ValueError:
        return host
    found = getattr(found, "ipv4_mapped", None) or found
    return str(ip_network((found, 64 if found.version == 6 else 32), strict=False))  # noqa: PLR2004 - IPv6


def address_of(request: Request) -> str:
    """Return whose tries are counted together: an address, of IPv6 a network; "" if unknown."""
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
    study: pages.Study,
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
    guard.add_handlers(app, study, mturk=mturk, is_missing=is_missing)
    app.add_middleware(guard.Guard, study=study, mturk=mturk)
    return app
