"""Connections to the pages: so many, from one address half of them, and none that says nothing.

uvicorn waits for a request for ever, takes connections until the process has no handle left, and
then logs a line for each that it cannot take. Here each has some seconds for the head of a request,
what goes beyond the limits is closed at once, and the log has so many lines a minute.
"""

import asyncio
import logging
import time
from collections.abc import Mapping
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

__all__ = ["Connection", "QuietLog", "server_options"]

_BACKLOG = 256


class Connection(H11Protocol):
    """A connection of uvicorn's that ends where it keeps a place and asks nothing.

    Attributes:
        most: connections of a process.
        most_of_one: those of one address; a server in front, which is named, is not counted.
        head_seconds: until the head of a request has come.
        front: address of the server in front, "" without.
    """

    most = 400
    most_of_one = 200
    head_seconds = 10.0
    front = ""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Take it, or close it where there are too many."""
        self._late: asyncio.TimerHandle | None = None
        peer = transport.get_extra_info("peername")
        host = peer[0] if peer else ""
        same = sum(one.client is not None and one.client[0] == host for one in self._others())
        crowded = host != self.front and same >= self.most_of_one
        super().connection_made(transport)
        if crowded or len(self.connections) > self.most:
            transport.abort()
        else:
            self._watch()

    def data_received(self, data: bytes) -> None:
        """Go on with it."""
        super().data_received(data)
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        """Let go of it."""
        self._stop_watching()
        super().connection_lost(exc)

    def _others(self) -> list["Connection"]:
        return [one for one in self.connections if isinstance(one, Connection)]

    def _waits(self) -> bool:
        """Whether no request of it is under way."""
        cycle = getattr(self, "cycle", None)  # None before the first, whatever its type says
        return cycle is None or cycle.response_complete

    def _watch(self) -> None:
        if not self._waits():
            self._stop_watching()
        elif self._late is None:
            self._late = self.loop.call_later(self.head_seconds, self._end)

    def _stop_watching(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None

    def _end(self) -> None:
        self._late = None
        if self._waits():
            self.transport.abort()


class QuietLog(logging.Filter):
    """Lets so many lines a minute through, and then one that says that there are more."""

    def __init__(self, most: int = 60) -> None:
        super().__init__()
        self._most = most
        self._minute = -1
        self._count = 0

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether a line is written."""
        minute = int(time.monotonic() // 60)
        if minute != self._minute:
            self._minute, self._count = minute, 0
        self._count += 1
        if self._count == self._most + 1:
            record.msg, record.args = "more lines of this minute are left out", ()
            record.exc_info = None
        return self._count <= self._most + 1


def server_options() -> Mapping[str, Any]:
    """What every server of heldout's pages gives uvicorn; worker processes get it by pickle."""
    quiet = {"()": "heldout.web.connections.QuietLog"}
    lines = {"class": "logging.StreamHandler", "formatter": "plain", "filters": ["quiet"]}
    return {
        "http": Connection,
        "backlog": _BACKLOG,
        "access_log": False,
        "server_header": False,
        "log_config": {
            "version": 1,
            "disable_existing_loggers": False,
            "filters": {"quiet": quiet},
            "formatters": {"plain": {"format": "%(levelname)s: %(message)s"}},
            "handlers": {"lines": lines},
            "loggers": {
                name: {"handlers": ["lines"], "level": "WARNING", "propagate": False}
                for name in ("uvicorn", "asyncio")
            },
        },
    }
