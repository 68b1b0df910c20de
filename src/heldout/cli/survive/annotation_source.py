"""Where a command's annotations come from: a place that has them, or a run and labels."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import click

from heldout.cli.options import one_argument
from heldout.cli.prefer.pool_source import read_documents
from heldout.errors import InputError, Problem
from heldout.survivorship.annotations import Annotations
from heldout.survivorship.depth_qrels import has_depth_qrels, read_depth_qrels
from heldout.survivorship.query_details import add_kinds, add_texts, kinds_by_query
from heldout.survivorship.simulated import simulate_annotations
from heldout.trec.groups import read_facets
from heldout.trec.qrels import read_qrels
from heldout.trec.queries import read_queries
from heldout.trec.reading.streams import open_input
from heldout.trec.tops import read_tops

__all__ = ["AnnotationSource", "annotation_options"]

_DEPTH = 10
_MOST = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class AnnotationSource:
    """What a command was told of its annotations.

    Attributes:
        annotations: a file or folder that has them; `None` where they are simulated.
        shown: a run whose first documents annotators are taken to have seen.
        qrels: labels: what they select.
        shown_depth: documents that they see; `None` for 10.
        types: file of each query's type, in place of what the annotations tell.
        queries: file of the queries' texts.
        documents: file of the documents' texts.
    """

    annotations: Path | None = None
    shown: Path | None = None
    qrels: Path | None = None
    shown_depth: int | None = None
    types: Path | None = None
    queries: Path | None = None
    documents: Path | None = None

    def read(self, *, texts: bool = False) -> Annotations:
        """The annotations, with types and texts as far as files tell them.

        Args:
            texts: whether texts are wanted; without, files of them are not read.

        Raises:
            click.UsageError: neither annotations nor a run with labels is named, or both.
            InputError: a file has errors.
        """
        self._check()
        if self.shown is not None and self.qrels is not None:
            found = _simulate(self.shown, self.qrels, self.shown_depth or _DEPTH)
        else:
            found = _read_place(self.annotations or Path())
        if self.types is not None:
            found = add_kinds(found, _read_types(self.types), path=str(self.types))
        if texts and (self.queries or self.documents):
            return add_texts(
                found,
                queries=None if self.queries is None else _read_queries(self.queries),
                documents=None if self.documents is None else read_documents(str(self.documents)),
                path=str(self.queries or self.documents),
            )
        return found

    def _check(self) -> None:
        if self.annotations is None and (self.shown is None or self.qrels is None):
            raise click.UsageError("which annotations? --annotations PLACE; or --shown and --qrels")
        if self.annotations is not None and (self.shown is not None or self.qrels is not None):
            raise click.UsageError("--annotations says what was shown: without --shown and --qrels")
        if self.shown is None and self.shown_depth is not None:
            raise click.UsageError("--shown-depth is of --shown")


annotation_options = one_argument(
    "source",
    AnnotationSource,
    click.option(
        "--annotations",
        type=click.Path(path_type=Path),
        metavar="PLACE",
        help="What annotators saw and selected: a folder of qrels for each depth.",
    ),
    click.option(
        "--shown",
        type=click.Path(path_type=Path, dir_okay=False),
        metavar="RUN",
        help="Instead: annotators see the first documents of a run, and select what is labelled.",
    ),
    click.option(
        "--qrels",
        type=click.Path(path_type=Path, dir_okay=False),
        metavar="Q",
        help="Labels, for --shown.",
    ),
    click.option(
        "--shown-depth",
        type=click.IntRange(1, _MOST),
        metavar="K",
        help=f"Documents that they see, for --shown [{_DEPTH}].",
    ),
    click.option(
        "--types",
        type=click.Path(path_type=Path, dir_okay=False),
        metavar="FILE",
        help="Type of each query: query<TAB>type.",
    ),
    click.option(
        "--queries",
        type=click.Path(path_type=Path, dir_okay=False),
        metavar="FILE",
        help="The queries' texts, where the annotations have none.",
    ),
    click.option(
        "--documents",
        type=click.Path(path_type=Path, dir_okay=False),
        metavar="FILE",
        help="The documents' texts, id<TAB>text, where the annotations have none.",
    ),
)
"""The options that say what annotators saw, as one `source` argument."""


def _simulate(shown: Path, qrels: Path, depth: int) -> Annotations:
    with open_input(qrels) as file:
        labels = read_qrels(file, path=str(qrels)).judgments
    with open_input(shown) as file:
        tops = read_tops(file, path=str(shown), depth=depth)
    return simulate_annotations(
        tops, labels, depth=depth, source=f"the first {depth} of {shown}, with {qrels}"
    )


def _read_place(place: Path) -> Annotations:
    if place.is_dir() and has_depth_qrels(place):
        return read_depth_qrels(place)
    raise InputError(
        Problem(
            code="no-annotations",
            path=str(place),
            found="a folder without them" if place.is_dir() else "no file of annotations",
            expected="a folder of qrels for each depth, as in dev-1.qrels and dev-all.qrels",
        )
    )


def _read_types(path: Path) -> Mapping[str, str]:
    with open_input(path) as file:
        return kinds_by_query(read_facets(file, path=str(path)), path=str(path))


def _read_queries(path: Path) -> Mapping[str, str]:
    with open_input(path) as file:
        return read_queries(file, path=str(path)).texts
