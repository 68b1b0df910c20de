"""Rows of a campaign's files: one JSON object a line, each of one kind."""

import json
from collections.abc import Callable, Iterable
from io import BytesIO
from typing import BinaryIO, TypeVar

import msgspec

from heldout.errors import Problem
from heldout.trec.problems import ProblemLog, show
from heldout.trec.reading.streams import Limits, TextReader, read_lines

__all__ = ["format_rows", "name_fault", "parse_rows", "read_text"]

_LONGEST = 64 << 20
Row = TypeVar("Row", bound=msgspec.Struct)
Check = Callable[[Row, str, int], Problem | None]
"""Row, path and line -> what is wrong with a row of the right kind."""


def read_text(source: BinaryIO, *, path: str) -> bytes:
    """A file's text to its end: plain, gzip, bzip2 or zstd; lines of up to 64 MiB.

    Raises:
        InputError: those of `TextReader`.
    """
    with TextReader(source, path=path, limits=Limits(line_bytes=_LONGEST)) as reader:
        return b"".join(block.text for block in reader.blocks())


def parse_rows(
    data: bytes, kind: type[Row], *, path: str, check: Check[Row] | None = None
) -> tuple[Row, ...]:
    """The rows of a file, as `read_text` gave its text or as it lies.

    Empty lines are skipped, and an empty file has no row.

    Args:
        data: the text.
        kind: of each row.
        path: for messages.
        check: what is wrong with a row of this kind; called in order.

    Raises:
        InputError: code `bad-row`: the lines that are no JSON object of this kind; what `check`
            finds; and those of `TextReader`.
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
                row = decoder.decode(line)
                json.loads(line, object_pairs_hook=_refuse_repeated)
            except (msgspec.MsgspecError, RecursionError, _RepeatedKeyError) as error:
                log.add(_bad(error, line, path, number, kind))
                continue
            problem = None if check is None else check(row, path, number)
            if problem is None:
                rows.append(row)
            else:
                log.add(problem)
    log.raise_errors()
    return tuple(rows)


def format_rows(rows: Iterable[msgspec.Struct]) -> bytes:
    """One JSON object a line, in the order given; keys in the order of the kind's fields."""
    return b"".join(msgspec.json.encode(row) + b"\n" for row in rows)


def name_fault(names: Iterable[str], *, path: str, line: int) -> Problem | None:
    """The first id that nobody sees whole: control characters, line ends, marks of direction.

    Returns:
        Code `bad-row`; `None` where all can be read.
    """
    hidden = next((name for name in names if not name.isprintable()), None)
    if hidden is None:
        return None
    return Problem(
        code="bad-row",
        path=path,
        line=line,
        found=show(hidden),
        expected="ids of visible characters",
        hint="control characters, line ends and marks of direction are not seen",
    )


class _RepeatedKeyError(ValueError):
    """An object has a key twice: readers differ in which value they take."""


def _refuse_repeated(pairs: list[tuple[str, object]]) -> None:
    """Refuse an object with a key twice, of which the last would silently count.

    Raises:
        _RepeatedKeyError: names the key.
    """
    keys = [key for key, _ in pairs]
    if len(set(keys)) < len(keys):
        key = next(key for key in keys if keys.count(key) > 1)
        raise _RepeatedKeyError(f"the key {show(key)} stands there {keys.count(key)} times")


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
