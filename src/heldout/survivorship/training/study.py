"""A training study: what is trained on, every cell, and what came of them.

Each pair of a condition and a seed is a cell. Cells have nothing to do with each other: more of
them can be added later, and those that are done are left alone, so a call after a kill begins one
training again at most. What trainings begin from is known by its files.

    FOLDER/experiment.json            what was asked last
    FOLDER/first/TEST.run.gz          the run that is re-ranked
    FOLDER/cells/CELL/cell.json       what became of a cell, and of which runs
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
from heldout.ids import Digest
from heldout.progress_bar import SILENT, Progress
from heldout.rankers.neural import checkpoints, cross_encoder
from heldout.rankers.reranking import rerank, score_best_passage
from heldout.rankers.run import PairScorer, RankingTask, Run, write_run
from heldout.scoring.evaluate import PreparedJudgments, prepare, score
from heldout.scoring.measures import Measure
from heldout.survivorship.reading.source import AnnotationFiles
from heldout.survivorship.training import learning_curve, results, triples
from heldout.survivorship.training.material import (
    CollectionReader,
    Material,
    TestSet,
    note_trained_on,
    note_unknown,
    read_material,
    read_tests,
)
from heldout.survivorship.training.options import (
    ConditionOptions,
    LearnerOptions,
    TestOptions,
    TripleOptions,
)
from heldout.trec.reading.sources import open_input
from heldout.trec.runs import scan_run

_TENTH = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingCell:
    """One model to train.

    Attributes:
        condition: on what.
        seed: of the head, of dropout, and of what a condition draws.
        drawn: the condition's triples.
    """

    condition: triples.Condition
    seed: int
    drawn: triples.TripleDraw

    @property
    def name(self) -> str:
        """Of its folder."""
        return f"{self.condition.folder}-seed{self.seed}"


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingStudy:
    """What a study is made of, as one options class."""

    source: AnnotationFiles = field(default_factory=AnnotationFiles)
    material: TripleOptions = field(default_factory=TripleOptions)
    choice: ConditionOptions = field(default_factory=ConditionOptions)
    learner: LearnerOptions = field(default_factory=LearnerOptions)
    test: TestOptions = field(default_factory=TestOptions)


def run_study(folder: Path, study: TrainingStudy, *, progress: Progress = SILENT) -> Answer:
    """Train and re-rank whatever is not done yet, and compare all of it.

    The folder holds everything: the same call goes on after a kill.

    Args:
        folder: of the study.
        study: what is compared.
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
    cells = plan_cells(material, study)
    note_unknown(material, progress)
    seen = note_trained_on(
        material, {one for cell in cells for one in cell.drawn.triples}, tests, progress
    )
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
            write_run(test.first, folder / "first" / test.file, form="trec", tag="first")
        records = _compute_cells(
            folder, cells, tests, material, learner=study.learner, progress=progress
        )
        scored = [one for test in tests for one in _score_cells(folder, cells, test)]
    level = study.test.level
    if study.choice.learning_curve is not None:
        curves = [results.describe_conditions(one, records, level=level) for one in scored]
        return learning_curve.answer_curves(curves, level=level)
    return results.answer_training(
        [results.compare_conditions(one, records, level=level) for one in scored],
        [record for found in records.values() for record in found],
        level=level,
    )


def plan_cells(material: Material, study: TrainingStudy) -> tuple[TrainingCell, ...]:
    """Plan every seed of every condition: a whole seed before the next, so that early ends compare.

    Raises:
        InputError: code `no-triples`: a condition leaves none; of a learning curve `curve-steps` or
            `equal-shares`.
    """
    seed, learner, choice = study.material.seed, study.learner, study.choice
    wanted = [
        (condition, seed + number)
        for number in range(choice.repetitions)
        for condition in choice.conditions
    ]
    limit = learner.steps * learner.batch
    draws, counts = triples.draw_triples(
        material.read, material.selected, wanted, source=material.source, limit=limit
    )
    cells = tuple(
        TrainingCell(condition=condition, seed=number - seed, drawn=draw)
        for (condition, number), draw in zip(wanted, draws, strict=True)
    )
    if choice.learning_curve is not None:
        _check_shares(cells, counts, seed)
    return cells


