"""The section "Confidence": what was told of it, in words, and what comes when."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise

import msgspec

from heldout.board.log.figures import Figures, Outcome, Step, end_bin
from heldout.board.log.measured import Measured
from heldout.board.ranking.standings import Standings, best_so_far
from heldout.board.rules.spec import BoardSpec
from heldout.charts.days import day_words
from heldout.site.ranking_facets import FacetTable, make_facet_tables
from heldout.site.ranking_marks import STARS
from heldout.site.ranking_words import (
    list_notes,
    say_apart,
    say_coming,
    say_drift,
    say_lead,
    say_left_out,
    say_verdict,
)
from heldout.site.rows import TableRow
from heldout.site.sentences import name_entry
from heldout.site.wording import Part, Phrase, count

__all__ = [
    "Cell",
    "OutcomeRow",
    "RankRow",
    "RankingTrust",
    "StepRow",
    "figures_file",
    "format_figures",
    "list_neighbours",
    "make_ranking_trust",
]


_SCHEMA = 1
"""Of trust.json."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """A rank that an entry had in some resamplings: its column from 0, and the share."""

    column: int
    share: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RankRow:
    """A compared entry.

    Attributes:
        entry: its name.
        ranks: its range in words, "" without ranges.
        low, high: of the range, from 1; 0 without ranges.
        cells: of the heat map; none without stability.
        says: the most frequent rank, in words.
    """

    entry: Part
    ranks: str
    low: int
    high: int
    cells: tuple[Cell, ...]
    says: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StepRow:
    """A record: the entry, and what its significance is in words."""

    entry: Part
    star: str
    says: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OutcomeRow:
    """Two neighbours: queries by who finds a relevant document.

    Attributes:
        a, b: their names; `a` stood above.
        a_alone, b_alone: numbers of queries in words.
        bars: where each begins and how wide it is, in queries, with its colour: at least so many of
            `a` alone, perhaps, and the same of `b` from the other end.
        both, neither: exact numbers in events of old, `None` since.
        queries: how many there are.
        verdict: in words.
    """

    a: Part
    b: Part
    a_alone: str
    b_alone: str
    bars: tuple[tuple[int, int, str], ...]
    both: int | None
    neither: int | None
    queries: int
    verdict: Phrase


@dataclass(frozen=True, slots=True, kw_only=True)
class RankingTrust:
    """All of the section.

    Attributes:
        coming: what is not told yet and when it will be.
        as_of: day of what is told, in words; "" where nothing is.
        compared: how many entries.
        says: who may lead, as a sentence.
        of: how many ranks there are.
        ranks: compared entries by score.
        has_ranges, has_shares: whether the rows have them.
        steps: the records.
        drift: in a sentence, "" without it.
        outcomes: of neighbours.
        facets: standings on each kind of query.
        apart: pairs that are nearly the same, so not compared.
        notes: tests, corrections and families.
        left_out: entries that are not compared, with the reason.
        data: the file of all that is told.
    """

    coming: tuple[str, ...]
    as_of: str = ""
    compared: int = 0
    says: Phrase = ()
    of: int = 0
    ranks: tuple[RankRow, ...] = ()
    has_ranges: bool = False
    has_shares: bool = False
    steps: tuple[StepRow, ...] = ()
    drift: str = ""
    outcomes: tuple[OutcomeRow, ...] = ()
    facets: tuple[FacetTable, ...] = ()
    apart: tuple[Phrase, ...] = ()
    notes: tuple[str, ...] = ()
    left_out: tuple[Phrase, ...] = ()
    data: str = ""


def make_ranking_trust(
    standings: Standings, rows: Sequence[TableRow], spec: BoardSpec, *, closed: datetime | None
) -> RankingTrust | None:
    """The section; `None` on a board that tells nothing but scores.

    Args:
        standings: of the board or season.
        rows: of the table, best first.
        spec: its rules.
        closed: when the board was closed for good.
    """
    measured = standings.measured
    if measured is None and spec.trust is None:
        return None
    coming = say_coming(standings, spec, closed)
    if measured is None:
        return RankingTrust(coming=coming)
    figures, known = measured.figures, {row.id: row for row in rows}
    return RankingTrust(
        coming=coming,
        as_of=day_words(measured.at),
        compared=len(measured.entries),
        says=say_lead(measured, known),
        of=sum(row.rank is not None for row in rows),
        ranks=_rank_rows(measured, rows),
        has_ranges=figures.ranges is not None,
        has_shares=figures.stability is not None,
        steps=_step_rows(measured, known, _list_records(standings, spec)),
        drift=say_drift(figures.drift),
        outcomes=tuple(_outcome_rows(measured, known)),
        facets=make_facet_tables(measured, known),
        apart=tuple(say_apart(measured, known)),
        notes=tuple(list_notes(measured)),
        left_out=tuple(say_left_out(measured, known)),
        data=figures_file(standings),
    )


def list_neighbours(
    standings: Standings, entry: str, rows: Mapping[str, TableRow]
) -> Sequence[OutcomeRow]:
    """The outcomes of an entry against those that stand beside it.

    Args:
        standings: of the board or season.
        entry: its id.
        rows: id -> row of the table.
    """
    if standings.measured is None:
        return ()
    return _outcome_rows(standings.measured, rows, entry=entry)


def figures_file(standings: Standings) -> str:
    """Where all that was told lies in `leaderboard/`; each season has a file of its own."""
    return f"trust-{standings.season}.json" if standings.season else "trust.json"


def format_figures(standings: Standings) -> bytes | None:
    """What was told, as JSON; `None` where nothing was."""
    one = standings.measured
    if one is None:
        return None
    document = {
        "schema": _SCHEMA,
        "event": one.event,
        "view": one.view,
        "season": one.season,
        "due": one.due,
        "seed": one.seed,
        "entries": one.entries,
        "left_out": one.left_out,
        "figures": one.figures,
    }
    return (
        msgspec.json.format(msgspec.json.encode(document, order="deterministic"), indent=1) + b"\n"
    )


def _rank_rows(measured: Measured, rows: Sequence[TableRow]) -> tuple[RankRow, ...]:
    """The compared entries, with the ranges and the ranks of the table.

    Shares are of ranks among the compared entries. An entry that was not compared keeps its rank in
    the table, and the others share the ranks that are left.
    """
    ranges, stability = measured.figures.ranges, measured.figures.stability
    if ranges is None and stability is None:
        return ()
    place = {name: at for at, name in enumerate(measured.entries)}
    shown = [row for row in rows if row.id in place]
    ranks = [row.rank for row in shown if row.rank is not None]
    if len(ranks) < len(place):  # one that was compared has no rank any more
        ranks = list(range(1, len(place) + 1))
    made = []
    for row in shown:
        shares = () if stability is None else stability.shares[place[row.id]]
        best = max(range(len(shares)), key=shares.__getitem__, default=0)
        low, high, _ = row.span or (0, 0, 0)
        made.append(
            RankRow(
                entry=name_entry(row),
                ranks=row.ranks,
                low=low,
                high=high,
                cells=tuple(Cell(column=ranks[n] - 1, share=s) for n, s in enumerate(shares) if s),
                says=f"rank {ranks[best]} in {shares[best]:.0%}" if shares else "",
            )
        )
    return tuple(made)


def _list_records(standings: Standings, spec: BoardSpec) -> tuple[str, ...]:
    """Ids of the line of records, as the chart of progress draws it.

    None on a one-shot board, whose scores are all shown at once.
    """
    if spec.kind == "one-shot":
        return ()
    ranked = [row for row in standings.rows if row.baseline or row.rank is not None]
    return tuple(row.id for row in best_so_far(ranked, spec.primary, bar=spec.baselines.bar))


def _step_rows(
    measured: Measured, known: Mapping[str, TableRow], records: Sequence[str]
) -> tuple[StepRow, ...]:
    if measured.figures.progress is None:
        return ()
    steps = {step.entry: step for step in measured.figures.progress}
    before = dict(pairwise(step.entry for step in measured.figures.progress))
    pairs = {frozenset(pair) for pair in measured.figures.alike or ()}
    like = {later for one, later in before.items() if frozenset((one, later)) in pairs}
    return tuple(
        StepRow(
            entry=name_entry(known[name]),
            star=STARS[steps[name].significant] if name in steps else "",
            says=_say_step(steps.get(name), like=name in like),
        )
        for name in records
        if name in known
    )


def _say_step(step: Step | None, *, like: bool) -> str:
    if step is None:
        return "not compared"
    if like:
        return "nearly the same as the best before it, so not compared with it"
    if step.significant is None:
        return "nothing before it to compare with"
    worth = "significantly better than" if step.significant else "within noise of"
    family = count(step.family, "hypothesis", "hypotheses")
    return f"{worth} the best before it, t test, Holm over {family}"


def _outcome_rows(
    measured: Measured, known: Mapping[str, TableRow], *, entry: str = ""
) -> list[OutcomeRow]:
    """The pairs, or those of one entry."""
    return [
        OutcomeRow(
            a=name_entry(known[pair.a]),
            b=name_entry(known[pair.b]),
            a_alone=_say_bin(pair.a_alone, measured.figures),
            b_alone=_say_bin(pair.b_alone, measured.figures),
            bars=_draw_bars(pair, measured.figures),
            both=pair.both,
            neither=pair.neither,
            queries=measured.figures.queries,
            verdict=say_verdict(pair, known),
        )
        for pair in measured.figures.outcomes or ()
        if pair.a in known and pair.b in known and entry in ("", pair.a, pair.b)
    ]


def _say_bin(start: int, figures: Figures) -> str:
    """A count in words; events of old have exact ones."""
    if not figures.step:
        return f"{start:,}"
    end = end_bin(start, figures.queries, figures.step)
    return f"{start:,} to {end:,}" if start else f"at most {end:,}"


def _draw_bars(pair: Outcome, figures: Figures) -> tuple[tuple[int, int, str], ...]:
    """The bars of two neighbours: `a` from the left and `b` from the right."""
    if not figures.step:
        both = pair.both or 0
        return (
            (0, pair.a_alone, "a"),
            (pair.a_alone, both, "both"),
            (pair.a_alone + both, pair.b_alone, "b"),
        )
    n, a, b = figures.queries, pair.a_alone, pair.b_alone
    more = end_bin(a, n, figures.step) - a, end_bin(b, n, figures.step) - b
    return (
        (0, a, "a"),
        (a, more[0], "a-perhaps"),
        (n - b - more[1], more[1], "b-perhaps"),
        (n - b, b, "b"),
    )
