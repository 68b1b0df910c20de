"""Runs compared by their first documents: contests with circles, and strengths of all at once."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from math import comb

from numpy.random import PCG64, Generator

from heldout.answers.answer import Answer, to_document
from heldout.answers.table import Cell, Table, shorten
from heldout.answers.texts import write, write_facts, write_table
from heldout.charts.axes import score_axis, share_axis
from heldout.charts.plot import Plot, PlotRow
from heldout.charts.svg import MUTED, RECORD
from heldout.judging.campaign import judgments, pools
from heldout.judging.labels import contests as compared
from heldout.judging.labels.labels import CLOSE
from heldout.judging.labels.source import Judged, count_valid, first_of
from heldout.stats.bradley_terry import PRIOR
from heldout.trec.tops import Tops

_MOST_CONTESTS = 10
_MOST_SQUARE = 17
_MOST_ROWS = 46
_NAMED = 3


def compare_by_contests(
    judged: Judged, tops: Mapping[str, Tops] | None, *, level: float = 0.95
) -> Answer:
    """On how many queries do people prefer each run's first document?

    Args:
        judged: judgments and what they are of.
        tops: run -> query -> first documents; `None` for those of the pools.
        level: of the intervals.

    Raises:
        InputError: code `no-judgments`: none counts; `deep-pool`.
    """
    votes = judgments.count_votes(count_valid(judged), same=pools.stand_for(judged.pools))
    return contests_answer(compared.hold_contests(first_of(judged, tops), votes, level=level))


def contests_answer(found: compared.Contests) -> Answer:
    """Return who wins, all against all where there is room for it, and each contest."""
    drawn = bool(found.contests)
    square = [_square(found)] if len(found.runs) <= _MOST_SQUARE else []
    contests = [to_document(one, "queries", "share") for one in found.contests]
    wins, pairs = _wins(found), _pairs(found)
    return Answer(
        answer=_say_contests(found),
        summary=write_facts(
            "contests.circles",
            cycles=compared.find_cycles(found),
            triples=comb(len(found.runs), 3),
            most=_NAMED,
        ),
        tables=(wins, *square, pairs),
        short=(
            shorten(wins, _MOST_CONTESTS, what="run"),
            *(square if len(found.runs) <= _MOST_CONTESTS else ()),
            shorten(pairs, _MOST_CONTESTS, what="contest"),
        ),
        document=to_document(found)
        | {
            "contests": contests,
            "cycles": compared.find_cycles(found),
            "correction": "bonferroni",
            "family": len(found.contests),
            "test": "binomial, exact, two-sided",
            "interval": "Clopper and Pearson, each by itself",
            "why": "share, low, high and p are null where no query decides",
        },
        chart=(lambda: draw_contests(found)) if drawn else None,
        title=write("contests.title", rival=_rival(found), level=found.level) if drawn else "",
    )


def _say_contests(found: compared.Contests) -> str:
    """Return who wins most contests, and how many runs people prefer to the known answers."""
    runs = {run: wins for run, wins in found.wins.items() if run != compared.PERFECT}
    most = max(runs.values(), default=0)
    better = None
    if compared.PERFECT in found.runs:
        against = [_against(found, run, compared.PERFECT) for run in runs]
        better = [one for one in against if one.a_preferred > one.b_preferred]
    return write(
        "contests.headline",
        found=found,
        most=most,
        best=[run for run, wins in runs.items() if wins == most],
        runs=len(runs),
        better=None if better is None else len(better),
        sure=sum(_significant(one, found.level) for one in better or ()),
    )


def draw_contests(found: compared.Contests) -> Plot:
    """The share of each run against the perfect run, or else against the one with most wins."""
    rival = _rival(found)
    against = [_against(found, run, rival) for run in found.runs if run != rival]
    known = [one for one in against if one.share is not None]
    shown = sorted(known, key=lambda one: -(one.share or 0))[:_MOST_ROWS]
    stars = ["*" if _significant(one, found.level) else "" for one in shown]
    plot = Plot(
        x=share_axis(),
        rows=[
            PlotRow(name=one.a, note=f"n {one.queries:,}{star}")
            for one, star in zip(shown, stars, strict=True)
        ]
        or [PlotRow(name="")],
        foot=f"preferred to {rival}",
    )
    plot.upright(0.5)
    for row, (one, star) in enumerate(zip(shown, stars, strict=True)):
        tip = f"{one.a}: {one.share:.1%} of {one.queries:,} queries"
        plot.interval(row, one.low, one.high, RECORD if star else MUTED)
        plot.dots([(one.share or 0.0, row, tip)], "disc" if star else "circle")
    plot.key("disc", "significant, marked *")
    plot.key("circle", "not significant")
    plot.key("line", f"exact {found.level:.0%} interval", MUTED)
    return plot


def _rival(found: compared.Contests) -> str:
    if compared.PERFECT in found.runs:
        return compared.PERFECT
    return max(found.runs, key=lambda run: found.wins[run])


def _against(found: compared.Contests, run: str, rival: str) -> compared.Contest:
    """The contest of two runs, with the first as a."""
    one = next(one for one in found.contests if {one.a, one.b} == {run, rival})
    return one if one.a == run else _turned(one)


def _turned(one: compared.Contest) -> compared.Contest:
    """The same contest, seen from the other side."""
    return replace(
        one,
        a=one.b,
        b=one.a,
        a_preferred=one.b_preferred,
        b_preferred=one.a_preferred,
        low=None if one.high is None else 1 - one.high,
        high=None if one.low is None else 1 - one.low,
    )


def _significant(one: compared.Contest, level: float) -> bool:
    return one.p_bonferroni is not None and one.p_bonferroni <= 1 - level + 1e-12


def _wins(found: compared.Contests) -> Table:
    perfect = compared.PERFECT in found.runs
    runs = sorted(found.runs, key=lambda run: -found.wins[run])
    rows = tuple(_wins_row(found, run, perfect=perfect) for run in runs)
    return write_table("contests.wins", rows, perfect=compared.PERFECT if perfect else "")


def _wins_row(found: compared.Contests, run: str, *, perfect: bool) -> tuple[Cell, ...]:
    own = [one if one.a == run else _turned(one) for one in found.contests if run in (one.a, one.b)]
    losses = sum(one.a_preferred < one.b_preferred for one in own)
    row = (run, found.wins[run], losses, len(own) - found.wins[run] - losses)
    if not perfect or run == compared.PERFECT:
        return (*row, *((None,) * 4 if perfect else ()))
    one = _against(found, run, compared.PERFECT)
    return (*row, one.share, one.queries, one.p, one.p_bonferroni)


def _square(found: compared.Contests) -> Table:
    rows = [(row, *(_cell(found, column, row) for column in found.runs)) for row in found.runs]
    rows.append(("wins", *(f"{found.wins[run]:,}" for run in found.runs)))
    return write_table("contests.square", tuple(rows), found=found)


def _cell(found: compared.Contests, column: str, row: str) -> Cell:
    one = None if column == row else _against(found, column, row)
    if one is None or one.share is None:
        return None
    star = "*" if _significant(one, found.level) else ""
    return f"{100 * one.share:.1f}{star} ({one.queries:,})"


def _pairs(found: compared.Contests) -> Table:
    rows = tuple(
        (
            *(one.a, one.b, one.a_preferred, one.b_preferred),
            *(one.drawn, one.same, one.unjudged, one.share, one.low, one.high),
            *(one.p, one.p_bonferroni, one.p_holm),
        )
        for one in found.contests
    )
    return write_table("contests.pairs", rows, found=found)


_MOST_STRENGTHS = 12


def compare_strengths(
    judged: Judged,
    tops: Mapping[str, Tops] | None,
    *,
    prior: float = PRIOR,
    draws: int = 1000,
    level: float = 0.95,
    seed: int = 0,
) -> Answer:
    """Bradley-Terry strengths of runs, from the preferences for their first documents.

    Args:
        judged: judgments and what they are of.
        tops: run -> query -> first documents; `None` for those of the pools.
        prior: precision of the prior on strengths; 0 for none.
        draws: bootstrap samples of the queries.
        level: of the intervals.
        seed: of the draws.

    Raises:
        InputError: code `no-judgments`: none counts; `deep-pool`.
    """
    found = compared.compare_runs(
        first_of(judged, tops),
        judgments.count_votes(count_valid(judged), same=pools.stand_for(judged.pools)),
        rng=Generator(PCG64(seed)),
        prior=prior,
        level=level,
        draws=draws,
    )
    return strengths_answer(found, seed=seed)


def strengths_answer(found: compared.RunStrengths, *, seed: int) -> Answer:
    """Strengths, and the difference of each two runs; all in logits."""
    several, tables = bool(found.differences), (_strengths(found), _differences(found))
    title = {"first": next(iter(found.strengths), ""), "level": found.level}
    return Answer(
        answer=_say_strengths(found),
        summary=write_facts("contests.strengths_summary", found=found),
        tables=tables,
        short=[shorten(table, _MOST_STRENGTHS) for table in tables],
        document=to_document(found)
        | {"interval": "of differences, clustered by query, each by itself", "seed": seed},
        chart=(lambda: draw_strengths(found)) if several else None,
        title=write("contests.strengths_title", **title) if several else "",
    )


def draw_strengths(found: compared.RunStrengths) -> Plot:
    """Each run's difference to the strongest; with at least two runs."""
    shown = _against_first(found)[:_MOST_ROWS]
    ends = [-end for one in shown for end in one.sandwich or (one.difference,)]
    plot = Plot(
        x=score_axis([0.0, *ends]),
        rows=[PlotRow(name=one.b) for one in shown],
        foot=f"strength less that of {next(iter(found.strengths))}, logits",
    )
    plot.upright(0)
    for row, one in enumerate(shown):
        apart = _apart(one.sandwich)
        low, high = one.sandwich or (None, None)
        if low is not None and high is not None:
            plot.interval(row, -high, -low, RECORD if apart else MUTED)
        tip = f"{one.b}: {-one.difference:+.3f}"
        plot.dots([(-one.difference, row, tip)], "disc" if apart else "circle")
    plot.key("disc", "weaker than the strongest")
    plot.key("circle", "no significant difference")
    plot.key("line", f"{found.level:.0%} interval", MUTED)
    return plot


