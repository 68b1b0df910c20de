"""The leaderboards of a given day, by season and by view: a pure function of log, rules and now.

Three things stand beside the rows. Ranges of ranks come from the event that measured them: what was
not compared may stand above or below anybody, so it widens the ranges of all others by one rank.
Small data: whether an entry states few enough training pairs to be listed in a view, so that
systems that learn from many do not crowd out the others (Lin et al. 2022, §5).
Comparable entries: counts between two entries that differ in one query give that query's label
away, so two that are nearly the same are never compared with each other, and each is compared with
all others.
"""

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from decimal import Decimal
from functools import partial

from heldout.board.log.events import Entry, redact
from heldout.board.log.final import Final, LeftOut, Measured, SeasonEnd
from heldout.board.log.history import History, read_history
from heldout.board.log.manifest import Costs, Identity
from heldout.board.log.submission import Submission
from heldout.board.rules import days, release
from heldout.board.rules.spec import BoardSpec, Season, Trust, View, due_day, say_after
from heldout.board.rules.spec_file import parse_spec
from heldout.errors import InputError

FEWEST_DIFFERENT = 10
"""Fewest queries with different scores between two entries that are compared."""

_LEFT_OUT: Mapping[LeftOut, str] = {
    "near": "nearly the same as others, so not compared",
    "incomplete": "no score for each query, so not compared",
    "withheld": "not compared; an embargo withholds why",
}

WITH_NOISE = "with noise"
"""The mark of an entry whose number is not exact yet."""

NOT_NAMED = "another entry of this team was named for the season's end"
"""What is said, after a season's end, of an entry whose score stays in the vault."""

POST_HOC = "post hoc"
"""How the reason begins why an entry after the deadline of a one-shot board has no rank."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One entry of the leaderboard.

    Attributes:
        rank: 1 for the best; `None` for a baseline, and for an entry without a rank.
        id: permanent id.
        received: official time of submission; of an imported entry the day that the old board
            claims.
        published: when it was approved, or imported.
        identity: who and what, as the team wrote it; `None` while an embargo hides it.
        type: submission type.
        scores: public view -> released score as text.
        counts: public view -> number of queries averaged over.
        seeds: how many runs that differ by their seed alone the scores are means over; mostly 1.
        spreads: public view -> standard deviation over the seeds as text; empty for one run.
        standard_errors: view for information only -> standard error of its score as text.
        trophy: strictly above everything submitted before it; baselines too, unless the board
            says otherwise. Of an imported entry as the old board gave it.
        reveal_due: the embargo's day has come, but this log does not hold the identity yet.
        embargo_until: the day of the reveal, also after it; `None` without an embargo.
        baseline: an organiser's baseline.
        rank_low, rank_high: simultaneous rank range; `None` where not told.
        unranged: why there is none where the board tells ranges; "" where it tells none.
        unranked: why an entry has no rank; "" for one that has, and for a baseline.
        untold: the views whose score `clear` does not publish (`NOT_CLEAR`).
        unlisted: view -> why the view does not list the entry, which then has no score there.
        imported: an old board's entry, as that board published it.
        trophy_by_rule: what `trophy` would be by the rule; differs on imported entries only.
        findings: codes of the findings it was accepted with; empty while embargoed.
        errata: (time, reason) of each correction.
        corrected: one of them did more than tell a score on a view that came later.
        added: times of those that did nothing more.
        events: (time, kind, hash) of every event about it.
        files: name of each sealed file -> SHA-256.
        costs: what running its program cost; `None` for run files, and while an embargo hides it.
        exact: the views whose exact score a season's end published.
        mark: "with noise" of a number that is not exact yet, "published at once" of an entry that
            was not named for its season's end, mostly "".
    """

    rank: int | None
    id: str
    received: datetime
    published: datetime
    identity: Identity | None
    type: str
    scores: Mapping[str, str]
    counts: Mapping[str, int]
    trophy: bool
    reveal_due: bool
    embargo_until: date | None
    baseline: bool
    seeds: int = 1
    spreads: Mapping[str, str] = field(default_factory=dict)
    standard_errors: Mapping[str, str] = field(default_factory=dict)
    rank_low: int | None = None
    rank_high: int | None = None
    unranged: str = ""
    unranked: str = ""
    imported: bool = False
    trophy_by_rule: bool = False
    untold: tuple[str, ...] = ()
    unlisted: Mapping[str, str] = field(default_factory=dict)
    findings: tuple[str, ...] = ()
    errata: tuple[tuple[datetime, str], ...] = ()
    corrected: bool = False
    added: tuple[datetime, ...] = ()
    events: tuple[tuple[datetime, str, str], ...] = ()
    files: Mapping[str, str]
    costs: Costs | None = None
    exact: tuple[str, ...] = ()
    mark: str = ""

    @property
    def embargoed(self) -> bool:
        """Whether an embargo hides now who sent it."""
        return self.identity is None


