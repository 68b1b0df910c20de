"""`heldout survive triples`: training triples that a shallower annotation would have left."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import click
import numpy as np

from heldout.answers.answer import Answer
from heldout.cli.context import reports_disk
from heldout.cli.options import with_options
from heldout.cli.printing import TERMINAL
from heldout.cli.reporting import Output, print_answer
from heldout.errors import StoreError
from heldout.ids import DocId, QueryId
from heldout.options import Opt, Seed
from heldout.report import triples as triple_report
from heldout.report.triples import TripleReport
from heldout.store.files import Folder
from heldout.survivorship.annotations import Annotations
from heldout.survivorship.reading.common_documents import no_common_document
from heldout.survivorship.reading.source import AnnotationSource, read_source
from heldout.survivorship.training.conditions import paper_conditions
from heldout.survivorship.training.triple_checks import Unknown, known_triples
from heldout.survivorship.training.triple_files import read_triples
from heldout.survivorship.training.triple_filter import filter_triples
from heldout.survivorship.training.triples import SelectedPlaces, Triple, make_triples, places_of
from heldout.trec.reading.streams import OWN_FILES, open_input
from heldout.trec.tops import read_tops

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
            facts=triple_report.facts(report),
            tables=triple_report.tables(report),
            value=triple_report.value(report),
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
