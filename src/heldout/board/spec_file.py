"""board.toml, read into a `BoardSpec`; a wrong one gets an error with its line."""

import re
import tomllib
from collections.abc import Mapping

import msgspec

from heldout.board.spec import BoardSpec
from heldout.board.spec_checks import Wrong, check_spec
from heldout.board.tables import Mistake, check_table
from heldout.errors import InputError, Problem, quote

__all__ = ["parse_spec"]


def parse_spec(data: bytes, *, path: str = "board.toml") -> BoardSpec:
    """Read a board.toml.

    Raises:
        InputError: with the line of every mistake that could be told apart.
    """
    lines = data.decode("utf-8", errors="replace").splitlines()
    try:
        table = tomllib.loads(data.decode("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(_syntax_problem(error, lines, path)) from None
    mistakes = list(check_table(table, BoardSpec))
    if not mistakes:
        spec = msgspec.convert(table, BoardSpec, strict=True)
        mistakes = [_tell(mistake) for mistake in check_spec(spec)]
    if mistakes:
        raise InputError(_place(mistake, lines, path) for mistake in mistakes)
    return spec


def _tell(wrong: Wrong) -> Mistake:
    key, value, expected, hint = wrong
    return (key, f"{key} = {quote(value)}", expected, hint)


def _place(mistake: Mistake, lines: list[str], path: str) -> Problem:
    key, found, expected, hint = mistake
    return Problem(
        code="board-spec",
        path=path,
        line=_find_line(key, lines),
        found=found,
        expected=expected,
        hint=hint,
    )


def _syntax_problem(error: Exception, lines: list[str], path: str) -> Problem:
    line = max(1, len(lines))
    if isinstance(error, UnicodeDecodeError):
        line = error.object[: error.start].count(b"\n") + 1
    elif where := re.search(r"at line (\d+)", str(error)):
        line = int(where[1])
    return Problem(
        code="not-toml",
        path=path,
        line=line,
        found="a byte that is not UTF-8"
        if isinstance(error, UnicodeDecodeError)
        else re.sub(r" \(at [^()]*\)$", "", str(error)),
        expected="a TOML file in UTF-8",
        hint="text stands in quotes, lists in brackets; a table begins with [name]",
    )


def _find_line(key: str, lines: list[str]) -> int | None:
    """The line of a key path such as `views[1].set`; of its table where the key is absent."""
    best = None
    for place, number in _key_lines(lines).items():
        if key == place:
            return number
        if key.startswith((f"{place}.", f"{place}[")):
            best = number
    return best


def _key_lines(lines: list[str]) -> Mapping[str, int]:
    """Key path -> line, for the plain layout that people write: headers and `key = value`."""
    found: dict[str, int] = {}
    counts: dict[str, int] = {}
    table = ""
    for number, line in enumerate(lines, 1):
        if many := re.match(r"\s*\[\[\s*([\w.-]+)\s*\]\]", line):
            index = counts.get(many[1], 0)
            counts[many[1]] = index + 1
            table = f"{many[1]}[{index}]"
            found[table] = number
        elif one := re.match(r"\s*\[\s*([\w.-]+)\s*\]", line):
            table = one[1]
            found[table] = number
        elif pair := re.match(r"\s*([\w.-]+)\s*=", line):
            found.setdefault(f"{table}.{pair[1]}".strip("."), number)
    return found
