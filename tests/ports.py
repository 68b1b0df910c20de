"""A port for a server that a test starts as a process of its own, and the wait for it."""

import random
import socket
import subprocess
import time
from typing import Any

import httpx2
import pytest

__all__ = ["await_server", "free_port"]

_BELOW_CLIENTS = range(10_000, 32_000)
"""Systems give ports above these to whoever calls out: none is taken before the server has it."""


def free_port() -> int:
    """A port of this machine that nobody listens at."""
    while True:
        port = random.SystemRandom().choice(_BELOW_CLIENTS)
        try:
            socket.create_server(("127.0.0.1", port)).close()
        except OSError:
            continue
        return port


def await_server(client: httpx2.Client, process: "subprocess.Popen[Any]") -> None:
    """Return once the server answers; it must not have ended."""
    for _ in range(2400):
        try:
            if client.get("/health").text == "alive":
                return
        except httpx2.TransportError:
            assert process.poll() is None, "it has ended"
            time.sleep(0.05)
    pytest.fail("the server does not answer")
