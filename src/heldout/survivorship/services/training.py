"""A training study: what is trained on, every cell, and what came of them.

Cell by cell it trains, re-ranks every test set, and writes down what came of it. Whatever is done
already is left alone, so a call after a kill goes on where the last one was. What trainings begin
from is known by its files.

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
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from hashlib import sha256
from pathlib import Path

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


def digest_model(model: str) -> Digest | None:
    """Return the SHA-256 of a model's files, where somebody could replace them.

    Args:
        model: a published name is known by its name; of a folder all files but notes (`.md`)
            and hidden ones count.

    Raises:
        StoreError: a file of the folder cannot be read.
    """
    folder = Path(model)
    if find_checkpoint(model) or not folder.is_dir():
        return None
    digest = sha256()
    for path in sorted(folder.iterdir()):
        if path.is_file() and path.suffix != ".md" and not path.name.startswith("."):
            try:
                digest.update(f"{path.name} {digest_file(path)}\n".encode())
            except OSError as error:
                raise StoreError(f"{path} cannot be read: {error.strerror or error}") from error
    return Digest(digest.hexdigest())


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

    def read_record(self, digest: Digest | None = None) -> CellRecord | None:
        """Read what became of it; `None` where it is not trained.

        Args:
            digest: of the training that is wanted, `Training.digest`; `None` for any.

        Raises:
            StoreError: the record cannot be read, or is of another training.
        """
        file = Folder(self.path).file("cell.json")
        try:
            data = file.find()
            found = None if data is None else msgspec.json.decode(data, type=CellRecord)
        except (msgspec.DecodeError, OSError) as error:
            raise StoreError(f"{file} cannot be read: {error}; remove its folder") from error
        if found is not None and digest is not None and found.digest != digest:
            raise StoreError(
                f"{self.path} was trained on other triples, with other settings or from other "
                "weights; take another folder, or remove it"
            )
        return found

    def write_run(self, test: TestSet, run: Run, record: CellRecord) -> CellRecord:
        """Write the run of a test set, then say so in the record.

        Returns:
            The record with it.
        """
        path = self.path / f"{test.name}.run.gz"
        _write_run(run, path, tag=self.path.name)
        written = RunRecord(file=digest_bytes(path.read_bytes()), inputs=test.inputs)
        changed = msgspec.structs.replace(record, runs=record.runs | {test.name: written})
        _write_json(Folder(self.path).file("cell.json"), changed)
        return changed

    def find_run(self, test: TestSet, record: CellRecord) -> Path | None:
        """Find the run file of a test set, as it was written; `None` where it is not done.

        Raises:
            StoreError: it is missing or changed, or was made of something else.
        """
        known, path = record.runs.get(test.name), self.path / f"{test.name}.run.gz"
        if known is None:
            return None
        if known.inputs != test.inputs:
            raise StoreError(
                f"{path} was computed with another first run, depth or passage, or other "
                f"texts; take another folder, or remove {self.path}"
            )
        if not path.is_file() or digest_bytes(path.read_bytes()) != known.file:
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


def _cell_folder(root: Path, cell: Cell) -> CellFolder:
    return CellFolder(root / "cells" / cell.name)


def _first_path(root: Path, test: TestSet) -> Path:
    return root / "first" / f"{test.name}.run.gz"


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


_TENTH = 10


def compute_cell(
    files: CellFolder,
    training: Training,
    tests: Sequence[TestSet],
    *,
    peak_mib: Callable[[], float],
    done: Callable[[], None],
    store_model: bool = False,
) -> bool:
    """Train a cell's model and re-rank the test sets with it, as far as that is not done.

    Args:
        files: of the cell.
        training: what to train, and how.
        tests: what to re-rank.
        peak_mib: most memory that this process has had, in MiB.
        done: called after each step of a training, and after each query that was re-ranked.
        store_model: whether the trained model stays.

    Returns:
        Whether there was anything to do.

    Raises:
        InputError: as `train` and `rerank`.
        StoreError: the cell was computed with other triples, settings or weights, a run of
            something else than this test set, or its files are damaged.
    """
    record = files.read_record(training.digest)
    missing = [one for one in tests if record is None or files.find_run(one, record) is None]
    has_model = files.model.is_dir()
    busy = record is None or bool(missing) or (store_model and not has_model)
    if busy:
        encoder, record = _train(training, files, record, peak_mib, done)
        for test in missing:
            record = files.write_run(test, _rerank(encoder, test, done), record)
        if store_model and not has_model:
            files.store_model(encoder.save)
    files.state.unlink(missing_ok=True)
    return busy


def score_cells(root: Path, cells: Sequence[Cell], test: TestSet) -> list[Scored]:
    """Measure the run files of cells that are done, by each measure of the test set.

    Args:
        root: folder of the study.
        cells: for each condition the same seeds, in the same order.
        test: what they re-ranked.

    Raises:
        InputError: code `undefined-score`: a measure is not defined on each query.
        StoreError: a run file is not as it was written, or was made of something else.
    """
    judged = prepare(test.qrels, test.measures)
    rows: dict[Measure, dict[Condition, list[Floats]]] = {measure: {} for measure in test.measures}
    for cell in cells:
        files = _cell_folder(root, cell)
        record = files.read_record()
        path = None if record is None else files.find_run(test, record)
        if path is None:
            raise StoreError(f"{files.path} has no result; call again")
        for measure, values in _measure(str(path), test, judged).items():
            rows[measure].setdefault(cell.condition, []).append(values)
    first = _measure(str(_first_path(root, test)), test, judged)
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
    training: Training,
    files: CellFolder,
    record: CellRecord | None,
    peak_mib: Callable[[], float],
    done: Callable[[], None],
) -> tuple[CrossEncoder, CellRecord]:
    """The cell's model: stored, gone on with, or trained from the beginning."""
    model = training.model
    if record is not None and files.model.is_dir():
        return load_cross_encoder(replace(model, model=str(files.model))), record
    encoder = load_cross_encoder(model)
    begun = time.monotonic()
    trained = train(
        encoder,
        training.triples,
        training.settings,
        state=files.state,
        progress=lambda *_: done(),
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
            seconds=time.monotonic() - begun,
            peak_mib=peak_mib(),
            device=encoder.device,
            precision=encoder.precision,
        )
        _write_json(Folder(files.path).file("cell.json"), record)
    return encoder, record


