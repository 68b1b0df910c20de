"""Tests of two systems: the table of them, and the one way to run one, by its name.

Everywhere the difference is B - A, and the alternative `greater` means that B is better. An
interval is two-sided whatever the alternative. What is undefined is `None` with the reason; a p is
never 0 and never NaN. docs/reference/tests.md is held against the table by a test.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from types import MappingProxyType
from typing import ClassVar

from numpy.typing import ArrayLike

from heldout.errors import InputError, quote
from heldout.stats import rank_tests, results, student


@dataclass(frozen=True, slots=True, kw_only=True)
class Test:
    """A test, with what must be known to use it.

    Attributes:
        run: computes it from the scores of A and B and an `AskedTest`.
        null: the hypothesis that a small p speaks against.
        difference: what the difference is.
        interval: where its interval comes from.
        assumes: what must hold.
        ties: what becomes of ties and of differences of 0.
        undefined: where p is `None`, besides no query and a single one.
        source: where it is from.
        paired: whether both systems must have the same queries.
    """

    __test__: ClassVar[bool] = False  # pytest looks for classes of this name

    run: Callable[..., results.Found]
    null: str
    difference: str
    interval: str
    assumes: str
    ties: str
    undefined: str
    source: str
    paired: bool = True


TESTS: Mapping[str, Test] = MappingProxyType(
    {
        "sign": Test(
            run=rank_tests.sign_test,
            null="each system wins as often as the other",
            difference="share of the won queries that B wins, less the share that A wins",
            interval="Clopper-Pearson, exact",
            assumes="independent queries",
            ties="differences of 0 are dropped",
            undefined="no query is won",
            source="Conover 1999, section 3.4; Clopper and Pearson 1934",
        ),
        "binomial": Test(
            run=rank_tests.binomial_test,
            null="of the queries that one system alone answers, each answers as many",
            difference="share of these queries that B answers, less the share that A answers",
            interval="Clopper-Pearson, exact",
            assumes="independent queries",
            ties="queries that both answer, with a score above 0, or neither, are dropped",
            undefined="no query is answered by one system alone",
            source="Lin et al. 2021, §4; McNemar 1947; Clopper and Pearson 1934",
        ),
        "rank-sum": Test(
            run=rank_tests.rank_sum_test,
            null="a score of B exceeds one of A as often as the other way round",
            difference="P(B > A) - P(A > B) of two scores drawn at random",
            interval="by the variance of placements, with Welch's degrees of freedom",
            assumes="two independent samples of one shape; on paired runs it is conservative, "
            "since systems agree on what is hard",
            ties="tied scores share their mean rank, and correct the variance",
            undefined="all scores are the same; no interval where the samples do not overlap",
            source="Mann and Whitney 1947; Brunner and Munzel 2000 (interval); "
            "scipy `mannwhitneyu` (asymptotic)",
            paired=False,
        ),
        "signed-rank": Test(
            run=rank_tests.signed_rank_test,
            null="differences are symmetric about 0",
            difference="pseudomedian of the differences that are not 0, by Hodges and Lehmann",
            interval="of Walsh averages, by the untied null distribution, exact up to 50",
            assumes="independent queries; differences symmetric about their centre",
            ties="differences tied as rationals share their mean rank; those of 0 are dropped",
            undefined="every difference is 0; no interval with fewer than 6 differences at 95%",
            source="Wilcoxon 1945; Hollander, Wolfe and Chicken 2014, sections 3.1 to 3.3; "
            "scipy `wilcoxon`",
        ),
        "t": Test(
            run=student.paired_t_test,
            null="the mean difference is 0",
            difference="mean difference",
            interval="Student's t",
            assumes="independent queries; a mean difference that is nearly normal",
            ties="count like any difference",
            undefined="every difference is the same",
            source="Student 1908; scipy `ttest_rel`",
        ),
        "unpaired-t": Test(
            run=student.unpaired_t_test,
            null="the means are equal",
            difference="difference of the means",
            interval="Student's t",
            assumes="two independent samples, means nearly normal; on paired runs it is "
            "conservative",
            ties="count like any score",
            undefined="the scores of each system are all the same, or a system has a single one",
            source="Student 1908; Welch 1947; scipy `ttest_ind`",
            paired=False,
        ),
    }
)
"""Every test by name, in the order of docs/reference/tests.md."""


def run_test(
    name: str,
    a: ArrayLike,
    b: ArrayLike,
    *,
    alternative: results.Alternative = "two-sided",
    level: float = 0.95,
) -> results.TestResult:
    """Run a test of system B against system A.

    Args:
        name: a key of `TESTS`.
        a: finite scores of A, one dimension, at most 1e50 in size.
        b: those of B; on the same queries in the same order where the test is paired.
        alternative: the direction.
        level: of the two-sided interval, between 0 and 1.

    Raises:
        InputError: codes `test-name`, `test-option`, `test-lengths`, `not-finite`.
    """
    if name not in TESTS:
        raise InputError.of("test-name", "test", quote(name), f"one of {', '.join(TESTS)}")
    test = TESTS[name]
    ask = results.check_ask(name, alternative, level=level)
    first, second = results.check_scores(a, "A"), results.check_scores(b, "B")
    if test.paired and len(first) != len(second):
        raise InputError.of(
            "test-lengths", f"test {name}", f"{len(first)} scores of A and {len(second)} of B"
        )
    if not (len(first) and len(second)):
        found = results.Found(used=0, difference=None, why="no query")
    else:
        found = test.run(first, second, ask)
        if max(len(first), len(second)) == 1:
            why = "a single query says nothing of others"
            found = results.Found(used=found.used, difference=found.difference, why=why)
    size = len(first) if test.paired else len(first) + len(second)
    return _result(name, size, found, ask)


def compare_counts(
    a_wins: int,
    b_wins: int,
    *,
    alternative: results.Alternative = "two-sided",
    level: float = 0.95,
) -> results.TestResult:
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
    ask = results.check_ask("binomial", alternative, level=level)
    if min(a_wins, b_wins) < 0:
        raise InputError.of(
            "test-option", "test binomial", f"{a_wins} and {b_wins}", "counts from 0"
        )
    found = rank_tests.compare_wins(a_wins, b_wins, ask)
    return _result("binomial", a_wins + b_wins, found, ask)


def _result(
    name: str, size: int, found: results.Found, ask: results.AskedTest
) -> results.TestResult:
    return results.TestResult(
        test=name,
        n=size,
        level=ask.level,
        alternative=ask.alternative,
        **{one.name: getattr(found, one.name) for one in fields(found)},
    )
