"""What board.toml allows by now to be published of the ranking, and was not yet.

`scores.measuring` computes and logs it once: the result is an event of the log, so the page stays a
function of log, rules and now. Every command asks what is due, and mostly nothing is, so this needs
nothing of what computes.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date

from heldout.board.log.history import History
from heldout.board.rules.spec import BoardSpec, Trust, due_day
from heldout.board.scores.public_log import plan_public_log
from heldout.board.scores.session import Session
from heldout.board.standings.seasons import list_seasons
from heldout.board.standings.standings import Standings, is_stale, make_standings


@dataclass(frozen=True, slots=True, kw_only=True)
class Due:
    """Entries of a season, or of a board without seasons, that may be compared by now.

    Attributes:
        spec: the rules, of the season.
        trust: what is told.
        season: its name.
        ranked: ids by released score, the best first.
        since: the latest of the days from which they may be.
    """

    spec: BoardSpec
    trust: Trust
    season: str
    ranked: tuple[str, ...]
    since: date


_FEWEST = 2


def list_due(session: Session) -> tuple[Due, ...]:
    """What is due and was not logged yet, of the board or of each season.

    Args:
        session: its lock is held; a new board.toml was logged.
    """
    return tuple(_find_due(session))


def _find_due(session: Session) -> Iterator[Due]:
    spec = session.spec()
    trust = spec.trust
    if trust is None or not trust.show:
        return
    public = plan_public_log(session.repository, session.vault, now=session.now).history
    history = session.history()
    boards = [
        (one.standings, spec.in_season(one.season))
        for one in list_seasons(public, spec, now=session.now)
    ] or [(make_standings(public, spec, now=session.now), spec)]
    for standings, here in boards:
        due = _make_due(standings, here, trust, history, session.now.date())
        if len(due.ranked) >= _FEWEST and not _is_told(due, history, session.now.date()):
            yield due


def _make_due(
    standings: Standings, spec: BoardSpec, trust: Trust, history: History, today: date
) -> Due:
    last = spec.last_day_of(standings.season)
    closed = None if history.closed is None else history.closed.date()
    days = {
        row.id: due_day(trust, row.published.date(), last=last, closed=closed)
        for row in standings.rows
        if row.rank is not None and not row.imported
    }
    by_now = {name: day for name, day in days.items() if day is not None and day <= today}
    return Due(
        spec=spec,
        trust=trust,
        season=standings.season,
        ranked=tuple(by_now),
        since=max(by_now.values(), default=today),
    )


def _is_told(due: Due, history: History, today: date) -> bool:
    """Whether the latest event says all that is due, of scores that still hold.

    What waited for the end of an embargo is due on its day.
    """
    of_season = [
        one for one in history.measured if (one.season, one.view) == (due.season, due.spec.primary)
    ]
    if not of_season:
        return False
    latest = of_season[-1]
    corrected = {
        s.id: max(at for at, _ in s.errata) for s in history.submissions.values() if s.errata
    }
    whole = set(due.ranked) <= latest.covered and set(due.trust.show) <= latest.figures.told
    waits = any(
        why == "withheld" and not history.submissions[name].is_hidden(today)
        for name, why in latest.left_out.items()
    )
    return whole and not waits and not is_stale(latest, corrected)