def _rerank(encoder: CrossEncoder, test: TestSet, done: Callable[[], None]) -> Run:
    scorer: PairScorer = encoder.score
    if test.passage is not None:
        scorer = score_best_passage(encoder.score, size=test.passage)
    longest = max(map(len, test.first.values()), default=1)
    task = Task(documents=test.documents, queries=test.queries, depth=max(longest, 1))
    return rerank(task, test.first, scorer, depth=test.depth, progress=lambda *_: done())


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
) -> Answer:
    """Train and re-rank whatever is not done yet, and compare all of it.

    The folder holds everything: the same call goes on after a kill.

    Args:
        folder: of the study.
        study: what is compared.
        peak_mib: most memory that this process has had, in MiB.
        progress: gets each cell.

    Raises:
        OptionError: options that contradict each other.
        InputError: a file has errors.
        StoreError: the folder holds another study, or another call is at work in it.
        SetupError: the extra `neural` is missing.
    """
    reader = CollectionReader(progress)
    material = read_material(study.source, study.material, reader, progress)
    tests = read_tests(study.test, reader, progress)
    cells = _plan(material, study)
    note_unknown(material, progress)
    seen = note_trained_on(material, cells, tests, progress)
    described = {
        "schema": 1,
        "annotations": material.source,
        "digest_of_triples": material.digest,
        "conditions": [condition.name for condition in study.choice.conditions],
        "seeds": study.choice.repetitions,
        "material": asdict(study.material),
        "learner": asdict(study.learner),
        "test": asdict(study.test),
        "seen": {name: asdict(one) for name, one in seen.items()},
    }
    with Folder(folder).lock(".lock"):
        _write_json(Folder(folder).file("experiment.json"), described)
        for test in tests:
            _write_run(test.first, _first_path(folder, test), tag="first")
        _compute(
            folder,
            cells,
            tests,
            material,
            learner=study.learner,
            peak_mib=peak_mib,
            progress=progress,
        )
        return _answer(folder, cells, tests, study)


def _compute(
    root: Path,
    cells: Sequence[Cell],
    tests: Sequence[TestSet],
    material: Material,
    *,
    learner: LearnerOptions,
    peak_mib: Callable[[], float],
    progress: Progress,
) -> None:
    """Compute all cells, as far as they are not done."""
    files = digest_model(learner.model)
    progress.note("training", _settings(learner, len(cells)))
    total = learner.steps + sum(len(test.queries) for test in tests)
    queries, documents = material.queries, material.documents
    for number, cell in enumerate(cells, 1):
        training = Training(
            cell=cell,
            triples=[
                TextTriple(queries[one.query], documents[one.positive], documents[one.negative])
                for one in cell.selection.triples
            ],
            model=_model(learner, seed=cell.seed),
            files=files,
            settings=TrainingSettings(
                steps=learner.steps,
                batch=learner.batch,
                loss=learner.loss,
                learning_rate=learner.learning_rate,
                seed=cell.seed,
            ),
        )
        name = f"{cell.condition.name}, seed {cell.seed}"
        with progress.steps(name, total) as done:
            busy = compute_cell(
                _cell_folder(root, cell),
                training,
                tests,
                peak_mib=peak_mib,
                done=done,
                store_model=learner.keep_models,
            )
        fate = "done" if busy else "done before"
        progress.note(f"{number}/{len(cells)}", f"{name}: {fate}")


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
    root: Path, cells: Sequence[Cell], tests: Sequence[TestSet], study: TrainingStudy
) -> Answer:
    records: dict[Condition, list[CellRecord]] = {}
    for cell in cells:
        record = _cell_folder(root, cell).read_record()
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
