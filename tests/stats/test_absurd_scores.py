"""Absurd scores and options: an error in words, or None with the reason; never 0, never NaN."""

from typing import Any

import numpy as np
import pytest
from scipy import stats

from heldout.errors import InputError
from heldout.stats.results import AskedTest, TestResult
from heldout.stats.student import unpaired_t_test
from heldout.stats.tests import TESTS, compare_counts, run_test

NAN, INFINITE = float("nan"), float("inf")
every_test = pytest.mark.parametrize("name", TESTS)
every_paired_test = pytest.mark.parametrize("name", [name for name in TESTS if TESTS[name].paired])


def run(name: str, a: Any, b: Any, **more: Any) -> TestResult:
    return run_test(name, a, b, **more)


def problems(error: pytest.ExceptionInfo[InputError]) -> list[tuple[str, str]]:
    return [(problem.code, problem.found) for problem in error.value.problems]


@every_test
def test_no_query(name: str) -> None:
    result = run(name, [], [])
    assert (result.n, result.p, result.difference, result.low) == (0, None, None, None)
    assert result.why == "no query"


@every_test
def test_a_single_query(name: str) -> None:
    result = run(name, [0.25], [0.5])
    assert (result.p, result.low) == (None, None)
    assert result.why == "a single query says nothing of others"


@every_test
@pytest.mark.parametrize("value", [0.0, 0.3, 1e-300, -5.0])
def test_equal_systems_without_spread(name: str, value: float) -> None:
    result = run(name, [value] * 10, [value] * 10)
    assert result.p is None
    assert result.why


@every_test
def test_identical_systems(name: str) -> None:
    scores = np.arange(20) / 20
    result = run(name, scores, scores)
    if name in ("rank-sum", "unpaired-t"):
        assert result.p == 1
    else:
        assert result.p is None
        assert result.why


def test_a_constant_difference_has_no_standard_error_also_where_floats_differ() -> None:
    a = np.array([0.1, 0.2, 0.3, 0.7])
    b = np.array([0.2, 0.3, 0.4, 0.8])
    assert np.unique(b - a).size > 1
    result = run("t", a, b)
    assert result.p is None
    assert result.difference == pytest.approx(0.1)
    assert result.why is not None
    assert "every difference is the same" in result.why


def test_samples_apart_have_a_p_but_no_interval_of_the_share() -> None:
    result = run("rank-sum", [0.1, 0.2, 0.3], [0.7, 0.8, 0.9])
    assert result.difference == 1
    assert result.p is not None
    assert (result.low, result.why) == (None, "the samples do not overlap: no interval")


def test_few_differences_have_a_p_but_no_signed_rank_interval() -> None:
    result = run("signed-rank", [0.0] * 5, [0.1, 0.2, 0.3, 0.4, 0.5])
    assert result.p == 2 / 32
    assert (result.low, result.why) == (None, "too few differences for an interval: 5")
    assert run("signed-rank", [0.0] * 6, np.arange(1, 7) / 10).low == 0.1


def test_one_score_against_many() -> None:
    assert run("unpaired-t", [0.5], [0.1, 0.2, 0.3]).why == "a system has a single score"
    ask = AskedTest(alternative="two-sided", level=0.95)
    student = unpaired_t_test(np.array([0.5]), np.array([0.1, 0.2, 0.3]), ask, kind="student")
    assert student.p is not None
    assert run("rank-sum", [0.5], [0.1, 0.2, 0.3]).why == "a system has a single score"
    assert run("rank-sum", [], [0.1, 0.2, 0.3]).why == "no query"


def test_two_scores_of_each_system_have_a_spread() -> None:
    theirs = stats.ttest_ind([0.25, 0.5], [0.5, 1.0], equal_var=False)
    assert run("unpaired-t", [0.5, 1.0], [0.25, 0.5]).p == pytest.approx(theirs.pvalue)


@every_test
@pytest.mark.parametrize("value", [NAN, INFINITE, -INFINITE])
def test_what_is_not_finite_is_refused_with_its_place(name: str, value: float) -> None:
    with pytest.raises(InputError) as error:
        run(name, [0.0, 1.0, 0.5], [0.0, value, 0.5])
    (problem,) = error.value.problems
    assert (problem.code, problem.path) == ("not-finite", "scores of B")
    assert problem.found.endswith("at place 2")


@every_paired_test
def test_different_query_sets_are_refused(name: str) -> None:
    with pytest.raises(InputError) as error:
        run(name, [0.0, 1.0], [0.0, 1.0, 0.5])
    assert problems(error) == [("test-lengths", "2 scores of A and 3 of B")]


def test_an_unknown_test_is_refused() -> None:
    with pytest.raises(InputError) as error:
        run_test("wilcoxon\x1b[2J", [0.0, 1.0], [0.0, 0.5])
    assert problems(error) == [("test-name", '"wilcoxon\\x1b[2J"')]


@pytest.mark.parametrize(
    ("name", "options", "found"),
    [
        ("t", {"level": 95}, "level 95"),
        ("t", {"level": NAN}, "level nan"),
        ("t", {"alternative": "better"}, 'alternative "better"'),
    ],
)
def test_an_option_that_makes_no_sense_is_refused(
    name: str, options: dict[str, Any], found: str
) -> None:
    with pytest.raises(InputError) as error:
        run(name, [0.0, 1.0, 0.2], [0.0, 0.5, 0.4], **options)
    assert problems(error) == [("test-option", found)]


@pytest.mark.parametrize("counts", [(-1, 3), (3, -1)])
def test_negative_counts_are_refused(counts: tuple[int, int]) -> None:
    with pytest.raises(InputError):
        compare_counts(*counts)


def test_no_count_has_no_p() -> None:
    result = compare_counts(0, 0)
    assert (result.p, result.difference, result.why) == (None, None, "no query has a winner")


def test_a_table_is_no_row() -> None:
    with pytest.raises(ValueError, match="2 dimensions"):
        run_test("t", [[0.0, 1.0]], [[0.0, 0.5]])


@every_test
def test_scores_of_any_size_are_used_or_refused(name: str) -> None:
    a, b = np.array([1.0, -1.0, 3.0, 2.0]), np.array([2.0, 1.0, 5.0, 1.5])
    result = run(name, 1e49 * a, 1e49 * b)
    assert result.p is None or 0 < result.p <= 1
    assert result.difference is None or np.isfinite(result.difference)
    result = run(name, 1e-49 * a, 1e-49 * b)
    assert result.p is None or 0 < result.p <= 1
    with pytest.raises(InputError):
        run(name, 1e51 * a, b)
