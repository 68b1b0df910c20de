"""Notices to teams: mails that are stored with what they report, and sent by a job.

A notice is written in the transaction of what it is about, so it is neither lost nor sent for
something that did not happen. A server that is killed while it sends may send it twice: `Notice.id`
and `Notice.created` belong into the mail's Message-ID, by which mail programs know that it is the
same. The number alone does not do: it is given again where a notice was removed.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from sqlalchemy import Connection, Row, delete, insert, select, update

from heldout.database.database import Database
from heldout.intake.jobs import Done, Job, JobKind, add_job
from heldout.intake.tables import jobs, notices, teams

NOTICE = "notice"
"""The kind of the job that sends a notice."""

NoticeState = Literal["waiting", "sent", "failed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """A notice to a team.

    Attributes:
        id: of it.
        team: name of the team.
        recipient: mail address.
        kind: what it reports: `accepted`, `failed`, or what the pages add.
        key: what it is about.
        details: values for its text.
        state: whether it was sent.
        created: when it was written, UTC.
        why: why it failed; "" for nothing.
    """

    id: int
    team: str
    recipient: str
    kind: str
    key: str
    details: Mapping[str, Any]
    state: NoticeState
    created: datetime
    why: str


def add_notice(
    connection: Connection,
    team: int,
    kind: str,
    key: str,
    details: Mapping[str, Any],
    *,
    now: datetime,
) -> bool:
    """Write a notice, in the transaction of what it reports.

    Args:
        connection: of a transaction.
        team: id of the team; one without an address gets none.
        kind: what it reports.
        key: what it is about.
        details: values for its text, as JSON has them.
        now: the time, UTC.

    Returns:
        Whether it is new: there is one of a kind and a key.
    """
    recipient = connection.execute(select(teams.c.mail).where(teams.c.id == team)).scalar_one()
    there = select(notices.c.id).where(notices.c.kind == kind, notices.c.key == key)
    if not recipient or connection.execute(there).first() is not None:
        return False
    row = {"team": team, "recipient": recipient, "kind": kind, "key": key, "state": "waiting"}
    row |= {"details": json.dumps(details), "created_at": now, "why": ""}
    added = connection.execute(insert(notices).values(row).returning(notices.c.id)).scalar_one()
    return add_job(connection, NOTICE, str(added), now=now)


def list_notices(database: Database, *, team: int | None = None) -> tuple[Notice, ...]:
    """All notices, or those of a team, in the order in which they were written.

    Raises:
        DatabaseError: see `ErrorCode`.
    """
    wanted = _select().order_by(notices.c.id)
    if team is not None:
        wanted = wanted.where(notices.c.team == team)
    rows = database.read(lambda connection: connection.execute(wanted).all())
    return tuple(_notice(row) for row in rows)


def remove_notices(connection: Connection, *, before: datetime) -> int:
    """Remove notices that were written before some time, each with its job.

    One that still waits goes too: its mail server was not there all the time. SQLite may give its
    number to a later one, which then needs a job of its own.

    Returns:
        How many notices.
    """
    written = select(notices.c.id).where(notices.c.created_at < before)
    old = connection.execute(written).scalars().all()
    for number in old:
        mine = jobs.c.kind == NOTICE, jobs.c.key == str(number)
        connection.execute(delete(jobs).where(*mine))
        connection.execute(delete(notices).where(notices.c.id == number))
    return len(old)


def notice_kind(
    database: Database, send: Callable[[Notice], None], *, clock: Callable[[], datetime]
) -> JobKind:
    """How notices are sent.

    Args:
        database: open.
        send: sends one; what it raises is tried again later, but `InputError` ends it.
        clock: the time, UTC.
    """

    def work(job: Job, _keep: Callable[[], None]) -> Done:
        wanted = _select().where(notices.c.id == int(job.key))
        row = database.read(lambda connection: connection.execute(wanted).one())
        if row.state == "waiting":
            send(_notice(row))
        return Done(write=lambda connection: _end(connection, job, "sent", "", now=clock()))

    def give_up(connection: Connection, job: Job, _code: str, why: str) -> None:
        _end(connection, job, "failed", why, now=clock())

    return JobKind(name=NOTICE, work=work, give_up=give_up)


def _end(connection: Connection, job: Job, state: NoticeState, why: str, *, now: datetime) -> None:
    ended = update(notices).where(notices.c.id == int(job.key))
    connection.execute(ended.values(state=state, ended_at=now, why=why))


def _select() -> Any:
    return select(notices, teams.c.name.label("team_name")).join(
        teams, teams.c.id == notices.c.team
    )


def _notice(row: Row[Any]) -> Notice:
    return Notice(
        id=row.id,
        team=row.team_name,
        recipient=row.recipient,
        kind=row.kind,
        key=row.key,
        details=json.loads(row.details),
        state=row.state,
        created=row.created_at,
        why=row.why,
    )
