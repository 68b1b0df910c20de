"""Holds an organiser's clock against what the board knows, before anything is logged or shown.

What was shown cannot be hidden again, and no event is dated before another. So a clock that is
behind is refused, and so is one so far ahead that it is more likely wrong than right: it would name
a team before its day, and every later command would have to wait for it.
"""

from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime, time, timedelta

import msgspec

from heldout.board.log.events import Entry, format_time, parse_log, parse_time
from heldout.board.log.history import History
from heldout.board.ranking.standings import project
from heldout.errors import StoreError, plural
from heldout.pipeline.organiser.desk import Desk
from heldout.store.repository import LEADERBOARD, LOG, Repository

__all__ = ["check_clock", "committed_log"]

_MOST_LOG = 1 << 30
_LATER = datetime.max.replace(tzinfo=UTC)
_LONGEST_PAUSE = timedelta(days=366)
_LATEST_REVEAL = timedelta(days=60)


def check_clock(desk: Desk, *, sure: bool = False) -> None:
    """Refuse to work by a clock that is behind, or far ahead.

    Args:
        desk: of the organiser.
        sure: a person says that it is as late as the clock says.

    Raises:
        StoreError: it is before the last event, or before what the committed log shows; or it is a
            year after all that the board knows of, or two months after the last embargo that it
            would end. Nothing was done.
    """
    desk.vault.check_clock(desk.now)
    shown = committed_log(desk.repository) or ()
    _check_shown(desk, shown)
    if not sure:
        _check_ahead(desk, shown)


def committed_log(repository: Repository) -> tuple[Entry, ...] | None:
    """The public log as it was last committed; `None` where it is damaged there."""
    git = repository.git
    head = git.head() if git.is_repository() else None
    data = None if head is None else git.read_path(head, LOG, limit=_MOST_LOG)
    try:
        return parse_log(data or b"", path=LOG)
    except StoreError:
        return None


def _check_shown(desk: Desk, shown: Sequence[Entry]) -> None:
    """Refuse to hide what was shown and is shown on a later day: whoever has pulled knows it."""
    entries = desk.vault.entries()
    today, later = (project(entries, now=moment) for moment in (desk.now, _LATER))
    hidden = [
        f"{', '.join(lost)} of {old.event.submission or f'event {old.event.seq}'}"
        for old, new, ever in zip(shown, today, later, strict=False)
        if (lost := sorted((old.opened.keys() & ever.opened.keys()) - new.opened.keys()))
    ]
    if hidden:
        raise StoreError(
            f"the clock here says {format_time(desk.now)}, and the committed {LOG} shows what is "
            f"sealed until later: {'; '.join(hidden[:3])}; nothing was done: set the clock, or see "
            "docs/trust.md, A clock that was wrong"
        )


def _check_ahead(desk: Desk, shown: Sequence[Entry]) -> None:
    history = desk.history()
    known = max(desk.vault.entries()[-1].time, _page_time(desk.repository))
    due = dict(_list_due(history, shown, desk.now.date()))
    ends = [_midnight(day) for day in due.values()]
    if due and desk.now - max(known, *ends) > _LATEST_REVEAL:
        names = ", ".join(sorted(due)[:3])
        raise StoreError(
            f"{_say_ahead(desk.now, max(known, *ends))}, and would reveal {names}{_YES}"
        )
    expected = map(_midnight, _list_days(desk, history))
    horizon = max([known, *expected])
    if desk.now - horizon > _LONGEST_PAUSE:
        raise StoreError(f"{_say_ahead(desk.now, horizon)}{_YES}")


_YES = "; nothing was done: set the clock, or, if it is right, heldout rebuild --yes"


def _say_ahead(now: datetime, known: datetime) -> str:
    days = plural((now - known).days, "day")
    return f"the clock here says {format_time(now)}, {days} after all that this board knows of"


def _page_time(repository: Repository) -> datetime:
    """When the page was made last; the first of all moments where there is none."""
    try:
        data = repository.files.read(f"{LEADERBOARD}/leaderboard.json")
        return parse_time(msgspec.json.decode(data)["as_of"])
    except (OSError, msgspec.MsgspecError, ValueError, TypeError, KeyError):
        return datetime.min.replace(tzinfo=UTC)


def _list_due(history: History, shown: Sequence[Entry], today: date) -> Iterator[tuple[str, date]]:
    """The entries that a rebuild would reveal now, and since when they might be."""
    for entry in shown:
        if entry.event.kind == "published" and "identity" not in entry.opened:
            submission = history.submissions[str(entry.event.submission)]
            until = submission.embargo_until
            if until is not None and until <= today:
                yield submission.id, until


def _list_days(desk: Desk, history: History) -> Iterator[date]:
    """The days that the board itself waits for."""
    spec = desk.spec()
    days = (spec.closes, *(season.closes for season in spec.seasons))
    embargoes = (submission.embargo_until for submission in history.submissions.values())
    yield from (day for day in (*days, *embargoes) if day is not None)


def _midnight(day: date) -> datetime:
    return datetime.combine(day, time(), tzinfo=UTC)
