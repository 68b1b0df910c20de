"""What stands around the table of a board: the frame of a page, the rules, and the sections below.

The rules are said in words (`rules.txt`). The audit trail is what the public log has of
commitments, keys and finals: whoever has stored the first digest can hold the archive against it.
"Confidence" is what an event `measured` says of the ranking, and what comes when: ranges of ranks
and the significance of records. Everything follows from the public log.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from itertools import islice, pairwise
from typing import ClassVar, NamedTuple
from urllib.parse import quote

import msgspec

from heldout.answers.text import clean
from heldout.board.log.events import Entry
from heldout.board.log.final import Final, Measured, OpenedFinal, SeasonEnd, Step, TrustPart
from heldout.board.rules.release import NOT_CLEAR
from heldout.board.rules.spec import BoardSpec, Example, View, say_after
from heldout.board.site.rows import (
    STARS,
    TableRow,
    ViewColumn,
    join_names,
    make_columns,
    make_rows,
    public_row,
    read_template,
)
from heldout.board.standings.overdue import Ending, figures_due_since, find_ending, say_season
from heldout.board.standings.standings import (
    Standings,
    best_so_far,
    listing_views,
    rank_listed,
    read_pairs,
)
from heldout.charts.axes import day_words
from heldout.errors import plural
from heldout.ids import Digest


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """What every page has around its content.

    Attributes:
        title: of the browser's tab.
        summary: one sentence for search engines and previews.
        root: the way from the page to `leaderboard/`, "" or "../".
        board: title of the board.
        as_of: day of the standings, in words.
        moment: the same as `2026-11-20T17:10:00Z`.
        events: length of the public log, in words.
        head: hash of its last event.
    """

    title: str
    summary: str
    root: str
    board: str
    as_of: str
    moment: str
    events: str
    head: str


_MOST_NAMES = 5
_PUBLISHING = frozenset(("published", "baseline"))

_SCORING = frozenset(("corrected", "reviewed"))


@dataclass(frozen=True, slots=True, kw_only=True)
class TrustLine:
    """One event that others can check the organisers by.

    Attributes:
        when: its time, `2026-11-20T17:10:00Z`.
        when_words: its day, in words.
        says: what happened.
        why: the organisers' reason, in their words, or "".
        digest: what was committed to, as a salted digest, or "".
        event: its number in the public log.
    """

    when: str
    when_words: str
    says: str
    why: str
    digest: str
    event: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SetFacts:
    """Sizes of one query set.

    Attributes:
        queries: how many queries a submission answers.
        judged: how many of them a mean is taken over; `None` where nothing was published.
    """

    queries: int
    judged: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BoardFacts:
    """A board's sizes and addresses.

    Attributes:
        sets: name of a query set -> its sizes.
        events: number of events in the public log.
        head: hash of the last of them.
        example: a query and its answer, `None` where there is none to show.
        repository: address of the board's repository, or "".
        home: address under which `leaderboard/` is published, or ""; permalinks use it.
        trust: what others can check the organisers by, in order.
        closed: when the board was closed for good, `None` before.
        versions: the rules since the first submission, each with its first day, in order.
    """

    sets: Mapping[str, SetFacts] = field(default_factory=dict)
    events: int
    head: Digest
    example: Example | None = None
    repository: str = ""
    home: str = ""
    trust: tuple[TrustLine, ...] = ()
    closed: datetime | None = None
    versions: tuple[tuple[date, BoardSpec], ...] = ()


class RuleText(NamedTuple):
    """A rule: what it is about, and what it says."""

    about: str
    says: str


def list_rules(
    spec: BoardSpec, versions: Sequence[tuple[date, BoardSpec]] = ()
) -> tuple[RuleText, ...]:
    """Every rule that board.toml sets, in the order in which a participant meets them.

    Args:
        spec: the rules of today.
        versions: the rules since the first submission, each with its first day, in order; a rule
            that was another one in one of them says since when it holds.
    """
    rules, before = _read_rules(spec), [(day, _read_rules(old)) for day, old in versions]
    return tuple(
        RuleText(about, says + _say_since(about, says, before)) for about, says in rules.items()
    )


def _read_rules(spec: BoardSpec) -> Mapping[str, str]:
    """Read what a rule is about and what it says, as `rules.txt` has them."""
    own = next((season.name for season in spec.seasons if season.view == spec.primary), "")
    text = read_template("rules.txt").render(
        spec=spec,
        secret=[key for key, queries in spec.sets.items() if queries.secret],
        part=make_columns(spec)[0].part,
        season_ends=find_ending(spec, own) is not None,
        not_clear=NOT_CLEAR,
    )
    sections = (
        section.partition("\n") for section in re.split(r"^## ", text, flags=re.MULTILINE)[1:]
    )
    found = {about: re.sub("[ \n]+", " ", says).strip() for about, _, says in sections}
    return {about: says for about, says in found.items() if says}


def _say_since(about: str, says: str, versions: Sequence[tuple[date, Mapping[str, str]]]) -> str:
    """The first day of a rule, if there was another one before."""
    others = [n for n, (_, rules) in enumerate(versions) if rules.get(about, "") != says]
    if not others or others[-1] + 1 >= len(versions):
        return ""
    return f" In force since {day_words(versions[others[-1] + 1][0])}."


Heads = Callable[[], Iterable[tuple[str, str | None]]]
"""Gives kind and submission of every event of a log, in order."""


def list_trust(entries: Iterable[Entry], *, heads: Heads) -> tuple[TrustLine, ...]:
    """Return what others can check the organisers by; an old board's record has none but its keys.

    Args:
        entries: those of a public log that are about no submission, in order.
        heads: of the whole log.
    """
    entries = tuple(entries)
    imported = any(entry.event.kind == "imported-board" for entry in entries)
    shown = (e for e in entries if not (imported and "labels" in e.event.sealed))
    return tuple(_trust_line(e, says, heads) for e in shown if (says := _say_event(e)))


_SAYS = {
    "closed-board": "Closed for good: the archive opens labels, scores by query and the log",
    "opened-final": "Opened the final: the finalists' scores, once, and who wins",
}


def _say_event(entry: Entry) -> str:
    kind = entry.event.kind
    if kind in _SAYS:
        return _SAYS[kind]
    if kind == "named-finalists":
        return f"Named {plural(len(entry.event.public['finalists']), 'finalist')}"
    if kind == "ended-season":
        return f"Ended {say_season(entry.event.public['season'])}: exact scores"
    if kind == "rekeyed":
        return f"Keys of the organisers changed ({_say_keys(entry)})"
    if "labels" not in entry.event.sealed:
        return ""
    again = "" if kind == "opened-board" else "again "
    return f"Committed {again}to everything held out that decides a score"


def _say_left_behind(heads: Heads, commitment: Entry) -> str:
    """The entries that were not scored again since, where others were: two sets of labels."""
    if "labels" not in commitment.event.sealed:
        return ""
    every = iter(heads())
    earlier = _list_names(islice(every, commitment.event.seq), _PUBLISHING)
    since = frozenset(_list_names(every, _SCORING)) if earlier else frozenset()
    left = [name for name in earlier if name not in since]
    if not left or len(left) == len(earlier):
        return ""
    more = len(left) - _MOST_NAMES
    names = ", ".join(map(clean, left[:_MOST_NAMES])) + (f" and {more} more" if more > 0 else "")
    return (
        f"; {plural(len(earlier) - len(left), 'earlier score')} computed again since, but not "
        f"those of {names}"
    )


def _list_names(heads: Iterable[tuple[str, str | None]], kinds: frozenset[str]) -> list[str]:
    return list(dict.fromkeys(name for kind, name in heads if name is not None and kind in kinds))


def _say_keys(entry: Entry) -> str:
    parts = [
        f"{plural(len(changed), 'key')} {word}"
        for field, word in (("added", "added"), ("removed", "dropped"))
        if isinstance(changed := entry.event.public.get(field), Sequence) and changed
    ]
    return ", ".join(parts) or "old ones destroyed"


def _trust_line(entry: Entry, says: str, heads: Heads) -> TrustLine:
    why = entry.event.public.get("why")
    return TrustLine(
        when=entry.event.at,
        when_words=day_words(entry.time),
        says=says + _say_left_behind(heads, entry),
        why=clean(why) if isinstance(why, str) else "",
        digest=entry.event.sealed.get("labels", ""),
        event=entry.event.seq,
    )


def make_frame(
    title: str,
    summary: str,
    standings: Standings,
    spec: BoardSpec,
    facts: BoardFacts,
    *,
    root: str = "",
) -> Frame:
    """Return what stands around a page."""
    moment = standings.as_of.astimezone(UTC)
    return Frame(
        title=title,
        summary=summary,
        root=root,
        board=clean(spec.title),
        as_of=day_words(moment),
        moment=moment.strftime("%Y-%m-%dT%H:%M:%SZ"),
        events=plural(facts.events, "event"),
        head=facts.head,
    )


_PARTS: Mapping[TrustPart, str] = {
    "ranges": "ranges of ranks",
    "progress": "which records were significant when they came",
}

_WHY = "They are held back because they reveal something about the hidden labels."

_SCHEMA = 1
"""Of trust.json."""


class RankRow(NamedTuple):
    """A compared entry: its row, and if it was a record when it came, its star and its worth."""

    row: TableRow
    star: str
    record: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RankingTrust:
    """All of the section.

    Attributes:
        coming: what is not published yet and when it will be.
        measured: what is published; `None` before.
        known: id -> row, of the table.
        lead: who may be the first, by the ranges; empty without them.
        ahead: whether that is one entry, significantly better than every other.
        alike: whether two of these were not compared.
        of: how many ranks there are.
        ranks: compared entries by score.
        data: the file of all that is published.
    """

    parts: ClassVar[Mapping[TrustPart, str]] = _PARTS
    coming: tuple[str, ...]
    measured: Measured | None = None
    known: Mapping[str, TableRow] = field(default_factory=dict)
    lead: tuple[TableRow, ...] = ()
    ahead: bool = False
    alike: bool = False
    of: int = 0
    ranks: tuple[RankRow, ...] = ()
    data: str = ""


def make_ranking_trust(
    standings: Standings, rows: Sequence[TableRow], spec: BoardSpec, *, closed: datetime | None
) -> RankingTrust | None:
    """The section; `None` on a board that publishes nothing but scores.

    Args:
        standings: of the board or season.
        rows: of the table, best first.
        spec: its rules.
        closed: when the board was closed for good.
    """
    measured = standings.measured
    if measured is None and spec.trust is None:
        return None
    coming = _say_coming(standings, spec, closed)
    if measured is None:
        return RankingTrust(coming=coming)
    known, ranges = {row.id: row for row in rows}, measured.figures.ranges
    low, high = (
        dict(zip(measured.entries, ends, strict=False))
        for ends in ((ranges.low, ranges.high) if ranges else ((), ()))
    )
    lead = tuple(row for row in rows if low.get(row.id) == 1)
    return RankingTrust(
        coming=coming,
        measured=measured,
        known=known,
        lead=lead,
        ahead=len(lead) == 1 and high[lead[0].id] == 1,
        alike=any(read_pairs(measured.figures.alike, [row.id for row in lead]).values()),
        of=sum(row.rank is not None for row in rows),
        ranks=_rank_rows(measured, rows, _say_records(standings, spec)),
        data=figures_file(standings),
    )


def figures_file(standings: Standings) -> str:
    """Return where all that was published lies in `leaderboard/`, a file for each season."""
    return f"trust-{standings.season}.json" if standings.season else "trust.json"


def format_figures(standings: Standings) -> bytes | None:
    """Return what was published, as JSON; `None` where nothing was."""
    one = standings.measured
    if one is None:
        return None
    names = ("event", "view", "season", "due", "seed", "entries", "left_out", "figures")
    document = {"schema": _SCHEMA, **{name: getattr(one, name) for name in names}}
    data = msgspec.json.encode(document, order="deterministic")
    return msgspec.json.format(data, indent=1) + b"\n"


def _rank_rows(
    measured: Measured, rows: Sequence[TableRow], records: Mapping[str, tuple[str, str]]
) -> tuple[RankRow, ...]:
    """The compared entries with the ranges of the table; without ranges those that were records."""
    shown = measured.entries if measured.figures.ranges is not None else (*records,)
    return tuple(
        RankRow(row, *records.get(row.id, ("", "")))
        for row in rows
        if row.id in shown and row.id in measured.entries
    )


def _say_records(standings: Standings, spec: BoardSpec) -> Mapping[str, tuple[str, str]]:
    """Compared record, as the chart of progress draws them -> its star, and what it was worth.

    None on a one-shot board, whose scores are all shown at once.
    """
    measured = standings.measured
    if spec.kind == "one-shot" or measured is None or measured.figures.progress is None:
        return {}
    ranked = [row for row in standings.rows if row.baseline or row.rank is not None]
    records = best_so_far(ranked, spec.primary, bar=spec.baselines.bar)
    pairs = {frozenset(pair) for pair in measured.figures.alike}
    steps = measured.figures.progress
    alike = {b.entry for a, b in pairwise(steps) if frozenset((a.entry, b.entry)) in pairs}
    said = {
        step.entry: (STARS[step.significant], _say_step(step, alike=step.entry in alike))
        for step in steps
    }
    return {row.id: said.get(row.id, ("", "not compared")) for row in records}


def _say_step(step: Step, *, alike: bool) -> str:
    if alike:
        return "nearly the same as the best before it, so not compared with it"
    if step.significant is None:
        return "nothing before it to compare with"
    worth = "significantly better than" if step.significant else "within noise of"
    family = plural(step.family, "hypothesis", "hypotheses")
    return f"{worth} the best before it, t test, Holm over {family}"


def _say_coming(standings: Standings, spec: BoardSpec, closed: datetime | None) -> tuple[str, ...]:
    """Return what is not published yet and when it will be."""
    trust, measured = spec.trust, standings.measured
    if trust is None or not trust.show:
        return ()
    covered = frozenset[str]() if measured is None else measured.covered
    wait = [r for r in standings.rows if r.rank is not None and r.id not in covered]
    last, today = spec.last_day_of(standings.season), standings.as_of.date()
    since = figures_due_since(standings, spec, None if closed is None else closed.date())
    when = say_after(trust, today, last=last)
    if measured is None:
        parts = join_names(_PARTS[part] for part in trust.show)
        said = [f"{parts[:1].upper()}{parts[1:]} appear here {when}. {_WHY}"]
    else:
        newer = plural(len(wait), "newer entry is", "newer entries are")
        they = "It" if len(wait) == 1 else "They"
        said = [f"{newer} not compared yet. {they} will be {when}."] if wait else []
    if since is not None:
        said.append(
            f"Due since {day_words(since)}: they appear when the organisers rebuild the page."
        )
    return tuple(said)


@dataclass(frozen=True, slots=True, kw_only=True)
class SeasonEndSection:
    """The end of a season, to come or past.

    Attributes:
        end: as the log has it, `None` before.
        ending: how the season ends by the rules, `None` afterwards.
        over: whether its last day is over.
        measure: of the view that ranks.
    """

    end: SeasonEnd | None
    ending: Ending | None
    over: bool
    measure: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """Standings below each other: of a view that lists some entries, or of a season.

    Attributes:
        anchor: id of its part of the page.
        title: what it lists.
        column: the view that ranks.
        rows: ranked entries and baselines, best first.
        unranked: the other entries, with the reason.
        path: of its CSV and JSON, as it stands in a link, without `.csv` and `.json`.
        days: of a season: its days and the number of its entries, in words.
        trust: what is published of a season's ranking beside the scores, `None` where nothing is.
        ends: of a season: what comes at its end, or came; `None` for nothing.
    """

    anchor: str
    title: str
    column: ViewColumn
    rows: tuple[TableRow, ...]
    unranked: tuple[TableRow, ...]
    path: str
    days: str = ""
    trust: RankingTrust | None = None
    ends: SeasonEndSection | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FinalistRow:
    """A finalist.

    Attributes:
        row: its line of the leaderboard.
        score: its score on the final view, "" before the opening.
        mark: "winner", "clearly below the best", or "".
    """

    row: TableRow
    score: str
    mark: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FinalSection:
    """The final of a board.

    Attributes:
        final: as the log has it.
        lines: id -> line of each finalist.
        measure: of the final view.
        closes: last day of the board.
        rows: finalists by score, the best first; before the opening in the order of receipt.
    """

    final: Final
    lines: Mapping[str, TableRow]
    measure: str
    closes: date
    rows: tuple[FinalistRow, ...]


def make_listings(standings: Standings, spec: BoardSpec) -> tuple[Listing, ...]:
    """The standings of every view that has some of its own.

    Args:
        standings: of the board.
        spec: its rules.
    """
    return tuple(
        make_listing(
            rank_listed(standings, view),
            rules_of(spec, view),
            anchor=f"view-{view.name}",
            title=f"Trained on at most {view.training_at_most:,} pairs ({clean(view.name)})",
            path=listing_path(view),
        )
        for view in listing_views(spec)
    )


def make_listing(
    standings: Standings, spec: BoardSpec, *, anchor: str, title: str, path: str
) -> Listing:
    """Standings of their own.

    Args:
        standings: the entries.
        spec: the rules they are ranked by.
        anchor: id of its part of the page.
        title: what it lists.
        path: of its CSV and JSON, below `leaderboard/`, without `.csv` and `.json`.
    """
    columns = make_columns(spec)
    rows = make_rows(standings, columns)
    return Listing(
        anchor=anchor,
        title=title,
        column=columns[0],
        rows=tuple(row for row in rows if not row.unranked),
        unranked=tuple(row for row in rows if row.unranked and not row.row.baseline),
        path=quote(path),
    )


def rules_of(spec: BoardSpec, view: View) -> BoardSpec:
    """The rules under which a view ranks."""
    return msgspec.structs.replace(spec, primary=view.name)


def listing_path(view: View) -> str:
    """Of a view's standings, below `leaderboard/`, without `.csv` and `.json`."""
    return f"views/{view.name}"


