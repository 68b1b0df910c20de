"""The log of a campaign: what happened to assignments, when; only added to."""

from datetime import datetime
from typing import Literal

from sqlalchemy import Connection, insert

from heldout.store.judging.tables import events

__all__ = ["EventKind", "note"]

EventKind = Literal[
    "loaded",
    "consented",
    "resumed",
    "copied",
    "submitted",
    "exited",
    "expired",
    "excluded",
    "paid",
    "launched",
    "paused",
    "signed-out",
]
"""`copied`: the task was given to another worker. `excluded`: failed tests; what counts no more.
`launched`, `paused`, `signed-out`: the organiser did (see `organiser`)."""


def note(
    connection: Connection,
    kind: EventKind,
    *,
    at: datetime,
    assignment: int | None = None,
    text: str = "",
) -> None:
    """Add an event."""
    row = {"at": at, "kind": kind, "assignment": assignment, "note": text}
    connection.execute(insert(events).values(row))
