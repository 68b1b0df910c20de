"""The one way to run a test of two systems: by its name in the table (`table`).

What cannot be told is `None` with the reason; a p is never 0 and never NaN.
"""

from collections.abc import Mapping

from numpy.random import Generator
from numpy.typing import ArrayLike

from heldout.errors import InputError, quote
from heldout.stats.rank_tests import compare_wins
from heldout.stats.results import (
    Alternative,
    Ask,
    Found,
    TestResult,
    check_ask,
    check_options,
    check_scores,
    problem_of,
)
from heldout.stats.table import TESTS, Test

__all__ = ["TESTS", "Test", "compare_counts", "run_test"]


def run_test(
    name: str,
    a: ArrayLike,
    b: ArrayLike,
    *,
    alternative: Alternative | None = None,
    level: float = 0.95,
    rng: Generator | None = None,
    **options: object,
) -> TestResult:
    """Run a test of system B against system A.

    Args:
        name: a key of `TESTS`.
        a: finite scores of A, one dimension, at most 1e50 in size.
        b: those of B; on the same queries in the same order where the test is paired.
        alternative: the direction; by default the test's first.
        level: of the two-sided interval, between 0 and 1; for tests with a margin 1 - alpha,
            above 0.5.
        rng: where draws come from, for tests that draw.
        options: the test's own; see its row.

    Raises:
        InputError: codes `test-name`, `test-option`, `test-lengths`, `not-finite`.
    """
    test = _find(name)
    values = check_options(options, test.options, test=name)
    ask = _ask(name, test, alternative, level)
    first, second = check_scores(a, "A"), check_scores(b, "B")
    if test.paired and len(first) != len(second):
        raise InputError(
            problem_of(
                "test-lengths",
                f"test {name}",
                f"{len(first)} scores of A and {len(second)} of B",
                "scores on the same queries",
            )
        )
    if not (len(first) and len(second)):
        found = Found(used=0, difference=None, why="no query")
    else:
        drawn = {"rng": _need_rng(name, rng)} if test.draws else {}
        found = test.run(first, second, ask, **values, **drawn)
        if max(len(first), len(second)) == 1:
            why = "a single query says nothing of others"
            found = Found(used=found.used, difference=found.difference, why=why)
    size = len(first) if test.paired else len(first) + len(second)
    return _result(name, size, found, ask, values)


def compare_counts(
    a_wins: int,
    b_wins: int,
    *,
    alternative: Alternative = "two-sided",
    level: float = 0.95,
) -> TestResult:
    """The exact binomial test where only counts are known.

    Args:
        a_wins: queries that A alone answers, or wins.
        b_wins: those of B.
        alternative: the direction.
        level: of the interval.

    Returns:
        As of `binomial`, with n the queries counted.

    Raises:
        InputError: code `test-option`: a count is negative, or the level is none.
    """
    ask = _ask("binomial", TESTS["binomial"], alternative, level)
    if min(a_wins, b_wins) < 0:
        raise InputError(
            problem_of("test-option", "test binomial", f"{a_wins} and {b_wins}", "counts from 0")
        )
    return _result("binomial", a_wins + b_wins, compare_wins(a_wins, b_wins, ask), ask, {})


def _result(
    name: str, size: int, found: Found, ask: Ask, options: Mapping[str, object]
) -> TestResult:
    return TestResult(
        test=name,
        n=size,
        used=found.used,
        difference=found.difference,
        low=found.low,
        high=found.high,
        level=ask.level if found.level is None else found.level,
        alternative=ask.alternative,
        statistic=found.statistic,
        p=found.p,
        why=found.why,
        options=dict(options),
    )


def _find(name: str) -> Test:
    if name not in TESTS:
        raise InputError(problem_of("test-name", "test", quote(name), f"one of {', '.join(TESTS)}"))
    return TESTS[name]


def _ask(name: str, test: Test, alternative: Alternative | None, level: float) -> Ask:
    chosen = test.alternatives[0] if alternative is None else alternative
    least = 0.5 if "margin" in test.options else 0.0
    return check_ask(name, test.alternatives, chosen, level=level, least=least)


def _need_rng(name: str, rng: Generator | None) -> Generator:
    if rng is None:
        raise ValueError(f"the test {name} draws: give it a numpy.random.Generator")
    return rng