def _check_shares(cells: Sequence[TrainingCell], counts: triples.TripleCounts, seed: int) -> None:
    """Make sure that the shares of a learning curve differ, and that all their labels are seen.

    Where steps end before each label was seen once, a larger share has no more labels than a
    smaller one, nor all that the smaller one has.
    """
    shares: dict[tuple[int, int], triples.Condition] = {}
    # The largest share first: it wants the most steps.
    for cell in sorted(cells, key=lambda one: -one.condition.share):
        queries = triples.share_queries(counts, cell.condition.share, seed=seed + cell.seed)
        labels = sum(query in queries for query, _ in counts.per_label)
        seen = cell.drawn.counts.labels
        if seen < labels:
            name = cell.condition.name
            raise InputError.of("curve-steps", "--steps", seen=seen, labels=labels, condition=name)
        other = shares.setdefault((cell.seed, len(queries)), cell.condition)
        if other != cell.condition:
            same = plural(len(queries), "query", "queries")
            found = f"{other.name} and {cell.condition.name} have the same {same}"
            raise InputError.of("equal-shares", "--learning-curve", found)


def _compute_cells(
    root: Path,
    cells: Sequence[TrainingCell],
    tests: Sequence[TestSet],
    material: Material,
    *,
    learner: LearnerOptions,
    progress: Progress,
) -> dict[triples.Condition, list[results.CellRecord]]:
    """Compute all cells, as far as they are not done; return what became of them."""
    rate = learner.learning_rate or "its kind's"
    progress.note(
        "training",
        f"{plural(len(cells), 'training')}, each of {plural(learner.steps, 'step')} of "
        f"{plural(learner.batch, 'triple')}: {learner.model}, {learner.length} tokens, "
        f"{learner.loss} loss, rate {rate}",
    )
    total = learner.steps + sum(len(test.queries) for test in tests)
    files = checkpoints.digest_model(learner.model)
    records: dict[triples.Condition, list[results.CellRecord]] = {}
    for number, cell in enumerate(cells, 1):
        training = _Training(cell, material, learner, files)
        name = f"{cell.condition.name}, seed {cell.seed}"
        with progress.steps(name, total) as done:
            record, busy = _compute_cell(
                root / "cells" / cell.name, training, tests, done, store=learner.keep_models
            )
        records.setdefault(cell.condition, []).append(record)
        fate = "done" if busy else "done before"
        progress.note(f"{number}/{len(cells)}", f"{name}: {fate}")
    return records


class _Training:
    """A cell with all that its model depends on: texts, the model before training, settings."""

    def __init__(
        self, cell: TrainingCell, material: Material, learner: LearnerOptions, files: Digest | None
    ) -> None:
        self.cell, self._files = cell, files
        queries, documents = material.queries, material.documents
        self.triples = [
            cross_encoder.TextTriple(
                queries[one.query], documents[one.positive], documents[one.negative]
            )
            for one in cell.drawn.triples
        ]
        self.model = cross_encoder.CrossEncoderSettings(
            model=learner.model,
            length=learner.length,
            precision=learner.precision,
            seed=cell.seed,
        )
        self.settings = cross_encoder.TrainingSettings(
            steps=learner.steps,
            batch=learner.batch,
            loss=learner.loss,
            learning_rate=learner.learning_rate,
            seed=cell.seed,
        )

    @property
    def digest(self) -> Digest:
        """Of all of it, without loading the model: to know whether the cell is done.

        The device plays no part, and stands beside the result.
        """
        model = asdict(self.model) | {"device": None}
        made_of = (self.cell.condition, self.cell.seed, model, asdict(self.settings), self._files)
        digest = sha256(repr(made_of).encode())
        for triple in self.triples:
            digest.update(repr(tuple(triple)).encode())
        return Digest(digest.hexdigest())


def _compute_cell(
    folder: Path,
    training: _Training,
    tests: Sequence[TestSet],
    done: Callable[[], None],
    *,
    store: bool,
) -> tuple[results.CellRecord, bool]:
    """Train a cell's model and re-rank the test sets with it, as far as that is not done.

    Returns:
        What became of it, and whether there was anything to do.

    Raises:
        StoreError: it was computed with other triples, settings or weights, a run of something else
            than this test set, or its files are damaged.
    """
    record = _read_record(folder)
    if record is not None and record.digest != training.digest:
        raise StoreError(
            f"{folder} was trained on other triples, with other settings or from other weights; "
            "take another folder, or remove it"
        )
    missing = [one for one in tests if record is None or not _is_done(folder, one, record)]
    model = folder / "model"
    wanted = store and not model.is_dir()
    if record is not None and not missing and not wanted:
        return record, False
    if record is not None and model.is_dir():
        encoder = cross_encoder.load_cross_encoder(replace(training.model, model=str(model)))
    else:
        encoder = cross_encoder.load_cross_encoder(training.model)
        trained = _train(encoder, training, done)
        if record is None:
            record = trained
            _write_json(Folder(folder).file("cell.json"), record)
    for test in missing:
        run = _rerank(encoder, test, done)
        write_run(run, folder / test.file, form="trec", tag=folder.name)
        record = msgspec.structs.replace(record, runs=record.runs | {test.name: test.inputs})
        _write_json(Folder(folder).file("cell.json"), record)
    if wanted:
        _store_model(encoder.save, model)
    return record, True


