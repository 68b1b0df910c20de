"""Options of a test: what each may be, and what is used where none is given."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from heldout.errors import InputError, Problem, quote

__all__ = ["Option", "check_options", "choice", "count", "number", "switch"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """An option.

    Attributes:
        default: its value where none is given; `None` where one must be.
        meaning: what it does, in a few words.
        expected: what it may be, in words.
        allows: whether it may be this.
    """

    default: object
    meaning: str
    expected: str
    allows: Callable[[object], bool]


def choice(*words: str, meaning: str) -> Option:
    """One of some words; the first is the default."""
    return Option(
        default=words[0], meaning=meaning, expected=" or ".join(words), allows=words.__contains__
    )


def switch(*, default: bool, meaning: str) -> Option:
    """On or off."""
    return Option(
        default=default,
        meaning=meaning,
        expected="True or False",
        allows=lambda value: isinstance(value, bool),
    )


def number(
    *, default: float | None, meaning: str, expected: str, allows: Callable[[float], bool]
) -> Option:
    """A finite number."""
    return Option(
        default=default,
        meaning=meaning,
        expected=expected,
        allows=lambda value: (
            isinstance(value, int | float)
            and not isinstance(value, bool)
            and math.isfinite(value)
            and allows(value)
        ),
    )


def count(*, default: int, meaning: str) -> Option:
    """A whole number from 1."""
    return Option(
        default=default,
        meaning=meaning,
        expected="a whole number from 1",
        allows=lambda value: isinstance(value, int) and not isinstance(value, bool) and value > 0,
    )


def check_options(
    given: Mapping[str, object], options: Mapping[str, Option], *, test: str
) -> dict[str, object]:
    """All options of a test with their values, in the table's order.

    Args:
        given: those that were given.
        options: those that the test has.
        test: its name.

    Raises:
        InputError: all problems at once. Code `test-option`.
    """
    problems = [
        _problem(test, f"the option {quote(name)}", f"one of {', '.join(options) or 'none'}")
        for name in given
        if name not in options
    ]
    values = {name: given.get(name, option.default) for name, option in options.items()}
    for name, value in values.items():
        if not options[name].allows(value):
            found = f"{name} {quote(value)}" if name in given else f"no {name}"
            problems.append(_problem(test, found, options[name].expected))
    if problems:
        raise InputError(problems)
    return values


def _problem(test: str, found: str, expected: str) -> Problem:
    return Problem(
        code="test-option",
        path=f"test {test}",
        found=found,
        expected=expected,
        hint="see the test's options in docs/tests.md",
    )
