"""`heldout survive train`: re-rankers trained on shallower annotation, compared."""

import resource
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from heldout.answers.answer import Answer
from heldout.cli.console import messages, progress
from heldout.cli.context import reports_disk
from heldout.cli.given_options import refuse_other_options
from heldout.cli.printing import plural, print_facts
from heldout.cli.reporting import Output, output_options, print_answer
from heldout.cli.survive.annotation_source import AnnotationSource, annotation_options
from heldout.cli.survive.places import CollectionReader
from heldout.cli.survive.training_material import (
    Material,
    read_material,
    tell_trained_on,
    tell_unknown,
)
from heldout.cli.survive.training_options import (
    ConditionChoice,
    LearnerChoice,
    TestChoice,
    TripleChoice,
    condition_options,
    learner_options,
    test_options,
    triple_options,
)
from heldout.cli.survive.training_tests import read_tests
from heldout.pipeline.training.training_cells import Fate, Watch, compute_cell, score_cells
from heldout.pipeline.training.training_start import find_start
from heldout.rankers.cross_encoder import CrossEncoderSettings
from heldout.rankers.training import TrainingSettings
from heldout.report import learning_curve as curve_report
from heldout.report import training as training_report
from heldout.report import training_chart
from heldout.store.training_folder import TrainingFolder
from heldout.survivorship.training.cells import check_shares, plan_cells
from heldout.survivorship.training.conditions import Condition
from heldout.survivorship.training.experiment import Cell, CellRecord, TestSet, texts_of
from heldout.survivorship.training.learning_curve import draw_curve
from heldout.survivorship.training.trained_on import TrainedOn
from heldout.survivorship.training.training_results import (
    Amount,
    compare_conditions,
    correct_families,
)

__all__ = ["train"]

_WAIT = 2.0
"""Seconds between two looks at what another call is at."""


@click.command
@click.argument(
    "folder", type=click.Path(file_okay=False, path_type=Path), metavar="FOLDER", required=True
)
@annotation_options
@triple_options
@condition_options
@learner_options
@test_options
@output_options
@reports_disk
def train(
    *,
    folder: Path,
    source: AnnotationSource,
    material: TripleChoice,
    choice: ConditionChoice,
    learner: LearnerChoice,
    test: TestChoice,
    output: Output,
) -> None:
    """Train re-rankers on labels of shallower annotation, and compare what they do.

    FOLDER keeps everything: the same call goes on after a kill, several calls at once share the
    work, and more seeds, conditions or test sets only add to it. Without annotations, annotators
    are simulated: they see BM25's first documents and select what the collection's labels name,
    unless --all-labels takes every one.

    \b
    Examples:
      heldout survive train study
      heldout survive train study --test vaswani --chart study.svg
      heldout survive train curve --learning-curve 0.1,0.25,0.5,1
      heldout survive train tuning --collection my-folder:eval --test my-folder:dev \\
          --all-labels --learning-curve 0.25,0.5,1
    """
    _refuse_idle(material, choice)
    root = TrainingFolder(folder)
    conditions = choice.conditions
    found, tests = _read(source, material, test)
    cells = _cells(found, conditions, choice, material, learner)
    tell_unknown(found)
    seen = tell_trained_on(found, cells, tests)
    root.describe({**_description(found, choice, material, learner, test), "seen": _seen(seen)})
    for one in tests:
        root.write_first(one.name, one.first)
    _compute(root, cells, found, tests, learner)
    print_answer(_answer(root, cells, tests, choice, test), output)


def _read(
    source: AnnotationSource, material: TripleChoice, test: TestChoice
) -> tuple[Material, tuple[TestSet, ...]]:
    """What is trained on and what is re-ranked; of other texts nothing stays in memory."""
    reader = CollectionReader(material.split_seed)
    return read_material(source, material, reader), read_tests(test, reader)


def _refuse_idle(material: TripleChoice, choice: ConditionChoice) -> None:
    """Refuse options that would be left aside."""
    if material.all_labels and choice.curve is None:
        message = "--all-labels has no annotators, hence no depths: add --learning-curve SHARES"
        raise click.UsageError(message)
    if choice.curve is not None:
        _refuse("--learning-curve has no depths", "within", "controls", "family")
    if material.triples is not None:
        _refuse("--triples are not made", "negatives", "negatives_from")
    else:
        _refuse("triples are made of labels", "skip_unknown")


def _refuse(why: str, *names: str) -> None:
    known = {one.name or "" for one in click.get_current_context().command.params}
    refuse_other_options(known.difference(names), why=why)


def _cells(
    found: Material,
    conditions: Sequence[Condition],
    choice: ConditionChoice,
    material: TripleChoice,
    learner: LearnerChoice,
) -> tuple[Cell, ...]:
    plan = plan_cells(
        found.read,
        found.places,
        conditions,
        seeds=choice.repetitions,
        seed=material.seed,
        limit=learner.steps * learner.batch,
        source=found.source,
    )
    if choice.curve is not None:
        check_shares(plan, found.read, seed=material.seed, batch=learner.batch)
    return plan.cells


