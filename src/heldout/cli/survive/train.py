"""`heldout survive train`: re-rankers trained on shallower annotation, compared."""

import resource
import sys
from pathlib import Path
from typing import Annotated

import click

from heldout.cli.context import reports_disk
from heldout.cli.given_options import refuse_other_options
from heldout.cli.options import with_options
from heldout.cli.printing import TERMINAL
from heldout.cli.reporting import Output, print_answer
from heldout.options import Opt
from heldout.survivorship.services.training_study import TrainingStudy, run_study


@click.command
@with_options
@reports_disk
def train(
    *,
    folder: Annotated[Path, Opt(argument=True, path="folder", metavar="FOLDER")],
    study: TrainingStudy,
    output: Output,
) -> None:
    """Train re-rankers on labels of shallower annotation, and compare what they do.

    FOLDER holds everything: the same call goes on after a kill, several calls at once share the
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
    _refuse_idle(study)
    answer = run_study(folder, study, peak_mib=_peak_mib, progress=TERMINAL)
    print_answer(answer, output)


def _refuse_idle(study: TrainingStudy) -> None:
    """Refuse options that would be left aside."""
    if study.material.all_labels and study.choice.learning_curve is None:
        message = "--all-labels has no annotators, hence no depths: add --learning-curve SHARES"
        raise click.UsageError(message)
    if study.choice.learning_curve is not None:
        _refuse("--learning-curve has no depths", "within", "controls")
    if study.material.triples is not None:
        _refuse("--triples are not made", "negatives", "negatives_from")
    else:
        _refuse("triples are made of labels", "skip_unknown")


def _refuse(why: str, *names: str) -> None:
    known = {one.name or "" for one in click.get_current_context().command.params}
    refuse_other_options(known.difference(names), why=why)


def _peak_mib() -> float:
    """Most memory of this process so far; Linux counts in KiB, macOS in bytes."""
    unit = 1 << 20 if sys.platform == "darwin" else 1 << 10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit
