"""Strengths of runs as an answer: who is strongest, and who may be as strong."""

from collections import Counter
from collections.abc import Mapping

from numpy.random import PCG64, Generator

from heldout.answers.answer import Answer, to_document
from heldout.answers.sentence import name_one, name_some
from heldout.answers.table import Cell, Column, Table, columns, shorten
from heldout.charts.axes import score_axis
from heldout.charts.plot import Plot, Row
from heldout.charts.svg import MUTED, RECORD
from heldout.errors import plural
from heldout.judging.campaign.judgments import count_votes
from heldout.judging.campaign.pools import stand_for
from heldout.judging.labels.contests import PERFECT
from heldout.judging.labels.labels import CLOSE
from heldout.judging.labels.source import Judged, count_valid, first_of
from heldout.judging.labels.strengths import Ends, RunDifference, RunStrengths, compare_runs
from heldout.stats.bradley_terry import PRIOR
from heldout.trec.tops import Tops

_MOST = 12
_MOST_ROWS = 46
_INTERVALS = ("low", "high", "bootstrap low", "bootstrap high")


def compare_strengths(
    judged: Judged,
    tops: Mapping[str, Tops] | None,
    *,
    ties: bool = False,
    prior: float = PRIOR,
    draws: int = 1000,
    level: float = 0.95,
    seed: int = 0,
) -> Answer:
    """Bradley-Terry strengths of runs, from the preferences for their first documents.

    Args:
        judged: judgments and what they are of.
        tops: run -> query -> first documents; `None` for those of the pools.
        ties: Davidson's model of ties, instead of half a win each.
        prior: precision of the prior on strengths; 0 for none.
        draws: bootstrap samples of the queries.
        level: of the intervals.
        seed: of the draws.

    Raises:
        InputError: code `no-judgments`: none counts; `deep-pool`.
    """
    found = compare_runs(
        first_of(judged, tops),
        count_votes(count_valid(judged), same=stand_for(judged.pools)),
        rng=Generator(PCG64(seed)),
        prior=prior,
        ties=ties,
        level=level,
        draws=draws,
    )
    return strengths_answer(found, seed=seed)


def strengths_answer(found: RunStrengths, *, seed: int) -> Answer:
    """Strengths, and the difference of each two runs; all in logits."""
    several, tables = bool(found.differences), (_strengths(found), _differences(found))
    return Answer(
        answer=_headline(found),
        summary=_facts(found),
        tables=tables,
        short=[shorten(table, _MOST) for table in tables],
        document=to_document(found)
        | {"interval": "of differences, clustered by query, each by itself", "seed": seed},
        chart=(lambda: spec(found)) if several else None,
        title=f"How much weaker each run is than {next(iter(found.strengths))}, in logits, with "
        f"{found.level:.0%} intervals clustered by query"
        if several
        else "",
    )


def _facts(found: RunStrengths) -> list[tuple[str, str]]:
    compared = f"{found.comparisons:,} comparisons on {plural(found.queries, 'query', 'queries')}"
    lines = [("strengths", f"{len(found.strengths):,} runs, {compared}")]
    if len(found.groups) > 1:
        groups = f"{len(found.groups):,} groups of runs"
        lines.append(("apart", f"{groups} were never compared with each other"))
    if found.separated:
        finite = "without the prior it would be infinite, so it has no interval"
        lines.append(("note", f"some run won or lost everything: {finite}"))
    return lines


def spec(found: RunStrengths) -> Plot:
    """Each run's difference to the strongest; with at least two runs."""
    shown = _against_first(found)[:_MOST_ROWS]
    ends = [-end for one in shown for end in one.sandwich or (one.difference,)]
    plot = Plot(
        x=score_axis([0.0, *ends]),
        rows=[Row(name=one.b) for one in shown],
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


def _headline(found: RunStrengths) -> str:
    """Who is strongest and who may be as strong; nobody where nothing shows it."""
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
    if first == PERFECT:
        said = f"The known answers are strongest, and of the runs {name_one(second)}"
    if unknown < len(against):
        as_strong = "the known answers" if first == PERFECT else name_one(first)
        said += f"; {unsure:,} of {len(against):,} other runs may be as strong as {as_strong}"
        said += f" ({found.level:.0%} confidence)"
    if unknown:
        said += f"; the difference to {plural(unknown, 'other run')} has no interval"
    return f"{said}."


def _apart(ends: Ends | None) -> bool:
    return ends is not None and not ends[0] <= 0 <= ends[1]


def _against_first(found: RunStrengths) -> list[RunDifference]:
    first = next(iter(found.strengths), None)
    return [one for one in found.differences if one.a == first]


def _strengths(found: RunStrengths) -> Table:
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
        method=_method(found),
    )


def _cells(one: RunDifference | None) -> tuple[Cell, ...]:
    if one is None:
        return (None,) * 5
    return (one.difference, *(one.sandwich or (None, None)), *(one.bootstrap or (None, None)))


def _logits(*names: str) -> tuple[Column, ...]:
    return columns("difference", *names, decimals=3)


def _differences(found: RunStrengths) -> Table:
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


def _method(found: RunStrengths) -> tuple[str, ...]:
    if found.nu is None:
        ties = "Queries with as many votes on each side are half a win for each."
    else:
        ties = f"Ties by Davidson's model, nu {found.nu:.3f}."
    return (
        (
            f"Bradley and Terry's model with a normal prior of precision {found.prior:g}; logits, "
            f"mean 0. {found.tied:,} of {found.comparisons:,} comparisons tied. {ties}"
        ),
        (
            f"{found.level:.0%} intervals of differences, each by itself; a query is one "
            f"observation: low, high by the sandwich, then percentiles of {found.draws:,} samples "
            "of queries."
        ),
    )
