"""A training study: what is trained on, every cell, and what came of them.

Cell by cell it trains, re-ranks every test set, and writes down what came of it. Whatever is done
already is left alone, so a call after a kill goes on where the last one was, and several processes
can share a folder: each takes a cell that nobody else is at. What trainings begin from is known by
its files.

    FOLDER/experiment.json            what was asked last
    FOLDER/first/TEST.run.gz          the run that is re-ranked
    FOLDER/cells/CELL/state.pt        a training that is not over
    FOLDER/cells/CELL/cell.json       what became of it, and of which runs
    FOLDER/cells/CELL/TEST.run.gz     the test set re-ranked
    FOLDER/cells/CELL/model/          the trained model, where it is stored
"""

import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal

import msgspec
import numpy as np

from heldout.answers.answer import Answer
from heldout.errors import InputError, StoreError, plural
from heldout.files.durable import ASIDE, File, Folder
from heldout.ids import Digest, digest_bytes
from heldout.progress_bar import SILENT, Progress
from heldout.rankers.neural.checkpoints import find_checkpoint
from heldout.rankers.neural.cross_encoder import (
    CrossEncoder,
    CrossEncoderSettings,
    load_cross_encoder,
)
from heldout.rankers.neural.training import TextTriple, TrainingSettings, train
from heldout.rankers.reranking import rerank, score_best_passage
from heldout.rankers.run import PairScorer, Run, Task, write_run
from heldout.scoring.cache import digest_file
from heldout.scoring.evaluate import Judged, prepare, score
from heldout.scoring.measures import Measure
from heldout.survivorship.reading.source import AnnotationPlace
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
    RunRecord,
    Start,
    TestSet,
    Training,
    check_shares,
    plan_cells,
)
from heldout.survivorship.training.learning_curve import answer_curves, draw_curve
from heldout.survivorship.training.options import (
    ConditionOptions,
    LearnerOptions,
    TestOptions,
    TripleOptions,
)
from heldout.survivorship.training.results import Floats, Scored, compare_conditions
from heldout.survivorship.training.triples import Condition
from heldout.survivorship.training.words import TrainingResult, answer_training
from heldout.trec.reading.sources import open_input
from heldout.trec.runs import scan_run


def find_start(model: CrossEncoderSettings) -> Start:
    """A model with the digest of its files, where somebody could replace them.

    Args:
        model: a published name is known by its name; of a folder all files but notes (`.md`)
            and hidden ones count.

    Raises:
        StoreError: a file of the folder cannot be read.
    """
    folder = Path(model.model)
    if find_checkpoint(model.model) or not folder.is_dir():
        return Start(model=model)
    digest = sha256()
    for path in sorted(folder.iterdir()):
        if path.is_file() and path.suffix != ".md" and not path.name.startswith("."):
            try:
                digest.update(f"{path.name} {digest_file(path)}\n".encode())
            except OSError as error:
                raise StoreError(f"{path} cannot be read: {error.strerror or error}") from error
    return Start(model=model, files=Digest(digest.hexdigest()))


