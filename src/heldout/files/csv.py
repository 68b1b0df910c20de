"""CSV as spreadsheets and platforms exchange it, written so that no cell is taken for a formula."""

import csv
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from io import StringIO

from heldout.errors import InputError, Problem, quote

_SIGNS = r"=+\-@\uff1d\uff0b\uff0d\uff20"
_AT_START = rf"""(?='|[\s"]*[{_SIGNS}\t\r\n])"""
_LATER = rf"""(?='|(?:[^\S\t\r\n]|")*[{_SIGNS}])"""
_FORMULA = re.compile(rf"\A{_AT_START}|(?<=[;\t\r\n]){_LATER}")
_DEFUSED = re.compile(rf"\A'{_AT_START}|(?<=[;\t\r\n])'{_LATER}")
_MOST_BYTES = 256 << 20
_LONGEST_CELL = 64 << 20
_SHOWN = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class CsvRow:
    """A row below the header.

    Attributes:
        line: of the file that it ends on, from 1.
        cells: by the name of the column.
    """

    line: int
    cells: Mapping[str, str]


def defuse(text: str) -> str:
    """A cell that no spreadsheet takes for a formula: an apostrophe goes before a dangerous one.

    A program that parts cells otherwise begins one after a semicolon, a tab or a line's end, with
    or without quotes before it: an apostrophe goes there too. Where one stands already there are
    two then, so that each text has a cell of its own: `restore` has the text again.

    Source: OWASP, "CSV Injection": `=`, `+`, `-`, `@`, tab and carriage return start a formula;
    so do the full-width forms of the signs in some programs.
    """
    return _FORMULA.sub("'", text)


def restore(cell: str) -> str:
    """The text that `defuse` made a cell of; another cell stays as it is."""
    return _DEFUSED.sub("", cell)


def format_csv(header: Iterable[object], rows: Iterable[Iterable[object]]) -> bytes:
    """A header and rows by RFC 4180, UTF-8, with CRLF; the cells as they are."""
    buffer = StringIO(newline="")
    writer = csv.writer(buffer, lineterminator="\r\n")
    writer.writerow(header)
    writer.writerows(rows)
    return buffer.getvalue().encode()


def parse_csv(data: bytes, *, path: str, needed: Sequence[str]) -> tuple[CsvRow, ...]:
    """The rows of a file with a header; blank lines are skipped.

    Args:
        data: the file, UTF-8, with or without a byte order mark.
        path: its name, for errors.
        needed: columns that have to be there.

    Raises:
        InputError: codes `bad-utf8`, `broken-csv`, `empty-file`, `too-large`; `wrong-columns`: one
            is missing, or there twice, or a row has more or fewer cells than the header.
    """
    reader = csv.reader(StringIO(_decode(data, path), newline=""), strict=True)
    before = csv.field_size_limit(_LONGEST_CELL)
    try:
        records = [(reader.line_num, cells) for cells in reader if cells]
    except csv.Error as error:
        raise InputError.of("broken-csv", path, str(error), line=reader.line_num) from None
    finally:
        csv.field_size_limit(before)
    if not records:
        raise InputError.of("empty-file", path)
    (line, header), *rest = records
    _check_header(header, needed, path, line)
    wrong = [(number, cells) for number, cells in rest if len(cells) != len(header)]
    if wrong:
        expected = f"{len(header)}, as in the header"
        raise InputError(
            [
                Problem("wrong-columns", path, f"{len(cells)} cells", expected, line=number)
                for number, cells in wrong[:_SHOWN]
            ],
            counts={"wrong-columns": len(wrong)},
        )
    return tuple(
        CsvRow(line=number, cells=dict(zip(header, cells, strict=True))) for number, cells in rest
    )


def _decode(data: bytes, path: str) -> str:
    if len(data) > _MOST_BYTES:
        raise InputError.of("too-large", path, f"{len(data):,} bytes", f"at most {_MOST_BYTES:,}")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InputError.of("bad-utf8", path, "bytes that are not UTF-8", line=line) from None


def _check_header(header: Sequence[str], needed: Sequence[str], path: str, line: int) -> None:
    missing = [name for name in needed if name not in header]
    if missing:
        found = f"no column {', '.join(map(quote, missing[:_SHOWN]))}"
        raise InputError.of("wrong-columns", path, found, ", ".join(needed), line=line)
    twice = {name for name in header if header.count(name) > 1}
    if twice:
        found = f"{quote(min(twice))} twice"
        raise InputError.of("wrong-columns", path, found, "each column once", line=line)
