"""A port for a server that a test starts as a process of its own."""

import random
import socket

__all__ = ["free_port"]

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