@dataclass(frozen=True, slots=True, kw_only=True)
class Standings:
    """The leaderboard as of a moment.

    Attributes:
        board: the board's name.
        as_of: the moment, UTC.
        primary: the view that ranks.
        rows: by official score, ties to the earlier submission, baselines in their places.
        unranked: entries without a rank: the score is not published yet, or is withheld, or the
            entry came after the deadline of a one-shot board.
        waiting: received submissions without a decision.
        season: whose entries these are; "" for a board without seasons.
        measured: what was told of the ranking beside the scores; `None` where nothing was, or
            scores were corrected since.
        final: of the whole board, whose finalists may be of any season; `None` before they are
            named.
        finalists: their rows, without a rank, in the order of receipt.
        season_end: the end of the season, or of a board without seasons; `None` before.
    """

    board: str
    as_of: datetime
    primary: str
    rows: tuple[Row, ...]
    waiting: int
    unranked: tuple[Row, ...] = ()
    season: str = ""
    measured: Measured | None = None
    final: Final | None = None
    finalists: tuple[Row, ...] = ()
    season_end: SeasonEnd | None = None

    @property
    def every(self) -> tuple[Row, ...]:
        """All entries and baselines, those without a rank last."""
        return (*self.rows, *self.unranked)


def project(entries: Iterable[Entry], *, now: datetime) -> tuple[Entry, ...]:
    """The public log of a moment: what is still secret stays sealed.

    A published entry's identity is opened from the first moment of the day of its reveal, the
    scores of a one-shot board on the day after its last, final scores on the day after the last of
    the board or season. What a score had to be above is opened when neither its own embargo nor
    that of the entry which told it hides anything, nor that of an entry whose names alone tell that
    both are of one team. All else that is sealed (metadata before publication, labels' digests)
    stays so. No rules that came later seal again what was opened.
    """
    entries = tuple(entries)
    projector = Projector(read_history(entries), now)
    return tuple(redact(entry, projector.fields(entry)) for entry in entries)


class Projector:
    """What each event of a log may show at a moment; see `project`."""

    def __init__(self, history: History, now: datetime) -> None:
        """Take what all events have in common.

        Args:
            history: of the whole log.
            now: the moment, UTC.
        """
        self._history = history
        self._terms = days.list_terms(history, now)
        self._opened = days.opened_before(self._terms)
        self._today = now.date()

    def fields(self, entry: Entry) -> list[str]:
        """The sealed fields that an event shows, as far as it has them."""
        if not entry.event.sealed:
            return []
        history = self._history
        fields = [*_may_open(entry, history.submissions, self._today)]
        if entry.time < self._opened:
            fields += ["scores", "queries", "seeds", "untold"]
        if "final" in entry.event.sealed and entry.event.submission is not None:
            received = history.submissions[entry.event.submission].received.date()
            fields += ["final"] * days.shows_final(entry, self._terms, received)
        return fields


def _may_open(entry: Entry, submissions: Mapping[str, Submission], today: date) -> tuple[str, ...]:
    if entry.event.kind not in ("published", "baseline", "updated", "amended", "ran"):
        return ()
    submission = submissions[str(entry.event.submission)]
    if submission.status != "published" or submission.is_hidden(today):
        return ()
    if entry.event.kind == "ran":
        return ("program", "costs", "engine")
    return () if _is_draft(entry, submission) else ("identity", "why", "findings")


def _is_draft(entry: Entry, submission: Submission) -> bool:
    """Check whether an update came before publication: nobody but the organisers ever saw it."""
    published = [event for _, kind, event in submission.events if kind == "published"]
    events = [event for _, _, event in submission.events]
    return any(events.index(entry.hash) < events.index(event) for event in published)


