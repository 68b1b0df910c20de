"""Notices to teams: mails that are stored with what they report, and sent by the worker.

A notice is written in the transaction of what it is about, so it is neither lost nor sent for
something that did not happen. A server that is killed while it sends may send it twice: `Notice.id`
and `Notice.created` belong into the mail's Message-ID, by which mail programs know that it is the
same. The number alone does not do: it is given again where a notice was removed.
"""

from collections.abc import Callable
from datetime import datetime
from typing import Literal

import msgspec
from sqlalchemy import Connection, delete, insert, select, update

from heldout.database.database import Database
from heldout.errors import InputError
from heldout.intake.tables import NAMED, notices, teams

NoticeState = Literal["waiting", "sent", "failed"]


class Notice(msgspec.Struct, frozen=True, kw_only=True, rename=NAMED):
    """A notice to a team.

    Attributes:
        id: of it.
        recipient: mail address.
        owner: id of the submission, or handle of the team that registers.
        outcome: what became of it, in words.
        state: whether it was sent.
        created: when it was written, UTC.
        why: why it failed; "" for nothing.
    """

    id: int
    recipient: str
    owner: str
    outcome: str
    state: NoticeState
    created: datetime
    why: str


def add_notice(
    connection: Connection,
    team: int,
    *,
    kind: str,
    key: str,
    owner: str,
    outcome: str,
    now: datetime,
) -> None:
    """Write a notice, in the transaction of what it reports; there is one of a kind and a key.

    Args:
        connection: of a transaction.
        team: id of the team; one without an address gets none.
        kind: what it reports.
        key: what it is about.
        owner: id of the submission, or handle of the team that registers.
        outcome: what became of it, in words.
        now: the time, UTC.
    """
    recipient = connection.execute(select(teams.c.mail).where(teams.c.id == team)).scalar_one()
    there = select(notices.c.id).where(notices.c.kind == kind, notices.c.key == key)
    if not recipient or connection.execute(there).first() is not None:
        return
    row = {"team": team, "recipient": recipient, "kind": kind, "key": key, "state": "waiting"}
    row |= {"owner": owner, "outcome": outcome, "created_at": now, "why": ""}
    connection.execute(insert(notices).values(row))


def list_notices(database: Database, *states: NoticeState) -> tuple[Notice, ...]:
    """Return the notices in some states, or all, in the order in which they were written.

    Raises:
        DatabaseError: see `ErrorCode`.
    """
    wanted = select(notices).order_by(notices.c.id)
    if states:
        wanted = wanted.where(notices.c.state.in_(states))
    rows = database.read(lambda connection: connection.execute(wanted).all())
    return tuple(msgspec.convert(row, Notice, from_attributes=True) for row in rows)


def send_notices(database: Database, send: Callable[[Notice], None], *, now: datetime) -> None:
    """Send every notice that waits; one whose sending raises `InputError` has failed.

    Args:
        database: open.
        send: sends one.
        now: the time, UTC.

    Raises:
        StoreError: the mail server is away; those that are left wait.
        DatabaseError: see `ErrorCode`.
    """
    for notice in list_notices(database, "waiting"):
        values = {"state": "sent", "ended_at": now}
        try:
            send(notice)
        except InputError as error:
            values |= {"state": "failed", "why": str(error)}
        ended = update(notices).where(notices.c.id == notice.id).values(values)
        database.write(lambda connection, ended=ended: connection.execute(ended))  # type: ignore[misc]  # a default binds it


def remove_notices(connection: Connection, *, before: datetime) -> int:
    """Remove notices that were written before some time, sent or not; return their number."""
    old = delete(notices).where(notices.c.created_at < before)
    return connection.execute(old).rowcount
