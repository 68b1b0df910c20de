"""Re-rankers trained on deeper and shallower annotation, in words, tables, JSON and a picture.

The picture has a panel for each measure (Gupta and MacAvaney 2022, figure 1).
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from heldout.answers.answer import Answer, to_document
from heldout.answers.sentence import name_one
from heldout.answers.table import Cell, Column, Table, columns, shorten
from heldout.charts.axes import name_axis, score_axis
from heldout.charts.plot import Plot, Sheet
from heldout.charts.svg import INK, RECORD, Style
from heldout.errors import plural
from heldout.survivorship.training.results import (
    CellRecord,
    ConditionPair,
    ConditionScores,
    TestOutcome,
)
from heldout.survivorship.training.triples import ALL, Condition

_ALPHA = 0.05
_MOST = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingResult:
    """All that a training experiment found.

    Attributes:
        outcomes: of each measure of each test set, corrected.
        records: of each cell that is done, by condition and seed.
        level: of intervals.
    """

    outcomes: tuple[TestOutcome, ...]
    records: tuple[CellRecord, ...]
    level: float


def answer_training(result: TrainingResult) -> Answer:
    """What a training study says: whether depth matters, and whether it is more than the amount.

    The tables are what was trained on; then for each measure the scores and the comparisons.
    """
    tables = [_cells_table(result.records)]
    for outcome in result.outcomes:
        tables += [_scores_table(outcome), _comparisons_table(outcome, result.level)]
    first = result.outcomes[0]
    return Answer(
        answer=_headline(result.outcomes),
        summary=(),
        tables=tables,
        short=[shorten(table, _MOST) for table in tables],
        document=_document(result),
        chart=lambda: _draw(result),
        title=f"{first.measure} on {first.test} by how deep the annotation was that was trained on",
    )


def _headline(outcomes: Sequence[TestOutcome]) -> str:
    """How many comparisons of depths are significant, on the first measure of the first test."""
    first = outcomes[0]
    where = f"{first.measure} on {name_one(first.test)}"
    if not first.comparisons:
        return f"Nothing is compared on {where}: there is one condition."
    sure = [one for one in first.comparisons if _is_significant(one)]
    plain = [one for one in sure if not one.controlled]
    said = f"{len(plain):,} of {sum(not one.controlled for one in first.comparisons):,} comparisons"
    said = f"{said} of annotation depths are significant in {where}"
    controlled = sum(one.controlled for one in first.comparisons)
    if not controlled:
        return f"{said}."
    return f"{said}, and {len(sure) - len(plain):,} of {controlled:,} with as many labels."


def _is_significant(one: ConditionPair) -> bool:
    """Return whether the test that decides is: across seeds where there are several."""
    p = one.averaged_corrected if len(one.within) == 1 else one.across_corrected
    return p is not None and p < _ALPHA


def _document(result: TrainingResult) -> dict[str, Any]:
    cells = [to_document(one) for one in result.records]
    for cell in cells:
        del cell["digest"], cell["runs"]
    return {
        "level": result.level,
        "cells": cells,
        "results": [
            to_document(outcome)
            | {
                "conditions": [_condition_document(one) for one in outcome.conditions],
                "comparisons": [
                    to_document(one, "detectable") | {"a": one.a.name, "b": one.b.name}
                    for one in outcome.comparisons
                ],
            }
            for outcome in result.outcomes
        ],
    }


def _condition_document(one: ConditionScores) -> dict[str, Any]:
    return asdict(one.condition) | to_document(one) | {"condition": one.condition.name}


def _cells_table(records: Sequence[CellRecord]) -> Table:
    rows = tuple(
        (
            one.condition,
            one.seed,
            one.queries,
            one.labels,
            one.triples,
            one.steps,
            one.passes,
            one.first_loss,
            one.last_loss,
            round(one.seconds),
            _place(one),
        )
        for one in records
    )
    short = sum(one.missing for one in records)
    notes = [
        (
            "queries, labels and triples: different ones that a model trained on; passes: how "
            "often it saw each triple; losses: of the first and the last tenth of the steps"
        ),
    ]
    if len({_place(one) for one in records}) > 1:
        notes.append(
            "on: not all were computed alike; another device or precision moves scores somewhat, "
            "which is in the differences too"
        )
    if short:
        notes.append(f"controls have {plural(short, 'triple')} fewer than what they follow")
    return Table(
        title="Trainings",
        columns=(
            Column(name="condition"),
            *columns("count", "seed", "queries", "labels", "triples", "steps"),
            *columns("score", "passes", decimals=2),
            *columns("score", "first loss", "last loss", decimals=3),
            *columns("count", "seconds"),
            Column(name="on"),
        ),
        rows=rows,
        method=tuple(notes),
    )


def _place(record: CellRecord) -> str:
    """Where it was computed, and in which precision."""
    return f"{record.device} {record.precision}"


def _scores_table(outcome: TestOutcome) -> Table:
    seeds = len(outcome.conditions[0].by_seed)
    rows: list[tuple[Cell, ...]] = [
        (one.condition.name, *one.by_seed, one.mean, one.spread) for one in outcome.conditions
    ]
    rows.append(("nothing: the first stage", *[None] * seeds, outcome.first_stage, None))
    return Table(
        title=f"{outcome.measure} on {outcome.test}, {plural(outcome.queries, 'query', 'queries')}",
        columns=(
            Column(name="trained on"),
            *columns("score", *(f"seed {seed}" for seed in range(seeds)), "mean", "spread"),
        ),
        rows=tuple(rows),
        notes=("spread: standard deviation of the seeds",),
    )


def _comparisons_table(outcome: TestOutcome, level: float) -> Table:
    seeds = len(outcome.conditions[0].by_seed)
    rows = tuple(
        (
            one.b.name,
            one.a.name,
            ("yes" if one.same_size else "nearly") if one.controlled else "",
            one.across.difference,
            one.across.low,
            one.across.high,
            one.across_corrected,
            one.averaged_corrected,
            *one.within_corrected,
            one.detectable,
        )
        for one in outcome.comparisons
    )
    family = outcome.comparisons[0].family if outcome.comparisons else 0
    whys = sorted({one.across.why for one in outcome.comparisons if one.across.why})
    return Table(
        title=f"{outcome.measure} on {outcome.test}: differences",
        columns=(
            *columns("text", "B", "A", "as many labels"),
            *columns("difference", "B - A", "low", "high"),
            *columns("p", "p across", "p averaged", *(f"p seed {seed}" for seed in range(seeds))),
            *columns("score", "detectable"),
        ),
        rows=rows,
        notes=tuple(f"no p or interval across: {why}" for why in whys),
        method=(
            f"p times {family}, the comparisons on this measure and test set (Bonferroni)",
            (
                f"across: t with seeds and queries drawn, {level:.0%} interval uncorrected: "
                "would other seeds and queries show it?"
            ),
            "averaged: paired t of the means over seeds: do these models differ on other queries?",
            (
                "seed: paired t of two single models, as in the paper; it takes a seed's luck for "
                "an effect"
            ),
            (
                "detectable: the true difference of the averaged models found four times out of "
                "five on as many queries"
            ),
        ),
    )


_BESIDE = 0.22
_STAR: Final = "*"
_DAGGER: Final = "†"


def _draw(result: TrainingResult) -> Sheet:
    """A panel for each measure of each test set, below a key of all marks.

    The line joins the means over seeds of r = 1, …, all; squares are the controls, beside the
    depth whose size they have; the dashed line is the run that was re-ranked. A star says that the
    difference from all is significant across seeds and queries, corrected, a dagger that from the
    next deeper annotation is; with one seed, across queries.
    """
    plots = [_panel(outcome) for outcome in result.outcomes]
    signs = {sign for found in result.outcomes for sign in "".join(_signs(found).values())}
    first = plots[0]
    first.key("circle", "a model: one seed")
    first.key("diamond", "mean of the seeds")
    if any(one.condition.like is not None for o in result.outcomes for one in o.conditions):
        first.key("square", "mean, on as few labels drawn at random")
    first.key("dashed", "the first stage, which is re-ranked")
    if _STAR in signs:
        first.key(_STAR, "differs from all, corrected")
    if _DAGGER in signs:
        first.key(_DAGGER, "differs from the next deeper one, corrected")
    return Sheet(plots=plots, columns=2)


def _panel(outcome: TestOutcome) -> Plot:
    depths = [one for one in outcome.conditions if one.condition.like is None]
    controls = [one for one in outcome.conditions if one.condition.like is not None]
    places = {one.condition.depth: float(place) for place, one in enumerate(depths)}
    last = len(depths) - 1.0
    at = [(one, places[one.condition.depth]) for one in depths]
    at += [(one, places.get(one.condition.like, last) + _BESIDE) for one in controls]
    every = [score for one in outcome.conditions for score in one.by_seed]
    plot = Plot(
        x=name_axis({float(place): one.condition.name for place, one in enumerate(depths)}),
        y=score_axis([outcome.first_stage, *every]),
        head=f"{outcome.measure} on {outcome.test}",
        height=180,
    )
    first = outcome.first_stage
    plot.line([(plot.x.low, first), (plot.x.high, first)], INK, dash=True)
    plot.line([(x, one.mean) for one, x in at[: len(depths)]], RECORD)
    signs = _signs(outcome)
    for one, x in at:
        tip = f"{one.condition.name}, seed"
        scores = enumerate(one.by_seed)
        plot.dots([(x, score, f"{tip} {seed}: {score:.4f}") for seed, score in scores], "circle")
    for one, x in at:
        style: Style = "diamond" if one.condition.like is None else "square"
        plot.dots([(x, one.mean, f"{one.condition.name}: {one.mean:.4f}")], style)
        plot.text(x, max(one.by_seed), signs.get(one.condition, ""), above=True)
    return plot


def _signs(outcome: TestOutcome) -> Mapping[Condition, str]:
    """What stands above a condition: which differences from it are significant."""
    found: dict[Condition, str] = {}
    for one in outcome.comparisons:
        if _is_significant(one) and not one.controlled:
            found[one.b] = found.get(one.b, "") + (_STAR if one.a == ALL else _DAGGER)
    return found
