"""The section "Confidence": what an event `measured` says of the ranking, and what comes when.

Ranges of ranks, ranks on other queries, records, drift and groups of queries, in words
and in tables. Everything follows from the public log.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from typing import NamedTuple

import msgspec

from heldout.answers.text import clean
from heldout.board.log.measured import Drift, Facets, LeftOut, Measured, Step, TrustPart
from heldout.board.rules.spec import BoardSpec, say_after
from heldout.board.site.rows import STARS, TableRow, name_entry, say_range
from heldout.board.site.words import Part, Phrase, count, join_names, phrase, plain
from heldout.board.standings.overdue import figures_due_since
from heldout.board.standings.standings import Standings, best_so_far, read_pairs
from heldout.charts.axes import day_words

_PARTS: Mapping[TrustPart, str] = {
    "ranges": "ranges of ranks",
    "stability": "how often each rank occurs on resampled queries",
    "progress": "which records were significant when they came",
    "drift": "official against dev scores over time",
    "facets": "ranks on each kind of query",
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


@dataclass(frozen=True, slots=True, kw_only=True)
class RankRow:
    """A compared entry.

    Attributes:
        entry: its name.
        ranks: its range in words, "" without ranges.
        low, high: of the range, from 1; 0 without ranges.
        cells: of the heat map, as columns from 0 with the share of samples; none without stability.
        says: the most frequent rank, in words.
        star: `significant` or `noise` where the entry was a record when it came, else "".
        record: what that record was worth, in words; "" where it was none.
    """

    entry: Part
    ranks: str
    low: int
    high: int
    cells: tuple[tuple[int, float], ...]
    says: str
    star: str
    record: str


class FacetRow(NamedTuple):
    """An entry on a facet: its rank there, and the range of it in words."""

    rank: int
    ranks: str
    entry: Part


@dataclass(frozen=True, slots=True, kw_only=True)
class FacetTable:
    """The standings on a facet.

    Attributes:
        facet: its name, cleaned; after that of its view where several views have some.
        queries: how many, in words.
        rows: compared entries, the best first.
    """

    facet: str
    queries: str
    rows: tuple[FacetRow, ...]


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
        has_ranges, has_shares: whether the rows have them.
        drift: in a sentence, "" without it.
        facets: standings on each kind of query.
        apart: pairs that are nearly the same, so not compared.
        notes: tests, corrections and families.
        left_out: entries that are not compared, with the reason.
        data: the file of all that is published.
    """

    coming: tuple[str, ...]
    as_of: str = ""
    compared: int = 0
    says: Phrase = ()
    of: int = 0
    ranks: tuple[RankRow, ...] = ()
    has_ranges: bool = False
    has_shares: bool = False
    drift: str = ""
    facets: tuple[FacetTable, ...] = ()
    apart: tuple[Phrase, ...] = ()
    notes: tuple[str, ...] = ()
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
        has_ranges=figures.ranges is not None,
        has_shares=figures.stability is not None,
        drift=_say_drift(figures.drift),
        facets=_make_facet_tables(measured, known),
        apart=tuple(
            phrase(name_entry(known[one]), " and ", name_entry(known[other]))
            for one, other in figures.alike
            if one in known and other in known
        ),
        notes=tuple(_list_notes(measured)),
        left_out=tuple(
            phrase(name_entry(known[name]), _LEFT_OUT[why])
            for name, why in measured.left_out.items()
            if name in known
        ),
        data=figures_file(standings),
    )


def figures_file(standings: Standings) -> str:
    """Where all that was published lies in `leaderboard/`; each season has a file of its own."""
    return f"trust-{standings.season}.json" if standings.season else "trust.json"


def format_figures(standings: Standings) -> bytes | None:
    """What was published, as JSON; `None` where nothing was."""
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
    """The compared entries, with the ranges and the ranks of the table.

    Shares are of ranks among the compared entries. An entry that was not compared has its rank in
    the table, and the others share the ranks that are left. Without ranges and shares there is
    nothing to say but of records.
    """
    stability = measured.figures.stability
    position = {name: at for at, name in enumerate(measured.entries)}
    if measured.figures.ranges is None and stability is None:
        position = {name: at for name, at in position.items() if name in records}
    shown = [row for row in rows if row.id in position]
    ranks = [row.rank for row in shown if row.rank is not None]
    if len(ranks) < len(position):  # one that was compared has no rank any more
        ranks = list(range(1, len(position) + 1))
    made = []
    for row in shown:
        shares = {} if stability is None else stability.shares_of(position[row.id])
        best = max(shares, key=shares.__getitem__, default=0)
        low, high, _ = row.span or (0, 0, 0)
        star, record = records.get(row.id, ("", ""))
        made.append(
            RankRow(
                entry=name_entry(row),
                ranks=row.ranks,
                low=low,
                high=high,
                cells=tuple((ranks[n - 1] - 1, share) for n, share in shares.items()),
                says=f"rank {ranks[best - 1]} in {shares[best]:.0%}" if shares else "",
                star=star,
                record=record,
            )
        )
    return tuple(made)


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


