"""Connections that keep places: idle ones, slow ones, and very many from one address."""

import asyncio
import contextlib
import ctypes
import logging
import pickle
import re
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from http.client import HTTPConnection
from pathlib import Path

import anyio
import httpx2
import pytest
from fastapi import FastAPI, Request
from fastapi.responses import PlainTextResponse
from judging_stage import Stages
from starlette.types import Message, Send

from heldout.cli.serving import run_pages, served_app
from heldout.web import forms
from heldout.web.forms import network_of
from heldout.web.guard import Connection, Guard, QuietLog, network, server_options
from heldout.web.pages import Study

Serve = Callable[..., tuple[str, int]]
LARGE = 1 << 24
LONGER = b"x" * (5 << 20)  # than the buffers of a connection


def take_form(fields: forms.Form) -> PlainTextResponse:
    return PlainTextResponse(str(len(fields)))


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Serve]:
    with Stages(tmp_path) as stages:

        def start(**limits: object) -> tuple[str, int]:
            app = FastAPI()
            app.add_api_route("/health", lambda: PlainTextResponse("alive"), methods=["GET"])
            app.add_api_route("/form", take_form, methods=["POST"])
            app.add_api_route("/large", lambda: PlainTextResponse(b"x" * LARGE), methods=["GET"])
            app.add_api_route("/longer", lambda: PlainTextResponse(LONGER), methods=["GET"])
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


def test_an_answer_does_not_wait_for_its_head_to_be_acknowledged(serve: Serve) -> None:
    """The listener is one as uvicorn makes it for worker processes: asyncio leaves it as it is."""
    seen: list[int] = []

    def made(self: Connection, transport: asyncio.Transport) -> None:
        Connection.connection_made(self, transport)
        line = transport.get_extra_info("socket")
        seen.append(line.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))

    assert is_alive(serve(connection_made=made))
    assert seen == [1]


HEAPS = """
import ctypes, threading
from heldout.web.guard import share_one_heap

share_one_heap()
libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
together = threading.Barrier(12)


def take():
    together.wait()
    taken[threading.get_ident()] = libc.malloc(100_000)
    together.wait()


taken = {}
threads = [threading.Thread(target=take) for _ in range(12)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
libc.malloc_stats()
libc.free.argtypes = [ctypes.c_void_p]
libc.free(libc.malloc(8 << 20))
libc.malloc(4 << 20)
libc.malloc_stats()
"""


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "malloc_stats"), reason="another C library")
def test_threads_take_their_memory_from_one_heap() -> None:
    """Without it they have twelve, and each keeps the most that it ever had.

    A large block is not taken from it, also after one as large was given back.
    """
    done = subprocess.run([sys.executable, "-c", HEAPS], capture_output=True, text=True, check=True)
    before, after = re.findall(r"Arena 0:\s+system bytes\s+=\s+(\d+)", done.stderr)
    assert "Arena 1:" not in done.stderr
    assert int(after) - int(before) < 1 << 20


def test_a_worker_process_shares_one_heap_before_all_else(monkeypatch: pytest.MonkeyPatch) -> None:
    class Called(Exception):  # noqa: N818 - ends the call
        pass

    def share() -> None:
        raise Called

    monkeypatch.setattr("heldout.web.guard.share_one_heap", share)
    with pytest.raises(Called):
        served_app()


GARBAGE = """
import gc
from heldout.web.guard import collect_garbage_often


class Ring:
    here = most = 0

    def __init__(self):
        self.me = self
        Ring.here += 1
        Ring.most = max(Ring.most, Ring.here)

    def __del__(self):
        Ring.here -= 1


gc.set_threshold(50_000, 20, 20)
collect_garbage_often()
for _ in range(40_000):
    Ring()
print(Ring.most)
"""


def test_a_server_holds_little_garbage() -> None:
    """Commands look for it seldom: the program of the server is one of them."""
    done = subprocess.run(
        [sys.executable, "-c", GARBAGE], capture_output=True, text=True, check=True
    )
    assert int(done.stdout) < 2_000


def test_a_worker_process_looks_for_garbage_once_all_is_loaded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    called: list[str] = []
    monkeypatch.setattr("heldout.web.guard.share_one_heap", lambda: called.append("heap"))
    monkeypatch.setattr("heldout.web.guard.collect_garbage_often", lambda: called.append("garbage"))

    def make() -> tuple[FastAPI, dict[str, Callable[[], str]]]:
        called.append("pages")
        return FastAPI(), {}

    monkeypatch.setattr("heldout.cli.serving._make_pages", make)
    served_app()
    assert called == ["heap", "pages", "garbage"]


