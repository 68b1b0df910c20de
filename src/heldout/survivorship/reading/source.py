"""Annotations as a command names them: a file or folder that has them, or a run and labels."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated

from heldout.collections.collection import read_wanted_texts
from heldout.files.durable import write_whole
from heldout.options import Opt, OptionError
from heldout.progress import SILENT, Progress
from heldout.survivorship.annotations import Annotations
from heldout.survivorship.reading.annotation_file import format_annotations
from heldout.survivorship.reading.depth_qrels import select_anew, simulate_annotations
from heldout.survivorship.reading.passages import (
    missing_texts,
    name_passages,
    read_names,
    seen_documents,
)
from heldout.survivorship.reading.places import by_text, read_annotations
from heldout.survivorship.reading.records import add_kinds, add_texts, keep_queries, kinds_by_query
from heldout.trec.groups import read_facets, read_query_list
from heldout.trec.qrels import read_qrels
from heldout.trec.queries import read_queries
from heldout.trec.reading.sources import open_input
from heldout.trec.reading.streams import OWN_FILES
from heldout.trec.tops import read_tops

_DEPTH = 10
_MOST = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class AnnotationPlace:
    """Where annotations come from: a file or folder that has them, or a run and labels."""

    annotations: Annotated[
        Path | None,
        Opt(
            "What annotators saw and selected: a file or folder of a known format.", metavar="PATH"
        ),
    ] = None
    shown: Annotated[
        Path | None,
        Opt(
            "Run whose first documents annotators saw, instead of --annotations; they selected "
            "what is labelled.",
            metavar="RUN",
            path="file",
        ),
    ] = None
    qrels: Annotated[
        Path | None,
        Opt(
            "Labels: what annotators select, for --shown; or in place of what they selected.",
            metavar="Q",
            path="file",
        ),
    ] = None
    shown_depth: Annotated[
        int | None,
        Opt(f"Number of documents that they see [{_DEPTH}].", least=1, most=_MOST, metavar="K"),
    ] = None
    query_list: Annotated[
        Path | None,
        Opt("File of the only queries to use, one id a line.", metavar="FILE", path="file"),
    ] = None

    @property
    def named(self) -> bool:
        """Whether there are annotations at all."""
        return self.annotations is not None or self.shown is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class AnnotationSource(AnnotationPlace):
    """The same with files of types and texts, and a file for what was read."""

    types: Annotated[
        Path | None, Opt("Type of each query: query<TAB>type.", metavar="FILE", path="file")
    ] = None
    queries: Annotated[
        Path | None,
        Opt("Texts of the queries, where the annotations have none.", metavar="FILE", path="file"),
    ] = None
    documents: Annotated[
        Path | None,
        Opt(
            "Texts of the documents, id<TAB>text; gives passages known by their text alone an id.",
            metavar="FILE",
            path="file",
        ),
    ] = None
    save: Annotated[
        Path | None,
        Opt(
            "File for the annotations with their texts, which --annotations reads.",
            metavar="FILE",
            path="file",
        ),
    ] = None

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


def read_source(
    source: AnnotationPlace,
    *,
    texts: bool = False,
    name: Callable[[Annotations], Annotations] | None = None,
    progress: Progress = SILENT,
) -> Annotations:
    """Annotations, with types and texts as far as files have them.

    They are written, texts too, where `save` asks for it.

    Args:
        source: where they come from.
        texts: whether texts are wanted; without, files of them are not read.
        name: gives passages that are known by their text alone the ids of a collection in hand;
            `None` where only `documents` does.
        progress: gets the notes of the files.

    Raises:
        OptionError: neither annotations nor a run with labels is named, or both.
        InputError: a file has errors.
        StoreError: a campaign lacks a file.
        SetupError: a library is missing.
    """
    _check(source)
    files = source if isinstance(source, AnnotationSource) else AnnotationSource()
    wanted = texts or files.save is not None
    if files.documents is not None:
        name = partial(_name, documents=files.documents)
    with progress.waiting("reading annotations"):
        found = _complete(_read(source, texts=wanted, name=name, progress=progress), source, files)
        if wanted and (files.queries or files.documents):
            found = _add_texts(found, files)
    progress.problems(found.notes)
    if files.save is not None:
        write_whole(files.save, format_annotations(found))
    return found


def _read(
    source: AnnotationPlace,
    *,
    texts: bool,
    name: Callable[[Annotations], Annotations] | None,
    progress: Progress,
) -> Annotations:
    labels = None if source.qrels is None else _read_labels(source.qrels, progress)
    if source.shown is not None:
        depth = source.shown_depth or _DEPTH
        words = f"the first {depth} of {source.shown}, with {source.qrels}"
        with open_input(source.shown) as file:
            tops = read_tops(file, path=str(source.shown), depth=depth, limits=OWN_FILES)
        return simulate_annotations(tops, labels or {}, depth=depth, source=words)
    place = source.annotations or Path()
    found = read_annotations(place, texts=texts)
    if name is not None and by_text(found, place):
        found = name(found)
    return found if labels is None else select_anew(found, labels, path=str(source.qrels))


def _complete(found: Annotations, source: AnnotationPlace, files: AnnotationSource) -> Annotations:
    if source.query_list is not None:
        found = keep_queries(found, _read_list(source.query_list), path=str(source.query_list))
    if files.types is not None:
        found = add_kinds(found, _read_types(files.types), path=str(files.types))
    return found


def _add_texts(found: Annotations, files: AnnotationSource) -> Annotations:
    return add_texts(
        found,
        queries=None if files.queries is None else _read_queries(files.queries),
        documents=None if files.documents is None else _read_texts(found, files.documents),
        path=str(files.queries or files.documents),
    )


def _check(source: AnnotationPlace) -> None:
    if source.annotations is None and (source.shown is None or source.qrels is None):
        raise OptionError("which annotations? --annotations PATH; or --shown and --qrels")
    if source.annotations is not None and source.shown is not None:
        raise OptionError("--annotations says what was shown: without --shown")
    if source.shown is None and source.shown_depth is not None:
        raise OptionError("--shown-depth belongs to --shown")
    if isinstance(source, AnnotationSource) and source.save is not None:
        keep_inputs(source.save, "--save", source.inputs())


def keep_inputs(target: Path, option: str, inputs: Iterable[Path]) -> None:
    """Refuse to write over what is read.

    Args:
        target: the file to be written.
        option: that names it.
        inputs: files that are read, and folders of such files.

    Raises:
        OptionError: the target is one of them, by whatever name, or a file in one of them.
    """
    if not target.exists():
        return
    for place in inputs:
        if place.exists() and (target.samefile(place) or target.parent.samefile(place)):
            raise OptionError(
                f"{option} {target} would replace what is read from {place}: give another name"
            )


def _name(found: Annotations, documents: Path) -> Annotations:
    with open_input(documents) as file:
        names = read_names(file, seen_documents(found), path=str(documents))
    return name_passages(found, names, path=str(documents))


def _read_labels(path: Path, progress: Progress) -> Mapping[str, Mapping[str, int]]:
    with open_input(path) as file:
        found = read_qrels(file, path=str(path))
    progress.problems(found.notes)
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
