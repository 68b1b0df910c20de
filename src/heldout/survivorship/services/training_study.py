"""A training study: what is trained on, every cell, and what came of them."""

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from heldout.answers.answer import Answer
from heldout.errors import plural
from heldout.progress import SILENT, Progress
from heldout.rankers.neural.cross_encoder import CrossEncoderSettings
from heldout.rankers.neural.training import TextTriple, TrainingSettings
from heldout.survivorship.reading.source import AnnotationPlace
from heldout.survivorship.services.training import (
    Fate,
    TrainingFolder,
    Watch,
    compute_cell,
    find_start,
    score_cells,
)
from heldout.survivorship.services.training_inputs import (
    CollectionReader,
    Material,
    note_trained_on,
    note_unknown,
    read_material,
    read_tests,
)
from heldout.survivorship.training.experiment import (
    Cell,
    CellRecord,
    Start,
    TestSet,
    Training,
    check_shares,
    plan_cells,
)
from heldout.survivorship.training.learning_curve import answer_curves, draw_curve, stored_curve
from heldout.survivorship.training.options import (
    ConditionOptions,
    LearnerOptions,
    TestOptions,
    TripleOptions,
)
from heldout.survivorship.training.results import compare_conditions
from heldout.survivorship.training.triples import Condition
from heldout.survivorship.training.words import TrainingResult, answer_training

_WAIT = 2.0
"""Seconds between two looks at what another call is at."""


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
        progress: gets each cell.
        clock: seconds from any beginning.
        sleep: waits for other calls.

    Raises:
        OptionError: options that contradict each other.
        InputError: a file has errors.
        StoreError: the folder holds another study.
        SetupError: the extra `neural` is missing.
    """
    root, learner = TrainingFolder(folder), study.learner
    reader = CollectionReader(progress)
    material = read_material(study.source, study.material, reader, progress)
    tests = read_tests(study.test, reader, progress)
    cells = _plan(material, study)
    note_unknown(material, progress)
    seen = note_trained_on(material, cells, tests, progress)
    root.describe(
        {
            "schema": 1,
            "annotations": material.source,
            "digest_of_triples": material.digest,
            "conditions": [condition.name for condition in study.choice.conditions],
            "seeds": study.choice.repetitions,
            "material": asdict(study.material),
            "learner": asdict(learner),
            "test": asdict(study.test),
            "seen": {name: asdict(one) for name, one in seen.items()},
        }
    )
    for one in tests:
        root.write_first(one.name, one.first)
    files = find_start(_model(learner, seed=0)).files
    progress.note("training", _settings(learner, len(cells)))
    total = learner.steps + sum(len(test.queries) for test in tests)

    queries, documents = material.queries, material.documents

    def compute(cell: Cell) -> Fate:
        training = Training(
            cell=cell,
            triples=[
                TextTriple(queries[one.query], documents[one.positive], documents[one.negative])
                for one in cell.selection.triples
            ],
            start=Start(model=_model(learner, seed=cell.seed), files=files),
            settings=TrainingSettings(
                steps=learner.steps,
                batch=learner.batch,
                loss=learner.loss,
                learning_rate=learner.learning_rate,
                seed=cell.seed,
            ),
        )
        with progress.steps(f"{cell.condition.name}, seed {cell.seed}", total) as done:
            watch = Watch(
                clock=clock, peak_mib=peak_mib, done=done, store_models=learner.keep_models
            )
            return compute_cell(root, training, tests, watch)

    _compute(cells, compute, progress, sleep)
    return _answer(root, cells, tests, study)


def _plan(material: Material, study: TrainingStudy) -> tuple[Cell, ...]:
    seed, learner = study.material.seed, study.learner
    plan = plan_cells(
        material.read,
        material.places,
        study.choice.conditions,
        seeds=study.choice.repetitions,
        seed=seed,
        limit=learner.steps * learner.batch,
        source=material.source,
    )
    if study.choice.learning_curve is not None:
        check_shares(plan, material.read, seed=seed, batch=learner.batch)
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


def _model(learner: LearnerOptions, *, seed: int) -> CrossEncoderSettings:
    return CrossEncoderSettings(
        model=learner.model,
        length=learner.length,
        device=learner.device,
        precision=learner.precision,
        seed=seed,
    )


def _settings(learner: LearnerOptions, cells: int) -> str:
    rate = learner.learning_rate or "its kind's"
    return (
        f"{plural(cells, 'training')}, each of {plural(learner.steps, 'step')} of "
        f"{plural(learner.batch, 'triple')}: {learner.model}, {learner.length} tokens, "
        f"{learner.loss} loss, rate {rate}"
    )


def _answer(
    root: TrainingFolder, cells: Sequence[Cell], tests: Sequence[TestSet], study: TrainingStudy
) -> Answer:
    records: dict[Condition, list[CellRecord]] = {}
    for cell in cells:
        record = root.cell(cell.name).record()
        if record is not None:
            records.setdefault(cell.condition, []).append(record)
    scored = [one for test in tests for one in score_cells(root, cells, test)]
    level = study.test.level
    if study.choice.learning_curve is not None:
        curves = [draw_curve(one, records, level=level) for one in scored]
        root.store_curve(stored_curve(curves[0]))
        return answer_curves(curves)
    return answer_training(
        TrainingResult(
            outcomes=tuple(compare_conditions(one, records, level=level) for one in scored),
            records=tuple(record for found in records.values() for record in found),
            level=level,
        )
    )
