"""Training triples that a shallower annotation would have left."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from heldout.answers.answer import Answer
from heldout.answers.table import Column, Table
from heldout.errors import StoreError, plural
from heldout.files.durable import Folder
from heldout.ids import DocId, QueryId
from heldout.options import Opt, OptionError, Seed
from heldout.progress import SILENT, Progress
from heldout.survivorship.annotations import Annotations
from heldout.survivorship.reading.common_documents import no_common_document
from heldout.survivorship.reading.source import AnnotationSource, read_source
from heldout.survivorship.training.triple_files import (
    Unknown,
    Written,
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
from heldout.trec.reading.sources import open_input
from heldout.trec.reading.streams import OWN_FILES
from heldout.trec.tops import read_tops

_MOST_DEPTH = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class _Report:
    """What was filtered.

    Attributes:
        source: the file, or the run that negatives came from.
        written: the files.
        unknown: triples left out because the annotations do not know their positive.
    """

    source: str
    written: Sequence[Written]
    unknown: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FilterOptions:
    """Which triples are left, and where they are written."""

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
    out: Annotated[
        Path,
        Opt("Folder for r1.tsv.gz, r5.tsv.gz, all.tsv.gz, …", metavar="DIR", path="folder"),
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
    if (sequence is None) == (options.from_run is None):
        raise OptionError("which triples? a file of them, or --from-run RUN to make them")
    annotations = read_source(source, progress=progress)
    places = places_of(annotations)
    unknown = Unknown() if options.skip_unknown else None
    if sequence is not None:
        read = _reader(sequence, places, unknown)
    else:
        ranked = _read_tops(options.from_run or Path(), annotations, depth=options.negatives_from)
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
    report = _Report(
        source=str(sequence or options.from_run),
        written=written,
        unknown=unknown.triples if unknown else 0,
    )
    return Answer(
        summary=_facts(report),
        tables=_tables(report),
        document=_value(report),
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


def _facts(report: _Report) -> list[tuple[str, str]]:
    """Where the files are, and what could not be used."""
    lines = [
        ("wrote" if place == 0 else "", str(one.path)) for place, one in enumerate(report.written)
    ]
    if report.unknown:
        left_out = (
            f"{plural(report.unknown, 'triple')} with positives that the annotations do not know"
        )
        lines.append(("left out", left_out))
    return lines


def _tables(report: _Report) -> list[Table]:
    """How much each condition has."""
    columns = (
        Column(name="condition"),
        Column(name="triples", form="count"),
        Column(name="left out", form="count"),
        Column(name="labels", form="count"),
        Column(name="queries", form="count"),
    )
    rows = tuple(
        (
            one.condition.name,
            one.counts.triples,
            one.dropped,
            one.counts.labels,
            one.counts.queries,
        )
        for one in report.written
    )
    notes = [
        f"{one.condition.name}: {plural(count, name)} too few, since the {drawn} drawn have no more"
        for one in report.written
        for count, name, drawn in (
            (one.missing_labels, "label", "queries"),
            (one.missing, "triple", "labels"),
        )
        if count
    ]
    title = f"Triples of {report.source}"
    return [Table(title=title, columns=columns, rows=rows, notes=tuple(notes))]


def _value(report: _Report) -> dict[str, Any]:
    """As JSON."""
    return {
        "source": report.source,
        "unknown": report.unknown,
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
            for one in report.written
        ],
    }
