"""A training experiment, cell by cell: train, re-rank every test set, write down what came of it.

Whatever is done already is left alone, so a call after a kill goes on where the last one was, and
several processes can share a folder: each takes a cell that nobody else is at. What trainings begin
from is known by its files.

    FOLDER/experiment.json            what was asked last
    FOLDER/learning-curve.json        the first curve, where one was asked for
    FOLDER/first/TEST.run.gz          the run that is re-ranked
    FOLDER/cells/CELL/state.pt        a training that is not over
    FOLDER/cells/CELL/cell.json       what became of it, and of which runs
    FOLDER/cells/CELL/TEST.run.gz     the test set re-ranked
    FOLDER/cells/CELL/model/          the trained model, where it is stored
"""

import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal

import msgspec
import numpy as np

from heldout.errors import InputError, StoreError
from heldout.files.durable import ASIDE, File, Folder
from heldout.ids import Digest, digest_bytes
from heldout.rankers.neural.checkpoints import MINILM, find_checkpoint
from heldout.rankers.neural.cross_encoder import (
    CrossEncoder,
    CrossEncoderSettings,
    load_cross_encoder,
)
from heldout.rankers.neural.training import train
from heldout.rankers.playbook.fine_tuning import CURVE_FILE, LearningCurve
from heldout.rankers.reranking import rerank, score_best_passage
from heldout.rankers.run import PairScorer, Run, Task, write_run
from heldout.scoring.cache import digest_file
from heldout.scoring.evaluate import Judged, prepare, score
from heldout.scoring.measures import Measure
from heldout.survivorship.training.experiment import (
    Cell,
    CellRecord,
    RunRecord,
    Start,
    TestSet,
    Training,
)
from heldout.survivorship.training.results import Floats, Scored
from heldout.survivorship.training.triples import Condition
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
    if model.model == MINILM or find_checkpoint(model.model) or not folder.is_dir():
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

    def store_curve(self, curve: LearningCurve) -> None:
        """Store a learning curve where `heldout rank` reads it."""
        _write_json(Folder(self.root).file(CURVE_FILE), curve)


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
