"""Where a command's annotations come from: a place that has them, or a run and labels."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import click

from heldout.cli.console import waiting
from heldout.cli.options import one_argument
from heldout.cli.printing import messages, print_problems
from heldout.cli.survive.annotation_places import by_text, read_annotations
from heldout.collections.wanted_texts import read_wanted_texts
from heldout.store.files import write_whole
from heldout.survivorship.annotations import Annotations
from heldout.survivorship.reading.annotation_file import format_annotations
from heldout.survivorship.reading.passage_names import (
    missing_texts,
    name_passages,
    read_names,
    seen_documents,
)
from heldout.survivorship.reading.query_details import (
    add_kinds,
    add_texts,
    keep_queries,
    kinds_by_query,
)
from heldout.survivorship.reading.simulated import select_anew, simulate_annotations
from heldout.trec.groups import read_facets, read_query_list
from heldout.trec.qrels import read_qrels
from heldout.trec.queries import read_queries
from heldout.trec.reading.streams import OWN_FILES, open_input
from heldout.trec.tops import read_tops

__all__ = ["AnnotationSource", "annotation_options", "keep_inputs"]

_DEPTH = 10
_MOST = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class AnnotationSource:
    """What a command was told of its annotations.

    Attributes:
        annotations: a file or folder that has them; `None` where they are simulated.
        shown: a run whose first documents annotators are taken to have seen.
        qrels: labels: what they select; with `annotations` in place of what was selected there.
        shown_depth: documents that they see; `None` for 10.
        query_list: file of the only queries that are looked at.
        types: file of each query's type, in place of what the annotations tell.
        queries: file of the queries' texts.
        documents: file of the documents' texts; it names passages that are known by their text.
        save: file to which the annotations are written.
    """

    annotations: Path | None = None
    shown: Path | None = None
    qrels: Path | None = None
    shown_depth: int | None = None
    query_list: Path | None = None
    types: Path | None = None
    queries: Path | None = None
    documents: Path | None = None
    save: Path | None = None

    def read(
        self, *, texts: bool = False, name: Callable[[Annotations], Annotations] | None = None
    ) -> Annotations:
        """The annotations, with types and texts as far as files tell them.

        What is worth telling goes to standard error. They are written, texts too, where `save`
        asks for it.

        Args:
            texts: whether texts are wanted; without, files of them are not read.
            name: gives passages that are known by their text alone the ids of a collection in
                hand; `None` where only `documents` does.

        Raises:
            click.UsageError: neither annotations nor a run with labels is named, or both.
            InputError: a file has errors.
            StoreError: a campaign lacks a file.
            SetupError: a library is missing.
        """
        self._check()
        wanted = texts or self.save is not None
        with waiting("reading annotations"):
            found = self._complete(self._read(texts=wanted, name=name), texts=wanted)
        print_problems(messages(), found.notes)
        if self.save is not None:
            write_whole(self.save, format_annotations(found))
        return found

    def inputs(self) -> tuple[Path, ...]:
        """The files and folders that are read."""
        named = (
            self.annotations,
            self.shown,
            self.qrels,
            self.query_list,
            self.types,
            self.queries,
            self.documents,
        )
        return tuple(path for path in named if path is not None)

    def _read(
        self, *, texts: bool, name: Callable[[Annotations], Annotations] | None
    ) -> Annotations:
        labels = None if self.qrels is None else _read_labels(self.qrels)
        if self.shown is not None:
            depth = self.shown_depth or _DEPTH
            source = f"the first {depth} of {self.shown}, with {self.qrels}"
            with open_input(self.shown) as file:
                tops = read_tops(file, path=str(self.shown), depth=depth, limits=OWN_FILES)
            return simulate_annotations(tops, labels or {}, depth=depth, source=source)
        place = self.annotations or Path()
        found = read_annotations(place, texts=texts)
        if self.documents is not None:
            name = partial(_name, documents=self.documents)
        if name is not None and by_text(found, place):
            found = name(found)
        return found if labels is None else select_anew(found, labels, path=str(self.qrels))

    def _complete(self, found: Annotations, *, texts: bool) -> Annotations:
        if self.query_list is not None:
            found = keep_queries(found, _read_list(self.query_list), path=str(self.query_list))
        if self.types is not None:
            found = add_kinds(found, _read_types(self.types), path=str(self.types))
        if texts and (self.queries or self.documents):
            found = add_texts(
                found,
                queries=None if self.queries is None else _read_queries(self.queries),
                documents=None if self.documents is None else _read_texts(found, self.documents),
                path=str(self.queries or self.documents),
            )
        return found

    def _check(self) -> None:
        if self.annotations is None and (self.shown is None or self.qrels is None):
            raise click.UsageError("which annotations? --annotations PLACE; or --shown and --qrels")
        if self.annotations is not None and self.shown is not None:
            raise click.UsageError("--annotations says what was shown: without --shown")
        if self.shown is None and self.shown_depth is not None:
            raise click.UsageError("--shown-depth is of --shown")
        if self.save is not None:
            keep_inputs(self.save, "--save", self.inputs())


def keep_inputs(target: Path, option: str, inputs: Iterable[Path]) -> None:
    """Refuse to write over what is read.

    Args:
        target: the file to be written.
        option: that names it.
        inputs: files that are read, and folders of such files.

    Raises:
        click.UsageError: the target is one of them, by whatever name, or a file in one of them.
    """
    if not target.exists():
        return
    for place in inputs:
        if place.exists() and (target.samefile(place) or target.parent.samefile(place)):
            raise click.UsageError(
                f"{option} {target} would replace what is read from {place}: give another name"
            )


annotation_options = one_argument(
    "source",
    AnnotationSource,
    click.option(
        "--annotations",
        type=click.Path(path_type=Path),
        metavar="PLACE",
        help="What annotators saw and selected: a file or folder of any form that is known.",
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
        help="What annotators select, for --shown; or in place of what they selected.",
    ),
    click.option(
        "--shown-depth",
        type=click.IntRange(1, _MOST),
        metavar="K",
        help=f"Documents that they see, for --shown [{_DEPTH}].",
    ),
    click.option(
        "--query-list",
        type=click.Path(path_type=Path, dir_okay=False),
        metavar="FILE",
        help="Only these queries, one id a line.",
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
        help="The documents' texts, id<TAB>text; the ids of passages known by their text.",
    ),
    click.option(
        "--save",
        type=click.Path(path_type=Path, dir_okay=False),
        metavar="FILE",
        help="Write the annotations, with texts, as JSON lines that --annotations reads.",
    ),
)
"""The options that say what annotators saw, as one `source` argument."""


def _name(found: Annotations, documents: Path) -> Annotations:
    with open_input(documents) as file:
        names = read_names(file, seen_documents(found), path=str(documents))
    return name_passages(found, names, path=str(documents))


def _read_labels(path: Path) -> Mapping[str, Mapping[str, int]]:
    with open_input(path) as file:
        found = read_qrels(file, path=str(path))
    print_problems(messages(), found.notes)
    return found.judgments


def _read_list(path: Path) -> frozenset[str]:
    with open_input(path) as file:
        return read_query_list(file, path=str(path))


def _read_types(path: Path) -> Mapping[str, str]:
    with open_input(path) as file:
        return kinds_by_query(read_facets(file, path=str(path), group="type"), path=str(path))


def _read_queries(path: Path) -> Mapping[str, str]:
    with open_input(path) as file:
        return read_queries(file, path=str(path)).texts


def _read_texts(found: Annotations, path: Path) -> Mapping[str, str]:
    wanted = missing_texts(found)
    if not wanted:
        return {}
    with open_input(path) as file:
        return read_wanted_texts(file, wanted, path=str(path))