def _say_strengths(found: compared.RunStrengths) -> str:
    """Return who is strongest and who may be as strong; nobody where nothing shows it."""
    strongest = max(found.strengths.values(), default=0.0)
    against = _against_first(found)
    first, second = [*found.strengths, "", ""][:2]
    return write(
        "contests.strongest",
        found=found,
        alike=[run for run, value in found.strengths.items() if strongest - value <= CLOSE],
        first=first,
        second=second,
        perfect=compared.PERFECT,
        against=len(against),
        unsure=sum(one.sandwich is not None and not _apart(one.sandwich) for one in against),
        unknown=sum(one.sandwich is None for one in against),
    )


def _apart(ends: compared.Ends | None) -> bool:
    return ends is not None and not ends[0] <= 0 <= ends[1]


def _against_first(found: compared.RunStrengths) -> list[compared.RunDifference]:
    first = next(iter(found.strengths), None)
    return [one for one in found.differences if one.a == first]


def _strengths(found: compared.RunStrengths) -> Table:
    against = {one.b: one for one in _against_first(found)}
    rows = tuple(
        (run, strength, *_cells(against.get(run))) for run, strength in found.strengths.items()
    )
    return write_table("contests.strengths", rows, found=found)


def _cells(one: compared.RunDifference | None) -> tuple[Cell, ...]:
    if one is None:
        return (None,) * 5
    return (one.difference, *(one.sandwich or (None, None)), *(one.bootstrap or (None, None)))


def _differences(found: compared.RunStrengths) -> Table:
    reasons = Counter(one.why for one in found.differences if one.why is not None)
    rows = tuple((one.a, one.b, *_cells(one), one.share) for one in found.differences)
    return write_table("contests.differences", rows, reasons=reasons)
