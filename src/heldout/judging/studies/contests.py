"""Runs compared by their first documents: contests with circles, and strengths of all at once."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from math import comb

from numpy.random import PCG64, Generator

from heldout.answers.answer import Answer, to_document
from heldout.answers.sentence import name_one, name_some
from heldout.answers.table import Cell, Column, Table, columns, shorten
from heldout.charts.axes import score_axis, share_axis
from heldout.charts.plot import Plot, PlotRow
from heldout.charts.svg import MUTED, RECORD
from heldout.errors import plural
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
        summary=_facts_of_cycles(found),
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
        title="How often people prefer the first document of each run to that of "
        f"{_rival(found)}, with exact {found.level:.0%} intervals"
        if drawn
        else "",
    )


def _say_contests(found: compared.Contests) -> str:
    """Return who wins most contests, and how many runs people prefer to the known answers."""
    queries = plural(found.judged, "judged query", "judged queries")
    runs = {run: wins for run, wins in found.wins.items() if run != compared.PERFECT}
    most = max(runs.values(), default=0)
    if not most:
        return f"No run wins a contest on the {queries}."
    best = [run for run, wins in runs.items() if wins == most]
    said = (
        f"{name_some(best)} {'wins' if len(best) == 1 else 'win'} most contests, {most:,} of "
        f"{len(found.runs) - 1:,}, on {queries}"
    )
    if compared.PERFECT not in found.runs:
        return f"{said}."
    against = [_against(found, run, compared.PERFECT) for run in runs]
    better = [one for one in against if one.a_preferred > one.b_preferred]
    sure = sum(_significant(one, found.level) for one in better)
    if not better:
        return f"{said}; no run is preferred to the known answers."
    return (
        f"{said}; {len(better):,} of {plural(len(runs), 'run')} preferred to the known answers, "
        f"{sure:,} significantly."
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


def _facts_of_cycles(found: compared.Contests) -> list[tuple[str, str]]:
    cycles, count = compared.find_cycles(found), len(found.runs)
    triples = comb(count, 3)
    if not cycles:
        return [("circles", f"none among {triples:,} triples of runs")] if triples else []
    shown = "; ".join(" > ".join((*cycle, cycle[0])) for cycle in cycles[:_NAMED])
    more = f" and {len(cycles) - _NAMED:,} more" if len(cycles) > _NAMED else ""
    return [
        ("circles", f"{len(cycles):,} of {triples:,} triples of runs beat each other in a circle"),
        ("", shown + more),
    ]


def _wins(found: compared.Contests) -> Table:
    perfect = compared.PERFECT in found.runs
    runs = sorted(found.runs, key=lambda run: -found.wins[run])
    against_known = (
        *columns("share", "preferred to known", decimals=3),
        *columns("count", "queries"),
        *columns("p", "p", "Bonferroni"),
    )
    return Table(
        title="Contests won by each run",
        columns=(
            Column(name="run"),
            *columns("count", "wins", "losses", "draws"),
            *(against_known if perfect else ()),
        ),
        rows=tuple(_wins_row(found, run, perfect=perfect) for run in runs),
        notes=(f"{compared.PERFECT}: a run that shows the known answer first on every query.",)
        if perfect
        else (),
        method=(
            (
                "A run wins a contest if people prefer its first document on more queries than "
                "that of the other; a draw is as many queries on each side, or none."
            ),
        ),
    )


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
    return Table(
        title="How often the run in the column is preferred to the run in the row, % of n queries",
        columns=columns("text", "run", *found.runs),
        rows=tuple(rows),
        notes=(
            (
                "n, in brackets, counts queries where both show different documents and more "
                f"people prefer one of them. *: p <= {1 - found.level:.2g}, corrected."
            ),
        ),
        method=(
            f"Exact binomial, two-sided, Bonferroni over all {len(found.contests):,} contests.",
        ),
    )


def _cell(found: compared.Contests, column: str, row: str) -> Cell:
    one = None if column == row else _against(found, column, row)
    if one is None or one.share is None:
        return None
    star = "*" if _significant(one, found.level) else ""
    return f"{100 * one.share:.1f}{star} ({one.queries:,})"


def _pairs(found: compared.Contests) -> Table:
    return Table(
        title="Each contest",
        columns=(
            *columns("text", "a", "b"),
            *columns("count", "a preferred", "b preferred", "drawn", "same", "unjudged"),
            *columns("share", "share", "low", "high", decimals=3),
            *columns("p", "p", "Bonferroni", "Holm"),
        ),
        rows=tuple(
            (
                *(one.a, one.b, one.a_preferred, one.b_preferred),
                *(one.drawn, one.same, one.unjudged, one.share, one.low, one.high),
                *(one.p, one.p_bonferroni, one.p_holm),
            )
            for one in found.contests
        ),
        notes=(
            (
                "drawn: as many votes for either; same: both show the same passage; unjudged: the "
                "pair has no vote, or a run has no answer."
            ),
        ),
        method=(
            "Queries are counted and not votes: several votes on one pair are one observation.",
            (
                f"share: of a, among the queries that decide; low, high: exact {found.level:.0%} "
                "intervals, each by itself. p: exact binomial, two-sided; Bonferroni and Holm over "
                f"all {len(found.contests):,} contests."
            ),
        ),
    )


_MOST_STRENGTHS = 12
_INTERVALS = ("low", "high", "bootstrap low", "bootstrap high")


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
    return Answer(
        answer=_say_strengths(found),
        summary=_facts_of_strengths(found),
        tables=tables,
        short=[shorten(table, _MOST_STRENGTHS) for table in tables],
        document=to_document(found)
        | {"interval": "of differences, clustered by query, each by itself", "seed": seed},
        chart=(lambda: draw_strengths(found)) if several else None,
        title=f"How much weaker each run is than {next(iter(found.strengths))}, in logits, with "
        f"{found.level:.0%} intervals clustered by query"
        if several
        else "",
    )


def _facts_of_strengths(found: compared.RunStrengths) -> list[tuple[str, str]]:
    compared = f"{found.comparisons:,} comparisons on {plural(found.queries, 'query', 'queries')}"
    lines = [("strengths", f"{len(found.strengths):,} runs, {compared}")]
    if len(found.groups) > 1:
        groups = f"{len(found.groups):,} groups of runs"
        lines.append(("apart", f"{groups} were never compared with each other"))
    if found.separated:
        finite = "without the prior it would be infinite, so it has no interval"
        lines.append(("note", f"some run won or lost everything: {finite}"))
    return lines


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
    if not found.comparisons:
        return "No run is strongest: no judged pair compares two of the runs."
    strengths = list(found.strengths.values())
    if len(strengths) > 1 and strengths[0] - strengths[1] <= CLOSE:
        alike = [run for run, value in found.strengths.items() if strengths[0] - value <= CLOSE]
        if len(alike) == len(strengths):
            return "No run is strongest: all are as strong as each other."
        return f"{name_some(alike)} are strongest, as strong as each other."
    against = _against_first(found)
    unsure = sum(one.sandwich is not None and not _apart(one.sandwich) for one in against)
    unknown = sum(one.sandwich is None for one in against)
    first, second = [*found.strengths, ""][:2]
    said = f"{name_one(first)} is strongest"
    if first == compared.PERFECT:
        said = f"The known answers are strongest, and of the runs {name_one(second)}"
    if unknown < len(against):
        as_strong = "the known answers" if first == compared.PERFECT else name_one(first)
        said += f"; {unsure:,} of {len(against):,} other runs may be as strong as {as_strong}"
        said += f" ({found.level:.0%} confidence)"
    if unknown:
        said += f"; the difference to {plural(unknown, 'other run')} has no interval"
    return f"{said}."


def _apart(ends: compared.Ends | None) -> bool:
    return ends is not None and not ends[0] <= 0 <= ends[1]


def _against_first(found: compared.RunStrengths) -> list[compared.RunDifference]:
    first = next(iter(found.strengths), None)
    return [one for one in found.differences if one.a == first]


def _strengths(found: compared.RunStrengths) -> Table:
    against = {one.b: one for one in _against_first(found)}
    return Table(
        title="Strengths of runs",
        columns=(
            Column(name="run"),
            *_logits("strength", "the strongest is ahead by", *_INTERVALS),
        ),
        rows=tuple(
            (run, strength, *_cells(against.get(run))) for run, strength in found.strengths.items()
        ),
        notes=(
            (
                "A strength by itself means nothing: only differences do. The strongest was found "
                "in the same judgments, which favours it."
            ),
        ),
        method=_method_of_strengths(found),
    )


def _cells(one: compared.RunDifference | None) -> tuple[Cell, ...]:
    if one is None:
        return (None,) * 5
    return (one.difference, *(one.sandwich or (None, None)), *(one.bootstrap or (None, None)))


def _logits(*names: str) -> tuple[Column, ...]:
    return columns("difference", *names, decimals=3)


def _differences(found: compared.RunStrengths) -> Table:
    reasons = Counter(one.why for one in found.differences if one.why is not None)
    return Table(
        title="Differences",
        columns=(
            *columns("text", "a", "b"),
            *_logits("a - b", *_INTERVALS),
            Column(name="a preferred", form="share", decimals=3),
        ),
        rows=tuple((one.a, one.b, *_cells(one), one.share) for one in found.differences),
        notes=(
            "a preferred: on a query where they differ and one is preferred, as the model has it.",
            *(
                f"Without an interval, or without one of the two: {count:,}, since {why}."
                for why, count in reasons.items()
            ),
        ),
    )


def _method_of_strengths(found: compared.RunStrengths) -> tuple[str, ...]:
    return (
        (
            f"Bradley and Terry's model with a normal prior of precision {found.prior:g}; logits, "
            f"mean 0. {found.tied:,} of {found.comparisons:,} comparisons tied. Queries "
            "with as many votes on each side are half a win for each."
        ),
        (
            f"{found.level:.0%} intervals of differences, each by itself; a query is one "
            f"observation: low, high by the sandwich, then percentiles of {found.draws:,} samples "
            "of queries."
        ),
    )
