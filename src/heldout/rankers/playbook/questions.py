"""What is asked of a run that was just made: is it better than BM25, would fine-tuning pay?"""

from dataclasses import dataclass

from numpy.random import PCG64, Generator

from heldout.answers.answer import Answer
from heldout.collections.source import SourcedCollection
from heldout.errors import InputError
from heldout.progress import SILENT, Progress
from heldout.rankers.bm25 import Bm25Settings, rank_bm25
from heldout.rankers.options import Playbook
from heldout.rankers.playbook import words as report
from heldout.rankers.playbook.fine_tuning import LearningCurve, advise, read_learning_curve
from heldout.rankers.playbook.playbook import FittedLabels, compare, fit_labels
from heldout.rankers.playbook.words import fine_tuning_facts, fine_tuning_value
from heldout.rankers.run import Run, Task
from heldout.scoring.measures import Measure, parse_measure

_MEASURE = "nDCG@10"


@dataclass(frozen=True, slots=True, kw_only=True)
class Questions:
    """What will be asked of a run, read before it is made: it may take hours.

    Attributes:
        comparing: whether it is compared with BM25.
        measure: what is measured.
        gain: as in `Playbook`.
        labels: where labels come from, "" where there are none.
        fitted: labels of the task; None where there are none.
        curve: a learning curve; None where none was named.
    """

    comparing: bool
    measure: Measure
    gain: float
    labels: str
    fitted: FittedLabels | None
    curve: LearningCurve | None

    @property
    def any(self) -> bool:
        """Whether there is something to answer."""
        return self.comparing or self.curve is not None


def prepare_questions(
    options: Playbook, source: SourcedCollection, task: Task, *, comparing: bool
) -> Questions:
    """Read what the answers need.

    Raises:
        InputError: codes `curve-file`, `curve-measure`, `labels-match-nothing`, and those of
            measures.
    """
    curve = None if options.curve is None else read_learning_curve(options.curve)
    measure = _choose_measure(options, curve)
    labels = source.collection.qrels if comparing else {}
    return Questions(
        comparing=comparing,
        measure=measure,
        gain=options.gain,
        labels=source.labels,
        fitted=fit_labels(labels, task) if labels else None,
        curve=curve,
    )


def _choose_measure(options: Playbook, curve: LearningCurve | None) -> Measure:
    """What is measured: as asked, else as the curve was; `--gain` is a gain in one measure."""
    asked = None if options.measure is None else parse_measure(options.measure, path="--measure")
    if curve is None:
        return asked or parse_measure(_MEASURE)
    drawn = parse_measure(curve.measure_name, path=str(options.curve))
    if asked in {None, drawn}:
        return drawn
    raise InputError.of(
        "curve-measure",
        "--measure",
        f"{asked}, and a curve of {drawn}",
        "the measure of the curve, since --gain is a gain in one measure",
        f"leave --measure out, or give --measure {drawn}; without --curve any will do",
    )


def answer_questions(
    questions: Questions,
    run: Run,
    task: Task,
    *,
    name: str,
    seed: int,
    progress: Progress = SILENT,
) -> Answer:
    """Compare a run with BM25 and read the curve.

    Args:
        questions: from `prepare_questions`.
        run: what was made.
        task: what it was made for.
        name: of the ranker.
        seed: of the bootstrap.
        progress: hears what is compared.
    """
    if questions.comparing and questions.fitted is not None:
        progress.note("comparing", "with BM25")
    found = _compare(questions, run, task, name, seed) if questions.comparing else None
    facts = [*found.summary] if found else []
    value = {**found.document} if found else {}
    if questions.curve is not None:
        advice = advise(questions.curve, gain=questions.gain)
        facts += fine_tuning_facts(advice, questions.curve)
        value["fine_tuning"] = fine_tuning_value(advice, questions.curve)
    return Answer(summary=facts, tables=found.tables if found else (), document=value)


def _compare(questions: Questions, run: Run, task: Task, name: str, seed: int) -> Answer:
    if questions.fitted is None:
        value = {"labels": None, "comparison": None, "why": "no labels"}
        asked = report.ask_for_labels(str(questions.measure), name)
        return Answer(summary=asked, tables=(), document=value)
    found = compare(
        run,
        rank_bm25(task, Bm25Settings()),
        questions.fitted.labels,
        questions.measure,
        Generator(PCG64(seed)),
        gain=questions.gain,
    )
    return Answer(
        summary=report.comparison_facts(found, questions.fitted),
        tables=report.comparison_tables(found, name),
        document={
            "labels": questions.labels,
            "comparison": report.comparison_value(found, questions.fitted),
        },
    )
