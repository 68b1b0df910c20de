"""What an operator sees of a server: readiness and a line for each request; no token."""

import asyncio
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from fastapi import APIRouter, FastAPI, Request
from httpx2 import ASGITransport, AsyncClient, Response
from starlette.responses import PlainTextResponse
from test_serve_command import campaign as campaign_folder

from heldout.database.errors import DatabaseError
from heldout.web import health
from heldout.web.forms import make_application
from heldout.web.pages import Study

campaign = campaign_folder
TOKEN = "t0p-secret-token"  # noqa: S105 - made up


def asked(app: Any, method: str, path: str, **options: Any) -> Response:
    async def ask() -> Response:
        transport = ASGITransport(app, raise_app_exceptions=False)
        async with AsyncClient(transport=transport, base_url="http://here") as client:
            return await client.request(method, path, **options)

    return asyncio.run(ask())


def application() -> FastAPI:
    router = APIRouter()

    async def item(token: str, request: Request) -> PlainTextResponse:
        await request.body()
        return PlainTextResponse(token)

    async def broken(token: str) -> PlainTextResponse:
        raise RuntimeError(token)

    router.add_api_route("/j/{token}/item", item, methods=["GET", "POST"])

    async def refused(token: str) -> PlainTextResponse:
        return PlainTextResponse(token, 429, {health.ERROR_CODE: "upload-quota"})

    router.add_api_route("/broken/{token}", broken, methods=["GET"])
    router.add_api_route("/refused/{token}", refused, methods=["GET"])
    app = make_application(Study(name="A study", contact="ada@example.org"), [router])
    inner = FastAPI(openapi_url=None)
    inner.add_api_route("/entries/{token}", item, methods=["GET"])
    app.mount("/api", inner)
    return app


def test_a_request_is_seen_by_its_route_and_never_by_its_address() -> None:
    seen: list[Mapping[str, object]] = []
    app = health.Watched(application(), seen.append)
    answers = [
        asked(app, "GET", f"/j/{TOKEN}/item?worker={TOKEN}"),
        asked(app, "POST", f"/j/{TOKEN}/item", content=b"12345"),
        asked(app, "GET", f"/api/entries/{TOKEN}"),
        asked(app, "GET", "/static/admin.css"),
        asked(app, "GET", f"/nowhere/{TOKEN}"),
        asked(app, "GET", f"/broken/{TOKEN}"),
        asked(app, "HEAD", f"/j/{TOKEN}/item"),
        asked(app, "BREW", f"/j/{TOKEN}/item"),
        asked(app, "GET", f"/refused/{TOKEN}"),
    ]
    assert [tuple(one[key] for key in ("method", "route", "status", "code")) for one in seen] == [
        ("GET", "/j/{token}/item", 200, ""),
        ("POST", "/j/{token}/item", 200, ""),
        ("GET", "/api/entries/{token}", 200, ""),
        ("GET", "/static", 200, ""),
        ("GET", "-", 404, ""),
        ("GET", "/broken/{token}", 500, "server-error"),
        ("HEAD", "-", 200, ""),
        ("other", "/j/{token}/item", 405, ""),
        ("GET", "/refused/{token}", 429, "upload-quota"),
    ]
    assert TOKEN not in repr(seen)
    assert [one["request"] for one in seen] == [
        answer.headers[health.REQUEST_ID] for answer in answers
    ]
    assert len({one["request"] for one in seen}) == len(seen)
    assert seen[0]["sent"] == len(answers[0].content)
    assert [one["received"] for one in seen[:2]] == [0, 5]


def test_a_line_of_the_log_is_json(capsys: pytest.CaptureFixture[str]) -> None:
    asked(health.Watched(application(), health.log_request), "GET", f"/j/{TOKEN}/item")
    (line,) = capsys.readouterr().err.splitlines()
    found = json.loads(line)
    assert found.keys() == {
        *("at", "request", "method", "route", "status", "ms", "received", "sent", "code")
    }
    assert TOKEN not in line


def test_ready_says_what_cannot_be_used_and_looks_once_a_second() -> None:
    now, looked = [100.0], [0]

    def fail() -> str:
        looked[0] += 1
        raise DatabaseError("database-lost", f"postgresql://ada:{TOKEN}@here cannot be reached")

    app = application()
    readiness = health.Readiness(
        {"database": fail, "uploads": lambda: health.OK}, clock=lambda: now[0]
    )
    app.include_router(health.ready_route(readiness))
    for _ in range(3):
        answer = asked(app, "GET", "/ready")
        checks = {"database": "database-lost", "uploads": "ok"}
        assert (answer.status_code, answer.json()) == (503, {"ready": False, "checks": checks})
    assert looked == [1]
    now[0] += 1.5
    asked(app, "GET", "/ready")
    assert looked == [2]
    assert asked(app, "GET", "/health").text == "alive"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_cannot_be_written_to_is_not_ready(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    assert health.check_folder(tmp_path) == "folder-read-only"


def test_a_folder_that_is_gone_is_not_ready(tmp_path: Path) -> None:
    assert health.check_folder(tmp_path / "gone") == "folder-missing"