def make_standings(
    log: Iterable[Entry] | History,
    spec: BoardSpec,
    *,
    now: datetime,
    season: Season | None = None,
) -> Standings:
    """The leaderboard of a moment.

    Args:
        log: a verified log, the vault's or the public one; the result is the same. Or what the
            public log of that moment says.
        spec: the rules in force.
        now: the moment (UTC); decides what is embargoed.
        season: whose entries to rank, by its view; `None` for a board without seasons.

    Raises:
        InputError: board.toml ranks by a view that an entry was never scored on.
    """
    history = log if isinstance(log, History) else read_history(project(log, now=now))
    if not _MADE or _MADE[0][0] is not history:
        _MADE[:] = [(history, [])]
    asked = (spec, now, season)
    found = next((made for what, made in _MADE[0][1] if what == asked), None)
    if found is None:
        found = _make_standings(history, spec, now=now, season=season)
        _MADE[0][1].append((asked, found))
    return found


_Asked = tuple[BoardSpec, datetime, Season | None]
_MADE: list[tuple[History, list[tuple[_Asked, Standings]]]] = []
"""The last ones, of one history: the steps of a command ask for the same."""


def _make_standings(
    history: History, spec: BoardSpec, *, now: datetime, season: Season | None
) -> Standings:
    every = [s for s in history.submissions.values() if s.status in ("published", "imported")]
    if season is not None:
        spec = spec.in_season(season)
        every = [s for s in every if season.view in {*s.scores, *s.untold}]
    today, terms = now.date(), days.list_terms(history, now)
    deadline = days.one_shot_deadline(history)
    named = "" if season is None else season.name
    end = history.season_ends.get(named)
    why = {
        s.id: _why_unranked(s, spec.primary, deadline, terms, end)
        or list_reasons(spec.views, s.identity).get(spec.primary, "")
        for s in every
    }
    shown = [s for s in every if not why[s.id]]
    _check_primary(shown, spec.primary)
    one_by_one = deadline is None
    trophies = _trophies(shown, spec.primary, bar=spec.baselines.bar) if one_by_one else frozenset()
    shown.sort(key=lambda s: (-Decimal(s.scores[spec.primary]), s.received, s.id))
    limited = [view for view in spec.views if view.training_at_most is not None]
    make = partial(_row, views=limited, today=today)
    rows = []
    rank = 0
    for submission in shown:
        rank += not submission.baseline
        own = None if submission.baseline else rank
        row = make(submission, rank=own, trophy=submission.id in trophies)
        rows.append(replace(row, mark=_mark(submission, spec.primary, history, end)))
    measured = find_measured(history.measured, season=named, view=spec.primary, now=now)
    corrected = {s.id: max(s.repaired) for s in every if s.repaired}
    if measured is not None and is_stale(measured, corrected):
        measured = None
    others = sorted((s for s in every if why[s.id]), key=lambda s: (s.received, s.id))
    finalists = () if history.final is None else history.final.finalists
    return Standings(
        board=spec.name,
        as_of=now,
        primary=spec.primary,
        rows=_add_ranges(rows, measured, spec, season=named, closed=history.closed),
        unranked=tuple(make(s, why=why[s.id]) for s in others),
        waiting=sum(s.pending for s in history.submissions.values()),
        season=named,
        measured=measured,
        final=history.final,
        finalists=tuple(
            _row(history.submissions[name], views=(), today=today) for name in finalists
        ),
        season_end=end,
    )


def _mark(one: Submission, view: str, history: History, end: SeasonEnd | None) -> str:
    if end is not None and one.id in end.opened.scores:
        return "" if one.id in end.named else "published at once"
    if one.baseline or one.status == "imported" or view in one.exact:
        return ""
    spec = parse_spec(history.rules_at(one.received).encode(), path="the rules in the log")
    named = next((known for known in spec.views if known.name == view), None)
    held_out = named is not None and spec.sets[named.set].held_out
    return WITH_NOISE if held_out and spec.release.rule == "clear" else ""


def _add_ranges(
    rows: Sequence[Row],
    measured: Measured | None,
    spec: BoardSpec,
    *,
    season: str,
    closed: datetime | None,
) -> tuple[Row, ...]:
    """The rows with their ranges, or why they have none."""
    if spec.trust is None and measured is None:
        return tuple(rows)
    published = {row.id: row.published.date() for row in rows if row.rank is not None}
    ranges = list_ranges(
        measured,
        published,
        spec.trust,
        last=spec.last_day_of(season),
        closed=closed and closed.date(),
    )
    unknown = RankRange(why="a baseline has no rank")
    found = ((row, ranges.get(row.id, unknown)) for row in rows)
    return tuple(
        replace(row, rank_low=one.low, rank_high=one.high, unranged=one.why) for row, one in found
    )