@dataclass(frozen=True, slots=True)
class CellFolder:
    """The files of one cell.

    Attributes:
        path: its folder.
    """

    path: Path

    @property
    def state(self) -> Path:
        """Where the state of its training is stored."""
        return self.path / "state.pt"

    @property
    def model(self) -> Path:
        """Where the trained model is stored, if it is."""
        return self.path / "model"

    def run(self, test: str) -> Path:
        """The run file of a test set."""
        return self.path / f"{test}.run.gz"

    def record(self) -> CellRecord | None:
        """What became of it; `None` where it is not trained.

        Raises:
            StoreError: the record cannot be read.
        """
        file = Folder(self.path).file("cell.json")
        try:
            data = file.find()
            return None if data is None else msgspec.json.decode(data, type=CellRecord)
        except (msgspec.DecodeError, OSError) as error:
            raise StoreError(f"{file} cannot be read: {error}; remove its folder") from error

    def write_record(self, record: CellRecord) -> None:
        """Store what became of it.

        Raises:
            StoreError: it cannot be written.
        """
        _write_json(Folder(self.path).file("cell.json"), record)

    def write_run(self, test: str, run: Run, record: CellRecord, *, inputs: Digest) -> CellRecord:
        """Write the run of a test set, then say so in the record.

        Args:
            test: name of the test set.
            run: to write.
            record: of the cell.
            inputs: what the run was made of, `TestSet.inputs`.

        Returns:
            The record with it.
        """
        path = self.run(test)
        _write_run(run, path, tag=self.path.name)
        written = RunRecord(file=digest_bytes(path.read_bytes()), inputs=inputs)
        changed = msgspec.structs.replace(record, runs=record.runs | {test: written})
        self.write_record(changed)
        return changed

    def has_run(self, test: str, record: CellRecord, *, inputs: Digest) -> bool:
        """Whether the run of a test set is done.

        Args:
            test: name of the test set.
            record: of the cell.
            inputs: what the run is to be made of, `TestSet.inputs`.

        Raises:
            StoreError: it was made of something else.
        """
        found = record.runs.get(test)
        if found is not None and found.inputs != inputs:
            raise StoreError(
                f"{self.run(test)} was computed with another first run, depth or passage, or other "
                f"texts; take another folder, or remove {self.path}"
            )
        return found is not None

    def check_run(self, test: str, record: CellRecord, *, inputs: Digest) -> Path:
        """The run file of a test set, as it was written.

        Args:
            test: name of the test set.
            record: of the cell.
            inputs: what the run is to be made of, `TestSet.inputs`.

        Raises:
            StoreError: it is missing or changed, or was made of something else.
        """
        known = self.has_run(test, record, inputs=inputs)
        path = self.run(test)
        there = known and path.is_file()
        if not there or digest_bytes(path.read_bytes()) != record.runs[test].file:
            raise StoreError(f"{path} is not as it was written; remove {self.path}, and call again")
        return path

    def store_model(self, save: Callable[[Path], None]) -> None:
        """Store the trained model; a folder of this name is whole.

        Args:
            save: writes the model into a folder.

        Raises:
            StoreError: it cannot be written.
        """
        aside = Path(tempfile.mkdtemp(dir=self.path, prefix=ASIDE))
        try:
            save(aside)
            aside.chmod(0o755)
            aside.replace(self.model)
        # Each library that writes weights has its own exception for a full disk.
        except Exception as error:
            raise StoreError(f"{self.model} cannot be written: {error}") from error
        finally:
            shutil.rmtree(aside, ignore_errors=True)

    @contextmanager
    def taken(self) -> Iterator[bool]:
        """Work on the cell, where nobody else does.

        Yields:
            Whether it is ours; if not, another process is at it.
        """
        with ExitStack() as held:
            try:
                held.enter_context(Folder(self.path).lock(".lock"))
            except StoreError:
                yield False
            else:
                yield True


@dataclass(frozen=True, slots=True)
class TrainingFolder:
    """The folder of an experiment.

    Attributes:
        root: where it is.
    """

    root: Path

    def cell(self, name: str) -> CellFolder:
        """The folder of a cell, which may not be there yet."""
        return CellFolder(self.root / "cells" / name)

    def first(self, test: str) -> Path:
        """The run of a test set before re-ranking."""
        return self.root / "first" / f"{test}.run.gz"

    def write_first(self, test: str, run: Run) -> None:
        """Store the run that is re-ranked, for whoever looks later."""
        _write_run(run, self.first(test), tag="first")

    def describe(self, study: Mapping[str, Any]) -> None:
        """Write down what was asked."""
        _write_json(Folder(self.root).file("experiment.json"), study)


def _write_json(file: File, content: object) -> None:
    data = msgspec.json.format(msgspec.json.encode(content), indent=2) + b"\n"
    try:
        file.write_whole(data)
    except OSError as error:
        raise StoreError(f"{file} cannot be written: {error.strerror or error}") from error


def _write_run(run: Run, path: Path, *, tag: str) -> None:
    try:
        write_run(run, path, form="trec", tag=tag)
    except OSError as error:
        raise StoreError(f"{path} cannot be written: {error.strerror or error}") from error


Fate = Literal["done", "done before", "elsewhere"]
"""Of a cell: computed now, computed earlier, or being computed by another process."""

_TENTH = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Watch:
    """How the work is watched; none of it changes what comes out.

    Attributes:
        clock: seconds from any beginning.
        peak_mib: most memory that this process has had, in MiB.
        done: called after each step of a training, and after each query that was re-ranked.
        store_models: whether trained models stay.
    """

    clock: Callable[[], float]
    peak_mib: Callable[[], float]
    done: Callable[[], None]
    store_models: bool = False


