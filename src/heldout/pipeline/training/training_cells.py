"""A training experiment, cell by cell: train, re-rank every test set, write down what came of it.

Whatever is done already is left alone, so a call after a kill goes on where the last one was, and
several processes can share a folder.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from heldout.errors import InputError, Problem, StoreError
from heldout.ids import Digest
from heldout.measures.evaluate import Judged, prepare, score
from heldout.measures.spec import Measure
from heldout.rankers.cross_encoder import CrossEncoder, load_cross_encoder
from heldout.rankers.pairs import PairScorer
from heldout.rankers.passages import score_best_passage
from heldout.rankers.rerank import rerank
from heldout.rankers.run import Run, Task
from heldout.rankers.training import TextTriple, Trained, TrainingSettings, train
from heldout.store.training_folder import CellFolder, TrainingFolder
from heldout.survivorship.training.conditions import Condition
from heldout.survivorship.training.experiment import (
    Cell,
    CellRecord,
    Start,
    TestSet,
    cell_digest,
    input_digest,
)
from heldout.trec.reading.streams import open_input
from heldout.trec.runs import scan_run

__all__ = ["Fate", "Scores", "Watch", "compute_cell", "score_cells"]

Fate = Literal["done", "done before", "elsewhere"]
"""Of a cell: computed now, computed earlier, or being computed by another process."""

Scores = Mapping[Condition, NDArray[np.float64]]
"""Of each condition, shape (seeds, queries)."""

_TENTH = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Watch:
    """How the work is watched; none of it changes what comes out.

    Attributes:
        clock: seconds from any beginning.
        peak_mib: most memory that this process has had, in MiB.
        trained: called after each step with the cell, steps done, and the loss of the last.
        ranked: called after each query with the cell, the test set, queries done, and all.
        every: steps between two states on disk.
        keep: whether the trained model stays.
    """

    clock: Callable[[], float]
    peak_mib: Callable[[], float]
    trained: Callable[[Cell, int, float], None]
    ranked: Callable[[Cell, TestSet, int, int], None]
    every: int = 100
    keep: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class _Plan:
    """A cell with all that its model depends on."""

    cell: Cell
    triples: Sequence[TextTriple]
    start: Start
    training: TrainingSettings

    @property
    def digest(self) -> Digest:
        return cell_digest(self.cell, self.triples, self.start, self.training)


def compute_cell(
    folder: TrainingFolder,
    cell: Cell,
    triples: Sequence[TextTriple],
    tests: Sequence[TestSet],
    *,
    start: Start,
    training: TrainingSettings,
    watch: Watch,
) -> Fate:
    """Train a cell's model and re-rank the test sets with it, as far as that is not done.

    Args:
        folder: of the experiment.
        cell: what to train.
        triples: its texts.
        tests: what to re-rank.
        start: what to begin from; the cell's seed is put in.
        training: how; the cell's seed is put in.
        watch: how it is watched.

    Raises:
        InputError: as `train` and `rerank`.
        StoreError: the cell was computed with other triples, settings or weights, a run of
            something else than this test set, or its files are damaged.
    """
    plan = _Plan(
        cell=cell,
        triples=triples,
        start=replace(start, model=replace(start.model, seed=cell.seed)),
        training=replace(training, seed=cell.seed),
    )
    files = folder.cell(cell.name)
    with files.taken() as ours:
        if not ours:
            return "elsewhere"
        record = files.record()
        if record is not None and record.digest != plan.digest:
            raise StoreError(
                f"{files.path} was trained on other triples, with other settings or from other "
                "weights; take another folder, or remove it"
            )
        made_of = {one.name: input_digest(one) for one in tests}
        missing = [
            one
            for one in tests
            if record is None or not files.has_run(one.name, record, inputs=made_of[one.name])
        ]
        if record is not None and not missing and (files.model.is_dir() or not watch.keep):
            files.state.unlink(missing_ok=True)
            return "done before"
        encoder, record = _trained(plan, files, record, watch)
        for test in missing:
            run = _rerank(encoder, plan.cell, test, watch)
            record = files.write_run(test.name, run, record, inputs=made_of[test.name])
        if watch.keep and not files.model.is_dir():
            files.keep_model(encoder.save)
        files.state.unlink(missing_ok=True)
    return "done"


def score_cells(
    folder: TrainingFolder,
    cells: Sequence[Cell],
    test: TestSet,
) -> Mapping[Measure, tuple[Scores, NDArray[np.float64]]]:
    """Measure the run files of cells that are done.

    Args:
        folder: of the experiment.
        cells: for each condition the same seeds, in the same order.
        test: what they re-ranked.

    Returns:
        For each measure the scores of each condition, and those of the run before re-ranking.

    Raises:
        InputError: code `undefined-score`: a measure is not defined on each query.
        StoreError: a run file is not as it was written, or was made of something else.
    """
    inputs = input_digest(test)
    judged = prepare(test.qrels, test.measures)
    rows: dict[Measure, dict[Condition, list[NDArray[np.float64]]]] = {
        measure: {} for measure in test.measures
    }
    for cell in cells:
        files = folder.cell(cell.name)
        record = files.record()
        if record is None:
            raise StoreError(f"{files.path} has no result; call again")
        path = files.check_run(test.name, record, inputs=inputs)
        for measure, values in _measure(str(path), test, judged).items():
            rows[measure].setdefault(cell.condition, []).append(values)
    first = _measure(str(folder.first(test.name)), test, judged)
    return {
        measure: ({one: np.stack(values) for one, values in found.items()}, first[measure])
        for measure, found in rows.items()
    }


def _trained(
    plan: _Plan, files: CellFolder, record: CellRecord | None, watch: Watch
) -> tuple[CrossEncoder, CellRecord]:
    """The cell's model: kept, gone on with, or trained from the beginning."""
    if record is not None and files.model.is_dir():
        return load_cross_encoder(replace(plan.start.model, model=str(files.model))), record
    encoder = load_cross_encoder(plan.start.model)
    begun = watch.clock()
    found = train(
        encoder,
        plan.triples,
        plan.training,
        state=files.state,
        every=watch.every,
        progress=lambda step, loss: watch.trained(plan.cell, step, loss),
    )
    if record is None:
        record = _record(plan, encoder, found, watch.clock() - begun, watch.peak_mib())
        files.write_record(record)
    return encoder, record


