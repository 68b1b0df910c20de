"""What an operator sees of a server: whether it is ready, and a line for each request.

Addresses and query strings are tokens, and people's own. So a request is known by its route as it
is declared (`/j/{code}`), never by what was asked for, and by a random id, which the answer has too
(`X-Request-Id`).
"""

import json
import os
import secrets
import shutil
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from threading import Lock

from fastapi import APIRouter
from fastapi.responses import JSONResponse
from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from heldout.errors import StoreError

REQUEST_ID = "X-Request-Id"
"""Header of every answer: by it a line of the log is found."""

ERROR_CODE = "X-Error-Code"
"""Header of an answer that says why something was not done: a code of docs/reference/errors.md."""

OK = "ok"
"""What a check gives where nothing is wrong."""

_FRESH_SECONDS = 1.0
_LEAST_FREE = 1 << 30
_METHODS = frozenset(("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"))
_UNKNOWN = "-"
_UNAVAILABLE = 503

Check = Callable[[], str]
"""Looks at something that a server needs: `OK`, or a short code of what is wrong."""


def check_folder(folder: Path) -> str:
    """Return whether files can be put into a folder, and its disk has a gibibyte free."""
    if not folder.is_dir():
        return "folder-missing"
    if not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
        return "folder-read-only"
    return OK if shutil.disk_usage(folder).free >= _LEAST_FREE else "disk-full"


@dataclass(slots=True)
class Readiness:
    """What a server needs, looked at no more than once a second, however often somebody asks.

    Attributes:
        checks: name -> check.
        clock: seconds.
    """

    checks: Mapping[str, Check]
    clock: Callable[[], float] = time.monotonic
    _at: float = -_FRESH_SECONDS
    _found: Mapping[str, str] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)

    def look(self) -> Mapping[str, str]:
        """Name -> `OK`, or the code of what is wrong."""
        with self._lock:
            if self.clock() - self._at >= _FRESH_SECONDS:
                self._found = {name: _try(check) for name, check in self.checks.items()}
                self._at = self.clock()
            return self._found


def _try(check: Check) -> str:
    try:
        return check()
    except StoreError as error:
        return str(getattr(error, "code", "store-error"))


def ready_route(readiness: Readiness) -> APIRouter:
    """`/ready`: the server can work; else 503, with a code for each part that it cannot use.

    That the process answers at all, every application says at `/health`.
    """
    router = APIRouter()

    def ready() -> JSONResponse:
        found = readiness.look()
        well = all(state == OK for state in found.values())
        answer = {"ready": well, "checks": dict(found)}
        return JSONResponse(answer, status_code=200 if well else _UNAVAILABLE)

    router.add_api_route("/ready", ready, methods=["GET"], include_in_schema=False)
    return router


@dataclass(frozen=True, slots=True)
class Watched:
    """An application whose requests are seen.

    Attributes:
        app: what answers.
        watch: takes each request when it is over: its random id (`request`), `method` ("other" for
            one that no page has), `route` as it is declared ("-" where there is none), `status`
            (500 where none was begun), `ms` until its last byte was handed over, bytes of bodies
            `received` and `sent`, and an error `code`, "" where the answer has none.
    """

    app: ASGIApp
    watch: Callable[[Mapping[str, object]], None]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        began, request = time.perf_counter(), secrets.token_hex(8)
        status, received, sent, code = 500, 0, 0, ""
        root = str(scope.get("root_path", ""))

        async def count_received() -> Message:
            nonlocal received
            message = await receive()
            received += len(message.get("body", b""))
            return message

        async def count_sent(message: Message) -> None:
            nonlocal status, sent, code
            if message["type"] == "http.response.start":
                status, headers = message["status"], MutableHeaders(scope=message)
                headers[REQUEST_ID] = request
                code = headers.get(ERROR_CODE, "")
            sent += len(message.get("body", b""))
            await send(message)

        try:
            await self.app(scope, count_received, count_sent)
        finally:
            self.watch(
                {
                    "request": request,
                    "method": scope["method"] if scope["method"] in _METHODS else "other",
                    "route": _route_of(scope, root),
                    "status": status,
                    "ms": round((time.perf_counter() - began) * 1000, 1),
                    "received": received,
                    "sent": sent,
                    "code": code,
                }
            )


def _route_of(scope: Scope, root: str) -> str:
    """The route as it is declared: what was asked for may be a token.

    Args:
        scope: after it was answered: routers have put into it what they found.
        root: path of the whole application, before it was answered.
    """
    mounted = str(scope.get("root_path", "")).removeprefix(root)
    route = scope.get("route")
    return (mounted if route is None else f"{mounted}{route.path}") or _UNKNOWN


def log_request(seen: Mapping[str, object]) -> None:
    """Write a request to standard error, as a line of JSON."""
    at = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    line = json.dumps({"at": at, **seen}, separators=(",", ":"))
    print(line, file=sys.stderr, flush=True)  # noqa: T201 - the log
