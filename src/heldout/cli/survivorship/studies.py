"""`heldout survive depths`, `types`, `triples` and `train`: what shallow labels change."""

from pathlib import Path
from typing import Annotated

import click

from heldout.cli.options import refuse_other_options, with_options
from heldout.cli.printing import TERMINAL, Output, TableOutput, print_answer
from heldout.options import Level, Opt
from heldout.survivorship.depths.runs import score_depths
from heldout.survivorship.depths.study import DepthOptions
from heldout.survivorship.discarded.query_types import answer_types, compare_types, count_types
from heldout.survivorship.reading.source import AnnotationSource, TypedSource, read_source
from heldout.survivorship.training.study import TrainingStudy, run_study
from heldout.survivorship.training.triple_files import FilterOptions, filter_triples


@click.command
@with_options
def depths(*, source: AnnotationSource, options: DepthOptions, output: Output) -> None:
    """Score runs on the labels that a shallower annotation would have left.

    At depth k only what annotators selected among the first k documents is a label; a query
    without one drops out. Each depth is compared with all labels by the unpaired t test of the
    study, and its queries with those that have a label only deeper, which is the test that fits.

    \b
    Examples:
      heldout survive depths --annotations depth-qrels/ --runs 'runs/*.gz' -m RR@10
      heldout survive depths --shown bm25.run.gz --qrels dev.qrels --runs 'runs/*.gz'
    """
    print_answer(score_depths(source, options, progress=TERMINAL), output)


@click.command
@with_options
def types(*, source: TypedSource, level: Level = 0.95, output: Output) -> None:
    """Which types of queries could annotators not answer, and left out?

    Each type has its share with an interval and is compared with all other queries; all types
    together have a chi-squared test and Cramer's V.

    \b
    Examples:
      heldout survive types --annotations dev_v2.1.json.gz
      heldout survive types --annotations depth-qrels/ --types categories.tsv
    """
    counts = count_types(read_source(source, progress=TERMINAL))
    print_answer(answer_types(compare_types(counts, level=level)), output)


@click.command
@with_options
def triples(
    *,
    sequence: Annotated[Path | None, Opt(argument=True, path="file", metavar="[TRIPLES]")] = None,
    source: AnnotationSource,
    options: FilterOptions,
    output: TableOutput,
) -> None:
    """Filter training triples by the place at which their positive was shown.

    TRIPLES has query id, positive id, negative id in each line, as the official sequences of MS
    MARCO have; .gz, .bz2 and .zst are read too. The triples keep their order, so trainings on
    them differ in nothing but what was left out.

    \b
    Examples:
      heldout survive triples qidpidtriples.tsv.gz --annotations train.json.gz \\
          --documents collection.tsv --out triples
      heldout survive triples --from-run bm25.gz --shown bm25.gz --qrels dev.qrels \\
          --control 1 --out triples
    """
    print_answer(filter_triples(sequence, source, options, progress=TERMINAL), output)


@click.command
@with_options
def train(
    *,
    folder: Annotated[Path, Opt(argument=True, path="folder", metavar="FOLDER")],
    study: TrainingStudy,
    output: Output,
) -> None:
    """Train re-rankers on labels of shallower annotation, and compare what they do.

    FOLDER holds everything: the same call goes on after a kill, and more seeds, conditions or test
    sets only add to it. Without annotations, annotators
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
    print_answer(run_study(folder, study, progress=TERMINAL), output)


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
