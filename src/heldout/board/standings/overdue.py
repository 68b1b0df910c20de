"""What may be public by now, and the public log does not have: only the vault can open it.

A page that is built without the vault, as a forge builds it every day, shows such things as
withheld. The organisers learn of it here, and which figures of the ranking are to be computed.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta

from heldout.board.log.events import Entry
from heldout.board.log.history import History, read_history
from heldout.board.log.reading import Log
from heldout.board.rules.days import list_terms, one_shot_deadline, tells_final
from heldout.board.rules.spec import BoardSpec, Trust, due_day
from heldout.board.rules.spec_file import parse_spec
from heldout.board.standings.season_ends import list_due_ends, say_season
from heldout.board.standings.seasons import current_standings, list_seasons
from heldout.board.standings.standings import Standings, is_stale


@dataclass(frozen=True, slots=True, kw_only=True)
class Overdue:
    """Something that the rules let be public, and that the public log does not have.

    Attributes:
        what: it, in words.
        since: the day from which on it may be public.
    """

    what: str
    since: date

    def __str__(self) -> str:
        return f"{self.what}, due since {self.since:%d %b %Y}"


def list_overdue(
    log: Sequence[Entry] | Log, spec: BoardSpec, standings: Standings
) -> tuple[Overdue, ...]:
    """Return what waits for the organisers, by a public log alone; the earliest first.

    Args:
        log: a verified public log.
        spec: the rules in force.
        standings: of the board or of its latest season, made from that log.
    """
    now = standings.as_of
    history = log.history if isinstance(log, Log) else read_history(log)
    worked = (log.last if isinstance(log, Log) else log[-1]).time.date()
    boards = _list_boards(history if isinstance(log, Log) else log, spec, standings)
    found = {*_list_scores(log, history, standings), *_list_ends(history, spec, now.date())}
    for board, rules in boards:
        found |= {*_list_names(board), *_list_figures(board, rules, history, worked)}
    return tuple(sorted(found, key=lambda one: (one.since, one.what)))


def list_overdue_at(log: Sequence[Entry] | Log, *, now: datetime) -> tuple[Overdue, ...]:
    """The same at a moment, by the rules of the log."""
    history = log.history if isinstance(log, Log) else read_history(log)
    spec = parse_spec(history.rules[-1][1].encode(), path="the rules in the log")
    standings, _ = current_standings(history if isinstance(log, Log) else log, spec, now=now)
    return list_overdue(log, spec, standings)


def figures_due_since(standings: Standings, spec: BoardSpec, closed: date | None) -> date | None:
    """Since when figures of the ranking may be published that are not; `None` where none are.

    Args:
        standings: of the board or of a season.
        spec: its rules.
        closed: when the board was closed for good, `None` before.
    """
    return min(_figure_days(standings, spec, closed), default=None)


def _figure_days(standings: Standings, spec: BoardSpec, closed: date | None) -> list[date]:
    """The days since which entries may be compared that are not; none before there are two."""
    covered = frozenset[str]() if standings.measured is None else standings.measured.covered
    if spec.trust is None or not spec.trust.show:
        return []
    days = _list_days(standings, spec, spec.trust, closed)
    past = [day for name, day in days.items() if name not in covered]
    return past if len(past) + len(covered) >= _FEWEST else []


_FEWEST = 2
"""Entries that can be compared."""


def _list_days(
    standings: Standings, spec: BoardSpec, trust: Trust, closed: date | None
) -> Mapping[str, date]:
    """Ranked entry -> the day since when it may be compared, of those that may be by now."""
    last, today = spec.last_day_of(standings.season), standings.as_of.date()
    days = (
        (row.id, due_day(trust, row.published.date(), last=last, closed=closed))
        for row in standings.rows
        if row.rank is not None and not row.imported
    )
    return {name: day for name, day in days if day is not None and day <= today}


def _list_boards(
    log: Iterable[Entry] | History, spec: BoardSpec, standings: Standings
) -> list[tuple[Standings, BoardSpec]]:
    """The standings of each season with its rules, or of a board without seasons."""
    seasons = list_seasons(log, spec, now=standings.as_of)
    return [(one.standings, spec.in_season(one.season)) for one in seasons] or [(standings, spec)]


@dataclass(frozen=True, slots=True, kw_only=True)
class DueFigures:
    """Figures of a season, or of a board without seasons, that are to be computed.

    Attributes:
        spec: the rules, of the season.
        trust: what is published.
        season: its name.
        ranked: ids by released score, the best first.
        since: the latest of the days from which they may be.
    """

    spec: BoardSpec
    trust: Trust
    season: str
    ranked: tuple[str, ...]
    since: date


def list_due_figures(
    history: History, public: History, spec: BoardSpec, *, now: datetime
) -> Iterator[DueFigures]:
    """List the figures of the ranking that are due and were not logged yet.

    Args:
        history: what the vault's log says; a new board.toml was logged.
        public: what the public log of the moment says.
        spec: the rules in force.
        now: the moment, UTC.
    """
    trust = spec.trust
    if trust is None or not trust.show:
        return
    standings, _ = current_standings(public, spec, now=now)
    closed = None if history.closed is None else history.closed.date()
    for board, rules in _list_boards(public, spec, standings):
        days = _list_days(board, rules, trust, closed)
        due = DueFigures(
            spec=rules,
            trust=trust,
            season=board.season,
            ranked=tuple(days),
            since=max(days.values(), default=now.date()),
        )
        if len(days) >= _FEWEST and not _is_logged(due, history, now.date()):
            yield due


def _is_logged(due: DueFigures, history: History, today: date) -> bool:
    """Check whether the latest event says all that is due, of scores that still hold.

    What waited for the end of an embargo is due on its day.
    """
    wanted = (due.season, due.spec.primary)
    of_season = [one for one in history.measured if (one.season, one.view) == wanted]
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


def _list_names(standings: Standings) -> Iterator[Overdue]:
    for row in standings.every:
        if row.reveal_due and row.embargo_until is not None:
            yield Overdue(what=f"the name behind {row.id}", since=row.embargo_until)


def _list_figures(
    standings: Standings, spec: BoardSpec, history: History, worked: date
) -> Iterator[Overdue]:
    """The figures, unless an organiser has worked on the log since they are due.

    Every such call computes what is due. What is not there after it cannot be computed, as between
    entries that are nearly the same, and no further call would bring it.
    """
    closed = None if history.closed is None else history.closed.date()
    days = _figure_days(standings, spec, closed)
    if days and worked < max(days):
        of = f" of season {standings.season}" if standings.season else ""
        yield Overdue(what=f"the confidence figures{of}", since=min(days))


def _list_ends(history: History, spec: BoardSpec, today: date) -> Iterator[Overdue]:
    for one in list_due_ends(history, spec, today):
        what = f"the exact scores at the end of {say_season(one.season)}"
        yield Overdue(what=what, since=one.last + timedelta(1))


def _list_scores(
    log: Iterable[Entry] | Log, history: History, standings: Standings
) -> Iterator[Overdue]:
    """Scores that events still seal: of a one-shot board, and of views that open at the end."""
    now = standings.as_of
    deadline, terms = one_shot_deadline(history), list_terms(history, now)
    rules = terms[-1].spec
    if deadline is None and rules.closes is None and not rules.seasons:
        return  # nothing waits for a last day
    for entry in log.entries() if isinstance(log, Log) else log:
        submission = history.submissions.get(str(entry.event.submission))
        sealed = entry.event.sealed.keys() - entry.opened.keys()
        if submission is None or submission.status != "published":
            continue
        if "scores" in sealed and deadline is not None and now.date() > deadline:
            yield Overdue(what="scores of published entries", since=deadline + timedelta(1))
        received = submission.received.date()
        last = terms[-1].spec.last_day(received)
        if "final" in sealed and last is not None and tells_final(entry, terms, received):
            yield Overdue(what="final scores of published entries", since=last + timedelta(1))