def _why_unranked(
    submission: Submission,
    primary: str,
    deadline: date | None,
    terms: Sequence[days.Term],
    end: SeasonEnd | None,
) -> str:
    """Return why an entry has no rank, "" if it has one."""
    if submission.status == "imported" and primary not in submission.scores:
        return "the old board gave it no official score"
    if primary in submission.untold:
        ended, published = None if end is None else end.openings[0].at, submission.published
        in_time = ended is not None and published is not None and published <= ended
        return NOT_NAMED if in_time else release.NOT_CLEAR
    if deadline is not None and not submission.scores:
        return f"score shown after {deadline:%d %b %Y}"
    missed = None if submission.baseline else days.missed_deadline(terms, submission.received)
    return "" if missed is None else f"{POST_HOC}: came after {missed:%d %b %Y}"


def _check_primary(shown: Iterable[Submission], primary: str) -> None:
    missing = [s.id for s in shown if primary not in s.scores]
    if missing:
        found = f"primary = {primary!r}, of which {', '.join(missing[:3])} has no score"
        expected = "a view that every published entry has a released score of"
        hint = "name the view that it had before, a board's primary view stays"
        raise InputError.of("board-spec", "board.toml", found, expected, hint)


def best_so_far(rows: Iterable[Row], primary: str, *, bar: bool = True) -> tuple[Row, ...]:
    """The line of records: each entry above the best baseline and every earlier entry.

    Args:
        rows: of the standings.
        primary: the view that ranks.
        bar: whether the baselines are in the way: they come first whatever their dates, so the
            line begins with the first entry above the best of them.

    Source: Lin et al. 2021, §3.
    """
    rows = sorted(rows, key=lambda row: (row.received, row.id))
    best = max((Decimal(r.scores[primary]) for r in rows if r.baseline and bar), default=None)
    line = []
    for row in (row for row in rows if not row.baseline):
        score = Decimal(row.scores[primary])
        if best is None or score > best:
            best = score
            line.append(row)
    return tuple(line)


def _trophies(shown: Iterable[Submission], primary: str, *, bar: bool) -> frozenset[str]:
    """Entries strictly above every earlier one (Lin et al. 2022, §3)."""
    best: Decimal | None = None
    winners = set()
    for submission in sorted(shown, key=lambda s: (s.received, s.id)):
        score = Decimal(submission.scores[primary])
        if (submission.baseline and not bar) or (best is not None and score <= best):
            continue
        best = score
        if not submission.baseline:
            winners.add(submission.id)
    return frozenset(winners)


