"""Reads who sent which system and when, for scores that do not come from a board."""

import csv
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, time
from io import StringIO

from heldout.errors import InputError, Problem
from heldout.validity.entries import BoardEntry

__all__ = ["parse_entries"]

_NEEDED = ("id", "date")
_OPTIONAL = ("team", "institution", "description", "baseline")
_BASELINE = {"": False, "no": False, "yes": True}


def parse_entries(
    text: str, *, path: str, systems: Sequence[str] | None = None
) -> tuple[BoardEntry, ...]:
    """Read a CSV table with a row for each system.

    Its header names `id` and `date`, and may name `team`, `institution`, `description` and
    `baseline`; other columns are left alone. A date is a day as yyyy-mm-dd, `baseline` is `yes`,
    `no` or empty.

    Args:
        text: the file's text.
        path: its name, for errors.
        systems: every system that must have a row; others are left out.

    Returns:
        Entries by day; those of one day as they stand in the table.

    Raises:
        InputError: all problems at once, with their lines. Codes `entries-syntax`,
            `entries-header`, `entries-columns`, `entries-date`, `entries-baseline`,
            `entries-repeated`, `entries-missing`.
    """
    reader = csv.reader(StringIO(text, newline=""), strict=True)
    try:
        rows = [(reader.line_num, row) for row in reader if row]
    except csv.Error as error:
        raise InputError(
            _problem("entries-syntax", path, reader.line_num, str(error), "a CSV table")
        ) from error
    header = [cell.strip().lower() for cell in rows[0][1]] if rows else []
    body = [(line, [cell.strip() for cell in row]) for line, row in rows[1:]]
    problems = [*_check_header(header, path)]
    if not problems:
        problems = [*_check_rows(header, body, path), *_check_systems(header, body, path, systems)]
    if problems:
        raise InputError(problems)
    entries = (_as_entry(dict(zip(header, row, strict=True))) for _, row in body)
    chosen = [entry for entry in entries if systems is None or entry.id in systems]
    return tuple(sorted(chosen, key=lambda entry: entry.received))


def _as_entry(cells: Mapping[str, str]) -> BoardEntry:
    return BoardEntry(
        id=cells["id"],
        received=datetime.combine(date.fromisoformat(cells["date"]), time(), UTC),
        description=cells.get("description", ""),
        team=cells.get("team", ""),
        institution=cells.get("institution", ""),
        baseline=_BASELINE[cells.get("baseline", "").lower()],
    )


def _check_header(header: Sequence[str], path: str) -> Iterator[Problem]:
    known = [name for name in header if name in (*_NEEDED, *_OPTIONAL)]
    if not set(_NEEDED) <= set(header) or len(set(known)) < len(known):
        found = repr(",".join(header)[:100])
        expected = f"{' and '.join(_NEEDED)}, and once each {', '.join(_OPTIONAL)} if you like"
        yield _problem("entries-header", path, 1, found, expected)


def _check_rows(
    header: Sequence[str], body: Sequence[tuple[int, Sequence[str]]], path: str
) -> Iterator[Problem]:
    seen: dict[str, int] = {}
    for line, row in body:
        if len(row) != len(header):
            expected = f"{len(header)}, as in the header"
            yield _problem("entries-columns", path, line, f"{len(row)} columns", expected)
            continue
        cells = dict(zip(header, row, strict=True))
        if not _is_day(cells["date"]):
            yield _problem(
                "entries-date", path, line, repr(cells["date"][:100]), "a day as yyyy-mm-dd"
            )
        if cells.get("baseline", "").lower() not in _BASELINE:
            found = repr(cells["baseline"][:100])
            yield _problem("entries-baseline", path, line, found, "yes, no or nothing")
        if cells["id"] in seen:
            found = f"{cells['id'][:100]!r} again, first on line {seen[cells['id']]}"
            yield _problem("entries-repeated", path, line, found, "each system once")
        seen.setdefault(cells["id"], line)


def _check_systems(
    header: Sequence[str],
    body: Sequence[tuple[int, Sequence[str]]],
    path: str,
    systems: Sequence[str] | None,
) -> Iterator[Problem]:
    at = header.index("id")
    named = {row[at] for _, row in body if len(row) > at}
    lacking = [system for system in systems or () if system not in named]
    if lacking:
        found = f"no row for {', '.join(lacking[:3])}"
        found += f" and {len(lacking) - 3} more" if len(lacking) > 3 else ""  # noqa: PLR2004 - as shown
        yield _problem("entries-missing", path, None, found, "a row for each system with scores")


def _is_day(text: str) -> bool:
    try:
        return date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False


def _problem(code: str, path: str, line: int | None, found: str, expected: str) -> Problem:
    return Problem(code=code, path=path, line=line, found=found, expected=expected)