def make_final(standings: Standings, spec: BoardSpec) -> FinalSection | None:
    """The section of a board whose finalists are named, `None` for any other."""
    final, view = standings.final, spec.finalists_view
    if final is None or view is None:
        return None
    columns = make_columns(spec)
    lines = {row.id: TableRow(public_row(row), columns) for row in standings.finalists}
    opened = final.opened
    ids = [*final.finalists]
    if opened is not None:
        ids.sort(key=lambda name: -float(opened.scores[name]))  # equal ones as they came
    if spec.closes is None:
        raise ValueError(spec.name)
    return FinalSection(
        final=final,
        lines=lines,
        measure=clean(view.measure),
        closes=spec.closes,
        rows=tuple(_make_finalist(lines[name], opened) for name in ids),
    )


def _make_finalist(line: TableRow, opened: OpenedFinal | None) -> FinalistRow:
    if opened is None:
        return FinalistRow(row=line, score="", mark="")
    mark = "clearly below the best" if line.id in opened.below else ""
    mark = "winner" if line.id == opened.winner else mark
    return FinalistRow(row=line, score=opened.scores[line.id], mark=mark)


def make_season_end(standings: Standings, spec: BoardSpec) -> SeasonEndSection | None:
    """Return what a page says of a season's end; `None` where that publishes no exact score.

    Args:
        standings: of the board or season.
        spec: its rules.
    """
    end, ending = standings.season_end, find_ending(spec, standings.season)
    if end is None and ending is None:
        return None
    return SeasonEndSection(
        end=end,
        ending=None if end is not None else ending,
        over=ending is not None and standings.as_of.date() > ending.last,
        measure="" if end is None else clean(spec.view(end.view).measure),
    )
