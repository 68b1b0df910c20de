"""Training triples that a shallower annotation would have left."""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any

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
from heldout.survivorship.training.triple_files import Unknown, read_known_triples, write_triples
from heldout.survivorship.training.triples import (
    ReadTriples,
    draw_triples,
    make_triples,
    paper_conditions,
    places_of,
)
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


def filter_triples(
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
    conditions = paper_conditions(options.within, controls=options.controls)
    paths = {one: options.out / f"{one.folder}.tsv.gz" for one in conditions}
    try:
        with Folder(options.out).lock(".lock"), ExitStack() as files:
            Folder(options.out).sweep("")
            draws, whole = draw_triples(
                read,
                places,
                [(one, options.seed) for one in conditions],
                source="triples",
                open_target=lambda one: files.enter_context(write_triples(paths[one])),
            )
    except OSError as error:
        raise StoreError(f"{options.out} cannot be written: {error.strerror or error}") from error
    rows = [
        {
            "condition": condition.name,
            "path": str(paths[condition]),
            "triples": draw.counts.triples,
            "left_out": whole.triples - draw.counts.triples,
            "labels": draw.counts.labels,
            "queries": draw.counts.queries,
            "missing": draw.missing,
            "missing_labels": draw.missing_labels,
        }
        for condition, draw in zip(conditions, draws, strict=True)
    ]
    return _answer(str(origin), rows, unknown)


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


def _answer(source: str, files: Sequence[Mapping[str, Any]], unknown: Unknown) -> Answer:
    """Say where the files are, how much each condition has, and what could not be used."""
    notes = [
        f"{one['condition']}: {plural(one[key], name)} too few, since the {drawn} drawn have no "
        "more"
        for one in files
        for key, name, drawn in (
            ("missing_labels", "label", "queries"),
            ("missing", "triple", "labels"),
        )
        if one[key]
    ]
    shown = ("triples", "left_out", "labels", "queries")
    table = Table(
        title=f"Triples of {source}",
        columns=(
            *columns("text", "condition"),
            *columns("count", *(key.replace("_", " ") for key in shown)),
        ),
        rows=tuple((one["condition"], *(one[key] for key in shown)) for one in files),
        notes=tuple(notes),
    )
    summary = [("" if number else "wrote", one["path"]) for number, one in enumerate(files)]
    if unknown.triples:
        summary.append(("left out", str(unknown)))
    triples = plural(sum(one["triples"] for one in files), "triple")
    return Answer(
        answer=f"{triples} written to {plural(len(files), 'file')}, one for each condition.",
        summary=summary,
        tables=[table],
        document={"source": source, "unknown": unknown.triples, "files": files},
    )
