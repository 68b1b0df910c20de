"""What is due on a board: ends of seasons, and what may be public and only the vault can open.

A page that is built without the vault, as a forge builds it every day, shows such things as
withheld. The organisers learn of it here, and which figures of the ranking are to be computed.

After a season's last day, under `clear`, each team's named entry gets its exact score in the view
that ranks the season, and so does every entry whose score was published there before. Nobody asks
who sent an entry under an embargo: it stands for itself, for the page would otherwise show which
entries are of one team. So the public log is enough to choose the same entries.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal

from heldout.board.log import final, reading
from heldout.board.log.events import Entry
from heldout.board.log.history import Fold, History, list_renamed, names_of, read_history
from heldout.board.log.submission import Submission
from heldout.board.rules.days import list_terms, one_shot_deadline, shows_final
from heldout.board.rules.spec import BoardSpec, Trust, due_day
from heldout.board.rules.spec_file import parse_spec
from heldout.board.standings.standings import Standings, current_standings, is_stale, list_seasons


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


def list_overdue_at(log: Sequence[Entry] | reading.Log, *, now: datetime) -> tuple[Overdue, ...]:
    """Return what waits for the organisers, by a public log alone; the earliest first.

    Args:
        log: a verified public log; its rules are those in force.
        now: the moment, UTC.
    """
    if isinstance(log, reading.Log):
        history, entries, last = log.history, log.entries(), log.last
    else:
        history, entries, last = read_history(log), iter(log), log[-1]
    spec = parse_spec(history.rules[-1][1].encode(), path="the rules in the log")
    standings, _ = current_standings(history, spec, now=now)
    found = {*_list_scores(entries, history, now), *_list_ends(history, spec, now.date())}
    for board, rules in _list_boards(history, spec, standings):
        found |= {*_list_names(board), *_list_figures(board, rules, history, last.time.date())}
    return tuple(sorted(found, key=lambda one: (one.since, one.what)))


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
    history: History, spec: BoardSpec, standings: Standings
) -> list[tuple[Standings, BoardSpec]]:
    """The standings of each season with its rules, or of a board without seasons."""
    seasons = list_seasons(history, spec, now=standings.as_of)
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
    whole = set(due.ranked) <= latest.covered and set(due.trust.show) <= latest.figures.published
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


def _list_scores(entries: Iterable[Entry], history: History, now: datetime) -> Iterator[Overdue]:
    """Scores that events still seal: of a one-shot board, and of views that open at the end."""
    deadline, terms = one_shot_deadline(history), list_terms(history, now)
    rules = terms[-1].spec
    if deadline is None and rules.closes is None and not rules.seasons:
        return  # nothing waits for a last day
    for entry in entries:
        submission = history.submissions.get(str(entry.event.submission))
        sealed = entry.event.sealed.keys() - entry.opened.keys()
        if submission is None or submission.status != "published":
            continue
        if "scores" in sealed and deadline is not None and now.date() > deadline:
            yield Overdue(what="scores of published entries", since=deadline + timedelta(1))
        received = submission.received.date()
        last = terms[-1].spec.last_day(received)
        if "final" in sealed and last is not None and shows_final(entry, terms, received):
            yield Overdue(what="final scores of published entries", since=last + timedelta(1))


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """A season that ends, or a board without seasons.

    Attributes:
        season: its name; "" without seasons.
        view: name of the view that ranks it.
        informs: names of the views for information, in the order of board.toml.
        opens: its first day; `None` of the first season, which has what came before, too.
        last: its last day.
    """

    season: str
    view: str
    informs: tuple[str, ...]
    opens: date | None
    last: date

    def has(self, submission: Submission) -> bool:
        """Tell whether something was received in the season."""
        day = submission.received.date()
        return (self.opens is None or self.opens <= day) and day <= self.last


def find_ending(spec: BoardSpec, season: str) -> Ending | None:
    """Find how a season ends; `None` where it has no end, or no exact scores are published at it.

    Args:
        spec: the rules, of the board or of that season.
        season: its name, "" for a board without seasons.
    """
    one = next((one for one in spec.seasons if one.name == season), None)
    last = spec.last_day_of(season)
    view = spec.view(spec.primary if one is None else one.view)
    held_out = view.public and not view.for_information and spec.sets[view.set].held_out
    unknown = one is None and (bool(season) or bool(spec.seasons))
    if unknown or last is None or not held_out or spec.release.rule != "clear":
        return None
    return Ending(
        season=season,
        view=view.name,
        informs=tuple(view.name for view in spec.public_views if view.for_information),
        opens=None if one is None or one == spec.seasons[0] else one.opens,
        last=last,
    )


def say_season(season: str) -> str:
    """Name a season in a sentence."""
    return f"season {season}" if season else "the season"


def list_due_ends(history: History, spec: BoardSpec, today: date) -> tuple[Ending, ...]:
    """The seasons that are over, have entries, and whose exact scores are not published yet.

    Args:
        history: what a log says, the public one too.
        spec: the rules in force, of the whole board.
        today: the day.
    """
    names = [season.name for season in spec.seasons] or [""]
    endings = (find_ending(spec, name) for name in names if name not in history.season_ends)
    return tuple(
        one
        for one in endings
        if one is not None
        and history.closed is None
        and one.last < today
        and (list_entries(history, one) or list_waiting(history, one))
    )


def list_entries(history: History, ending: Ending) -> list[Submission]:
    """The published entries of a season, in the order of receipt; baselines are none."""
    known = history.submissions
    of_season = {
        one.id
        for one in known.values()
        if one.status == "published"
        and not one.baseline
        and ending.has(one)
        and ending.view in (*one.scores, *one.untold)
    }
    return [known[name] for name in final.order_by_receipt(of_season, known)]


def list_waiting(history: History, ending: Ending) -> tuple[str, ...]:
    """The submissions of a season that wait for a decision: its end waits for them."""
    known = history.submissions.values()
    return tuple(one.id for one in known if one.pending and ending.has(one))


def choose_named(history: History, ending: Ending, day: date) -> tuple[str, ...]:
    """The entries that stand for their teams at a season's end, in the order of receipt.

    Of several entries of a team that say `season_entry: true` the latest stands for it. Of none it
    is the one with the highest number in the first view for information, of equal ones the
    earliest; without such a view the latest.

    Args:
        history: what the log says before the end, the public log too.
        ending: the season.
        day: on which it is ended: who is under an embargo then stands for itself.
    """
    renamed = [one for one in list_renamed(history) if not one.is_hidden(day)]
    teams: dict[str | frozenset[str], list[Submission]] = {}
    for one in list_entries(history, ending):
        known = one.identity is not None and not one.is_hidden(day)
        teams.setdefault(names_of(renamed, one.counts_for) if known else one.id, []).append(one)
    chosen = {_choose(entries, ending.informs).id for entries in teams.values()}
    return final.order_by_receipt(chosen, history.submissions)


def _choose(entries: Sequence[Submission], informs: Iterable[str]) -> Submission:
    named = [one for one in entries if one.identity is not None and one.identity.season_entry]
    if named:
        return named[-1]
    views = (view for view in informs if any(view in one.scores for one in entries))
    view = next(views, None)
    if view is None:
        return entries[-1]
    return max((e for e in entries if view in e.scores), key=lambda e: Decimal(e.scores[view]))


def list_scored(history: History, ending: Ending, named: Iterable[str]) -> tuple[str, ...]:
    """List whose exact scores a season's end publishes: the named, and who had a score."""
    before = {one.id for one in list_entries(history, ending) if ending.view in one.scores}
    return final.order_by_receipt(before.union(named), history.submissions)


