"""`heldout survive train`: re-rankers trained on shallower annotation, compared."""

import resource
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import click
import numpy as np

from heldout.answers.answer import Answer
from heldout.cli.context import reports_disk
from heldout.cli.options import refuse_other_options, with_options
from heldout.cli.printing import TERMINAL, Output, print_answer
from heldout.errors import StoreError
from heldout.files.durable import Folder
from heldout.ids import DocId, QueryId
from heldout.options import Opt, Seed
from heldout.survivorship.annotations import Annotations
from heldout.survivorship.reading.common_documents import no_common_document
from heldout.survivorship.reading.source import AnnotationSource, read_source
from heldout.survivorship.services.training_study import TrainingStudy, run_study
from heldout.survivorship.training import words as triple_report
from heldout.survivorship.training.triple_files import (
    Unknown,
    filter_triples,
    known_triples,
    read_triples,
)
from heldout.survivorship.training.triples import (
    SelectedPlaces,
    Triple,
    make_triples,
    paper_conditions,
    places_of,
)
from heldout.survivorship.training.words import TripleReport
from heldout.trec.reading.sources import open_input
from heldout.trec.reading.streams import OWN_FILES
from heldout.trec.tops import read_tops


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


# `heldout survive triples`: training triples that a shallower annotation would have left.

_MOST_DEPTH = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class _TripleOptions:
    within: Annotated[
        tuple[int, ...],
        Opt(
            "Number of first documents shown among which the positive was. Repeatable.",
            names=("-r", "--within"),
            least=1,
            metavar="R",
        ),
    ] = (1, 5)
    controls: Annotated[
        tuple[int, ...],
        Opt(
            "Random sample of all, as small as with R documents. Repeatable.",
            names=("--control",),
            least=1,
            metavar="R",
        ),
    ] = ()
    from_run: Annotated[
        Path | None,
        Opt(
            "Run whose first documents are negatives; makes triples where none are named.",
            metavar="RUN",
            path="file",
        ),
    ] = None
    negatives: Annotated[int, Opt("Number of negatives for each label.", least=1)] = 8
    negatives_from: Annotated[
        int, Opt("Number of first documents of the run to draw from.", least=1, most=_MOST_DEPTH)
    ] = _MOST_DEPTH
    skip_unknown: Annotated[bool, Opt("No triples whose positive the annotations do not know.")] = (
        False
    )
    seed: Seed = 0
    pack: Annotated[Literal["gz", "bz2", "none"], Opt("Compression of the files.")] = "gz"
    out: Annotated[
        Path,
        Opt("Folder for r1.tsv.gz, r5.tsv.gz, all.tsv.gz, …", metavar="DIR", path="folder"),
    ]


@click.command
@with_options
@reports_disk
def triples(
    *,
    sequence: Annotated[Path | None, Opt(argument=True, path="file", metavar="[TRIPLES]")] = None,
    source: AnnotationSource,
    wanted: _TripleOptions,
    output: Output,
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
    if (sequence is None) == (wanted.from_run is None):
        raise click.UsageError("which triples? a file of them, or --from-run RUN to make them")
    annotations = read_source(source, progress=TERMINAL)
    places = places_of(annotations)
    unknown = Unknown() if wanted.skip_unknown else None
    if sequence is not None:
        read = _reader(sequence, places, unknown)
    else:
        ranked = _read_tops(wanted.from_run or Path(), annotations, depth=wanted.negatives_from)
        rng = np.random.default_rng(wanted.seed)
        read = make_triples(places, ranked, negatives=wanted.negatives, rng=rng).__iter__
    suffix = "" if wanted.pack == "none" else f".{wanted.pack}"
    try:
        with Folder(wanted.out).lock(".lock"):
            Folder(wanted.out).sweep("")
            written = filter_triples(
                read,
                places,
                paper_conditions(wanted.within, controls=wanted.controls),
                name_of=lambda condition: wanted.out / f"{condition.folder}.tsv{suffix}",
                seed=wanted.seed,
            )
    except OSError as error:
        raise StoreError(f"{wanted.out} cannot be written: {error.strerror or error}") from error
    report = TripleReport(
        source=str(sequence or wanted.from_run),
        written=written,
        unknown=unknown.triples if unknown else 0,
    )
    print_answer(
        Answer(
            facts=triple_report.facts_of_triples(report),
            tables=triple_report.tables_of_triples(report),
            value=triple_report.value_of_triples(report),
        ),
        output,
    )


def _reader(
    path: Path, places: SelectedPlaces, unknown: Unknown | None
) -> Callable[[], Iterator[Triple]]:
    """Reads the file from its beginning at each call, and counts unknown positives anew."""

    def read() -> Iterator[Triple]:
        if unknown is not None:
            unknown.triples = 0
        with open_input(path) as file:
            rows = read_triples(file, path=str(path))
            yield from known_triples(rows, places, path=str(path), unknown=unknown)

    return read


def _read_tops(
    run: Path, annotations: Annotations, *, depth: int
) -> Mapping[QueryId, tuple[DocId, ...]]:
    """The first documents of a run, whose ids have to be those of the annotations.

    With other ids a selected document would be taken for a negative of its own query.
    """
    with open_input(run) as file:
        tops = read_tops(file, path=str(run), depth=_MOST_DEPTH, limits=OWN_FILES)
    known = {one.query: {*one.shown, *one.selected} for one in annotations.records}
    if not any(known.get(QueryId(query), set()) & set(docs) for query, docs in tops.items()):
        raise no_common_document(annotations, str(run))
    return {QueryId(query): tuple(map(DocId, docs[:depth])) for query, docs in tops.items()}
