"""`heldout survive triples`: training triples that a shallower annotation would have left."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import click
import numpy as np

from heldout.answers.answer import Answer
from heldout.cli.context import reports_disk
from heldout.cli.reporting import Output, output_options, print_answer
from heldout.cli.survive.annotation_source import AnnotationSource, annotation_options
from heldout.cli.survive.common_documents import no_common_document
from heldout.errors import StoreError
from heldout.ids import DocId, QueryId
from heldout.report import triples as triple_report
from heldout.report.triples import TripleReport
from heldout.store.files import Folder
from heldout.survivorship.annotations import Annotations
from heldout.survivorship.training.conditions import paper_conditions
from heldout.survivorship.training.triple_checks import Unknown, known_triples
from heldout.survivorship.training.triple_files import read_triples
from heldout.survivorship.training.triple_filter import filter_triples
from heldout.survivorship.training.triples import SelectedPlaces, Triple, make_triples, places_of
from heldout.trec.reading.streams import OWN_FILES, open_input
from heldout.trec.tops import read_tops

__all__ = ["triples"]

_MOST_DEPTH = 100


@click.command
@click.argument(
    "sequence",
    required=False,
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="[TRIPLES]",
)
@annotation_options
@click.option(
    "-r",
    "--within",
    type=click.IntRange(min=1),
    multiple=True,
    default=(1, 5),
    show_default=True,
    metavar="R",
    help="Triples whose positive was among the first R shown. Can be given many times.",
)
@click.option(
    "--control",
    "controls",
    type=click.IntRange(min=1),
    multiple=True,
    metavar="R",
    help="A random sample of all, as small as with R documents. Can be given many times.",
)
@click.option(
    "--from-run",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="RUN",
    help="Without TRIPLES: make them, with negatives from the first documents of a run.",
)
@click.option(
    "--negatives",
    type=click.IntRange(min=1),
    default=8,
    show_default=True,
    help="For each label, with --from-run.",
)
@click.option(
    "--negatives-from",
    type=click.IntRange(1, _MOST_DEPTH),
    default=_MOST_DEPTH,
    show_default=True,
    help="First documents of the run to draw from.",
)
@click.option(
    "--skip-unknown",
    is_flag=True,
    help="Leave out triples whose positive the annotations do not know.",
)
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Of draws.")
@click.option(
    "--pack",
    type=click.Choice(["gz", "bz2", "none"]),
    default="gz",
    show_default=True,
    help="How the files are compressed.",
)
@click.option(
    "--out",
    required=True,
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Where r1.tsv.gz, r5.tsv.gz, all.tsv.gz, … are written.",
)
@output_options
@reports_disk
def triples(
    *,
    sequence: Path | None,
    source: AnnotationSource,
    within: tuple[int, ...],
    controls: tuple[int, ...],
    from_run: Path | None,
    negatives: int,
    negatives_from: int,
    skip_unknown: bool,
    seed: int,
    pack: str,
    out: Path,
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
    if (sequence is None) == (from_run is None):
        raise click.UsageError("which triples? a file of them, or --from-run RUN to make them")
    annotations = source.read()
    places = places_of(annotations)
    unknown = Unknown() if skip_unknown else None
    if sequence is not None:
        read = _reader(sequence, places, unknown)
    else:
        ranked = _read_tops(from_run or Path(), annotations, depth=negatives_from)
        rng = np.random.default_rng(seed)
        read = make_triples(places, ranked, negatives=negatives, rng=rng).__iter__
    suffix = "" if pack == "none" else f".{pack}"
    try:
        with Folder(out).lock(".lock"):
            Folder(out).sweep("")
            written = filter_triples(
                read,
                places,
                paper_conditions(within, controls=controls),
                name_of=lambda condition: out / f"{condition.folder}.tsv{suffix}",
                seed=seed,
            )
    except OSError as error:
        raise StoreError(f"{out} cannot be written: {error.strerror or error}") from error
    report = TripleReport(
        source=str(sequence or from_run), written=written, unknown=unknown.triples if unknown else 0
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
