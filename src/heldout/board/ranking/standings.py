"""The rows of the leaderboard on a given day: a pure function of log, rules and now."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from decimal import Decimal

from heldout.board.log.events import Entry, redact
from heldout.board.log.final import Final
from heldout.board.log.history import History, Submission, read_history
from heldout.board.log.joined_names import hides_tie, list_renamed
from heldout.board.log.manifest import Identity
from heldout.board.log.measured import Measured
from heldout.board.ranking.rank_ranges import RankRange, find_measured, is_stale, list_ranges
from heldout.board.ranking.training import list_reasons
from heldout.board.rules.deadlines import (
    Term,
    list_terms,
    missed_deadline,
    one_shot_deadline,
    opened_before,
    tells_final,
)
from heldout.board.rules.label_views import release_rule_at
from heldout.board.rules.release import RuleName, say_withheld
from heldout.board.rules.spec import BoardSpec, Season
from heldout.errors import InputError, Problem

__all__ = [
    "POST_HOC",
    "Row",
    "Standings",
    "best_so_far",
    "make_standings",
    "project",
]

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
        trophy: strictly above everything submitted before it; baselines too, unless the board
            says otherwise. Of an imported entry as the old board gave it.
        reveal_due: the embargo's day has come, but this log does not hold the identity yet.
        embargo_until: the day of the reveal, also after it; `None` without an embargo.
        baseline: an organiser's baseline.
        rank_low, rank_high: simultaneous rank range; `None` where not told.
        unranged: why there is none where the board tells ranges; "" where it tells none.
        unranked: why an entry has no rank; "" for one that has, and for a baseline.
        not_above: view -> "not above 0.412" where its score is not told for that; `UNTOLD` while an
            embargo hides above what; `NOT_CLEAR` by the ratchet.
        unlisted: view -> why the view does not list the entry, which then has no score there.
        imported: an old board's entry, as that board published it.
        trophy_by_rule: what `trophy` would be by the rule; differs on imported entries only.
        findings: codes of the findings it was accepted with; empty while embargoed.
        errata: (time, reason) of each correction.
        corrected: one of them did more than tell a score on a view that came later.
        added: times of those that did nothing more.
        events: (time, kind, hash) of every event about it.
        files: name of each sealed file -> SHA-256.
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
    rank_low: int | None = None
    rank_high: int | None = None
    unranged: str = ""
    unranked: str = ""
    imported: bool = False
    trophy_by_rule: bool = False
    not_above: Mapping[str, str] = field(default_factory=dict)
    unlisted: Mapping[str, str] = field(default_factory=dict)
    findings: tuple[str, ...] = ()
    errata: tuple[tuple[datetime, str], ...] = ()
    corrected: bool = False
    added: tuple[datetime, ...] = ()
    events: tuple[tuple[datetime, str, str], ...] = ()
    files: Mapping[str, str]

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
        unranked: entries without a rank: the score is not told yet, or not above what the team was
            told before, or the entry came after the deadline of a one-shot board.
        waiting: received submissions without a decision.
        decision_days: median days from submission to decision, `None` before the first.
        season: whose entries these are; "" for a board without seasons.
        measured: what was told of the ranking beside the scores; `None` where nothing was, or
            scores were corrected since.
        final: of the whole board, whose finalists may be of any season; `None` before they are
            named.
        finalists: their rows, without a rank, in the order of receipt.
    """

    board: str
    as_of: datetime
    primary: str
    rows: tuple[Row, ...]
    waiting: int
    decision_days: float | None
    unranked: tuple[Row, ...] = ()
    season: str = ""
    measured: Measured | None = None
    final: Final | None = None
    finalists: tuple[Row, ...] = ()

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
    history = read_history(entries)
    terms = list_terms(history, now)
    opened = opened_before(terms)
    told = ("scores", "queries", "seeds", "untold")
    renamed = list_renamed(history)
    return tuple(
        redact(
            entry,
            (
                *(told if entry.time < opened else ()),
                *_may_open(entry, history.submissions, now.date()),
                *(
                    _may_open_bar(entry, history, renamed, now.date())
                    if entry.time < opened
                    else ()
                ),
                *_may_open_final(entry, history, terms),
            ),
        )
        for entry in entries
    )


