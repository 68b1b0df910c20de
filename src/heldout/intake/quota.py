"""How much of its quota a team has used: by the board's public log, and by uploads beside it.

The window slides by the second, as the policy's does (`board.policy.checks`). The public log says
of a submission that it waits, counts or was given back; for those that it does not know yet the
upload counts from the moment on at which all of it was here. Whose an undecided or embargoed
submission is, the log does not show; the upload does. The organiser's own check has the last word.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from sqlalchemy import Connection, select

from heldout.board.log.history import History
from heldout.board.policy import checks
from heldout.board.rules.spec import BoardSpec
from heldout.errors import InputError, plural
from heldout.intake.tables import uploads


@dataclass(frozen=True, slots=True, kw_only=True)
class Quota:
    """A board's quota for one team, with what its public log says.

    Attributes:
        limit: submissions in a window.
        window: its length.
        counted: submission -> time, of those that the log counts for the team.
        received: submission -> official time, of all that the log knows.
        returned: those of them that use no quota: refused, or withdrawn before publication.
        late: first moment after the last day of a one-shot board, from which those after it are
            counted apart; `None` for any other.
    """

    limit: int
    window: timedelta
    counted: Mapping[str, datetime] = field(default_factory=dict)
    received: Mapping[str, datetime] = field(default_factory=dict)
    returned: Collection[str] = ()
    late: datetime | None = None


def quota_of(history: History, team: str, spec: BoardSpec, *, now: datetime) -> Quota:
    """The quota of a team at a board.

    Args:
        history: by the public log.
        team: its name.
        spec: the rules.
        now: the time, UTC.
    """
    known = history.submissions.values()
    return Quota(
        limit=spec.policy.quota,
        window=checks.quota_window(spec),
        counted={one.id: one.received for one in checks.counted(history, team, spec, at=now)},
        received={one.id: one.received for one in known},
        returned=frozenset(
            one.id for one in known if not one.pending and one.status != "published"
        ),
        late=checks.after_deadline(spec),
    )


def quota_state(
    connection: Connection, team: int, quota: Quota, *, now: datetime
) -> checks.QuotaState:
    """Return what a team has used at a moment, and when it may submit again.

    Args:
        connection: of a transaction; to take quota by it, one that keeps others out.
        team: its id.
        quota: of the board, for the team.
        now: the moment, UTC.
    """
    rows = connection.execute(
        select(uploads.c.owner, uploads.c.completed_at).where(
            uploads.c.team == team,
            uploads.c.kind == "submission",
            uploads.c.state.in_(("complete", "accepted")),
        )
    )
    own = {
        row.owner: quota.received.get(row.owner, row.completed_at)
        for row in rows
        if row.owner not in quota.returned
    }
    late = quota.late
    times = {
        name: at
        for name, at in {**own, **quota.counted}.items()
        if late is None or (at < late) == (now < late)
    }
    again = checks.next_allowed(
        list(times.values()), now=now, window=quota.window, limit=quota.limit
    )
    since = now - quota.window
    if late is not None and now < late:
        since, again = late - quota.window, again if again <= now else late
    inside = sorted((at, name) for name, at in times.items() if since < at <= now)
    return checks.QuotaState(
        used=tuple(name for _, name in inside),
        limit=quota.limit,
        since=since,
        next_allowed=again,
    )


def check_quota(connection: Connection, team: int, quota: Quota, *, now: datetime) -> None:
    """Refuse one more submission where the quota is used up.

    Raises:
        InputError: code `upload-quota`.
    """
    state = quota_state(connection, team, quota, now=now)
    if state.next_allowed <= now:
        return
    raise InputError.of(
        "upload-quota",
        "upload",
        f"{plural(len(state.used), 'submission')} since {state.since:%d %B %Y, %H:%M} UTC",
        limit=state.limit,
        next_allowed=state.next_allowed,
    )
