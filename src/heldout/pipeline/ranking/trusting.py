"""Finds what board.toml allows by now to be told of the ranking, and has it told once.

The result is an event of the log, so the page stays a function of log, rules and now, and whoever
has the archive can compute it again.
"""

from collections.abc import Iterator
from datetime import date

from heldout.board.log.history import History
from heldout.board.ranking.rank_ranges import is_stale
from heldout.board.ranking.seasons import list_seasons
from heldout.board.ranking.standings import Standings, make_standings
from heldout.board.rules.spec import BoardSpec
from heldout.board.rules.trust import Trust, due_day
from heldout.pipeline.organiser.desk import Desk
from heldout.pipeline.ranking.due_figures import Due

__all__ = ["measure_due"]

_FEWEST = 2


def measure_due(desk: Desk) -> int:
    """Log what is due and was not logged yet.

    Args:
        desk: its lock is held; a new board.toml was logged.

    Returns:
        In how many seasons something was due.

    Raises:
        StoreError: a run that has to be scored anew is missing.
        TrustError: such a run does not open.
    """
    found = [*_find_due(desk)]
    if not found:
        return 0
    # scipy, which this needs, takes 0.3 s to load, and mostly nothing is due
    from heldout.pipeline.ranking.measured_event import log_figures  # noqa: PLC0415 - said above

    log_figures(desk, found)
    return len(found)


def _find_due(desk: Desk) -> Iterator[Due]:
    entries, spec = desk.vault.entries(), desk.spec()
    trust = spec.trust
    if trust is None or not trust.show:
        return
    history = desk.history()
    boards = [
        (one.standings, spec.in_season(one.season))
        for one in list_seasons(entries, spec, now=desk.now)
    ] or [(make_standings(entries, spec, now=desk.now), spec)]
    for standings, here in boards:
        due = _make_due(standings, here, trust, history, desk.now.date())
        if len(due.ranked) >= _FEWEST and not _is_told(due, history, desk.now.date()):
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
