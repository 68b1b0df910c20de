"""Connections that keep places: idle ones, slow ones, and very many from one address."""

import contextlib
import logging
import pickle
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from http.client import HTTPConnection
from pathlib import Path

import httpx2
import pytest
from fastapi import FastAPI
from fastapi.responses import PlainTextResponse
from judging_stage import Stages

from heldout.web.guard import Connection, QuietLog, server_options

Serve = Callable[..., tuple[str, int]]


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Serve]:
    with Stages(tmp_path) as stages:

        def start(**limits: object) -> tuple[str, int]:
            app = FastAPI()
            app.add_api_route("/health", lambda: PlainTextResponse("alive"), methods=["GET"])
            kind = type("Limited", (Connection,), limits)
            found = httpx2.URL(stages.serve(app, http=kind))
            return found.host, found.port or 0

        yield start


def is_alive(address: tuple[str, int]) -> bool:
    try:
        answer = httpx2.get(f"http://{address[0]}:{address[1]}/health", timeout=5)
    except httpx2.HTTPError:
        return False
    return answer.text == "alive"


def is_closed(line: socket.socket, seconds: float) -> bool:
    line.settimeout(seconds)
    try:
        return line.recv(1) == b""
    except ConnectionError:
        return True
    except TimeoutError:
        return False


def test_a_connection_that_asks_nothing_is_closed(serve: Serve) -> None:
    address = serve(head_seconds=0.3)
    for said in (b"", b"GET /health HTTP/1.1\r\nHost: x\r\n"):
        with socket.create_connection(address) as line:
            line.sendall(said)
            assert is_closed(line, 10)


def test_a_head_that_comes_in_drips_is_closed(serve: Serve) -> None:
    address = serve(head_seconds=0.4)
    with socket.create_connection(address) as line, contextlib.suppress(OSError):
        for byte in b"GET /health HTTP/1.1\r\nX: " + b"x" * 40:
            line.sendall(bytes([byte]))
            time.sleep(0.02)
        assert is_closed(line, 0.1)


def test_a_second_request_has_its_own_time(serve: Serve) -> None:
    address = serve(head_seconds=2.0)
    with contextlib.closing(HTTPConnection(*address, timeout=10)) as line:
        line.connect()
        held = line.sock
        for _ in range(3):
            line.request("GET", "/health")
            assert line.getresponse().read() == b"alive"
            assert line.sock is held
            time.sleep(1.1)


def test_idle_connections_of_one_address_leave_places(serve: Serve) -> None:
    """What goes beyond is closed at once; when the idle ones are over, everybody is served."""
    address = serve(most=20, most_of_one=10, head_seconds=3)
    with ExitStack() as held:
        lines = [held.enter_context(socket.create_connection(address)) for _ in range(40)]
        end = time.monotonic() + 20
        while (closed := sum(is_closed(line, 0.01) for line in lines)) < 30:
            assert time.monotonic() < end
        assert closed == 30
        while not is_alive(address):
            assert time.monotonic() < end
            time.sleep(0.1)


def test_a_server_in_front_is_no_one_address(serve: Serve) -> None:
    address = serve(most=20, most_of_one=2, front="127.0.0.1")
    with ExitStack() as held:
        lines = [held.enter_context(socket.create_connection(address)) for _ in range(10)]
        time.sleep(0.2)
        assert not any(is_closed(line, 0.01) for line in lines)
        assert is_alive(address)


def test_the_log_has_so_many_lines_a_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    quiet = QuietLog(most=3)

    def line(text: str) -> str | None:
        record = logging.LogRecord("x", logging.WARNING, "", 0, text, (), None)
        return record.getMessage() if quiet.filter(record) else None

    said = [line(str(number)) for number in range(6)]
    assert said == ["0", "1", "2", "more lines of this minute are left out", None, None]
    now[0] = 61.0
    assert line("again") == "again"


def test_the_servers_have_these_limits() -> None:
    options = server_options()
    assert options["http"] is Connection
    again = pickle.loads(pickle.dumps(options))  # noqa: S301 - our own, as for worker processes
    assert again == options