def _record(
    plan: _Plan, encoder: CrossEncoder, found: Trained, seconds: float, peak_mib: float
) -> CellRecord:
    selection, steps = plan.cell.selection, plan.training.steps
    tenth = max(1, steps // _TENTH)
    return CellRecord(
        digest=plan.digest,
        condition=plan.cell.condition.name,
        seed=plan.cell.seed,
        triples=len(selection.triples),
        labels=selection.labels,
        queries=selection.queries,
        missing=selection.missing,
        steps=steps,
        passes=steps * plan.training.batch / len(plan.triples),
        first_loss=float(np.mean(found.losses[:tenth])),
        last_loss=float(np.mean(found.losses[-tenth:])),
        seconds=seconds,
        peak_mib=peak_mib,
        device=encoder.device,
        precision=encoder.precision,
    )


def _rerank(encoder: CrossEncoder, cell: Cell, test: TestSet, watch: Watch) -> Run:
    scorer: PairScorer = encoder.score
    if test.passage is not None:
        size, stride = test.passage
        scorer = score_best_passage(encoder.score, size=size, stride=stride)
    longest = max(map(len, test.first.values()), default=1)
    task = Task(documents=test.documents, queries=test.queries, depth=max(longest, 1))
    return rerank(
        task,
        test.first,
        scorer,
        depth=test.depth,
        progress=lambda done, total: watch.ranked(cell, test, done, total),
    )


def _measure(path: str, test: TestSet, judged: Judged) -> dict[Measure, NDArray[np.float64]]:
    with open_input(Path(path)) as source:
        found = scan_run(source, path=path, order=None, qrels=test.qrels, signature_depth=0)
    evaluation = score(found.rankings, judged)
    for measure, values in evaluation.scores.items():
        if not values.defined.all():
            raise InputError(
                Problem(
                    code="undefined-score",
                    path=path,
                    found=f"{measure} is not defined on each query",
                    expected="a measure that has a value on each query",
                )
            )
    return {measure: values.values for measure, values in evaluation.scores.items()}
