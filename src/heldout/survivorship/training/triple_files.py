"""Files of training triples, read, and written again for each condition of a shallower annotation.

A line has query id, positive id, negative id, divided by tabs.
So are the official sequences of MS MARCO (`qidpidtriples.train`), of which the largest have
hundreds of millions of lines. They are read and written as they pass by: read plain, gzip, bzip2 or
zstd, written as gzip. Labels that nobody knows and ids without a text are errors.
"""

import gzip
import io
import os
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import islice
from operator import itemgetter
from pathlib import Path
from typing import Annotated, Any, BinaryIO, NamedTuple

import numpy as np

from heldout.answers.answer import Answer
from heldout.answers.texts import write_table
from heldout.errors import InputError, OptionError, Problem, StoreError, plural
from heldout.files.durable import ASIDE, Folder
from heldout.ids import DocId, QueryId
from heldout.options import Opt, Seed
from heldout.progress_bar import SILENT, Progress
from heldout.survivorship.annotations import Annotations
from heldout.survivorship.reading.records import no_common_document
from heldout.survivorship.reading.source import AnnotationSource, read_source
from heldout.survivorship.training.options import Controls, Negatives, SkipUnknown, Within
from heldout.survivorship.training.triples import (
    ReadTriples,
    SelectedRanks,
    Triple,
    draw_triples,
    make_triples,
    paper_conditions,
    ranks_of,
)
from heldout.trec.reading.sources import open_input, read_file
from heldout.trec.reading.streams import OWN_FILES, Block, Limits, TextReader
from heldout.trec.text import ProblemLog, check_line, is_clean, show
from heldout.trec.tops import read_tops

TRIPLE_LIMITS = Limits(compressed_bytes=1 << 36, bytes=1 << 38, lines=1 << 32)
"""How much of a file of triples is read: 64 GiB received, 256 GiB of text, 4 billion lines."""

_COLUMNS = 3
_BUFFER = 1 << 16
"""Bytes given to a compressor at once: a line at a time takes twice as long."""


class PlacedTriple(NamedTuple):
    """A triple and the line on which it stands, from 1."""

    line: int
    triple: Triple


def read_triples(
    source: BinaryIO, *, path: str, limits: Limits = TRIPLE_LIMITS
) -> Iterator[PlacedTriple]:
    """Read triples one by one; nothing is stored.

    Args:
        source: the bytes of the file: plain, gzip, bzip2 or zstd.
        path: its name for messages.
        limits: how much is read.

    Raises:
        InputError: at the first block with an error, with all errors of that block up to
            `limits.problems`: `wrong-columns`, `same-document` (the positive is the negative),
            `bad-utf8`, `control-character`, and those of `TextReader`. Empty lines and comments
            are passed over.
    """
    with TextReader(source, path=path, limits=limits) as reader:
        for block in reader.blocks():
            log = ProblemLog(limits.problems)
            yield from _rows(block, path, log)
            log.raise_errors()


@contextmanager
def write_triples(path: Path) -> Iterator[Callable[[Triple], object]]:
    """Write a file of triples as they come; it has its name only when it is whole.

    Args:
        path: replaced where it exists, compressed by gzip. Its folder is made where it is
            missing.

    Yields:
        To be called with each triple.

    Raises:
        OSError: the file cannot be written; one of this name that was there stays.
    """
    folder, aside = Folder(path.parent), f"{ASIDE}{secrets.token_hex(8)}"
    folder.make_folder()
    try:
        with folder.create(aside) as file:
            # No time of day and no name in the archive: equal triples give equal bytes.
            packed = io.BufferedWriter(gzip.GzipFile("", "wb", 6, file, mtime=0), _BUFFER)
            yield lambda triple: packed.write("\t".join(triple).encode() + b"\n")
            packed.close()
            file.flush()
            os.fsync(file.fileno())
        folder.rename(aside, path.name)
    except BaseException:
        folder.delete(aside)
        raise


def _rows(block: Block, path: str, log: ProblemLog) -> Iterator[PlacedTriple]:
    """The triples of a block, as far as none of its lines has a problem."""
    clean = is_clean(block.text)
    for number, line in enumerate(block.text[:-1].split(b"\n"), start=block.line):
        columns = line.split()
        usual = clean and len(columns) == _COLUMNS and not line.startswith(b"#")
        problem = None if usual else check_line(line, path=path, number=number)
        found = expected = hint = ""
        if len(columns) != _COLUMNS:
            code, found = "wrong-columns", f"{len(columns)} columns in {show(line)}"
            expected = "3 columns: query id, id of the positive, id of the negative"
            hint = "triples of texts are not read: take the file of ids"
        elif columns[1] == columns[2]:
            code, found = "same-document", f"{show(columns[1])} as positive and as negative"
            expected = "two documents"
        if problem is None and found:
            problem = Problem.of(code, path, line=number, found=found, expected=expected, hint=hint)
        if problem is not None:
            log.add(problem)
        elif not log.errors:
            query, positive, negative = line.decode().split()
            yield PlacedTriple(number, Triple(QueryId(query), DocId(positive), DocId(negative)))


