"""Rows of a campaign's files: one JSON object a line, each of one kind."""

from collections.abc import Iterable
from io import BytesIO
from typing import BinaryIO, TypeVar

import msgspec

from heldout.errors import Problem
from heldout.trec.problems import ProblemLog, show
from heldout.trec.reading.streams import Limits, TextReader, read_lines

__all__ = ["format_rows", "parse_rows", "read_text"]

_LONGEST = 64 << 20
Row = TypeVar("Row", bound=msgspec.Struct)


def read_text(source: BinaryIO, *, path: str) -> bytes:
    """A file's text to its end: plain, gzip, bzip2 or zstd; lines of up to 64 MiB.

    Raises:
        InputError: those of `TextReader`.
    """
    with TextReader(source, path=path, limits=Limits(line_bytes=_LONGEST)) as reader:
        return b"".join(block.text for block in reader.blocks())


def parse_rows(data: bytes, kind: type[Row], *, path: str) -> tuple[Row, ...]:
    """The rows of a file, as `read_text` gave its text or as it lies.

    Empty lines are skipped, and an empty file has no row.

    Raises:
        InputError: code `bad-row`: the lines that are no JSON object of this kind; and those of
            `TextReader`.
    """
    if not data.strip():
        return ()
    limits = Limits(line_bytes=_LONGEST)
    log, rows = ProblemLog(limits.problems), []
    decoder = msgspec.json.Decoder(kind)
    with TextReader(BytesIO(data), path=path, limits=limits) as reader:
        for number, line in read_lines(reader):
            if not line.strip():
                continue
            try:
                rows.append(decoder.decode(line))
            except msgspec.MsgspecError as error:
                log.add(_bad(error, line, path, number, kind))
    log.raise_errors()
    return tuple(rows)


def format_rows(rows: Iterable[msgspec.Struct]) -> bytes:
    """One JSON object a line, in the order given; keys in the order of the kind's fields."""
    return b"".join(msgspec.json.encode(row) + b"\n" for row in rows)


def _bad(error: Exception, line: bytes, path: str, number: int, kind: type) -> Problem:
    fields = ", ".join(field.name for field in msgspec.structs.fields(kind) if field.required)
    return Problem(
        code="bad-row",
        path=path,
        line=number,
        found=show(line),
        expected=f"a JSON object with {fields}",
        hint=str(error),
    )
