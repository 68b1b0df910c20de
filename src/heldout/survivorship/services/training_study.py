"""A training study: what is trained on, every cell, and what came of them."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from heldout.answers.answer import Answer
from heldout.errors import plural
from heldout.progress import SILENT, Progress
from heldout.rankers.neural.cross_encoder import CrossEncoderSettings
from heldout.rankers.neural.training import TrainingSettings
from heldout.survivorship.reading.source import AnnotationPlace
from heldout.survivorship.services.collections import CollectionReader
from heldout.survivorship.services.training import (
    Fate,
    TrainingFolder,
    Watch,
    compute_cell,
    find_start,
    score_cells,
)
from heldout.survivorship.services.training_material import (
    Material,
    note_trained_on,
    note_unknown,
    read_material,
)
from heldout.survivorship.services.training_tests import read_tests
from heldout.survivorship.training import learning_curve as curve_report
from heldout.survivorship.training import words as training_chart
from heldout.survivorship.training import words as training_report
from heldout.survivorship.training.experiment import (
    Cell,
    CellRecord,
    TestSet,
    check_shares,
    plan_cells,
    texts_of,
)
from heldout.survivorship.training.learning_curve import draw_curve
from heldout.survivorship.training.options import (
    ConditionOptions,
    LearnerOptions,
    TestOptions,
    TripleOptions,
)
from heldout.survivorship.training.results import Amount, compare_conditions, correct_families
from heldout.survivorship.training.triples import Condition

_WAIT = 2.0
"""Seconds between two looks at what another call is at."""
_FAMILY: Literal["measure"] = "measure"


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingStudy:
    """What a study is made of, as one options class."""

    source: AnnotationPlace = field(default_factory=AnnotationPlace)
    material: TripleOptions = field(default_factory=TripleOptions)
    choice: ConditionOptions = field(default_factory=ConditionOptions)
    learner: LearnerOptions = field(default_factory=LearnerOptions)
    test: TestOptions = field(default_factory=TestOptions)


def run_study(
    folder: Path,
    study: TrainingStudy,
    *,
    peak_mib: Callable[[], float],
    progress: Progress = SILENT,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> Answer:
    """Train and re-rank whatever is not done yet; what came of all of it.

    The folder holds everything: the same call goes on after a kill, and several calls at once share
    the work.

    Args:
        folder: of the study.
        study: what is compared.
        peak_mib: most memory that this process has had, in MiB.
        progress: is told each cell.
        clock: seconds from any beginning.
        sleep: waits for other calls.

    Raises:
        WrongOptions: options that contradict each other.
        InputError: a file has errors.
        StoreError: the folder holds another study.
        SetupError: the extra `neural` is missing.
    """
    root = TrainingFolder(folder)
    reader = CollectionReader(study.material.split_seed, progress)
    # Of other texts nothing stays in memory.
    found = read_material(study.source, study.material, reader, progress)
    tests = read_tests(study.test, reader, progress)
    cells = _cells(found, study)
    note_unknown(found, progress)
    trained_on = note_trained_on(found, cells, tests, progress)
    seen = {name: asdict(one) for name, one in trained_on.items()}
    root.describe({**_description(found, study), "seen": seen})
    for one in tests:
        root.write_first(one.name, one.first)
    start = find_start(_model(study.learner))
    progress.note("training", _settings(study.learner, len(cells)))

    def compute(cell: Cell) -> Fate:
        learner = study.learner
        texts = texts_of(cell.selection.triples, found.queries, found.documents)
        steps = min(learner.steps, -(-len(texts) // learner.batch)) if learner.one_pass else None
        training = _training(learner, steps or learner.steps)
        with _watched(cell, tests, training.steps, progress) as done:
            watch = Watch(
                clock=clock,
                peak_mib=peak_mib,
                trained=lambda *_: done(),
                ranked=lambda *_: done(),
                keep=learner.keep_models,
            )
            return compute_cell(
                root, cell, texts, tests, start=start, training=training, watch=watch
            )

    _compute(cells, compute, progress, sleep)
    return _answer(root, cells, tests, study)


def _cells(found: Material, study: TrainingStudy) -> tuple[Cell, ...]:
    seed, learner = study.material.seed, study.learner
    plan = plan_cells(
        found.read,
        found.places,
        study.choice.conditions,
        seeds=study.choice.repetitions,
        seed=seed,
        limit=learner.steps * learner.batch,
        source=found.source,
    )
    if study.choice.learning_curve is not None:
        check_shares(plan, found.read, seed=seed, batch=learner.batch)
    return plan.cells


def _compute(
    cells: Sequence[Cell],
    compute: Callable[[Cell], Fate],
    progress: Progress,
    sleep: Callable[[float], None],
) -> None:
    """All cells; what another call is at is waited for, and taken up should that call end."""

    def note(number: int, cell: Cell, fate: Fate) -> None:
        progress.note(f"{number}/{len(cells)}", f"{cell.condition.name}, seed {cell.seed}: {fate}")

    elsewhere = []
    for number, cell in enumerate(cells, 1):
        fate = compute(cell)
        note(number, cell, fate)
        if fate == "elsewhere":
            elsewhere.append((number, cell))
    if elsewhere:
        at_work = plural(len(elsewhere), "training is", "trainings are")
        progress.note("waiting", f"{at_work} computed by another call")
    for number, cell in elsewhere:
        while (fate := compute(cell)) == "elsewhere":
            sleep(_WAIT)
        note(number, cell, fate)


def _settings(learner: LearnerOptions, cells: int) -> str:
    rate = learner.learning_rate or "its kind's"
    each = "at most" if learner.one_pass else "each of"
    return (
        f"{plural(cells, 'training')}, {each} {plural(learner.steps, 'step')} of "
        f"{plural(learner.batch, 'triple')}: {learner.model}, {learner.length} tokens, "
        f"{learner.loss} loss, rate {rate}"
    )


@contextmanager
def _watched(
    cell: Cell, tests: Sequence[TestSet], steps: int, progress: Progress
) -> Iterator[Callable[[], None]]:
    """Steps and queries of one cell."""
    total = steps + sum(len(test.queries) for test in tests)
    with progress.steps(f"{cell.condition.name}, seed {cell.seed}", total) as done:
        yield done


def _model(learner: LearnerOptions) -> CrossEncoderSettings:
    return CrossEncoderSettings(
        model=learner.model,
        length=learner.length,
        device=learner.device,
        precision=learner.precision,
    )


def _training(learner: LearnerOptions, steps: int) -> TrainingSettings:
    return TrainingSettings(
        steps=steps, batch=learner.batch, loss=learner.loss, learning_rate=learner.learning_rate
    )


def _description(found: Material, study: TrainingStudy) -> dict[str, Any]:
    return {
        "schema": 1,
        "annotations": found.source,
        "digest_of_triples": found.digest,
        "conditions": [condition.name for condition in study.choice.conditions],
        "seeds": study.choice.repetitions,
        "material": asdict(study.material),
        "learner": asdict(study.learner),
        "test": asdict(study.test),
    }


def _answer(
    root: TrainingFolder, cells: Sequence[Cell], tests: Sequence[TestSet], study: TrainingStudy
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
    level = study.test.level
    if study.choice.learning_curve is not None:
        curves = [
            draw_curve(
                scores,
                first,
                records,
                test=one.name,
                measure=measure,
                first_name=one.first_name,
                level=level,
            )
            for one, measure, scores, first in scored
        ]
        root.keep_curve(curve_report.kept(curves[0]))
        return Answer(
            summary=curve_report.facts(curves),
            tables=curve_report.tables(curves),
            document=curve_report.value(curves),
            chart=lambda: curve_report.spec(curves),
            title=curve_report.title(curves),
        )
    outcomes = [
        compare_conditions(
            scores, first, _amounts(records), test=one.name, measure=measure, level=level
        )
        for one, measure, scores, first in scored
    ]
    result = training_report.TrainingResult(
        outcomes=correct_families(outcomes, family=_FAMILY),
        records=tuple(record for found in records.values() for record in found),
        family=_FAMILY,
        level=level,
    )
    return Answer(
        summary=training_report.facts(result),
        tables=training_report.tables(result),
        document=training_report.value(result),
        chart=lambda: training_chart.spec(result),
        title=training_report.title(result),
    )


def _amounts(records: Mapping[Condition, Sequence[CellRecord]]) -> dict[Condition, list[Amount]]:
    return {
        condition: [Amount(one.queries, one.labels, one.triples) for one in found]
        for condition, found in records.items()
    }
