"""board.toml, read into a `BoardSpec`; a wrong one gets an error with its line."""

import re
import tomllib
from codecs import BOM_UTF8
from collections.abc import Iterable, Mapping
from functools import lru_cache
from itertools import islice

import msgspec

from heldout.board.log.history import MOST_BYTES, MOST_DOTS
from heldout.board.rules.spec import BoardSpec
from heldout.board.rules.spec_checks import Wrong, check_spec
from heldout.board.rules.tables import Mistake, check_table
from heldout.errors import InputError, Problem, quote

__all__ = ["parse_spec", "refuse_spec"]


_LONGEST_LINE = 3_000  # no number in it has more digits than Python turns into text
_MOST_MISTAKES = 50


@lru_cache(maxsize=16)
def parse_spec(data: bytes, *, path: str = "board.toml") -> BoardSpec:
    """Read a board.toml.

    One from a log may be an enemy's: nothing in it takes long to refuse. The same bytes are asked
    for at each step of a call, and read once; the answer is never changed by anybody.

    Raises:
        InputError: with the line of every mistake that could be told apart, of 50 at most.
    """
    lines = data[:MOST_BYTES].decode("utf-8", errors="replace").splitlines()
    _check_size(data, lines, path)
    try:
        table = tomllib.loads(data.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise InputError(_syntax_problem(error, lines, path)) from None
    mistakes = list(islice(check_table(table, BoardSpec), _MOST_MISTAKES))
    if not mistakes:
        spec = msgspec.convert(table, BoardSpec, strict=True)
        mistakes = [_tell(mistake) for mistake in islice(check_spec(spec), _MOST_MISTAKES)]
    if mistakes:
        raise InputError(_place(mistake, lines, path) for mistake in mistakes)
    return spec


def _check_size(data: bytes, lines: list[str], path: str) -> None:
    if data.startswith(BOM_UTF8):
        found, expected = "a byte order mark before the first word", "UTF-8 without one"
        hint = "save it as UTF-8, not as UTF-8 with BOM"
        raise InputError(
            Problem(code="not-toml", path=path, line=1, found=found, expected=expected, hint=hint)
        )
    if len(data) > MOST_BYTES:
        found, expected = f"{len(data):,} bytes", f"at most {MOST_BYTES:,} bytes"
        raise InputError(Problem(code="too-large", path=path, found=found, expected=expected))
    for number, line in enumerate(lines, 1):
        if len(line) > _LONGEST_LINE or line.count(".") > MOST_DOTS:
            found = f"{len(line):,} characters, {line.count('.'):,} of them dots"
            expected = f"a line of at most {_LONGEST_LINE:,} and {MOST_DOTS}"
            raise InputError(
                Problem(code="too-large", path=path, line=number, found=found, expected=expected)
            )


def refuse_spec(wrong: Iterable[Wrong], text: str, *, path: str = "board.toml") -> None:
    """Refuse a board.toml that is right by itself, and does not fit what happened before.

    Args:
        wrong: what does not fit.
        text: the file.
        path: its name.

    Raises:
        InputError: with the line of everything that does not fit; where there is anything.
    """
    lines = text.splitlines()
    problems = [_place(_tell(one), lines, path) for one in wrong]
    if problems:
        raise InputError(problems)


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
    found = re.sub(r" \(at [^()]*\)$", "", str(error))
    if isinstance(error, RecursionError):
        found = "brackets within brackets, too many to read"
    elif isinstance(error, UnicodeDecodeError):
        found = "a byte that is not UTF-8"
        line = error.object[: error.start].count(b"\n") + 1
    elif where := re.search(r"at line (\d+)", str(error)):
        line = int(where[1])
    return Problem(
        code="not-toml",
        path=path,
        line=line,
        found=found,
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
