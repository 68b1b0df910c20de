"""What can go wrong, as values and exceptions.

    HeldoutError            everything we raise on purpose; never a bug
    +-- InputError          somebody's file is wrong: one or many `Problem`s
    +-- TrustError          a sealed file is not what it claims; says nothing more
    +-- OptionError         options that do not go together, or one that is missing
    +-- SetupError          something is not installed or not configured; says what to do
    +-- StoreError          a board, vault or forge is damaged, locked, missing or refuses
        +-- PushError       what was sent did not arrive; send it again
        +-- DatabaseError   the database refused or is gone (`heldout.database.errors`)
        +-- TooMuchError    git ended at one of its bounds (`heldout.board.store.git`)

A policy's refusal is a value (a finding), not an exception. Bugs stay plain exceptions.
"""

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

Severity = Literal["error", "note"]
"""`error`: the input cannot be used as it is. `note`: it can, and this is how it was read."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing found in somebody's input, with its location.

    Attributes:
        code: short kebab-case name, listed in docs/reference/errors.md.
        path: the file (and field, as in `metadata.json:paper`) as its owner knows it.
        found: what stands there; quoted input is cut and has no control characters.
        expected: what should stand there.
        hint: what to do about it; may be empty.
        line: 1-based line in the decompressed text, `None` where a line means nothing.
        severity: `error` or `note`.
    """

    code: str
    path: str
    found: str
    expected: str
    hint: str = ""
    line: int | None = None
    severity: Severity = "error"

    @property
    def location(self) -> str:
        """The path, followed by the line if there is one."""
        return self.path if self.line is None else f"{self.path}:{self.line}"

    @classmethod
    def of(
        cls,
        code: str,
        path: str,
        found: str = "",
        expected: str = "",
        hint: str = "",
        *,
        line: int | None = None,
        **words: Any,
    ) -> "Problem":
        """The problem of a code, whose texts messages.toml has unless they are given here.

        Args:
            code: as it is.
            path: as it is.
            found: "" for what messages.toml has.
            expected: the same; where it is given, nothing is looked up.
            hint: the same.
            line: as it is.
            words: for the braces in its texts.
        """
        severity: Severity = "error"
        if not expected:
            row = _read_messages()[code]
            found = found or row["found"].format(**words)
            expected = row["expected"].format(**words)
            hint = hint or row.get("hint", "").format(**words)
            severity = "note" if row.get("severity") == "note" else "error"
        return cls(code, path, found, expected, hint, line, severity)

    def __str__(self) -> str:
        text = f"{self.severity} {self.code} {self.location}: found {self.found}; "
        text += f"expected {self.expected}"
        return f"{text}; {self.hint}" if self.hint else text


@cache
def _read_messages() -> Mapping[str, Mapping[str, str]]:
    return tomllib.loads(Path(__file__).with_name("messages.toml").read_text("utf-8"))


class HeldoutError(Exception):
    """Base of everything raised on purpose; a user sees its text, never a traceback.

    Attributes:
        status: exit code of a command that it ends.
        code: short kebab-case name, listed in docs/reference/errors.md; "" where it has none.
    """

    status = 2
    code: str = ""


class InputError(HeldoutError):
    """The user's input is wrong.

    Attributes:
        code: of the first problem.
        problems: at least one `Problem`, in the order of their lines.
        counts: how many there are of each code, where not all are among the problems.
    """

    def __init__(
        self,
        problems: Problem | Iterable[Problem],
        *,
        counts: Mapping[str, int] | None = None,
    ) -> None:
        self.counts: Mapping[str, int] = counts or {}
        self.problems: tuple[Problem, ...] = (
            (problems,) if isinstance(problems, Problem) else tuple(problems)
        )
        self.code = self.problems[0].code if self.problems else ""
        super().__init__("\n".join(str(problem) for problem in self.problems))

    @classmethod
    def of(
        cls,
        code: str,
        path: str,
        found: str = "",
        expected: str = "",
        hint: str = "",
        *,
        line: int | None = None,
        **words: Any,
    ) -> "InputError":
        """The error of one problem; the arguments are those of `Problem.of`."""
        return cls(Problem.of(code, path, found, expected, hint, line=line, **words))


class TrustError(HeldoutError):
    """A sealed file cannot be trusted. One terse text for every cause, so it is no oracle."""

    def __init__(self) -> None:
        super().__init__("this submission cannot be opened")


class OptionError(HeldoutError):
    """What was asked for does not go together, or lacks something; the text names the options."""


class SetupError(HeldoutError):
    """Something is not installed or not set up; the text says which command repairs it."""


class StoreError(HeldoutError):
    """A board, vault or forge is damaged, locked, missing, or refuses."""

    def __init__(self, text: str = "", *, code: str = "") -> None:
        self.code = code
        super().__init__(text)


class PushError(StoreError):
    """A remote did not take what was sent; it is there to be sent again."""

    status = 1


def plural(count: int, one: str, many: str | None = None) -> str:
    """`1 query`, `1,050 queries`."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def printable(text: str) -> str:
    r"""The text with `\x1b`-like escapes for all that a terminal would obey or nobody would see."""
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text)


def quote(value: object, *, limit: int = 100) -> str:
    """Somebody's value for a message: text in double quotes, cut, and safe for a terminal.

    Args:
        value: text, or anything else that came out of somebody's file.
        limit: most characters shown.
    """
    text = value if isinstance(value, str) else repr(value)
    cut = text if len(text) <= limit else text[: limit - 1] + "…"
    return f'"{printable(cut)}"' if isinstance(value, str) else printable(cut)