def _may_open_final(entry: Entry, history: History, terms: Sequence[Term]) -> tuple[str, ...]:
    if "final" not in entry.event.sealed or entry.event.submission is None:
        return ()
    received = history.submissions[entry.event.submission].received.date()
    return ("final",) if tells_final(entry, terms, received) else ()


def _may_open_bar(
    entry: Entry,
    history: History,
    renamed: Sequence[Submission],
    today: date,
) -> tuple[str, ...]:
    """A team's best score names the entry that has it, and so the team of this one.

    Which run is the best that anybody has sent, no ratchet tells.
    """
    if entry.event.kind not in ("published", "corrected"):
        return ()
    submissions = history.submissions
    own = submissions[str(entry.event.submission)]
    if "bars" in entry.event.sealed and release_rule_at(history, own.received) == "ratchet":
        return ()
    names = (entry.get("bars") or {}).values()
    bars = [submissions[name] for name in names if name in submissions]
    tied = any(hides_tie(renamed, own.teams, bar, day=today) for bar in bars)
    hidden = tied or any(one.is_hidden(today) for one in (own, *bars))
    return () if hidden else ("not_above", "bars")


def _may_open(entry: Entry, submissions: Mapping[str, Submission], today: date) -> tuple[str, ...]:
    if entry.event.kind not in ("published", "baseline", "updated", "amended"):
        return ()
    submission = submissions[str(entry.event.submission)]
    if submission.status != "published" or _is_draft(entry, submission):
        return ()
    return () if submission.is_hidden(today) else ("identity", "why", "findings")


def _is_draft(entry: Entry, submission: Submission) -> bool:
    """Whether an update came before publication: nobody but the organisers ever saw it."""
    published = [event for _, kind, event in submission.events if kind == "published"]
    events = [event for _, _, event in submission.events]
    return any(events.index(entry.hash) < events.index(event) for event in published)


def make_standings(
    entries: Iterable[Entry], spec: BoardSpec, *, now: datetime, season: Season | None = None
) -> Standings:
    """The leaderboard of a moment.

    Args:
        entries: a verified log, the vault's or the public one; the result is the same.
        spec: the rules in force.
        now: the moment (UTC); decides what is embargoed.
        season: whose entries to rank, by its view; `None` for a board without seasons.

    Raises:
        InputError: board.toml ranks by a view that an entry was never scored on.
    """
    history = read_history(project(entries, now=now))
    every = [s for s in history.submissions.values() if s.status in ("published", "imported")]
    if season is not None:
        spec = spec.in_season(season)
        every = [s for s in every if season.view in {*s.scores, *s.untold}]
    terms = list_terms(history, now)
    deadline = one_shot_deadline(history)
    unlisted = {s.id: list_reasons(spec.views, s.identity) for s in every}
    rules = {s.id: release_rule_at(history, s.received) for s in every}
    why = {
        s.id: _why_unranked(s, spec.primary, deadline, terms, rules[s.id])
        or unlisted[s.id].get(spec.primary, "")
        for s in every
    }
    shown = [s for s in every if not why[s.id]]
    _check_primary(shown, spec.primary)
    one_by_one = deadline is None
    trophies = _trophies(shown, spec.primary, bar=spec.baselines.bar) if one_by_one else frozenset()
    shown.sort(key=lambda s: (-Decimal(s.scores[spec.primary]), s.received, s.id))
    rows = []
    rank = 0
    for submission in shown:
        rank += not submission.baseline
        place = None if submission.baseline else rank
        row = _row(
            submission,
            place,
            trophy=submission.id in trophies,
            today=now.date(),
            rule=rules[submission.id],
        )
        rows.append(_unlist(row, unlisted[submission.id]))
    named = "" if season is None else season.name
    measured = find_measured(history.measured, season=named, view=spec.primary, now=now)
    corrected = {s.id: max(s.mended) for s in every if s.mended}
    if measured is not None and is_stale(measured, corrected):
        measured = None
    others = sorted((s for s in every if why[s.id]), key=lambda s: (s.received, s.id))
    return Standings(
        board=spec.name,
        as_of=now,
        primary=spec.primary,
        rows=_add_ranges(rows, measured, spec, season=named, closed=history.closed),
        unranked=tuple(
            replace(
                _unlist(
                    _row(s, None, trophy=False, today=now.date(), rule=rules[s.id]),
                    unlisted[s.id],
                ),
                unranked=why[s.id],
            )
            for s in others
        ),
        waiting=sum(s.pending for s in history.submissions.values()),
        decision_days=_median_days(history),
        season=named,
        measured=measured,
        final=history.final,
        finalists=tuple(_list_finalists(history, today=now.date())),
    )


