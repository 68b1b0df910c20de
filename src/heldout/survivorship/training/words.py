"""Re-rankers trained on deeper and shallower annotation, in words, tables, JSON and a picture.

The picture has a panel for each measure (Gupta and MacAvaney 2022, figure 1).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from heldout.answers.table import Cell, Column, Table, format_p
from heldout.charts.axes import score_span, score_ticks
from heldout.charts.labels import Label
from heldout.charts.svg import (
    INK,
    MUTED,
    RECORD,
    RULE,
    Canvas,
    Frame,
    Layer,
    Style,
    draw_dots,
    draw_line,
    draw_texts,
    join_layers,
)
from heldout.errors import plural
from heldout.stats.results import TestResult
from heldout.survivorship.training.experiment import CellRecord
from heldout.survivorship.training.results import (
    Comparison,
    ConditionScores,
    FamilyScope,
    TestOutcome,
)
from heldout.survivorship.training.triples import ALL, Condition

_ALPHA = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingResult:
    """All that a training experiment found.

    Attributes:
        outcomes: of each measure of each test set, corrected.
        records: of each cell that is done, by condition and seed.
        family: what was corrected together.
        level: of intervals.
    """

    outcomes: tuple[TestOutcome, ...]
    records: tuple[CellRecord, ...]
    family: FamilyScope
    level: float


def title(result: TrainingResult) -> str:
    """What the picture shows."""
    first = result.outcomes[0]
    return f"{first.measure} on {first.test} by how deep the annotation was that was trained on"


def facts(result: TrainingResult) -> list[tuple[str, str]]:
    """The answer first: whether depth matters, and whether it is more than the amount."""
    lines: list[tuple[str, str]] = []
    for outcome in result.outcomes:
        queries = plural(outcome.queries, "query", "queries")
        lines.append((outcome.measure, f"on {outcome.test}, {queries}"))
        lines += [("", _verdict(one)) for one in outcome.comparisons]
    return lines


def tables(result: TrainingResult) -> list[Table]:
    """What was trained on; then for each measure the scores and the comparisons."""
    found = [_cells_table(result.records)]
    for outcome in result.outcomes:
        found += [_scores_table(outcome), _comparisons_table(outcome, result)]
    return found


def value(result: TrainingResult) -> dict[str, Any]:
    """As JSON."""
    return {
        "family": result.family,
        "level": result.level,
        "cells": [_record_value(record) for record in result.records],
        "results": [
            {
                "test": one.test,
                "measure": one.measure,
                "queries": one.queries,
                "first_stage": one.first_stage,
                "conditions": [_condition_value(found) for found in one.conditions],
                "comparisons": [_comparison_value(found) for found in one.comparisons],
            }
            for one in result.outcomes
        ],
    }


def _verdict(one: Comparison) -> str:
    found, p, scope = one.across, one.across_corrected, ""
    if len(one.within) == 1:
        found, p, scope = one.averaged, one.averaged_corrected, ", of these two models only"
    name = f"{one.b.name} against {one.a.name}"
    if one.controlled:
        name += " (as many labels)" if one.same_size else " (not quite as many labels)"
    told = f"{name}: {_signed(found.difference)}{_interval(found)}"
    if p is None:
        return f"{told}; no p: {found.why}"
    strength = "significant" if p < _ALPHA else "not significant"
    return f"{told}, p {format_p(p)} corrected for {one.family}: {strength}{scope}"


def _signed(number: float | None) -> str:
    return "-" if number is None else f"{number:+.4f}"


def _interval(found: TestResult) -> str:
    if found.low is None or found.high is None:
        return ""
    return f" [{found.low:+.4f}, {found.high:+.4f}]"


def _cells_table(records: Sequence[CellRecord]) -> Table:
    columns = (
        Column(name="condition"),
        Column(name="seed", form="count"),
        Column(name="queries", form="count"),
        Column(name="labels", form="count"),
        Column(name="triples", form="count"),
        Column(name="steps", form="count"),
        Column(name="passes", form="score", decimals=2),
        Column(name="first loss", form="score", decimals=3),
        Column(name="last loss", form="score", decimals=3),
        Column(name="seconds", form="count"),
        Column(name="MiB", form="count"),
        Column(name="on"),
    )
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
            round(one.peak_mib),
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
        (
            "seconds: of training, after the last kill if there was one; MiB: most memory of the "
            "process by then"
        ),
    ]
    if len({_place(one) for one in records}) > 1:
        notes.append(
            "on: not all were computed alike; another device or precision moves scores somewhat, "
            "which is in the differences too"
        )
    if short:
        notes.append(f"controls have {plural(short, 'triple')} fewer than what they follow")
    return Table(title="Trainings", columns=columns, rows=rows, notes=tuple(notes))


def _place(record: CellRecord) -> str:
    """Where it was computed, and in which precision."""
    return f"{record.device} {record.precision}"


def _scores_table(outcome: TestOutcome) -> Table:
    seeds = len(outcome.conditions[0].by_seed)
    columns = (
        Column(name="trained on"),
        *(Column(name=f"seed {seed}", form="score") for seed in range(seeds)),
        Column(name="mean", form="score"),
        Column(name="spread", form="score"),
    )
    rows: list[tuple[Cell, ...]] = [
        (one.condition.name, *one.by_seed, one.mean, one.spread) for one in outcome.conditions
    ]
    blanks: tuple[Cell, ...] = (None,) * seeds
    rows.append(("nothing: the first stage", *blanks, outcome.first_stage, None))
    return Table(
        title=f"{outcome.measure} on {outcome.test}, {plural(outcome.queries, 'query', 'queries')}",
        columns=columns,
        rows=tuple(rows),
        notes=("spread: standard deviation of the seeds",),
    )


def _comparisons_table(outcome: TestOutcome, result: TrainingResult) -> Table:
    seeds = len(outcome.conditions[0].by_seed)
    columns = (
        Column(name="B"),
        Column(name="A"),
        Column(name="B - A", form="difference"),
        Column(name="low", form="difference"),
        Column(name="high", form="difference"),
        Column(name="p across", form="p"),
        Column(name="p averaged", form="p"),
        *(Column(name=f"p seed {seed}", form="p") for seed in range(seeds)),
        Column(name="detectable", form="score"),
    )
    rows = tuple(
        (
            one.b.name,
            one.a.name,
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
    scope = "this measure and test set" if result.family == "measure" else "all measures and sets"
    return Table(
        title=f"{outcome.measure} on {outcome.test}: differences",
        columns=columns,
        rows=rows,
        notes=(
            f"p times {family}, the comparisons on {scope} (Bonferroni)",
            (
                f"across: t with seeds and queries drawn, {result.level:.0%} interval uncorrected: "
                "would other seeds and queries show it?"
            ),
            *(f"no p or interval across: {why}" for why in whys),
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


def _record_value(record: CellRecord) -> dict[str, Any]:
    return {
        "condition": record.condition,
        "seed": record.seed,
        "queries": record.queries,
        "labels": record.labels,
        "triples": record.triples,
        "missing": record.missing,
        "steps": record.steps,
        "passes": record.passes,
        "first_loss": record.first_loss,
        "last_loss": record.last_loss,
        "seconds": record.seconds,
        "peak_mib": record.peak_mib,
        "device": record.device,
        "precision": record.precision,
    }


def _condition_value(one: ConditionScores) -> dict[str, Any]:
    return {
        "condition": one.condition.name,
        "depth": one.condition.depth,
        "like": one.condition.like,
        "all": one.condition == ALL,
        "by_seed": list(one.by_seed),
        "mean": one.mean,
        "spread": one.spread,
    }


def _comparison_value(one: Comparison) -> dict[str, Any]:
    corrected: Mapping[str, Any] = {
        "within": list(one.within_corrected),
        "averaged": one.averaged_corrected,
        "across": one.across_corrected,
    }
    return {
        "a": one.a.name,
        "b": one.b.name,
        "same_size": one.same_size,
        "within": [_test_value(found) for found in one.within],
        "averaged": _test_value(one.averaged),
        "across": _test_value(one.across),
        "p_corrected": dict(corrected),
        "family": one.family,
        "detectable": one.detectable,
    }


def _test_value(found: TestResult) -> dict[str, Any]:
    return {
        "test": found.test,
        "difference": found.difference,
        "low": found.low,
        "high": found.high,
        "p": found.p,
        "why": found.why,
    }


_COLUMNS = 2
_WIDTH, _HEIGHT = 260, 180
_ABOVE, _BELOW, _LEFT, _RIGHT = 52, 40, 64, 24
_LINE = 19
_BESIDE = 0.22
_STAR: Final = "*"
_DAGGER: Final = "†"
_DASH = (6, 4)

_Mark = Literal["circle", "diamond", "square", "dashes", "*", "†"]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Panel:
    """A place in the picture; its axes are drawn by hand, since a picture has one frame.

    Attributes:
        frame: of the whole picture, in pixels, upwards.
        left, bottom: its lower left corner there.
        names: of the depths, from left to right.
        span: ends of its scores.
    """

    frame: Frame
    left: float
    bottom: float
    names: tuple[str, ...]
    span: tuple[float, float]

    def at(self, x: float, score: float) -> tuple[float, float]:
        """Where a score at a depth, counted from 0, stands in the frame."""
        low, high = self.span
        across = (x + 0.5) / len(self.names)
        return self.left + across * _WIDTH, self.bottom + (score - low) / (high - low) * _HEIGHT

    def label(self, x: float, y: float, text: str) -> Label:
        """Text at pixels from the panel's upper left corner."""
        top = self.frame.canvas.height - self.bottom - _HEIGHT
        return Label(x=self.left + x, y=top + y, text=text, align="left")


