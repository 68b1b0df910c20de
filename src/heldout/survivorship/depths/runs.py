"""Scores of run files, or of given runs, on the labels of a shallower annotation."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from heldout.answers.answer import Answer
from heldout.errors import plural
from heldout.progress_bar import SILENT, Progress
from heldout.rankers.run import Hit, write_run
from heldout.scoring.run_files import name_runs
from heldout.survivorship.annotations import Annotations
from heldout.survivorship.depths.scores import SHOWN, shown_documents
from heldout.survivorship.depths.study import DepthOptions, study_depths
from heldout.survivorship.depths.words import document, headline, spec, summary, tables, title
from heldout.survivorship.reading.records import no_common_document, no_common_query
from heldout.survivorship.reading.source import AnnotationSource, read_source, refuse_to_replace
from heldout.trec.orders import Order
from heldout.trec.reading.sources import open_input
from heldout.trec.reading.streams import OWN_FILES
from heldout.trec.tops import Places, read_places

_MOST = 5


def score_depths(
    source: AnnotationSource, options: DepthOptions, *, progress: Progress = SILENT
) -> Answer:
    """Score runs on the labels that a shallower annotation would have left.

    Args:
        source: annotations.
        options: runs and depths; the order shown is written where they ask for it.
        progress: counts the runs.

    Raises:
        OptionError: a file would be written over what is read.
        InputError: a file has errors; codes `depth-beyond-list`, `no-common-query`,
            `no-common-document`.
    """
    if options.write_shown is not None:
        _check_target(source, options, options.write_shown)
    annotations = read_source(source, progress=progress)
    if options.write_shown is not None:
        # Scores count down, since annotators saw none
        run = {
            query: [Hit(doc, float(len(docs) - at)) for at, doc in enumerate(docs)]
            for query, docs in shown_documents(annotations).items()
        }
        write_run(run, options.write_shown, form="trec", tag=SHOWN)
        progress.note("wrote", str(options.write_shown))
    return answer_depths(annotations, _read_runs(annotations, options, progress), options)


def answer_depths(
    annotations: Annotations, runs: Mapping[str, Places] | None, options: DepthOptions
) -> Answer:
    """Answer the same of annotations and runs that are there already.

    Args:
        annotations: what was selected, and where.
        runs: by name, where each lists the selected documents; `None` for the order shown.
        options: measure and depths; their run files are not read.

    Raises:
        InputError: codes `depth-beyond-list`, `no-survivor`, `missing-scores`, `no-shown`.
    """
    study = study_depths(annotations, runs, options)
    return Answer(
        answer=headline(study),
        summary=summary(study),
        tables=tables(study),
        short=tables(study, most=_MOST),
        document=document(study),
        chart=lambda: spec(study),
        title=title(study),
    )


def _check_target(source: AnnotationSource, options: DepthOptions, target: Path) -> None:
    """Refuse to write the order shown over what is read, or what else is written."""
    runs = [] if not options.runs else [Path(path) for path in name_runs(options.runs).values()]
    refuse_to_replace(target, "--write-shown", (*source.inputs(), *runs))


def _read_runs(
    annotations: Annotations, options: DepthOptions, progress: Progress
) -> Mapping[str, Places] | None:
    if not options.runs:
        return None
    wanted: dict[str, Sequence[str]] = {
        one.query: tuple(one.selected) for one in annotations.records if one.selected
    }
    paths = name_runs(options.runs)
    runs: dict[str, Places] = {}
    with progress.steps("reading runs", len(paths)) as done:
        for name, path in paths.items():
            runs[name] = _read_run(path, wanted, annotations, options.order)
            done()
    return runs


def _read_run(
    path: str, wanted: Mapping[str, Sequence[str]], annotations: Annotations, order: Order | None
) -> Places:
    def read(documents: Mapping[str, Sequence[str]]) -> Places:
        with open_input(Path(path)) as file:
            return read_places(file, path=path, documents=documents, order=order, limits=OWN_FILES)

    places = read(wanted)
    if not wanted:
        return places
    if not places.found:
        queries = plural(len(wanted), "query", "queries")
        raise no_common_query(path, f"none of the {queries} with a label")
    if not any(places.found.values()):
        # A run without any selected document may be that bad if it lists some that were shown
        known: dict[str, Sequence[str]] = {
            one.query: (*one.shown, *one.selected) for one in annotations.records
        }
        if not any(read(known).found.values()):
            raise no_common_document(annotations, path)
    return places