def list_wrong_ends(entries: Sequence[Entry], history: History) -> Iterator[str]:
    """Ends of seasons that the rules of their day did not allow, or with other entries.

    Args:
        entries: a verified log, the public one too.
        history: what it says.

    Yields:
        A sentence for each.
    """
    if not history.season_ends:
        return
    fold = Fold()
    for entry in entries:
        if entry.event.kind == "ended-season" and entry.get("season") not in fold.season_ends:
            yield from _check_end(entry, fold.now(), history)
        fold.take(entry)


def _check_end(entry: Entry, before: History, history: History) -> Iterator[str]:
    where, season = f"event {entry.event.seq} ('ended-season')", str(entry.get("season"))
    spec = parse_spec(before.rules_at(entry.time).encode(), path="the rules in the log")
    ending = find_ending(spec, season)
    if ending is None or ending.view != entry.get("view"):
        yield f"{where} is about a season that does not end so by the rules of its day"
        return
    day = entry.time.date()
    if day <= ending.last:
        yield f"{where} came before the last day, {ending.last}, was over"
    if waiting := list_waiting(before, ending):
        yield f"{where} leaves out {', '.join(waiting[:3])}, on which nobody had decided"
    named, listed = choose_named(before, ending, day), tuple(entry.get("named"))
    if listed != named:
        wrong, right = _differ(listed, named), _differ(named, listed)
        yield f"{where} names {wrong}, but the rule names {right}"
    scored, given = list_scored(before, ending, named), entry.get("final_scores").keys()
    if listed == named and given != set(scored):
        wrong = ", ".join(sorted(given ^ set(scored))[:3])
        yield f"{where} publishes other scores than those of the named and earlier ones: {wrong}"
    for since, text in history.rules:
        later = find_ending(parse_spec(text.encode()), season) if since > entry.time else None
        if later is not None and later.last != ending.last:
            yield f"the rules of {since:%d %b %Y} move the last day of a season that had ended"


def _differ(these: Sequence[str], others: Sequence[str]) -> str:
    """The first few ids that only one list has."""
    return ", ".join([name for name in these if name not in others][:3]) or "nobody else"