def _compute(
    root: TrainingFolder,
    cells: Sequence[Cell],
    found: Material,
    tests: Sequence[TestSet],
    learner: LearnerChoice,
) -> None:
    """All cells; what another call is at is waited for, and taken up should that call end."""
    start = find_start(_model(learner))
    print_facts(messages(), [("training", _settings(learner, len(cells)))])

    def compute(cell: Cell) -> Fate:
        texts = texts_of(cell.selection.triples, found.queries, found.documents)
        steps = min(learner.steps, -(-len(texts) // learner.batch)) if learner.one_pass else None
        training = _training(learner, steps or learner.steps)
        with _watched(cell, tests, training.steps, learner.keep) as watch:
            return compute_cell(
                root, cell, texts, tests, start=start, training=training, watch=watch
            )

    def tell(number: int, cell: Cell, fate: Fate) -> None:
        told = f"{cell.condition.name}, seed {cell.seed}: {fate}"
        print_facts(messages(), [(f"{number}/{len(cells)}", told)])

    elsewhere = []
    for number, cell in enumerate(cells, 1):
        fate = compute(cell)
        tell(number, cell, fate)
        if fate == "elsewhere":
            elsewhere.append((number, cell))
    if elsewhere:
        at_work = plural(len(elsewhere), "training is", "trainings are")
        print_facts(messages(), [("waiting", f"{at_work} computed by another call")])
    for number, cell in elsewhere:
        while (fate := compute(cell)) == "elsewhere":
            time.sleep(_WAIT)
        tell(number, cell, fate)


def _settings(learner: LearnerChoice, cells: int) -> str:
    rate = learner.rate or "its kind's"
    each = "at most" if learner.one_pass else "each of"
    return (
        f"{plural(cells, 'training')}, {each} {plural(learner.steps, 'step')} of "
        f"{plural(learner.batch, 'triple')}: {learner.model}, {learner.length} tokens, "
        f"{learner.loss} loss, rate {rate}, {learner.schedule}"
    )


@contextmanager
def _watched(
    cell: Cell,
    tests: Sequence[TestSet],
    steps: int,
    keep: bool,  # noqa: FBT001 - an option
) -> Iterator[Watch]:
    """A bar over steps and queries of one cell, where somebody looks."""
    total = steps + sum(len(test.queries) for test in tests)
    with progress(f"{cell.condition.name}, seed {cell.seed}", total) as done:
        yield Watch(
            clock=time.monotonic,
            peak_mib=_peak_mib,
            trained=lambda *_: done(),
            ranked=lambda *_: done(),
            keep=keep,
        )


def _peak_mib() -> float:
    """Most memory of this process so far; Linux counts in KiB, macOS in bytes."""
    unit = 1 << 20 if sys.platform == "darwin" else 1 << 10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit


def _model(learner: LearnerChoice) -> CrossEncoderSettings:
    return CrossEncoderSettings(
        model=learner.model,
        kind=learner.kind,
        length=learner.length,
        device=learner.device,
        precision=learner.precision,
    )


def _training(learner: LearnerChoice, steps: int) -> TrainingSettings:
    return TrainingSettings(
        steps=steps,
        batch=learner.batch,
        loss=learner.loss,
        learning_rate=learner.rate,
        warmup=learner.warmup,
        schedule=learner.schedule,
    )


def _description(
    found: Material,
    choice: ConditionChoice,
    material: TripleChoice,
    learner: LearnerChoice,
    test: TestChoice,
) -> Mapping[str, Any]:
    return {
        "schema": 1,
        "annotations": found.source,
        "digest_of_triples": found.digest,
        "conditions": [condition.name for condition in choice.conditions],
        "seeds": choice.repetitions,
        "material": asdict(material),
        "learner": asdict(learner),
        "test": asdict(test),
    }


def _seen(found: Mapping[str, TrainedOn]) -> Mapping[str, Any]:
    return {name: asdict(one) for name, one in found.items()}


def _answer(
    root: TrainingFolder,
    cells: Sequence[Cell],
    tests: Sequence[TestSet],
    choice: ConditionChoice,
    test: TestChoice,
) -> Answer:
    records: dict[Condition, list[CellRecord]] = {}
    for cell in cells:
        record = root.cell(cell.name).record()
        if record is not None:
            records.setdefault(cell.condition, []).append(record)
    scored = [
        (one, str(measure), scores, first)
        for one in tests
        for measure, (scores, first) in score_cells(root, cells, one).items()
    ]
    if choice.curve is not None:
        curves = [
            draw_curve(
                scores,
                first,
                records,
                test=one.name,
                measure=measure,
                first_name=one.first_name,
                level=test.level,
            )
            for one, measure, scores, first in scored
        ]
        root.keep_curve(curve_report.kept(curves[0]))
        return Answer(
            facts=curve_report.facts(curves),
            tables=curve_report.tables(curves),
            value=curve_report.value(curves),
            chart=lambda: curve_report.spec(curves),
            title=curve_report.title(curves),
        )
    amounts = {
        condition: [Amount(one.queries, one.labels, one.triples) for one in found]
        for condition, found in records.items()
    }
    outcomes = [
        compare_conditions(scores, first, amounts, test=one.name, measure=measure, level=test.level)
        for one, measure, scores, first in scored
    ]
    result = training_report.TrainingResult(
        outcomes=correct_families(outcomes, family=test.family),
        records=tuple(record for found in records.values() for record in found),
        family=test.family,
        level=test.level,
    )
    return Answer(
        facts=training_report.facts(result),
        tables=training_report.tables(result),
        value=training_report.value(result),
        chart=lambda: training_chart.spec(result),
        title=training_report.title(result),
    )
