"""Files of training triples: query id, positive id, negative id, divided by tabs.

So are the official sequences of MS MARCO (`qidpidtriples.train`), of which the largest have
hundreds of millions of lines. They are read and written as they pass by, plain, gzip or bzip2;
what is read may be zstd too.
"""

import bz2
import gzip
import io
import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, BinaryIO, NamedTuple

from heldout.errors import Problem
from heldout.ids import DocId, QueryId
from heldout.survivorship.training.triples import Triple
from heldout.trec.problems import ProblemLog, show
from heldout.trec.reading.streams import Block, Limits, TextReader
from heldout.trec.text import check_line, is_clean, is_regular

__all__ = ["TRIPLE_LIMITS", "PlacedTriple", "read_triples", "write_triples"]

TRIPLE_LIMITS = Limits(compressed_bytes=1 << 36, bytes=1 << 38, lines=1 << 32)
"""How much of a file of triples is read: 64 GiB received, 256 GiB of text, 4 billion lines."""

_COLUMNS = 3
_ASIDE = ".writing-"
"""What the names of files begin with that are being written, as in `store.files`."""
_BUFFER = 1 << 16
"""Bytes given to a compressor at once: a line at a time takes twice as long."""

_OPENERS: dict[str, Callable[[Any], IO[bytes]]] = {
    # No time of day and no name in the archive: equal triples give equal bytes.
    ".gz": lambda file: io.BufferedWriter(gzip.GzipFile("", "wb", 6, file, mtime=0), _BUFFER),
    ".bz2": lambda file: io.BufferedWriter(bz2.BZ2File(file, "wb"), _BUFFER),
}


class PlacedTriple(NamedTuple):
    """A triple and the line on which it stands, from 1."""

    line: int
    triple: Triple


def read_triples(
    source: BinaryIO, *, path: str, limits: Limits = TRIPLE_LIMITS
) -> Iterator[PlacedTriple]:
    """Read triples one by one; nothing is kept.

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
            rows = _usual_rows(block) or _checked_rows(block, path, log)
            yield from _without_same(rows, path, log)
            log.raise_errors()


@contextmanager
def write_triples(path: Path) -> Iterator[Callable[[Triple], None]]:
    """Write a file of triples as they come; it has its name only when it is whole.

    Args:
        path: replaced where it exists; a name in `.gz` or `.bz2` compresses it. Its folder is
            made where it is missing.

    Yields:
        To be called with each triple.

    Raises:
        OSError: the file cannot be written; one of this name that was there is kept.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=_ASIDE)
    opener = _OPENERS.get(path.suffix)
    try:
        with os.fdopen(handle, "wb") as file:
            packed = opener(file) if opener else file
            yield lambda triple: _write(packed, triple)
            if packed is not file:
                packed.close()
            file.flush()
            os.fchmod(file.fileno(), 0o644)
            os.fsync(file.fileno())
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _write(file: IO[bytes], triple: Triple) -> None:
    file.write("\t".join(triple).encode() + b"\n")


def _usual_rows(block: Block) -> Sequence[PlacedTriple] | None:
    """The block's triples; `None` if any line may have to be told about."""
    text = block.text
    if not is_clean(text):
        return None
    words = text.decode().split()
    if not is_regular(text, block.ends, len(words), _COLUMNS):
        return None
    columns = (words[start::_COLUMNS] for start in range(_COLUMNS))
    return [
        PlacedTriple(line, Triple(QueryId(query), DocId(positive), DocId(negative)))
        for line, (query, positive, negative) in enumerate(
            zip(*columns, strict=True), start=block.line
        )
    ]


def _checked_rows(block: Block, path: str, log: ProblemLog) -> Sequence[PlacedTriple]:
    found = []
    for number, line in enumerate(block.text[:-1].split(b"\n"), start=block.line):
        problem = check_line(line, path=path, number=number)
        columns = line.split()
        if problem is None and len(columns) != _COLUMNS:
            problem = Problem(
                code="wrong-columns",
                path=path,
                line=number,
                found=f"{len(columns)} columns in {show(line)}",
                expected="3 columns: query id, id of the positive, id of the negative",
                hint="triples of texts are not read: take the file of ids",
            )
        if problem is None:
            query, positive, negative = (column.decode() for column in columns)
            triple = Triple(QueryId(query), DocId(positive), DocId(negative))
            found.append(PlacedTriple(number, triple))
        else:
            log.add(problem)
    return found


def _without_same(
    rows: Sequence[PlacedTriple], path: str, log: ProblemLog
) -> Iterator[PlacedTriple]:
    for row in rows:
        if row.triple.positive == row.triple.negative:
            log.add(
                Problem(
                    code="same-document",
                    path=path,
                    line=row.line,
                    found=f"{show(row.triple.positive)} as positive and as negative",
                    expected="two documents",
                )
            )
        elif not log.errors:
            yield row
