"""Training triples that a shallower annotation would have left."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated

import numpy as np

from heldout.answers.answer import Answer
from heldout.answers.table import Table, columns
from heldout.errors import OptionError, StoreError, plural
from heldout.files.durable import Folder
from heldout.ids import DocId, QueryId
from heldout.options import Opt, Seed
from heldout.progress_bar import SILENT, Progress
from heldout.survivorship.annotations import Annotations
from heldout.survivorship.reading.records import no_common_document
from heldout.survivorship.reading.source import AnnotationSource, read_source
from heldout.survivorship.training.options import Controls, Negatives, SkipUnknown, Within
from heldout.survivorship.training.triple_files import (
    ReadTriples,
    Unknown,
    Written,
    filter_triples,
    read_known_triples,
)
from heldout.survivorship.training.triples import make_triples, paper_conditions, places_of
from heldout.trec.reading.sources import open_input
from heldout.trec.reading.streams import OWN_FILES
from heldout.trec.tops import read_tops

_MOST_DEPTH = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class FilterOptions:
    """Which triples are left, and where they are written."""

    within: Within = (1, 5)
    controls: Controls = ()
    from_run: Annotated[
        Path | None,
        Opt(
            "Run whose first documents are negatives; makes triples where none are named.",
            metavar="RUN",
            path="file",
        ),
    ] = None
    negatives: Negatives = 8
    negatives_from: Annotated[
        int, Opt("Number of first documents of the run to draw from.", least=1, most=_MOST_DEPTH)
    ] = _MOST_DEPTH
    skip_unknown: SkipUnknown = False
    seed: Seed = 0
    out: Annotated[
        Path,
        Opt(
            "Folder for the triples: r1.tsv.gz, r5.tsv.gz, all.tsv.gz.",
            metavar="DIR",
            path="folder",
        ),
    ]


def write_triples(
    sequence: Path | None,
    source: AnnotationSource,
    options: FilterOptions,
    *,
    progress: Progress = SILENT,
) -> Answer:
    """Write the triples of each condition into files of their own.

    Args:
        sequence: file of triples; `None` to make them of a run.
        source: annotations, with the position at which each document was shown.
        options: conditions, and where files are written.
        progress: gets the notes of the files.

    Raises:
        OptionError: neither a file of triples nor a run, or both.
        InputError: a file has errors.
        StoreError: the folder cannot be written.
    """
    origin = sequence or options.from_run
    if origin is None or (sequence is not None and options.from_run is not None):
        raise OptionError("which triples? a file of them, or --from-run RUN to make them")
    annotations = read_source(source, progress=progress)
    places = places_of(annotations)
    unknown = Unknown()
    if sequence is not None:
        read: ReadTriples = partial(
            read_known_triples, sequence, places, unknown if options.skip_unknown else None
        )
    else:
        ranked = _read_tops(origin, annotations, depth=options.negatives_from)
        rng = np.random.default_rng(options.seed)
        read = make_triples(places, ranked, negatives=options.negatives, rng=rng).__iter__
    try:
        with Folder(options.out).lock(".lock"):
            Folder(options.out).sweep("")
            written = filter_triples(
                read,
                places,
                paper_conditions(options.within, controls=options.controls),
                name_of=lambda condition: options.out / f"{condition.folder}.tsv.gz",
                seed=options.seed,
            )
    except OSError as error:
        raise StoreError(f"{options.out} cannot be written: {error.strerror or error}") from error
    return _answer(str(origin), written, unknown)


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


def _answer(source: str, written: Sequence[Written], unknown: Unknown) -> Answer:
    """Where the files are, how much each condition has, and what could not be used."""
    notes = [
        f"{one.condition.name}: {plural(count, name)} too few, since the {drawn} drawn have no more"
        for one in written
        for count, name, drawn in (
            (one.missing_labels, "label", "queries"),
            (one.missing, "triple", "labels"),
        )
        if count
    ]
    table = Table(
        title=f"Triples of {source}",
        columns=(
            *columns("text", "condition"),
            *columns("count", "triples", "left out", "labels", "queries"),
        ),
        rows=tuple(
            (
                one.condition.name,
                one.counts.triples,
                one.dropped,
                one.counts.labels,
                one.counts.queries,
            )
            for one in written
        ),
        notes=tuple(notes),
    )
    document = {
        "source": source,
        "unknown": unknown.triples,
        "files": [
            {
                "condition": one.condition.name,
                "path": str(one.path),
                "triples": one.counts.triples,
                "left_out": one.dropped,
                "labels": one.counts.labels,
                "queries": one.counts.queries,
                "missing": one.missing,
                "missing_labels": one.missing_labels,
            }
            for one in written
        ],
    }
    summary = [("" if number else "wrote", str(one.path)) for number, one in enumerate(written)]
    if unknown.triples:
        summary.append(("left out", str(unknown)))
    files = plural(len(written), "file")
    triples = sum(one.counts.triples for one in written)
    return Answer(
        answer=f"{plural(triples, 'triple')} written to {files}, one for each condition.",
        summary=summary,
        tables=[table],
        document=document,
    )