def _list_finalists(history: History, *, today: date) -> Iterator[Row]:
    """The finalists' rows, whatever season they are of."""
    for name in () if history.final is None else history.final.finalists:
        submission = history.submissions[name]
        rule = release_rule_at(history, submission.received)
        yield _row(submission, None, trophy=False, today=today, rule=rule)


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
    days = {row.id: row.published.date() for row in rows if row.rank is not None}
    ranges = list_ranges(
        measured, days, spec.trust, last=spec.last_day_of(season), closed=closed and closed.date()
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
    terms: Sequence[Term],
    rule: RuleName,
) -> str:
    """Why an entry has no rank, "" if it has one."""
    if submission.status == "imported" and primary not in submission.scores:
        return "the old board gave it no official score"
    if primary in submission.untold:
        return say_withheld(submission.not_above.get(primary), rule)
    if deadline is not None and not submission.scores:
        return f"score shown after {deadline:%d %b %Y}"
    missed = None if submission.baseline else missed_deadline(terms, submission.received)
    if missed is not None:
        return f"{POST_HOC}: came after {missed:%d %b %Y}"
    return ""


def _unlist(row: Row, unlisted: Mapping[str, str]) -> Row:
    """A row without the scores of the views that do not list it."""

    def keep(texts: Mapping[str, str]) -> dict[str, str]:
        return {view: text for view, text in texts.items() if view not in unlisted}

    return replace(
        row,
        scores=keep(row.scores),
        spreads=keep(row.spreads),
        not_above=keep(row.not_above),
        unlisted=unlisted,
    )


def _check_primary(shown: Iterable[Submission], primary: str) -> None:
    missing = [s.id for s in shown if primary not in s.scores]
    if missing:
        raise InputError(
            Problem(
                code="board-spec",
                path="board.toml",
                found=f"primary = {primary!r}, of which {', '.join(missing[:3])} has no score",
                expected="a view that every published entry has a released score of",
                hint="name the view that it had before, a board's primary view stays",
            )
        )


def best_so_far(rows: Iterable[Row], primary: str, *, bar: bool = True) -> tuple[Row, ...]:
    """The line of records: each entry above the best baseline and every earlier entry.

    Args:
        rows: of the standings.
        primary: the view that ranks.
        bar: whether the baselines are in the way: they come first whatever their dates, so the
            line begins with the first entry above the best of them.

    Source: significant-improvements, section 3.
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
    """Entries strictly above every earlier one (fostering-coopetition, section 3)."""
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
    submission: Submission, rank: int | None, *, trophy: bool, today: date, rule: RuleName
) -> Row:
    identity, until = submission.identity, submission.embargo_until
    if submission.published is None or submission.type is None:
        raise ValueError(submission.id)
    return Row(
        rank=rank,
        id=submission.id,
        received=submission.received,
        published=submission.published,
        identity=identity,
        type=submission.type,
        scores={**submission.scores, **submission.final},
        counts=submission.counts,
        seeds=submission.seeds,
        spreads=submission.spreads,
        trophy=trophy if submission.old_trophy is None else submission.old_trophy,
        trophy_by_rule=trophy,
        imported=submission.old_trophy is not None,
        reveal_due=identity is None and until is not None and today >= until,
        embargo_until=until,
        baseline=submission.baseline,
        not_above={
            view: say_withheld(submission.not_above.get(view), rule) for view in submission.untold
        },
        findings=() if identity is None else submission.findings,
        errata=submission.errata,
        corrected=bool(submission.mended),
        added=tuple(at for at, _ in submission.errata if at not in submission.mended),
        events=submission.events,
        files=submission.files,
    )


def _median_days(history: History) -> float | None:
    days = sorted(
        (moment - submission.received).total_seconds() / 86_400
        for submission in history.submissions.values()
        if not submission.baseline
        for moment, kind, _ in submission.events
        if kind in ("published", "rejected")
    )
    middle = len(days) // 2
    if not days:
        return None
    return days[middle] if len(days) % 2 else (days[middle - 1] + days[middle]) / 2
