"""The CSV dialect of the MS MARCO leaderboards.

It is not RFC 4180: a quote inside a quoted cell is written as a backslash and a quote, and a
backslash before anything else is a backslash. That is how the boards' own script wrote the cells,
so a cell may not end in a backslash. Cells with and without quotes mean the same.
"""

import csv
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from io import StringIO

from heldout.errors import InputError, Problem

__all__ = ["Record", "read_records"]

_MOST_BYTES = 4 << 20
_MOST_ROWS = 2000


@dataclass(frozen=True, slots=True)
class Record:
    """A row of cells, and the line of the file that it begins on, from 1."""

    line: int
    cells: tuple[str, ...]


def read_records(data: bytes, *, path: str) -> tuple[Record, ...]:
    """The header and at least one row, all of one width; blank lines are skipped.

    Args:
        data: the file's bytes; a byte order mark before them is left out.
        path: its name, for errors.

    Raises:
        InputError: `bad-utf8`, `broken-csv`, `wrong-columns`, `empty-file`, `too-large`, with lines
            where there are any.
    """
    records = _split(_decode(data, path), path)
    problems = list(_check_widths(records, path))
    if problems:
        raise InputError(problems)
    return tuple(records)


def _decode(data: bytes, path: str) -> str:
    if len(data) > _MOST_BYTES:
        found, most = f"{len(data):,} bytes", f"at most {_MOST_BYTES:,}"
        raise InputError(Problem(code="too-large", path=path, found=found, expected=most))
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(
            Problem(
                code="bad-utf8",
                path=path,
                line=data.count(b"\n", 0, error.start) + 1,
                found="bytes that are not UTF-8",
                expected="UTF-8",
            )
        ) from None


def _split(text: str, path: str) -> list[Record]:
    # The csv module takes every backslash for an escape; here only one before a quote is.
    plain = re.sub(r'\\(?!")', r"\\\\", text)
    reader = csv.reader(StringIO(plain, newline=""), escapechar="\\", strict=True)
    records, line = [], 1
    try:
        for cells in reader:
            if cells:
                records.append(Record(line, tuple(cells)))
            line = reader.line_num + 1
    except csv.Error as error:
        raise InputError(
            Problem(
                code="broken-csv",
                path=path,
                line=line,
                found=f"a row that does not end as it began ({error})",
                expected='cells that hold a comma in quotes, a quote in them as \\"',
            )
        ) from None
    if not 1 < len(records) <= _MOST_ROWS + 1:
        code = "too-large" if records else "empty-file"
        found = f"{max(0, len(records) - 1):,} rows below a header"
        expected = f"1 to {_MOST_ROWS:,} rows"
        raise InputError(Problem(code=code, path=path, found=found, expected=expected))
    return records


def _check_widths(records: Sequence[Record], path: str) -> Iterator[Problem]:
    width = len(records[0].cells)
    for record in records:
        if len(record.cells) != width:
            yield Problem(
                code="wrong-columns",
                path=path,
                line=record.line,
                found=f"{len(record.cells)} cells",
                expected=f"{width}, as in the header",
            )
