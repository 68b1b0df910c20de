"""`heldout survive`: what shallow labels change, and people who look at discarded queries."""

import re
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any

import click

from heldout.cli.options import command, refuse_other_options
from heldout.cli.printing import TERMINAL, Output, TableOutput, print_answer
from heldout.errors import quote
from heldout.judging.campaign.questions import ANSWERABLE, TRIAGE
from heldout.judging.labels.labels import check_label_name
from heldout.options import Level, Opt, Seed
from heldout.survivorship.depths.study import DepthOptions, study_runs
from heldout.survivorship.depths.words import answer_depths
from heldout.survivorship.discarded.campaign import (
    DiscardedPoolOptions,
    count_answerable,
    count_ranks,
    count_triage,
    draw_triage,
    pool_discarded,
)
from heldout.survivorship.discarded.folder import QuestionFolder
from heldout.survivorship.discarded.query_types import answer_types, compare_types, count_types
from heldout.survivorship.reading.source import AnnotationSource, TypedSource, read_source
from heldout.survivorship.training.study import TrainingStudy, run_study
from heldout.survivorship.training.triple_files import FilterOptions, filter_triples


@command
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
    print_answer(answer_depths(study_runs(source, options, progress=TERMINAL)), output)


@command
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


@command
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


@command
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


_SPLIT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", re.ASCII)
_TOTAL = "all"
_FORMS = {"as_json", "markdown", "latex", "explain", "every"}


def _names(made_of: type[Any]) -> set[str]:
    return {one.name for one in fields(made_of)}


def _check_split(name: str) -> None:
    """Refuse a name that nobody reads well in a table, or that is that of the total."""
    if name and (not _SPLIT.fullmatch(name) or name.casefold() == _TOTAL):
        raise ValueError(
            f"{quote(name)}: up to 64 letters, digits, dots, hyphens or underscores, and not "
            f"{_TOTAL!r}, which is all splits together"
        )


@command
def triage(
    *,
    folder: Annotated[Path, Opt(argument=True, path="folder")],
    source: AnnotationSource,
    sample: Annotated[int, Opt("Number of discarded queries to draw.", least=1)] = 100,
    split: Annotated[
        str, Opt("Name of their split, such as dev or train.", metavar="NAME", check=_check_split)
    ] = "",
    seed: Seed = 0,
    level: Level = 0.95,
    output: TableOutput,
) -> None:
    """Why were queries discarded? Draw some, let people look, count what they say.

    With --annotations, or --shown and --qrels, discarded queries are drawn into FOLDER; called
    again, more of them, of the same --split or another. FOLDER is a campaign: on its pages people
    see each query with what was shown, and give one of four labels: no_ans, partial_ans, wrong_lab,
    ill_form. Without annotations, the answers that `heldout prefer export` took out are counted, by
    split and with intervals, and how far people agree.

    \b
    Examples:
      heldout survive triage triage --annotations dev.json.gz --split dev --sample 100
      heldout prefer tasks triage
      heldout serve triage
      heldout prefer export triage
      heldout survive triage triage
    """
    asked = QuestionFolder(folder, form=TRIAGE)
    if source.named:
        allowed = {*_names(AnnotationSource), "folder", "seed", "sample", "split", "as_json"}
        refuse_other_options(allowed, why="queries are drawn, and counted by a call of its own")
        drawn = draw_triage(asked, source, sample=sample, split=split, seed=seed, progress=TERMINAL)
        print_answer(drawn, output)
        return
    allowed = {"folder", "seed", "level", *_FORMS}
    refuse_other_options(allowed, why="answers are counted; --annotations would draw queries")
    print_answer(count_triage(asked, seed=seed, level=level), output)


@command
def answerable(
    *,
    folder: Annotated[Path | None, Opt(argument=True, path="folder")] = None,
    pool: DiscardedPoolOptions,
    source: AnnotationSource,
    ranks: Annotated[
        Path | None,
        Opt(
            "Table instead of a folder: scorer, query_id, doc_id, rank of the first passage that "
            "answers.",
            path="file",
        ),
    ] = None,
    labels: Annotated[
        str | None,
        Opt("Name of labels of what people judged: FOLDER/labels/NAME.qrels.", metavar="NAME"),
    ] = None,
    level: Level = 0.95,
    output: TableOutput,
) -> None:
    """Could other systems have answered discarded queries? Pool them, let people look, count.

    With --runs the first passages of these systems are pooled into FOLDER, each text once, in
    random order, for queries of --triage, of the annotations, or of --queries alone. FOLDER is a
    campaign: on its pages people say which passages answer. Without --runs, the answers that
    `heldout prefer export` took out are counted for each system: no answer in its top 10, an
    answer there, one in its top 3; and with --labels written as labels.

    Documents below the pool are not judged: every count is a lower bound.

    \b
    Examples:
      heldout survive answerable pool --runs 'runs/*.gz' --triage triage --documents docs.tsv
      heldout survive answerable pool --labels discarded
      heldout survive answerable --ranks discarded_rankings_by_model.tsv
    """
    if (folder is None) == (ranks is None):
        raise click.UsageError("which judgments? a FOLDER, or --ranks FILE")
    _check_answerable(ranks, pool, labels)
    if folder is None:
        print_answer(count_ranks(ranks or Path(), depth=pool.depth, level=level), output)
        return
    asked = QuestionFolder(folder, form=ANSWERABLE)
    if pool.runs:
        print_answer(pool_discarded(asked, pool, source, TERMINAL), output)
        return
    counted = count_answerable(asked, labels, seed=pool.seed, level=level, progress=TERMINAL)
    print_answer(counted, output)


def _check_answerable(ranks: Path | None, pool: DiscardedPoolOptions, labels: str | None) -> None:
    """Refuse options that would be left aside, before anything is read.

    Raises:
        click.UsageError: an option does not belong to what is done.
        InputError: code `label-name`.
    """
    if ranks is not None:
        refuse_other_options({"ranks", "depth", "level", *_FORMS}, why="--ranks is judged already")
    elif pool.runs:
        pooled = {"folder", "as_json", *_names(DiscardedPoolOptions), *_names(AnnotationSource)}
        refuse_other_options(pooled, why="systems are pooled, and counted by a call of its own")
    else:
        if labels is not None:
            check_label_name(labels, "--labels")
        refuse_other_options(
            {"folder", "seed", "level", "labels", *_FORMS},
            why="answers are counted; --runs would pool systems",
        )