def compute_cell(
    folder: TrainingFolder, training: Training, tests: Sequence[TestSet], watch: Watch
) -> Fate:
    """Train a cell's model and re-rank the test sets with it, as far as that is not done.

    Args:
        folder: of the experiment.
        training: what to train, and how.
        tests: what to re-rank.
        watch: how it is watched.

    Raises:
        InputError: as `train` and `rerank`.
        StoreError: the cell was computed with other triples, settings or weights, a run of
            something else than this test set, or its files are damaged.
    """
    files = folder.cell(training.cell.name)
    with files.taken() as ours:
        if not ours:
            return "elsewhere"
        record = files.record()
        if record is not None and record.digest != training.digest:
            raise StoreError(
                f"{files.path} was trained on other triples, with other settings or from other "
                "weights; take another folder, or remove it"
            )
        made_of = {one.name: one.inputs for one in tests}
        missing = [
            one
            for one in tests
            if record is None or not files.has_run(one.name, record, inputs=made_of[one.name])
        ]
        has_model = files.model.is_dir()
        if record is not None and not missing and (has_model or not watch.store_models):
            files.state.unlink(missing_ok=True)
            return "done before"
        encoder, record = _train(training, files, record, watch)
        for test in missing:
            run = _rerank(encoder, test, watch)
            record = files.write_run(test.name, run, record, inputs=made_of[test.name])
        if watch.store_models and not has_model:
            files.store_model(encoder.save)
        files.state.unlink(missing_ok=True)
    return "done"


def score_cells(folder: TrainingFolder, cells: Sequence[Cell], test: TestSet) -> list[Scored]:
    """Measure the run files of cells that are done, by each measure of the test set.

    Args:
        folder: of the experiment.
        cells: for each condition the same seeds, in the same order.
        test: what they re-ranked.

    Raises:
        InputError: code `undefined-score`: a measure is not defined on each query.
        StoreError: a run file is not as it was written, or was made of something else.
    """
    inputs = test.inputs
    judged = prepare(test.qrels, test.measures)
    rows: dict[Measure, dict[Condition, list[Floats]]] = {measure: {} for measure in test.measures}
    for cell in cells:
        files = folder.cell(cell.name)
        record = files.record()
        if record is None:
            raise StoreError(f"{files.path} has no result; call again")
        path = files.check_run(test.name, record, inputs=inputs)
        for measure, values in _measure(str(path), test, judged).items():
            rows[measure].setdefault(cell.condition, []).append(values)
    first = _measure(str(folder.first(test.name)), test, judged)
    return [
        Scored(
            test=test.name,
            measure=str(measure),
            scores={condition: np.stack(values) for condition, values in found.items()},
            first_stage=first[measure],
            first_name=test.first_name,
        )
        for measure, found in rows.items()
    ]


def _train(
    training: Training, files: CellFolder, record: CellRecord | None, watch: Watch
) -> tuple[CrossEncoder, CellRecord]:
    """The cell's model: stored, gone on with, or trained from the beginning."""
    model = training.start.model
    if record is not None and files.model.is_dir():
        return load_cross_encoder(replace(model, model=str(files.model))), record
    encoder = load_cross_encoder(model)
    begun = watch.clock()
    trained = train(
        encoder,
        training.triples,
        training.settings,
        state=files.state,
        progress=lambda *_: watch.done(),
    )
    if record is None:
        cell, settings = training.cell, training.settings
        tenth = max(1, settings.steps // _TENTH)
        record = CellRecord(
            digest=training.digest,
            condition=cell.condition.name,
            seed=cell.seed,
            triples=len(cell.selection.triples),
            labels=cell.selection.labels,
            queries=cell.selection.queries,
            missing=cell.selection.missing,
            steps=settings.steps,
            passes=settings.steps * settings.batch / len(training.triples),
            first_loss=float(np.mean(trained.losses[:tenth])),
            last_loss=float(np.mean(trained.losses[-tenth:])),
            seconds=watch.clock() - begun,
            peak_mib=watch.peak_mib(),
            device=encoder.device,
            precision=encoder.precision,
        )
        files.write_record(record)
    return encoder, record


def _rerank(encoder: CrossEncoder, test: TestSet, watch: Watch) -> Run:
    scorer: PairScorer = encoder.score
    if test.passage is not None:
        size, stride = test.passage
        scorer = score_best_passage(encoder.score, size=size, stride=stride)
    longest = max(map(len, test.first.values()), default=1)
    task = Task(documents=test.documents, queries=test.queries, depth=max(longest, 1))
    return rerank(task, test.first, scorer, depth=test.depth, progress=lambda *_: watch.done())


def _measure(path: str, test: TestSet, judged: Judged) -> dict[Measure, Floats]:
    with open_input(Path(path)) as source:
        found = scan_run(source, path=path, order=None, qrels=test.qrels, signature_depth=0)
    evaluation = score(found.rankings, judged)
    for measure, values in evaluation.scores.items():
        if not values.defined.all():
            raise InputError.of(
                "undefined-score",
                path,
                found=f"{measure} is not defined on each query",
                expected="a measure that has a value on each query",
            )
    return {measure: values.values for measure, values in evaluation.scores.items()}


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
        return answer_curves(curves)
    return answer_training(
        TrainingResult(
            outcomes=tuple(compare_conditions(one, records, level=level) for one in scored),
            records=tuple(record for found in records.values() for record in found),
            level=level,
        )
    )
