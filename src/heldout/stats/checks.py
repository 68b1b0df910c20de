"""What a test is given, checked before it is run."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from heldout.errors import InputError, Problem, quote
from heldout.stats.result import Alternative, Ask

__all__ = ["check_ask", "check_scores", "problem_of"]

_LARGEST = 1e50  # squares of squares are finite too


def check_scores(scores: ArrayLike, system: str) -> NDArray[np.float64]:
    """Scores as an array that every test can use.

    Args:
        scores: one dimension.
        system: whose they are, for errors.

    Raises:
        InputError: code `not-finite`.
        ValueError: there is more than one dimension.
    """
    values = np.asarray(scores, np.float64)
    if values.ndim != 1:
        raise ValueError(f"scores of {system} have {values.ndim} dimensions, not one")
    broken = np.flatnonzero(~(np.abs(values) <= _LARGEST))
    if len(broken):
        place = int(broken[0])
        problem = problem_of(
            "not-finite",
            f"scores of {system}",
            f"{values[place]} at place {place + 1}",
            f"finite numbers, up to {_LARGEST:g}",
            hint="a score that is missing or undefined is none: leave its query out",
        )
        raise InputError(problem)
    return values


def check_ask(
    test: str,
    alternatives: tuple[Alternative, ...],
    alternative: Alternative,
    *,
    level: float,
    least: float,
) -> Ask:
    """What is asked of a test, if it can be asked.

    Args:
        test: its name.
        alternatives: directions that it knows.
        alternative: the one asked for.
        level: of the interval.
        least: level that it must exceed.

    Raises:
        InputError: all problems at once. Code `test-option`.
    """
    path, problems = f"test {test}", []
    if alternative not in alternatives:
        expected = " or ".join(alternatives)
        problems.append(
            problem_of("test-option", path, f"alternative {quote(alternative)}", expected)
        )
    if not least < level < 1:
        expected = f"a number between {least:g} and 1"
        problems.append(problem_of("test-option", path, f"level {level}", expected))
    if problems:
        raise InputError(problems)
    return Ask(alternative=alternative, level=float(level))


def problem_of(code: str, path: str, found: str, expected: str, *, hint: str = "") -> Problem:
    """A problem without a line."""
    return Problem(code=code, path=path, found=found, expected=expected, hint=hint)