def test_pages_of_one_process_look_after_its_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """As those of `heldout survive triage --serve`."""
    called: list[str] = []
    for name in ("share_one_heap", "collect_garbage_often"):
        monkeypatch.setattr(f"heldout.web.guard.{name}", partial(called.append, name))
    monkeypatch.setattr("uvicorn.run", lambda *_, **__: called.append("run"))
    run_pages(FastAPI(), "127.0.0.1", 8000)
    assert called == ["share_one_heap", "collect_garbage_often", "run"]


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


SAID = {
    "nothing": b"",
    "half a head": b"GET /health HTTP/1.1\r\nX: ",
    "half a form": b"POST /form HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\ntoken=",
    "a head whose answer is not read": b"GET /longer HTTP/1.1\r\nHost: x\r\n\r\n",
}


@pytest.mark.parametrize("said", SAID)
def test_two_addresses_deny_no_third_whatever_their_connections_wait_for(
    serve: Serve, said: str
) -> None:
    """60 connections for 40 slots; each request of a third address is answered."""
    address = serve(most=40, most_of_one=20)
    with ExitStack() as held:
        lines = []
        for number in range(60):
            line = held.enter_context(socket.socket())
            line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 12)
            line.bind((f"127.0.0.{2 + number % 2}", 0))
            line.connect(address)
            with contextlib.suppress(ConnectionError):
                line.sendall(SAID[said])
            lines.append(line)
        for _ in range(5):
            assert is_alive(address)


def test_a_busy_address_keeps_what_it_asked_and_loses_what_is_idle(serve: Serve) -> None:
    """Behind one address are many people: the idle connections of one deny no other of them."""
    address = serve(most=20, most_of_one=10)
    with ExitStack() as held:
        for _ in range(30):
            held.enter_context(socket.create_connection(address))
        for _ in range(5):
            assert is_alive(address)


def test_a_form_that_comes_in_drips_is_ended(
    serve: Serve, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(forms, "_BODY_SECONDS", 0.3)
    address = serve()
    head = b"POST /form HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n"
    with socket.create_connection(address) as line:
        line.sendall(head + b"token=")
        line.settimeout(10)
        assert line.recv(100).startswith(b"HTTP/1.1 408")
    with socket.create_connection(address) as line:
        line.sendall(head)
    assert is_alive(address)
    assert not caplog.records  # a connection that breaks is no bug of ours


def read_slowly(address: tuple[str, int], *, pause: float) -> int:
    """Bytes of the large answer until it ends; nothing is read for a while at first."""
    with socket.socket() as line:
        if pause:
            line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 13)
        line.settimeout(10)
        line.connect(address)
        line.sendall(b"GET /large HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        time.sleep(pause)
        read = 0
        with contextlib.suppress(ConnectionError):
            while data := line.recv(1 << 20):
                read += len(data)
        return read


def test_who_reads_nothing_of_an_answer_is_let_go(serve: Serve) -> None:
    """Else each keeps a connection from others for ever, and the answer in memory."""
    address = serve(read_seconds=0.2)
    assert read_slowly(address, pause=1.0) < LARGE
    assert read_slowly(address, pause=0.0) > LARGE


def test_a_long_answer_is_handed_over_in_pieces() -> None:
    data = bytes(range(256)) * 1000

    async def answer(_scope: object, _receive: object, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": data})

    sent: list[Message] = []

    async def receive() -> Message:
        return {"type": "http.request", "body": b""}

    async def keep(message: Message) -> None:
        sent.append(message)

    guarded = Guard(app=answer, study=Study(name="x"))
    anyio.run(guarded, {"type": "http", "method": "GET", "path": "/"}, receive, keep)
    bodies = [message for message in sent if message["type"] == "http.response.body"]
    assert max(len(one["body"]) for one in bodies) <= 1 << 16
    assert b"".join(one["body"] for one in bodies) == data
    assert [one.get("more_body", False) for one in bodies] == [True] * (len(bodies) - 1) + [False]


@pytest.mark.parametrize(
    ("host", "counted"),
    [
        ("192.0.2.7", "192.0.2.7/32"),
        ("::ffff:192.0.2.7", "192.0.2.7/32"),
        ("2001:db8::1", "2001:db8::/64"),
        ("2001:db8::ffff:2", "2001:db8::/64"),
        ("testclient", "testclient"),
        ("127.0.0.9", ""),
        ("::1", ""),
        ("::ffff:127.0.0.1", ""),
    ],
)
def test_an_address_is_counted_as_one_machine_or_one_network(host: str, counted: str) -> None:
    """IPv4 that comes as IPv6 is no common network: one sender would use up everybody's slots."""
    request = Request({"type": "http", "client": (host, 1)})
    assert network_of(request) == counted
    assert not counted or network(host) == counted


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