def _make_facet_tables(measured: Measured, known: Mapping[str, TableRow]) -> tuple[FacetTable, ...]:
    """A table for each published facet; `known` are the rows of the table, the best first."""
    facets = measured.figures.facets
    published = () if facets is None else facets.told
    several = len({one.of for one in published}) > 1
    position = {name: at for at, name in enumerate(measured.entries)}
    compared = [name for name in known if name in position]
    return tuple(
        FacetTable(
            facet=clean(f"{one.of}: {one.facet}" if several else one.facet),
            queries=count(one.queries, "query", "queries"),
            rows=tuple(
                FacetRow(
                    one.rank[at], say_range(one.low[at], one.high[at]), name_entry(known[name])
                )
                for name in sorted(compared, key=lambda name: one.rank[position[name]])
                for at, entry in ((position[name], name_entry(known[name])),)
            ),
        )
        for one in published
    )


def _note_facets(facets: Facets | None) -> Iterator[str]:
    """The test, its correction and its family, and what is withheld with the reason."""
    if facets is None:
        return
    if facets.told:
        kinds = count(len(facets.told), "kind")
        yield (
            f"Kinds of queries: ranges as above, on the queries of each of {kinds}. All ranges of "
            f"all kinds hold together in {facets.level:.0%} of samples of queries: "
            f"max-t over {2 * facets.pairs:,} hypotheses on each ({facets.flips:,} flips drawn), "
            f"Bonferroni over the kinds. Two entries whose scores differ for fewer than 10 queries "
            "of a kind are not compared on it. That an entry ranks higher on one kind than on "
            "another is no evidence that it is better there: read the ranges."
        )
    if facets.withheld:
        names = ", ".join(map(clean, facets.withheld))
        yield (
            f"Withheld, for they have fewer than {facets.least} queries: {names}. A rank on few "
            "queries would say much of each of their labels."
        )


def _say_coming(standings: Standings, spec: BoardSpec, closed: datetime | None) -> tuple[str, ...]:
    """What is not published yet and when it will be."""
    trust, measured = spec.trust, standings.measured
    if trust is None or not trust.show:
        return ()
    covered = frozenset[str]() if measured is None else measured.covered
    wait = [r for r in standings.rows if r.rank is not None and r.id not in covered]
    last, today = spec.last_day_of(standings.season), standings.as_of.date()
    since = figures_due_since(standings, spec, None if closed is None else closed.date())
    when = say_after(trust, today, last=last)
    if measured is None:
        parts = plain(join_names(Part(text=_PARTS[part]) for part in trust.show))
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
    """Who may be the first, by the ranges; empty without them."""
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


def _say_drift(drift: Drift | None) -> str:
    """Official against dev scores, "" where not published."""
    if drift is None:
        return ""
    verdict = "no verdict" if drift.verdict == "undefined" else drift.verdict
    if drift.ratio is None or drift.gap is None:
        return f"Drift: {verdict}; {drift.why}."
    trend = ""
    if drift.per_year is not None:
        trend = f" The difference changes by {drift.per_year:+.3f} a year"
        if drift.low is not None and drift.high is not None:
            trend += f" (95% interval {drift.low:+g} to {drift.high:+g})"
        trend += "."
    why = drift.why
    if drift.verdict == "no drift" and drift.low is not None:
        gap = f"the gap between official and {drift.dev} scores"
        why = f"{gap} shows no significant trend (95% confidence)"
    said = (
        f"The median ratio of official to {drift.dev} scores is {drift.ratio:.3f}, the median "
        f"difference {drift.gap:+.3f}.{trend} {verdict.capitalize()}: {why}."
    )
    return said.replace(" -", " \u2212")


def _list_notes(measured: Measured) -> Iterator[str]:
    """Tests, corrections and families of what is published, and why a part is not."""
    figures, n = measured.figures, len(measured.entries)
    ranges, stability = figures.ranges, figures.stability
    if ranges is not None:
        yield (
            f"Ranges: from 1 + entries significantly better to {n} − entries significantly worse. "
            f"All hold together in {ranges.level:.0%} of samples of queries: paired sign flips "
            f"({ranges.flips:,} drawn), max-t over one family of {2 * ranges.pairs:,} hypotheses, "
            f"{count(ranges.pairs, 'pair')} in both directions. Each entry that was not compared "
            "may stand anywhere, so it makes every range wider by one rank at its end."
        )
    if stability is not None:
        yield (
            f"Shares: {stability.trials:,} resamplings of "
            f"{count(figures.queries, 'query', 'queries')}; of equal means the earlier entry ranks "
            "higher. An entry that was not compared keeps its rank. Shares describe, and are no "
            "statement of confidence: for that read the ranges."
        )
    if figures.alike:
        yield (
            "Entries that are nearly the same: each is compared with all others, and not with its "
            "like, because their difference would reveal the labels of a few queries. In the "
            "shares the two keep the order of their scores, and no range separates them."
        )
    yield from _note_facets(figures.facets)
    for part, words in _PARTS.items():
        if part in figures.why:
            yield f"No {words}: {figures.why[part]}."
