"""How many submissions a team may make: a window that slides by the second.

Source: fostering-coopetition, section 3.3, Frequency of Submission.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta

from heldout.board.log.history import History, Submission
from heldout.board.log.joined_names import list_renamed, names_of
from heldout.board.log.manifest import team_key
from heldout.board.rules.spec import BoardSpec

__all__ = [
    "QuotaState",
    "after_deadline",
    "counted",
    "fits",
    "next_allowed",
    "quota_state",
    "quota_window",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaState:
    """How much of its quota a team has used.

    Attributes:
        used: submissions that count, the ids in order of time.
        limit: the most that may.
        since: begin of the window that ends now.
        next_allowed: the earliest time at which one more may be received.
    """

    used: tuple[str, ...]
    limit: int
    since: datetime
    next_allowed: datetime


def quota_state(history: History, team: str, spec: BoardSpec, *, now: datetime) -> QuotaState:
    """What a team has used of its quota at a moment, and when it may submit again.

    Args:
        history: the board's; by the public log alone, embargoed and undecided ones are not seen.
        team: as in the metadata.
        spec: the rules.
        now: the moment, UTC.
    """
    window = quota_window(spec)
    used = sorted(
        (s.received, s.id)
        for s in counted(history, team, spec, at=now)
        if now - window < s.received <= now
    )
    moments = [moment for moment, _ in used]
    again = next_allowed(moments, now=now, window=window, limit=spec.policy.quota)
    since = now - window
    late = after_deadline(spec)
    if late is not None and now < late:
        since = datetime.combine(spec.opens, time(), UTC)
        again = now if again <= now else late
    return QuotaState(
        used=tuple(name for _, name in used),
        limit=spec.policy.quota,
        since=since,
        next_allowed=again,
    )


def after_deadline(spec: BoardSpec) -> datetime | None:
    """The first moment after the last day of a one-shot board; `None` for any other."""
    if spec.kind != "one-shot" or spec.closes is None:
        return None
    return datetime.combine(spec.closes + timedelta(days=1), time(), UTC)


def quota_window(spec: BoardSpec) -> timedelta:
    """Length of the window; at a one-shot board it holds all of the board's days."""
    if spec.kind == "one-shot" and spec.closes is not None:
        return timedelta(days=(spec.closes - spec.opens).days + 1)
    return timedelta(days=spec.policy.quota_days)


def next_allowed(
    moments: Sequence[datetime], *, now: datetime, window: timedelta, limit: int
) -> datetime:
    """The earliest time from now on at which one more fits, before and after others."""
    ends = sorted(moment + window for moment in moments)
    return next(
        t for t in (now, *ends) if t >= now and fits(moments, t, window=window, limit=limit)
    )


def fits(moments: Sequence[datetime], moment: datetime, *, window: timedelta, limit: int) -> bool:
    """Whether no window around one more submission holds more than the quota."""
    starts = [start for start in (*moments, moment) if moment - window < start <= moment]
    return all(
        sum(start <= other < start + window for other in moments) < limit for start in starts
    )


def counted(history: History, team: str, spec: BoardSpec, *, at: datetime) -> Iterator[Submission]:
    """A team's submissions that use its quota: published, or still to be decided.

    One that was refused or withdrawn before publication released no score, so it leaked nothing
    and is given back. At a one-shot board those in time and those after it are counted apart.
    Names that an approved new name joined are one team.
    """
    keys = names_of(list_renamed(history), [team])
    late = after_deadline(spec)
    for submission in history.submissions.values():
        counts = submission.pending or submission.status == "published"
        named = not keys.isdisjoint(map(team_key, submission.counts_for))
        beside = late is None or (submission.received < late) == (at < late)
        if counts and named and beside and not submission.baseline:
            yield submission
