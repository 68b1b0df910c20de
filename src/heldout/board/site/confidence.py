"""The section "Confidence": what an event `measured` says of the ranking, and what comes when.

Ranges of ranks and the significance of records. Everything follows from the public log.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from typing import NamedTuple

import msgspec

from heldout.board.log.measured import Figures, LeftOut, Measured, Step, TrustPart
from heldout.board.rules.spec import BoardSpec, say_after
from heldout.board.site.rows import STARS, TableRow, name_entry
from heldout.board.site.words import Phrase, SentencePart, count, join_names, phrase, plain
from heldout.board.standings.overdue import figures_due_since
from heldout.board.standings.standings import Standings, best_so_far, read_pairs
from heldout.charts.axes import day_words

_PARTS: Mapping[TrustPart, str] = {
    "ranges": "ranges of ranks",
    "progress": "which records were significant when they came",
}

_WHY = "They are held back because they reveal something about the hidden labels."

_LEFT_OUT: Mapping[LeftOut, str] = {
    "near": " (nearly the same as others)",
    "incomplete": " (no score for each query)",
    "withheld": " (an embargo withholds why)",
}

_MOST_NAMED = 4

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
        as_of: day of what is published, in words; "" where nothing is.
        compared: how many entries.
        says: who may lead, as a sentence.
        of: how many ranks there are.
        ranks: compared entries by score.
        figures: what is published, for tests, corrections and families; `None` before.
        apart: pairs that are nearly the same, so not compared.
        missing: parts that cannot be published, each with the reason, in sentences.
        left_out: entries that are not compared, with the reason.
        data: the file of all that is published.
    """

    coming: tuple[str, ...]
    as_of: str = ""
    compared: int = 0
    says: Phrase = ()
    of: int = 0
    ranks: tuple[RankRow, ...] = ()
    figures: Figures | None = None
    apart: tuple[Phrase, ...] = ()
    missing: tuple[str, ...] = ()
    left_out: tuple[Phrase, ...] = ()
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
    figures, known = measured.figures, {row.id: row for row in rows}
    return RankingTrust(
        coming=coming,
        as_of=day_words(measured.at),
        compared=len(measured.entries),
        says=_say_lead(measured, known),
        of=sum(row.rank is not None for row in rows),
        ranks=_rank_rows(measured, rows, _say_records(standings, spec)),
        figures=figures,
        apart=tuple(
            phrase(name_entry(known[one]), " and ", name_entry(known[other]))
            for one, other in figures.alike
            if one in known and other in known
        ),
        missing=tuple(
            f"No {words}: {figures.why[part]}."
            for part, words in _PARTS.items()
            if part in figures.why
        ),
        left_out=tuple(
            phrase(name_entry(known[name]), _LEFT_OUT[why])
            for name, why in measured.left_out.items()
            if name in known
        ),
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
    family = count(step.family, "hypothesis", "hypotheses")
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
        parts = plain(join_names(SentencePart(text=_PARTS[part]) for part in trust.show))
        said = [f"{parts[:1].upper()}{parts[1:]} appear here {when}. {_WHY}"]
    else:
        newer = count(len(wait), "newer entry is", "newer entries are")
        they = "It" if len(wait) == 1 else "They"
        said = [f"{newer} not compared yet. {they} will be {when}."] if wait else []
    if since is not None:
        said.append(
            f"Due since {day_words(since)}: they appear when the organisers rebuild the page."
        )
    return tuple(said)


def _say_lead(measured: Measured, known: Mapping[str, TableRow]) -> Phrase:
    """Return who may be the first, by the ranges; empty without them."""
    ranges = measured.figures.ranges
    if ranges is None:
        return ()
    ids = measured.entries
    lows, highs = (dict(zip(ids, ends, strict=True)) for ends in (ranges.low, ranges.high))
    group = [row for row in known.values() if lows.get(row.id) == 1]
    like = read_pairs(measured.figures.alike, [row.id for row in group])
    if len(group) == len(ids):
        return phrase("No compared entry is significantly better than another.")
    if len(group) > _MOST_NAMED:
        return phrase(
            f"For {len(group)} of {len(ids)} compared entries, no other is significantly better."
        )
    names = join_names(map(name_entry, group))
    if len(group) == 1 and highs[group[0].id] == 1:
        return phrase(names, " is significantly better than every other compared entry.")
    if len(group) == 1 or any(like.values()):
        any_of = "any of " * (len(group) > 1)
        return phrase(f"No compared entry is significantly better than {any_of}", names, ".")
    return phrase(names, " are statistically tied for first place.")
