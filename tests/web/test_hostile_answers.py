"""Servers that never end the head of an answer, against every client that heldout has."""

import contextlib
import socket
import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime

import httpx2
import pytest
from openid_provider import CLIENT, SECRET

from heldout.board.audit import timestamps
from heldout.board.participant import server
from heldout.board.store import forges as hosted
from heldout.errors import PushError, StoreError
from heldout.intake import sign_in
from heldout.judging.models.judges import ModelClient

_LONGEST = 0.5


def _ask_authority(url: str) -> None:
    with pytest.raises(StoreError, match=r"no time stamp within 0\.5 s"):
        timestamps.ask_authority(url, b"request")


def _ask_server(url: str) -> None:
    board = server.Server(
        address=url, token="t" * 20, connect=server.new_client, sleep=lambda _seconds: None
    )
    with pytest.raises(PushError, match="cannot be reached"):
        board.describe("20261102-one")


def _ask_forge(url: str) -> None:
    with httpx2.Client() as client:
        here = hosted.Rest(
            client=client, root=url, headers={}, token="", clock=time.time, sleep=lambda _s: None
        )
        with pytest.raises(StoreError, match="asked 4 times; the forge did not answer in time"):
            here.get("/x", dict[str, str])


def _ask_provider(url: str) -> None:
    provider = sign_in.Provider(
        key="x", title="X", client_id=CLIENT, client_secret=SECRET, issuer=url
    )
    with httpx2.Client() as client:
        here = sign_in.SignIn(provider=provider, client=client, back=f"{url}/back")
        with pytest.raises(StoreError, match="too slowly"):
            here.address(sign_in.new_flow(provider, ties=True))


def _ask_model(url: str) -> None:
    with httpx2.Client() as client:
        model = ModelClient(
            client=client,
            url=url,
            model="m",
            seconds=_LONGEST,
            now=lambda: datetime.now(UTC),
            tick=time.monotonic,
            sleep=lambda _seconds: None,
        )
        assert model([{"role": "user", "content": "x"}]).failure == "timeout"


CLIENTS = (_ask_authority, _ask_server, _ask_forge, _ask_provider, _ask_model)
HEADS = {
    "drips": (b"HTTP/1.1 200 OK\r\n", b"x", 0.02),
    "heads without end": (b"", b"HTTP/1.1 100 Continue\r\n\r\n", 0.001),
}


@contextlib.contextmanager
def _serving(head: str) -> Iterator[str]:
    """The address of a server that begins a head, goes on with it, and never ends it."""
    first, more, pause = HEADS[head]
    ended = threading.Event()
    listening = socket.create_server(("127.0.0.1", 0))

    def answer(connection: socket.socket) -> None:
        with connection, contextlib.suppress(OSError):
            connection.sendall(first)
            while not ended.wait(pause):
                connection.sendall(more)

    def accept() -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = listening.accept()
                threading.Thread(target=answer, args=(connection,), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    finally:
        ended.set()
        listening.shutdown(socket.SHUT_RDWR)
        listening.close()


@pytest.mark.parametrize("head", HEADS)
@pytest.mark.parametrize("ask", CLIENTS)
def test_a_head_that_does_not_end_is_given_up(
    monkeypatch: pytest.MonkeyPatch, ask: Callable[[str], None], head: str
) -> None:
    monkeypatch.setattr(timestamps, "_PATIENCE", _LONGEST)
    monkeypatch.setattr(server, "_MOST_SECONDS", _LONGEST)
    monkeypatch.setattr(hosted, "_SECONDS", _LONGEST)
    monkeypatch.setattr(sign_in, "_SECONDS", _LONGEST)
    began = time.monotonic()
    with _serving(head) as url:
        ask(url)
    assert time.monotonic() - began < 20