def _train(
    encoder: cross_encoder.CrossEncoder, training: _Training, done: Callable[[], None]
) -> results.CellRecord:
    begun, cell, settings = time.monotonic(), training.cell, training.settings
    losses = cross_encoder.train(encoder, training.triples, settings, done=done)
    tenth = max(1, settings.steps // _TENTH)
    counts = cell.drawn.counts
    return results.CellRecord(
        digest=training.digest,
        condition=cell.condition.name,
        seed=cell.seed,
        triples=counts.triples,
        labels=counts.labels,
        queries=counts.queries,
        missing=cell.drawn.missing,
        steps=settings.steps,
        passes=settings.steps * settings.batch / len(training.triples),
        first_loss=float(np.mean(losses[:tenth])),
        last_loss=float(np.mean(losses[-tenth:])),
        seconds=time.monotonic() - begun,
        device=encoder.device,
        precision=encoder.precision,
    )


def _rerank(encoder: cross_encoder.CrossEncoder, test: TestSet, done: Callable[[], None]) -> Run:
    scorer: PairScorer = encoder.score
    if test.passage is not None:
        scorer = score_best_passage(encoder.score, size=test.passage)
    longest = max(map(len, test.first.values()), default=1)
    task = RankingTask(documents=test.documents, queries=test.queries, depth=max(longest, 1))
    return rerank(task, test.first, scorer, depth=test.depth, done=done)


def _score_cells(
    root: Path, cells: Sequence[TrainingCell], test: TestSet
) -> list[results.TestScores]:
    """Measure the run files of cells, by each measure of the test set.

    Raises:
        InputError: code `undefined-score`: a measure is not defined on each query.
    """
    judged = prepare(test.qrels, test.measures)
    rows: dict[Measure, dict[triples.Condition, list[results.Floats]]] = {
        measure: {} for measure in test.measures
    }
    for cell in cells:
        path = root / "cells" / cell.name / test.file
        for measure, values in _measure(path, test, judged).items():
            rows[measure].setdefault(cell.condition, []).append(values)
    first = _measure(root / "first" / test.file, test, judged)
    return [
        results.TestScores(
            test=test.name,
            measure=str(measure),
            scores={condition: np.stack(values) for condition, values in found.items()},
            first_stage=first[measure],
            first_name=test.first_name,
        )
        for measure, found in rows.items()
    ]


def _measure(path: Path, test: TestSet, judged: PreparedJudgments) -> dict[Measure, results.Floats]:
    with open_input(path) as source:
        found = scan_run(source, path=str(path), order=None, qrels=test.qrels, signature_depth=0)
    scores = score(found.rankings, judged).scores
    for measure, values in scores.items():
        if not values.defined.all():
            what = f"{measure} is not defined on each query"
            expected = "a measure that has a value on each query"
            raise InputError.of("undefined-score", str(path), what, expected)
    return {measure: values.values for measure, values in scores.items()}


def _read_record(folder: Path) -> results.CellRecord | None:
    """Read what became of a cell; `None` where it is not trained."""
    file = Folder(folder).file("cell.json")
    try:
        data = file.find()
        return None if data is None else msgspec.json.decode(data, type=results.CellRecord)
    except (msgspec.DecodeError, OSError) as error:
        raise StoreError(f"{file} cannot be read: {error}; remove its folder") from error


def _is_done(folder: Path, test: TestSet, record: results.CellRecord) -> bool:
    """Return whether a test set is re-ranked.

    Raises:
        StoreError: its run was made of something else.
    """
    inputs, path = record.runs.get(test.name), folder / test.file
    if inputs not in (None, test.inputs):
        raise StoreError(
            f"{path} was computed with another first run, depth or passage, or other texts; take "
            f"another folder, or remove {folder}"
        )
    return inputs is not None and path.is_file()


def _store_model(save: Callable[[Path], None], path: Path) -> None:
    """Store the trained model; a folder of this name is whole."""
    aside = Path(tempfile.mkdtemp(dir=path.parent, prefix=ASIDE))
    try:
        save(aside)
        aside.chmod(0o755)
        aside.replace(path)
    # Each library that writes weights has its own exception for a full disk.
    except Exception as error:
        raise StoreError(f"{path} cannot be written: {error}") from error
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def _write_json(file: File, content: object) -> None:
    data = msgspec.json.format(msgspec.json.encode(content), indent=2) + b"\n"
    try:
        file.write_whole(data)
    except OSError as error:
        raise StoreError(f"{file} cannot be written: {error.strerror or error}") from error