_MOST = 20


@dataclass(slots=True)
class Unknown:
    """Triples whose positive the annotations do not know, counted while they pass by.

    Attributes:
        triples: how many.
        first: the first of them with its line, `None` where there is none.
    """

    triples: int = 0
    first: PlacedTriple | None = None

    def __str__(self) -> str:
        return f"{plural(self.triples, 'triple')} with positives that the annotations do not know"


def read_known_triples(
    path: Path, selected: SelectedRanks, unknown: Unknown | None
) -> Iterator[Triple]:
    """The triples of a file whose positive the annotations know, from its beginning.

    Args:
        path: the file.
        selected: where selected documents were shown.
        unknown: gets the count of the others at the end of the file; `None` where there may be
            none.

    Raises:
        InputError: code `unknown-positive`, at the first of them, where there may be none; and as
            `read_triples`.
    """
    counted = Unknown()
    with open_input(path) as file:
        for row in read_triples(file, path=str(path)):
            if row.triple.positive in selected.get(row.triple.query, ()):
                yield row.triple
            elif unknown is None:
                raise InputError(_unknown(row, selected, str(path)))
            else:
                counted.triples += 1
                counted.first = counted.first or row
    if unknown is not None:
        unknown.triples, unknown.first = counted.triples, counted.first


def triples_with_texts(
    triples: Iterable[Triple],
    queries: Mapping[QueryId, str],
    documents: Mapping[DocId, str],
    *,
    path: str,
) -> Iterator[Triple]:
    """The triples, each of whose ids has a text, in their order.

    Args:
        triples: in any number.
        queries: texts of queries.
        documents: texts of documents.
        path: where the triples come from, for messages.

    Raises:
        InputError: code `triple-without-text`, with up to twenty ids: behind the twentieth, or at
            the end.
    """
    missing: dict[tuple[str, str], None] = {}
    for triple in triples:
        query, positive, negative = triple
        if query in queries and positive in documents and negative in documents:
            yield triple
            continue
        missing |= {("query", query): None} if query not in queries else {}
        missing |= {("document", one): None for one in (positive, negative) if one not in documents}
        if len(missing) >= _MOST:
            break
    if missing:
        raise InputError(
            Problem.of("triple-without-text", path, kind=kind, name=show(name))
            for kind, name in islice(missing, _MOST)
        )


def _unknown(row: PlacedTriple, selected: SelectedRanks, path: str) -> Problem:
    query, positive, _ = row.triple
    of = "which annotators did not select"
    if query not in selected:
        of = "a query without labels in the annotations"
    found = f"positive {show(positive)} of query {show(query)}, {of}"
    return Problem.of("unknown-positive", path, found, line=row.line)


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
    selected = ranks_of(annotations)
    unknown = Unknown()
    if sequence is not None:
        read: ReadTriples = partial(
            read_known_triples, sequence, selected, unknown if options.skip_unknown else None
        )
    else:
        ranked = _read_tops(origin, annotations, depth=options.negatives_from)
        rng = np.random.default_rng(options.seed)
        read = make_triples(selected, ranked, negatives=options.negatives, rng=rng).__iter__
    conditions = paper_conditions(options.within, controls=options.controls)
    paths = {one: options.out / f"{one.folder}.tsv.gz" for one in conditions}
    try:
        with Folder(options.out).lock(".lock"), ExitStack() as files:
            Folder(options.out).sweep("")
            draws, whole = draw_triples(
                read,
                selected,
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
    tops = read_file(read_tops, run, depth=_MOST_DEPTH, limits=OWN_FILES)
    known = {one.query: {*one.shown, *one.selected} for one in annotations.records}
    if not any(known.get(QueryId(query), set()) & set(docs) for query, docs in tops.items()):
        raise no_common_document(annotations, str(run))
    return {QueryId(query): tuple(map(DocId, docs[:depth])) for query, docs in tops.items()}


def _answer(source: str, files: Sequence[Mapping[str, Any]], unknown: Unknown) -> Answer:
    """Say where the files are, how much each condition has, and what could not be used."""
    shown = itemgetter("condition", "triples", "left_out", "labels", "queries")
    table = write_table("trainings.triples", tuple(map(shown, files)), source=source, files=files)
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