def _row(
    submission: Submission,
    *,
    views: Iterable[View],
    today: date,
    rank: int | None = None,
    trophy: bool = False,
    why: str = "",
) -> Row:
    """An entry's row; a view that does not list it has no score there.

    Args:
        submission: the entry.
        views: of the rules.
        today: decides what is embargoed.
        rank: its own.
        trophy: whether it has one by the rule.
        why: it has no rank.
    """
    identity, until = submission.identity, submission.embargo_until
    if submission.published is None or submission.type is None:
        raise ValueError(submission.id)
    unlisted = list_reasons(views, identity)

    def listed(texts: Mapping[str, str]) -> Mapping[str, str]:
        if not unlisted:
            return texts
        return {view: text for view, text in texts.items() if view not in unlisted}

    return Row(
        rank=rank,
        id=submission.id,
        received=submission.received,
        published=submission.published,
        identity=identity,
        type=submission.type,
        scores=listed({**submission.scores, **submission.final}),
        counts=submission.counts,
        seeds=submission.seeds,
        spreads=listed(submission.spreads),
        standard_errors=listed(submission.standard_errors),
        trophy=trophy if submission.old_trophy is None else submission.old_trophy,
        trophy_by_rule=trophy,
        unranked=why,
        imported=submission.old_trophy is not None,
        reveal_due=identity is None and until is not None and today >= until,
        embargo_until=until,
        baseline=submission.baseline,
        untold=tuple(view for view in submission.untold if view not in unlisted),
        unlisted=unlisted,
        findings=() if identity is None else submission.findings,
        errata=submission.errata,
        corrected=bool(submission.repaired),
        added=tuple(at for at, _ in submission.errata if at not in submission.repaired),
        events=submission.events,
        files=submission.files,
        costs=submission.costs,
        exact=submission.exact,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class RankRange:
    """The ranks that an entry may have.

    Attributes:
        low, high: first and last; `None` where not told.
        why: the reason then, else "".
    """

    low: int | None = None
    high: int | None = None
    why: str = ""


def find_measured(
    measured: Sequence[Measured], *, season: str, view: str, now: datetime
) -> Measured | None:
    """The latest that may be shown at a moment; `None` where there is none.

    Args:
        measured: in order.
        season: whose entries, "" for a board without seasons.
        view: what ranks them.
        now: the moment, UTC.
    """
    wanted = (season, view)
    due = (one for one in reversed(measured) if one.due <= now.date())
    return next((one for one in due if (one.season, one.view) == wanted), None)


def is_stale(measured: Measured, corrected: Mapping[str, datetime]) -> bool:
    """Check whether a compared entry was corrected since.

    Args:
        measured: what was told.
        corrected: id -> latest correction, of entries that had one.
    """
    return any(corrected.get(name, measured.at) > measured.at for name in measured.covered)


def list_ranges(
    measured: Measured | None,
    ranked: Mapping[str, date],
    trust: Trust | None,
    *,
    last: date | None,
    closed: date | None,
) -> Mapping[str, RankRange]:
    """The range of every entry that has a rank now, or why it has none.

    Args:
        measured: what was told, if anything was.
        ranked: id -> day of publication, of those that have a rank.
        trust: the rule of today, if there is one.
        last: last day of the board or season, `None` where there is none yet.
        closed: when the board was closed for good, `None` before.
    """
    known = {} if measured is None else _widen(measured, ranked)

    def say_due(published: date) -> str:
        if trust is None or "ranges" not in trust.show:
            return "this board publishes no rank ranges"
        day = due_day(trust, published, last=last, closed=closed)
        when = say_after(trust, published, last=last) if day is None else f"from {day} on"
        return f"published {when}"

    return {
        name: known.get(name) or RankRange(why=_say_why(name, measured) or say_due(day))
        for name, day in ranked.items()
    }


def _widen(measured: Measured, ranked: Mapping[str, date]) -> Mapping[str, RankRange]:
    ranges, entries = measured.figures.ranges, measured.entries
    if ranges is None or not set(entries) <= ranked.keys():
        return {}
    more = len(ranked) - len(entries)
    return {
        name: RankRange(low=low, high=high + more)
        for name, low, high in zip(entries, ranges.low, ranges.high, strict=True)
    }


def _say_why(name: str, measured: Measured | None) -> str:
    """Return what the event says of an entry without a range; "" for one that it does not know."""
    if measured is not None and name in measured.left_out:
        return _LEFT_OUT[measured.left_out[name]]
    if measured is not None and name in measured.entries:
        return measured.figures.why.get("ranges", "rank ranges were not computed")
    return ""


def list_reasons(views: Iterable[View], identity: Identity | None) -> Mapping[str, str]:
    """Return why an entry is not listed in some views: view -> reason, of no other view.

    Args:
        views: those without `training_at_most` list every entry.
        identity: what its team says of it; `None` while an embargo hides that.
    """
    reasons = {
        view.name: _say_reason(view.training_at_most, identity)
        for view in views
        if view.training_at_most is not None
    }
    return {name: reason for name, reason in reasons.items() if reason}


def _say_reason(most: int, identity: Identity | None) -> str:
    if identity is None:
        return "training pairs withheld by an embargo"
    pairs = None if identity.efficiency is None else identity.efficiency.training_pairs
    if pairs is None:
        return "training pairs not stated"
    return f"{pairs:,} training pairs, more than {most:,}" if pairs > most else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparable:
    """Entries that may be compared.

    Attributes:
        entries: ids in the order they came; each may be compared with some other.
        alike: id -> those of them that it is nearly the same as, for all entries, both ways.
        left_out: id of every other -> why.
    """

    entries: tuple[str, ...]
    alike: Mapping[str, frozenset[str]]
    left_out: Mapping[str, LeftOut]

    @property
    def pairs(self) -> tuple[tuple[str, str], ...]:
        """The pairs that are not compared, the earlier entry first."""
        order = {name: at for at, name in enumerate(self.entries)}
        return tuple(
            (one, other)
            for one in self.entries
            for other in sorted(self.alike[one], key=order.__getitem__)
            if order[one] < order[other]
        )


def choose_comparable(
    entries: Sequence[str],
    alike: Mapping[str, AbstractSet[str]],
    hidden: AbstractSet[str] = frozenset(),
) -> Comparable:
    """Choose the entries that are compared.

    An entry behind an embargo that is near to another one waits until the embargo is over: the
    pair that is left out would say who it is.

    Args:
        entries: ids in the order they came.
        alike: id -> ids of others that it is nearly the same as; read both ways.
        hidden: those behind an embargo.
    """
    every = read_pairs(((one, other) for one, others in alike.items() for other in others), entries)
    withheld = {name for name in entries if name in hidden and every[name]}
    shown = [name for name in entries if name not in withheld]
    near = {name for name in shown if len(every[name] - withheld) == len(shown) - 1}
    compared = tuple(name for name in shown if name not in near)
    left_out: dict[str, LeftOut] = {
        name: "withheld" if name in withheld else "near"
        for name in entries
        if name in withheld or name in near
    }
    return Comparable(
        entries=compared,
        alike={name: every[name] & frozenset(compared) for name in compared},
        left_out=left_out,
    )


def read_pairs(
    pairs: Iterable[tuple[str, str]], entries: Iterable[str]
) -> Mapping[str, frozenset[str]]:
    """Id -> those that it is paired with, both ways, for all of some entries.

    Args:
        pairs: of ids; those with an id that is not among the entries are ignored.
        entries: ids.
    """
    found: dict[str, set[str]] = {name: set() for name in entries}
    for one, other in pairs:
        if one != other and one in found and other in found:
            found[one].add(other)
            found[other].add(one)
    return {name: frozenset(others) for name, others in found.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class SeasonStandings:
    """A season with its leaderboard."""

    season: Season
    standings: Standings


def list_seasons(
    log: Iterable[Entry] | History, spec: BoardSpec, *, now: datetime
) -> tuple[SeasonStandings, ...]:
    """The seasons that have begun, the latest first; before the first one, that one.

    Args:
        log: a verified log, the vault's or the public one, or what the public one says.
        spec: the rules in force; nothing comes of one without seasons.
        now: the moment (UTC).
    """
    log = log if isinstance(log, History) else tuple(log)
    begun = [season for season in spec.seasons if season.opens <= now.date()] or spec.seasons[:1]
    return tuple(
        SeasonStandings(season=season, standings=make_standings(log, spec, now=now, season=season))
        for season in reversed(begun)
    )


def current_standings(
    log: Iterable[Entry] | History, spec: BoardSpec, *, now: datetime
) -> tuple[Standings, BoardSpec]:
    """The leaderboard of the board, or of its latest season, with the rules that go with it.

    Args:
        log: a verified log, the vault's or the public one, or what the public one says.
        spec: the rules in force.
        now: the moment (UTC).
    """
    log = log if isinstance(log, History) else tuple(log)
    seasons = list_seasons(log, spec, now=now)
    if seasons:
        return seasons[0].standings, spec.in_season(seasons[0].season)
    return make_standings(log, spec, now=now), spec


def listing_views(spec: BoardSpec) -> tuple[View, ...]:
    """The public views with standings of their own; one that ranks the board needs none."""
    return tuple(
        view
        for view in spec.public_views
        if view.training_at_most is not None and view.name != spec.primary
    )


def rank_listed(standings: Standings, view: View) -> Standings:
    """The entries that a view lists, by its score; ties to the earlier submission.

    A trophy belongs to the view that ranks the board, so there are none. Whoever is not listed
    stands without a rank, with the reason.

    Args:
        standings: of the board, or of a season.
        view: one of `listing_views`.
    """
    listed = [row for row in standings.every if _is_listed(row, view)]
    listed.sort(key=lambda row: (-Decimal(row.scores[view.name]), row.received, row.id))
    ranks: dict[str, int] = {}
    for row in listed:
        if not row.baseline:
            ranks[row.id] = len(ranks) + 1
    others = [row for row in standings.every if not _is_listed(row, view)]
    return replace(
        standings,
        primary=view.name,
        rows=tuple(_rank_row(row, ranks.get(row.id), "") for row in listed),
        unranked=tuple(_rank_row(row, None, _why(row, view)) for row in others),
    )


def _is_listed(row: Row, view: View) -> bool:
    return view.name in row.scores and not row.unranked.startswith(POST_HOC)


def _why(row: Row, view: View) -> str:
    return (
        row.unlisted.get(view.name)
        or (release.NOT_CLEAR if view.name in row.untold else "")
        or row.unranked
        or "not scored on this view"
    )


def _rank_row(row: Row, rank: int | None, why: str) -> Row:
    return replace(
        row,
        rank=rank,
        unranked=why,
        trophy=False,
        trophy_by_rule=False,
        rank_low=None,
        rank_high=None,
        unranged="",
    )