def spec(result: TrainingResult) -> dict[str, Any]:
    """A panel for each measure of each test set, below a key of all marks.

    The line joins the means over seeds of r = 1, …, all; squares are the controls, beside the
    depth whose size they have; the dashed line is the run that was re-ranked. A star says that the
    difference from all is significant across seeds and queries, corrected, a dagger that from the
    next deeper annotation is; with one seed, across queries.

    Args:
        result: with at least one outcome.
    """
    rows = -(-len(result.outcomes) // _COLUMNS)
    columns = min(_COLUMNS, len(result.outcomes))
    keys = _keys(result)
    width = columns * (_LEFT + _WIDTH + _RIGHT)
    height = len(keys) * _LINE + rows * (_ABOVE + _HEIGHT + _BELOW)
    canvas = Canvas(width=width, height=height, left=8, right=8, top=8, bottom=8)
    frame = Frame(
        canvas=canvas, x=(0.0, float(width)), y=(0.0, float(height)), x_ticks=(), y_ticks=()
    )
    layers: list[Layer] = _draw_keys(keys, frame)
    for place, outcome in enumerate(result.outcomes):
        row, column = divmod(place, _COLUMNS)
        panel = _Panel(
            frame=frame,
            left=column * (_LEFT + _WIDTH + _RIGHT) + _LEFT,
            bottom=(rows - 1 - row) * (_ABOVE + _HEIGHT + _BELOW) + _BELOW,
            names=tuple(
                one.condition.name for one in outcome.conditions if one.condition.like is None
            ),
            span=score_span(
                [
                    outcome.first_stage,
                    *(score for one in outcome.conditions for score in one.by_seed),
                ]
            ),
        )
        layers += [*_axes(panel, outcome), *_marks(panel, outcome)]
    for layer in layers:
        if "x" in layer["encoding"]:
            layer["encoding"]["x"]["axis"] = None
    return join_layers(frame, layers)


def _axes(panel: _Panel, outcome: TestOutcome) -> list[Layer]:
    low, high = panel.span
    last = len(panel.names) - 0.5
    layers = [draw_line([panel.at(-0.5, low), panel.at(last, low)], panel.frame, RULE)]
    labels = []
    for tick in score_ticks(panel.span, most=6):
        ends = [panel.at(-0.5, tick.at), panel.at(last, tick.at)]
        layers.append(draw_line(ends, panel.frame, RULE, dash=[1, 4]))
        down = (high - tick.at) / (high - low) * _HEIGHT
        labels.append(panel.label(-_LEFT + 8, down, tick.label))
    for place, name in enumerate(panel.names):
        middle = (place + 0.5) / len(panel.names) * _WIDTH
        labels.append(panel.label(middle - 4 * len(name), _HEIGHT + 16, name))
    head = panel.label(-_LEFT + 8, -28, f"{outcome.measure} on {outcome.test}")
    return [*layers, *draw_texts(labels, MUTED), *draw_texts([head], INK)]


def _keys(result: TrainingResult) -> list[tuple[_Mark, str]]:
    """What each mark of the picture is; a mark that is nowhere in it has no key."""
    controlled = any(
        one.condition.like is not None for found in result.outcomes for one in found.conditions
    )
    signs = {sign for found in result.outcomes for sign in "".join(_signs(found).values())}
    keys: list[tuple[_Mark, str]] = [
        ("circle", "a model: one seed"),
        ("diamond", "mean of the seeds"),
    ]
    if controlled:
        keys.append(("square", "mean, on as few labels drawn at random"))
    keys.append(("dashes", "the first stage, which is re-ranked"))
    if _STAR in signs:
        keys.append((_STAR, "differs from all, corrected"))
    if _DAGGER in signs:
        keys.append((_DAGGER, "differs from the next deeper one, corrected"))
    return keys


def _draw_keys(keys: Sequence[tuple[_Mark, str]], frame: Frame) -> list[Layer]:
    layers: list[Layer] = []
    for place, (mark, text) in enumerate(keys):
        down = place * _LINE + _LINE / 2
        up = frame.canvas.height - down
        match mark:
            case "dashes":
                layers.append(draw_line([(4.0, up), (28.0, up)], frame, INK, dash=_DASH))
            case "*" | "†":
                # A star hangs at the top of its line
                middle = down + 3 if mark == _STAR else down
                layers += draw_texts([Label(x=13, y=middle, text=mark, align="left")], INK)
            case _:
                layers.append(draw_dots([(16.0, up, text)], frame, mark))
        layers += draw_texts([Label(x=36, y=down, text=text, align="left")], MUTED)
    return layers


def _marks(panel: _Panel, outcome: TestOutcome) -> list[Layer]:
    line = [one for one in outcome.conditions if one.condition.like is None]
    controls = [one for one in outcome.conditions if one.condition.like is not None]
    places = {one.condition.depth: float(place) for place, one in enumerate(line)}
    depths = [(one, places[one.condition.depth]) for one in line]
    beside = [(one, places.get(one.condition.like, len(line) - 1.0) + _BESIDE) for one in controls]
    joined = [panel.at(x, one.mean) for one, x in depths]
    first = [panel.at(x, outcome.first_stage) for x in (-0.5, len(line) - 0.5)]
    return [
        draw_line(first, panel.frame, INK, dash=_DASH),
        draw_line(joined, panel.frame, RECORD),
        draw_dots(_seeds(panel, [*depths, *beside]), panel.frame, "circle"),
        _means(panel, depths, "diamond"),
        _means(panel, beside, "square"),
        *_draw_signs(panel, _signs(outcome), [*depths, *beside]),
    ]


def _seeds(
    panel: _Panel, at: Sequence[tuple[ConditionScores, float]]
) -> list[tuple[float, float, str]]:
    return [
        (*panel.at(x, score), f"{one.condition.name}, seed {seed}: {score:.4f}")
        for one, x in at
        for seed, score in enumerate(one.by_seed)
    ]


def _means(panel: _Panel, at: Sequence[tuple[ConditionScores, float]], style: Style) -> Layer:
    dots = [(*panel.at(x, one.mean), f"{one.condition.name}: {one.mean:.4f}") for one, x in at]
    return draw_dots(dots, panel.frame, style)


def _signs(outcome: TestOutcome) -> Mapping[Condition, str]:
    """What stands above a condition: which differences from it are significant."""
    found: dict[Condition, str] = {}
    for one in outcome.comparisons:
        p = one.across_corrected if len(one.within) > 1 else one.averaged_corrected
        if p is not None and p < _ALPHA and not one.controlled:
            found[one.b] = found.get(one.b, "") + (_STAR if one.a == ALL else _DAGGER)
    return found


def _draw_signs(
    panel: _Panel,
    signs: Mapping[Condition, str],
    at: Sequence[tuple[ConditionScores, float]],
) -> list[Layer]:
    height = panel.frame.canvas.height
    labels = []
    for one, x in at:
        if sign := signs.get(one.condition):
            left, up = panel.at(x, max(one.by_seed))
            labels.append(Label(x=left - 3, y=height - up - 14, text=sign, align="left"))
    return draw_texts(labels, INK)
