"""Annotations as a command names them: a file or folder of several formats, or a run and labels."""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path
from typing import Annotated

from heldout.collections.named import load_qrels, load_queries
from heldout.collections.tables import read_documents
from heldout.errors import InputError, OptionError
from heldout.options import Opt
from heldout.progress_bar import SILENT, Progress
from heldout.survivorship.annotations import Annotations
from heldout.survivorship.reading import depth_qrels, passages, qna, records
from heldout.trec.groups import read_facets, read_query_list
from heldout.trec.reading.sources import open_input, read_file
from heldout.trec.reading.streams import OWN_FILES, TextReader
from heldout.trec.text import show
from heldout.trec.tops import read_tops

_DEPTH = 10
_MOST = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class AnnotationFiles:
    """Where annotations come from: a file or folder that has them, or a run and labels."""

    annotations: Annotated[
        Path | None,
        Opt(
            "Record of what annotators saw and selected: a file or folder of a known format.",
            metavar="PATH",
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
        """Return whether there are annotations at all."""
        return self.annotations is not None or self.shown is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class AnnotationSource(AnnotationFiles):
    """The same with files of texts."""

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

    def inputs(self) -> tuple[Path, ...]:
        """The files and folders that are read."""
        given = (getattr(self, one.name) for one in fields(self))
        return tuple(value for value in given if isinstance(value, Path))


@dataclass(frozen=True, slots=True, kw_only=True)
class TypedSource(AnnotationSource):
    """The same with a file of the queries' types."""

    types: Annotated[
        Path | None, Opt("Type of each query: query<TAB>type.", metavar="FILE", path="file")
    ] = None


def read_source(
    source: AnnotationFiles,
    *,
    texts: bool = False,
    name: Callable[[Annotations], Annotations] | None = None,
    progress: Progress = SILENT,
) -> Annotations:
    """Return annotations, with types and texts as far as files have them.

    Args:
        source: where they come from.
        texts: whether texts are wanted; without, files of them are not read.
        name: gives passages that are known by their text alone the ids of a collection in hand;
            `None` where only `documents` does.
        progress: gets the notes of the files.

    Raises:
        OptionError: neither annotations nor a run with labels is named, or both.
        InputError: a file has errors.
        SetupError: a library is missing.
    """
    _check(source)
    files = source if isinstance(source, AnnotationSource) else AnnotationSource()
    if files.documents is not None:
        name = partial(_name, documents=files.documents)
    with progress.waiting("reading annotations"):
        annotations = _read(source, texts=texts, name=name, progress=progress)
        if source.query_list is not None:
            listed = read_file(read_query_list, source.query_list)
            annotations = records.pick_queries(annotations, listed, path=str(source.query_list))
        if isinstance(source, TypedSource) and source.types is not None:
            path = str(source.types)
            kinds = records.kinds_by_query(
                read_file(read_facets, source.types, group="type"), path=path
            )
            annotations = records.add_kinds(annotations, kinds, path=path)
        if texts and (files.queries or files.documents):
            annotations = _add_texts(annotations, files)
    progress.problems(annotations.notes)
    return annotations


def _read(
    source: AnnotationFiles,
    *,
    texts: bool,
    name: Callable[[Annotations], Annotations] | None,
    progress: Progress,
) -> Annotations:
    labels = None
    if source.qrels is not None:
        qrels = load_qrels(source.qrels)
        progress.problems(qrels.notes)
        labels = qrels.judgments
    if source.shown is not None:
        depth = source.shown_depth or _DEPTH
        words = f"the first {depth} of {source.shown}, with {source.qrels}"
        tops = read_file(read_tops, source.shown, depth=depth, limits=OWN_FILES)
        return depth_qrels.simulate_annotations(tops, labels or {}, depth=depth, source=words)
    path = source.annotations or Path()
    annotations = read_annotations(path, texts=texts)
    if name is not None and annotations.by_text:
        annotations = name(annotations)
    return (
        annotations
        if labels is None
        else depth_qrels.reselect(annotations, labels, path=str(source.qrels))
    )


def _add_texts(annotations: Annotations, files: AnnotationSource) -> Annotations:
    documents = None
    if files.documents is not None:
        missing = passages.missing_texts(annotations)
        read = partial(read_file, read_documents, files.documents, wanted=missing)
        documents = read() if missing else {}
    return records.add_texts(
        annotations,
        queries=None if files.queries is None else load_queries(files.queries).texts,
        documents=documents,
        path=str(files.queries or files.documents),
    )


def _check(source: AnnotationFiles) -> None:
    if source.annotations is None and (source.shown is None or source.qrels is None):
        raise OptionError("which annotations? --annotations PATH; or --shown and --qrels")
    if source.annotations is not None and source.shown is not None:
        raise OptionError("--annotations says what was shown: without --shown")
    if source.shown is None and source.shown_depth is not None:
        raise OptionError("--shown-depth belongs to --shown")


def refuse_to_replace(target: Path, option: str, inputs: Iterable[Path]) -> None:
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
    for path in inputs:
        if path.exists() and (target.samefile(path) or target.parent.samefile(path)):
            raise OptionError(
                f"{option} {target} would replace what is read from {path}: give another name"
            )


def _name(annotations: Annotations, documents: Path) -> Annotations:
    names = read_file(passages.read_names, documents, wanted=passages.seen_documents(annotations))
    return passages.name_passages(annotations, names, path=str(documents))


_COLUMNS = re.compile(rb'\s*\{\s*"[^"]*"\s*:\s*\{')
_SHOWN = b'"msmarco_label"'


def read_annotations(path: Path, *, texts: bool) -> Annotations:
    """Read the annotations of a file or folder, whose form its content shows.

    Args:
        path: a folder of qrels for each depth, or a file.
        texts: whether texts are stored.

    Raises:
        InputError: code `no-annotations`: nothing there has a known form; or a file has errors.
        SetupError: ijson is needed and not installed.
    """
    if path.is_dir():
        if depth_qrels.has_depth_qrels(path):
            return depth_qrels.read_depth_qrels(path)
        raise _unknown(path, "a folder without them")
    with (
        open_input(path) as file,
        TextReader(file, path=str(path), limits=records.LIMITS) as reader,
    ):
        head = next(reader.pieces(), b"").strip()
    first, _, _ = head.partition(b"\n")
    read = qna.read_qna if _COLUMNS.match(head) else records.read_shown_passages
    if read is records.read_shown_passages and not (head.startswith(b"{") and _SHOWN in first):
        raise _unknown(path, f"a file that begins {show(first)}" if head else "an empty file")
    return read_file(read, path, texts=texts)


def _unknown(path: Path, found: str) -> InputError:
    return InputError.of("no-annotations", str(path), found)
